//! A console on a small answerer: what is typed, and what is seen.

extern crate std;
use super::*;
use embassy_futures::block_on;
use shared::{
    device::Identity,
    message::{Cursor, Done, RowsWriter},
};
use std::{format, string::String, vec, vec::Vec};

/// Answers `get databases` with `rows` rows of two columns in batches of two, `help` with texts, and refuses the rest.
#[derive(Default)]
struct Small {
    rows: i64,
    lost: u64,
    works_open: i32,
}

enum Work {
    Rows { started: bool, next: i64 },
    Texts(u32),
}

const UNSET: &str = "note: the clock is not set; timestamps count from the board's start\r\n";

const COLUMNS: [Column<'static>; 2] = [
    Column { name: "at", kind: ColumnType::Timestamp, unit: "" },
    Column { name: "n", kind: ColumnType::Int, unit: "" },
];

impl Answerer for Small {
    type Work = Work;

    fn identity(&self) -> Identity<'_> {
        Identity { board_id: &[], epoch: 1, boot_count: 1, catalog_hash: 0, build: "", features: 0 }
    }

    fn offer_epoch(&mut self, _: u64) {}

    fn open(&mut self, request: Request<'_>, _: Option<Cursor>, _: Now<'_>) -> Result<Work, Failure> {
        let Request::Command(text) = request else { panic!("a console asks commands") };
        let work = match command::parse(text)? {
            command::Command::Sql(_) => Work::Rows { started: false, next: 0 },
            command::Command::Help(_) => Work::Texts(0),
            _ => return Err(Failure::new(ErrorCode::Unsupported, 0, format_args!("not here"))),
        };
        self.works_open += 1;
        Ok(work)
    }

    fn rewind(&mut self, _: &mut Work, _: Option<Cursor>) -> Result<(), Failure> {
        panic!("a console loses nothing")
    }

    fn step(&mut self, work: &mut Work, body: &mut [u8], _: Now<'_>) -> Step {
        match work {
            Work::Texts(2) => Step::Failed(Failure::new(ErrorCode::Damaged, 0, format_args!("as asked"))),
            Work::Texts(sent) => {
                *sent += 1;
                Step::Part(message::write(&Part::Text("help"), body).unwrap())
            }
            Work::Rows { started: started @ false, .. } => {
                *started = true;
                let columns = COLUMNS.into_iter().collect();
                let cursor = Cursor { next: 0, end: 0, rows: 0 };
                let head = Started { columns, cursor, lost: self.lost, clock_set: false };
                Step::Part(message::write(&Part::Started(head), body).unwrap())
            }
            Work::Rows { next, .. } if *next == self.rows => Step::Done(Done { rows: 0, lost: 0 }),
            Work::Rows { next, .. } => {
                let mut rows = RowsWriter::new(body, schema::kinds(&COLUMNS));
                while *next < self.rows && rows.count() < 2 {
                    let cells = [Value::Timestamp(*next), Value::Int(*next * 1_000)];
                    rows.push(&cells).unwrap();
                    *next += 1;
                }
                Step::Rows(rows.finish(0, 0).unwrap())
            }
        }
    }

    fn close(&mut self, _: Work) {
        self.works_open -= 1;
    }
}

struct NoTime;

impl Clock for NoTime {
    fn uptime_us(&self) -> u64 {
        0
    }

    async fn sleep_until_us(&self, _: u64) {}
}

/// What is seen when these bytes are typed, and the lines that were the board's own.
fn typed(board: Small, bytes: &[u8]) -> (String, Vec<String>) {
    let board = RefCell::new(board);
    let mut out = vec![0_u8; 1 << 20];
    let room = out.len();
    let mut own = Vec::new();
    let mut tx = &mut out[..];
    let mut buffers = ConsoleBuffers::new();
    let closed = block_on(console(&board, &NoTime, bytes, &mut tx, &mut buffers, |line| {
        let is_own = line == "reset";
        if is_own {
            own.push(line.into());
        }
        is_own
    }));
    assert_eq!(closed, Closed::Link);
    assert_eq!(board.borrow().works_open, 0, "a work was not given back");
    let seen = room - tx.len();
    out.truncate(seen);
    (String::from_utf8(out).unwrap(), own)
}

