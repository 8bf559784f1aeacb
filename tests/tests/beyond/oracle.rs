//! Generated statements over two generated tables that are spread over boards, against plain tables of SQLite.

use crate::in_virtual_time;
use picolake::{
    field::Field,
    query::sqlite::{Cell, Row},
    tools::{Context, Options, ToolError, Tools},
};
use picolake_tests::{
    field::SimBoard,
    oracle::{Dice, Table, cases, difference, plain, plain_rows, statement},
    spread::{ID, spread},
};
use shared::{link_test::mix, value::Value};
use std::io::Write as _;

const CASES: u64 = 3_000;
const CASES_PER_FIELD: u64 = 30;
const BOARDS_MAX: u64 = 6;
/// Rows of a table at most: each is inserted by a command.
const ROWS_MAX: usize = 60;

async fn rows(tools: &Tools, sql: &str) -> Result<Vec<Row>, ToolError> {
    let mut stream = tools.stream_query("demo", sql, Context::default()).await?;
    let mut rows = Vec::new();
    while let Some(batch) = stream.next_batch().await? {
        stream.rows(&batch, |cells| rows.push(cells.iter().map(as_cell).collect()))?;
    }
    Ok(rows)
}

fn as_cell(value: &Value<'_>) -> Cell {
    match *value {
        Value::Null => Cell::Null,
        Value::Bool(value) => Cell::Bool(value),
        Value::Int(value) => Cell::Int(value),
        Value::Float32(value) => Cell::Float32(value),
        Value::Float64(value) => Cell::Float64(value),
        Value::Timestamp(value) => Cell::Timestamp(value),
        Value::Text(text) => Cell::Text(text.into()),
    }
}

/// Asks the statements of one field; counts those that were answered, their rows, and those that both refused.
async fn compare_all(seed: u64, tally: &mut [usize; 3]) {
    let mut dice = Dice::new(mix(seed));
    let count = 1 + dice.below(BOARDS_MAX);
    let boards: Vec<SimBoard> = (0..count).map(|n| SimBoard::start(&format!("b{n:02}"))).collect();
    let field = Field::new(boards.iter().map(|board| board.board(true)));
    let without_pushdown = seed % 4 == 3;
    let tools = Tools::new(field, Options { without_pushdown, ..Options::default() }).unwrap();
    let mut tables = Vec::new();
    for name in ["a", "b"] {
        let mut table = Table::of(mix(seed << 8 | tables.len() as u64));
        table.rows.truncate(ROWS_MAX);
        // A table need not be on every board.
        let having = &boards[..1 + dice.below(count) as usize];
        tables.push(spread(&tools, having, name, table, &mut dice).await);
    }
    let tables: [Table; 2] = tables.try_into().expect("two tables");
    let sqlite = plain(&tables).expect("SQLite takes the rows");
    for index in 0..CASES_PER_FIELD {
        let sql = statement(&tables, &mut Dice::new(mix(seed << 16 | index))).replace("_row_id", ID);
        let told = || format!("PICOLAKE_SEED={seed} statement {index}, {count} boards: {sql}");
        match (plain_rows(&sqlite, &sql), rows(&tools, &sql).await) {
            (Ok(expected), Ok(actual)) => {
                if let Some(why) = difference(&expected, &actual) {
                    panic!("{}: {why}\n{}{}", told(), tables[0], tables[1]);
                }
                tally[0] += 1;
                tally[1] += actual.len();
            }
            (Err(message), Err(fault))
                if message.contains("integer overflow") && fault.code == "overflow" =>
            {
                tally[2] += 1;
            }
            (expected, actual) => {
                let (expected, actual) = (expected.map(|rows| rows.len()), actual.map(|rows| rows.len()));
                panic!("{}: {expected:?} / {actual:?}", told());
            }
        }
    }
}

#[test]
fn joins_windows_and_subqueries_over_boards_get_the_answer_of_sqlite_over_all_rows() {
    let seeds = match std::env::var("PICOLAKE_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a seed is a number");
            seed..seed + 1
        }
        Err(_) => 0..cases(CASES / CASES_PER_FIELD),
    };
    let mut tally = [0; 3];
    for seed in seeds {
        in_virtual_time(compare_all(seed, &mut tally));
    }
    let [same, rows, refused] = tally;
    let _ = writeln!(std::io::stderr(), "{same} the same with {rows} rows, {refused} refused by both");
    assert!(same < 100 || rows > same, "most answers have no rows");
}
