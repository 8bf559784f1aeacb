//! What statements beyond the dialect answer over several boards, by hand: through the tools that people use.

use crate::in_virtual_time;
use picolake::{
    query::{View, Views},
    tools::{Options, Tools},
};
use picolake_tests::{
    ask::ask,
    field::{SimBoard, answer, error, tools_on},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Rows that each of two boards has.
const ROWS: i64 = 200;

const JOIN: &str = "SELECT n.text, n.level, l.top FROM notes n JOIN limits l ON l.name = n.name \
                    WHERE n.level > l.top ORDER BY n.level";

/// Boards `a` and `b` with notes, and `c` that alone has limits.
async fn three(options: Options) -> (Vec<SimBoard>, Tools) {
    let (boards, tools) = tools_on(&["a", "b", "c"], options);
    let run = async |board: &str, command: String| {
        let session = &tools.field().board(board).unwrap().session;
        ask(session, &command).await.unwrap_or_else(|error| panic!("{command}: {error}"));
    };
    for (n, board) in ["a", "b"].iter().enumerate() {
        run(board, "create table demo.notes (level int, text text, name text) rows = 300".into()).await;
        for row in 0..ROWS {
            let name = if row % 2 == 0 { "even" } else { "odd" };
            let level = row * 10 + n as i64;
            let insert = format!(
                "insert demo notes {{\"level\": {level}, \"text\": \"{board}{row}\", \"name\": \"{name}\"}}"
            );
            run(board, insert).await;
        }
    }
    run("c", "create table demo.limits (name text, top int)".into()).await;
    for (name, top) in [("even", 1979), ("odd", 1990)] {
        run("c", format!("insert demo limits {{\"name\": \"{name}\", \"top\": {top}}}")).await;
    }
    (boards, tools)
}

async fn rows(tools: &Tools, sql: &str) -> Value {
    let mut items = answer(tools, "query", json!({"sql": sql, "limit": 1000})).await;
    assert_eq!(items.len(), 1, "{sql}: {items:?}");
    items.remove(0)
}

#[test]
fn tables_of_different_boards_are_joined() {
    in_virtual_time(async {
        let (_boards, tools) = three(Options::default()).await;
        let expected = json!([
            {"text": "a198", "level": 1980, "top": 1979},
            {"text": "b198", "level": 1981, "top": 1979},
            {"text": "b199", "level": 1991, "top": 1990},
        ]);
        assert_eq!(rows(&tools, JOIN).await, expected);
        let sql = "WITH top AS (SELECT name, max(level) AS m FROM notes GROUP BY name) \
                   SELECT top.name, m, m - (SELECT max(top) FROM limits) AS over, rank() OVER (ORDER BY m DESC) AS r \
                   FROM top ORDER BY 1";
        let expected = json!([
            {"name": "even", "m": 1981, "over": -9, "r": 2},
            {"name": "odd", "m": 1991, "over": 1, "r": 1},
        ]);
        assert_eq!(rows(&tools, sql).await, expected);
        let sql = "SELECT name FROM limits UNION SELECT text FROM notes WHERE level < 2 ORDER BY 1";
        assert_eq!(
            rows(&tools, sql).await,
            json!([{"name": "a0"}, {"name": "b0"}, {"name": "even"}, {"name": "odd"}])
        );
        assert_eq!(rows(&tools, "SELECT count(*) AS n FROM notes, limits").await, json!([{"n": 800}]));
        assert_eq!(rows(&tools, "VALUES (1, 'x')").await, json!([{"column1": 1, "column2": "x"}]));
    });
}

#[test]
fn pages_of_a_computed_answer_joined_are_the_whole() {
    in_virtual_time(async {
        let (_boards, tools) = three(Options::default()).await;
        let sql = "SELECT text, row_number() OVER (ORDER BY level) AS r FROM notes ORDER BY r";
        let mut items = answer(&tools, "query", json!({"sql": sql, "limit": 150})).await;
        let mut joined = items[0].as_array().unwrap().clone();
        while let Some(cursor) = items.get(1).and_then(|notes| notes["next_cursor"].as_str()) {
            items = answer(&tools, "query", json!({"cursor": cursor, "limit": 150})).await;
            joined.extend(items[0].as_array().unwrap().clone());
        }
        assert_eq!(Value::from(joined), rows(&tools, sql).await);
        // More kept answers than statements can run at once: none of them holds a place.
        for _ in 0..6 {
            let items = answer(&tools, "query", json!({"sql": sql, "limit": 1})).await;
            assert_eq!(items[1]["truncated"], true);
        }
    });
}

#[test]
fn a_board_that_is_gone_is_named_and_left_out_of_every_table() {
    in_virtual_time(async {
        let (boards, tools) = three(Options::default()).await;
        let sql = "SELECT count(*) AS n, min(x.text) AS first FROM notes x JOIN notes y USING (level)";
        assert_eq!(rows(&tools, sql).await, json!([{"n": 400, "first": "a0"}]));
        boards[0].cut();
        let items = answer(&tools, "query", json!({"sql": sql})).await;
        assert_eq!(items[0], json!([{"n": 200, "first": "b0"}]));
        let boards_named = &items[1]["boards"];
        assert_eq!((&boards_named[0]["name"], &boards_named[1]), (&json!("a"), &json!({"name": "b"})));
        // Whether the link has just broken, or cannot be opened again, is a matter of the moment.
        assert!(boards_named[0]["missing"].as_str().is_some_and(|why| why.starts_with("board_offline: ")));
        let refused = error(&tools, "query", json!({"sql": sql, "strict": true})).await;
        assert_eq!(refused["code"], "board_offline");
        sleep(Duration::from_secs(10)).await;
        let again = answer(&tools, "query", json!({"sql": sql})).await;
        let known = &again[1]["boards"][0];
        assert_eq!(
            (&again[0], &known["name"]),
            (&items[0], &json!("a")),
            "known to be gone before it is asked"
        );
        assert!(known["missing"].is_string(), "{known}");
        boards[1].cut();
        let refused = error(&tools, "query", json!({"sql": sql})).await;
        assert_eq!(refused["code"], "board_offline", "a table of which nothing is left is no empty one");
    });
}

#[test]
fn a_board_that_goes_in_the_middle_leaves_none_of_its_rows() {
    in_virtual_time(async {
        let (boards, tools) = three(Options::default()).await;
        let sql = "SELECT substr(text, 1, 1) AS b, count(*) OVER () AS n FROM notes";
        let asked = answer(&tools, "query", json!({"sql": sql, "limit": 1000}));
        let cut = async {
            sleep(Duration::from_micros(50)).await;
            boards[1].stall();
        };
        let (items, ()) = tokio::join!(asked, cut);
        let rows = items[0].as_array().unwrap();
        if items.get(1).is_some_and(|notes| notes["boards"][0]["missing"].is_string()) {
            assert_eq!(rows.len(), 200, "{}", items[1]);
            assert!(rows.iter().all(|row| *row == json!({"b": "a", "n": 200})));
        } else {
            assert_eq!(rows.len(), 400, "all had come before the link stood still");
        }
    });
}

#[test]
fn an_explanation_shows_what_boards_are_asked_and_that_sqlite_does_the_rest() {
    in_virtual_time(async {
        let (_boards, tools) = three(Options::default()).await;
        let sql = "SELECT n.text FROM notes n JOIN limits l ON l.name = n.name WHERE n.level > 5 AND l.top > n.level";
        let told = answer(&tools, "explain_query", json!({"sql": sql})).await.remove(0);
        let of = |step: &str| -> Vec<(String, String)> {
            let text = |value: &Value| value.as_str().unwrap().to_string();
            let steps = told.as_array().unwrap().iter().filter(|row| row["step"] == step);
            steps.map(|row| (text(&row["board"]), text(&row["detail"]))).collect()
        };
        let notes = "SELECT \"level\", \"text\", \"name\", _row_id FROM \"notes\" WHERE \"level\" > 5";
        let limits = "SELECT \"name\", \"top\", _row_id FROM \"limits\"";
        let asked = [("a", notes), ("b", notes), ("c", limits)];
        assert_eq!(of("asked"), asked.map(|(board, sql)| (board.to_string(), sql.to_string())));
        assert_eq!(of("run"), [("(gateway)".to_string(), format!("runs in SQLite: {sql}"))]);
        let told = answer(&tools, "explain_query", json!({"sql": "VALUES (1)"})).await.remove(0);
        let run = json!([{"board": "(gateway)", "step": "run", "detail": "runs in SQLite: VALUES (1)"}]);
        assert_eq!(told, run);
    });
}

#[test]
fn a_typing_error_is_explained_by_the_dialect_and_other_errors_before_any_row_travels() {
    in_virtual_time(async {
        let (_boards, tools) = three(Options::default()).await;
        let columns = vec!["n.level"; 33].join(", ");
        for (sql, code, part) in [
            ("SELECT level FORM notes", "syntax", "FROM"),
            ("SELECT avgg(level) FROM notes", "syntax", "avg"),
            ("SELECT n.levle FROM notes n JOIN limits l USING (name)", "unknown_column", "levle"),
            ("SELECT 1 FROM notes JOIN limts USING (name)", "unknown_table", "limts"),
            ("SELECT frobnicate(n.level) FROM notes n JOIN limits USING (name)", "unsupported", "frobnicate"),
            ("SELECT * FROM notes JOIN", "syntax", "Expected"),
            (&format!("SELECT {columns} FROM notes n, limits"), "capacity", "COLUMNS_MAX"),
        ] {
            let refused = error(&tools, "query", json!({"sql": sql})).await;
            assert_eq!(refused["code"], code, "{sql}: {refused:?}");
            let told = format!("{} {}", refused["error"], refused["suggested_action"]);
            assert!(told.contains(part), "{sql}: {told}");
        }
    });
}

#[test]
fn a_statement_may_be_longer_than_a_command_of_a_board() {
    in_virtual_time(async {
        let (_boards, tools) = three(Options::default()).await;
        let list: Vec<String> = (0..400).map(|n| (n * 10).to_string()).collect();
        let sql = format!("SELECT count(*) AS n FROM notes, limits WHERE level IN ({})", list.join(", "));
        assert!(sql.len() > 2_000);
        assert_eq!(rows(&tools, &sql).await, json!([{"n": 400}]));
    });
}

#[test]
fn an_export_takes_any_statement() {
    in_virtual_time(async {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { export_folder: Some(folder.path().into()), ..Options::default() };
        let (_boards, tools) = three(options).await;
        let export = json!({"sql": JOIN, "file": "joined.csv", "file_format": "csv"});
        let job = answer(&tools, "export", export).await.remove(0);
        let status = loop {
            let status = answer(&tools, "job_status", json!({"job": job["job"]})).await.remove(0);
            if status["state"] != "running" {
                break status;
            }
            sleep(Duration::from_millis(10)).await;
        };
        assert_eq!((&status["state"], &status["rows"]), (&json!("complete"), &json!(3)), "{status}");
        assert_eq!((&status["boards_done"], &status["boards"]), (&json!(3), &json!(3)), "{status}");
        let text = std::fs::read_to_string(folder.path().join("joined.csv")).unwrap();
        assert_eq!(text, "text,level,top\na198,1980,1979\nb198,1981,1979\nb199,1991,1990\n");
    });
}

#[test]
fn a_view_is_queried_as_a_table() {
    in_virtual_time(async {
        let view =
            |name: &str, sql: &str| View { name: name.into(), database: "demo".into(), sql: sql.into() };
        let views = Views::new(vec![
            view("highest", "SELECT max(level) AS level, count(*) AS n FROM high"),
            view("high", JOIN),
        ]);
        let options = Options { views: views.unwrap(), ..Options::default() };
        let (_boards, tools) = three(options).await;
        assert_eq!(rows(&tools, "SELECT level, n FROM highest").await.as_array().unwrap().len(), 1);
        assert_eq!(rows(&tools, "SELECT count(*) AS n FROM high WHERE top = 1979").await, json!([{"n": 2}]));
        let arguments = json!({"table": "high", "select": ["text"], "where": "level > 1990"});
        assert_eq!(answer(&tools, "query", arguments).await, [json!([{"text": "b199"}])]);
        // The statement's own CTE is not what the view reads.
        let sql = "WITH limits AS (SELECT 7 AS x) SELECT x, count(*) AS n FROM limits, high GROUP BY x";
        assert_eq!(rows(&tools, sql).await, json!([{"x": 7, "n": 3}]));
        let tables = answer(&tools, "list_tables", json!({"database": "demo"})).await.remove(0);
        let names = tables.as_array().unwrap();
        assert!(["high", "highest", "limits", "notes"].iter().all(|name| names.contains(&json!(name))));
        let columns = answer(&tools, "get_schema", json!({"database": "demo", "table": "high"})).await;
        let expected = json!([
            {"name": "text", "type": "text"}, {"name": "level", "type": "int"}, {"name": "top", "type": "int"},
        ]);
        assert_eq!(columns, [expected]);
    });
}
