//! Tools end to end on simulated boards: every tool, every kind of error, hostile arguments, pages, boards that go.

#[path = "tools/command_line.rs"]
mod command_line;
#[path = "tools/errors.rs"]
mod errors;
#[path = "tools/export.rs"]
mod export;
#[path = "tools/hostile.rs"]
mod hostile;
#[path = "tools/pages.rs"]
mod pages;

use picolake::tools::Options;
use picolake_tests::field::{SimBoard, answer, call, error, in_virtual_time, tools_on};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const FIELD: [&str; 3] = ["greenhouse", "pump", "mill"];

#[test]
fn every_tool_answers() {
    in_virtual_time(async {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { export_folder: Some(folder.path().into()), ..Options::default() };
        let (_boards, tools) = tools_on(&FIELD, options);
        sleep(Duration::from_secs(5)).await;
        let job = answer(&tools, "export", json!({"table": "power", "boards": ["pump"]})).await;
        let job = job[0]["job"].clone();
        let calls = [
            ("list_databases", json!({})),
            ("list_tables", json!({"database": "demo"})),
            ("get_schema", json!({"database": "demo", "table": "power"})),
            ("query", json!({"table": "power", "where": "voltage > 0", "limit": 3})),
            ("explain_query", json!({"table": "power", "order_by": ["voltage DESC"]})),
            ("node_status", json!({})),
            ("server_info", json!({})),
            ("list_boards", json!({})),
            ("run_command", json!({"command": "get rows count where dbms = demo"})),
            ("job_status", json!({"job": job})),
            ("cancel_job", json!({"job": job})),
            (
                "insert_row",
                json!({"database": "demo", "table": "notes", "row": {"level": 1}, "boards": ["pump"]}),
            ),
            ("export", json!({"table": "power", "boards": ["mill"]})),
        ];
        let listed = tools.list();
        let names: Vec<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
        for name in names {
            let (_, arguments) = calls.iter().find(|(called, _)| *called == name).expect(name);
            if name == "insert_row" {
                create_notes(&tools).await;
            }
            let items = answer(&tools, name, arguments.clone()).await;
            assert!(!items.is_empty(), "{name}");
        }
        let schema = answer(&tools, "get_schema", json!({"database": "demo", "table": "power"})).await;
        assert_eq!(schema[0][1]["name"], "voltage");
        assert_eq!(schema[0][1]["unit"], "V");
        let status = answer(&tools, "node_status", json!({})).await;
        let named: Vec<&str> =
            status[0].as_array().unwrap().iter().filter_map(|board| board["name"].as_str()).collect();
        assert_eq!(named, FIELD);
        let counts = answer(&tools, "run_command", json!({"command": "get rows count"})).await;
        assert_eq!(counts[0][0]["board"], "greenhouse");
        let notes = answer(&tools, "query", json!({"sql": "SELECT level FROM notes"})).await;
        assert_eq!(notes[0], json!([{"level": 1}]), "only the board that has the table is asked");
    });
}

/// A table of a board's own, made through a tool of a user's own would need a file: it is made by hand here.
async fn create_notes(tools: &picolake::tools::Tools) {
    let board = tools.field().board("pump").unwrap();
    let command = "create table demo.notes (level int, text text)";
    picolake_tests::ask::ask(&board.session, command).await.unwrap();
}

#[test]
fn each_format_has_its_shape() {
    in_virtual_time(async {
        let (_boards, tools) = tools_on(&["pump"], Options::default());
        sleep(Duration::from_secs(3)).await;
        let query =
            |format: &str| json!({"table": "power", "select": ["state"], "limit": 1, "format": format});
        let json = answer(&tools, "query", query("json")).await;
        assert_eq!(json[0]["Query"].as_array().map(Vec::len), Some(1));
        assert_eq!(json[0]["Statistics"][0]["Count"], 1);
        let table = call(&tools, "query", query("table")).await;
        assert!(table.items[0].starts_with("┌─") && table.items[0].contains("│ state"), "{table:?}");
        let list = answer(&tools, "list_tables", json!({"database": "demo", "format": "json"})).await;
        assert_eq!(list[0][0], json!({"table": {"dbms": "demo", "name": "environment"}}));
        let status = answer(&tools, "node_status", json!({"format": "json"})).await;
        assert!(status[0][0]["Status"]["uptime_us"].is_u64(), "{status:?}");
        let whole =
            json!({"command": "sql demo format = json and stat = false \"SELECT x FROM vibration LIMIT 1\""});
        let whole =
            answer(&tools, "run_command", json!({"command": whole["command"], "format": "json"})).await;
        assert!(whole[0].get("Statistics").is_none(), "{whole:?}");
    });
}

