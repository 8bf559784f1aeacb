//! What a transaction of the archive does: store a batch, end a board's earlier starts, merge runs. Opens no file,
//! waits for nobody.
//!
//! ```text
//!   rows       0 ────────── 5600 ─────────── 11200 ─── 11550 ─── 11900 ── 12040
//!   runs       │ 16 pages   │ 16 pages       │ page    │ page    │ open  │
//!                                            └─ merged when 16 KiB ─┘     └ watermark
//!                                               of them are there
//! ```
//!
//! A page that ends before the watermark never changes again. The one that ends at it may be the beginning of a page
//! that the board is still filling: the longer one, with the same first row, takes its place.

use super::{
    ArchiveError,
    intake::{Batch, Piece},
    series::SeriesKey,
};
use rusqlite::{Connection, OptionalExtension as _, params};
use shared::page::Page;
use std::path::Path;

/// Bytes of pages in one run.
pub(super) const RUN_BYTES_MAX: usize = 16 << 10;
/// A run with more has no room for another page.
const RUN_BYTES_FULL: usize = RUN_BYTES_MAX - shared::limits::PAGE_BYTES;
/// Runs of a series that are looked at when it is merged: pages may be short.
const MERGED_RUNS_MAX: u32 = 64;
/// A board that has nothing new is noted so often, so that a quiet archive writes little.
pub const SYNCED_WRITE_US: i64 = 60_000_000;

const CRC: crc::Crc<u32, crc::Table<16>> = crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISO_HDLC);

/// The check sum of a run's bytes.
pub(super) fn crc(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}

/// The file and its path, inside a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store<'c> {
    pub(super) path: &'c Path,
    pub(super) connection: &'c Connection,
}

/// What storing a batch came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) series: i64,
    /// The next row that is not stored.
    pub(super) watermark: u64,
    /// Rows that were not stored before.
    pub(super) rows: u64,
    /// Rows that were not known to be lost before.
    pub(super) lost: u64,
    /// Whether anything was written.
    pub(super) is_changed: bool,
    /// Whether it is the first of its series.
    pub(super) is_new: bool,
}

/// A run that is being put together from pages.
#[derive(Debug, Default)]
struct Run {
    first_row: u64,
    next_row: u64,
    rows: u64,
    time_min_us: u64,
    time_max_us: u64,
    bytes: Vec<u8>,
}

impl Run {
    fn push(&mut self, page: &Page<'_>) {
        if self.bytes.is_empty() {
            (self.first_row, self.time_min_us) = (page.first_row_id(), page.time_min_us());
        }
        self.next_row = page.next_row_id();
        self.time_max_us = page.time_max_us();
        self.rows += u64::from(page.row_count());
        self.bytes.extend_from_slice(page.bytes());
    }
}

/// What is known of a run without its bytes.
#[derive(Debug)]
struct RunHead {
    first_row: u64,
    next_row: u64,
    byte_count: usize,
    crc: u32,
    blob: i64,
}

struct Begun {
    id: i64,
    watermark: u64,
    clock: Vec<u8>,
    synced_us: i64,
    is_new: bool,
}

