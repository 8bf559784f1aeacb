//! Rows ↔ bytes. The columns are known to both sides, so a row is only its cells:
//!
//! ```text
//!   ┌────────────────────┬───────────────┬─────┐
//!   │ NULL bits          │ cell          │ …   │   bit i of the NULL bits: column i is NULL
//!   │ ⌈columns / 8⌉ B    │ if not NULL   │     │   and has no cell
//!   └────────────────────┴───────────────┴─────┘
//!   bool 1 B · int, timestamp zigzag varint · float32 4 B · float64 8 B · text varint length, bytes
//! ```

use crate::{
    limits::COLUMNS_MAX,
    schema::Column,
    value::{ColumnType, Value},
};

/// Why a row could not be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowError {
    /// The row does not fit into what is left of the buffer.
    Full,
    /// The row has another number of cells than there are columns, or more than fit in a row.
    Width,
    /// A cell is not of its column's type.
    Type,
    /// The bytes are not a row of these columns.
    Malformed,
}

/// Writes one row to the front of `out`; returns how many bytes it took. On an error `out` holds nothing of use.
pub fn write_row(columns: &[Column], cells: &[Value], out: &mut [u8]) -> Result<usize, RowError> {
    if cells.len() != columns.len() || cells.len() > COLUMNS_MAX {
        return Err(RowError::Width);
    }
    let null_bytes = columns.len().div_ceil(8);
    let (nulls, mut rest) = out.split_at_mut_checked(null_bytes).ok_or(RowError::Full)?;
    let room = rest.len();
    nulls.fill(0);
    for (index, (column, cell)) in columns.iter().zip(cells).enumerate() {
        if *cell == Value::Null {
            nulls[index / 8] |= 1 << (index % 8);
            continue;
        }
        if cell.column_type() != Some(column.kind) {
            return Err(RowError::Type);
        }
        let written = match *cell {
            Value::Null => unreachable!("handled above"),
            Value::Bool(v) => postcard::to_slice(&v, rest),
            Value::Int(v) | Value::Timestamp(v) => postcard::to_slice(&v, rest),
            Value::Float32(v) => postcard::to_slice(&v, rest),
            Value::Float64(v) => postcard::to_slice(&v, rest),
            Value::Text(v) => postcard::to_slice(v, rest),
        };
        let written = written.map_err(|_| RowError::Full)?.len();
        rest = &mut rest[written..];
    }
    Ok(null_bytes + room - rest.len())
}

/// The rows of one batch, one after the other. Safe on any bytes.
#[derive(Clone, Debug)]
pub struct RowReader<'a, 'c> {
    columns: &'c [Column<'c>],
    bytes: &'a [u8],
}

impl<'a, 'c> RowReader<'a, 'c> {
    /// Reads rows of `columns` from `bytes`.
    pub fn new(columns: &'c [Column<'c>], bytes: &'a [u8]) -> Self {
        Self { columns, bytes }
    }

    /// Reads the next row into `cells`, which is cleared first. `Ok(false)`: there is no more.
    pub fn next_row(&mut self, cells: &mut heapless::Vec<Value<'a>, COLUMNS_MAX>) -> Result<bool, RowError> {
        cells.clear();
        if self.bytes.is_empty() {
            return Ok(false);
        }
        let null_bytes = self.columns.len().div_ceil(8);
        let (nulls, mut rest) = self.bytes.split_at_checked(null_bytes).ok_or(RowError::Malformed)?;
        for (index, column) in self.columns.iter().enumerate() {
            let value = if nulls[index / 8] & (1 << (index % 8)) != 0 {
                Value::Null
            } else {
                let (value, after) = read_cell(column.kind, rest)?;
                rest = after;
                value
            };
            cells.push(value).map_err(|_| RowError::Width)?;
        }
        if rest.len() == self.bytes.len() {
            return Err(RowError::Malformed); // a table without columns has no rows
        }
        self.bytes = rest;
        Ok(true)
    }
}

fn read_cell(kind: ColumnType, bytes: &[u8]) -> Result<(Value<'_>, &[u8]), RowError> {
    fn take<'a, T: serde::Deserialize<'a>>(bytes: &'a [u8]) -> Result<(T, &'a [u8]), RowError> {
        postcard::take_from_bytes(bytes).map_err(|_| RowError::Malformed)
    }
    Ok(match kind {
        ColumnType::Bool => take(bytes).map(|(v, rest)| (Value::Bool(v), rest))?,
        ColumnType::Int => take(bytes).map(|(v, rest)| (Value::Int(v), rest))?,
        ColumnType::Timestamp => take(bytes).map(|(v, rest)| (Value::Timestamp(v), rest))?,
        ColumnType::Float32 => take(bytes).map(|(v, rest)| (Value::Float32(v), rest))?,
        ColumnType::Float64 => take(bytes).map(|(v, rest)| (Value::Float64(v), rest))?,
        ColumnType::Text => take(bytes).map(|(v, rest)| (Value::Text(v), rest))?,
    })
}
