//! Sampling: what makes rows, and when. Stores nothing itself.

use crate::{Board, catalog::TableId, clock::Clock, store::Store};
use core::cell::RefCell;
use shared::{
    limits::{SAMPLE_PERIOD_US_MAX, SAMPLE_PERIOD_US_MIN, TABLE_COLUMNS_MAX, TABLES_MAX},
    schema::TableSpec,
    value::Value,
};

/// How long a change of a period may take to be seen.
const LOOK_US: u64 = 1_000_000;

/// Fills the tables of a board as long as it runs. Cancelling it (dropping it) loses nothing.
pub async fn sample(board: &RefCell<Board<'_>>, clock: &impl Clock) -> ! {
    loop {
        let now_us = clock.uptime_us();
        let due_us = board.borrow_mut().sample(now_us);
        let look_us = now_us.saturating_add(LOOK_US);
        clock.sleep_until_us(due_us.map_or(look_us, |due_us| due_us.min(look_us))).await;
    }
}

/// The cells of a row, the time not among them.
pub type Cells<'v> = heapless::Vec<Value<'v>, TABLE_COLUMNS_MAX>;

/// A sensor: a table, and rows for it.
pub trait Sampler: core::fmt::Debug {
    /// What its rows are.
    fn table(&self) -> &'static TableSpec;

    /// How often it makes a row unless somebody says otherwise.
    fn period_us(&self) -> u64;

    /// Makes row `index`, counted from the start of the board: pushes a cell for each column but the time.
    fn sample(&mut self, index: u64, cells: &mut Cells<'_>);
}

/// Why a period was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodError {
    /// The table's rows do not come from a sampler.
    NoSampler,
    /// Less than [`SAMPLE_PERIOD_US_MIN`] or more than [`SAMPLE_PERIOD_US_MAX`].
    OutOfBounds,
}

/// When each sampler makes its next row.
#[derive(Debug, Default)]
pub struct Schedule<'s> {
    entries: heapless::Vec<Entry<'s>, TABLES_MAX>,
    rows_refused: u64,
    rows_left_out: u64,
}

#[derive(Debug)]
struct Entry<'s> {
    table: TableId,
    sampler: &'s mut dyn Sampler,
    period_us: u64,
    due_us: u64,
    index: u64,
}

impl<'s> Schedule<'s> {
    /// Lets a sampler fill its table from `now_us` on. False if the store has no such table, or there is no room.
    pub fn add(&mut self, store: &Store<'_>, sampler: &'s mut dyn Sampler, now_us: u64) -> bool {
        let spec = sampler.table();
        let Some(table) = store.catalog().find(spec.dbms, spec.name) else { return false };
        let period_us = sampler.period_us().clamp(SAMPLE_PERIOD_US_MIN, SAMPLE_PERIOD_US_MAX);
        self.entries.push(Entry { table, sampler, period_us, due_us: now_us, index: 0 }).is_ok()
    }

    /// How often rows come into this table by themselves.
    pub fn period_us(&self, table: TableId) -> Option<u64> {
        self.entries.iter().find(|entry| entry.table == table).map(|entry| entry.period_us)
    }

    /// Every table that fills by itself, and how often.
    pub fn periods(&self) -> impl Iterator<Item = (TableId, u64)> {
        self.entries.iter().map(|entry| (entry.table, entry.period_us))
    }

    /// From now on a row comes into this table so often.
    pub fn set_period_us(&mut self, table: TableId, period_us: u64, now_us: u64) -> Result<(), PeriodError> {
        let entry = self.entries.iter_mut().find(|entry| entry.table == table);
        let entry = entry.ok_or(PeriodError::NoSampler)?;
        if !(SAMPLE_PERIOD_US_MIN..=SAMPLE_PERIOD_US_MAX).contains(&period_us) {
            return Err(PeriodError::OutOfBounds);
        }
        entry.period_us = period_us;
        entry.due_us = entry.due_us.min(now_us.saturating_add(period_us));
        Ok(())
    }

    /// When the next row is due; none without samplers.
    pub fn due_us(&self) -> Option<u64> {
        self.entries.iter().map(|entry| entry.due_us).min()
    }

    /// Inserts one row for each sampler that is due. One that is late by more than a period leaves rows out rather
    /// than make several at once, and counts them.
    pub fn run(&mut self, store: &mut Store<'_>, now_us: u64) {
        for entry in self.entries.iter_mut().filter(|entry| entry.due_us <= now_us) {
            let mut cells = Cells::new();
            entry.sampler.sample(entry.index, &mut cells);
            if store.insert(entry.table, now_us, &cells).is_err() {
                self.rows_refused += 1;
            }
            entry.index += 1;
            entry.due_us = entry.due_us.saturating_add(entry.period_us);
            if let Some(late_us) = now_us.checked_sub(entry.due_us) {
                self.rows_left_out += late_us / entry.period_us + 1; // a period is never 0
                entry.due_us = now_us.saturating_add(entry.period_us);
            }
        }
    }

    /// Rows that a sampler made and its table could not hold.
    pub fn rows_refused(&self) -> u64 {
        self.rows_refused
    }

    /// Rows that no sampler made because it was late.
    pub fn rows_left_out(&self) -> u64 {
        self.rows_left_out
    }
}
