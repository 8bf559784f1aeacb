//! Progress of a call on its way to the client that asked for it: the newest state, at most a few times a second.

use crate::tools::Progress;
use rmcp::{RoleServer, model::ProgressNotificationParam, service::RequestContext};
use std::{convert::Infallible, future::pending, time::Duration};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// The shortest time between two notifications of one call.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Where a call tells its progress, if the client gave a token, and what carries it on until it is dropped.
pub(super) fn relay(
    context: &RequestContext<RoleServer>,
) -> (Option<UnboundedSender<Progress>>, impl Future<Output = Infallible> + use<>) {
    let token = context.meta.get_progress_token();
    let peer = context.peer.clone();
    let (told, mut states) = unbounded_channel();
    let told = token.is_some().then_some(told);
    let carry = async move {
        let mut last = 0.0;
        while let Some(mut state) = states.recv().await {
            while let Ok(newer) = states.try_recv() {
                state = newer; // a client wants to know where it stands, not where it stood
            }
            let (progress, message) = described(state);
            if let Some(token) = &token
                && progress > last
            {
                last = progress;
                let note = ProgressNotificationParam::new(token.clone(), progress).with_message(message);
                if peer.notify_progress(note).await.is_err() {
                    break; // nobody listens; the call finds that out by itself
                }
                tokio::time::sleep(PROGRESS_INTERVAL).await;
            }
        }
        pending().await
    };
    (told, carry)
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
