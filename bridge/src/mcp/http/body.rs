//! Bodies of requests, read whole within their limits before anybody looks at them.

use super::{BODY_BYTES_MAX, Shared};
use axum::{
    body::{Body, Bytes, HttpBody as _},
    extract::{Request, State},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::StreamExt as _;

/// Bytes that are read and thrown away, so that a client that sends too many hears why before its line is cut.
const DISCARD_BYTES_MAX: usize = 32 << 20;

/// Why a body was not taken.
enum Unfit {
    TooLarge,
    Broken,
}

/// Lets a request pass with its body in memory, or says why not.
pub(super) async fn limit(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let time = shared.limits.body;
    let (reason, status, why) = match tokio::time::timeout(time, whole(body)).await {
        Ok(Ok(bytes)) => return next.run(Request::from_parts(parts, Body::from(bytes))).await,
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

async fn whole(body: Body) -> Result<Bytes, Unfit> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let mut bytes = Vec::new();
    let mut total = 0_usize;
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Unfit::Broken)?;
        total = total.saturating_add(piece.len());
        if total > DISCARD_BYTES_MAX {
            break;
        }
        if total > BODY_BYTES_MAX {
            bytes = Vec::new();
        } else {
            bytes.extend_from_slice(&piece);
        }
    }
    if total > BODY_BYTES_MAX { Err(Unfit::TooLarge) } else { Ok(bytes.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::convert::Infallible;

    async fn taken(pieces: usize, piece_bytes: usize) -> Option<usize> {
        let piece = Bytes::from(vec![b'x'; piece_bytes]);
        let pieces = (0..pieces).map(move |_| Ok::<_, Infallible>(piece.clone()));
        whole(Body::from_stream(stream::iter(pieces))).await.ok().map(|bytes| bytes.len())
    }

    #[tokio::test]
    async fn a_body_is_taken_up_to_its_limit() {
        assert_eq!(taken(0, 0).await, Some(0));
        assert_eq!(taken(4, 1 << 20).await, Some(BODY_BYTES_MAX));
        assert_eq!(taken(1, BODY_BYTES_MAX + 1).await, None);
        assert_eq!(taken(1000, 1 << 20).await, None);
    }
}
