//! Rows from the sensor to the answer: the firmware and the bridge's session, in virtual time.

use firmware::Facts;
use picolake::{
    board::{AnswerError, BoardError, OwnedRequest, Piece, Session, decode_rows},
    link::{
        ByteStream,
        sim::{self, Attached},
    },
};
use picolake_tests::{
    ask::{ask, ask_sql},
    faulty_link::{Faults, FaultyLink},
    oracle::Cell,
    sensors::{SENSORS, Sensor},
};
use shared::{
    limits::{COMMAND_BYTES_MAX, CREATED_TABLES_MAX, QUERIES_MAX, TABLE_COLUMNS_MAX, UNIT_BYTES_MAX},
    link_test::mix,
    message::{Class, ErrorCode, Part},
    time::Utc,
    value::Value,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::mpsc, task::LocalSet, time::sleep};

const PIPE_BYTES: usize = 4096;
const UP: Duration = Duration::from_secs(10);
/// No answer takes longer, in virtual time.
const PATIENCE: Duration = Duration::from_secs(600);

fn in_virtual_time<T>(test: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    LocalSet::new()
        .block_on(&runtime, async { tokio::time::timeout(PATIENCE, test).await.expect("it hangs") })
}

/// A board that runs from now on, and a way to it whose frames suffer `faults`.
fn board(name: &str, faults: Faults, seed: u64) -> (Facts, impl Fn() -> Session) {
    let facts = sim::facts(name);
    let (links_in, links) = mpsc::channel(16);
    tokio::task::spawn_local(sim::run(facts.clone(), links));
    let connect = move || {
        let (links_in, opened) = (links_in.clone(), AtomicU64::new(0));
        let open = move || {
            let nth = opened.fetch_add(1, Ordering::Relaxed);
            let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
            let board_end = FaultyLink::new(theirs, faults, mix(seed ^ nth << 1), Arc::default());
            let bridge_end = FaultyLink::new(ours, faults, mix(seed ^ nth << 1 | 1), Arc::default());
            let sent = links_in.try_send(Attached::Connection(board_end)).map_err(|_| "no board".to_string());
            async move { sent.map(|()| Box::new(bridge_end) as Box<dyn ByteStream>) }
        };
        Session::connect_with(open, mix(seed))
    };
    (facts, connect)
}

async fn clean(name: &str) -> (Facts, Session) {
    let (facts, connect) = board(name, Faults::default(), 1);
    let session = connect();
    session.wait_up(UP).await.unwrap();
    (facts, session)
}

fn int(cell: &Cell) -> i64 {
    match cell {
        Cell::Int(v) | Cell::Timestamp(v) => *v,
        other => panic!("{other} is no number"),
    }
}

async fn refused(session: &Session, command: &str) -> (ErrorCode, u16, String) {
    match ask(session, command).await {
        Err(AnswerError::Refused { code, position, hint }) => (code, position, hint),
        other => panic!("`{command}` gave {other:?}"),
    }
}

#[test]
fn every_row_of_every_sensor_is_the_one_it_must_be() {
    in_virtual_time(async {
        let (facts, session) = clean("sensors").await;
        let seed = sim::sensor_seed(&facts);
        sleep(Duration::from_secs(20)).await;
        for Sensor { table, columns, row } in SENSORS {
            let got = ask_sql(&session, &format!("SELECT _row_id, {columns} FROM {table}")).await.unwrap();
            assert!(got.clock_set && got.lost == 0);
            assert!(got.answer.rows.len() >= 20, "{table}: {} rows", got.answer.rows.len());
            for (index, found) in (0..).zip(&got.answer.rows) {
                assert_eq!(int(&found[0]), index as i64);
                assert_eq!(found[1..], row(seed, index), "{table} row {index}");
            }
        }
    });
}

