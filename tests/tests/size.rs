//! A whole table of a full board, exported and streamed: every row is there, and the bridge's memory stays small.

use firmware::samplers::vibration;
use picolake::link::sim;
use picolake_tests::{
    serving::{Piped, Serving},
    sim_process::{NAME, SimProcess, config_with, serve_command},
    whole_answer::{QueryLines, export},
};
use serde::Deserialize;
use shared::{time::parse_rfc3339, value};
use std::{
    fs::File,
    io::{BufRead as _, BufReader},
};

/// Rows of the board.
const ROWS: u32 = 1_000_000;
/// Rows of a board in the bridge's own process: making them takes long where they are not optimised.
const ROWS_WITHIN: u32 = if cfg!(debug_assertions) { 200_000 } else { ROWS };
/// Memory that a bridge may take, whatever it sends.
const PEAK_BYTES_MAX: u64 = if cfg!(debug_assertions) { 20_000_000 } else { 40_000_000 };
/// Time between two rows that a board has made before it was asked.
const PERIOD_US: i64 = 10_000;

const SELECT_ALL: &str = "SELECT * FROM vibration";

/// A row as it is written: no column is missing, and none is there besides.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row<'t> {
    timestamp: &'t str,
    x: i64,
    y: i64,
    z: i64,
}

/// A line of a stream.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
enum Line<'t> {
    #[serde(borrow)]
    Data(Data<'t>),
    Complete {
        total_rows: u64,
    },
}

#[derive(Debug, Deserialize)]
struct Data<'t> {
    #[serde(borrow)]
    rows: Vec<Row<'t>>,
    row_count: usize,
}

/// Checks rows one after the other, and keeps none.
struct Checker {
    seed: u32,
    rows_before: u64,
    count: u64,
    last_us: Option<i64>,
}

impl Checker {
    fn new(board: &str, rows_before: u32) -> Self {
        let seed = sim::sensor_seed(&sim::facts(board));
        Self { seed, rows_before: rows_before.into(), count: 0, last_us: None }
    }

    /// The row is the next one that the sensor made, and later than the one before.
    fn take(&mut self, row: &Row<'_>) {
        let index = self.count;
        let cells = [row.x, row.y, row.z].map(value::Value::Int);
        assert_eq!(cells, vibration::row(self.seed, index), "row {index}: {row:?}");
        let at_us = parse_rfc3339(row.timestamp).expect("a moment");
        if let Some(last_us) = self.last_us {
            assert!(at_us > last_us, "row {index}: {row:?}");
            assert!(index >= self.rows_before || at_us - last_us == PERIOD_US, "row {index}: {row:?}");
        }
        self.last_us = Some(at_us);
        self.count += 1;
    }

    /// All that were there when the board was asked.
    fn end(self, counted: u64) {
        assert!(self.count >= self.rows_before, "{} rows", self.count);
        assert_eq!(counted, self.count);
    }
}

/// Exports the table and checks the file.
fn exported(link: &str, mut checker: Checker) {
    let folder = tempfile::tempdir().unwrap();
    let config = config_with(folder.path(), link);
    let mut server = Piped::start_command(serve_command(folder.path(), &config, &["--stdio"]));
    let job = export(&mut server, "demo", SELECT_ALL, "all.jsonl");
    assert_eq!(job["rows_lost"], 0, "{job}");
    assert_small(server.peak_bytes(), "export");
    let mut file = BufReader::new(File::open(folder.path().join("exports/all.jsonl")).unwrap());
    let mut line = String::new();
    while file.read_line(&mut line).unwrap() > 0 {
        checker.take(&read(&line));
        line.clear();
    }
    checker.end(job["rows"].as_u64().unwrap());
}

/// Streams the table through `POST /query` and checks it line by line.
fn streamed(link: &str, mut checker: Checker) {
    let folder = tempfile::tempdir().unwrap();
    let config = config_with(folder.path(), link);
    let server = Serving::start_command(serve_command(folder.path(), &config, &["--http", "127.0.0.1:0"]));
    let mut lines = QueryLines::ask(&server, "demo", SELECT_ALL);
    let rows_total = loop {
        match read(lines.line().expect("a stream says how it ended")) {
            Line::Complete { total_rows } => break total_rows,
            Line::Data(Data { rows, row_count }) => {
                assert_eq!(row_count, rows.len());
                rows.iter().for_each(|row| checker.take(row));
            }
        }
    };
    assert_eq!(lines.line(), None, "nothing follows the end");
    checker.end(rows_total);
    assert_small(server.peak_bytes(), "stream");
}

fn read<'t, T: Deserialize<'t>>(text: &'t str) -> T {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn assert_small(peak_bytes: Option<u64>, what: &str) {
    let Some(peak_bytes) = peak_bytes else { return }; // only Linux tells
    assert!(peak_bytes < PEAK_BYTES_MAX, "{what}: {peak_bytes} bytes at most");
}

#[test]
fn a_million_rows_are_exported_in_little_memory() {
    let board = SimProcess::with_rows(ROWS);
    exported(&board.link, Checker::new(NAME, ROWS));
}

#[test]
fn a_million_rows_are_streamed_in_little_memory() {
    let board = SimProcess::with_rows(ROWS);
    streamed(&board.link, Checker::new(NAME, ROWS));
}

#[test]
fn a_bridge_and_a_full_board_in_one_process_take_little_memory() {
    let link = format!("sim:full?rows={ROWS_WITHIN}");
    exported(&link, Checker::new("full", ROWS_WITHIN));
    streamed(&link, Checker::new("full", ROWS_WITHIN));
}
