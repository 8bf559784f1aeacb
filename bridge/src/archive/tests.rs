//! The archive's store, reader and file against a model: a board that is a queue of pages, and maps of what must be
//! stored.

mod damage;
mod model;

use super::{
    Archive, Health, Options, Readers, Retention, file,
    file::Owned,
    intake::{Batch, Piece},
    store::{RUN_BYTES_MAX, Store, Stored},
    writer,
};
use crate::field::Field;
use model::{ModelBoard, Stream, TEXT_TABLE};
use proptest::{collection::vec, prelude::*};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// A file in a folder that goes with it.
struct Shelf {
    folder: tempfile::TempDir,
    owned: Option<Owned>,
    now_us: i64,
}

impl Shelf {
    fn new() -> Self {
        let mut shelf = Self { folder: tempfile::tempdir().unwrap(), owned: None, now_us: 1_000_000 };
        shelf.open();
        shelf
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("archive.db")
    }

    fn open(&mut self) {
        self.owned = None;
        let owned = file::own(&self.path()).unwrap();
        // What these tests look at does not depend on the disk's own caches, and they commit often.
        owned.connection.pragma_update(None, "synchronous", "OFF").unwrap();
        self.owned = Some(owned);
    }

    /// Runs a job in a transaction, as the writer does.
    fn write<T>(&self, job: impl FnOnce(&Store<'_>) -> T) -> T {
        let (path, connection) = (self.path(), &self.owned.as_ref().unwrap().connection);
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let done = job(&Store { path: &path, connection });
        connection.execute_batch("COMMIT").unwrap();
        done
    }

    fn put(&self, batch: &Batch) -> Stored {
        self.write(|store| store.put(batch, self.now_us)).unwrap()
    }

    fn merge_all(&self) {
        let ids: Vec<i64> = self.readers().contents().unwrap().series.iter().map(|(s, _)| s.id).collect();
        for id in ids {
            while self.write(|store| store.merge(id, self.now_us)).unwrap() {}
        }
    }

    fn readers(&self) -> Arc<Readers> {
        Arc::new(Readers::new(self.path()))
    }
}

/// Every row of a series as its pages give them.
fn rows_of(readers: &Arc<Readers>, series: i64, rows: std::ops::Range<u64>) -> Vec<(u64, String)> {
    let mut chunks = readers.chunks(series, rows, None);
    let mut found = Vec::new();
    while let Some(chunk) = chunks.next_blocking().unwrap() {
        for (page, wanted) in chunk.pages() {
            found.extend(model::texts(&page).filter(|(row, _)| wanted.contains(row)));
        }
    }
    found
}

/// What must be stored of one start of the board.
#[derive(Debug, Default)]
struct Expected {
    rows: BTreeMap<u64, String>,
    lost: BTreeSet<u64>,
    retired: BTreeSet<u64>,
    watermark: u64,
}

#[derive(Clone, Debug)]
enum Event {
    /// Rows come.
    Insert(u16),
    /// Pages are copied; after so many of them the link or the bridge breaks.
    Copy { pages: usize },
    /// The same, but nothing of it was stored when the bridge was killed.
    CopyInVain { pages: usize },
    /// What was stored last is stored again.
    Repeat,
    /// The board starts anew.
    Restart,
    /// The archive tidies up.
    Merge,
    /// Rows older than so many of the last go.
    Retire { kept_rows: u64 },
    /// The bridge starts anew.
    Reopen,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        5 => (1..150_u16).prop_map(Event::Insert),
        4 => (0..8_usize).prop_map(|pages| Event::Copy { pages }),
        2 => Just(Event::Copy { pages: usize::MAX }),
        1 => (0..8_usize).prop_map(|pages| Event::CopyInVain { pages }),
        1 => Just(Event::Repeat),
        1 => Just(Event::Restart),
        2 => Just(Event::Merge),
        1 => (0..300_u64).prop_map(|kept_rows| Event::Retire { kept_rows }),
        1 => Just(Event::Reopen),
    ]
}

/// Plays events to a store and to the model side by side.
struct Play {
    shelf: Shelf,
    board: ModelBoard,
    expected: BTreeMap<u64, Expected>,
    last: Option<Batch>,
}

impl Play {
    fn copy(&mut self, pages: usize, is_stored: bool) {
        let expected = self.expected.entry(self.board.epoch).or_default();
        let Stream { batch, held } = self.board.stream(expected.watermark, pages);
        if !is_stored {
            return;
        }
        let stored = self.shelf.put(&batch);
        let (mut rows, mut lost) = (0, 0);
        for row in expected.watermark..stored.watermark {
            if held.contains(&row) {
                expected.rows.insert(row, model::text_of(self.board.epoch, row));
                rows += 1;
            } else {
                expected.lost.insert(row);
                lost += 1;
            }
        }
        assert_eq!((stored.rows, stored.lost), (rows, lost));
        expected.watermark = stored.watermark;
        self.last = Some(batch);
    }

