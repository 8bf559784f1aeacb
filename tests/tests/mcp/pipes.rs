//! Raw lines over pipes: the input's end, cancellation, progress, and what is no message.

use picolake_tests::serving::Piped;
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    time::{Duration, Instant},
};

/// A configuration with one board that takes connections and never says a word.
struct Silent {
    _listener: TcpListener,
    folder: tempfile::TempDir,
}

impl Silent {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let link = format!("tcp:{}", listener.local_addr().unwrap());
        let file = format!("boards:\n- {{name: silent, link: '{link}'}}\narchive: {{enabled: false}}\n");
        std::fs::write(folder.path().join("picolake.yaml"), file).unwrap();
        Self { _listener: listener, folder }
    }

    fn serve(&self) -> Piped {
        let config = self.folder.path().join("picolake.yaml");
        Piped::start(&["--demo", "--config", config.to_str().unwrap()])
    }
}

#[test]
fn calls_in_flight_at_the_inputs_end_are_answered_before_the_program_ends() {
    let silent = Silent::new();
    let mut server = silent.serve();
    server.call(1, "node_status", json!({"boards": ["silent"]}));
    server.call(2, "list_databases", json!({"boards": ["pump"]}));
    server.end_input();
    let mut answered = Vec::new();
    while let Some(message) = server.receive() {
        assert!(message["result"]["content"][0]["text"].is_string(), "{message}");
        answered.push(message["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, [1, 2]);
    assert!(server.wait().success());
}

#[test]
fn a_cancelled_call_has_no_answer_and_holds_nothing_up() {
    let silent = Silent::new();
    let mut server = silent.serve();
    let begun = Instant::now();
    server.call(1, "node_status", json!({"boards": ["silent"]}));
    let cancelled = json!({"requestId": 1, "reason": "changed my mind"});
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    server.call(2, "list_databases", json!({"boards": ["pump"]}));
    assert_eq!(server.receive().unwrap()["id"], 2);
    server.end_input();
    assert_eq!(server.receive(), None);
    assert!(server.wait().success());
    assert!(begun.elapsed() < Duration::from_millis(2500), "it waited for the cancelled call");
}

#[test]
fn what_is_no_message_does_not_end_the_session() {
    let mut server = Piped::start(&["--demo"]);
    for line in [json!([]), json!(1), json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": 7})]
    {
        server.send(&line);
    }
    server.call(9, "list_databases", json!({}));
    loop {
        let message = server.receive().expect("an answer to the last call");
        if message["id"] == 9 {
            assert_eq!(message["result"]["isError"], false, "{message}");
            break;
        }
        assert!(message["error"]["code"].is_number(), "{message}");
    }
}

#[test]
fn a_client_that_asks_for_progress_is_told_before_the_answer() {
    let mut server = Piped::start(&["--demo"]);
    let params = json!({"name": "query", "_meta": {"progressToken": "mine"},
        "arguments": {"database": "demo", "sql": "SELECT * FROM vibration", "limit": 1000}});
    // Rows must have been made first, and each batch is a chance for a notification.
    std::thread::sleep(Duration::from_secs(2));
    server.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    let mut last = 0.0;
    loop {
        let message = server.receive().unwrap();
        if message["id"] == 1 {
            break;
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(message["params"]["progressToken"], "mine", "{message}");
        let progress = message["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "{message}");
        last = progress;
    }
    assert!(last > 0.0, "no progress was told");
}

#[test]
fn a_client_that_leaves_at_once_is_no_error() {
    let mut process = picolake_tests::picolake()
        .args(["serve", "--stdio", "--demo"])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    assert!(process.wait().unwrap().success());
}

/// A simulated board on a TCP port that ends when this is dropped.
struct Simulated(std::process::Child);

impl Simulated {
    fn start(address: &str) -> (Self, String) {
        let mut process = picolake_tests::picolake()
            .args(["sim", "--tcp", address])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("simulated board on tcp:").unwrap().to_owned();
        (Self(process), address)
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_subscriber_is_told_when_a_board_goes_and_comes_back() {
    const URI: &str = "picolake://boards/pump/status";
    let (board, address) = Simulated::start("127.0.0.1:0");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("picolake.yaml");
    std::fs::write(
        &config,
        format!("boards:\n- {{name: pump, link: 'tcp:{address}'}}\narchive: {{enabled: false}}\n"),
    )
    .unwrap();
    let mut server = Piped::start(&["--config", config.to_str().unwrap()]);
    server.call(1, "node_status", json!({}));
    assert_eq!(server.receive().unwrap()["result"]["isError"], false);
    let ask = |server: &mut Piped, id: u64, method: &str, uri: &str| {
        server.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"uri": uri}}));
        server.receive().unwrap()
    };
    assert!(ask(&mut server, 2, "resources/subscribe", "file:///etc/passwd")["error"].is_object());
    assert!(ask(&mut server, 3, "resources/subscribe", URI)["result"].is_object());
    drop(board);
    let told = server.receive().unwrap();
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(URI))
    );
    let _board = Simulated::start(&address);
    assert_eq!(server.receive().unwrap()["method"], "notifications/resources/updated");
    assert!(ask(&mut server, 4, "resources/unsubscribe", URI)["result"].is_object());
    server.end_input();
    assert_eq!(server.receive(), None);
    assert!(server.wait().success());
}

#[test]
fn a_client_is_told_when_the_tools_change_and_a_wrong_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tools.yaml");
    let tools = |name: &str| {
        let text = format!(
            "tools:\n  - name: {name}\n    description: x\n    command: {{ type: get, template: get status }}\n"
        );
        std::fs::write(&file, text).unwrap();
    };
    tools("first_of_mine");
    let mut server = Piped::start(&["--demo", "--tools", file.to_str().unwrap()]);
    let ask = |server: &mut Piped, id: u64, method: &str, params: serde_json::Value| {
        server.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        server.receive().unwrap().to_string()
    };
    assert!(ask(&mut server, 1, "tools/list", json!({})).contains("first_of_mine"));
    std::fs::write(&file, "tools: [{name: first_of_mine, hidden: tru}]").unwrap();
    let told = loop {
        let told = ask(&mut server, 2, "tools/call", json!({"name": "server_info"}));
        if told.contains("tools_file_fault") {
            break told; // it looks every few seconds
        }
    };
    assert!(told.contains("tools.yaml:1: "), "{told}");
    assert!(ask(&mut server, 3, "tools/list", json!({})).contains("first_of_mine"), "the tools stay");
    tools("second_of_mine");
    assert_eq!(server.receive().unwrap()["method"], "notifications/tools/list_changed");
    let listed = ask(&mut server, 4, "tools/list", json!({}));
    assert!(listed.contains("second_of_mine") && !listed.contains("first_of_mine"), "{listed}");
    assert!(!ask(&mut server, 5, "tools/call", json!({"name": "server_info"})).contains("tools_file_fault"));
}

#[test]
fn the_file_of_an_export_is_a_resource_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Piped::start(&["--demo", "--export-folder", folder.path().to_str().unwrap()]);
    let ask = |server: &mut Piped, method: &str, params: Value| {
        server.send(&json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
        server.receive().unwrap()
    };
    let export = json!({"table": "power", "boards": ["pump"], "select": ["voltage"], "file": "volts.csv", "file_format": "csv"});
    let mut job = server.answer(1, "export", export);
    while job["state"] == "running" {
        job = server.answer(2, "job_status", json!({"job": job["job"]}));
    }
    assert_eq!(job["state"], "complete", "{job}");
    let uri = job["uri"].as_str().unwrap();
    let listed = ask(&mut server, "resources/list", json!({}));
    assert!(listed.to_string().contains(uri), "{listed}");
    let read = ask(&mut server, "resources/read", json!({"uri": uri}));
    let contents = read["result"]["contents"].as_array().unwrap();
    let file = std::fs::read_to_string(job["path"].as_str().unwrap()).unwrap();
    assert!(file.starts_with("voltage\n"), "{file}");
    assert_eq!((contents.len(), &contents[0]["text"]), (1, &json!(file)), "{read}");
    assert_eq!(contents[0]["mimeType"], "text/csv");
    let nobody = ask(&mut server, "resources/read", json!({"uri": "picolake://jobs/00000000"}));
    assert!(nobody["error"]["message"].as_str().unwrap().contains("there is no job"), "{nobody}");
}
