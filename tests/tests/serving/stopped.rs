//! A server that is told to stop: what was asked is answered, nothing more is taken, and it ends well; told twice, it
//! ends at once.

use picolake_tests::{
    serving::{Piped, Serving},
    slow_board::SlowBoard,
};
use reqwest::Client;
use serde_json::json;
use std::time::{Duration, Instant};

/// So slow that nothing comes.
const BYTES_PER_S: u64 = 1;
/// Enough for an export's head, and not for all its rows while a test runs.
const EXPORT_BYTES_PER_S: u64 = 500;
/// A program that ends at once is gone by then, also on a busy machine; a call that hangs on its board is not.
const AT_ONCE: Duration = Duration::from_secs(4);

fn status_call(id: u64) -> serde_json::Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "query", "arguments": {"table": "vibration", "limit": 1}}})
}

/// A server over pipes with a call that hangs on its board.
async fn hanging_over_stdio(board: &SlowBoard) -> Piped {
    let server = Piped::start(&["--config", board.config().to_str().unwrap()]);
    hanging(board, server).await
}

/// The owner of the board, and a server that asks it and has a call that hangs.
async fn hanging_as_a_guest(board: &SlowBoard) -> (Piped, Piped) {
    let [owner, guest] = Piped::start_two(&["--config", board.config().to_str().unwrap()]);
    (owner, hanging(board, guest).await)
}

async fn hanging(board: &SlowBoard, mut server: Piped) -> Piped {
    server.send(&status_call(1));
    assert_eq!(server.receive().unwrap()["result"]["isError"], false);
    board.slow_down(BYTES_PER_S);
    server.send(&status_call(2));
    board.runs(1).await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn over_stdio_a_call_in_flight_is_answered_before_the_program_ends() {
    for signal in ["TERM", "INT"] {
        let board = SlowBoard::start().await;
        let mut server = hanging_over_stdio(&board).await;
        server.signal(signal);
        board.slow_down(0);
        let answer = server.receive().expect("an answer");
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(2), &json!(false)), "{answer}");
        assert_eq!(server.receive(), None);
        assert_eq!(server.wait().code(), Some(0), "SIG{signal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_stdio_a_second_signal_ends_the_program_at_once() {
    let board = SlowBoard::start().await;
    let mut server = hanging_over_stdio(&board).await;
    let begun = Instant::now();
    server.signal("INT");
    server.signal("TERM");
    while let Some(told) = server.receive() {
        assert_eq!(told["result"]["isError"], true, "{told}"); // there may be time to say that it is not answered
    }
    assert_eq!(server.wait().code(), Some(2));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn as_a_guest_a_call_in_flight_is_answered_before_the_program_ends() {
    for signal in ["TERM", "INT"] {
        let board = SlowBoard::start().await;
        let (mut owner, mut guest) = hanging_as_a_guest(&board).await;
        guest.signal(signal);
        board.slow_down(0);
        let answer = guest.receive().expect("an answer");
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(2), &json!(false)), "{answer}");
        assert_eq!(guest.receive(), None);
        assert_eq!(guest.wait().code(), Some(0), "SIG{signal}");
        owner.send(&status_call(3));
        assert_eq!(owner.receive().unwrap()["result"]["isError"], false, "the owner goes on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn as_a_guest_a_second_signal_ends_the_program_at_once() {
    let board = SlowBoard::start().await;
    let (_owner, mut guest) = hanging_as_a_guest(&board).await;
    let begun = Instant::now();
    guest.signal("INT");
    guest.signal("TERM");
    assert_eq!(guest.wait().code(), Some(2));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

/// A session of `/mcp` with a call that hangs on the board.
async fn hanging_over_http(board: &SlowBoard, client: &Client) -> (Serving, reqwest::Response) {
    let server = Serving::start(&["--config", board.config().to_str().unwrap()]);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "stopped", "version": "1"}}});
    let post = |message: &serde_json::Value| {
        let accepted = "application/json, text/event-stream";
        client.post(server.at("/mcp")).header("accept", accepted).json(message)
    };
    let greeting = post(&hello).send().await.unwrap();
    let id = greeting.headers()["mcp-session-id"].clone();
    let call = |id_of_call| post(&status_call(id_of_call)).header("mcp-session-id", id.clone()).send();
    assert!(call(1).await.unwrap().text().await.unwrap().contains("timestamp"));
    board.slow_down(BYTES_PER_S);
    let answer = call(2).await.unwrap();
    board.runs(1).await;
    (server, answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_a_call_in_flight_is_answered_and_nothing_more_is_taken() {
    for signal in ["TERM", "INT"] {
        let board = SlowBoard::start().await;
        let client = Client::new();
        let (mut server, answer) = hanging_over_http(&board, &client).await;
        // One that stands open for messages to come does not hold the end up.
        let standing = client.get(server.at("/sse")).send().await.unwrap();
        server.signal(signal);
        while Client::new().get(server.at("/healthz")).send().await.is_ok() {} // until nothing more is taken
        board.slow_down(0);
        let answer = answer.text().await.unwrap();
        assert!(answer.contains("\"id\":2") && answer.contains("\"isError\":false"), "{answer}");
        assert_eq!(server.wait().code(), Some(0), "SIG{signal}");
        drop(standing);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_a_second_signal_ends_the_program_at_once() {
    let board = SlowBoard::start().await;
    let (mut server, _answer) = hanging_over_http(&board, &Client::new()).await;
    let begun = Instant::now();
    server.signal("TERM");
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(2));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn over_the_sse_pair_a_call_in_flight_is_answered_before_the_program_ends() {
    use futures_util::StreamExt as _;
    let board = SlowBoard::start().await;
    let client = Client::new();
    let (mut server, _answer) = hanging_over_http(&board, &client).await;
    let mut events = client.get(server.at("/sse")).send().await.unwrap().bytes_stream();
    let first = String::from_utf8(events.next().await.unwrap().unwrap().to_vec()).unwrap();
    let route = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}});
    for message in [hello, status_call(2)] {
        assert!(client.post(server.at(&route)).json(&message).send().await.unwrap().status().is_success());
    }
    board.runs(2).await;
    server.signal("TERM");
    while Client::new().get(server.at("/healthz")).send().await.is_ok() {}
    board.slow_down(0);
    let mut told = String::new();
    while let Some(Ok(piece)) = events.next().await {
        told.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert!(told.contains("\"id\":2") && told.contains("\"isError\":false"), "{told}");
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_runs_when_the_program_ends_leaves_nothing() {
    for signal in [Some("TERM"), None] {
        let board = SlowBoard::start().await;
        let folder = tempfile::tempdir().unwrap();
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        let folder_name = folder.path().to_str().unwrap();
        let config = board.config();
        let mut server =
            Piped::start(&["--config", config.to_str().unwrap(), "--export-folder", folder_name]);
        server.answer(1, "query", json!({"table": "vibration", "limit": 1}));
        board.slow_down(EXPORT_BYTES_PER_S);
        let job = server.answer(2, "export", json!({"table": "vibration", "file": "all.csv"}));
        assert_eq!((&job["state"], files()), (&json!("running"), 1), "{job}");
        match signal {
            Some(signal) => server.signal(signal),
            None => server.end_input(),
        }
        assert_eq!(server.wait().code(), Some(0), "{signal:?}");
        assert_eq!(files(), 0, "{signal:?}");
    }
}
