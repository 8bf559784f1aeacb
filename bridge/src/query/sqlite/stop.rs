//! What ends a statement before its time: the deadline, whoever asked, the memory of all statements, a source that fails.

use super::limits::KEPT_BYTES_MAX;
use crate::{fault::Fault, query::Context};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The looks at each statement that keeps rows and runs now: how long it has been at work.
static KEEPING: Mutex<Vec<Arc<AtomicU64>>> = Mutex::new(Vec::new());

/// Watches over one statement.
#[derive(Debug)]
pub(super) struct Stop {
    deadline: Instant,
    pub(super) cancelled: CancellationToken,
    /// How often a statement was looked at that keeps rows in SQLite; none of one that keeps nothing.
    looks: Mutex<Option<Arc<AtomicU64>>>,
    /// Why it was stopped.
    fault: Mutex<Option<Fault>>,
}

impl Stop {
    /// Ends with the call, or when the returned statement's answer is dropped.
    pub(super) fn new(context: &Context) -> Self {
        Self {
            deadline: context.deadline,
            cancelled: context.cancelled.child_token(),
            looks: Mutex::new(None),
            fault: Mutex::new(None),
        }
    }

    /// The statement keeps rows: it can be stopped for the memory that they take.
    pub(super) fn keeps_rows(&self) {
        let looks = Arc::new(AtomicU64::new(0));
        lock(&KEEPING).push(Arc::clone(&looks));
        *lock(&self.looks) = Some(looks);
    }

    /// SQLite tells what all statements keep, not what each does. Where that is too much, the one goes that has been at
    /// work longest; if it was not that one, the next goes.
    fn keeps_too_much(&self) -> bool {
        let Some(looks) = lock(&self.looks).clone() else { return false };
        let own = looks.fetch_add(1, Ordering::Relaxed);
        bytes_kept() > KEPT_BYTES_MAX
            && lock(&KEEPING).iter().all(|other| other.load(Ordering::Relaxed) <= own + 1)
    }

    /// Whether it has to end; remembers why.
    pub(super) fn is_due(&self) -> bool {
        let fault = if self.cancelled.is_cancelled() {
            Fault::cancelled()
        } else if Instant::now() >= self.deadline {
            timeout()
        } else if self.keeps_too_much() {
            let message = format!(
                "KEPT_BYTES_MAX: what the queries of this gateway sort, group and join takes more than {KEPT_BYTES_MAX} bytes"
            );
            let action = "ask for less: a narrower WHERE, fewer columns, no ORDER BY over all rows; or ask again later";
            Fault::new("capacity", message, action)
        } else {
            return false;
        };
        self.fail(fault);
        true
    }

    /// Ends it for this reason, unless there is one already.
    pub(super) fn fail(&self, fault: Fault) {
        lock(&self.fault).get_or_insert(fault);
    }

    /// Why it was ended.
    pub(super) fn take(&self) -> Option<Fault> {
        lock(&self.fault).take()
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        if let Some(looks) = lock(&self.looks).take() {
            lock(&KEEPING).retain(|other| !Arc::ptr_eq(other, &looks));
        }
    }
}

/// What is locked is whole after every step, also if a thread panicked.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The statement took too long.
pub(super) fn timeout() -> Fault {
    let action = "ask for less: a narrower WHERE, fewer rows in each join, a LIMIT in each recursive part";
    Fault::new("timeout", "the query did not end within its time limit and was stopped", action)
}

/// Bytes that SQLite has for all its connections in this program.
#[expect(unsafe_code, reason = "rusqlite has no name for it")]
fn bytes_kept() -> i64 {
    // SAFETY: it takes nothing, and may be called at any time on any thread.
    unsafe { rusqlite::ffi::sqlite3_memory_used() }
}