impl Store<'_> {
    pub(super) fn of(&self, error: rusqlite::Error) -> ArchiveError {
        ArchiveError::of(self.path, &error)
    }

    fn damaged(&self, why: impl Into<String>) -> ArchiveError {
        ArchiveError::Damaged { path: self.path.into(), why: why.into() }
    }

    pub(super) fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, ArchiveError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.of(error))?;
        statement.execute(params).map_err(|error| self.of(error))
    }

    /// The next row of a series that is not stored.
    pub(super) fn watermark(&self, key: &SeriesKey) -> Result<u64, ArchiveError> {
        let sql = "SELECT watermark FROM series WHERE board = ? AND epoch = ? AND dbms = ? AND name = ?";
        let params = params![key.board_id, key.epoch.cast_signed(), key.dbms, key.table];
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.of(error))?;
        let watermark = statement.query_row(params, |row| row.get::<_, i64>(0)).optional();
        Ok(watermark.map_err(|error| self.of(error))?.unwrap_or(0).cast_unsigned())
    }

    /// Stores what is new of a batch: all of it, or on an error nothing.
    pub(super) fn put(&self, batch: &Batch, now_us: i64) -> Result<Stored, ArchiveError> {
        let begun = self.begin(batch, now_us)?;
        let mut stored = Stored {
            series: begun.id,
            watermark: begun.watermark,
            is_new: begun.is_new,
            ..Stored::default()
        };
        if batch.from > begun.watermark {
            return Err(ArchiveError::Protocol(format!(
                "a batch begins at row {}, and rows from {} on are missing",
                batch.from, begun.watermark
            )));
        }
        let (mut next, mut run) = (batch.from, Run::default());
        for piece in &batch.pieces {
            match piece {
                Piece::Lost(rows) => {
                    let to = next + rows;
                    stored.lost += self.lose(begun.id, next.max(stored.watermark), to, now_us)?;
                    stored.watermark = stored.watermark.max(to);
                    next = to;
                }
                Piece::Page(bytes) => {
                    let page =
                        Page::read(bytes).map_err(|_| ArchiveError::Protocol("a page is not one".into()))?;
                    next = page.next_row_id();
                    if next <= stored.watermark {
                        continue; // it came before
                    }
                    if page.first_row_id() < stored.watermark {
                        self.remove_beginning(begun.id, page.first_row_id(), stored.watermark)?;
                    }
                    stored.rows += next - stored.watermark.max(page.first_row_id());
                    stored.watermark = next;
                    if !run.bytes.is_empty() && run.bytes.len() + page.bytes().len() > RUN_BYTES_MAX {
                        self.insert(begun.id, &std::mem::take(&mut run), now_us)?;
                    }
                    run.push(&page);
                }
            }
        }
        self.insert_with_its_end_apart(begun.id, run, now_us)?;
        stored.is_changed = begun.is_new
            || stored.watermark != begun.watermark
            || begun.clock != batch.clock
            || now_us - begun.synced_us >= SYNCED_WRITE_US;
        if stored.is_changed {
            let sql = "UPDATE series SET watermark = ?, clock = ?, synced_us = ?, rows_lost = rows_lost + ? WHERE id = ?";
            let watermark = stored.watermark.cast_signed();
            let lost = stored.lost.cast_signed();
            self.execute(sql, params![watermark, batch.clock, now_us, lost, begun.id])?;
        }
        Ok(stored)
    }

    /// The series of a batch. A new one ends those of the board's earlier starts.
    fn begin(&self, batch: &Batch, now_us: i64) -> Result<Begun, ArchiveError> {
        let Batch { key, columns, clock, .. } = batch;
        let sql = "SELECT id, watermark, clock, synced_us, columns FROM series WHERE board = ? AND epoch = ? AND dbms = ? AND name = ?";
        let params = params![key.board_id, key.epoch.cast_signed(), key.dbms, key.table];
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.of(error))?;
        let known = statement.query_row(params, |row| {
            let known = Begun {
                id: row.get(0)?,
                watermark: row.get::<_, i64>(1)?.cast_unsigned(),
                clock: row.get(2)?,
                synced_us: row.get(3)?,
                is_new: false,
            };
            Ok((known, row.get::<_, Vec<u8>>(4)?))
        });
        if let Some((known, known_columns)) = known.optional().map_err(|error| self.of(error))? {
            if known_columns != *columns {
                let what = "the columns of a table have changed, and its board has not restarted";
                return Err(ArchiveError::Protocol(what.into()));
            }
            return Ok(known);
        }
        self.end_others(key, now_us)?;
        let sql = "INSERT INTO series (board, epoch, dbms, name, columns, clock, watermark, merged_to, retired_to, rows_retired, rows_lost, begun_us, synced_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, 0, 0, ?7, ?7)";
        self.execute(
            sql,
            params![key.board_id, key.epoch.cast_signed(), key.dbms, key.table, columns, clock, now_us],
        )?;
        let id = self.connection.last_insert_rowid();
        Ok(Begun { id, watermark: 0, clock: clock.clone(), synced_us: now_us, is_new: true })
    }

    /// The board has started anew: what it had and nobody copied is gone, and nobody knows how much that was.
    fn end_others(&self, key: &SeriesKey, now_us: i64) -> Result<(), ArchiveError> {
        let earlier = "board = ?1 AND epoch <> ?2 AND ended_us IS NULL";
        let params = params![key.board_id, key.epoch.cast_signed(), now_us];
        let gaps = format!(
            "INSERT OR REPLACE INTO gaps (series, from_row, to_row, at_us) SELECT id, watermark, NULL, ?3 FROM series WHERE {earlier}"
        );
        self.execute(&gaps, params)?;
        self.execute(&format!("UPDATE series SET ended_us = ?3 WHERE {earlier}"), params)?;
        Ok(())
    }

    /// The series of a board that have ended.
    pub(super) fn ended(&self, board_id: &str) -> Result<Vec<i64>, ArchiveError> {
        let sql = "SELECT id FROM series WHERE board = ? AND ended_us IS NOT NULL";
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.of(error))?;
        let ids = statement.query_map([board_id], |row| row.get(0)).map_err(|error| self.of(error))?;
        ids.collect::<Result<_, _>>().map_err(|error| self.of(error))
    }

    /// Notes that rows were overwritten; returns how many. A gap that goes on stays one.
    fn lose(&self, series: i64, from: u64, to: u64, now_us: i64) -> Result<u64, ArchiveError> {
        if to <= from {
            return Ok(0);
        }
        let (from_row, to_row) = (from.cast_signed(), to.cast_signed());
        let grow = "UPDATE gaps SET to_row = ?3, at_us = ?4 WHERE series = ?1 AND to_row = ?2";
        if self.execute(grow, params![series, from_row, to_row, now_us])? == 0 {
            let sql = "INSERT INTO gaps (series, from_row, to_row, at_us) VALUES (?, ?, ?, ?)";
            self.execute(sql, params![series, from_row, to_row, now_us])?;
        }
        Ok(to - from)
    }

    /// Takes the beginning of a page out, to put the whole in its place.
    fn remove_beginning(&self, series: i64, first: u64, next: u64) -> Result<(), ArchiveError> {
        let head = self.connection.query_row(
            "SELECT blob, next_row FROM runs WHERE series = ? AND first_row = ?",
            params![series, first.cast_signed()],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        );
        match head.optional().map_err(|error| self.of(error))? {
            Some((blob, next_row)) if next_row == next.cast_signed() => {
                self.execute("DELETE FROM blobs WHERE id = ?", [blob])?;
                self.execute(
                    "DELETE FROM runs WHERE series = ? AND first_row = ?",
                    params![series, first.cast_signed()],
                )?;
                Ok(())
            }
            _ => Err(ArchiveError::Protocol(format!(
                "a page begins at row {first}, and no page that is stored begins there and ends at row {next}"
            ))),
        }
    }

    /// The last page of a batch may still grow, so it is a run of its own.
    fn insert_with_its_end_apart(&self, series: i64, run: Run, now_us: i64) -> Result<(), ArchiveError> {
        let mut pages = pages_in(&run.bytes);
        let Some(last) = pages.pop() else { return Ok(()) };
        for part in [pages, vec![last]] {
            let mut run = Run::default();
            part.iter().for_each(|page| run.push(page));
            self.insert(series, &run, now_us)?;
        }
        Ok(())
    }

    fn insert(&self, series: i64, run: &Run, now_us: i64) -> Result<(), ArchiveError> {
        if run.bytes.is_empty() {
            return Ok(());
        }
        self.execute("INSERT INTO blobs (bytes) VALUES (?)", [&run.bytes])?;
        let blob = self.connection.last_insert_rowid();
        let sql = "INSERT INTO runs (series, first_row, next_row, row_count, time_min_us, time_max_us, byte_count, crc, stored_us, blob) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let signed = u64::cast_signed;
        let (first, next, rows) = (signed(run.first_row), signed(run.next_row), signed(run.rows));
        let (time_min, time_max) = (signed(run.time_min_us), signed(run.time_max_us));
        let (bytes, crc) = (run.bytes.len() as i64, i64::from(crc(&run.bytes)));
        self.execute(sql, params![series, first, next, rows, time_min, time_max, bytes, crc, now_us, blob])?;
        Ok(())
    }

    /// Makes one run of the first several of a series that are not merged yet, if there are enough for a full one; of a
    /// series that has ended, of as many as there are. Says whether it did: then there may be more to merge.
    pub(super) fn merge(&self, series: i64, now_us: i64) -> Result<bool, ArchiveError> {
        let (heads, is_ended) = self.unmerged(series)?;
        let mut bytes = 0;
        let fits = |head: &&RunHead| {
            bytes += head.byte_count;
            bytes <= RUN_BYTES_MAX
        };
        let group: Vec<&RunHead> = heads.iter().take_while(fits).collect();
        let group = if group.is_empty() { heads.iter().take(1).collect() } else { group };
        let Some(last) = group.last() else { return Ok(false) };
        let is_full = group.len() < heads.len()
            || group.iter().map(|head| head.byte_count).sum::<usize>() > RUN_BYTES_FULL;
        if !is_full && !is_ended {
            return Ok(false);
        }
        if group.len() > 1 {
            let mut merged = Vec::with_capacity(RUN_BYTES_MAX);
            for head in &group {
                merged.extend(self.bytes_of(series, head)?);
                self.execute("DELETE FROM blobs WHERE id = ?", [head.blob])?;
                self.execute(
                    "DELETE FROM runs WHERE series = ? AND first_row = ?",
                    params![series, head.first_row.cast_signed()],
                )?;
            }
            let mut run = Run::default();
            pages_in(&merged).iter().for_each(|page| run.push(page));
            if run.bytes != merged {
                return Err(self.damaged("pages of a run cannot be read"));
            }
            self.insert(series, &run, now_us)?;
        }
        let next_row = last.next_row.cast_signed();
        self.execute("UPDATE series SET merged_to = ? WHERE id = ?", params![next_row, series])?;
        Ok(true)
    }

    /// The series that may have runs to merge.
    pub(super) fn with_unmerged(&self) -> Result<Vec<i64>, ArchiveError> {
        let sql = "SELECT id FROM series WHERE merged_to < watermark";
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.of(error))?;
        let ids = statement.query_map([], |row| row.get(0)).map_err(|error| self.of(error))?;
        ids.collect::<Result<_, _>>().map_err(|error| self.of(error))
    }

    /// The first runs of a series that are not merged yet and will not change, and whether the series has ended.
    fn unmerged(&self, series: i64) -> Result<(Vec<RunHead>, bool), ArchiveError> {
        let sql = "SELECT watermark, merged_to, ended_us IS NOT NULL FROM series WHERE id = ?";
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.of(error))?;
        let read = statement.query_row([series], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?))
        });
        let (watermark, merged_to, is_ended) = read.map_err(|error| self.of(error))?;
        let sql = "SELECT first_row, next_row, byte_count, crc, blob FROM runs WHERE series = ?1 AND first_row >= ?2 AND (next_row < ?3 OR ?4) ORDER BY first_row LIMIT ?5";
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.of(error))?;
        let bounds = params![series, merged_to, watermark, is_ended, MERGED_RUNS_MAX];
        let heads = statement.query_map(bounds, |row| {
            Ok(RunHead {
                first_row: row.get::<_, i64>(0)?.cast_unsigned(),
                next_row: row.get::<_, i64>(1)?.cast_unsigned(),
                byte_count: row.get::<_, i64>(2)? as usize,
                crc: row.get(3)?,
                blob: row.get(4)?,
            })
        });
        let heads = heads.map_err(|error| self.of(error))?.collect::<Result<_, _>>();
        Ok((heads.map_err(|error| self.of(error))?, is_ended))
    }

    fn bytes_of(&self, series: i64, head: &RunHead) -> Result<Vec<u8>, ArchiveError> {
        let sql = "SELECT bytes FROM blobs WHERE id = ?";
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.of(error))?;
        let bytes: Option<Vec<u8>> =
            statement.query_row([head.blob], |row| row.get(0)).optional().map_err(|error| self.of(error))?;
        match bytes {
            Some(bytes) if bytes.len() == head.byte_count && crc(&bytes) == head.crc => Ok(bytes),
            _ => Err(self.damaged(format!(
                "rows from {} on of series {series} are not what was written",
                head.first_row
            ))),
        }
    }
}

/// The pages that stand one behind the other in a run's bytes; those up to the first that is none.
pub(super) fn pages_in(bytes: &[u8]) -> Vec<Page<'_>> {
    let mut pages = Vec::new();
    let mut rest = bytes;
    while let Ok(page) = Page::read(rest) {
        rest = &rest[page.bytes().len()..];
        pages.push(page);
    }
    pages
}
