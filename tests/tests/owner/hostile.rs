//! Guests that leave, shout, say nothing or come in crowds; and folders that are not safe.

use super::neighbours::{Board, Guest, Neighbours, PATIENCE};
use picolake_tests::serving::Piped;
use serde_json::json;
use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    process::Command,
    time::Instant,
};

/// Guests of an owner at once.
const GUESTS_MAX: usize = picolake::owner::GUESTS_MAX;
/// Rows that do not fit what a guest that does not read lets pass.
const ROWS: u32 = 300;

/// How many queries the board runs.
fn queries(client: &mut Piped) -> u64 {
    client.answer(1, "node_status", json!({}))[0]["queries"].as_u64().expect("a status")
}

/// The next letter of a text that does not pack well.
fn letter(state: &mut u64) -> char {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    char::from(b'a' + u8::try_from((*state >> 33) % 26).unwrap())
}

/// Asks until the board runs so many.
fn wait_for_queries(client: &mut Piped, count: u64) {
    let begun = Instant::now();
    while queries(client) != count {
        assert!(begun.elapsed() < PATIENCE, "the board does not come to {count} queries");
    }
}

#[test]
fn a_guest_that_leaves_in_mid_stream_cancels_its_query_on_the_board() {
    let board = Board::start();
    let field = Neighbours::of(&board.counted);
    let mut lines = "create table lab.notes (n int, note text) rows = 2600\n".to_string();
    let mut state = 1_u64;
    for n in 0..ROWS {
        let note: String = (0..60).map(|_| letter(&mut state)).collect();
        lines += &format!("insert lab notes {{\"n\": {n}, \"note\": \"{note}\"}}\n");
    }
    let (_, errors, is_good) = field.shell(&[&board.direct], &lines);
    assert!(is_good, "{errors}");
    let mut owner = field.client(&[]);
    assert_eq!(queries(&mut owner), 0);
    let columns: Vec<String> = (0..15).map(|n| format!("note AS a_column_with_a_long_name_{n}")).collect();
    let sql = format!("SELECT {} FROM notes", columns.join(", "));
    let mut guest = field.guest();
    assert!(guest.send(
        &json!({"picolake": 1, "wish": "query", "database": "lab", "sql": sql, "format": "mcp"}).to_string()
    ));
    wait_for_queries(&mut owner, 1);
    let begun = Instant::now();
    while begun.elapsed().as_millis() < 200 {
        assert!(queries(&mut owner) >= 1, "it waits for the guest, and has not ended");
    }
    drop(guest);
    wait_for_queries(&mut owner, 0);
    let call = json!({"picolake": 1, "wish": "query", "database": "lab", "sql": "SELECT n FROM notes LIMIT 1", "format": "mcp"});
    let mut guest = field.guest();
    assert!(guest.send(&call.to_string()));
    let mut text = String::new();
    loop {
        let reply = guest.next().expect("a reply");
        if let Some(part) = reply["text"].as_str() {
            text += part;
        } else {
            assert_eq!(reply["end"]["rows_lost"], 0, "{reply}");
            break;
        }
    }
    assert!(text.starts_with("[{\"n\":") && text.ends_with("}]\n"), "{text}");
}

#[test]
fn garbage_a_giant_line_and_silence_cost_the_owner_nothing() {
    let field = Neighbours::demo();
    let mut owner = field.client(&[]);
    for line in [
        "",
        "GET / HTTP/1.1",
        "[]",
        "{\"picolake\":2,\"wish\":\"mcp\"}",
        "{\"picolake\":1,\"wish\":\"root\"}",
        "\u{0}",
    ] {
        let mut guest = field.guest();
        assert!(guest.send(line));
        let refused = guest.next().unwrap();
        assert_eq!(refused["error"]["code"], "protocol", "{line}: {refused}");
        assert!(refused["error"]["suggested_action"].is_string(), "{refused}");
        assert_eq!(guest.next(), None, "{line}");
    }
    let mut giant = field.guest();
    assert!(giant.send(&"x".repeat((16 << 20) + 1)));
    assert_eq!(giant.next().unwrap()["error"]["code"], "protocol");
    let mut giant = field.guest();
    assert!(giant.send("{\"picolake\":1,\"wish\":\"mcp\"}"));
    giant.send(&"x".repeat((16 << 20) + 1)); // the owner may close before all of it is sent
    assert_eq!(giant.next(), None);
    let mut silent = field.guest();
    let mut half = field.guest();
    half.stream.write_all(b"{\"picolake\":1,").unwrap();
    assert_eq!((silent.next(), half.next()), (None, None), "who says nothing is sent away");
    assert_eq!(owner.answer(1, "list_databases", json!({})), json!(["demo"]));
}

#[test]
fn a_crowd_is_told_that_there_is_no_room() {
    let field = Neighbours::demo();
    let mut owner = field.client(&[]);
    let mcp = "{\"picolake\":1,\"wish\":\"mcp\"}";
    let mut crowd: Vec<Guest> = (0..GUESTS_MAX).map(|_| field.guest()).collect();
    assert!(crowd.iter_mut().all(|guest| guest.send(mcp)));
    let output = field.command(&["query", "SELECT x FROM vibration LIMIT 1", "--demo"]).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("busy") && errors.contains("close one of them"), "{errors}");
    assert_eq!(owner.answer(1, "list_databases", json!({})), json!(["demo"]));
    drop(crowd);
    let begun = Instant::now();
    while !field
        .command(&["query", "SELECT x FROM vibration LIMIT 1", "--demo"])
        .output()
        .unwrap()
        .status
        .success()
    {
        assert!(begun.elapsed() < PATIENCE, "the crowd has left");
    }
}

#[test]
fn a_folder_that_others_may_enter_is_refused() {
    let field = Neighbours::demo();
    let folder = field.runtime.join("picolake");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = |command: &mut Command| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    let query = ["query", "SELECT x FROM vibration LIMIT 1", "--demo"];
    let errors = refused(&mut field.command(&query));
    assert!(errors.contains("other users may enter it") && errors.contains("chmod 700"), "{errors}");
    let long = field.runtime.join("x".repeat(60));
    let errors = refused(field.command(&query).env(picolake_tests::runtime::VARIABLE, long));
    assert!(errors.contains("too long") && errors.contains("PICOLAKE_RUNTIME_DIR"), "{errors}");
}

#[test]
fn an_owner_of_another_release_is_named_and_not_asked() {
    let field = Neighbours::demo();
    let mut first = field.client(&[]);
    let socket = field.file("sock").unwrap();
    first.end_input();
    assert!(first.wait().success());
    let lock = fs::File::options().write(true).open(field.file("lock").unwrap()).unwrap();
    lock.try_lock().expect("its owner has ended");
    let listener = UnixListener::bind(socket).unwrap();
    let greeting = "{\"picolake\":2,\"pid\":4711,\"release\":\"9.9.9\",\"else\":[]}\n";
    let owner = std::thread::spawn(move || {
        let (mut guest, _) = listener.accept().unwrap();
        guest.write_all(greeting.as_bytes()).unwrap();
        let mut said = String::new();
        guest.read_to_string(&mut said).unwrap();
        said
    });
    let output = field.command(&["query", "SELECT x FROM vibration LIMIT 1", "--demo"]).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("9.9.9 (process 4711)") && errors.contains("stop the older one"), "{errors}");
    assert_eq!(owner.join().unwrap(), "", "nothing was asked of it");
}