#[test]
fn the_first_set_time_dates_the_rows_before_it_and_later_ones_leave_them() {
    in_virtual_time(async {
        let (_, connect) = board("dated", Faults::default(), 2);
        sleep(Duration::from_secs(30)).await; // nobody has told it the time yet
        let session = connect();
        session.wait_up(UP).await.unwrap();
        let first = ask_sql(&session, "SELECT timestamp, _row_id FROM environment LIMIT 25").await.unwrap();
        let now = ask_sql(&session, "SELECT max(timestamp), min(timestamp) FROM environment").await.unwrap();
        let span_us = int(&now.answer.rows[0][0]) - int(&now.answer.rows[0][1]);
        assert!((29_000_000..=31_000_000).contains(&span_us), "{span_us}");
        assert!(int(&now.answer.rows[0][0]) > 1_700_000_000_000_000, "UTC, not time since boot");
        drop(session);
        sleep(Duration::from_secs(1)).await;
        let session = connect(); // sets the time again
        session.wait_up(UP).await.unwrap();
        let again = ask_sql(&session, "SELECT timestamp, _row_id FROM environment LIMIT 25").await.unwrap();
        assert_eq!(first.answer, again.answer);
    });
}

#[test]
fn without_a_limit_every_row_comes_and_with_one_exactly_so_many() {
    in_virtual_time(async {
        let (_, session) = clean("limits").await;
        sleep(Duration::from_secs(9)).await;
        let bound = "_row_id < 800";
        let all = ask_sql(&session, &format!("SELECT _row_id FROM vibration WHERE {bound}")).await.unwrap();
        assert_eq!(all.answer.rows.len(), 800);
        for (limit, offset, expected) in [(0, 0, 0), (1, 0, 1), (100, 750, 50), (800, 1, 799), (5, 800, 0)] {
            let sql = format!("SELECT _row_id FROM vibration WHERE {bound} LIMIT {limit} OFFSET {offset}");
            let some = ask_sql(&session, &sql).await.unwrap();
            assert_eq!(some.answer.rows, all.answer.rows[offset.min(800)..][..expected], "{sql}");
        }
    });
}