    fn event(&mut self, event: &Event) {
        match *event {
            Event::Insert(rows) => self.board.insert(rows.into()),
            Event::Copy { pages } => self.copy(pages, true),
            Event::CopyInVain { pages } => self.copy(pages, false),
            Event::Repeat => {
                if let Some(batch) = &self.last {
                    let stored = self.shelf.put(batch);
                    assert_eq!((stored.rows, stored.lost), (0, 0), "it was there already");
                }
            }
            Event::Restart => self.board.restart(),
            Event::Merge => self.shelf.merge_all(),
            Event::Retire { kept_rows } => self.retire(kept_rows),
            Event::Reopen => self.shelf.open(),
        }
    }

    /// Rows of the model are a millisecond apart, and its clock began at 0.
    fn retire(&mut self, kept_rows: u64) {
        let now_us = (self.board.rows_in_all * 1_000) as i64;
        let retention = Retention { keep: Some(Duration::from_millis(kept_rows)), max_bytes: None };
        while self.shelf.write(|store| store.retire(retention, now_us)).unwrap() {}
        for series in self.shelf.readers().series_of("demo", "notes").unwrap() {
            let expected = self.expected.get_mut(&series.key.epoch).unwrap();
            let gone: Vec<u64> = expected.rows.range(..series.first_row).map(|(row, _)| *row).collect();
            for row in gone {
                let age = self.board.rows_in_all - model::row_of(&expected.rows.remove(&row).unwrap());
                assert!(age > kept_rows, "row {row} is only {age} rows old, and {kept_rows} are kept");
                expected.retired.insert(row);
            }
        }
    }

