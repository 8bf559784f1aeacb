//! The owner ends, in order or not, and its guests go on.

use super::{
    epochs,
    neighbours::{Board, Neighbours, text},
};
use picolake_tests::serving::Piped;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    net::TcpListener,
    os::unix::net::UnixListener,
    time::{Duration, Instant},
};

/// A call that waits for a silent board is given up by the bridge after three seconds. What is to be in flight must be
/// much younger.
const IN_FLIGHT_MAX: Duration = Duration::from_secs(1);
/// Rows that are inserted around the end of an owner: all at once, so no more than it takes.
const ROWS: u64 = picolake::mcp::CALLS_RUNNING_MAX as u64;

/// A board that takes connections and never says a word.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let link = format!("tcp:{}", listener.local_addr().unwrap());
    (listener, link)
}

/// Leaves a call in flight that the owner has read: a later one is answered.
fn in_flight(client: &mut Piped) -> u64 {
    for id in (100..).step_by(2) {
        let begun = Instant::now();
        client.call(id, "node_status", json!({}));
        client.call(id + 1, "server_info", json!({}));
        let answered = client.receive().unwrap();
        if answered["id"] == id + 1 && begun.elapsed() < IN_FLIGHT_MAX {
            return id;
        }
        client.receive().unwrap(); // a busy machine: the other one, and once more
    }
    unreachable!("there is no end of ids")
}

#[test]
fn when_the_owner_is_killed_its_guests_sessions_go_on_and_calls_in_flight_say_so() {
    let (_silent, link) = silent();
    let field = Neighbours::of(&link);
    let (mut owner, mut guest) = (field.client(&[]), field.client(&[]));
    assert_eq!(field.owner(), Some(owner.id()));
    let id = in_flight(&mut guest);
    owner.kill();
    let failed = guest.receive().unwrap();
    assert_eq!((&failed["id"], &failed["error"]["data"]["code"]), (&json!(id), &json!("outcome_unknown")));
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("ended before it answered") && message.contains("ask again"), "{message}");
    assert_eq!(guest.answer(1, "server_info", json!({}))["boards"], 1);
    assert_eq!(field.owner(), Some(guest.id()), "the guest owns the boards now");
    let mut third = field.client(&[]);
    assert_eq!(third.answer(1, "server_info", json!({}))["boards"], 1);
    assert_eq!(field.owner(), Some(guest.id()));
    guest.end_input();
    assert_eq!(guest.receive(), None, "no answer of the session's new beginning reached the client");
    assert!(guest.wait().success());
    assert_eq!(third.answer(2, "server_info", json!({}))["boards"], 1);
    assert_eq!(field.owner(), Some(third.id()));
}

#[test]
fn when_the_owner_ends_in_order_nothing_is_lost_and_nothing_done_twice() {
    let board = Board::start();
    let field = Neighbours::of(&board.direct);
    let config = field.config();
    text(field.command(&["run", "pump", "create table lab.notes (n int)", "--config", &config]));
    let (mut owner, mut guest) = (field.client(&[]), field.client(&[]));
    for n in 1..=ROWS {
        let row = json!({"database": "lab", "table": "notes", "row": {"n": n}, "boards": ["pump"]});
        guest.call(n, "insert_row", row);
        if n == ROWS / 3 {
            owner.end_input(); // most of them are on their way, some are read
        }
    }
    let mut answered = BTreeSet::new();
    while answered.len() < ROWS as usize {
        let message = guest.receive().expect("an answer");
        assert_eq!(message["result"]["isError"], false, "{message}");
        assert!(answered.insert(message["id"].as_u64().unwrap()), "{message} came twice");
    }
    assert_eq!(owner.receive(), None);
    assert!(owner.wait().success());
    assert_eq!(field.owner(), Some(guest.id()));
    let sql = "SELECT n FROM notes";
    let rows =
        text(field.command(&["query", sql, "--database", "lab", "--format", "mcp", "--config", &config]));
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let mut numbers: Vec<u64> = rows.iter().map(|row| row["n"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=ROWS).collect::<Vec<_>>());
}

