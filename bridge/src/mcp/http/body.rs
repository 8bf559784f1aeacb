//! Bodies of requests, read whole within their limits before anybody looks at them.

use super::{BODY_BYTES_MAX, Shared};
use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::StreamExt as _;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of all bodies together that are in memory, besides the small beginning of each.
pub(super) const BODIES_BYTES_MAX: usize = 64 << 20;
/// The beginning of a body that is not counted: connections are, and a small request gets in whoever sends large ones.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// Bytes that are read and thrown away, so that a client that sends too many hears why before its line is cut.
const DISCARD_BYTES_MAX: usize = 32 << 20;

/// Why a body was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unfit {
    TooLarge,
    /// It is not too large, but with those of others it would be.
    NoRoom,
    Broken,
}

/// A body in memory, and its share of what all may have.
#[derive(Debug)]
struct Whole {
    bytes: Bytes,
    share: Option<OwnedSemaphorePermit>,
}

/// Lets a request pass with its body in memory, or says why not.
pub(super) async fn limit(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let time = shared.limits.body;
    let (reason, status, why) = match tokio::time::timeout(time, whole(body, &shared.bodies)).await {
        Ok(Ok(Whole { bytes, share })) => {
            let answer = next.run(Request::from_parts(parts, Body::from(bytes))).await;
            drop(share); // whoever answers has read it
            return answer;
        }
        Ok(Err(Unfit::NoRoom)) => {
            shared.server.metrics.refused("bodies");
            let why =
                "the bodies of other requests take up all memory there is for them; try again in a moment\n";
            return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "5")], why).into_response();
        }
        Ok(Err(Unfit::TooLarge)) => {
            let why = format!("a body has at most {BODY_BYTES_MAX} bytes\n");
            ("body", StatusCode::PAYLOAD_TOO_LARGE, why)
        }
        Ok(Err(Unfit::Broken)) => ("broken", StatusCode::BAD_REQUEST, "the body broke off\n".into()),
        Err(_) => ("slow", StatusCode::REQUEST_TIMEOUT, format!("the body did not come within {time:?}\n")),
    };
    shared.server.metrics.refused(reason);
    (status, why).into_response()
}

async fn whole(body: Body, room: &Arc<Semaphore>) -> Result<Whole, Unfit> {
    let (mut bytes, mut share, mut unfit) = (Vec::new(), None, None);
    let mut total = 0_usize;
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Unfit::Broken)?;
        let before = total;
        total = total.saturating_add(piece.len());
        if total > DISCARD_BYTES_MAX {
            break;
        }
        if total > BODY_BYTES_MAX {
            unfit = Some(Unfit::TooLarge);
        } else if unfit.is_none() && !has_room(room, before, total, &mut share) {
            unfit = Some(Unfit::NoRoom);
        }
        if unfit.is_some() {
            (bytes, share) = (Vec::new(), None);
        } else {
            bytes.extend_from_slice(&piece);
        }
    }
    match unfit {
        Some(unfit) => Err(unfit),
        None => Ok(Whole { bytes: bytes.into(), share }),
    }
}

/// Takes room for what a body grows by, as far as it is counted.
fn has_room(
    room: &Arc<Semaphore>,
    before: usize,
    total: usize,
    share: &mut Option<OwnedSemaphorePermit>,
) -> bool {
    let counted = total.saturating_sub(before.max(SMALL_BYTES_MAX));
    let Ok(counted) = u32::try_from(counted) else { return false };
    let Ok(more) = Arc::clone(room).try_acquire_many_owned(counted) else { return false };
    match share {
        Some(share) => share.merge(more),
        None => *share = Some(more),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::convert::Infallible;

    async fn taken_from(room: &Arc<Semaphore>, pieces: usize, piece_bytes: usize) -> Result<Whole, Unfit> {
        let piece = Bytes::from(vec![b'x'; piece_bytes]);
        let pieces = (0..pieces).map(move |_| Ok::<_, Infallible>(piece.clone()));
        whole(Body::from_stream(stream::iter(pieces)), room).await
    }

    async fn taken(pieces: usize, piece_bytes: usize) -> Option<usize> {
        let room = Arc::new(Semaphore::new(BODIES_BYTES_MAX));
        let taken = taken_from(&room, pieces, piece_bytes).await.ok().map(|whole| whole.bytes.len());
        assert_eq!(room.available_permits(), BODIES_BYTES_MAX, "all is given back");
        taken
    }

    #[tokio::test]
    async fn a_body_is_taken_up_to_its_limit() {
        assert_eq!(taken(0, 0).await, Some(0));
        assert_eq!(taken(4, 1 << 20).await, Some(BODY_BYTES_MAX));
        assert_eq!(taken(1, BODY_BYTES_MAX + 1).await, None);
        assert_eq!(taken(1000, 1 << 20).await, None);
    }

    #[tokio::test]
    async fn large_bodies_share_what_there_is_and_small_ones_always_come_in() {
        let room = Arc::new(Semaphore::new(2 * BODY_BYTES_MAX));
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(taken_from(&room, 4, 1 << 20).await.unwrap());
        }
        assert!(taken_from(&room, 1, SMALL_BYTES_MAX).await.is_ok());
        assert_eq!(taken_from(&room, 4, 1 << 20).await.unwrap_err(), Unfit::NoRoom);
        assert_eq!(taken_from(&room, 5, 1 << 20).await.unwrap_err(), Unfit::TooLarge);
        held.pop();
        assert!(taken_from(&room, 4, 1 << 20).await.is_ok());
        held.clear();
        assert_eq!(room.available_permits(), 2 * BODY_BYTES_MAX);
    }
}
