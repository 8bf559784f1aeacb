//! Answers that are under way: the server does not end before they are whole. Looks at no answer.

use super::Shared;
use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    http::Method,
    middleware::Next,
    response::Response,
};
use hyper::body::{Frame, SizeHint};
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio_util::task::task_tracker::TaskTrackerToken;

/// A body, and the token that it gives back when it is whole or nobody wants it any more.
struct Held {
    body: Body,
    _token: TaskTrackerToken,
}

/// Counts a request as asked until its answer is whole. What a client GETs is a state, or a stream that stands open for
/// messages to come: that is not waited for.
pub(super) async fn until_answered(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    if request.method() == Method::GET {
        return next.run(request).await;
    }
    let token = shared.asked.token();
    let response = next.run(request).await;
    response.map(|body| Body::new(Held { body, _token: token }))
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