    fn check(&self) {
        let readers = self.shelf.readers();
        let all = readers.series_of("demo", "notes").unwrap();
        let begun: Vec<u64> =
            self.expected.iter().filter(|(_, e)| e.watermark > 0).map(|(e, _)| *e).collect();
        assert!(begun.iter().all(|epoch| all.iter().any(|series| series.key.epoch == *epoch)));
        for series in &all {
            let expected = &self.expected[&series.key.epoch];
            assert_eq!(series.watermark, expected.watermark);
            assert_eq!(series.rows_lost, expected.lost.len() as u64);
            assert_eq!(series.rows_retired, expected.retired.len() as u64);
            let found = rows_of(&readers, series.id, 0..u64::MAX);
            let wanted: Vec<_> = expected.rows.iter().map(|(row, text)| (*row, text.clone())).collect();
            assert_eq!(found, wanted);
            let mut lost = BTreeSet::new();
            for gap in readers.gaps(series.id).unwrap() {
                match gap.to_row {
                    Some(to_row) => lost.extend(gap.from_row..to_row),
                    None => assert_eq!((gap.from_row, series.is_ended), (series.watermark, true)),
                }
            }
            // Gaps before what was retired are only counted.
            let known: BTreeSet<u64> = expected.lost.range(series.first_row..).copied().collect();
            assert!(lost.is_subset(&expected.lost) && known.is_subset(&lost), "{lost:?}, not {known:?}");
            assert_eq!(series.is_ended, series.id != all.last().unwrap().id);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn every_row_is_stored_once_or_counted_as_lost_whatever_happens(events in vec(event(), 1..60)) {
        let mut play = Play {
            shelf: Shelf::new(),
            board: ModelBoard::new(6),
            expected: BTreeMap::new(),
            last: None,
        };
        for event in &events {
            play.event(event);
        }
        play.check();
        play.event(&Event::Copy { pages: usize::MAX });
        play.event(&Event::Merge);
        play.check();
    }
}

#[test]
fn a_page_that_grew_while_it_was_read_is_given_once() {
    let (shelf, mut board) = (Shelf::new(), ModelBoard::new(100));
    board.insert(205);
    let stored = shelf.put(&board.stream(0, usize::MAX).batch);
    let readers = shelf.readers();
    let mut chunks = readers.chunks(stored.series, 0..u64::MAX, None);
    let mut rows: Vec<u64> = Vec::new();
    let mut take = |chunk: super::Chunk| chunk.pages().for_each(|(_, wanted)| rows.extend(wanted));
    take(chunks.next_blocking().unwrap().unwrap());
    board.insert(3);
    shelf.put(&board.stream(stored.watermark, usize::MAX).batch);
    take(chunks.next_blocking().unwrap().unwrap());
    assert!(chunks.next_blocking().unwrap().is_none());
    assert_eq!(rows, (0..208).collect::<Vec<_>>());
}

#[test]
fn what_is_merged_while_it_is_read_is_given_once_and_a_pinned_watermark_bounds_it() {
    let (shelf, mut board) = (Shelf::new(), ModelBoard::new(2_000));
    let mut watermark = 0;
    // Each page comes alone, as it does while a board is followed.
    for _ in 0..400 {
        board.insert(12);
        watermark = shelf.put(&board.stream(watermark, usize::MAX).batch).watermark;
    }
    let readers = shelf.readers();
    let series = readers.series_of("demo", "notes").unwrap().remove(0);
    let mut chunks = readers.chunks(series.id, 0..series.watermark, None);
    let mut rows: Vec<u64> = Vec::new();
    let mut count = 0;
    while let Some(chunk) = chunks.next_blocking().unwrap() {
        chunk.pages().for_each(|(_, wanted)| rows.extend(wanted));
        shelf.merge_all();
        board.insert(50);
        watermark = shelf.put(&board.stream(watermark, usize::MAX).batch).watermark;
        count += 1;
    }
    assert!(count > 1, "{count} chunks show nothing");
    assert_eq!(rows, (0..series.watermark).collect::<Vec<_>>());
    let (_, stored) = readers.contents().unwrap().series.remove(0);
    assert!(stored.bytes / stored.runs > RUN_BYTES_MAX as u64 / 2, "{stored:?}");
}

#[test]
fn pages_outside_a_time_range_are_left_out() {
    let (shelf, mut board) = (Shelf::new(), ModelBoard::new(2_000));
    board.insert(3_000);
    let stored = shelf.put(&board.stream(0, usize::MAX).batch);
    let readers = shelf.readers();
    // Row n was made n ms after boot.
    let mut chunks = readers.chunks(stored.series, 0..u64::MAX, Some(1_000_000..=1_100_000));
    let mut rows: Vec<u64> = Vec::new();
    while let Some(chunk) = chunks.next_blocking().unwrap() {
        chunk.pages().for_each(|(_, wanted)| rows.extend(wanted));
    }
    assert!((1_000..=1_100).all(|row| rows.contains(&row)));
    assert!(rows.len() < 101 + 2 * 30, "{} rows: two pages more at most", rows.len());
}

#[test]
fn the_file_stays_within_its_bound_and_what_goes_is_the_oldest() {
    const BYTES_MAX: u64 = super::MAX_BYTES_MIN;
    let (shelf, mut board) = (Shelf::new(), ModelBoard::new(1_000));
    let retention = Retention { keep: None, max_bytes: Some(BYTES_MAX) };
    let mut watermark = 0;
    for _ in 0..60 {
        board.insert(4_000);
        watermark = shelf.put(&board.stream(watermark, usize::MAX).batch).watermark;
        while shelf.write(|store| store.retire(retention, shelf.now_us)).unwrap() {}
        let contents = shelf.readers().contents().unwrap();
        assert!(contents.file_bytes <= BYTES_MAX, "{} bytes", contents.file_bytes);
    }
    let (series, stored) = shelf.readers().contents().unwrap().series.remove(0);
    assert!(series.rows_retired > 0 && series.rows_lost == 0, "{series:?}");
    assert_eq!(stored.rows + series.rows_retired, series.watermark);
    let found = rows_of(&shelf.readers(), series.id, 0..u64::MAX);
    assert_eq!(found.first().map(|(row, _)| *row), Some(series.first_row));
    assert_eq!(found.len() as u64, stored.rows);
}

#[test]
fn room_that_is_not_needed_any_more_goes_back_to_the_system() {
    let (shelf, mut board) = (Shelf::new(), ModelBoard::new(20_000));
    board.insert(300_000);
    shelf.put(&board.stream(0, usize::MAX).batch);
    let bytes = || {
        let contents = shelf.readers().contents().unwrap();
        (contents.file_bytes, contents.free_bytes)
    };
    let (full, _) = bytes();
    let retention = Retention { keep: Some(Duration::from_millis(100)), max_bytes: None };
    let now_us = 300_000 * 1_000;
    while shelf.write(|store| store.retire(retention, now_us)).unwrap() {}
    assert_eq!(bytes().0, full, "what is given up is free for new rows first");
    while shelf.write(|store| store.give_back()).unwrap() {}
    let (left, free) = bytes();
    assert!(left < full / 2 && free > 0, "{left} of {full} bytes, {free} free");
}

#[test]
fn a_row_of_the_test_sensors_takes_at_most_six_bytes_of_the_file() {
    let (shelf, mut board) = (Shelf::new(), ModelBoard::of_sensors(4_000));
    let mut watermark = 0;
    for _ in 0..60 {
        board.insert(5_000);
        watermark = shelf.put(&board.stream(watermark, usize::MAX).batch).watermark;
        shelf.merge_all();
    }
    let contents = shelf.readers().contents().unwrap();
    let (series, stored) = &contents.series[0];
    let file = contents.file_bytes as f64 / stored.rows as f64;
    let pages = stored.bytes as f64 / stored.rows as f64;
    eprintln!("{} rows: {pages:.2} B/row in pages, {file:.2} B/row in the file", stored.rows);
    assert_eq!(stored.rows, series.watermark);
    assert!(file <= 6.0 && file < pages * 1.2, "{file} B/row, {pages} of them pages");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_the_writer_do_not_wait_for_each_other_and_the_log_stays_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive.db");
    let archive = Archive::start(Options::new(&path), &Field::new([]));
    let mut board = ModelBoard::new(40_000);
    board.insert(3_000);
    let mut watermark = archive.inner.put(board.stream(0, usize::MAX).batch).await.unwrap().watermark;
    let is_done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (archive, is_done) = (archive.clone(), Arc::clone(&is_done));
            tokio::spawn(async move {
                let mut reads = 0_u64;
                while !is_done.load(Ordering::Relaxed) {
                    let series = archive.series_of("demo", "notes").await.unwrap().remove(0);
                    let mut chunks = archive.chunks(series.id, 0..series.watermark, None);
                    let mut next = 0;
                    while let Some(chunk) = chunks.next().await.unwrap() {
                        for (_, rows) in chunk.pages() {
                            assert_eq!(rows.start, next);
                            next = rows.end;
                        }
                    }
                    assert_eq!(next, series.watermark);
                    reads += 1;
                }
                reads
            })
        })
        .collect();
    let mut log_bytes_max = 0;
    for _ in 0..150 {
        board.insert(2_000);
        watermark = archive.inner.put(board.stream(watermark, usize::MAX).batch).await.unwrap().watermark;
        log_bytes_max =
            log_bytes_max.max(std::fs::metadata(file::log_path(&path)).map_or(0, |log| log.len()));
    }
    is_done.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.await.unwrap() > 0);
    }
    assert!(log_bytes_max < writer::LOG_BYTES_MAX, "the log grew to {log_bytes_max} bytes");
    assert_eq!(archive.health(), Health::Open);
    assert_eq!(watermark, 303_000);
    archive.close().await;
    assert!(file::own(&path).is_ok(), "it is closed, and another may have it");
}

