//! The thread that writes the archive: takes batches of all boards, commits several at once, then says so. Nothing else
//! writes the file.

use super::{
    ArchiveError,
    file::{self, Owned},
    intake::Batch,
    retention::Retention,
    series::SeriesKey,
    status::{Health, Standing},
    store::{Store, Stored},
};
use rusqlite::config::DbConfig;
use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::{mpsc, oneshot};

/// Jobs that wait for the thread; more wait with their boards.
pub(super) const JOBS_WAITING_MAX: usize = 64;
/// Bytes of pages in one commit, after which no batch is added.
const COMMIT_BYTES: usize = 1 << 20;
/// Merges in one commit.
const MERGES_MAX: usize = 32;
/// A file that cannot be opened is not tried more often.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);

/// A log beside the file that is longer is written back at once.
pub(super) const LOG_BYTES_MAX: u64 = 24 << 20;

pub(super) type Reply<T> = oneshot::Sender<Result<T, ArchiveError>>;

/// What the thread is asked.
#[derive(Debug)]
pub(super) enum Job {
    /// The next row of a series that is not stored.
    Watermark(SeriesKey, Reply<u64>),
    /// Stores a batch; answered when it is on the disk.
    Put(Batch, Reply<Stored>),
    /// Merges what can be merged and gives up what is too old.
    Tidy,
    /// Closes the file and ends the thread.
    Close(Reply<()>),
}

/// The thread's own.
pub(super) struct Writer {
    path: PathBuf,
    retention: Retention,
    standing: Arc<Standing>,
    owned: Option<Owned>,
    /// The last failure and when it was.
    failed: Option<(ArchiveError, Instant)>,
    /// Series whose runs may be merged.
    unmerged: BTreeSet<i64>,
}

impl Writer {
    pub(super) fn new(path: PathBuf, retention: Retention, standing: Arc<Standing>) -> Self {
        Self { path, retention, standing, owned: None, failed: None, unmerged: BTreeSet::new() }
    }

