//! What ends a statement before its time: the deadline, whoever asked, the memory of all statements, a source that fails.

use super::limits::KEPT_BYTES_MAX;
use crate::{fault::Fault, query::Context};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Watches over one statement.
#[derive(Debug)]
pub(super) struct Stop {
    deadline: Instant,
    pub(super) cancelled: CancellationToken,
    /// Whether the statement keeps rows in SQLite.
    keeps: AtomicBool,
    /// Why it was stopped.
    fault: Mutex<Option<Fault>>,
}

impl Stop {
    /// Ends with the call, or when the returned statement's answer is dropped.
    pub(super) fn new(context: &Context) -> Self {
        Self {
            deadline: context.deadline,
            cancelled: context.cancelled.child_token(),
            keeps: AtomicBool::new(false),
            fault: Mutex::new(None),
        }
    }

    /// The statement keeps rows: it can be stopped for the memory that they take.
    pub(super) fn keeps_rows(&self) {
        self.keeps.store(true, Ordering::Relaxed);
    }

    /// Whether it has to end; remembers why.
    pub(super) fn is_due(&self) -> bool {
        let fault = if self.cancelled.is_cancelled() {
            Fault::cancelled()
        } else if Instant::now() >= self.deadline {
            timeout()
        } else if self.keeps.load(Ordering::Relaxed) && bytes_kept() > KEPT_BYTES_MAX {
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
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }

    /// Why it was ended.
    pub(super) fn take(&self) -> Option<Fault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }
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
