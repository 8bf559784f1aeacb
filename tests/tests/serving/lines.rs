//! Lines over pipes that are no messages, or come at the wrong time: each is answered, and the session goes on.

use picolake_tests::{program, serving::Piped};
use serde_json::{Value, json};
use std::process::Command;

/// More than a line may have.
const TOO_MANY_BYTES: usize = (16 << 20) + 1;

#[test]
fn each_line_that_is_no_message_is_answered_as_such() {
    let [owner, guest] = Piped::start_two(&["--demo"]);
    for server in [guest, owner] {
        each_is_answered(server);
    }
}

fn each_is_answered(mut server: Piped) {
    let too_long = vec![b'x'; TOO_MANY_BYTES];
    for (line, code, id) in [
        (&b"hello"[..], -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",", -32700, Value::Null),
        (b"\xff\xfe", -32700, Value::Null),
        (&too_long, -32700, Value::Null),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Value::Null),
        (br#"{"hello":"world"}"#, -32600, Value::Null),
        (br#""jsonrpc""#, -32600, Value::Null),
        (br#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, -32600, json!(7)),
        (br#"{"jsonrpc":"2.0","id":"x","method":"no/such/method"}"#, -32601, json!("x")),
    ] {
        server.send_bytes(line);
        let answer = server.receive().expect("an answer");
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]);
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{shown}: {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|why| !why.is_empty()), "{shown}: {answer}");
    }
    server.call(9, "list_databases", json!({}));
    assert_eq!(server.receive().unwrap()["result"]["content"][0]["text"], "[\"demo\"]");
    server.end_input();
    assert_eq!(server.receive(), None);
    assert!(server.wait().success());
}

#[test]
fn what_comes_before_the_session_begins_does_not_end_it() {
    let mut command = Command::new(program());
    command.args(["serve", "--stdio", "--demo"]);
    let mut server = Piped::start_silently(command);
    server.send_bytes(b"{");
    assert_eq!(server.receive().unwrap()["error"]["code"], -32700);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    server.send(&json!({"jsonrpc": "2.0", "id": 0, "result": {}}));
    server.call(1, "list_databases", json!({}));
    let early = server.receive().unwrap();
    assert!(early["id"] == 1 && early["error"]["code"].is_number(), "{early}");
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "late", "version": "1"}}}));
    assert_eq!(server.receive().unwrap()["result"]["protocolVersion"], "2025-06-18");
    server.call(3, "list_databases", json!({}));
    assert_eq!(server.receive().unwrap()["result"]["isError"], false);
}

#[test]
fn a_last_line_without_its_end_is_a_line() {
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_databases"}});
    let [owner, guest] = Piped::start_two(&["--demo"]);
    for mut server in [guest, owner] {
        server.send_last(call.to_string().as_bytes());
        assert_eq!(server.receive().expect("an answer")["result"]["isError"], false);
        assert_eq!(server.receive(), None);
        assert!(server.wait().success());
    }
}

#[test]
fn a_last_line_that_is_too_long_is_told_so() {
    let [owner, guest] = Piped::start_two(&["--demo"]);
    for mut server in [guest, owner] {
        server.send_last(&vec![b'x'; TOO_MANY_BYTES]);
        assert_eq!(server.receive().expect("an answer")["error"]["code"], -32700);
        assert_eq!(server.receive(), None);
        assert!(server.wait().success());
    }
}
