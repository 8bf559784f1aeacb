//! Progress of a call on its way to the client that asked for it: the newest state, at most a few times a second.

use crate::tools::Progress;
use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use std::{convert::Infallible, future::pending, time::Duration};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::timeout,
};

/// The shortest time between two notifications of one call.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// How long the last notification may take before the answer goes out without it.
const LAST_TIMEOUT: Duration = Duration::from_millis(500);

/// What carries the progress of one call to its client.
pub(super) struct Relay {
    token: ProgressToken,
    peer: Peer<RoleServer>,
    states: UnboundedReceiver<Progress>,
    /// What was told last: it must grow.
    last: f64,
}

impl Relay {
    /// Where a call tells its progress, and what carries it on; none if the client did not give a token.
    pub(super) fn new(context: &RequestContext<RoleServer>) -> Option<(UnboundedSender<Progress>, Self)> {
        let token = context.meta.get_progress_token()?;
        let (told, states) = unbounded_channel();
        Some((told, Self { token, peer: context.peer.clone(), states, last: 0.0 }))
    }

    /// Carries on what is told, until it is dropped; never ends by itself. Can be dropped at any time.
    pub(super) async fn carry(&mut self) -> Infallible {
        while let Some(state) = self.states.recv().await {
            if self.tell(state).await {
                tokio::time::sleep(PROGRESS_INTERVAL).await;
            }
        }
        pending().await
    }

    /// Tells what was not told yet, now that the call has ended.
    pub(super) async fn finish(&mut self) {
        if let Ok(state) = self.states.try_recv()
            && timeout(LAST_TIMEOUT, self.tell(state)).await.is_err()
        {
            tracing::debug!("the client does not take its notifications");
        }
    }

    /// Tells the newest state and returns whether there was something to tell. That nobody listens any more is no
    /// error: the call finds out by itself.
    async fn tell(&mut self, mut state: Progress) -> bool {
        while let Ok(newer) = self.states.try_recv() {
            state = newer; // a client wants to know where it stands, not where it stood
        }
        let (progress, message) = described(state);
        let is_news = progress > self.last;
        if is_news {
            self.last = progress;
            let note = ProgressNotificationParam::new(self.token.clone(), progress).with_message(message);
            let _ = self.peer.notify_progress(note).await;
        }
        is_news
    }
}

/// A number that only grows, and words.
#[allow(clippy::cast_precision_loss, reason = "a count of rows beyond 2^53 may be off by one")]
fn described(state: Progress) -> (f64, String) {
    let Progress { rows, boards_done, boards } = state;
    (rows as f64 + f64::from(boards_done), format!("{rows} rows, {boards_done} of {boards} boards done"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_grows_with_rows_and_with_boards() {
        let state = |rows, boards_done| described(Progress { rows, boards_done, boards: 3 });
        assert!(state(0, 1).0 > state(0, 0).0 && state(9, 1).0 > state(8, 1).0);
        assert_eq!(state(9, 1).1, "9 rows, 1 of 3 boards done");
    }
}
