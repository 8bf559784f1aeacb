//! The archive: the gateway's durable copy of the boards' rows. Answers no SQL; gives pages to whoever does.
//!
//! ```text
//!   board ── sync ── intake ── writer ── store ── file          series, chunks ── queries
//!            asks    checks    one       one      SQLite,       read-only connections,
//!            pages   pages     thread    commit   WAL, FULL     each chunk a transaction
//! ```
//!
//! - A row is (board, epoch, table, row_id). A **series** is the first three; its **watermark** is the next row_id that
//!   is not stored. Page, watermark and gap are written in one transaction, and the board is told of the watermark
//!   ([`Pages::acknowledges`](shared::message::Pages)) only when they are on the disk.
//! - Rows `0..watermark` of a series are each in exactly one place: in one page, in one gap (the board overwrote them
//!   first), or before `first_row` (retention gave them up).
//! - A page that ends before the watermark never changes; several of them become one run. The page at the watermark
//!   may be the beginning of one that is longer now: the longer takes its place.
//! - The file belongs to one process. A failure of the file stops the copying, not the boards.

mod chunks;
mod error;
mod file;
mod intake;
mod retention;
mod series;
mod status;
mod store;
mod sync;
#[cfg(test)]
mod tests;
mod writer;

pub use chunks::{CHUNK_BYTES, Chunk, Chunks};
pub use error::ArchiveError;
pub use retention::{MAX_BYTES_MIN, Retention};
pub use series::{Gap, Series, SeriesKey};
pub use status::{Contents, Health, StoredFigures, SyncKey, SyncState, TableSync};
pub use store::SYNCED_WRITE_US;

use crate::field::Field;
use intake::{Batch, Intake};
use rusqlite::Connection;
use shared::{
    clock::UtcClock,
    message::{Cursor, Part, Started},
    page::Page,
    schema::Columns,
};
use status::Standing;
use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use store::Stored;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use writer::{JOBS_WAITING_MAX, Job, Writer};

/// How often what is too old is looked for.
const TIDY_INTERVAL: Duration = Duration::from_secs(30);
/// Read-only connections that are kept for the next reader.
const READERS_KEPT_MAX: usize = 4;
/// How often boards are asked for new rows.
pub const SYNC_INTERVAL_DEFAULT: Duration = Duration::from_secs(1);

/// The archive of this process; cheap to clone. When the last clone is dropped, the copying ends.
#[derive(Clone, Debug)]
pub struct Archive {
    inner: Arc<Inner>,
    readers: Arc<Readers>,
    /// The copying, and what tidies up.
    tasks: Arc<Mutex<JoinSet<()>>>,
}

/// How an archive is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The file.
    pub path: PathBuf,
    /// How often boards are asked for new rows.
    pub sync_interval: Duration,
    /// What may stay.
    pub retention: Retention,
}

impl Options {
    /// This file, everything kept.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), sync_interval: SYNC_INTERVAL_DEFAULT, retention: Retention::default() }
    }
}

/// What the copying tasks share.
#[derive(Debug)]
struct Inner {
    jobs: mpsc::Sender<Job>,
    standing: Arc<Standing>,
    /// Whose turn it is to copy a board, by its id.
    turns: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// When each series was last found to have no more, fresher than the file tells; one for each table of a board
    /// that is there.
    synced: Mutex<BTreeMap<SeriesKey, i64>>,
}

