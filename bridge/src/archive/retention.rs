//! What the archive gives up, the oldest first: rows older than a bound, and rows beyond a size. Never the page that
//! a board may still be filling.

use super::{ArchiveError, series, store::Store};
use rusqlite::params;
use shared::clock::UtcClock;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

/// Runs that one transaction gives up: some four megabytes.
const RUNS_MAX: usize = 256;
/// Retention begins when the file has less room than one part in so many.
const ROOM_PART: u64 = 16;
/// SQLite's pages that are given back to the system at once.
const PAGES_GIVEN_BACK_MAX: u64 = 2048;

/// The least bound that makes sense: below it the room for new rows is less than a few commits.
pub const MAX_BYTES_MIN: u64 = 8 << 20;

/// What may stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Rows that are older go.
    pub keep: Option<Duration>,
    /// Bytes of the file.
    pub max_bytes: Option<u64>,
}

/// The oldest run of a series.
#[derive(Debug)]
struct Oldest {
    first_row: i64,
    next_row: i64,
    rows: i64,
    date_us: i64,
    blob: i64,
}

#[derive(Clone, Copy, Debug)]
struct Size {
    pages: u64,
    free: u64,
    page_bytes: u64,
}

impl Size {
    fn live_bytes(self) -> u64 {
        (self.pages - self.free.min(self.pages)) * self.page_bytes
    }
}

impl Store<'_> {
    /// Gives up what is too old or too much; says whether there is more to give up.
    pub(super) fn retire(&self, retention: Retention, now_us: i64) -> Result<bool, ArchiveError> {
        let before_us = retention.keep.map(|keep| {
            let keep_us = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
            now_us.saturating_sub(keep_us)
        });
        let live_max = retention.max_bytes.map(|bytes| bytes - bytes / ROOM_PART);
        let is_over = || match live_max {
            Some(live_max) => Ok(self.size()?.live_bytes() > live_max),
            None => Ok(false),
        };
        if before_us.is_none() && !is_over()? {
            return Ok(false);
        }
        let clocks: BTreeMap<i64, UtcClock> = series::read_all(self.path, self.connection, None)?
            .into_iter()
            .map(|series| (series.id, series.clock))
            .collect();
        let mut heap = BinaryHeap::new();
        for (id, clock) in &clocks {
            if let Some(oldest) = self.oldest(*id, clock)? {
                heap.push((Reverse(oldest.date_us), *id));
            }
        }
        for _ in 0..RUNS_MAX {
            let Some((Reverse(date_us), id)) = heap.pop() else { return Ok(false) };
            let is_old = before_us.is_some_and(|before_us| date_us < before_us);
            if !is_old && !is_over()? {
                return Ok(false);
            }
            let Some(clock) = clocks.get(&id) else { continue };
            let Some(oldest) = self.oldest(id, clock)? else { continue };
            self.give_up(id, &oldest)?;
            if let Some(next) = self.oldest(id, clock)? {
                heap.push((Reverse(next.date_us), id));
            }
        }
        Ok(true)
    }

    /// Gives free pages of the file back to the system; says whether there are more.
    pub(super) fn give_back(&self) -> Result<bool, ArchiveError> {
        let size = self.size()?;
        // Some are kept: what is deleted and written in turns reuses them.
        if size.free <= PAGES_GIVEN_BACK_MAX {
            return Ok(false);
        }
        let sql = format!("PRAGMA incremental_vacuum({PAGES_GIVEN_BACK_MAX})");
        self.connection.execute_batch(&sql).map_err(|error| self.of(error))?;
        Ok(true)
    }

    fn size(&self) -> Result<Size, ArchiveError> {
        let pragma = |name| {
            let read = self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            read.map(i64::cast_unsigned).map_err(|error| self.of(error))
        };
        Ok(Size {
            pages: pragma("page_count")?,
            free: pragma("freelist_count")?,
            page_bytes: pragma("page_size")?,
        })
    }

    /// The oldest run of a series, unless it may still grow.
    fn oldest(&self, series: i64, clock: &UtcClock) -> Result<Option<Oldest>, ArchiveError> {
        let sql = "SELECT runs.first_row, runs.next_row, row_count, time_max_us, stored_us, blob FROM runs JOIN series ON id = series WHERE series = ? AND (next_row < watermark OR ended_us IS NOT NULL) ORDER BY first_row LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.of(error))?;
        let mut rows = statement.query([series]).map_err(|error| self.of(error))?;
        let Some(row) = rows.next().map_err(|error| self.of(error))? else { return Ok(None) };
        let read = || {
            let time_max_us = row.get::<_, i64>(3)?.cast_unsigned();
            // Where nobody ever told the board the time, a row is as old as its copy.
            let date_us = match clock.utc_us(time_max_us) {
                Some(date_us) => date_us,
                None => row.get(4)?,
            };
            let (first_row, next_row, rows) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Oldest { first_row, next_row, rows, date_us, blob: row.get(5)? })
        };
        read().map(Some).map_err(|error| self.of(error))
    }

    fn give_up(&self, series: i64, run: &Oldest) -> Result<(), ArchiveError> {
        self.execute("DELETE FROM blobs WHERE id = ?", [run.blob])?;
        self.execute("DELETE FROM runs WHERE series = ? AND first_row = ?", params![series, run.first_row])?;
        self.execute(
            "UPDATE series SET retired_to = ?, rows_retired = rows_retired + ? WHERE id = ?",
            params![run.next_row, run.rows, series],
        )?;
        // Their rows stay counted in the series.
        self.execute("DELETE FROM gaps WHERE series = ? AND to_row <= ?", params![series, run.next_row])?;
        Ok(())
    }
}
