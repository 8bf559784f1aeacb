//! Rows whose cells can be of any type, as the bytes of a batch: a statement's column need not have one type.
//!
//! ```text
//!   row    cell, cell, … as many as there are columns
//!   cell   tag (1) │ nothing, 1, 4 or 8 bytes of the value, little end first │ text: its length (4), its bytes
//! ```

use super::sqlite::{Cell, Row};
use shared::value::Value;

/// Adds a row to a batch.
pub(super) fn write(row: &Row, bytes: &mut Vec<u8>) {
    for cell in row {
        match cell {
            Cell::Null => bytes.push(0),
            Cell::Bool(value) => bytes.extend([1, u8::from(*value)]),
            Cell::Int(value) => put(2, &value.to_le_bytes(), bytes),
            Cell::Float32(value) => put(3, &value.to_le_bytes(), bytes),
            Cell::Float64(value) => put(4, &value.to_le_bytes(), bytes),
            Cell::Timestamp(value) => put(5, &value.to_le_bytes(), bytes),
            Cell::Text(text) => {
                // SQLite makes no longer text than VALUE_BYTES_MAX.
                let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
                put(6, &length.to_le_bytes(), bytes);
                bytes.extend(text.as_bytes());
            }
        }
    }
}

fn put(tag: u8, value: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(tag);
    bytes.extend(value);
}

/// Gives each row of a batch to `each`. None: the bytes are no such batch.
pub(super) fn read(width: usize, count: u16, bytes: &[u8], mut each: impl FnMut(&[Value<'_>])) -> Option<()> {
    let mut rest = bytes;
    let mut row = Vec::with_capacity(width);
    for _ in 0..count {
        row.clear();
        for _ in 0..width {
            row.push(cell(&mut rest)?);
        }
        each(&row);
    }
    rest.is_empty().then_some(())
}

fn cell<'b>(rest: &mut &'b [u8]) -> Option<Value<'b>> {
    let [tag] = take(rest)?;
    Some(match tag {
        0 => Value::Null,
        1 => Value::Bool(take::<1>(rest)? == [1]),
        2 => Value::Int(i64::from_le_bytes(take(rest)?)),
        3 => Value::Float32(f32::from_le_bytes(take(rest)?)),
        4 => Value::Float64(f64::from_le_bytes(take(rest)?)),
        5 => Value::Timestamp(i64::from_le_bytes(take(rest)?)),
        6 => {
            let length = usize::try_from(u32::from_le_bytes(take(rest)?)).ok()?;
            let (text, behind) = rest.split_at_checked(length)?;
            *rest = behind;
            Value::Text(std::str::from_utf8(text).ok()?)
        }
        _ => return None,
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_mixed_types_return_as_they_were() {
        let rows: [Row; 3] = [
            vec![Cell::Int(i64::MIN), Cell::Text("ü\0".into()), Cell::Bool(true)],
            vec![Cell::Null, Cell::Float32(-0.5), Cell::Timestamp(7)],
            vec![Cell::Text("".into()), Cell::Float64(f64::MAX), Cell::Bool(false)],
        ];
        let mut bytes = Vec::new();
        rows.iter().for_each(|row| write(row, &mut bytes));
        let mut at = 0;
        read(3, 3, &bytes, |cells| {
            assert!(cells.iter().copied().eq(rows[at].iter().map(Cell::value)));
            at += 1;
        })
        .unwrap();
        assert_eq!(at, 3);
        for end in 0..bytes.len() {
            assert_eq!(read(3, 3, &bytes[..end], |_| {}), None, "cut at {end}");
        }
        assert_eq!(read(3, 2, &bytes, |_| {}), None, "there is one more");
    }
}
