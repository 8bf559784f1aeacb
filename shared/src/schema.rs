//! Columns and tables: what the cells of a row are called, what they hold and in which unit. Holds no rows.

use crate::{
    limits::{COLUMNS_MAX, NAME_BYTES_MAX},
    value::ColumnType,
};
use serde::{Deserialize, Serialize};

/// One column of a table or of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column<'a> {
    /// `[A-Za-z_][A-Za-z0-9_]*`
    pub name: &'a str,
    /// What its cells hold.
    pub kind: ColumnType,
    /// The unit, `""` where there is none.
    pub unit: &'a str,
}

/// Columns that every table has behind its own and `*` leaves out: what a row is identified by.
pub const HIDDEN_COLUMNS: [Column<'static>; 3] = [
    Column { name: "_board", kind: ColumnType::Text, unit: "" },
    Column { name: "_epoch", kind: ColumnType::Int, unit: "" },
    Column { name: "_row_id", kind: ColumnType::Int, unit: "" },
];

/// The columns of one answer.
pub type Columns<'a> = heapless::Vec<Column<'a>, COLUMNS_MAX>;

/// The types of these columns.
pub fn kinds<'c>(columns: &'c [Column<'_>]) -> impl Iterator<Item = ColumnType> + 'c {
    columns.iter().map(|column| column.kind)
}

/// A column of a table that is known when the firmware is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// `[A-Za-z_][A-Za-z0-9_]*`
    pub name: &'static str,
    /// What its cells hold.
    pub kind: ColumnType,
    /// The unit, `""` where there is none.
    pub unit: &'static str,
    /// What it is, in a few words.
    pub description: &'static str,
}

impl ColumnSpec {
    /// As it travels.
    pub const fn column(&self) -> Column<'static> {
        Column { name: self.name, kind: self.kind, unit: self.unit }
    }
}

/// A table that is known when the firmware is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// Its database.
    pub dbms: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Its columns; the first is [`TIME_COLUMN`].
    pub columns: &'static [ColumnSpec],
}

/// The first column of every table.
pub const TIME_COLUMN: ColumnSpec = ColumnSpec {
    name: "timestamp",
    kind: ColumnType::Timestamp,
    unit: "",
    description: "when the row was made",
};

/// Tells columns apart: FNV-1a over what makes them the same, their names and types.
pub fn hash<'c>(columns: impl IntoIterator<Item = (&'c str, ColumnType)>) -> u32 {
    let mut hash = 0x811C_9DC5_u32;
    let mut mix = |byte: u8| hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    for (name, kind) in columns {
        name.bytes().for_each(&mut mix);
        mix(0);
        mix(kind as u8);
    }
    hash
}

/// Whether this can name a database, a table or a column.
pub fn is_name(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= NAME_BYTES_MAX
        && text.bytes().all(is_word)
        && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}