#[test]
fn a_board_on_two_links_is_asked_once() {
    in_virtual_time(async {
        let board = SimBoard::start("pump");
        let (mut second, third) = (board.board(false), SimBoard::start("mill").board(false));
        second.name = "pump_again".into();
        let field = picolake::field::Field::new([board.board(false), second, third]);
        let tools = picolake::tools::Tools::new(field, Options::default()).unwrap();
        sleep(Duration::from_secs(2)).await;
        let rows =
            answer(&tools, "query", json!({"table": "environment", "select": ["_board", "_row_id"]})).await;
        let mut ids: Vec<String> = rows[0].as_array().unwrap().iter().map(Value::to_string).collect();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count, "{rows:?}");
        let boards = answer(&tools, "list_boards", json!({})).await;
        assert_eq!(boards[0][1]["same_board_as"], "pump");
    });
}

#[test]
fn groups_of_all_boards_are_those_of_each_put_together() {
    in_virtual_time(async {
        let (_boards, tools) = tools_on(&FIELD, Options::default());
        sleep(Duration::from_secs(5)).await;
        let mut query =
            json!({"table": "power", "select": ["state", "count(*) AS n"], "group_by": ["state"]});
        let mut counted = std::collections::BTreeMap::new();
        let mut count = |groups: &Value, sign: i64| {
            for group in groups.as_array().unwrap() {
                let n = group["n"].as_i64().unwrap();
                assert!(n > 0, "{groups}");
                *counted.entry(group["state"].to_string()).or_insert(0) += sign * n;
            }
        };
        count(&answer(&tools, "query", query.clone()).await[0], 1);
        for board in FIELD {
            query["boards"] = json!([board]);
            count(&answer(&tools, "query", query.clone()).await[0], -1);
        }
        assert!(counted.len() > 1 && counted.values().all(|rest| *rest == 0), "{counted:?}");
        let newest = json!({"table": "vibration", "order_by": ["timestamp DESC"], "select": ["_row_id"], "boards": ["mill"]});
        let newest = answer(&tools, "query", newest).await;
        let ids: Vec<u64> =
            newest[0].as_array().unwrap().iter().filter_map(|row| row["_row_id"].as_u64()).collect();
        assert!(ids.len() >= 2 && ids.windows(2).all(|pair| pair[0] == pair[1] + 1), "{ids:?}");
    });
}

