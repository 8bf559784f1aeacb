//! A call that nobody wants any more ends on the board, too, however the client says so.

use futures_util::StreamExt as _;
use picolake_tests::{
    serving::{Piped, Serving},
    slow_board::SlowBoard,
};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// So slow that nothing comes; a bridge gives such a link up after some 7 s.
const BYTES_PER_S: u64 = 1;
/// So slow that rows come for longer than a test takes.
const BYTES_PER_S_OF_ROWS: u64 = 400;
/// A call that is cancelled ends on the board long before the link would be given up.
const CANCEL_MAX: Duration = Duration::from_secs(4);

fn rows() -> Value {
    json!({"table": "vibration", "limit": 1000})
}

fn message(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Waits until the board runs the query, lets `leave` happen, and waits until the board runs it no more.
async fn ends_on_the_board(board: &SlowBoard, leave: impl AsyncFnOnce()) {
    board.runs(1).await;
    let begun = Instant::now();
    leave().await;
    board.runs(0).await;
    assert!(begun.elapsed() < CANCEL_MAX, "the board went on for {:?}", begun.elapsed());
    assert_eq!(board.connections(), 1, "the link itself was not given up");
    board.slow_down(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_over_stdio_ends_on_the_board() {
    let board = SlowBoard::start().await;
    let mut server = Piped::start(&["--config", board.config().to_str().unwrap()]);
    server.call(1, "query", json!({"table": "vibration", "limit": 1})); // now it knows the board's tables
    assert_eq!(server.receive().unwrap()["result"]["isError"], false);
    board.slow_down(BYTES_PER_S);
    server.call(2, "query", rows());
    ends_on_the_board(&board, async || {
        let cancelled = json!({"requestId": 2});
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    })
    .await;
    server.call(3, "list_databases", json!({}));
    assert_eq!(server.receive().unwrap()["id"], 3, "what was cancelled has no answer");
}

/// A server on the board, and a session of `/mcp` with it.
struct Session {
    server: Serving,
    client: Client,
    id: String,
}

impl Session {
    async fn begin(board: &SlowBoard) -> Self {
        let server = Serving::start(&["--config", board.config().to_str().unwrap()]);
        let client = Client::new();
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "cancelled", "version": "1"}});
        let mut session = Self { server, client, id: String::new() };
        let answer = session.post(&message(1, "initialize", &hello)).send().await.unwrap();
        session.id = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        // Now it knows the board's tables.
        let one = session.call(2, "query", &json!({"table": "vibration", "limit": 1})).send().await.unwrap();
        assert!(one.text().await.unwrap().contains("timestamp"));
        board.slow_down(BYTES_PER_S);
        session
    }

    fn post(&self, message: &Value) -> RequestBuilder {
        let mut request = self
            .client
            .post(self.server.at("/mcp"))
            .header("accept", "application/json, text/event-stream")
            .json(message);
        if !self.id.is_empty() {
            request = request.header("mcp-session-id", &self.id).header("mcp-protocol-version", "2025-06-18");
        }
        request
    }

    fn call(&self, id: u64, tool: &str, arguments: &Value) -> RequestBuilder {
        self.post(&message(id, "tools/call", &json!({"name": tool, "arguments": arguments})))
    }

    /// The same server answers as before, and no call runs.
    async fn goes_on(&self) {
        let metrics = self.client.get(self.server.at("/metrics")).send().await.unwrap().text().await.unwrap();
        assert!(metrics.lines().any(|line| line == "picolake_calls_running 0"), "{metrics}");
        let answer = self.call(9, "list_databases", &json!({})).send().await.unwrap();
        assert!(answer.text().await.unwrap().contains("demo"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_over_http_ends_on_the_board() {
    let board = SlowBoard::start().await;
    let session = Session::begin(&board).await;
    let _answer = session.call(3, "query", &rows()).send().await.unwrap();
    ends_on_the_board(&board, async || {
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
        let taken = session.post(&cancelled).send().await.unwrap();
        assert_eq!(taken.status(), StatusCode::ACCEPTED);
    })
    .await;
    session.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_closed_over_http_ends_its_calls_on_the_board() {
    let board = SlowBoard::start().await;
    let session = Session::begin(&board).await;
    let _answer = session.call(3, "query", &rows()).send().await.unwrap();
    ends_on_the_board(&board, async || {
        let closed = session.client.delete(session.server.at("/mcp")).header("mcp-session-id", &session.id);
        assert!(closed.send().await.unwrap().status().is_success());
    })
    .await;
}

/// In the revision without sessions nobody can come back for an answer: who leaves has cancelled.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_session_that_leaves_cancels_its_call_on_the_board() {
    let board = SlowBoard::start().await;
    let session = Session::begin(&board).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": "query", "arguments": rows(), "_meta": meta});
    let asking = session
        .client
        .post(session.server.at("/mcp"))
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "query")
        .json(&message(1, "tools/call", &params));
    let asking = tokio::spawn(asking.send());
    ends_on_the_board(&board, async || asking.abort()).await;
    session.goes_on().await;
}

/// In the older pair the stream is the session.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_sse_pair_that_leaves_cancels_its_calls_on_the_board() {
    let board = SlowBoard::start().await;
    let session = Session::begin(&board).await;
    let stream = session.client.get(session.server.at("/sse")).send().await.unwrap();
    let mut events = stream.bytes_stream();
    let first = String::from_utf8(events.next().await.unwrap().unwrap().to_vec()).unwrap();
    let route = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let hello = json!({"protocolVersion": "2024-11-05", "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"}});
    for message in [
        message(1, "initialize", &hello),
        message(2, "tools/call", &json!({"name": "query", "arguments": rows()})),
    ] {
        let taken = session.client.post(session.server.at(&route)).json(&message).send().await.unwrap();
        assert_eq!(taken.status(), StatusCode::ACCEPTED);
    }
    ends_on_the_board(&board, async || drop(events)).await;
    session.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_a_stream_of_rows_ends_it_on_the_board() {
    let board = SlowBoard::start().await;
    let session = Session::begin(&board).await;
    board.slow_down(BYTES_PER_S_OF_ROWS);
    let question = json!({"database": "demo", "sql": "SELECT * FROM vibration"});
    let stream = session.client.post(session.server.at("/query")).json(&question).send().await.unwrap();
    let mut lines = stream.bytes_stream();
    assert!(lines.next().await.unwrap().unwrap().starts_with(b"{\"type\":\"data\""), "rows come");
    board.slow_down(BYTES_PER_S);
    ends_on_the_board(&board, async || drop(lines)).await;
    session.goes_on().await;
}
