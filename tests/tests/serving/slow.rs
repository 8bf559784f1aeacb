//! Clients that send too slowly or do not take their answers: they are dropped after a while, others are served meanwhile.

use picolake::{
    config,
    field::Field,
    mcp::{Server, http::Limits},
    tools::{Options, Tools},
};
use picolake_tests::{
    http_server::{HttpServer, get, post, read_to_end},
    slow_board::SlowBoard,
};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::AsyncWriteExt as _,
    time::{Instant, timeout},
};

const PATIENCE: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(400);

fn empty() -> Server {
    Server::new(Tools::new(Field::new([]), Options::default()).unwrap())
}

fn on(board: &SlowBoard) -> Server {
    let config = config::load(Some(&board.config())).unwrap();
    Server::new(Tools::new(Field::of(&config), Options::default()).unwrap())
}

async fn is_served(server: &HttpServer) {
    let health = timeout(PATIENCE, Client::new().get(server.at("/healthz")).send()).await;
    assert_eq!(health.expect("others are served").unwrap().status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_head_does_not_come_is_dropped() {
    let server = HttpServer::start(empty(), Limits { headers: SHORT, ..Limits::default() }).await;
    let whole = get("/healthz");
    for sent in [0, 1, whole.len() - 1] {
        let begun = Instant::now();
        let mut slow = server.connect(&whole[..sent]).await;
        is_served(&server).await;
        let told = timeout(PATIENCE, read_to_end(&mut slow)).await.expect("it is closed");
        assert!(!told.contains(" 200 "), "{told}");
        assert!(begun.elapsed() >= SHORT, "it had its time");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_its_head_byte_by_byte_gets_no_more_time() {
    let server = HttpServer::start(empty(), Limits { headers: SHORT, ..Limits::default() }).await;
    let mut slow = server.connect(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ").await;
    let dropped = async {
        while slow.write_all(b"x").await.is_ok() {
            tokio::time::sleep(SHORT / 8).await; // as slow as it likes: that is what is tried here
        }
    };
    timeout(PATIENCE, dropped).await.expect("it is closed though it never pauses for long");
    is_served(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_body_does_not_come_is_told_so() {
    let server = HttpServer::start(empty(), Limits { body: SHORT, ..Limits::default() }).await;
    let body = json!({"database": "demo", "sql": "SELECT 1 FROM power"}).to_string();
    for route in ["/query", "/mcp", "/messages/?session_id=0"] {
        let mut slow = server.connect(&post(route, &body, 10)).await;
        is_served(&server).await;
        // It is told while the connection is open: hyper may keep it for the next request.
        let told = timeout(PATIENCE, async {
            let mut head = [0; 12];
            tokio::io::AsyncReadExt::read_exact(&mut slow, &mut head).await.unwrap();
            String::from_utf8_lossy(&head).into_owned()
        });
        assert_eq!(told.await.expect("it is told"), "HTTP/1.1 408", "{route}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_none_of_its_rows_is_dropped_and_its_query_ends_on_the_board() {
    let board = SlowBoard::start().await;
    let server = HttpServer::start(on(&board), Limits { write: SHORT, ..Limits::default() }).await;
    // More than all buffers on the way take: long lines of values that do not get short on the link.
    let columns: Vec<String> =
        (1..9).map(|n| format!("(x + {n}) / {n}.7 AS a_long_name_of_it_{n}")).collect();
    let body = json!({"database": "demo", "sql": format!("SELECT {} FROM vibration", columns.join(", "))});
    let body = body.to_string();
    // What tables there are is asked by queries, too: that is over when the first answer is here.
    let first = json!({"database": "demo", "sql": "SELECT x FROM vibration LIMIT 1"});
    let first = Client::new().post(server.at("/query")).json(&first).send().await.unwrap().text().await;
    assert!(first.unwrap().contains("complete"));
    board.runs(0).await;
    let mut slow = server.connect_narrow(&post("/query", &body, body.len())).await;
    board.runs(1).await;
    is_served(&server).await;
    board.runs(0).await; // though nothing of it was read
    let told = timeout(PATIENCE, read_to_end(&mut slow)).await.expect("it is closed");
    assert!(told.contains("{\"type\":\"data\"") && !told.contains("{\"type\":\"complete\""), "it was whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_none_of_its_messages_loses_its_session() {
    let board = SlowBoard::start().await;
    let server = HttpServer::start(on(&board), Limits { write: SHORT, ..Limits::default() }).await;
    let mut slow = server.connect_narrow(&get("/sse")).await;
    let mut head = vec![0; 4096];
    let mut told = String::new();
    while told.split_once("session_id=").is_none_or(|(_, id)| !id.contains('\n')) {
        let len = tokio::io::AsyncReadExt::read(&mut slow, &mut head).await.unwrap();
        told.push_str(std::str::from_utf8(&head[..len]).unwrap());
    }
    let route = told.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let client = Client::new();
    let send =
        async |message: Value| client.post(server.at(&route)).json(&message).send().await.unwrap().status();
    let hello = json!({"protocolVersion": "2024-11-05", "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    assert_eq!(send(hello).await, StatusCode::ACCEPTED);
    let query = json!({"name": "query", "arguments": {"table": "vibration", "limit": 1000}});
    let lost = async {
        for id in 1.. {
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": query});
            if send(call).await == StatusCode::NOT_FOUND {
                return;
            }
        }
    };
    timeout(PATIENCE, lost).await.expect("its session ends");
    is_served(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_time_is_over_is_told_so_and_ends_on_the_board() {
    let board = SlowBoard::start().await;
    // Longer than finding the board takes, shorter than its link would be waited for.
    let server = on(&board).with_call_timeout(Duration::from_secs(3));
    let server = HttpServer::start(server, Limits::default()).await;
    let client = Client::new();
    let call = |limit: u64| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        let params =
            json!({"name": "query", "arguments": {"table": "vibration", "limit": limit}, "_meta": meta});
        client
            .post(server.at("/mcp"))
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "query")
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
    };
    assert!(call(1).send().await.unwrap().text().await.unwrap().contains("timestamp"));
    board.slow_down(1);
    let asking = tokio::spawn(call(1000).send());
    board.runs(1).await;
    let told = asking.await.unwrap().unwrap().text().await.unwrap();
    assert!(told.contains("timeout") && told.contains("\"isError\":true"), "{told}");
    board.runs(0).await;
    board.slow_down(0);
    assert!(call(1).send().await.unwrap().text().await.unwrap().contains("timestamp"), "there is room again");
}
