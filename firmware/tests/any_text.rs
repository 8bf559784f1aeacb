//! Any text as a command: the board neither panics nor hangs, tells the place of a fault, and an error changes nothing.

use firmware::{
    Board, Facts,
    board::{QueryMemory, StackUse, query_memory},
    samplers::{self, Samplers},
};
use proptest::{collection::vec, prelude::*};
use shared::{
    device::{Answerer, Now, Step},
    limits::{BODY_BYTES_MAX, COMMAND_BYTES_MAX, EXPRESSION_DEPTH_MAX, PAGE_BYTES},
    message::{ErrorCode, Failure, LinkCounters, Request, ResetReason},
    page::PageBuffer,
};

const PAGES: usize = 16;
/// Steps in which any answer over so few pages ends.
const STEPS_MAX: usize = 10_000;
const NOW_US: u64 = 60_000_000;
const COUNT: &str = "sql demo \"SELECT count(*) FROM power\"";

/// Words of commands and of SQL; strung together at random they come near to meaning something.
#[rustfmt::skip]
const WORDS: [&str; 74] = [
    "get", "status", "tables", "columns", "rows count", "where", "and", "dbms", "=", "demo", "table", "power", "vibration",
    "format", "json", "sql demo", "\"SELECT", "explain", "insert", "{\"voltage\":", "}", "create table", "lab.t", "(n int)",
    "rows = 9", "set sample", "500ms", "set time", "2026-11-18T05:00:00Z", "help", "run client ()", "SELECT", "DISTINCT", "*",
    "FROM power", "FROM vibration", "WHERE", "x", "y", "voltage", "state", "timestamp", "count(*)", "sum(", "avg(x)", ")", "(",
    ",", "+", "-", "/ 0", "%", "<", "BETWEEN 1 AND 2", "IN (1, 2)", "LIKE 'i%'", "IS NULL", "NOT", "OR", "GROUP BY", "state",
    "HAVING", "ORDER BY", "DESC", "LIMIT 3", "OFFSET 1", "increments(minute, 1, timestamp)", "now() - 3 days",
    "period(day, 1, now(), timestamp)", "x::text", "'it''s'", "\"", ";", "9223372036854775807",
];

fn facts() -> Facts {
    Facts {
        kind: "test",
        id: heapless::Vec::from_slice(&[1, 2]).unwrap(),
        epoch: 7,
        boot_count: 1,
        panic_count: 0,
        reset_reason: ResetReason::PowerOn,
        stack: StackUse::default,
    }
}

/// Runs a command to its end; returns the bodies of its answer's frames.
fn run(board: &mut Board<'_>, command: &str) -> Result<Vec<Vec<u8>>, Failure> {
    let (link, mut body, mut frames) = (LinkCounters::default(), [0; BODY_BYTES_MAX], Vec::new());
    let now = Now { uptime_us: NOW_US, link: &link };
    let mut work = board.open(Request::Command(command), None, now)?;
    for _ in 0..STEPS_MAX {
        match board.step(&mut work, &mut body, now) {
            Step::Working => {}
            Step::Part(len) | Step::Rows(len) => frames.push(body[..len].to_vec()),
            Step::Done(_) => {
                board.close(work);
                return Ok(frames);
            }
            Step::Failed(failure) => {
                board.close(work);
                return Err(failure);
            }
        }
    }
    panic!("`{command}` does not end");
}

/// What an error must leave as it is: the tables and their rows, the clock (in the status), the samplers' periods (in
/// the processes).
fn state(board: &mut Board<'_>) -> (u64, Vec<u64>, [Vec<Vec<u8>>; 2]) {
    let told = ["get status", "get processes"].map(|command| run(board, command).unwrap());
    let store = board.store_mut();
    let rows = store.catalog().tables().map(|(id, _)| store.next_row_id(id)).collect();
    (store.catalog().hash(), rows, told)
}

/// Does something with a board that has sampled for a while.
fn on_board(job: impl FnOnce(&mut Board<'_>)) {
    let (mut pages, mut queries, mut sensors): (Vec<PageBuffer>, Box<QueryMemory>, Samplers) =
        (vec![[0; PAGE_BYTES]; PAGES], Box::new(query_memory()), Samplers::new(1));
    let mut board = samplers::board(facts(), &mut pages, &mut queries, &mut sensors, 0).unwrap();
    for second in 0..40 {
        board.sample(second * 1_000_000);
    }
    job(&mut board);
}

fn check(commands: &[String]) {
    on_board(|board| check_on(board, commands));
}

fn check_on(board: &mut Board<'_>, commands: &[String]) {
    for command in commands {
        let before = state(board);
        if let Err(failure) = run(board, command) {
            assert!(usize::from(failure.position) <= command.len(), "{command}: {failure:?}");
            assert!(!failure.hint.is_empty(), "{command}: {failure:?}");
            assert_eq!(state(board), before, "{command}: {failure:?}");
        }
    }
    // It goes on working: every query has given its memory back.
    for _ in 0..5 {
        assert_eq!(run(board, COUNT).map(|frames| frames.len()), Ok(2));
    }
}

#[test]
fn a_command_that_fails_changes_neither_the_clock_nor_a_period() {
    let commands = [
        "set time = 2026-11-18T05:00:00Z",
        "set time = 2026-11-18T04:00:00Z",
        "set sample demo power = 2s",
        "set sample demo power = 1us",
        "set sample demo pwoer = 3s",
    ];
    check(&commands.map(String::from));
}

#[test]
fn a_command_is_as_long_as_its_bound_and_no_longer() {
    let padded = |len: usize| format!("{COUNT:len$}");
    on_board(|board| {
        assert_eq!(run(board, &padded(COMMAND_BYTES_MAX)).map(|frames| frames.len()), Ok(2));
        let failure = run(board, &padded(COMMAND_BYTES_MAX + 1)).unwrap_err();
        assert_eq!((failure.code, usize::from(failure.position)), (ErrorCode::TooLong, COMMAND_BYTES_MAX));
    });
    check(&[padded(COMMAND_BYTES_MAX + 1), padded(3 * COMMAND_BYTES_MAX)]);
}

/// Each level looks at the one within once for a row, and not once for each member of its list.
#[test]
fn lists_within_lists_are_answered_in_a_few_steps() {
    let chain = " IN (1,2,3,4)".repeat(EXPRESSION_DEPTH_MAX - 1);
    let command = format!("sql demo \"SELECT count(*) FROM vibration WHERE x{chain}\"");
    on_board(|board| assert_eq!(run(board, &command).map(|frames| frames.len()), Ok(2)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn words_in_any_order(commands in vec(vec(proptest::sample::select(&WORDS[..]), 1..14), 1..20)) {
        let commands: Vec<String> = commands.iter().map(|words| words.join(" ")).collect();
        check(&commands);
    }

    #[test]
    fn expressions_in_any_order(expressions in vec(vec(proptest::sample::select(&WORDS[31..]), 1..10), 1..20)) {
        let commands: Vec<String> = expressions
            .iter()
            .map(|words| format!("sql demo \"SELECT {} FROM vibration\"", words.join(" ")))
            .collect();
        check(&commands);
    }

    #[test]
    fn any_characters(commands in vec(any::<String>(), 1..20)) {
        check(&commands);
    }
}
