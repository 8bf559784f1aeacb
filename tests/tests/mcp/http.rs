//! Plain HTTP: the older SSE pair, `POST /query`, and those who should not get in.

use futures_util::{Stream, StreamExt as _};
use picolake_tests::serving::Serving;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::pin::Pin;

const SECRET: &str = "correct-horse-battery-staple";
const ROUTES: [(&str, &str); 6] = [
    ("POST", "/mcp"),
    ("GET", "/sse"),
    ("POST", "/messages/?session_id=0"),
    ("POST", "/query"),
    ("GET", "/metrics"),
    ("GET", "/nothing"),
];

fn request(client: &Client, server: &Serving, (method, route): (&str, &str)) -> RequestBuilder {
    client
        .request(method.parse().unwrap(), server.at(route))
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
}

/// Events of a stream, one after the other.
struct Events {
    bytes: Pin<Box<dyn Stream<Item = Vec<u8>>>>,
    text: String,
}

impl Events {
    fn of(response: Response) -> Self {
        let bytes = response.bytes_stream().map(|piece| piece.unwrap().to_vec());
        Self { bytes: Box::pin(bytes), text: String::new() }
    }

    /// The next event's name and data.
    async fn next(&mut self) -> (String, String) {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let found = event.lines().find_map(|line| line.strip_prefix(name));
                    found.unwrap_or_default().trim().to_owned()
                };
                let found = (field("event:"), field("data:"));
                self.text = rest.to_owned();
                if !found.1.is_empty() {
                    return found;
                }
                continue;
            }
            let piece = self.bytes.next().await.expect("the stream goes on");
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}

#[tokio::test]
async fn an_older_client_speaks_over_the_sse_pair() {
    let server = Serving::start(&["--demo"]);
    let client = Client::new();
    let mut events = Events::of(client.get(server.at("/sse")).send().await.unwrap());
    let (event, route) = events.next().await;
    assert_eq!(event, "endpoint");
    assert!(route.starts_with("/messages/?session_id="), "{route}");
    let post = async |message: Value| {
        let answer = client.post(server.at(&route)).body(message.to_string()).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
    };
    post(
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05",
        "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}}),
    )
    .await;
    let (event, greeting) = events.next().await;
    assert_eq!(event, "message");
    assert!(greeting.contains("2024-11-05"), "{greeting}");
    post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    post(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_databases"}}))
        .await;
    let answer: Value = serde_json::from_str(&events.next().await.1).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(2), &json!("[\"demo\"]")));

    let garbage = client.post(server.at(&route)).body("{").send().await.unwrap();
    assert_eq!(garbage.status(), StatusCode::BAD_REQUEST);
    drop(events);
    for _ in 0..50 {
        let gone = client.post(server.at(&route)).body("{}").send().await.unwrap().status();
        if gone == StatusCode::NOT_FOUND {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the session outlived its stream");
}

#[tokio::test]
async fn a_query_is_answered_in_lines() {
    let server = Serving::start(&["--demo"]);
    let client = Client::new();
    let ask = async |body: Value| {
        let answer = client.post(server.at("/query")).json(&body).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
        (status, lines)
    };
    let (status, lines) = ask(json!({"database": "demo", "sql": "SELECT voltage FROM power"})).await;
    assert_eq!(status, StatusCode::OK);
    let (last, data) = lines.split_last().unwrap();
    assert_eq!(last["type"], "complete", "{lines:?}");
    let counted: u64 = data.iter().map(|line| line["row_count"].as_u64().unwrap()).sum();
    assert_eq!(last["total_rows"], counted);
    for line in data {
        assert_eq!(line["rows"].as_array().unwrap().len() as u64, line["row_count"].as_u64().unwrap());
    }
    let (status, lines) = ask(json!({"database": "demo", "sql": "SELECT voltage FROM powr"})).await;
    assert_eq!((status, &lines[0]["type"]), (StatusCode::BAD_REQUEST, &json!("error")), "{lines:?}");
    let sql = "SELECT DISTINCT _board FROM vibration";
    for boards in [&["pump"][..], &["pump", "mill"]] {
        let (status, lines) = ask(json!({"database": "demo", "sql": sql, "boards": boards})).await;
        assert_eq!(status, StatusCode::OK, "{lines:?}");
        assert_eq!(lines.last().unwrap()["total_rows"], boards.len(), "{lines:?}");
    }
    let (status, lines) = ask(json!({"database": "demo", "sql": sql, "boards": ["pmup"]})).await;
    assert_eq!((status, &lines[0]["code"]), (StatusCode::BAD_REQUEST, &json!("unknown_board")), "{lines:?}");
    let (status, lines) = ask(json!({"database": "demo"})).await;
    assert!(status.is_client_error() && lines[0]["type"] == "error", "{lines:?}");
}

#[tokio::test]
async fn a_page_of_a_foreign_site_gets_nothing_on_any_route() {
    let server = Serving::start(&["--demo"]);
    let client = Client::new();
    for route in ROUTES.into_iter().chain([("GET", "/healthz")]) {
        for (name, value) in [
            ("host", "evil.example"),
            ("host", "evil.example:50051"),
            ("origin", "http://evil.example"),
            ("origin", "null"),
        ] {
            let answer = request(&client, &server, route).header(name, value).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{route:?} {name}: {value}");
        }
    }
    let metrics =
        client.get(server.at("/metrics")).header("origin", "http://localhost:6274").send().await.unwrap();
    assert!(metrics.text().await.unwrap().contains("picolake_http_refused_total{reason=\"host\"}"));
}

#[tokio::test]
async fn without_the_right_token_there_is_nothing_but_health() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let server = Serving::start_at("0.0.0.0:0", &["--demo", "--token-file", file.to_str().unwrap()]);
    let client = Client::new();
    for route in ROUTES {
        for token in [None, Some(""), Some("correct-horse-battery-stapl"), Some("wrong")] {
            let mut request = request(&client, &server, route);
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{route:?} {token:?}");
            assert!(answer.headers().contains_key("www-authenticate"));
        }
    }
    let health = client.get(server.at("/healthz")).send().await.unwrap();
    assert_eq!((health.status(), health.text().await.unwrap().as_str()), (StatusCode::OK, "ok\n"));
    let metrics = client.get(server.at("/metrics")).bearer_auth(SECRET).send().await.unwrap();
    assert_eq!(metrics.status(), StatusCode::OK);
    assert!(!metrics.text().await.unwrap().contains(SECRET));
}