    /// Works until it is told to close, or nobody is left who could ask.
    pub(super) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let _ = self.open(); // the failure is told to whoever asks
        while let Some(job) = jobs.blocking_recv() {
            let (mut batches, mut bytes, mut next) = (Vec::new(), 0, Some(job));
            // As many batches as there are make one commit: a sync costs milliseconds, whatever is in it.
            while let Some(job) = next.take() {
                match job {
                    Job::Put(batch, reply) => {
                        bytes += batch.byte_count();
                        batches.push((batch, reply));
                        if bytes < COMMIT_BYTES {
                            next = jobs.try_recv().ok();
                        }
                    }
                    other => {
                        self.commit(std::mem::take(&mut batches));
                        match other {
                            Job::Watermark(key, reply) => drop(reply.send(self.watermark(&key))),
                            Job::Tidy => self.tidy(),
                            Job::Close(reply) => {
                                self.owned = None;
                                let _ = reply.send(Ok(()));
                                return;
                            }
                            Job::Put(..) => {}
                        }
                    }
                }
            }
            self.commit(batches);
            self.make_room();
            self.cut_log();
            if jobs.is_empty() {
                self.merge();
            }
        }
    }

    /// Opens the file unless it is open. What cannot pass is not tried again, the rest not at once.
    fn open(&mut self) -> Result<(), ArchiveError> {
        if self.owned.is_some() {
            return Ok(());
        }
        if let Some((error, at)) = &self.failed
            && (!error.may_pass() || at.elapsed() < REOPEN_INTERVAL)
        {
            return Err(error.clone());
        }
        match file::own(&self.path) {
            Ok(owned) => {
                let store = Store { path: &self.path, connection: &owned.connection };
                self.unmerged = store.with_unmerged().unwrap_or_default().into_iter().collect();
                self.owned = Some(owned);
                self.works();
                Ok(())
            }
            Err(error) => {
                self.fails(&error);
                Err(error)
            }
        }
    }

    fn works(&mut self) {
        self.failed = None;
        self.standing.set(Health::Open);
    }

    /// Remembers a failure of the file, and closes it where opening it again may help.
    fn fails(&mut self, error: &ArchiveError) {
        if matches!(error, ArchiveError::Protocol(_)) {
            return; // of one board; the file is well
        }
        if let (false, Some(owned)) = (error.may_pass(), &self.owned) {
            // What is damaged stays as it is: closing would write the log back into it.
            let _ = owned.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
        if !matches!(error, ArchiveError::Full { .. }) {
            self.owned = None;
        }
        self.failed = Some((error.clone(), Instant::now()));
        self.standing.set(Health::Failed(error.clone()));
    }

    fn watermark(&mut self, key: &SeriesKey) -> Result<u64, ArchiveError> {
        self.open()?;
        let Some(owned) = &self.owned else { return Err(ArchiveError::Closed) };
        let read = Store { path: &self.path, connection: &owned.connection }.watermark(key);
        if let Err(error) = &read {
            self.fails(error);
        }
        read
    }

    /// Stores batches in one transaction; whose board sent nonsense is left out of it. Answers when it is on the disk.
    fn commit(&mut self, batches: Vec<(Batch, Reply<Stored>)>) {
        if batches.is_empty() {
            return;
        }
        let (batches, replies): (Vec<_>, Vec<_>) = batches.into_iter().unzip();
        let unmerged = &mut BTreeSet::new();
        let stored = self.transaction(|store| {
            let mut results = Vec::with_capacity(batches.len());
            for batch in &batches {
                let result = in_savepoint(store, || store.put(batch, now_us()));
                match &result {
                    Ok(stored) if stored.is_new => unmerged.extend(store.ended(&batch.key.board_id)?),
                    Ok(stored) if stored.rows > 0 => drop(unmerged.insert(stored.series)),
                    Err(ArchiveError::Protocol(_)) | Ok(_) => {}
                    Err(error) => return Err(error.clone()),
                }
                results.push(result);
            }
            Ok(results)
        });
        let results = match stored {
            Ok(results) => {
                self.unmerged.append(unmerged);
                results
            }
            Err(error) => vec![Err(error); batches.len()],
        };
        for (reply, result) in replies.into_iter().zip(results) {
            let _ = reply.send(result); // whoever asked may be gone; it is stored all the same
        }
    }

    /// Runs a job in a transaction: all of it is on the disk, or none.
    fn transaction<T>(
        &mut self,
        job: impl FnOnce(&Store<'_>) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        self.open()?;
        let Some(owned) = &mut self.owned else { return Err(ArchiveError::Closed) };
        let path = &self.path;
        let of = |error: rusqlite::Error| ArchiveError::of(path, &error);
        let connection = &owned.connection;
        let done = (|| {
            connection.execute_batch("BEGIN IMMEDIATE").map_err(of)?;
            let done = job(&Store { path, connection })?;
            connection.execute_batch("COMMIT").map_err(of)?;
            Ok(done)
        })();
        if done.is_err() && !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK"); // SQLite does it by itself when the file is closed
        }
        match &done {
            Ok(_) if self.failed.is_some() => self.works(),
            Ok(_) => {}
            Err(error) => self.fails(error),
        }
        done
    }

    /// Merges, and gives up what is too old. It has time; a failure is told in the archive's state.
    fn tidy(&mut self) {
        self.merge();
        let retention = self.retention;
        if self.owned.is_some() && retention != Retention::default() {
            // A bounded transaction; the next turn goes on.
            let _ = self.transaction(|store| {
                if !store.retire(retention, now_us())? {
                    store.give_back()?;
                }
                Ok(())
            });
        }
    }

    fn merge(&mut self) {
        let chosen: Vec<i64> = self.unmerged.iter().copied().take(MERGES_MAX).collect();
        if self.owned.is_none() || chosen.is_empty() {
            return;
        }
        let merged = self.transaction(|store| {
            let mut done = Vec::new();
            for series in chosen {
                if !store.merge(series, now_us())? {
                    done.push(series);
                }
            }
            Ok(done)
        });
        for series in merged.unwrap_or_default() {
            self.unmerged.remove(&series);
        }
    }

    /// Writes a long log back to the file, and begins it anew. Readers are many and short: there may always be one that
    /// keeps it from being begun anew by itself.
    fn cut_log(&mut self) {
        let Some(owned) = &self.owned else { return };
        let log = file::log_path(&self.path);
        if std::fs::metadata(log).is_ok_and(|log| log.len() > LOG_BYTES_MAX) {
            // What is in the way is waited for, a while; if it stays, the next commit tries again.
            let cut = owned.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            if let Err(error) = cut {
                self.fails(&ArchiveError::of(&self.path, &error));
            }
        }
    }

    /// Keeps the file within its bound, whatever comes.
    fn make_room(&mut self) {
        let retention = Retention { keep: None, ..self.retention };
        if self.owned.is_some() && retention.max_bytes.is_some() {
            let _ = self.transaction(|store| store.retire(retention, now_us()).map(drop));
        }
    }
}

/// Undoes what a job wrote if it fails.
fn in_savepoint<T>(
    store: &Store<'_>,
    job: impl FnOnce() -> Result<T, ArchiveError>,
) -> Result<T, ArchiveError> {
    store.execute("SAVEPOINT batch", [])?;
    let done = job();
    if matches!(done, Err(ArchiveError::Protocol(_))) {
        store.execute("ROLLBACK TO batch", [])?;
    }
    if matches!(done, Ok(_) | Err(ArchiveError::Protocol(_))) {
        store.execute("RELEASE batch", [])?;
    }
    done
}

/// Now, in microseconds since 1970.
pub(super) fn now_us() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_a_reader_kept_from_being_begun_anew_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive.db");
        let mut writer = Writer::new(path.clone(), Retention::default(), Arc::new(Standing::new()));
        writer.open().unwrap();
        let log_bytes = || std::fs::metadata(file::log_path(&path)).unwrap().len();
        let reader = file::reader(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM blobs;").unwrap();
        let connection = &writer.owned.as_ref().unwrap().connection;
        while log_bytes() <= LOG_BYTES_MAX {
            connection.execute("INSERT INTO blobs (bytes) VALUES (zeroblob(4000000))", []).unwrap();
        }
        reader.execute_batch("COMMIT").unwrap();
        writer.cut_log();
        assert_eq!(log_bytes(), 0);
        assert_eq!(writer.standing.health(), Health::Open);
    }
}
