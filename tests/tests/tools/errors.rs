//! Every kind of error once: its code, and what it says to do.

use crate::{FIELD, create_notes};
use picolake::{
    field::Field,
    tools::{Options, Tools},
};
use picolake_tests::field::{SimBoard, answer, call, error, in_virtual_time, tools_on};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

#[test]
fn every_kind_of_error_has_its_code_and_says_what_to_do() {
    in_virtual_time(async {
        let (_boards, tools) = tools_on(&FIELD, Options::default());
        sleep(Duration::from_secs(5)).await;
        for (tool, arguments, code, said) in [
            ("list_tabels", json!({}), "unknown_tool", "did you mean `list_tables`?"),
            ("fly", json!({}), "unknown_tool", "the tools are"),
            ("list_tables", json!({}), "missing_argument", "`database`"),
            ("list_tables", json!({"database": 5}), "wrong_argument", "`database`"),
            ("list_tables", json!({"database": "demo", "x": 1}), "unknown_argument", "it takes"),
            ("list_tables", json!({"database": "dmeo"}), "unknown_database", "demo"),
            (
                "get_schema",
                json!({"database": "demo", "table": "powr"}),
                "unknown_table",
                "did you mean `power`?",
            ),
            ("query", json!({"table": "environmnt"}), "unknown_table", "did you mean `environment`?"),
            (
                "query",
                json!({"database": "demos", "table": "power"}),
                "unknown_database",
                "did you mean `demo`?",
            ),
            ("query", json!({}), "missing_argument", "`table`"),
            ("query", json!({"table": "power", "select": ["volts"]}), "unknown_column", "columns"),
            ("query", json!({"sql": "SELEC 1"}), "syntax", "SELECT"),
            ("query", json!({"sql": "SELECT 1 FROM power", "table": "power"}), "wrong_argument", "exclude"),
            ("query", json!({"table": "power", "where": "state > 1", "boards": ["pump"]}), "type", "type"),
            ("query", json!({"cursor": "0123456789abcdef-0-0-0"}), "cursor_expired", "without the cursor"),
            ("query", json!({"cursor": "next"}), "wrong_argument", "next_cursor"),
            ("query", json!({"table": "power", "boards": ["pmup"]}), "unknown_board", "did you mean `pump`?"),
            ("run_command", json!({"command": "get statsu"}), "syntax", "did you mean `status`?"),
            (
                "run_command",
                json!({"command": "insert demo power {\"voltage\": 1}"}),
                "write_refused",
                "only reads",
            ),
            (
                "run_command",
                json!({"command": "set time = 2026-11-18T05:00:00Z"}),
                "write_refused",
                "only reads",
            ),
            ("export", json!({"table": "power"}), "no_export_folder", "folder"),
            ("job_status", json!({"job": "x"}), "unknown_job", "without an id"),
            ("cancel_job", json!({"job": "x"}), "unknown_job", "without an id"),
        ] {
            let found = error(&tools, tool, arguments.clone()).await;
            let text = serde_json::Value::Object(found.clone()).to_string();
            assert_eq!(found["code"], code, "{tool} {arguments}: {text}");
            assert!(text.contains(said), "{tool} {arguments}: {text}");
        }
    });
}

#[test]
fn a_board_is_read_only_unless_somebody_says_otherwise() {
    in_virtual_time(async {
        let board = SimBoard::start("pump");
        let insert = json!({"database": "demo", "table": "notes", "row": {"level": 7, "text": "x"}, "boards": ["pump"]});
        let tools = Tools::new(Field::new([board.board(false)]), Options::default()).unwrap();
        create_notes(&tools).await;
        let refused = error(&tools, "insert_row", insert.clone()).await;
        assert_eq!(refused["code"], "write_refused");
        assert!(refused["suggested_action"].as_str().unwrap().contains("writable: true"), "{refused:?}");
        let rows = || answer(&tools, "query", json!({"table": "notes", "select": ["level", "text"]}));
        assert_eq!(rows().await[0], json!([]), "nothing was written");
        let options = Options { allow_writes: true, ..Options::default() };
        let writing = Tools::new(tools.field().clone(), options).unwrap();
        answer(&writing, "insert_row", insert).await;
        assert_eq!(rows().await[0], json!([{"level": 7, "text": "x"}]));
        let twice = json!({"database": "demo", "table": "notes", "row": {"lvl": 7}, "boards": ["pump"]});
        assert_eq!(error(&writing, "insert_row", twice).await["code"], "unknown_column");
    });
}

#[test]
fn a_field_without_boards_says_how_to_get_some() {
    in_virtual_time(async {
        let tools = Tools::new(Field::new([]), Options::default()).unwrap();
        assert_eq!(error(&tools, "list_databases", json!({})).await["code"], "no_boards");
        assert_eq!(answer(&tools, "list_boards", json!({})).await[0], json!([]));
    });
}