#[test]
fn an_address_for_others_without_a_token_is_refused() {
    let output = picolake_tests::picolake()
        .args(["serve", "--demo", "--http", "0.0.0.0:0"])
        .env_remove("PICOLAKE_TOKEN")
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && errors.contains("--token-file"), "{errors}");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let server = Serving::start(&["--demo"]);
    let client = Client::new();
    let mut events = Events::of(client.get(server.at("/sse")).send().await.unwrap());
    let (_, messages) = events.next().await;
    for route in ["/mcp", "/query", &messages] {
        let request = request(&client, &server, ("POST", route)).body(vec![b' '; 5 << 20]);
        assert_eq!(request.send().await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE, "{route}");
    }
}

#[tokio::test]
async fn one_session_too_many_is_refused() {
    const SESSIONS_MAX: usize = picolake::mcp::http::SESSIONS_MAX;
    let server = Serving::start(&["--demo"]);
    let client = Client::new();
    let mut streams = Vec::new();
    for _ in 0..SESSIONS_MAX {
        let answer = client.get(server.at("/sse")).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        streams.push(answer);
    }
    let refused = client.get(server.at("/sse")).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let begin = async || {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "many", "version": "1"}}});
        request(&client, &server, ("POST", "/mcp")).body(hello.to_string()).send().await.unwrap().status()
    };
    for _ in 0..SESSIONS_MAX {
        assert_eq!(begin().await, StatusCode::OK);
    }
    assert_eq!(begin().await, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_name_that_is_allowed_is_allowed_on_every_route_and_no_other_is() {
    let server = Serving::start(&["--demo", "--allow-host", "Lake.Example"]);
    let client = Client::new();
    for route in ROUTES.into_iter().chain([("GET", "/healthz")]) {
        for (host, origin, is_allowed) in [
            ("lake.example", None, true),
            ("LAKE.example:50051", Some("https://lake.example"), true),
            ("localhost", Some("http://lake.example:8080"), true),
            ("lake.example.evil.example", None, false),
            ("evil.example", Some("https://lake.example"), false),
            ("lake.example", Some("https://evil.example"), false),
            ("lake.example", Some("null"), false),
        ] {
            let mut request = request(&client, &server, route).header("host", host);
            if let Some(origin) = origin {
                request = request.header("origin", origin);
            }
            let answer = request.send().await.unwrap();
            let is_refused = answer.status() == StatusCode::FORBIDDEN;
            assert_eq!(is_refused, !is_allowed, "{route:?} {host} {origin:?}: {}", answer.status());
            if is_refused {
                let told = answer.text().await.unwrap();
                assert!(told.contains("--allow-host NAME") && !told.contains("demo"), "{told}");
            }
        }
    }
}
