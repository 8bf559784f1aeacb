//! MCP and plain queries over HTTP: routes, limits, and the listener. Who may ask is the `guard`'s.

mod body;
mod connections;
mod guard;
mod held;
mod query;
mod sessions;
mod sse;

pub use connections::{
    BODY_TIMEOUT, CONNECTIONS_MAX, HEADERS_TIMEOUT, Limits, SESSION_IDLE_MAX, WRITE_TIMEOUT,
};
pub use guard::{AddressError, Token, TokenError};

use super::{CALL_GRACE, CALL_TIMEOUT, Metrics, Server};
use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use connections::Connections;
use guard::Guard;
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService},
};
use sessions::Sessions;
use sse::SseSessions;
use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Where it listens unless told otherwise.
pub const ADDRESS_DEFAULT: &str = "127.0.0.1:50051";
/// Bytes of a request's body.
pub const BODY_BYTES_MAX: usize = 4 << 20;
/// Sessions of `/mcp`, and as many of `/sse`.
pub const SESSIONS_MAX: usize = 64;
/// How long connections may take to end when the server stops and every call has its answer, or its time is over.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// The first revision of MCP that has no sessions; the names of revisions are dates and sort as they came.
const REVISION_WITHOUT_SESSIONS: &str = "2026-07-28";

/// Where to listen, and who may ask.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address.
    pub address: SocketAddr,
    /// What every request must carry. An address that other machines reach needs one.
    pub token: Option<Token>,
    /// Names besides its own addresses by which clients may reach it.
    pub hosts: Vec<String>,
}

/// Why HTTP cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address is open to others and nothing keeps them out.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The address cannot be had.
    #[error(
        "cannot listen on {address}: {source}; choose another with --http ADDR (port 0 lets the system choose)"
    )]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

/// A server that listens and does not answer yet.
pub struct Listening {
    listener: TcpListener,
    server: Server,
    guard: Guard,
    limits: Limits,
    /// Makes the routes, with what stands around the server of each session.
    routes: Box<dyn FnOnce(Shared) -> Router + Send>,
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// What every handler can reach.
#[derive(Clone, Debug)]
struct Shared {
    server: Server,
    guard: Arc<Guard>,
    limits: Limits,
    sessions: Arc<Sessions>,
    sse: Arc<SseSessions>,
    /// Bytes of bodies that may still come into memory.
    bodies: Arc<Semaphore>,
    /// Answers that are under way.
    asked: TaskTracker,
    /// Cancelled when nothing more is to be begun.
    ending: CancellationToken,
    /// Cancelled when everything that is still there is to be given up.
    stop: CancellationToken,
}

/// Takes the address. What was wrong with the options is told before anything listens.
pub async fn listen(server: Server, options: Options) -> Result<Listening, HttpError> {
    listen_as(server, |session| session, options).await
}

/// The same with something around the server of each session, which may answer for it.
pub async fn listen_as<H: ServerHandler>(
    server: Server,
    dress: impl Fn(Server) -> H + Clone + Send + Sync + 'static,
    options: Options,
) -> Result<Listening, HttpError> {
    let guard = Guard::new(&options)?;
    let address = options.address;
    let listener = connections::bind(address).map_err(|source| HttpError::Listen { address, source })?;
    let routes = Box::new(|shared| router(shared, dress));
    Ok(Listening { listener, server, guard, limits: Limits::default(), routes })
}

impl Listening {
    /// The same with other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Where it really listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stopped` is done. What is under way then is answered, within a call's time; nothing more is
    /// taken.
    pub async fn serve(self, stopped: impl Future<Output = ()>) -> Result<(), HttpError> {
        let Self { listener, server, guard, limits, routes } = self;
        let (ending, stop) = (CancellationToken::new(), CancellationToken::new());
        let asked = TaskTracker::new();
        let shared = Shared {
            server,
            guard: Arc::new(guard),
            limits,
            sessions: Arc::new(Sessions::new(limits.session_idle)),
            sse: Arc::default(),
            bodies: Arc::new(Semaphore::new(body::BODIES_BYTES_MAX)),
            asked: asked.clone(),
            ending: ending.clone(),
            stop: stop.clone(),
        };
        let connections = Connections::new(routes(shared), limits);
        tokio::select! {
            never = connections.accept(&listener) => match never {},
            () = stopped => ending.cancel(),
        }
        drop(listener);
        asked.close();
        let ended = tokio::spawn(connections.end());
        if timeout(CALL_TIMEOUT + CALL_GRACE, asked.wait()).await.is_err() {
            tracing::warn!("some answers were not whole when their time was over");
        }
        stop.cancel(); // what stands open for messages to come, and what took too long
        if timeout(STOP_TIMEOUT, ended).await.is_err() {
            tracing::warn!("some connections did not end by themselves");
        }
        Ok(())
    }
}

fn router<H: ServerHandler>(
    shared: Shared,
    dress: impl Fn(Server) -> H + Clone + Send + Sync + 'static,
) -> Router {
    let (server, dress_sse) = (shared.server.clone(), dress.clone());
    // The guard checks Host and Origin of every route, so rmcp's own checks, which know only this one, are off.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_cancellation_token(shared.stop.clone());
    let begin = move || Ok(dress(server.for_session(Sessions::ended())));
    let mcp = StreamableHttpService::new(begin, Arc::clone(&shared.sessions), config);
    let mcp = Router::new()
        .fallback_service(mcp)
        .layer(middleware::from_fn_with_state(shared.clone(), session_limit));
    Router::new()
        .nest("/mcp", mcp)
        .route(
            "/sse",
            get(async move |State(shared): State<Shared>| {
                let ended = shared.stop.child_token();
                let session = dress_sse(shared.server.for_session(ended.clone()));
                sse::open(shared, session, ended).await
            }),
        )
        .route("/messages", post(sse::message))
        .route("/messages/", post(sse::message))
        .route("/query", post(query::stream))
        .route("/metrics", get(metrics))
        .route(guard::OPEN_PATH, get(|| async { "ok\n" }))
        .layer(DefaultBodyLimit::disable()) // `body` has read it already, within its own limit
        .layer(middleware::from_fn_with_state(shared.clone(), body::limit))
        .layer(middleware::from_fn_with_state(shared.clone(), held::until_answered))
        .layer(middleware::from_fn_with_state(shared.clone(), guard::check))
        .with_state(shared)
}

/// Refuses a request that would begin one session too many.
async fn session_limit(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let has_sessions = headers
        .get("mcp-protocol-version")
        .and_then(|revision| revision.to_str().ok())
        .is_none_or(|revision| revision < REVISION_WITHOUT_SESSIONS);
    let begins = request.method() == Method::POST && has_sessions && !headers.contains_key("mcp-session-id");
    if !begins {
        return next.run(request).await;
    }
    let answer = shared.sessions.with_place(next.run(request)).await;
    answer.unwrap_or_else(|| too_many_sessions(&shared.server.metrics))
}

/// What a client is told that begins one session too many.
fn too_many_sessions(metrics: &Metrics) -> Response {
    metrics.refused("sessions");
    let why = format!("{SESSIONS_MAX} sessions are open, no more are taken; close one, or try again later\n");
    (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "30")], why).into_response()
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let gauges = [
        ("picolake_mcp_sessions", "Sessions of /mcp.", shared.sessions.len()),
        ("picolake_sse_sessions", "Sessions of /sse.", shared.sse.len()),
        ("picolake_calls_running", "Calls that run now.", shared.server.calls_running()),
    ];
    let text = shared.server.metrics.text(&gauges);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}