#[test]
fn rows_are_a_table_and_notes_follow() {
    let (seen, _) = typed(Small { rows: 3, lost: 7, ..Small::default() }, b"sql d select x\r");
    assert_eq!(
        seen.replace("\r\n", "\n"),
        "┌─────────────────────────────┬──────┐\n\
         │ at                          │    n │\n\
         ├─────────────────────────────┼──────┤\n\
         │ 1970-01-01T00:00:00Z        │    0 │\n\
         │ 1970-01-01T00:00:00.000001Z │ 1000 │\n\
         │ 1970-01-01T00:00:00.000002Z │ 2000 │\n\
         └─────────────────────────────┴──────┘\n\
         note: 7 rows were overwritten before they could be sent\n\
         note: the clock is not set; timestamps count from the board's start\n"
            .replace("│    n │", "│ n    │")
    );
    assert!(!seen.replace("\r\n", "").contains('\n'), "every line ends with CR and LF");
}

#[test]
fn rows_are_json_however_many_they_are() {
    let (seen, _) = typed(Small { rows: 2_000, ..Small::default() }, b"sql d format = mcp \"x\"\r\n");
    let (answer, note) = seen.split_once("\r\n").unwrap();
    let rows: Vec<_> = answer.trim_matches(['[', ']']).split("},{").collect();
    assert_eq!((rows.len(), answer.ends_with("\"n\":1999000}]")), (2_000, true));
    assert_eq!(note, UNSET);
    let (seen, _) = typed(Small::default(), b"sql d format = json \"x\"\r\n");
    let statistics = "{\"Query\":[],\"Statistics\":[{\"Count\":0,\"Time\":\"00:00:00\",\"Nodes\":1}]}\r\n";
    assert_eq!(seen, format!("{statistics}{UNSET}"));
}

#[test]
fn lost_rows_and_an_unset_clock_are_told_in_every_format() {
    for format in ["json", "mcp", "table"] {
        let line = format!("sql d format = {format} \"x\"\r");
        let (seen, _) = typed(Small { rows: 1, lost: 7, ..Small::default() }, line.as_bytes());
        let notes = format!("\r\nnote: 7 rows were overwritten before they could be sent\r\n{UNSET}");
        assert!(seen.ends_with(&notes), "{format}: {seen}");
    }
}

#[test]
fn a_fault_has_a_caret_and_the_next_line_is_answered() {
    let (seen, _) = typed(Small::default(), b"get statsu\r\rhelp\rget status\r");
    assert_eq!(
        seen.replace("\r\n", "\n"),
        "get statsu\n    ^ syntax: did you mean `status`?\nhelp\nhelp\ndamaged: as asked\nunsupported: not here\n"
    );
}

#[test]
fn a_board_has_words_of_its_own() {
    let (seen, own) = typed(Small::default(), b" reset \r");
    assert_eq!((seen.as_str(), own), ("", vec![String::from("reset")]));
}

#[test]
fn what_is_no_text_or_too_long_is_refused() {
    let (seen, _) = typed(Small::default(), &[0xFF, b'\r']);
    assert_eq!(seen, "value: a command is UTF-8 text\r\n");
    let (seen, _) = typed(Small::default(), format!("{}\r", "x".repeat(COMMAND_BYTES_MAX + 1)).as_bytes());
    assert!(seen.starts_with("too_long: "), "{seen}");
}

#[test]
fn a_console_that_is_dropped_gives_its_work_back() {
    let board = RefCell::new(Small { rows: 100, ..Small::default() });
    let mut buffers = ConsoleBuffers::new();
    let mut out = vec![0_u8; 1 << 16];
    let mut tx = &mut out[..];
    {
        let typed: &[u8] = b"sql d select x\r";
        let console = console(&board, &NoTime, typed, &mut tx, &mut buffers, |_| false);
        let mut console = core::pin::pin!(console);
        for _ in 0..10 {
            assert!(embassy_futures::poll_once(console.as_mut()).is_pending());
        }
        assert_eq!(board.borrow().works_open, 1);
    }
    assert_eq!(board.borrow().works_open, 0);
}
