//! SQL over the archive alone: the rows that were copied, in any words that SQLite knows, and nothing else.

use picolake::{
    archive::{self, Archive},
    field::Field,
    tools::{Options, Tools},
};
use picolake_tests::field::{answer, error};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long the first copies may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Rows that every board has given before anything is asked.
const ROWS: u64 = 5;

const TOOLS: &str = r#"
tools:
  - name: archived
    description: Runs a SELECT on the rows that were archived.
    command: { type: sql, template: "sql demo \"{sql}\"", destination: local }
    input_schema:
      type: object
      properties: { sql: { type: string }, limit: { type: integer } }
      required: [sql]
  - name: local_status
    description: Cannot be.
    command: { type: get, template: "get status", destination: local }
"#;

/// Tools on the simulated field, of whose fastest table some rows have been copied.
async fn tools(folder: &std::path::Path) -> Tools {
    let file = folder.join("tools.yaml");
    std::fs::write(&file, TOOLS).unwrap();
    let field = Field::demo().unwrap();
    let archive = Archive::start(archive::Options::new(folder.join("archive.db")), &field);
    let begun = Instant::now();
    // The file is not there at first, and then the rows come.
    let has_rows = async || {
        let series = archive.series_of("demo", "vibration").await.unwrap_or_default();
        series.len() == 3 && series.iter().all(|series| series.watermark >= ROWS)
    };
    while !has_rows().await {
        assert!(begun.elapsed() < PATIENCE, "{:?}", archive.copies());
        tokio::time::sleep(Duration::from_millis(20)).await; // rows are made in real time
    }
    let options = Options { archive: Some(archive), user_file: Some(file), ..Options::default() };
    Tools::new(field, options).unwrap()
}

async fn local(tools: &Tools, sql: &str) -> Value {
    answer(tools, "archived", json!({"sql": sql})).await.remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_sql_sees_what_boards_have_given() {
    let folder = tempfile::tempdir().unwrap();
    let tools = tools(folder.path()).await;
    let counted =
        local(&tools, "SELECT _board, count(*) AS n, max(_row_id) AS last FROM vibration GROUP BY _board")
            .await;
    let boards = counted.as_array().unwrap();
    assert_eq!(boards.len(), 3, "{counted}");
    for board in boards {
        assert_eq!(
            board["n"].as_u64().unwrap(),
            board["last"].as_u64().unwrap() + 1,
            "each row once: {counted}"
        );
    }
    // The same rows as the boards have, by their ids.
    let rows = "SELECT _board, _row_id, x, y, z, timestamp FROM vibration WHERE _row_id < 5 ORDER BY _board, _row_id";
    let mut on_boards = answer(&tools, "query", json!({"sql": rows})).await.remove(0);
    assert_eq!(local(&tools, rows).await, on_boards);
    assert!(on_boards.as_array_mut().is_some_and(|rows| rows.len() == 15));
    let windowed = local(
        &tools,
        "WITH near AS (SELECT _row_id, x - lag(x) OVER (PARTITION BY _board ORDER BY _row_id) AS step FROM vibration WHERE _row_id < 5) SELECT count(step) AS n FROM near",
    );
    assert_eq!(windowed.await, json!([{"n": 12}]));
    for (sql, code) in
        [("SELECT 1 FROM absent", "unknown_table"), ("SELECT absent FROM vibration", "unknown_column")]
    {
        let refused = error(&tools, "archived", json!({"sql": sql})).await;
        assert_eq!(refused["code"], code, "{refused:?}");
    }
    let bytes = || std::fs::read(folder.path().join("archive.db")).map(|bytes| bytes.len());
    assert!(bytes().is_ok());
    for hostile in [
        "ATTACH 'x' AS y",
        "PRAGMA user_version = 7",
        "DELETE FROM vibration",
        "VACUUM INTO 'x'",
        "SELECT 1; DROP TABLE runs",
    ] {
        error(&tools, "archived", json!({"sql": hostile})).await;
    }
    assert_eq!(error(&tools, "local_status", json!({})).await["code"], "local_not_available");
}

#[tokio::test]
async fn without_an_archive_local_sql_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tools.yaml");
    std::fs::write(&file, TOOLS).unwrap();
    let options = Options { user_file: Some(file), ..Options::default() };
    let tools = Tools::new(Field::demo().unwrap(), options).unwrap();
    let refused = error(&tools, "archived", json!({"sql": "SELECT 1 FROM vibration"})).await;
    assert_eq!(refused["code"], "local_not_available");
}
