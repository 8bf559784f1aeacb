//! Exactly once, end to end: `picolake serve` is killed at any moment, again and again, while boards insert rows,
//! restart, and their links break. At the end every row that a board did not overwrite first is in the archive once.

use picolake::archive::{Readers, Series};
use picolake_tests::row_board::{Pace, RowBoard, Start, TABLES, cells_of};
use shared::{limits::TABLE_COLUMNS_MAX, link_test::mix, schema::TableSpec, value::Value};
use std::{
    collections::BTreeSet,
    fs::File,
    path::Path,
    process::{Child, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

/// How often the bridge is killed.
const KILLS: u64 = 200;
/// The longest that a bridge lives.
const LIFE_MAX: Duration = Duration::from_millis(600);
/// How long the last bridge may take to copy what is left, on a busy machine.
const CATCH_UP_MAX: Duration = Duration::from_secs(60);

/// Keeps every row.
const LARGE: Pace = Pace { pages: 2_000, burst_rows: 2 };
/// Overwrites rows while no bridge is there.
const SMALL: Pace = Pace { pages: 12, burst_rows: 3 };

/// A tenth of the kills in every run, all of them in a soak.
fn kills() -> u64 {
    if std::env::var("PICOLAKE_CASES").is_ok_and(|cases| cases == "all") { KILLS } else { KILLS / 10 }
}

fn seed() -> u64 {
    match std::env::var("PICOLAKE_SEED") {
        Ok(seed) => seed.parse().expect("a seed is a number"),
        Err(_) => rand::random::<u32>().into(),
    }
}

/// A bridge that is killed, without a word, when this is dropped.
struct Bridge(Child);

impl Bridge {
    fn start(folder: &Path) -> Self {
        let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
        let mut command = picolake_tests::picolake();
        command.args(["serve", "--http", "127.0.0.1:0"]).current_dir(folder);
        command.env_remove("PICOLAKE_ARCHIVE").env_remove("PICOLAKE_TOKEN");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self(command.spawn().expect("the bridge starts"))
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn configure(folder: &Path, boards: &[RowBoard]) {
    let mut text = String::from("archive: {path: archive.db, sync_interval_ms: 50}\nboards:\n");
    for board in boards {
        text += &format!("- {{name: {}, link: 'tcp:{}'}}\n", board.name, board.address);
    }
    std::fs::write(folder.join("picolake.yaml"), text).unwrap();
}

/// The series of a board's table.
fn series_of(readers: &Readers, board: &RowBoard, table: &TableSpec) -> Vec<Series> {
    let all = readers.series_of(table.dbms, table.name).unwrap_or_default();
    all.into_iter().filter(|series| series.key.board_id == board.id).collect()
}

/// Waits until all that the boards have is copied.
fn wait_until_copied(readers: &Readers, boards: &[RowBoard]) {
    let begun = Instant::now();
    let is_copied = |board: &RowBoard| {
        let start = *board.starts().last().expect("it has started");
        TABLES.iter().zip(start.counts).all(|(table, counts)| {
            let series = series_of(readers, board, table);
            series.iter().any(|s| s.key.epoch == start.epoch && s.watermark == counts.next_row_id)
        })
    };
    while !boards.iter().all(is_copied) {
        assert!(begun.elapsed() < CATCH_UP_MAX, "not copied after {CATCH_UP_MAX:?}");
        std::thread::sleep(Duration::from_millis(20)); // between two looks
    }
}

/// What one start of a board's table came to.
#[derive(Debug, Default)]
struct Tally {
    stored: u64,
    lost: u64,
}

/// Every row of `0..watermark` must be stored once, as it was inserted, or be in one gap and overwritten on the board.
fn check(readers: &Arc<Readers>, series: &Series, table: &TableSpec, nth: usize, start: &Start) -> Tally {
    let counts = start.counts[nth];
    assert!(series.watermark <= counts.next_row_id, "rows that the board never had");
    assert!(counts.acknowledged_row_id <= series.watermark, "the board was told of rows that are not stored");
    let mut lost = BTreeSet::new();
    for gap in readers.gaps(series.id).unwrap() {
        match gap.to_row {
            Some(to_row) => (gap.from_row..to_row).for_each(|row| assert!(lost.insert(row), "lost twice")),
            None => assert_eq!((gap.from_row, series.is_ended), (series.watermark, true)),
        }
    }
    assert_eq!(series.rows_lost, lost.len() as u64);
    assert!(lost.iter().all(|row| *row < counts.first_row_id), "a row is lost that the board still had");
    let mut next = 0;
    let mut stored = 0;
    let mut chunks = readers.chunks(series.id, 0..u64::MAX, None);
    while let Some(chunk) = chunks.next_blocking().unwrap() {
        for (page, wanted) in chunk.pages() {
            assert_eq!(wanted, page.first_row_id()..page.next_row_id());
            let mut rows = page.rows(table.columns.iter().map(|column| column.kind));
            let mut cells = [Value::Null; TABLE_COLUMNS_MAX];
            for row in wanted {
                assert!(rows.next_row(&mut cells).unwrap());
                while lost.contains(&next) {
                    next += 1;
                }
                assert_eq!(row, next, "a row is missing, or there twice");
                let (text, value, share) = cells_of(table.name, series.key.epoch, row);
                let is_right = match cells[1] {
                    Value::Text(stored) => stored == text,
                    cell => cell == Value::Int(value) && cells[2] == Value::Float32(share),
                };
                assert!(is_right, "row {row} is {cells:?}");
                next += 1;
                stored += 1;
            }
        }
    }
    while lost.contains(&next) {
        next += 1;
    }
    assert_eq!(next, series.watermark, "rows are missing at the end");
    Tally { stored, lost: lost.len() as u64 }
}

#[test]
fn every_row_is_archived_once_however_often_the_bridge_is_killed() {
    let seed = seed();
    eprintln!("seed {seed} (again with PICOLAKE_SEED={seed}; the machine's own timing differs)");
    let mut state = seed;
    let mut draw = |below: u64| {
        state = mix(state);
        state % below
    };
    let folder = tempfile::tempdir().unwrap();
    let boards: Vec<RowBoard> = [("large", LARGE), ("small", SMALL), ("other", SMALL)]
        .map(|(name, pace)| RowBoard::start(name, pace, mix(seed ^ name.len() as u64 ^ pace.pages as u64)))
        .into();
    configure(folder.path(), &boards);
    for _ in 0..kills() {
        let bridge = Bridge::start(folder.path());
        let life = Duration::from_micros(draw(LIFE_MAX.as_micros() as u64));
        let board = &boards[draw(3) as usize];
        std::thread::sleep(life / 2);
        match draw(6) {
            0 => board.restart(),
            1 | 2 => board.cut_links(),
            3 => boards[1].insert(200 + draw(400)),
            _ => {}
        }
        std::thread::sleep(life / 2);
        drop(bridge);
        // Now and then nobody is there for longer than a small board remembers.
        std::thread::sleep(Duration::from_millis(draw(8) / 7 * 400));
    }
    boards.iter().for_each(RowBoard::rest);
    boards.iter().for_each(|board| board.insert(5));
    let readers = Arc::new(Readers::new(folder.path().join("archive.db")));
    let last = Bridge::start(folder.path());
    wait_until_copied(&readers, &boards);
    drop(last);

    let (mut tally, mut ended, mut starts_unseen) = (Tally::default(), 0, 0);
    for board in boards {
        let series = TABLES.map(|table| series_of(&readers, &board, table));
        let name = board.name.clone();
        let starts = board.end();
        for (nth, (table, series)) in TABLES.iter().zip(series).enumerate() {
            for series in &series {
                let start = starts.iter().find(|start| start.epoch == series.key.epoch);
                let start = start.expect("rows of a start that never was");
                let is_last = start.epoch == starts.last().expect("it has started").epoch;
                assert_eq!(series.is_ended, !is_last);
                let found = check(&readers, series, table, nth, start);
                assert!(name != "large" || found.lost == 0, "nothing was overwritten on this board");
                tally.stored += found.stored;
                tally.lost += found.lost;
                ended += u64::from(!is_last);
            }
            starts_unseen += starts.len() - series.len();
        }
    }
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    eprintln!("{} kills: {tally:?}, {ended} series of earlier starts, {starts_unseen} unseen", kills());
    assert!(tally.stored > 1_000, "{tally:?} shows little");
    assert!(kills() < KILLS || tally.lost > 0 && ended > 0, "{tally:?}, {ended}: it shows little");
    assert!(!log.contains("damaged") && !log.contains("panicked"), "{log}");
}
