//! Every kind of error once: its code, and what it says to do.

use crate::{FIELD, create_notes};
use picolake::{
    field::Field,
    tools::{Options, Tools},
};
use picolake_tests::field::{SimBoard, answer, error, in_virtual_time, tools_on};
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
