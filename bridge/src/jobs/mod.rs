//! Jobs: whole answers written into files while nobody waits. Knows no tool's arguments.

mod sink;
mod written;

use crate::{
    fault::{Fault, quoted},
    query::{Context, Lake, Progress},
    tools::RowStream,
};
use cap_std::fs::Dir;
use serde_json::{Value, json};
use sink::{FileSink, Form};
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Jobs that run at once.
pub const RUNNING_MAX: usize = 4;
/// Jobs that are remembered, those that run among them.
pub const JOBS_MAX: usize = 64;
/// Bytes of an export where nobody says how many.
pub const EXPORT_BYTES_DEFAULT: u64 = 1 << 30;
/// How long a job may take.
pub const JOB_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// How long jobs that are cancelled at the end may take to remove what they have written.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// What the address of a job's file begins with; its id follows.
pub const ADDRESS: &str = "picolake://jobs/";

/// The jobs of a bridge.
#[derive(Clone, Debug)]
pub struct Jobs {
    folder: Option<Folder>,
    bytes_max: u64,
    jobs: Arc<Mutex<VecDeque<Job>>>,
    /// What the jobs do.
    work: TaskTracker,
}

/// The folder for exports: its name for people, and itself, however it is called later.
#[derive(Clone, Debug)]
struct Folder {
    path: Arc<PathBuf>,
    opened: Arc<Dir>,
}

/// What is to be exported.
#[derive(Clone, Debug)]
pub(crate) struct ExportRequest {
    pub(crate) database: String,
    pub(crate) sql: String,
    pub(crate) boards: Option<Vec<String>>,
    /// Inside the folder; none lets the bridge choose.
    pub(crate) file: Option<String>,
    pub(crate) is_csv: bool,
}

#[derive(Debug)]
struct Job {
    id: String,
    file: String,
    is_csv: bool,
    cancelled: CancellationToken,
    state: State,
    rows: u64,
    rows_lost: u64,
    bytes: u64,
    boards: (u32, u32),
}

#[derive(Debug)]
enum State {
    Running,
    /// All is written, and the file gets its name: it is too late to cancel.
    Naming,
    Complete,
    Cancelled,
    Failed(Fault),
}

/// The beginning of a file that a job has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Whole lines, as many as fit.
    pub text: String,
    /// Where the file is.
    pub path: PathBuf,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Whether there is more of it.
    pub is_cut: bool,
    /// Comma-separated values; else JSON lines.
    pub is_csv: bool,
}

impl Jobs {
    /// Jobs that write into this folder, which is made if it is not there. What a bridge that was killed has left in
    /// it of its exports goes.
    pub(crate) fn new(folder: Option<&Path>, bytes_max: Option<u64>) -> std::io::Result<Self> {
        let folder = match folder {
            None => None,
            Some(folder) => {
                std::fs::create_dir_all(folder)?;
                let opened = Dir::open_ambient_dir(folder, cap_std::ambient_authority())?;
                sink::remove_left_parts(&opened);
                Some(Folder { path: Arc::new(folder.canonicalize()?), opened: Arc::new(opened) })
            }
        };
        let bytes_max = bytes_max.unwrap_or(EXPORT_BYTES_DEFAULT);
        Ok(Self { folder, bytes_max, jobs: Arc::default(), work: TaskTracker::new() })
    }

    /// Whether there is a folder for exports.
    pub(crate) fn can_export(&self) -> bool {
        self.folder.is_some()
    }

    /// Begins an export once its boards have begun to answer; returns the job.
    pub(crate) async fn export(
        &self,
        lake: &Lake,
        request: ExportRequest,
        context: &Context,
    ) -> Result<Value, Fault> {
        let Some(folder) = &self.folder else {
            let action = "start the bridge with a folder for exports";
            return Err(Fault::new("no_export_folder", "there is no folder for exports", action));
        };
        let id = format!("{:08x}", rand::random::<u32>());
        let form = if request.is_csv { Form::Csv } else { Form::JsonLines };
        let file = request.file.unwrap_or_else(|| format!("export-{id}.{}", form.extension()));
        let cancelled = CancellationToken::new();
        let (progress, told) = mpsc::unbounded_channel();
        let job = Job {
            id: id.clone(),
            file: file.clone(),
            is_csv: request.is_csv,
            cancelled: cancelled.clone(),
            state: State::Running,
            rows: 0,
            rows_lost: 0,
            bytes: 0,
            boards: (0, 0),
        };
        let run = Context {
            deadline: Instant::now() + JOB_TIMEOUT,
            cancelled,
            progress: Some(progress),
            client: context.client.clone(),
        };
        // Only what has begun is a job: a call that is cancelled here leaves none.
        let sink = FileSink::create(Arc::clone(&folder.opened), file, form, self.bytes_max).await?;
        let boards = request.boards.as_deref();
        let opening = RowStream::open(lake, &request.database, &request.sql, boards, run);
        let rows = context.whole(opening).await??;
        self.begin(job)?;
        self.work.spawn(self.clone().run(id.clone(), sink, rows, told));
        self.status(&id)
    }

