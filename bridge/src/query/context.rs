//! What a call brings along: its time limit, whether it is still wanted, and who is told how far it is.

use crate::{
    board::{BoardError, Session},
    fault::Fault,
};
use std::time::Duration;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

/// How long a call may take unless its caller says otherwise.
const CALL_TIMEOUT: Duration = Duration::from_secs(45);
/// How long one board may let a call wait for the next piece of its answer.
const BOARD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a board may be gone in the middle of an answer: a link that breaks is opened again meanwhile.
const BOARD_GONE_GRACE: Duration = Duration::from_secs(3);
/// What is kept of a call's time for saying what came, when a board has used up the rest.
const WRAP_UP: Duration = Duration::from_millis(500);

/// How far a call is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows that have come.
    pub rows: u64,
    /// Boards whose part is complete.
    pub boards_done: u32,
    /// Boards that are asked.
    pub boards: u32,
}

/// Takes what a call says of its progress. Whoever reads it may be slow: there is one message a batch at most.
pub type ProgressSender = mpsc::UnboundedSender<Progress>;

/// What a call brings along.
#[derive(Clone, Debug)]
pub struct Context {
    /// When there must be an answer or an error.
    pub deadline: Instant,
    /// Cancelled when nobody wants the answer any more.
    pub cancelled: CancellationToken,
    /// Who is told how far it is.
    pub progress: Option<ProgressSender>,
    /// Who calls, for logs.
    pub client: String,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            deadline: Instant::now() + CALL_TIMEOUT,
            cancelled: CancellationToken::new(),
            progress: None,
            client: String::new(),
        }
    }
}

impl Context {
    /// Waits for the next piece of a board's answer, not longer than a board may take and the call has time, and not
    /// for a board that has gone. Dropping what is waited for cancels it on the board.
    pub(crate) async fn board<T>(
        &self,
        session: &Session,
        waited_for: impl Future<Output = T>,
    ) -> Result<T, Fault> {
        let call_ends = self.deadline.checked_sub(WRAP_UP).unwrap_or(self.deadline);
        let there = async {
            tokio::select! {
                biased;
                waited = waited_for => Ok(waited),
                why = session.wait_gone(BOARD_GONE_GRACE) => Err(Fault::from(BoardError::Offline(why))),
            }
        };
        self.until(call_ends.min(Instant::now() + BOARD_TIMEOUT), there).await?
    }

    /// Waits until the call's time is over.
    pub(crate) async fn whole<T>(&self, waited_for: impl Future<Output = T>) -> Result<T, Fault> {
        self.until(self.deadline, waited_for).await
    }

    async fn until<T>(&self, end: Instant, waited_for: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => Err(Fault::cancelled()),
            waited = timeout_at(end, waited_for) => waited.map_err(|_| {
                let action = "ask for less, name fewer boards, or export the answer as a job";
                Fault::new("timeout", "there was no answer within the time limit", action)
            }),
        }
    }

    /// Tells how far the call is.
    pub(crate) fn report(&self, progress: Progress) {
        if let Some(to) = &self.progress {
            let _ = to.send(progress); // nobody listens any more: the answer is wanted all the same
        }
    }
}
