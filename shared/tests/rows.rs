//! The row code and pages: every row returns bit for bit, any bytes do no harm, and a row takes few bytes.

#[path = "rows/density.rs"]
mod density;
#[path = "rows/golden.rs"]
mod golden;
#[path = "rows/pages.rs"]
mod pages;
#[path = "rows/returns.rs"]
mod returns;

use shared::value::{ColumnType, Value};

/// More cases of each property when all are asked for.
fn config() -> proptest::test_runner::Config {
    let all = std::env::var("PICOLAKE_CASES").is_ok_and(|cases| cases == "all");
    let cases = if all { 5_000 } else { 500 };
    // A failure prints its smallest input; no file is written beside the sources.
    proptest::test_runner::Config { cases, failure_persistence: None, ..Default::default() }
}

/// The run of these rows: how many bits it has, and its bytes.
fn encoded(kinds: &[ColumnType], rows: &[Vec<Value<'_>>]) -> (usize, Vec<u8>) {
    let room = shared::rowcode::row_bits_max(kinds.iter().copied()) * rows.len();
    let mut encoder = shared::rowcode::RowEncoder::new(kinds.iter().copied());
    let (mut out, mut bits) = (vec![0xA5; room.div_ceil(8)], 0);
    for row in rows {
        encoder.append(row, &mut out, &mut bits).expect("a row takes no more than is said");
    }
    out.truncate(bits.div_ceil(8));
    (bits, out)
}

/// Reading these bytes gives these rows and no more.
fn assert_decodes(kinds: &[ColumnType], bytes: &[u8], rows: &[Vec<Value<'_>>]) {
    let mut decoder = shared::rowcode::RowDecoder::new(kinds.iter().copied(), bytes, rows.len() as u16);
    let mut cells = vec![Value::Null; kinds.len()];
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(decoder.next_row(&mut cells), Ok(true), "row {index}");
        assert!(are_same(&cells, row), "row {index}: {row:?} became {cells:?}");
    }
    assert_eq!(decoder.next_row(&mut cells), Ok(false));
}

/// Equal bit for bit.
fn are_same(cells: &[Value<'_>], others: &[Value<'_>]) -> bool {
    let is_same = |(cell, other): (&Value<'_>, &Value<'_>)| match (cell, other) {
        (Value::Float32(a), Value::Float32(b)) => a.to_bits() == b.to_bits(),
        (Value::Float64(a), Value::Float64(b)) => a.to_bits() == b.to_bits(),
        _ => cell == other,
    };
    cells.len() == others.len() && cells.iter().zip(others).all(is_same)
}
