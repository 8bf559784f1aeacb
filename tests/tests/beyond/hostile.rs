//! Statements that want more than to read, or that do not end, by every way in: each is refused or cut, with a code.

use crate::{alone, in_virtual_time};
use picolake::{
    field::Field,
    query::sqlite::STATEMENTS_MAX,
    tools::{Context, Options, Tools},
};
use picolake_tests::{
    field::{SimBoard, error, tools_on},
    picolake,
    serving::Serving,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{task::LocalSet, time::Instant};

/// The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
const ENDLESS: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
const REFUSED: [&str; 14] = [
    "ATTACH 'stolen' AS x",
    "PRAGMA writable_schema = ON",
    "SELECT * FROM pragma_database_list",
    "VACUUM INTO 'stolen'",
    "SELECT load_extension('evil') FROM power, environment",
    "SELECT writefile('stolen', 'x') FROM power, environment",
    "SELECT * FROM sqlite_master, power",
    "WITH x AS (DELETE FROM power RETURNING 1) SELECT * FROM x",
    "WITH x AS (SELECT 1) INSERT INTO power SELECT * FROM x",
    "WITH x AS (SELECT 1) SELECT * FROM x; DROP TABLE power",
    "SELECT 1 FROM power; ATTACH 'stolen' AS x",
    "SELECT 1 FROM power, environment -- ; PRAGMA x",
    "SELECT * FROM power UNION SELECT * FROM \"table 0\"",
    "UPDATE power SET voltage = 1",
];
const CODES: [&str; 5] = ["syntax", "unsupported", "unknown_table", "unknown_column", "wrong_argument"];

#[test]
fn a_tool_refuses_what_is_not_reading() {
    in_virtual_time(async {
        let (_boards, tools) = tools_on(&["pump"], Options::default());
        for tool in ["query", "explain_query"] {
            for sql in REFUSED {
                let refused = error(&tools, tool, json!({"sql": sql, "database": "demo"})).await;
                let code = refused["code"].as_str().unwrap();
                assert!(CODES.contains(&code), "{tool} {sql}: {refused:?}");
            }
        }
    });
}

#[test]
fn a_statement_without_end_is_cut_at_the_time_limit_of_its_call() {
    let _alone = alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let board = SimBoard::start("pump");
        let tools = Tools::new(Field::new([board.board(true)]), Options::default()).unwrap();
        let call = async |sql: &str, time: Duration| {
            let Value::Object(arguments) = json!({"sql": sql, "database": "demo"}) else { unreachable!() };
            let context = Context { deadline: Instant::now() + time, ..Context::default() };
            tools.call("query", arguments, context).await
        };
        let count = ENDLESS.replace("SELECT x FROM c", "SELECT count(*) FROM c, power");
        let count = count.replace("SELECT x + 1 FROM c, power", "SELECT x + 1 FROM c");
        // More than can run at once: each gives its place back.
        for _ in 0..2 * STATEMENTS_MAX {
            let begun = Instant::now();
            let outcome = call(&count, Duration::from_millis(800)).await;
            assert!(outcome.is_error && outcome.items[0].contains("\"timeout\""), "{outcome:?}");
            assert!(begun.elapsed() < PATIENCE);
        }
        let outcome = call(ENDLESS, PATIENCE).await;
        assert!(outcome.items[0].contains("\"capacity\""), "rows without end are too many: {outcome:?}");
        let outcome =
            call("SELECT count(*) > 0 AS ok FROM power a JOIN power b USING (_row_id)", PATIENCE).await;
        assert_eq!(outcome.items[0], "[{\"ok\":true}]");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_it_is_refused_too_and_ends_with_its_client() {
    let server = Serving::start(&["--demo"]);
    let client = reqwest::Client::new();
    let ask = async |sql: &str| {
        let body = json!({"database": "demo", "sql": sql});
        client.post(server.at("/query")).json(&body).send().await.expect("an answer")
    };
    for sql in REFUSED {
        let answer = ask(sql).await;
        assert_eq!(answer.status(), 400, "{sql}");
        let told: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert!(CODES.contains(&told["code"].as_str().unwrap()), "{sql}: {told}");
    }
    // Whoever goes away takes the statement along: else there would be no place for the last.
    for _ in 0..2 * STATEMENTS_MAX {
        let mut answer = tokio::time::timeout(PATIENCE, ask(ENDLESS)).await.expect("there is a place");
        let first = answer.chunk().await.unwrap().expect("rows");
        assert!(first.starts_with(b"{\"type\":\"data\",\"rows\":[{\"x\":1}"), "{first:?}");
    }
    let sql = "SELECT count(*) AS boards FROM (SELECT DISTINCT _board FROM power)";
    let answer = tokio::time::timeout(PATIENCE, ask(sql)).await.expect("there is a place");
    let text = answer.text().await.unwrap();
    assert!(text.starts_with("{\"type\":\"data\",\"rows\":[{\"boards\":3}],\"row_count\":1}"), "{text}");
}

#[test]
fn on_the_command_line_it_is_refused_too() {
    for sql in [REFUSED[0], REFUSED[1], REFUSED[7], REFUSED[9]] {
        let output = picolake().args(["query", "--demo", sql]).output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{sql}: {output:?}");
        assert!(!told.trim().is_empty() && !told.contains("panicked"), "{sql}: {told}");
    }
    let sql = "SELECT count(*) > 0 AS ok FROM power p JOIN environment e ON e._board = p._board";
    let output = picolake().args(["query", "--demo", "--format", "mcp", sql]).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "[{\"ok\":true}]", "{output:?}");
}
