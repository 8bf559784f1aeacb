//! Many clients at the same time on one server: each gets its own answers, whole.

use crate::client::{Client, data, items};
use firmware::samplers::{environment, power, vibration};
use picolake::link::sim;
use picolake_tests::serving::Serving;
use rmcp::{ServiceExt as _, transport::StreamableHttpClientTransport};
use serde_json::{Value, json};
use shared::{schema::TableSpec, value::Value as Cell};
use std::ops::Range;

const CLIENTS: u64 = 8;
const CALLS: u64 = 500;
/// After so many calls a client looks again which rows there are: a board keeps only its newest.
const CALLS_OF_A_LOOK: u64 = 50;
/// So many of a board's newest rows are asked for; it keeps ten times as many.
const NEWEST_ROWS: u64 = 400;
const BOARDS: [&str; 3] = ["greenhouse", "pump", "mill"];
const TABLES: [TableSpec; 3] = [environment::TABLE, power::TABLE, vibration::TABLE];

/// The `x` of a row of a simulated board.
fn x_of(board: &str, row_id: u64) -> i64 {
    match vibration::row(sim::sensor_seed(&sim::facts(board)), row_id)[0] {
        Cell::Int(x) => x,
        other => panic!("{other:?}"),
    }
}

/// How many rows every board has made, once they are enough.
async fn rows_made(client: &Client) -> u64 {
    let mut made = u64::MAX;
    for board in BOARDS {
        made = made.min(rows_made_by(client, board).await);
    }
    made
}

async fn rows_made_by(client: &Client, board: &str) -> u64 {
    let sql = "SELECT max(_row_id) + 1 AS made FROM vibration";
    loop {
        let answer = data(client, "query", json!({"sql": sql, "boards": [board]})).await;
        match answer[0]["made"].as_u64() {
            Some(made) if made >= NEWEST_ROWS => return made,
            _ => {} // they come by the board's own clock
        }
    }
}

/// Asks for these rows of these boards, in a column that only this call has.
async fn rows_are_those(client: &Client, boards: &[&str], ids: Range<u64>, column: &str) {
    let query = json!({
        "table": "vibration", "select": ["_row_id", format!("x AS {column}")], "boards": boards,
        "where": format!("_row_id >= {} AND _row_id < {}", ids.start, ids.end), "limit": 1000,
    });
    let answer = items(client, "query", query).await;
    let expected: Vec<Value> = boards
        .iter()
        .flat_map(|board| ids.clone().map(move |id| json!({"_row_id": id, column: x_of(board, id)})))
        .collect();
    assert_eq!(answer[0], Value::from(expected), "{column}: rows {ids:?} of {boards:?}");
    if let Some(notes) = answer.get(1) {
        assert!(notes["truncated"] == false && notes["rows_lost"] == 0, "{column}: {notes}");
    }
}

/// Asks for the number and the sum of these rows.
async fn sums_are_those(client: &Client, board: &str, ids: Range<u64>, column: &str) {
    let (first, end) = (ids.start, ids.end);
    let sql = format!(
        "SELECT count(*) AS n, sum(x) AS {column} FROM vibration WHERE _row_id >= {first} AND _row_id < {end}"
    );
    let sum: i64 = ids.map(|id| x_of(board, id)).sum();
    let answer = data(client, "query", json!({"sql": sql, "boards": [board]})).await;
    assert_eq!(answer, json!([{"n": end - first, column: sum}]), "{sql}");
}

/// One of the tools, by turns; no two clients ask the same at the same turn.
async fn ask_and_check(client: &Client, number: u64, nth: u64, made: u64) {
    let turn = number * 3 + nth;
    let board = BOARDS[(turn % 3) as usize];
    let column = format!("c{number}_{nth}");
    let first = made - NEWEST_ROWS + (number * 61 + nth * 7) % (NEWEST_ROWS - 50);
    match turn % 8 {
        0 => assert_eq!(data(client, "list_databases", json!({})).await, json!(["demo"])),
        1 => {
            let names = TABLES.map(|table| table.name);
            let listed = data(client, "list_tables", json!({"database": "demo", "boards": [board]})).await;
            assert_eq!(listed, json!(names));
        }
        2 | 3 => {
            let table = &TABLES[(turn / 8 % 3) as usize];
            let schema = data(client, "get_schema", json!({"database": "demo", "table": table.name})).await;
            let named: Vec<&str> =
                schema.as_array().unwrap().iter().filter_map(|column| column["name"].as_str()).collect();
            let expected: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            assert_eq!(named, expected, "{}", table.name);
        }
        4 => rows_are_those(client, &BOARDS, first..first + 1 + nth % 20, &column).await,
        5 => sums_are_those(client, board, first..first + 1 + nth % 50, &column).await,
        _ => rows_are_those(client, &[board], first..first + 1 + nth % 50, &column).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_at_the_same_time_get_each_their_own_answers() {
    let server = Serving::start(&["--demo"]);
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let transport = StreamableHttpClientTransport::from_uri(server.at("/mcp"));
        asking.spawn(async move {
            let client = ().serve(transport).await.unwrap();
            let mut made = 0;
            for nth in 0..CALLS {
                if nth % CALLS_OF_A_LOOK == 0 {
                    made = rows_made(&client).await;
                }
                ask_and_check(&client, number, nth, made).await;
            }
            client.cancel().await.unwrap();
        });
    }
    while let Some(ended) = asking.join_next().await {
        ended.unwrap();
    }
}
