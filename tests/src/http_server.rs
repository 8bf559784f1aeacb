//! The HTTP server inside the test, with limits that a test chooses, and clients that speak to it in raw bytes.

use picolake::mcp::{
    Server,
    http::{self, Limits, Options},
};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

/// Bytes that a client's system takes for it while it reads nothing.
const RECEIVE_BYTES: u32 = 4096;

/// A server; it stops when this is dropped.
#[derive(Debug)]
pub struct HttpServer {
    /// Where it listens.
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl HttpServer {
    /// Serves on a port that the system chooses.
    pub async fn start(server: Server, limits: Limits) -> Self {
        Self::start_for(server, limits, Vec::new()).await
    }

    /// The same, reached also under other names.
    pub async fn start_for(server: Server, limits: Limits, hosts: Vec<String>) -> Self {
        let options = Options { address: ([127, 0, 0, 1], 0).into(), token: None, hosts };
        let listening = http::listen(server, options).await.expect("a port").with_limits(limits);
        let address = listening.address().expect("it has one");
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            listening.serve(stopped).await.expect("it ends well");
        });
        Self { address, stop: Some(stop), serving }
    }

    /// The address of a route.
    pub fn at(&self, route: &str) -> String {
        format!("http://{}{route}", self.address)
    }

    /// Tells it to stop, and waits until it has.
    pub async fn stop(mut self) {
        self.stop = None;
        (&mut self.serving).await.expect("it ends");
    }

    /// A connection on which these bytes are sent.
    pub async fn connect(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        stream.write_all(bytes).await.expect("it reads");
        stream
    }

    /// The same for a client that takes only a few bytes before it reads.
    pub async fn connect_narrow(&self, bytes: &[u8]) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(RECEIVE_BYTES).expect("it has a buffer");
        let mut stream = socket.connect(self.address).await.expect("it listens");
        stream.write_all(bytes).await.expect("it reads");
        stream
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A request without a body.
pub fn get(route: &str) -> Vec<u8> {
    format!("GET {route} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
}

/// A request with a JSON body, of which it sends so many bytes.
pub fn post(route: &str, body: &str, sent: usize) -> Vec<u8> {
    let head =
        "host: localhost\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json";
    let length = body.len();
    let sent = &body[..sent.min(length)];
    format!("POST {route} HTTP/1.1\r\n{head}\r\ncontent-length: {length}\r\n\r\n{sent}").into_bytes()
}

/// Everything that comes until the server closes; a connection that is reset is closed, too.
pub async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}