#[test]
fn a_users_file_adds_replaces_hides_and_is_read_again() {
    in_virtual_time(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tools.yaml");
        let text = r#"
tools:
  - name: server_info
    hidden: true
  - name: list_tables
    description: The tables of demo.
    command: { type: get, template: "get tables where dbms = demo" }
  - name: states
    description: How often a board was in a state.
    command: { type: sql, template: "sql demo \"SELECT count(*) AS n FROM power WHERE state = '{state}' AND voltage < {volts}\"" }
    input_schema:
      properties: { state: { type: string }, volts: { type: number, default: 99 }, boards: { type: array } }
      required: [state]
  - name: here
    description: Rows of the gateway.
    command: { type: sql, template: "sql demo \"SELECT x FROM vibration\"", destination: local }
"#;
        std::fs::write(&file, text).unwrap();
        let options = Options { user_file: Some(file.clone()), ..Options::default() };
        let (_boards, tools) = tools_on(&FIELD, options);
        sleep(Duration::from_secs(3)).await;
        let names: Vec<String> = tools.list().iter().map(|tool| tool.name.clone()).collect();
        assert!(!names.contains(&"server_info".into()) && names.contains(&"states".into()), "{names:?}");
        assert_eq!(answer(&tools, "list_tables", json!({})).await[0][0], "environment");
        let hostile = json!({"state": "x' OR '1' = '1", "boards": ["pump"]});
        assert_eq!(answer(&tools, "states", hostile).await[0], json!([{"n": 0}]));

        assert_eq!(error(&tools, "here", json!({})).await["code"], "local_not_available");

        std::fs::write(&file, "tools: [{name: list_tables, hidden: tru}]").unwrap();
        sleep(Duration::from_secs(5)).await;
        assert_eq!(tools.list().len(), names.len(), "while the file is wrong, the tools stay");
        std::thread::sleep(Duration::from_millis(20)); // the file's time is the machine's
        std::fs::write(&file, "tools: [{name: list_tables, hidden: true}]").unwrap();
        sleep(Duration::from_secs(5)).await;
        assert_eq!(error(&tools, "list_tables", json!({})).await["code"], "unknown_tool");
    });
}

