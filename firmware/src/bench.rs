//! What the board's work costs, measured where it runs: inserts, and a query of each kind. Counts nothing itself: the
//! caller brings a counter, and a place for the figures.

use crate::{
    board::Board,
    catalog::TableId,
    samplers::{environment, power, vibration},
};
use core::fmt;
use shared::{
    device::{Answerer, Now, Step},
    limits::BODY_BYTES_MAX,
    link_test::mix,
    message::{LinkCounters, Request},
    schema::TableSpec,
    value::Value,
};

/// The seed of all rows that are measured.
pub const SEED: u32 = 0x00C0_FFEE;
/// Rows that are inserted into each table: more than it holds, so that the oldest go.
const ROWS: u64 = 10_000;
/// Ticks of one insert that are told apart; more are counted as so many.
const TICKS_MAX: usize = 8_192;

/// One of the tables that are measured.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// What it is.
    pub table: &'static TableSpec,
    /// Makes a row, the time not among its cells.
    pub row: fn(u32, u64) -> [Value<'static>; 3],
    /// Time between two rows.
    pub period_us: u64,
    /// How far a row comes early or late at most; a third of it is the deviation.
    pub jitter_us_max: i64,
}

/// A row a second with σ = 400 µs, as a timer among other tasks gives it; a hundred with σ = 40 µs, as a driver does.
pub const SUBJECTS: [Subject; 3] = [
    Subject { table: &environment::TABLE, row: environment::row, period_us: 1_000_000, jitter_us_max: 1_200 },
    Subject { table: &power::TABLE, row: power::row, period_us: 1_000_000, jitter_us_max: 1_200 },
    Subject { table: &vibration::TABLE, row: vibration::row, period_us: 10_000, jitter_us_max: 120 },
];

impl Subject {
    /// The time of a row since boot.
    pub fn time_us(&self, index: u64) -> u64 {
        let random = mix(!index);
        let dice = |shift: u32| (random >> shift & 0xFFFF).cast_signed();
        let off = (dice(0) + dice(16) + dice(32) - 3 * 0x7FFF) * self.jitter_us_max / (3 * 0x8000);
        ((index + 1) * self.period_us).saturating_add_signed(off)
    }
}

/// What is asked, and of which table.
const QUERIES: [(&str, &TableSpec, &str); 8] = [
    ("count of a column", &environment::TABLE, "SELECT count(temperature) FROM environment"),
    ("full scan, streamed", &environment::TABLE, "SELECT * FROM environment"),
    (
        "filtered scan",
        &environment::TABLE,
        "SELECT timestamp, temperature FROM environment WHERE humidity > 50",
    ),
    ("aggregate over integers", &vibration::TABLE, "SELECT sum(x) FROM vibration"),
    ("filtered aggregate over integers", &vibration::TABLE, "SELECT sum(x) FROM vibration WHERE y > 0"),
    (
        "filtered aggregate over floats",
        &environment::TABLE,
        "SELECT avg(temperature) FROM environment WHERE humidity > 50",
    ),
    ("GROUP BY", &power::TABLE, "SELECT state, count(*), avg(current) FROM power GROUP BY state"),
    (
        "ORDER BY LIMIT 10",
        &environment::TABLE,
        "SELECT timestamp, temperature FROM environment ORDER BY temperature DESC LIMIT 10",
    ),
];

/// Counts ticks from some moment on; wraps.
pub type Ticks = fn() -> u32;

/// Inserts and asks; says a line `name: ticks / rows` for each figure. `histogram` is room to work in.
pub fn run(
    board: &mut Board<'_>,
    ticks: Ticks,
    histogram: &mut Histogram,
    say: &mut dyn FnMut(fmt::Arguments<'_>),
) {
    for subject in &SUBJECTS {
        insert(board, subject, ticks, histogram, say);
    }
    for (name, spec, sql) in QUERIES {
        let Some(table) = board.store.catalog().find(spec.dbms, spec.name) else { continue };
        let rows = board.store.next_row_id(table) - board.store.first_row_id(table);
        let start = ticks();
        let is_answered = ask(board, sql);
        let taken = ticks().wrapping_sub(start);
        if is_answered {
            say(format_args!("{name}: {taken} / {rows}"));
        }
    }
}

/// How many inserts took how many ticks.
pub struct Histogram([u16; TICKS_MAX]);

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram").finish_non_exhaustive()
    }
}

impl Histogram {
    /// Nothing counted.
    #[expect(clippy::new_without_default, reason = "a default would be made on the stack")]
    pub const fn new() -> Self {
        Self([0; TICKS_MAX])
    }

    fn median(&self) -> usize {
        let half = self.0.iter().map(|count| u32::from(*count)).sum::<u32>() / 2;
        let mut below = 0;
        let is_half = |count: &u16| {
            below += u32::from(*count);
            below > half
        };
        self.0.iter().position(is_half).unwrap_or(0)
    }

    fn worst(&self) -> usize {
        self.0.iter().rposition(|count| *count > 0).unwrap_or(0)
    }
}

fn insert(
    board: &mut Board<'_>,
    subject: &Subject,
    ticks: Ticks,
    histogram: &mut Histogram,
    say: &mut dyn FnMut(fmt::Arguments<'_>),
) {
    let spec = subject.table;
    let Some(table) = board.store.catalog().find(spec.dbms, spec.name) else { return };
    histogram.0.fill(0);
    for index in 0..ROWS {
        let cells = (subject.row)(SEED, index);
        let taken = insert_one(board, table, subject.time_us(index), &cells, ticks);
        histogram.0[taken.min(TICKS_MAX - 1)] += 1;
    }
    say(format_args!("insert into {}, median: {} / 1", spec.name, histogram.median()));
    say(format_args!("insert into {}, worst: {} / 1", spec.name, histogram.worst()));
}

fn insert_one(
    board: &mut Board<'_>,
    table: TableId,
    time_us: u64,
    cells: &[Value<'_>],
    ticks: Ticks,
) -> usize {
    let start = ticks();
    let inserted = board.store.insert(table, time_us, cells);
    let taken = ticks().wrapping_sub(start);
    if inserted.is_ok() { taken as usize } else { TICKS_MAX }
}

/// Asks as a link would, and drops the answer; false if there is none.
fn ask(board: &mut Board<'_>, sql: &str) -> bool {
    let mut text = heapless::String::<128>::new();
    if fmt::Write::write_fmt(&mut text, format_args!("sql demo \"{sql}\"")).is_err() {
        return false;
    }
    let link = LinkCounters::default();
    let now = Now { uptime_us: 0, link: &link };
    let Ok(mut work) = board.open(Request::Command(&text), None, now) else { return false };
    let mut body = [0; BODY_BYTES_MAX];
    let is_answered = loop {
        match board.step(&mut work, &mut body, now) {
            Step::Working | Step::Part(_) | Step::Rows(_) => {}
            Step::Done(_) => break true,
            Step::Failed(_) => break false,
        }
    };
    board.close(work);
    is_answered
}