impl Inner {
    async fn ask<T>(&self, job: impl FnOnce(writer::Reply<T>) -> Job) -> Result<T, ArchiveError> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(job(reply)).await.map_err(|_| ArchiveError::Closed)?;
        answer.await.unwrap_or(Err(ArchiveError::Closed))
    }

    async fn watermark(&self, key: &SeriesKey) -> Result<u64, ArchiveError> {
        self.ask(|reply| Job::Watermark(key.clone(), reply)).await
    }

    async fn put(&self, batch: Batch) -> Result<Stored, ArchiveError> {
        self.ask(|reply| Job::Put(batch, reply)).await
    }

    fn note_synced(&self, series: SeriesKey, now_us: i64) {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if !synced.contains_key(&series) {
            // Its board has started anew, or is another: earlier starts are done with.
            synced.retain(|known, _| known.board_id != series.board_id || known.epoch == series.epoch);
        }
        synced.insert(series, now_us);
    }

    fn turn(&self, board_id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(board_id.into()).or_default())
    }
}

impl Archive {
    /// Takes the file for this process and begins to copy the boards of a field, on the caller's runtime. Never fails:
    /// a file that cannot be used is told by [`health`](Self::health), and tried again unless it is damaged.
    pub fn start(options: Options, field: &Field) -> Self {
        let (jobs, waiting) = mpsc::channel(JOBS_WAITING_MAX);
        let standing = Arc::new(Standing::new());
        let writer = Writer::new(options.path.clone(), options.retention, Arc::clone(&standing));
        let spawned = std::thread::Builder::new().name("archive".into()).spawn(move || writer.run(waiting));
        if let Err(error) = spawned {
            let (path, why) = (options.path.clone(), error.to_string());
            standing.set(Health::Failed(ArchiveError::Failed { path, why }));
        }
        let inner = Arc::new(Inner { jobs, standing, turns: Mutex::default(), synced: Mutex::default() });
        let mut tasks = JoinSet::new();
        for board in field.boards() {
            tasks.spawn(sync::run(Arc::clone(&inner), Arc::clone(board), options.sync_interval));
        }
        let tidy = inner.jobs.clone();
        tasks.spawn(async move {
            while tidy.send(Job::Tidy).await.is_ok() {
                tokio::time::sleep(TIDY_INTERVAL).await;
            }
        });
        let readers = Arc::new(Readers::new(options.path));
        Self { inner, readers, tasks: Arc::new(Mutex::new(tasks)) }
    }

    /// Ends the copying, closes the file and lets others have it.
    pub async fn close(self) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        self.readers.lock().clear(); // the last connection to close writes the log back
        let _ = self.inner.ask(Job::Close).await; // closed already is closed, too
    }

    /// For reading what is stored.
    pub fn reader(&self) -> &Arc<Readers> {
        &self.readers
    }

    /// How the file is.
    pub fn health(&self) -> Health {
        self.inner.standing.health()
    }

    /// How the copies of all tables are.
    pub fn copies(&self) -> BTreeMap<SyncKey, TableSync> {
        self.inner.standing.tables()
    }

    /// See [`Readers::series_of`]; `as_of_us` is that of the last look at the board.
    pub async fn series_of(&self, dbms: &str, table: &str) -> Result<Vec<Series>, ArchiveError> {
        let (readers, dbms, table) = (Arc::clone(&self.readers), dbms.to_string(), table.to_string());
        let mut all = blocking(move || readers.series_of(&dbms, &table)).await?;
        let synced = self.inner.synced.lock().unwrap_or_else(PoisonError::into_inner);
        for series in &mut all {
            let seen_us = synced.get(&series.key).copied().unwrap_or(i64::MIN);
            series.as_of_us = series.as_of_us.max(seen_us);
        }
        Ok(all)
    }

    /// Stores pages that come from elsewhere than a board of the field: rows from `from` on, each page whole and
    /// checked as a board's are. Answers with the watermark when they are on the disk.
    pub async fn ingest(
        &self,
        key: SeriesKey,
        columns: &Columns<'_>,
        clock: &UtcClock,
        from: u64,
        pages: &[&[u8]],
    ) -> Result<u64, ArchiveError> {
        let mut watermark = from;
        let end = pages.last().and_then(|page| Page::read(page).ok()).map_or(from, |page| page.next_row_id());
        let cursor = Cursor { next: from, end, rows: 0 };
        let mut intake = Intake::new(key, from);
        intake.part(&Part::Started(Started {
            columns: columns.clone(),
            cursor,
            lost: 0,
            clock_set: true,
        }))?;
        intake.part(&Part::Clock(clock.clone()))?;
        for (nth, bytes) in pages.iter().enumerate() {
            intake.next_page(bytes)?;
            if (intake.is_full() || nth + 1 == pages.len())
                && let Some(batch) = intake.take_batch()
            {
                watermark = self.inner.put(batch).await?.watermark;
            }
        }
        Ok(watermark)
    }

    /// See [`Readers::tables`].
    pub async fn tables(&self) -> Result<Vec<(String, String)>, ArchiveError> {
        let readers = Arc::clone(&self.readers);
        blocking(move || readers.tables()).await
    }

    /// See [`Readers::gaps`].
    pub async fn gaps(&self, series: i64) -> Result<Vec<Gap>, ArchiveError> {
        let readers = Arc::clone(&self.readers);
        blocking(move || readers.gaps(series)).await
    }

    /// See [`Readers::chunks`].
    pub fn chunks(&self, series: i64, rows: Range<u64>, times_us: Option<RangeInclusive<u64>>) -> Chunks {
        self.readers.chunks(series, rows, times_us)
    }
}

