//! Processes that share a field: one owns the boards, the others ask it, and another takes over when it ends.

#[path = "owner/handover.rs"]
mod handover;
#[path = "owner/hostile.rs"]
mod hostile;
#[path = "owner/neighbours.rs"]
mod neighbours;

use neighbours::{Board, Neighbours, text};
use picolake_tests::serving::{Piped, Serving};
use serde_json::{Value, json};

/// The boot of each board: made up by the process that simulates it.
fn epochs(client: &mut Piped, id: u64) -> Vec<Value> {
    let boards = client.answer(id, "list_boards", json!({}));
    boards.as_array().unwrap().iter().map(|board| board["epoch"].clone()).collect()
}

#[test]
fn two_clients_a_query_and_a_shell_share_one_field() {
    let field = Neighbours::demo();
    let (mut first, mut second) = (field.client(&[]), field.client(&[]));
    assert_eq!(field.owner(), Some(first.id()));
    let boards = epochs(&mut first, 1);
    assert_eq!((boards.len(), &epochs(&mut second, 1)), (3, &boards), "both ask the same three boards");
    let query = "SELECT _board, _row_id FROM power WHERE _row_id = 0";
    let direct = first.answer(2, "query", json!({"sql": query, "database": "demo"}));
    assert_eq!(second.answer(2, "query", json!({"sql": query, "database": "demo"})), direct);
    let printed = text(field.command(&["query", query, "--demo", "--format", "mcp"]));
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), direct);
    let lines = "\\b pump\nget status where format = json\n\\b\n\\f mcp\nblockchain get table\nSELECT count(*) FROM power\n";
    let (answers, errors, is_good) = field.shell(&["--demo"], lines);
    assert!(answers.starts_with("{\"Status\":{\"board\":\"simulated\""), "{answers}");
    assert!(answers.contains("{\"dbms\":\"demo\",\"name\":\"power\"}"), "{answers}");
    assert!(answers.contains("[{\"count(*)\":") && is_good, "{answers} {errors}");
    assert_eq!(field.owner(), Some(first.id()), "nobody else has had the boards");
    for mut client in [second, first] {
        client.end_input();
        assert_eq!(client.receive(), None);
        assert!(client.wait().success());
    }
}

#[test]
fn a_job_that_one_client_starts_is_seen_by_all() {
    let field = Neighbours::demo();
    let folder = tempfile::tempdir().unwrap();
    let mut first = field.client(&["--export-folder", folder.path().to_str().unwrap()]);
    let mut second = field.client(&[]);
    let started =
        second.answer(1, "export", json!({"table": "power", "boards": ["pump"], "file": "power.jsonl"}));
    let job = started["job"].as_str().unwrap();
    loop {
        let status = first.answer(2, "job_status", json!({"job": job}));
        if status["state"] == "complete" {
            break;
        }
        assert_eq!(status["state"], "running", "{status}");
    }
    assert!(folder.path().join("power.jsonl").is_file());
    let (answers, errors, is_good) =
        field.shell(&["--demo"], "get jobs\n\\f mcp\nget jobs\n\\f json\nget jobs\n");
    assert!(is_good, "{errors}");
    assert!(answers.contains(&format!("│ {job} │ complete │ power.jsonl │")), "{answers}");
    assert!(answers.contains(&format!("\n[{{\"job\":\"{job}\"")), "{answers}");
    assert!(answers.contains(&format!("\n{{\"Jobs\":[{{\"job\":\"{job}\"")), "{answers}");
}

#[test]
fn eight_processes_that_start_at_once_open_a_boards_link_once() {
    let board = Board::start();
    let field = Neighbours::of(&board.counted);
    let mut clients: Vec<Piped> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..8).map(|_| scope.spawn(|| field.client(&[]))).collect();
        started.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let boot = epochs(&mut clients[0], 1);
    assert!(boot[0].is_string(), "{boot:?}");
    assert!(clients.iter_mut().all(|client| epochs(client, 2) == boot));
    let config = field.config();
    for arguments in [
        &["run", "pump", "get status"][..],
        &["boards"],
        &["doctor"],
        &["query", "SELECT x FROM vibration LIMIT 1"],
    ] {
        let said = text(field.command(&[&["--config", &config], arguments].concat()));
        assert!(!said.is_empty(), "{arguments:?}");
    }
    let (answers, errors, is_good) = field.shell(&["pump", "--config", &config], "get version\n");
    assert!(is_good && answers.contains("wire_max"), "{errors}");
    assert_eq!(board.links(), 1, "one process has the link");
    assert!(clients.iter().any(|client| field.owner() == Some(client.id())));
}

#[test]
fn what_only_an_owner_can_do_is_refused_with_its_process() {
    let board = Board::start();
    let field = Neighbours::of(&board.counted);
    let owner = field.client(&[]);
    let process = format!("process {}", owner.id());
    let config = field.config();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    for arguments in [
        &["serve", "--http", "127.0.0.1:0"][..],
        &["measure", "pump"],
        &["serve", "--stdio", "--export-folder", folder],
    ] {
        let output = field.command(&[arguments, &["--config", &config]].concat()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(&process) && errors.contains("stop"), "{arguments:?}: {errors}");
    }
    let doctor = text(field.command(&["doctor", "--config", &config]));
    assert!(doctor.contains(&format!("ok     owner: another picolake ({process})")), "{doctor}");
    assert!(doctor.contains("ok     board pump: picolake"), "{doctor}");
}

#[test]
fn a_server_over_http_shares_its_boards_with_the_command_line() {
    let field = Neighbours::demo();
    let _server = Serving::start_command(field.command(&["serve", "--demo", "--http", "127.0.0.1:0"]));
    let mut client = field.client(&[]);
    assert_ne!(field.owner(), Some(client.id()));
    assert_eq!(client.answer(1, "list_databases", json!({})), json!(["demo"]));
    assert!(text(field.command(&["query", "SELECT x FROM vibration LIMIT 1", "--demo"])).contains("│ x"));
}