#[test]
fn what_an_owner_has_read_it_answers_before_it_ends() {
    let (_silent, link) = silent();
    let field = Neighbours::of(&link);
    let (mut owner, mut guest) = (field.client(&[]), field.client(&[]));
    let id = in_flight(&mut guest);
    owner.end_input();
    let answered = guest.receive().unwrap();
    assert_eq!((&answered["id"], &answered["result"]["isError"]), (&json!(id), &json!(true)), "{answered}");
    assert!(owner.wait().success());
    assert_eq!(guest.answer(1, "server_info", json!({}))["boards"], 1);
    assert_eq!(field.owner(), Some(guest.id()));
}

#[test]
fn a_client_without_initialize_keeps_its_session_too() {
    let field = Neighbours::demo();
    let mut owner = field.client(&[]);
    let mut guest = Piped::start_silently(field.command(&["serve", "--stdio", "--demo"]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "stateless", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    for id in 1..=2 {
        let params = json!({"name": "list_databases", "arguments": {}, "_meta": meta});
        guest.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        let answer = guest.receive().unwrap();
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(id), &json!(false)), "{answer}");
        if id == 1 {
            owner.kill();
            let cancelled = json!({"requestId": 1, "_meta": meta});
            guest.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
        }
    }
    assert_eq!(field.owner(), Some(guest.id()));
}

#[test]
fn subscriptions_outlive_the_owner() {
    const URI: &str = "picolake://boards/pump/status";
    let board = Board::start();
    let field = Neighbours::of(&board.counted);
    let (mut owner, mut guest) = (field.client(&[]), field.client(&[]));
    guest.answer(1, "node_status", json!({}));
    guest.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": URI}}));
    assert!(guest.receive().unwrap()["result"].is_object());
    owner.end_input();
    assert_eq!(owner.receive(), None);
    guest.answer(3, "node_status", json!({}));
    assert_eq!(field.owner(), Some(guest.id()));
    drop(board);
    let told = guest.receive().unwrap();
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(URI))
    );
}

#[test]
fn what_a_dead_owner_left_is_in_nobodys_way() {
    let field = Neighbours::demo();
    let mut owner = field.client(&[]);
    owner.kill();
    let socket = field.file("sock").expect("it had no time to remove its socket");
    assert_eq!(field.owner(), Some(owner.id()), "nor its id");
    let query = ["query", "SELECT x FROM vibration LIMIT 1", "--demo"];
    assert!(text(field.command(&query)).contains("│ x"));
    assert!(!socket.exists(), "who ends in order leaves none");
    std::fs::write(&socket, "no socket").unwrap();
    assert!(text(field.command(&query)).contains("│ x"));
    drop(UnixListener::bind(&socket).unwrap()); // a socket that nobody listens on
    let mut client = field.client(&[]);
    assert_eq!(epochs(&mut client, 1).len(), 3);
}

#[test]
fn a_shell_goes_on_when_the_owner_has_gone() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let field = Neighbours::demo();
    let mut owner = field.client(&[]);
    let mut command = field.command(&["shell", "--demo"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut shell = command.spawn().unwrap();
    let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    let mut input = shell.stdin.take().unwrap();
    for is_first in [true, false] {
        writeln!(input, "get databases where format = mcp").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "[\"demo\"]");
        writeln!(input, "\\?").unwrap(); // it is answered when the line before it is
        while !lines.next().unwrap().unwrap().starts_with("help ") {}
        if is_first {
            assert_eq!(field.owner(), Some(owner.id()));
            owner.kill();
        }
    }
    assert_eq!(field.owner(), Some(shell.id()));
    drop(input);
    assert!(shell.wait().unwrap().success());
}