#[test]
fn calls_at_once_get_each_their_own_rows() {
    in_virtual_time(async {
        let (boards, tools) = tools_on(&FIELD, Options::default());
        for board in tools.field().boards() {
            board.session.wait_up(Duration::from_secs(9)).await.unwrap();
            picolake_tests::ask::ask(&board.session, "set sample demo vibration = 1ms").await.unwrap();
        }
        sleep(Duration::from_millis(600)).await;
        let clients = (0..8_u64).map(|client| {
            let (tools, boards) = (tools.clone(), boards.clone());
            tokio::task::spawn_local(async move {
                for round in 0..60_u64 {
                    let (board, first) =
                        (&boards[(client + round) as usize % 3], (client * 61 + round * 7) % 500);
                    let query = json!({
                        "table": "vibration", "select": ["_row_id", "x"], "boards": [board.name],
                        "where": format!("_row_id >= {first}"), "limit": 1 + round % 40,
                    });
                    let rows = answer(&tools, "query", query).await;
                    let rows = rows[0].as_array().unwrap();
                    assert_eq!(rows.len() as u64, 1 + round % 40);
                    for (index, row) in (first..).zip(rows) {
                        let shared::value::Value::Int(x) =
                            firmware::samplers::vibration::row(board.seed, index)[0]
                        else {
                            panic!("x is a number")
                        };
                        assert_eq!(*row, json!({"_row_id": index, "x": x}));
                    }
                    let list = answer(&tools, "list_databases", json!({})).await;
                    assert_eq!(list[0], json!(["demo"]));
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
    });
}

#[test]
fn now_is_one_moment_for_all_boards() {
    in_virtual_time(async {
        let (_boards, tools) = tools_on(&FIELD, Options::default());
        sleep(Duration::from_secs(3)).await;
        let rows = answer(&tools, "query", json!({"sql": "SELECT now() FROM environment", "limit": 2})).await;
        let cursor = &rows[1]["next_cursor"];
        let next = answer(&tools, "query", json!({"cursor": cursor})).await;
        let all: Vec<&Value> =
            rows[0].as_array().unwrap().iter().chain(next[0].as_array().unwrap()).collect();
        assert!(all.len() > 3 && all.iter().all(|row| row["now()"] == all[0]["now()"]), "{all:?}");
        assert_eq!(all[0]["now()"], next[1]["as_of"]);
        let none =
            answer(&tools, "query", json!({"table": "environment", "where": "timestamp < now() - 1 day"}))
                .await;
        assert_eq!(none[0], json!([]));
    });
}

#[test]
fn boards_whose_tables_differ_are_united_by_name() {
    in_virtual_time(async {
        let (_boards, tools) = tools_on(&["pump", "mill", "well"], Options::default());
        for (board, command) in [
            ("pump", "create table demo.notes (level int)"),
            ("pump", "insert demo notes {\"level\": 1}"),
            ("mill", "create table demo.notes (text text, level float)"),
            ("mill", "insert demo notes {\"level\": 2.5, \"text\": \"x\"}"),
            ("well", "create table demo.notes (level text)"),
        ] {
            let session = &tools.field().board(board).unwrap().session;
            picolake_tests::ask::ask(session, command).await.unwrap();
        }
        let sql = json!({"sql": "SELECT * FROM notes", "boards": ["pump", "mill"]});
        let rows = answer(&tools, "query", sql).await.remove(0);
        let shown = |row: &Value| (row["level"].clone(), row["text"].clone());
        assert_eq!(shown(&rows[0]), (json!(1.0), Value::Null));
        assert_eq!(shown(&rows[1]), (json!(2.5), json!("x")));
        let conflict = error(&tools, "query", json!({"sql": "SELECT level FROM notes"})).await;
        assert_eq!(
            (conflict["code"].as_str(), &conflict["details"]["boards"]),
            (Some("schema_conflict"), &json!(["pump", "well"]))
        );
        // What is not used does not matter, and each board adds up what it has.
        let counted = answer(&tools, "query", json!({"sql": "SELECT count(*) AS n FROM notes"})).await;
        assert_eq!(counted[0], json!([{"n": 2}]));
        let both = json!({"sql": "SELECT sum(level) AS s, avg(level / 2) AS a, max(text) AS t FROM notes", "boards": ["pump", "mill"]});
        assert_eq!(answer(&tools, "query", both).await[0], json!([{"s": 3.5, "a": 0.875, "t": "x"}]));
    });
}

#[test]
fn a_table_that_a_board_got_later_is_read_there_too() {
    in_virtual_time(async {
        let (boards, tools) = tools_on(&["pump", "mill"], Options::default());
        create_notes(&tools).await;
        let pump = &tools.field().board("pump").unwrap().session;
        picolake_tests::ask::ask(pump, "insert demo notes {\"level\": 1}").await.unwrap();
        let query = json!({"sql": "SELECT level FROM notes"});
        assert_eq!(answer(&tools, "query", query.clone()).await, [json!([{"level": 1}])]);
        // Another bridge creates it on the other board: nobody tells this one.
        let other = boards[1].session();
        other.wait_up(Duration::from_secs(9)).await.unwrap();
        for command in ["create table demo.notes (level int)", "insert demo notes {\"level\": 2}"] {
            picolake_tests::ask::ask(&other, command).await.unwrap();
        }
        let both = json!([{"level": 1}, {"level": 2}]);
        assert_eq!(answer(&tools, "query", query).await, [both]);
    });
}

#[test]
fn a_command_says_its_own_format_and_its_pages_go_on_as_it_said() {
    in_virtual_time(async {
        let (_boards, tools) = tools_on(&["pump"], Options::default());
        sleep(Duration::from_secs(3)).await;
        let status =
            answer(&tools, "run_command", json!({"command": "get status where format = json"})).await;
        assert!(status[0][0]["Status"].is_object(), "{status:?}");
        let select = "SELECT _row_id FROM vibration LIMIT 5";
        for (sql, keys) in [
            (format!("sql demo format = json and stat = false \"{select}\""), vec!["Query"]),
            (format!("sql demo format = json \"{select}\""), vec!["Query", "Statistics"]),
        ] {
            let mut items = answer(&tools, "run_command", json!({"command": sql, "limit": 2})).await;
            let mut ids = Vec::new();
            loop {
                let found: Vec<&str> = items[0].as_object().unwrap().keys().map(String::as_str).collect();
                assert_eq!(found, keys, "after {ids:?}");
                ids.extend(items[0]["Query"].as_array().unwrap().iter().map(|row| row["_row_id"].clone()));
                let Some(cursor) = items[1]["next_cursor"].as_str().map(str::to_string) else { break };
                items = answer(&tools, "run_command", json!({"cursor": cursor, "limit": 2})).await;
            }
            assert_eq!(ids, [0, 1, 2, 3, 4]);
        }
        assert_eq!(error(&tools, "run_command", json!({})).await["details"]["argument"], "command");
    });
}
