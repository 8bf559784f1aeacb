//! The older way of MCP over HTTP: `GET /sse` is the stream to the client, `POST /messages/?session_id=` the way back.

use super::{SESSIONS_MAX, Shared, too_many_sessions};
use crate::mcp::stdio::Draining;
use axum::{
    body::Bytes,
    extract::{Query, State},
    http::StatusCode,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{StreamExt as _, stream};
use rmcp::{
    RoleServer, ServerHandler, ServiceExt as _,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::sink_stream::SinkStreamTransport,
};
use serde::Deserialize;
use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, PollSender};

/// Messages that wait in each direction of a session.
const MESSAGES_WAITING_MAX: usize = 64;

/// The sessions that have a stream open.
#[derive(Debug, Default)]
pub(super) struct SseSessions {
    senders: Mutex<HashMap<String, mpsc::Sender<ClientJsonRpcMessage>>>,
}

impl SseSessions {
    pub(super) fn len(&self) -> usize {
        self.change(|senders| senders.len())
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut HashMap<String, mpsc::Sender<ClientJsonRpcMessage>>) -> T,
    ) -> T {
        change(&mut self.senders.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A session's place; it is given back, and its calls are cancelled, when the stream is dropped.
struct Place {
    sessions: Arc<SseSessions>,
    id: String,
    ended: CancellationToken,
}

impl Place {
    /// A place under an id that nobody can guess, or none if all are taken.
    fn take(
        sessions: &Arc<SseSessions>,
        sender: mpsc::Sender<ClientJsonRpcMessage>,
        ended: CancellationToken,
    ) -> Option<Self> {
        let id = format!("{:032x}", rand::random::<u128>());
        let is_taken = sessions.change(|senders| {
            let has_room = senders.len() < SESSIONS_MAX;
            if has_room {
                senders.insert(id.clone(), sender);
            }
            has_room
        });
        is_taken.then(|| Self { sessions: Arc::clone(sessions), id, ended })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.sessions.change(|senders| senders.remove(&self.id));
        self.ended.cancel();
    }
}

/// Begins a session: the first event says where to post, each later one is a message.
pub(super) async fn open(shared: Shared, server: impl ServerHandler, ended: CancellationToken) -> Response {
    let (to_server, mut from_client) = mpsc::channel::<RxJsonRpcMessage<RoleServer>>(MESSAGES_WAITING_MAX);
    let (to_client, mut from_server) = mpsc::channel::<TxJsonRpcMessage<RoleServer>>(MESSAGES_WAITING_MAX);
    let Some(place) = Place::take(&shared.sse, to_server, ended.clone()) else {
        return too_many_sessions(&shared.server.metrics);
    };
    let incoming = stream::poll_fn(move |task| from_client.poll_recv(task));
    let transport = SinkStreamTransport::new(PollSender::new(to_client), incoming);
    let transport = Draining::new(transport, shared.ending.clone());
    // What was asked is answered over the stream before the server ends.
    shared.asked.spawn(async move {
        match server.serve_with_ct(transport, ended).await {
            Ok(running) => drop(running.waiting().await),
            Err(error) => tracing::debug!(%error, "a session of /sse did not begin"),
        }
    });
    let first = Event::default().event("endpoint").data(format!("/messages/?session_id={}", place.id));
    let messages = stream::poll_fn(move |task| {
        let _held = &place; // the stream is the session: dropping one ends the other
        from_server.poll_recv(task)
    });
    let events = stream::iter([first]).chain(messages.filter_map(|message| async move { event(&message) }));
    Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(KeepAlive::default()).into_response()
}

fn event(message: &ServerJsonRpcMessage) -> Option<Event> {
    let text = serde_json::to_string(message);
    let text = text.inspect_err(|error| tracing::error!(%error, "a message cannot be written")).ok()?;
    Some(Event::default().event("message").data(text))
}

#[derive(Debug, Deserialize)]
pub(super) struct Session {
    session_id: String,
}

/// Takes one message of a session; its answer comes over the stream.
pub(super) async fn message(
    State(shared): State<Shared>,
    Query(Session { session_id }): Query<Session>,
    body: Bytes,
) -> Response {
    let Some(sender) = shared.sse.change(|senders| senders.get(&session_id).cloned()) else {
        return (StatusCode::NOT_FOUND, "there is no such session; begin one with GET /sse\n")
            .into_response();
    };
    let message: ClientJsonRpcMessage = match serde_json::from_slice(&body) {
        Ok(message) => message,
        Err(error) => {
            return (StatusCode::BAD_REQUEST, format!("this is no message of MCP: {error}\n"))
                .into_response();
        }
    };
    match sender.try_send(message) {
        Ok(()) => (StatusCode::ACCEPTED, "Accepted").into_response(),
        Err(mpsc::error::TrySendError::Full(_)) => {
            shared.server.metrics.refused("messages");
            (StatusCode::TOO_MANY_REQUESTS, "too many messages wait; read the stream first\n").into_response()
        }
        Err(mpsc::error::TrySendError::Closed(_)) => {
            (StatusCode::GONE, "the session has ended; begin another with GET /sse\n").into_response()
        }
    }
}
