//! Any bytes as the body of a frame: every message and every row that is read from them can be written again.

use crate::script::Script;
use serde::{Deserialize, Serialize};
use shared::{
    command::Format,
    format::Object,
    limits::COLUMNS_MAX,
    message::{self, BoardHello, BridgeHello, End, Open, OpenRequests, Part, ProgressList, RowsHead},
    page::Page,
    rowcode::{RowDecoder, RowEncoder, row_bits_max},
    value::{ColumnType, Value},
};
use std::fmt::Debug;

pub(crate) const COLUMN_TYPES: [ColumnType; 6] = [
    ColumnType::Bool,
    ColumnType::Int,
    ColumnType::Float32,
    ColumnType::Float64,
    ColumnType::Timestamp,
    ColumnType::Text,
];

/// Any body, as a message of each type and as rows of any columns.
pub(crate) fn check(bytes: &[u8]) {
    let again = &mut vec![0; bytes.len()];
    check_message::<BridgeHello>(bytes, again);
    check_message::<BoardHello>(bytes, again);
    check_message::<Open>(bytes, again);
    check_message::<Part>(bytes, again);
    check_message::<RowsHead>(bytes, again);
    check_message::<End>(bytes, again);
    check_message::<OpenRequests>(bytes, again);
    check_message::<ProgressList>(bytes, again);
    if let Some(Open { request, .. }) = message::read(bytes) {
        request.is_repeatable();
    }
    match message::read(bytes) {
        Some(Part::Status(status)) => check_text(&Object::status(&status)),
        Some(Part::Version(version)) => check_text(&Object::version(&version)),
        _ => {}
    }
    if let Some((head, rest)) = message::read_rows(bytes) {
        assert_eq!(message::read(bytes), Some(head));
        assert!(bytes.ends_with(rest));
    }
    let mut script = Script::new(bytes);
    let Some(count) = script.below(COLUMNS_MAX as u8 + 4) else { return };
    let kinds: Option<Vec<u8>> = (0..count).map(|_| script.byte()).collect();
    let (Some(kinds), Some(rows)) = (kinds, script.body()) else { return };
    let kinds = kinds.into_iter().map(|kind| COLUMN_TYPES[usize::from(kind) % COLUMN_TYPES.len()]);
    let kinds: Vec<_> = kinds.collect();
    check_rows(&kinds, &rows);
    if let Ok(page) = Page::read(&rows) {
        assert!(rows.starts_with(page.bytes()));
        let _ = page.check(kinds);
    }
}

/// What is read is written in no more bytes than it was read from, is the same when read again, and is not read
/// when its last byte is missing.
fn check_message<'a, T>(bytes: &'a [u8], again: &'a mut [u8])
where
    T: Deserialize<'a> + Serialize + PartialEq + Debug,
{
    let Some(read) = message::read::<T>(bytes) else { return };
    let len = message::write(&read, again).expect("what was read fits where it was read");
    let again: &'a [u8] = again;
    assert_eq!(message::read::<T>(again).as_ref(), Some(&read));
    let (_, cut) = again[..len].split_last().expect("every message has a byte");
    assert_eq!(message::read::<T>(cut), None);
}

/// A table's lines are of one width, whatever the board says its name is.
fn check_text(object: &Object<'_>) {
    for format in [Format::Json, Format::Table, Format::Mcp] {
        let mut text = String::new();
        object.write(format, &mut text).expect("a String takes any text");
        let mut widths = text.lines().map(|line| line.chars().count());
        let width = widths.next();
        assert!(widths.all(|other| Some(other) == width), "{text}");
    }
}

/// Rows end, have a cell of its type for each column, and can be written again.
pub(crate) fn check_rows(kinds: &[ColumnType], bytes: &[u8]) {
    let mut decoder = RowDecoder::new(kinds.iter().copied(), bytes, ROWS);
    let mut encoder = RowEncoder::new(kinds.iter().copied());
    let mut again = vec![0xA5; (row_bits_max(kinds.iter().copied()) * usize::from(ROWS)).div_ceil(8)];
    let (mut bits, mut rows) = (0, Vec::new());
    let mut cells = vec![Value::Null; kinds.len()];
    loop {
        match decoder.next_row(&mut cells) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                assert_eq!(decoder.next_row(&mut cells), Err(error), "a fault does not go away");
                break;
            }
        }
        for (cell, kind) in cells.iter().zip(kinds) {
            let is_overflow = matches!((cell, kind), (Value::Float64(_), ColumnType::Int));
            assert!(is_overflow || cell.column_type().is_none_or(|is| is == *kind), "{cell:?} in {kind:?}");
        }
        encoder.append(&cells, &mut again, &mut bits).expect("what was read can be written, and has room");
        rows.push(cells.clone());
    }
    assert!(rows.len() <= ROWS.into());
    let mut decoder = RowDecoder::new(kinds.iter().copied(), &again[..bits.div_ceil(8)], rows.len() as u16);
    for row in rows {
        assert_eq!(decoder.next_row(&mut cells), Ok(true));
        assert!(are_same(&cells, &row), "{row:?} became {cells:?}");
    }
    assert!(kinds.len() > COLUMNS_MAX || decoder.next_row(&mut cells) == Ok(false));
}

/// Rows that are read at most.
const ROWS: u16 = 64;

/// Equal, and NaN is itself.
pub(crate) fn are_same(cells: &[Value<'_>], others: &[Value<'_>]) -> bool {
    let is_same = |(cell, other): (&Value<'_>, &Value<'_>)| match (cell, other) {
        (Value::Float32(a), Value::Float32(b)) => a.to_bits() == b.to_bits(),
        (Value::Float64(a), Value::Float64(b)) => a.to_bits() == b.to_bits(),
        _ => cell == other,
    };
    cells.len() == others.len() && cells.iter().zip(others).all(is_same)
}
