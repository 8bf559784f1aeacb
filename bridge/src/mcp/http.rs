//! MCP and plain queries over HTTP: routes, limits, and the listener. Who may ask is the `guard`'s.

mod body;
mod guard;
mod query;
mod sse;

pub use guard::{AddressError, Token, TokenError};

use super::{Metrics, Server};
use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::ListenerExt as _,
};
use guard::Guard;
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use sse::SseSessions;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Where it listens unless told otherwise.
pub const ADDRESS_DEFAULT: &str = "127.0.0.1:50051";
/// Bytes of a request's body.
pub const BODY_BYTES_MAX: usize = 4 << 20;
/// Sessions of `/mcp`, and as many of `/sse`.
pub const SESSIONS_MAX: usize = 64;
/// A session of `/mcp` that is quiet for so long is closed; a person may think for a while between two questions.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// How long answers that are under way may take when the server is told to stop.
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
    /// The listener broke.
    #[error("HTTP broke: {0}")]
    Broken(#[from] std::io::Error),
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
}

/// What every handler can reach.
#[derive(Clone, Debug)]
struct Shared {
    server: Server,
    guard: Arc<Guard>,
    sessions: Arc<LocalSessionManager>,
    sse: Arc<SseSessions>,
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
    let listener =
        TcpListener::bind(address).await.map_err(|source| HttpError::Listen { address, source })?;
    let stop = CancellationToken::new();
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_IDLE_MAX);
    let shared = Shared {
        server,
        guard: Arc::new(guard),
        sessions: Arc::new(sessions),
        sse: Arc::default(),
        stop: stop.clone(),
    };
    Ok(Listening { listener, router: router(shared, dress), stop })
}

impl Listening {
    /// Where it really listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stopped` is done; what is under way then has a little time to end.
    pub async fn serve(self, stopped: impl Future<Output = ()>) -> Result<(), HttpError> {
        let Self { listener, router, stop } = self;
        let listener = listener.tap_io(|stream| {
            // Without this an answer waits for the acknowledgement of the one before: 40 ms instead of 0.2.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY could not be set");
            }
        });
        let serving = axum::serve(listener, router)
            .with_graceful_shutdown(stop.clone().cancelled_owned())
            .into_future();
        tokio::pin!(serving);
        tokio::select! {
            ended = &mut serving => return Ok(ended?),
            () = stopped => stop.cancel(),
        }
        match tokio::time::timeout(STOP_TIMEOUT, serving).await {
            Ok(ended) => Ok(ended?),
            Err(_) => Ok(()),
        }
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
    let begin = move || Ok(dress(server.for_session()));
    let mcp = StreamableHttpService::new(begin, Arc::clone(&shared.sessions), config);
    let mcp = Router::new()
        .fallback_service(mcp)
        .layer(middleware::from_fn_with_state(shared.clone(), session_limit));
    Router::new()
        .nest("/mcp", mcp)
        .route(
            "/sse",
            get(async move |State(shared): State<Shared>| {
                let session = dress_sse(shared.server.for_session());
                sse::open(shared, session).await
            }),
        )
        .route("/messages", post(sse::message))
        .route("/messages/", post(sse::message))
        .route("/query", post(query::stream))
        .route("/metrics", get(metrics))
        .route(guard::OPEN_PATH, get(|| async { "ok\n" }))
        .layer(DefaultBodyLimit::disable()) // `body` has read it already, within its own limit
        .layer(middleware::from_fn_with_state(shared.clone(), body::limit))
        .layer(middleware::from_fn_with_state(shared.clone(), guard::check))
        .with_state(shared)
}

/// Refuses a request that would begin one session too many. Requests that begin at the same moment may pass together,
/// so the bound is exceeded by at most those.
async fn session_limit(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let has_sessions = headers
        .get("mcp-protocol-version")
        .and_then(|revision| revision.to_str().ok())
        .is_none_or(|revision| revision < REVISION_WITHOUT_SESSIONS);
    let begins = request.method() == Method::POST && has_sessions && !headers.contains_key("mcp-session-id");
    if begins && shared.sessions.sessions.read().await.len() >= SESSIONS_MAX {
        return too_many_sessions(&shared.server.metrics);
    }
    next.run(request).await
}

/// What a client is told that begins one session too many.
fn too_many_sessions(metrics: &Metrics) -> Response {
    metrics.refused("sessions");
    let why = format!("{SESSIONS_MAX} sessions are open, no more are taken; close one, or try again later\n");
    (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "30")], why).into_response()
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let mcp = shared.sessions.sessions.read().await.len();
    let gauges = [
        ("picolake_mcp_sessions", "Sessions of /mcp.", mcp),
        ("picolake_sse_sessions", "Sessions of /sse.", shared.sse.len()),
    ];
    let text = shared.server.metrics.text(&gauges);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}