#[test]
fn a_call_ends_at_its_deadline() {
    in_virtual_time(async {
        let (boards, tools) = tools_on(&["pump"], Options::default());
        sleep(Duration::from_secs(1)).await;
        boards[0].stall();
        let context = picolake::tools::Context {
            deadline: tokio::time::Instant::now() + Duration::from_secs(2),
            ..Default::default()
        };
        let start = tokio::time::Instant::now();
        let outcome = tools.call("node_status", serde_json::Map::new(), context).await;
        assert!(outcome.is_error && outcome.items[0].contains("\"timeout\""), "{outcome:?}");
        assert!(start.elapsed() <= Duration::from_secs(2), "{:?}", start.elapsed());
    });
}

/// How often others have their turn before the board's link is cut.
const TURNS: [usize; 12] = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

#[test]
fn a_board_that_goes_away_at_any_moment_leaves_no_half_answer_that_looks_whole() {
    let (mut whole, mut failed) = (0, 0);
    for turns in TURNS {
        in_virtual_time(async {
            let (boards, tools) = tools_on(&["pump"], Options::default());
            let session = &tools.field().board("pump").unwrap().session;
            session.wait_up(Duration::from_secs(9)).await.unwrap();
            picolake_tests::ask::ask(session, "set sample demo vibration = 1ms").await.unwrap();
            sleep(Duration::from_millis(1500)).await;
            let query =
                json!({"table": "vibration", "where": "_row_id < 900", "limit": 1000, "select": ["_row_id"]});
            let cut = async {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                boards[0].cut();
            };
            let (outcome, ()) = tokio::join!(call(&tools, "query", query), cut);
            let said: serde_json::Value = serde_json::from_str(&outcome.items[0]).unwrap();
            if outcome.is_error {
                assert_eq!(
                    (said["code"].as_str(), outcome.items.len()),
                    (Some("board_offline"), 1),
                    "{said}"
                );
                failed += 1;
            } else {
                let ids: Vec<u64> =
                    said.as_array().unwrap().iter().filter_map(|row| row["_row_id"].as_u64()).collect();
                assert_eq!(
                    ids,
                    (0..900).collect::<Vec<_>>(),
                    "after {turns} turns: {:?}",
                    outcome.items.get(1)
                );
                whole += 1;
            }
        });
    }
    assert!(whole > 0 && failed > 1, "{whole} whole, {failed} failed: the cut was never in the middle");
}

#[test]
fn a_stream_whose_board_goes_away_ends_with_an_error() {
    in_virtual_time(async {
        let (boards, tools) = tools_on(&["pump"], Options::default());
        let session = &tools.field().board("pump").unwrap().session;
        session.wait_up(Duration::from_secs(9)).await.unwrap();
        picolake_tests::ask::ask(session, "set sample demo vibration = 1ms").await.unwrap();
        sleep(Duration::from_secs(2)).await;
        // So wide that not all of it is on its way when the first batch has come.
        let columns: Vec<String> = (1..9).map(|n| format!("(x + {n}) / {n}.7 AS c{n}")).collect();
        let sql = format!("SELECT {} FROM vibration", columns.join(", "));
        let mut stream = tools.stream_query("demo", &sql, Default::default()).await.unwrap();
        assert!(stream.next().await.unwrap().is_some());
        boards[0].cut();
        let end = loop {
            match stream.next().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ended as if it were complete"),
                Err(fault) => break fault,
            }
        };
        assert_eq!(end.code, "board_offline");
    });
}

#[test]
fn a_tool_for_the_gateway_is_refused_by_name_and_others_ask_the_boards() {
    in_virtual_time(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tools.yaml");
        let tool = |destination: &str| {
            format!(
                "  - name: ask_{destination}\n    description: x\n    command: {{ type: sql, destination: {destination}, \
                 template: \"sql demo \\\"SELECT x FROM vibration LIMIT 1\\\"\" }}\n"
            )
        };
        let text = format!("tools:\n{}{}{}", tool("all"), tool("network"), tool("local"));
        std::fs::write(&file, text).unwrap();
        let options = Options { user_file: Some(file), ..Options::default() };
        let (_boards, tools) = tools_on(&["pump"], options);
        sleep(Duration::from_secs(2)).await;
        let all = answer(&tools, "ask_all", json!({})).await;
        assert!(all[0][0]["x"].is_number(), "{all:?}");
        assert_eq!(answer(&tools, "ask_network", json!({})).await[0], all[0]);
        let local = error(&tools, "ask_local", json!({})).await;
        assert_eq!(local["code"], "local_not_available");
        assert!(local["suggested_action"].as_str().unwrap().contains("asks the boards"), "{local:?}");
    });
}