#[test]
fn rows_are_inserted_whole_or_refused_and_then_nothing_has_changed() {
    in_virtual_time(async {
        let (_, session) = clean("inserts").await;
        ask(&session, "create table lab.notes (n int, x float32, ok bool, at timestamp, note text)")
            .await
            .unwrap();
        ask(&session, r#"insert lab notes {"n": 9223372036854775807, "x": 20.1, "ok": true, "at": "2026-11-18T05:00:00Z", "note": "it's \"ü\""}"#).await.unwrap();
        ask(&session, r#"insert lab notes {"x": 1}"#).await.unwrap();
        let select = r#"sql lab "SELECT n, x, ok, at, note FROM notes""#;
        let before = ask(&session, select).await.unwrap().answer;
        let text = |text: &str| Cell::Text(text.into());
        let at = Cell::Timestamp(1_794_978_000_000_000);
        assert_eq!(
            before.rows[0],
            [Cell::Int(i64::MAX), Cell::Float32(20.1), Cell::Bool(true), at, text("it's \"ü\"")]
        );
        assert_eq!(before.rows[1], [Cell::Null, Cell::Float32(1.0), Cell::Null, Cell::Null, Cell::Null]);

        let too_long = format!(r#"insert lab notes {{"note": "{}"}}"#, "x".repeat(65));
        for (command, code, words) in [
            (r#"insert lab notes {"n": 9223372036854775808}"#, ErrorCode::Overflow, "n"),
            (r#"insert lab notes {"n": 1.5}"#, ErrorCode::Type, "n"),
            (r#"insert lab notes {"n": "1"}"#, ErrorCode::Type, "n"),
            (r#"insert lab notes {"note": 1}"#, ErrorCode::Type, "note"),
            (&too_long, ErrorCode::TooLong, "64"),
            (r#"insert lab notes {"nots": "x"}"#, ErrorCode::UnknownColumn, "did you mean `note`?"),
            (r#"insert lab nots {"n": 1}"#, ErrorCode::UnknownTable, "did you mean `notes`?"),
            (r#"insert lap notes {"n": 1}"#, ErrorCode::UnknownDatabase, "did you mean `lab`?"),
            (r#"insert lab notes {"timestamp": "2026-11-18T05:00:00Z"}"#, ErrorCode::Value, "board"),
            (r#"insert lab notes {"n": 1"#, ErrorCode::Syntax, "expected"),
            (r#"insert lab notes {"n": 1, "n": 2}"#, ErrorCode::Syntax, "twice"),
            ("create table lab.notes (n int)", ErrorCode::Exists, "already"),
            ("set sample lab notes = 10ms", ErrorCode::Unsupported, "sampler"),
            ("set sample demo power = 10us", ErrorCode::Value, "1 ms"),
            ("run client () get status", ErrorCode::Unsupported, "bridge"),
        ] {
            let (found, _, hint) = refused(&session, command).await;
            assert_eq!(found, code, "{command}: {hint}");
            assert!(hint.contains(words), "{command}: {hint}");
            assert_eq!(ask(&session, select).await.unwrap().answer, before, "after {command}");
        }
    });
}

#[test]
fn a_name_that_the_board_does_not_know_is_faulted_where_it_stands() {
    in_virtual_time(async {
        let (_, session) = clean("places").await;
        ask(&session, "create table lab.notes (n int)").await.unwrap();
        for (command, wrong, code) in [
            ("get tables where format = json and dbms = dmo", "dmo", ErrorCode::UnknownDatabase),
            ("get columns where table = power and dbms = dmo", "dmo", ErrorCode::UnknownDatabase),
            ("get columns where table = 'pwoer' and dbms = demo", "pwoer", ErrorCode::UnknownTable),
            ("get rows count where dbms = dmo", "dmo", ErrorCode::UnknownDatabase),
            ("get rows count where dbms = demo and table = pwoer", "pwoer", ErrorCode::UnknownTable),
            ("insert dmo power {}", "dmo", ErrorCode::UnknownDatabase),
            (r#"insert demo pwoer {"voltage": 1}"#, "pwoer", ErrorCode::UnknownTable),
            ("set sample dmo power = 1s", "dmo", ErrorCode::UnknownDatabase),
            ("set sample demo pwoer = 1s", "pwoer", ErrorCode::UnknownTable),
            ("set sample lab notes = 1s", "notes", ErrorCode::Unsupported),
            ("set sample demo power = 10us", "10us", ErrorCode::Value),
            ("create table demo.power (n int)", "power", ErrorCode::Exists),
            (r#"sql dmo "SELECT * FROM power""#, "dmo", ErrorCode::UnknownDatabase),
            (r#"sql demo "SELECT * FROM pwoer""#, "pwoer", ErrorCode::UnknownTable),
            (r#"sql demo "SELECT * FROM power WHERE x = 1""#, "x =", ErrorCode::UnknownColumn),
            (r#"explain sql dmo "SELECT * FROM power""#, "dmo", ErrorCode::UnknownDatabase),
            (r#"explain sql demo "SELECT * FROM pwoer""#, "pwoer", ErrorCode::UnknownTable),
        ] {
            let (found, position, hint) = refused(&session, command).await;
            assert_eq!((found, Some(position.into())), (code, command.find(wrong)), "{command}: {hint}");
        }
    });
}

#[test]
fn a_clock_that_would_run_back_is_refused_and_one_that_is_near_enough_is_not() {
    in_virtual_time(async {
        let (_, session) = clean("clock").await; // has been told the time
        let now = || async {
            let now = ask_sql(&session, "SELECT now() FROM power LIMIT 1").await.unwrap();
            int(&now.answer.rows[0][0])
        };
        let (code, position, hint) = refused(&session, "set time = 2026-01-01T00:00:00Z").await;
        assert_eq!((code, position), (ErrorCode::Value, 11), "{hint}");
        assert_eq!(hint, "the clock does not run back; restart the board");
        let told = now().await;
        ask(&session, &format!("set time = {}", Utc(told - 500_000))).await.unwrap();
        assert!(now().await >= told);
        ask(&session, &format!("set time = {}", Utc(told + 60_000_000))).await.unwrap();
        assert!(now().await >= told + 60_000_000);
    });
}

#[test]
fn a_created_table_keeps_the_units_of_its_columns() {
    in_virtual_time(async {
        let (_, session) = clean("units").await;
        ask(&session, "create table lab.oven (temp float '°C', state text)").await.unwrap();
        let columns = ask(&session, "get columns where dbms = lab and table = oven").await.unwrap();
        let units: Vec<_> = columns.answer.rows.iter().map(|row| row[2].to_string()).collect();
        let text = |text: &str| Cell::Text(text.into()).to_string();
        assert_eq!(units, ["", "°C", ""].map(text));
    });
}

#[test]
fn the_bounds_of_tables_are_named_and_the_board_goes_on() {
    in_virtual_time(async {
        let (_, session) = clean("tables").await;
        let wide: Vec<String> = (0..16).map(|n| format!("c{n} int")).collect();
        let (code, _, hint) =
            refused(&session, &format!("create table lab.wide ({})", wide.join(", "))).await;
        assert_eq!(code, ErrorCode::Capacity, "{hint}");
        for nth in 0..CREATED_TABLES_MAX {
            ask(&session, &format!("create table lab.t{nth} (n int)")).await.unwrap();
        }
        let (code, _, hint) = refused(&session, "create table lab.more (n int)").await;
        assert_eq!(code, ErrorCode::Capacity);
        assert!(hint.starts_with("CREATED_TABLES_MAX"), "{hint}");
        ask(&session, r#"insert lab t0 {"n": 1}"#).await.unwrap();
        let count = ask(&session, "get rows count where dbms = lab and table = t0").await.unwrap();
        assert_eq!(count.answer.rows, [[Cell::Text("lab".into()), Cell::Text("t0".into()), Cell::Int(1)]]);
    });
}

#[test]
fn what_no_memory_is_there_for_is_refused_and_the_board_goes_on() {
    in_virtual_time(async {
        let (_, session) = clean("bounds").await;
        let wide: Vec<String> = (1..TABLE_COLUMNS_MAX).map(|n| format!("c{n} int")).collect();
        ask(&session, &format!("create table lab.wide ({})", wide.join(", "))).await.unwrap();
        ask(&session, r#"insert lab wide {"c1": 7}"#).await.unwrap();
        let unit = "µ".repeat(UNIT_BYTES_MAX / 2);
        let select = |stars: &str| format!(r#"sql lab "SELECT {stars} FROM wide""#);
        for (fits, too_much, code, words) in [
            (select("*, *"), select("*, *, *"), ErrorCode::Capacity, "COLUMNS_MAX"),
            (
                "create table lab.small (n int) rows = 9".into(),
                format!("create table lab.huge (n int) rows = {}", u32::MAX),
                ErrorCode::Capacity,
                "pages free",
            ),
            (
                format!("create table lab.unit (n int '{unit}')"),
                format!("create table lab.units (n int '{unit}x')"),
                ErrorCode::TooLong,
                "16 bytes",
            ),
        ] {
            ask(&session, &fits).await.unwrap_or_else(|error| panic!("{fits}: {error}"));
            let (found, _, hint) = refused(&session, &too_much).await;
            assert_eq!(found, code, "{too_much}: {hint}");
            assert!(hint.contains(words), "{too_much}: {hint}");
            let rows = ask(&session, &select("c1")).await.unwrap();
            assert_eq!(rows.answer.rows, [[Cell::Int(7)]], "after {too_much}");
        }
        // What is too long for a board does not get on its way; what just fits does.
        let padded = |len: usize| format!("{:len$}", "get tables where dbms = lab");
        let too_long = OwnedRequest::Command(padded(COMMAND_BYTES_MAX + 1));
        let refused = session.ask(too_long, Class::Interactive).await.err();
        assert!(
            matches!(refused, Some(BoardError::TooLong(len)) if len == COMMAND_BYTES_MAX + 1),
            "{refused:?}"
        );
        let tables = ask(&session, &padded(COMMAND_BYTES_MAX)).await.unwrap();
        let names: Vec<_> = tables.answer.rows.iter().map(|row| row[1].clone()).collect();
        assert_eq!(names, ["wide", "small", "unit"].map(|name| Cell::Text(name.into())));
    });
}

#[test]
fn more_queries_than_the_board_has_room_for_are_all_answered() {
    in_virtual_time(async {
        let (_, session) = clean("many").await;
        sleep(Duration::from_secs(9)).await;
        let sql = "SELECT y % 10 AS k, count(*), avg(x) FROM vibration WHERE _row_id < 800 GROUP BY k";
        let expected = ask_sql(&session, sql).await.unwrap();
        let asked: Vec<_> = (0..4 * QUERIES_MAX)
            .map(|_| {
                let session = session.clone();
                tokio::task::spawn_local(async move { ask_sql(&session, sql).await })
            })
            .collect();
        for answer in asked {
            assert_eq!(answer.await.unwrap().unwrap().answer, expected.answer);
        }
        let status =
            session.ask(OwnedRequest::Command("get status".into()), Class::Interactive).await.unwrap();
        assert_eq!(queries_running(status).await, 0, "every query's memory is given back");
    });
}

async fn queries_running(mut answer: picolake::board::Answer) -> u8 {
    let mut running = None;
    while let Some(piece) = answer.next().await.unwrap() {
        if let Piece::Part(bytes) = &piece
            && let Some(Part::Status(status)) = bytes.part()
        {
            running = Some(status.queries);
        }
    }
    running.expect("a status")
}

#[test]
fn queries_that_are_given_up_give_their_memory_back() {
    in_virtual_time(async {
        let (_, session) = clean("given up").await;
        ask(&session, "set sample demo vibration = 1ms").await.unwrap();
        sleep(Duration::from_secs(5)).await;
        for _ in 0..3 * QUERIES_MAX {
            let ask = OwnedRequest::Command(r#"sql demo "SELECT * FROM vibration""#.into());
            let mut answer = session.ask(ask, Class::Interactive).await.unwrap();
            answer.next().await.unwrap(); // and no more of it
        }
        let status =
            session.ask(OwnedRequest::Command("get status".into()), Class::Interactive).await.unwrap();
        assert_eq!(queries_running(status).await, 0);
    });
}

#[test]
fn a_slow_reader_is_told_exactly_how_many_rows_it_lost() {
    in_virtual_time(async {
        let (_, session) = clean("slow").await;
        ask(&session, "set sample demo vibration = 1ms").await.unwrap();
        sleep(Duration::from_secs(30)).await; // the ring is full
        let ask = OwnedRequest::Command(
            r#"sql demo "SELECT _row_id, *, x * y, y * z, x * z FROM vibration""#.into(),
        );
        let mut answer = session.ask(ask, Class::Interactive).await.unwrap();
        let Some(Piece::Part(head)) = answer.next().await.unwrap() else { panic!("a head comes first") };
        let Some(Part::Started(started)) = head.part() else { panic!("a head comes first") };
        let (mut rows, mut last) = (0, -1);
        while let Some(piece) = answer.next().await.unwrap() {
            let Piece::Rows { count, bytes, .. } = piece else { continue };
            decode_rows(&started.columns, count, &bytes, |cells| {
                let Value::Int(row_id) = cells[0] else { panic!("a row_id is a number") };
                assert!(row_id > last, "{row_id} after {last}");
                (last, rows) = (row_id, rows + 1);
            })
            .unwrap();
            sleep(Duration::from_millis(900)).await; // sensors are faster
        }
        let lost = answer.complete().unwrap().rows_lost;
        assert!(lost > 0, "nothing was lost: the test is too kind");
        assert_eq!(rows + lost, started.cursor.end - started.cursor.next, "{rows} came, {lost} were lost");
    });
}

#[test]
fn answers_over_a_damaged_link_are_those_of_a_whole_one() {
    let queries = [
        "SELECT _row_id, x, y, z FROM vibration WHERE _row_id < 1000",
        "SELECT x, y FROM vibration WHERE _row_id < 1000 AND x > 0 LIMIT 300 OFFSET 17",
        "SELECT abs(x) % 60 AS k, count(*), avg(z) FROM vibration WHERE _row_id < 1000 GROUP BY k ORDER BY 2 DESC LIMIT 50",
        "SELECT y, z FROM vibration WHERE _row_id < 1000 ORDER BY y, z LIMIT 100",
        "SELECT DISTINCT abs(x) % 100 FROM vibration WHERE _row_id < 1000",
    ];
    let expected = in_virtual_time(async {
        let (_, session) = clean("damaged").await; // the same sensors
        sleep(Duration::from_secs(11)).await;
        let mut answers = Vec::new();
        for sql in queries {
            answers.push(ask_sql(&session, sql).await.unwrap().answer);
        }
        answers
    });
    let (mut whole, mut failed) = (0, 0);
    for seed in 0..40 {
        in_virtual_time(async {
            let (_, connect) = board("damaged", Faults::of(seed, 50), seed);
            let session = connect();
            sleep(Duration::from_secs(11)).await;
            for (sql, expected) in queries.iter().zip(&expected) {
                match ask_sql(&session, sql).await {
                    Ok(rows) => {
                        assert_eq!(rows.answer, *expected, "seed {seed}: {sql}");
                        assert_eq!(rows.lost, 0);
                        whole += 1;
                    }
                    Err(AnswerError::LinkDamaged) => failed += 1,
                    Err(error) => panic!("seed {seed}: {sql}: {error}"),
                }
            }
        });
    }
    assert!(
        failed * 100 <= whole,
        "faults at this rate are survived nearly always: {failed} failed, {whole} not"
    );
}

#[test]
fn answers_over_links_that_break_are_whole_or_say_that_their_rest_is_gone() {
    let queries = [
        "SELECT _row_id, x, y, z FROM vibration WHERE _row_id < 1000",
        "SELECT x, y FROM vibration WHERE _row_id < 1000 AND x > 0 LIMIT 300 OFFSET 17",
        "SELECT _row_id FROM vibration WHERE timestamp < now() + 1 day AND _row_id < 1000",
        "SELECT abs(x) % 60 AS k, count(*) FROM vibration WHERE _row_id < 1000 GROUP BY k",
    ];
    let (mut whole, mut gone) = (0, 0);
    for seed in 0..30 {
        in_virtual_time(async {
            let (_, session) = clean("breaking").await;
            sleep(Duration::from_secs(11)).await;
            let faults = Faults { cut: 100, ..Faults::default() };
            let (_, connect) = board("breaking", faults, seed); // the same sensors
            let breaking = connect();
            sleep(Duration::from_secs(11)).await;
            for sql in queries {
                let expected = ask_sql(&session, sql).await.unwrap();
                match ask_sql(&breaking, sql).await {
                    Ok(rows) => {
                        assert_eq!(rows.answer, expected.answer, "seed {seed}: {sql}");
                        assert_eq!(rows.lost, 0);
                        whole += 1;
                    }
                    Err(AnswerError::Refused { code: ErrorCode::Cursor, .. }) => gone += 1,
                    Err(error) => panic!("seed {seed}: {sql}: {error}"),
                }
            }
        });
    }
    assert!(whole > gone && gone > 0, "{whole} whole, {gone} gone: the links break too rarely or too often");
}

#[test]
fn a_row_tells_its_board_and_epoch() {
    in_virtual_time(async {
        let (_, session) = clean("identity").await;
        let hello = session.wait_up(UP).await.unwrap();
        let rows = ask_sql(&session, "SELECT _board, _epoch, _row_id FROM power LIMIT 1").await.unwrap();
        let expected =
            [Cell::Text(hello.board_id.clone()), Cell::Int(hello.epoch.cast_signed()), Cell::Int(0)];
        assert_eq!(rows.answer.rows[0], expected);
        let all = ask_sql(&session, "SELECT * FROM power LIMIT 1").await.unwrap();
        assert_eq!(all.answer.columns, ["timestamp", "voltage", "current", "state"]);
    });
}
