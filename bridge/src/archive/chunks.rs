//! The stored pages of a series in order, some at a time: what a query scans. Decodes no row.

use super::{ArchiveError, Readers, store};
use rusqlite::{Connection, params};
use shared::page::Page;
use std::{
    ops::{Range, RangeInclusive},
    sync::Arc,
};

/// Bytes of pages in a chunk, after which no run is added: what a reader has in memory at most, and a run.
pub const CHUNK_BYTES: usize = 256 << 10;

/// Reads rows `rows` of a series, chunk by chunk.
///
/// - Each chunk is read in a transaction of its own and the position is a row_id, so a reader may take as long as it
///   likes: the log beside the file does not grow because of it, and what is merged meanwhile is given once.
/// - With `times` (µs since boot, both ends in), pages that lie outside are left out; rows of a page that is given may
///   lie outside all the same.
/// - Rows of the range that are in no page were lost on the board ([`Archive::gaps`](super::Archive::gaps)), or given
///   up by retention: all rows before [`Chunk::retired_before`] were, also while this was reading.
#[derive(Debug)]
pub struct Chunks {
    readers: Arc<Readers>,
    series: i64,
    /// What is still to be read.
    rows: Range<u64>,
    times_us: Option<RangeInclusive<u64>>,
    is_done: bool,
}

/// Pages in the order of their rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    bytes: Vec<u8>,
    /// Where each page begins, and which of its rows are wanted.
    places: Vec<(usize, Range<u64>)>,
    /// Rows before this one are not in the archive any more.
    pub retired_before: u64,
}

impl Chunk {
    /// Each page, and which of its rows are in the range: all of them but at its ends, and where a page has grown since
    /// its beginning was given.
    pub fn pages(&self) -> impl Iterator<Item = (Page<'_>, Range<u64>)> {
        // Every place was read as a page before.
        let page = |place: usize| Page::read(&self.bytes[place..]).ok();
        self.places.iter().filter_map(move |(place, rows)| Some((page(*place)?, rows.clone())))
    }
}

impl Chunks {
    pub(super) fn new(
        readers: Arc<Readers>,
        series: i64,
        rows: Range<u64>,
        times_us: Option<RangeInclusive<u64>>,
    ) -> Self {
        Self { readers, series, rows, times_us, is_done: false }
    }

    /// The next chunk, or none at the end. Reads on a thread that may block; dropping the future loses nothing that
    /// was given.
    pub async fn next(&mut self) -> Result<Option<Chunk>, ArchiveError> {
        if self.is_done {
            return Ok(None);
        }
        let mut chunks = Self {
            readers: Arc::clone(&self.readers),
            times_us: self.times_us.clone(),
            rows: self.rows.clone(),
            ..*self
        };
        let read = tokio::task::spawn_blocking(move || (chunks.next_blocking(), chunks));
        let (chunk, chunks) = read.await.map_err(|_| ArchiveError::Closed)?;
        *self = chunks;
        chunk
    }

    /// The same on the caller's thread, which must be one that may block.
    pub fn next_blocking(&mut self) -> Result<Option<Chunk>, ArchiveError> {
        if self.is_done || self.rows.is_empty() {
            self.is_done = true;
            return Ok(None);
        }
        let readers = Arc::clone(&self.readers);
        let chunk = readers.read(|connection| self.read(connection))?;
        if chunk.places.is_empty() {
            self.is_done = true;
            return Ok(None);
        }
        Ok(Some(chunk))
    }

    fn read(&mut self, connection: &Connection) -> Result<Chunk, ArchiveError> {
        let path = self.readers.path();
        let of = |error: rusqlite::Error| ArchiveError::of(path, &error);
        // So that runs and what was retired are of one moment.
        let transaction = connection.unchecked_transaction().map_err(of)?;
        let sql = "SELECT retired_to FROM series WHERE id = ?";
        let retired: i64 = transaction.query_row(sql, [self.series], |row| row.get(0)).map_err(of)?;
        let mut chunk = Chunk { retired_before: retired.cast_unsigned(), ..Chunk::default() };
        let times = self.times_us.clone().unwrap_or(0..=i64::MAX as u64);
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let sql = "SELECT runs.first_row, crc, bytes FROM runs JOIN blobs ON blobs.id = runs.blob
            WHERE series = ?1 AND first_row < ?3 AND next_row > ?2 AND time_max_us >= ?4 AND time_min_us <= ?5
            AND first_row >= coalesce((SELECT max(first_row) FROM runs WHERE series = ?1 AND first_row <= ?2), 0)
            ORDER BY first_row";
        let mut statement = transaction.prepare_cached(sql).map_err(of)?;
        let (from, to) = (signed(self.rows.start), signed(self.rows.end));
        let bounds = params![self.series, from, to, signed(*times.start()), signed(*times.end())];
        let mut runs = statement.query(bounds).map_err(of)?;
        while let Some(run) = runs.next().map_err(of)? {
            let (first, crc): (i64, u32) = (run.get(0).map_err(of)?, run.get(1).map_err(of)?);
            let bytes = run.get_ref(2).map_err(of)?.as_blob().unwrap_or_default();
            let pages = if store::crc(bytes) == crc { store::pages_in(bytes) } else { Vec::new() };
            if pages.iter().map(|page| page.bytes().len()).sum::<usize>() != bytes.len() || pages.is_empty() {
                let why = format!("rows from {first} on of series {} are not what was written", self.series);
                return Err(ArchiveError::Damaged { path: path.into(), why });
            }
            for page in &pages {
                let wanted = page.first_row_id().max(self.rows.start)..page.next_row_id().min(self.rows.end);
                let is_in_time = page.time_max_us() >= *times.start() && page.time_min_us() <= *times.end();
                if wanted.is_empty() || !is_in_time {
                    continue;
                }
                self.rows.start = wanted.end;
                chunk.places.push((chunk.bytes.len(), wanted));
                chunk.bytes.extend_from_slice(page.bytes());
            }
            if chunk.bytes.len() >= CHUNK_BYTES {
                break;
            }
        }
        Ok(chunk)
    }
}