    async fn run(
        self,
        id: String,
        sink: FileSink,
        rows: RowStream,
        mut told: mpsc::UnboundedReceiver<Progress>,
    ) {
        let written = self.copy(&id, sink, rows, &mut told).await;
        self.with(&id, |job| {
            job.state = match written {
                _ if matches!(job.state, State::Cancelled) => State::Cancelled,
                Ok(()) => State::Complete,
                Err(fault) => State::Failed(fault),
            };
        });
    }

    /// Batch by batch; the file has its name only when all are written.
    async fn copy(
        &self,
        id: &str,
        mut sink: FileSink,
        mut rows: RowStream,
        told: &mut mpsc::UnboundedReceiver<Progress>,
    ) -> Result<(), Fault> {
        sink.begin(rows.columns())?;
        while let Some(batch) = rows.next_batch().await? {
            let columns = rows.columns().to_vec();
            let mut written = Ok(());
            rows.rows(&batch, |cells| {
                if written.is_ok() {
                    written = sink.row(&columns, cells);
                }
            })?;
            written?;
            sink.write().await?;
            let (rows_lost, rows, bytes) = (rows.rows_lost(), sink.rows, sink.bytes);
            self.with(id, |job| {
                (job.rows, job.rows_lost, job.bytes) = (rows, rows_lost, bytes);
                while let Ok(progress) = told.try_recv() {
                    job.boards = (progress.boards_done, progress.boards);
                }
            });
        }
        let (rows_lost, rows) = (rows.rows_lost(), sink.rows);
        let bytes = sink.finish(|| self.begins_naming(id)).await?;
        self.with(id, |job| {
            (job.rows, job.rows_lost, job.bytes) = (rows, rows_lost, bytes);
            while let Ok(progress) = told.try_recv() {
                job.boards = (progress.boards_done, progress.boards);
            }
        });
        Ok(())
    }

    /// How far a job is.
    pub fn status(&self, id: &str) -> Result<Value, Fault> {
        let told = self.lock().iter().find(|job| job.id == id).map(|job| self.told(job));
        told.ok_or_else(|| {
            let message = format!("there is no job `{}`", quoted(id));
            Fault::new("unknown_job", message, "ask for the status of all jobs, without an id")
        })
    }

    /// Every job, the newest last.
    pub fn list(&self) -> Value {
        self.lock().iter().map(|job| self.told(job)).collect()
    }

    /// Stops a job; one that has ended, or whose file is whole and gets its name, stays as it is.
    pub fn cancel(&self, id: &str) -> Result<Value, Fault> {
        self.with(id, Job::cancel);
        self.status(id)
    }

    /// Waits until no job runs.
    pub async fn settled(&self) {
        self.work.close(); // a job can begin all the same
        self.work.wait().await;
    }

    /// Cancels every job and waits until nothing of them is left.
    pub async fn end(&self) {
        for job in self.lock().iter_mut() {
            job.cancel();
        }
        if tokio::time::timeout(END_TIMEOUT, self.settled()).await.is_err() {
            tracing::warn!("a disk is slow: a part of an export may be left in the export folder");
        }
    }

    /// The jobs whose files are there, by id, with the files' names.
    pub fn complete(&self) -> Vec<(String, String)> {
        let jobs = self.lock();
        let complete = jobs.iter().filter(|job| matches!(job.state, State::Complete));
        complete.map(|job| (job.id.clone(), job.file.clone())).collect()
    }

    /// The beginning of the file of a job that is complete: so many characters at most.
    pub async fn excerpt(&self, id: &str, characters_max: usize) -> Result<Excerpt, Fault> {
        let status = self.status(id)?;
        let complete = |job: &&Job| job.id == id && matches!(job.state, State::Complete);
        let found = self.lock().iter().find(complete).map(|job| (job.file.clone(), job.is_csv));
        let (Some((file, is_csv)), Some(folder)) = (found, self.folder.clone()) else {
            let message = format!("job `{}` is {}, not complete", quoted(id), status["state"]);
            return Err(Fault::new("not_complete", message, "ask for job_status until it is complete"));
        };
        sink::excerpt(folder, file, is_csv, characters_max).await
    }

    fn begin(&self, job: Job) -> Result<(), Fault> {
        let mut jobs = self.lock();
        let running = |job: &Job| matches!(job.state, State::Running | State::Naming);
        if jobs.iter().filter(|job| running(job)).count() >= RUNNING_MAX {
            let message = format!("RUNNING_MAX: {RUNNING_MAX} jobs run already");
            return Err(Fault::new("capacity", message, "wait for one, or cancel one"));
        }
        if jobs.len() >= JOBS_MAX
            && let Some(oldest) = jobs.iter().position(|job| !running(job))
        {
            jobs.remove(oldest);
        }
        jobs.push_back(job);
        Ok(())
    }