#[tokio::test]
async fn pages_from_elsewhere_are_stored_as_a_boards_are() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::start(Options::new(folder.path().join("archive.db")), &Field::new([]));
    let mut board = ModelBoard::new(1_000);
    board.insert(9_000);
    let batch = board.stream(0, usize::MAX).batch;
    let pages: Vec<&[u8]> = batch
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Page(bytes) => &**bytes,
            Piece::Lost(_) => panic!("nothing is lost"),
        })
        .collect();
    let columns = TEXT_TABLE.iter().copied().collect();
    let clock = shared::clock::UtcClock::default();
    let stored = archive.ingest(batch.key.clone(), &columns, &clock, 0, &pages).await;
    assert_eq!(stored, Ok(9_000));
    let series = archive.series_of("demo", "notes").await.unwrap().remove(0);
    assert_eq!(rows_of(archive.reader(), series.id, 0..u64::MAX).len(), 9_000);
    let gap = archive.ingest(batch.key, &columns, &clock, 0, &pages[1..]).await;
    assert!(matches!(gap, Err(super::ArchiveError::Protocol(_))), "{gap:?}");
}

#[test]
fn a_board_that_sends_nonsense_changes_nothing() {
    let (shelf, mut board) = (Shelf::new(), ModelBoard::new(50));
    board.insert(100);
    let good = board.stream(0, usize::MAX).batch;
    let watermark = shelf.put(&good).watermark;
    let before = shelf.readers().contents().unwrap();
    board.insert(100);
    let behind = Batch { from: watermark + 1, ..board.stream(watermark + 1, usize::MAX).batch };
    let other = {
        // Pages of another board whose rows are cut elsewhere, under the same name.
        let mut other = ModelBoard::of_sensors(50);
        other.insert(1_000);
        let stream = other.stream(0, usize::MAX).batch;
        Batch { key: good.key.clone(), ..stream }
    };
    for nonsense in [behind, other] {
        let refused = shelf.write(|store| {
            store.execute("SAVEPOINT test", []).unwrap();
            let refused = store.put(&nonsense, 7).unwrap_err();
            store.execute("ROLLBACK TO test", []).unwrap();
            store.execute("RELEASE test", []).unwrap();
            refused
        });
        assert!(matches!(refused, super::ArchiveError::Protocol(_)), "{refused}");
    }
    assert_eq!(shelf.readers().contents().unwrap(), before);
    assert_eq!(TEXT_TABLE.len(), 2);
}
