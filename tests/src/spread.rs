//! Generated tables spread over simulated boards: each has some of the rows, and perhaps not all of the columns.

use crate::{
    ask::{ask, ask_sql},
    field::SimBoard,
    oracle::{Cell, Dice, Table, TableColumn},
};
use picolake::tools::Tools;
use shared::value::ColumnType;
use std::time::Duration;
use tokio::time::sleep;

/// The column of a table that no two rows have the same of, whichever board they are on.
pub const ID: &str = "id";

/// Creates the table `demo.name` on these boards, with a column [`ID`] more, and inserts its rows. Returns the rows of all
/// boards, one behind the other, as they tell them.
pub async fn spread(
    tools: &Tools,
    boards: &[SimBoard],
    name: &str,
    mut table: Table,
    dice: &mut Dice,
) -> Table {
    table.columns.push(TableColumn { name: ID, kind: ColumnType::Int, is_extreme: false });
    for (id, row) in table.rows.iter_mut().enumerate() {
        row.push(Cell::Int(id as i64));
    }
    let id_at = table.columns.len() - 1;
    let mut has = Vec::new();
    for (at, board) in boards.iter().enumerate() {
        // The first board has every column, so that they stand in their order.
        let is_kept = |column: &usize| at == 0 || *column == id_at || !dice.percent(10);
        let columns: Vec<usize> = (1..table.columns.len()).filter(is_kept).collect();
        let specs: Vec<String> = columns.iter().map(|column| spec(&table.columns[*column])).collect();
        let create = format!("create table demo.{name} ({}) rows = 400", specs.join(", "));
        command(tools, board, &create).await;
        has.push(columns);
    }
    for row in &table.rows {
        let place = dice.below(boards.len() as u64) as usize;
        let cells: Vec<String> = has[place]
            .iter()
            .filter(|column| !matches!(row[**column], Cell::Null))
            .map(|column| format!("\"{}\": {}", table.columns[*column].name, written(&row[*column])))
            .collect();
        command(tools, &boards[place], &format!("insert demo {name} {{{}}}", cells.join(", "))).await;
        sleep(Duration::from_micros(dice.pick(&[0, 0, 1, 1, 130_000]))).await;
    }
    let mut union = Table { rows: Vec::new(), ..table };
    for (board, columns) in boards.iter().zip(&has) {
        let session = &tools.field().board(&board.name).unwrap().session;
        let rows = ask_sql(session, &format!("SELECT * FROM {name}")).await.unwrap();
        for row in rows.answer.rows {
            let mut whole = vec![Cell::Null; union.columns.len()];
            for (column, cell) in std::iter::once(&0).chain(columns).zip(row) {
                whole[*column] = cell;
            }
            union.rows.push(whole);
        }
    }
    union
}

async fn command(tools: &Tools, board: &SimBoard, text: &str) {
    let session = &tools.field().board(&board.name).unwrap().session;
    ask(session, text).await.unwrap_or_else(|error| panic!("{text}: {error}"));
}

fn spec(column: &TableColumn) -> String {
    let kind = match column.kind {
        ColumnType::Float32 => "float32",
        kind => kind.name(),
    };
    format!("\"{}\" {kind}", column.name)
}

fn written(cell: &Cell) -> String {
    match cell {
        Cell::Null => "null".into(),
        Cell::Bool(value) => value.to_string(),
        Cell::Int(value) => value.to_string(),
        Cell::Float(value) => format!("{value:?}"),
        Cell::Float32(value) => format!("{value:?}"),
        Cell::Timestamp(us) => format!("\"{}\"", shared::time::Utc(*us)),
        Cell::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
    }
}
