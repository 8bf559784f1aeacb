//! More clients and calls than there are places for: those that are too many are told so, the others are served.

use futures_util::future::join_all;
use picolake::{
    field::Field,
    mcp::{
        CALLS_RUNNING_MAX, Server,
        http::{Limits, SESSIONS_MAX},
    },
    tools::{Options, Tools},
};
use picolake_tests::{
    http_server::{HttpServer, get, read_to_end},
    serving::Piped,
    slow_board::SlowBoard,
};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);
/// How many begin a session at the same moment.
const AT_ONCE: usize = SESSIONS_MAX + 20;

async fn server(limits: Limits) -> HttpServer {
    let tools = Tools::new(Field::new([]), Options::default()).unwrap();
    HttpServer::start(Server::new(tools), limits).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_too_many_is_told_so_at_once_and_the_others_are_answered() {
    let board = SlowBoard::start().await;
    let mut server = Piped::start(&["--config", board.config().to_str().unwrap()]);
    server.call(0, "node_status", json!({}));
    assert_eq!(server.receive().unwrap()["result"]["isError"], false);
    board.slow_down(1);
    let calls = CALLS_RUNNING_MAX as u64 + 1;
    for id in 1..=calls {
        server.call(id, "node_status", json!({}));
    }
    let first = server.receive().unwrap();
    let error: Value = serde_json::from_str(first["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&first["result"]["isError"], &error["code"]), (&json!(true), &json!("busy")), "{first}");
    assert!(error["suggested_action"].as_str().unwrap().contains("try again"), "{error}");
    board.slow_down(0);
    let mut answered = vec![first["id"].as_u64().unwrap()];
    for _ in 1..calls {
        let answer = server.receive().unwrap();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answered.push(answer["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, (1..=calls).collect::<Vec<_>>());
    server.call(99, "list_databases", json!({}));
    assert_eq!(server.receive().unwrap()["result"]["isError"], false, "there is room again");
}

async fn begin(client: &Client, server: &HttpServer) -> Response {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "many", "version": "1"}}});
    let request = client.post(server.at("/mcp")).header("accept", "application/json, text/event-stream");
    request.json(&hello).send().await.unwrap()
}

/// Checks that exactly as many were taken as there are places, and that the others were told what to do.
async fn taken(answers: Vec<Response>) -> Vec<Response> {
    let (taken, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status() == StatusCode::OK);
    assert_eq!((taken.len(), refused.len()), (SESSIONS_MAX, AT_ONCE - SESSIONS_MAX));
    for answer in refused {
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(answer.headers().contains_key("retry-after"));
        assert!(answer.text().await.unwrap().contains("close one, or try again later"));
    }
    taken
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_begin_at_the_same_moment_are_never_too_many() {
    let server = server(Limits::default()).await;
    let client = Client::new();
    let answers = join_all((0..AT_ONCE).map(|_| begin(&client, &server))).await;
    let taken = taken(answers).await;
    // What begins no session takes no place.
    let accepted = "application/json, text/event-stream";
    let nothing = client.post(server.at("/mcp")).header("accept", accepted).json(&json!({})).send();
    assert_eq!(nothing.await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    let id = taken[0].headers()["mcp-session-id"].clone();
    let closed = client.delete(server.at("/mcp")).header("mcp-session-id", id).send().await.unwrap();
    assert!(closed.status().is_success(), "{closed:?}");
    let nothing = client.post(server.at("/mcp")).header("accept", accepted).json(&json!({})).send();
    assert!(nothing.await.unwrap().status() != StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(begin(&client, &server).await.status(), StatusCode::OK, "its place is free");
    assert_eq!(begin(&client, &server).await.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_which_nothing_happens_gives_its_place_back() {
    let limits = Limits { session_idle: Duration::from_millis(1500), ..Limits::default() };
    let server = server(limits).await;
    let client = Client::new();
    let begun = join_all((0..SESSIONS_MAX).map(|_| begin(&client, &server))).await;
    assert!(begun.iter().all(|answer| answer.status() == StatusCode::OK));
    let again = async { while begin(&client, &server).await.status() != StatusCode::OK {} };
    timeout(PATIENCE, again).await.expect("their places are free after a while");
}

#[tokio::test(flavor = "multi_thread")]
async fn sse_sessions_that_begin_at_the_same_moment_are_never_too_many() {
    let server = server(Limits::default()).await;
    let client = Client::new();
    let open = async || client.get(server.at("/sse")).send().await.unwrap();
    let mut taken = taken(join_all((0..AT_ONCE).map(|_| open())).await).await;
    drop(taken.pop());
    let again = async { while open().await.status() != StatusCode::OK {} };
    timeout(PATIENCE, again).await.expect("the place of one that left is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_too_many_is_told_so_and_one_that_closes_makes_room() {
    let limits = Limits { connections: 4, ..Limits::default() };
    let server = server(limits).await;
    let mut open = Vec::new();
    for _ in 0..limits.connections {
        open.push(server.connect(b"").await);
    }
    let mut refused = server.connect(&get("/healthz")).await;
    let answer = timeout(PATIENCE, read_to_end(&mut refused)).await.expect("it is told at once");
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: "), "{answer}");
    assert!(answer.contains("4 connections are open"), "{answer}");
    open.pop();
    let served = async {
        loop {
            let close = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            let answer = read_to_end(&mut server.connect(close).await).await;
            if answer.starts_with("HTTP/1.1 200 ") {
                return;
            }
        }
    };
    timeout(PATIENCE, served).await.expect("there is room again");
}