/// Read-only connections to a file, whoever writes it. Every call may block; [`Archive`] has the same without.
#[derive(Debug)]
pub struct Readers {
    path: PathBuf,
    kept: Mutex<Vec<Connection>>,
}

impl Readers {
    /// For this file, which is opened when it is read.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), kept: Mutex::default() }
    }

    /// Which file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The series of a table: one for each board and each of its starts, in the order in which they began. They are of
    /// one moment.
    pub fn series_of(&self, dbms: &str, table: &str) -> Result<Vec<Series>, ArchiveError> {
        self.read(|connection| series::read_all(&self.path, connection, Some((dbms, table))))
    }

    /// The tables that have rows or had some, as (database, table), each once and in order.
    pub fn tables(&self) -> Result<Vec<(String, String)>, ArchiveError> {
        let of = |error: rusqlite::Error| ArchiveError::of(&self.path, &error);
        self.read(|connection| {
            let sql = "SELECT DISTINCT dbms, name FROM series ORDER BY dbms, name";
            let mut statement = connection.prepare_cached(sql).map_err(of)?;
            let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(of)?;
            tables.collect::<Result<_, _>>().map_err(of)
        })
    }

    /// The rows of a series that the board overwrote before they were copied, in order.
    pub fn gaps(&self, series: i64) -> Result<Vec<Gap>, ArchiveError> {
        self.read(|connection| series::gaps(&self.path, connection, series))
    }

    /// What the file holds in all.
    pub fn contents(&self) -> Result<Contents, ArchiveError> {
        self.read(|connection| status::contents(&self.path, connection))
    }

    /// The pages of a series with these rows: from a [`Series`], `first_row..watermark` for all that it had then.
    pub fn chunks(
        self: &Arc<Self>,
        series: i64,
        rows: Range<u64>,
        times_us: Option<RangeInclusive<u64>>,
    ) -> Chunks {
        Chunks::new(Arc::clone(self), series, rows, times_us)
    }

    /// Lends a connection, which is kept for the next if all goes well.
    fn read<T>(&self, job: impl FnOnce(&Connection) -> Result<T, ArchiveError>) -> Result<T, ArchiveError> {
        let kept = self.lock().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => file::reader(&self.path)?,
        };
        let done = job(&connection)?;
        let mut kept = self.lock();
        if kept.len() < READERS_KEPT_MAX {
            kept.push(connection);
        }
        Ok(done)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn blocking<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, ArchiveError> + Send + 'static,
) -> Result<T, ArchiveError> {
    tokio::task::spawn_blocking(job).await.unwrap_or(Err(ArchiveError::Closed))
}
