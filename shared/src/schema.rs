//! Columns: what the cells of a row are called, what they hold and in which unit.

use crate::{limits::COLUMNS_MAX, value::ColumnType};
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

/// The column that every table has first: when the row was made.
pub const TIMESTAMP_COLUMN: &str = "timestamp";
/// Columns that every table has and `*` leaves out: what a row is identified by.
pub const HIDDEN_COLUMNS: [&str; 3] = ["_board", "_epoch", "_row_id"];

/// The columns of one answer.
pub type Columns<'a> = heapless::Vec<Column<'a>, COLUMNS_MAX>;

/// The types of these columns.
pub fn kinds<'c>(columns: &'c [Column<'_>]) -> impl Iterator<Item = ColumnType> + 'c {
    columns.iter().map(|column| column.kind)
}