    fn with(&self, id: &str, change: impl FnOnce(&mut Job)) {
        if let Some(job) = self.lock().iter_mut().find(|job| job.id == id) {
            change(job);
        }
    }

    /// Whether the file of a job may get its name: the job was not cancelled, and cannot be any more.
    fn begins_naming(&self, id: &str) -> bool {
        let mut jobs = self.lock();
        let job = jobs.iter_mut().find(|job| job.id == id && matches!(job.state, State::Running));
        job.map(|job| job.state = State::Naming).is_some()
    }

    /// A job, and where its file is once it is there.
    fn told(&self, job: &Job) -> Value {
        let mut told = job.told();
        if let (State::Complete, Some(folder)) = (&job.state, &self.folder) {
            told["path"] = folder.path.join(&job.file).to_string_lossy().into();
            told["uri"] = format!("{ADDRESS}{}", job.id).into();
        }
        told
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn cancel(&mut self) {
        if matches!(self.state, State::Running) {
            self.cancelled.cancel();
            self.state = State::Cancelled;
        }
    }

    fn told(&self) -> Value {
        let mut told = json!({
            "job": self.id,
            "state": match &self.state {
                State::Running | State::Naming => "running",
                State::Complete => "complete",
                State::Cancelled => "cancelled",
                State::Failed(_) => "failed",
            },
            "file": self.file,
            "rows": self.rows,
            "rows_lost": self.rows_lost,
            "bytes": self.bytes,
            "boards_done": self.boards.0,
            "boards": self.boards.1,
        });
        if let State::Failed(fault) = &self.state {
            told["failure"] = fault.to_json();
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn begun(jobs: &Jobs, name: &str) -> FileSink {
        let job = Job {
            id: name.into(),
            file: name.into(),
            is_csv: true,
            cancelled: CancellationToken::new(),
            state: State::Running,
            rows: 0,
            rows_lost: 0,
            bytes: 0,
            boards: (0, 0),
        };
        jobs.begin(job).unwrap();
        let folder = Arc::clone(&jobs.folder.as_ref().unwrap().opened);
        FileSink::create(folder, name.into(), Form::Csv, 99).await.unwrap()
    }

    #[tokio::test]
    async fn a_job_is_cancelled_or_its_file_is_there_never_both() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = Jobs::new(Some(folder.path()), None).unwrap();
        let cancel = |id: &str| jobs.cancel(id).unwrap()["state"].clone();
        // Cancelled while the file is made to last.
        let sink = begun(&jobs, "early").await;
        let finished = sink.finish(|| {
            assert_eq!(cancel("early"), "cancelled");
            jobs.begins_naming("early")
        });
        assert_eq!(finished.await.unwrap_err().code, "cancelled");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(jobs.status("early").unwrap()["state"], "cancelled");
        // Cancelled when it is too late for that.
        let sink = begun(&jobs, "late").await;
        let finished = sink.finish(|| {
            let may_be_named = jobs.begins_naming("late");
            assert_eq!(cancel("late"), "running");
            may_be_named
        });
        assert_eq!(finished.await, Ok(0));
        assert!(folder.path().join("late").is_file());
    }

    #[tokio::test]
    async fn the_file_of_a_complete_job_is_read_from_its_beginning_in_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = Jobs::new(Some(folder.path()), None).unwrap();
        let sink = begun(&jobs, "x.csv").await;
        assert_eq!(jobs.excerpt("x.csv", 99).await.unwrap_err().code, "not_complete");
        assert_eq!(jobs.excerpt("y.csv", 99).await.unwrap_err().code, "unknown_job");
        sink.finish(|| true).await.unwrap();
        jobs.with("x.csv", |job| job.state = State::Complete);
        let path = folder.path().canonicalize().unwrap().join("x.csv");
        std::fs::write(&path, "a,b\n°,2\n3,4\n").unwrap();
        for (characters_max, text) in
            [(12, "a,b\n°,2\n3,4\n"), (11, "a,b\n°,2\n"), (8, "a,b\n°,2\n"), (7, "a,b\n"), (2, "a,")]
        {
            let excerpt = jobs.excerpt("x.csv", characters_max).await.unwrap();
            assert_eq!((excerpt.text.as_str(), excerpt.bytes), (text, 13), "{characters_max}");
            assert_eq!((excerpt.is_cut, excerpt.is_csv), (characters_max < 12, true));
        }
        let status = jobs.status("x.csv").unwrap();
        assert_eq!((&status["uri"], &status["path"]), (&json!("picolake://jobs/x.csv"), &json!(path)));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(jobs.excerpt("x.csv", 99).await.unwrap_err().code, "export_gone");
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert_eq!(jobs.excerpt("x.csv", 99).await.unwrap_err().code, "export_gone");
    }
}
