//! Generated statements over generated tables: through the virtual tables they answer what they answer over plain tables of
//! SQLite with the same rows.

use crate::tables::{Cells, ask, columns, packed, pages};
use picolake::query::{Context, sqlite::TableRows};
use picolake_tests::oracle::{Cell, Dice, Table, cases, difference, plain, plain_rows, statement};
use shared::{
    link_test::mix,
    value::{ColumnType, Value},
};
use std::{io::Write as _, ops::Range};

const PAIRS: u64 = 5_000;
const PAIRS_PER_TABLES: u64 = 25;

/// Pairs of tables; `PICOLAKE_SEED` is the one to look at.
fn seeds() -> Range<u64> {
    match std::env::var("PICOLAKE_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a seed is a number");
            seed..seed + 1
        }
        Err(_) => 0..cases(PAIRS / PAIRS_PER_TABLES),
    }
}

#[tokio::test]
async fn every_statement_gets_the_answer_of_plain_tables() {
    let (mut same, mut rows, mut refused) = (0, 0, 0);
    for seed in seeds() {
        let tables = [Table::of(mix(seed)), Table::of(mix(seed + 1))];
        let plain = plain(&tables).expect("SQLite takes the rows");
        for index in 0..PAIRS_PER_TABLES {
            let mut dice = Dice::new(mix(seed << 16 | index));
            let sql = statement(&tables, &mut dice);
            let told = || format!("PICOLAKE_SEED={seed} statement {index}: {sql}");
            let given = |name: &str| Some(given(&tables[usize::from(name == "b")], seed));
            let answered = ask(&sql, given, &Context::default()).await;
            match (plain_rows(&plain, &sql), answered) {
                (Ok(expected), Ok((_, actual))) => {
                    if let Some(why) = difference(&expected, &actual) {
                        panic!("{}: {why}\n{}{}", told(), tables[0], tables[1]);
                    }
                    (same, rows) = (same + 1, rows + actual.len());
                }
                (Err(message), Err(fault))
                    if message.contains("integer overflow") && fault.code == "overflow" =>
                {
                    refused += 1;
                }
                (expected, actual) => {
                    panic!(
                        "{}: {:?} / {:?}",
                        told(),
                        expected.map(|rows| rows.len()),
                        actual.map(|(_, rows)| rows.len())
                    );
                }
            }
        }
    }
    let _ = writeln!(std::io::stderr(), "{same} the same with {rows} rows, {refused} refused by both");
    assert!(same < 100 || rows > same, "most answers have no rows");
    assert!(refused * 10 <= same + refused, "{refused} refused");
}

/// The table cut into boards, in pages or packed.
fn given(table: &Table, seed: u64) -> TableRows {
    let mut dice = Dice::new(seed);
    let list: Vec<(&str, ColumnType)> =
        table.columns.iter().map(|column| (column.name, column.kind)).collect();
    let columns = columns(&list);
    let rows: Vec<Cells<'_>> = table.rows.iter().map(|row| row.iter().map(value).collect()).collect();
    let mut cuts: Vec<usize> =
        (0..dice.below(4)).map(|_| dice.below(rows.len() as u64 + 1) as usize).collect();
    cuts.extend([0, rows.len()]);
    cuts.sort_unstable();
    let mut sources = Vec::new();
    for (board, cut) in cuts.windows(2).enumerate() {
        let source = if dice.percent(50) { pages } else { packed };
        sources.push(source(&format!("b{board}"), 1, cut[0] as u64, &columns, &rows[cut[0]..cut[1]]));
    }
    TableRows { columns, sources }
}

fn value(cell: &Cell) -> Value<'_> {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => Value::Bool(*value),
        Cell::Int(value) => Value::Int(*value),
        Cell::Float(value) => Value::Float64(*value),
        Cell::Float32(value) => Value::Float32(*value),
        Cell::Timestamp(value) => Value::Timestamp(*value),
        Cell::Text(text) => Value::Text(text),
    }
}
