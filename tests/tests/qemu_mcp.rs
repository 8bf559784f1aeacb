//! An MCP session over stdio with the real image in QEMU, on its serial line and over TCP.

#[path = "mcp/client.rs"]
mod client;

use client::{Client, call, code, data, items};
use firmware::samplers::vibration;
use picolake::link::Address;
use picolake_tests::{
    picolake, program,
    qemu::{Qemu, image},
};
use rmcp::{ServiceExt as _, transport::TokioChildProcess};
use serde_json::{Value, json};
use shared::value::Value as Cell;
use std::time::Duration;
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(120);
/// So many rows are paged at least.
const ROWS: u64 = 250;
/// Rows that one answer has room for, whatever their values are.
const ROWS_IN_ONE: usize = 400;
const PAGE_ROWS: usize = 40;

/// A whole session of a client whose server finds the board at this link.
async fn session_over(link: &Address) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("picolake.yaml");
    std::fs::write(
        &config,
        format!("boards:\n  - name: bench\n    link: '{link}'\narchive: {{enabled: false}}\n"),
    )
    .unwrap();
    let mut command = Command::from(picolake());
    command.args(["serve", "--stdio", "--config"]).arg(&config);
    let client = ().serve(TokioChildProcess::new(command).unwrap()).await.unwrap();
    let session = async {
        board_is_up(&client).await;
        what_there_is(&client).await;
        pages_are_the_whole(&client, seed(&client, link).await).await;
        status(&client).await;
        writes_are_refused(&client).await;
    };
    tokio::time::timeout(PATIENCE, session).await.expect("the session ends in time");
    client.cancel().await.unwrap();
}

/// The board boots while the client asks already.
async fn board_is_up(client: &Client) {
    loop {
        let (texts, is_error) = call(client, "list_databases", json!({})).await;
        if !is_error {
            return;
        }
        let is_coming = texts[0].contains("board_offline") || texts[0].contains("timeout");
        assert!(is_coming, "{texts:?}");
    }
}

async fn what_there_is(client: &Client) {
    assert_eq!(data(client, "list_databases", json!({})).await, json!(["demo"]));
    let tables = data(client, "list_tables", json!({"database": "demo"})).await;
    assert_eq!(tables, json!(["environment", "power", "vibration"]));
    let schema = data(client, "get_schema", json!({"database": "demo", "table": "vibration"})).await;
    let columns = schema.as_array().unwrap();
    assert_eq!(columns.len(), vibration::TABLE.columns.len(), "{schema}");
    for (column, spec) in columns.iter().zip(vibration::TABLE.columns) {
        assert_eq!(
            (column["name"].as_str(), column["type"].as_str()),
            (Some(spec.name), Some(spec.kind.name()))
        );
    }
}

/// What the rows of the board's sensors are made from.
async fn seed(client: &Client, link: &Address) -> u32 {
    let boards = data(client, "list_boards", json!({})).await;
    assert_eq!(boards.as_array().map(Vec::len), Some(1), "{boards}");
    let board = &boards[0];
    assert_eq!((&board["name"], &board["state"]), (&json!("bench"), &json!("up")), "{board}");
    assert_eq!((&board["link"], &board["writable"]), (&json!(link.to_string()), &json!(false)), "{board}");
    u32::from_str_radix(&board["id"].as_str().unwrap()[4..], 16).unwrap()
}

/// Every page by its cursor while the board makes more rows; then the same rows in one answer.
async fn pages_are_the_whole(client: &Client, seed: u32) {
    let enough = json!({"sql": format!("SELECT count(*) >= {ROWS} AS enough FROM vibration")});
    while data(client, "query", enough.clone()).await != json!([{"enough": true}]) {}
    let select = json!(["*", "_row_id"]);
    let (mut rows, mut pages) = (Vec::new(), 0);
    let mut next = json!({"table": "vibration", "select": select, "limit": PAGE_ROWS});
    loop {
        let answer = items(client, "query", next).await;
        let page = answer[0].as_array().unwrap();
        rows.extend(page.iter().cloned());
        pages += 1;
        let notes = answer.get(1).unwrap_or(&Value::Null);
        let Some(cursor) = notes["next_cursor"].as_str() else { break };
        assert_eq!((page.len(), &notes["rows_lost"]), (PAGE_ROWS, &json!(0)), "{notes}");
        next = json!({"cursor": cursor, "limit": PAGE_ROWS});
    }
    assert!(rows.len() as u64 >= ROWS, "{} rows", rows.len());
    assert_eq!(pages, rows.len().div_ceil(PAGE_ROWS));
    for (id, row) in (0..).zip(&rows) {
        let made = vibration::row(seed, id).map(|cell| match cell {
            Cell::Int(v) => Value::from(v),
            other => panic!("{other:?}"),
        });
        assert_eq!(row["_row_id"], id, "no gap and no repeat");
        assert_eq!([&row["x"], &row["y"], &row["z"]], made.each_ref(), "row {id}");
    }
    rows.truncate(ROWS_IN_ONE); // on a busy machine the board has made more meanwhile than one answer holds
    let bound = format!("_row_id < {}", rows.len());
    let whole = json!({"table": "vibration", "select": select, "where": bound, "limit": 1000});
    assert_eq!(data(client, "query", whole).await, Value::from(rows));
}

async fn status(client: &Client) {
    let status = data(client, "node_status", json!({})).await;
    assert_eq!(status.as_array().map(Vec::len), Some(1), "{status}");
    assert_eq!(status[0]["name"], "bench");
    assert!(status[0]["uptime_us"].as_u64().is_some_and(|uptime| uptime > 0), "{status}");
}

/// Nothing on the board changes, whichever tool is tried.
async fn writes_are_refused(client: &Client) {
    let row =
        json!({"database": "demo", "table": "power", "row": {"voltage": 99_999.0}, "boards": ["bench"]});
    assert_eq!(code(client, "insert_row", row).await, "write_refused");
    let create = json!({"command": "create table demo.notes (level int)", "boards": ["bench"]});
    assert_eq!(code(client, "run_command", create).await, "write_refused");
    let written = json!({"sql": "SELECT count(*) AS n FROM power WHERE voltage > 9999"});
    assert_eq!(data(client, "query", written).await, json!([{"n": 0}]));
    let tables = data(client, "list_tables", json!({"database": "demo"})).await;
    assert_eq!(tables, json!(["environment", "power", "vibration"]));
}

#[tokio::test]
async fn a_client_over_stdio_asks_a_board_on_its_serial_line() {
    let Some(image) = image("MCP over a serial line") else { return };
    program(); // before the board boots: rows that pile up while it is built would not fit one answer
    let board = Qemu::boot(&image).unwrap();
    session_over(&board.serial).await;
}

#[tokio::test]
async fn a_client_over_stdio_asks_a_board_over_tcp() {
    let Some(image) = image("MCP over TCP") else { return };
    program(); // before the board boots: rows that pile up while it is built would not fit one answer
    let board = Qemu::boot(&image).unwrap();
    session_over(&board.tcp).await;
}
