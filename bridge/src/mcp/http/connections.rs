//! Connections: how many, how long each may be slow, and how they end. What is asked over them is the router's.

use axum::{
    Router,
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_io_timeout::TimeoutStream;

/// Connections at once: each session may have one that stands and one for what it asks.
pub const CONNECTIONS_MAX: usize = 512;
/// How long a client may take to send the head of a request; a connection on which none comes is closed then, too.
pub const HEADERS_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a body may take to come.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client that does not take its answer is waited for.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// A session of `/mcp` that is quiet for so long is closed; a person may think for a while between two questions.
pub const SESSION_IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// Bytes of an answer that the system keeps for a client that is slower than the server.
const SEND_BYTES_MAX: u32 = 64 << 10;
/// Bytes of an answer, and of a request's head, that are in memory besides.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Connections that the system keeps until they are accepted.
const WAITING_MAX: u32 = 1024;
/// Connections that are being told that they are too many; more are closed without a word.
const REFUSED_AT_ONCE_MAX: usize = 32;
/// How long it may take to tell them.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait when the system has no connection to give: it may be out of files for a while.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How many clients there may be, and how slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// For the head of a request.
    pub headers: Duration,
    /// For its body.
    pub body: Duration,
    /// For a client that takes nothing of its answer.
    pub write: Duration,
    /// For a session of `/mcp` in which nothing happens.
    pub session_idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS_MAX,
            headers: HEADERS_TIMEOUT,
            body: BODY_TIMEOUT,
            write: WRITE_TIMEOUT,
            session_idle: SESSION_IDLE_MAX,
        }
    }
}

/// Takes the address.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    #[cfg(unix)] // elsewhere it would let two programs have one address
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BYTES_MAX)?; // every connection has it from here
    socket.bind(address)?;
    socket.listen(WAITING_MAX)
}

/// Every connection that is open.
pub(super) struct Connections {
    router: Router,
    limits: Limits,
    places: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
    open: GracefulShutdown,
}

impl Connections {
    pub(super) fn new(router: Router, limits: Limits) -> Self {
        Self {
            router,
            limits,
            places: Arc::new(Semaphore::new(limits.connections)),
            refusals: Arc::new(Semaphore::new(REFUSED_AT_ONCE_MAX)),
            open: GracefulShutdown::new(),
        }
    }

    /// Takes connections until it is dropped; each is served by a task of its own.
    pub(super) async fn accept(&self, listener: &TcpListener) -> Infallible {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // Without this an answer waits for the acknowledgement of the one before: 40 ms instead of 0.2.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY could not be set");
            }
            match Arc::clone(&self.places).try_acquire_owned() {
                Ok(place) => self.serve(stream, place),
                Err(_) => self.refuse(stream),
            }
        }
    }

    /// Lets every connection end after the answer that is under way on it, and waits for that.
    pub(super) async fn end(self) {
        self.open.shutdown().await;
    }

    fn serve(&self, stream: TcpStream, place: OwnedSemaphorePermit) {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.limits.write));
        let service = TowerToHyperService::new(self.router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.headers)
            .max_buf_size(BUFFER_BYTES_MAX)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        let connection = self.open.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended badly");
            }
            drop(place);
        });
    }

    /// Tells a client that there are too many, as far as there is room even for that.
    fn refuse(&self, stream: TcpStream) {
        tracing::debug!("a connection too many is refused");
        let Ok(place) = Arc::clone(&self.refusals).try_acquire_owned() else { return };
        let connections = self.limits.connections;
        let service = service_fn(move |_: hyper::Request<Incoming>| async move {
            Ok::<_, Infallible>(too_many_connections(connections))
        });
        tokio::spawn(async move {
            let told = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REFUSAL_TIMEOUT)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            if tokio::time::timeout(REFUSAL_TIMEOUT, told).await.is_err() {
                tracing::debug!("a client did not stay to hear that it is one too many");
            }
            drop(place);
        });
    }
}

fn too_many_connections(connections: usize) -> Response<Body> {
    let why =
        format!("{connections} connections are open, no more are taken; close some, or try again later\n");
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "5")], why).into_response()
}
