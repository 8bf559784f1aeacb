//! SQLite as the oracle: tables and queries made from seeds, each query in Picolake's words and in SQLite's, and what
//! SQLite answers. Whatever runs Picolake's queries stands behind [`Engine`].
//!
//! ```text
//!   dice ──▶ table ─────────────────────────────▶ sqlite ──▶ expected ─┐
//!     └────▶ maker ──▶ expression ──▶ written ──▶ the query twice      ├─▶ compare
//!                        query ────────┘     └──▶ Engine ──▶ answer ───┘
//! ```
//!
//! Queries are of right types, because the dialect refuses what mixes text and numbers. No query is made where the
//! dialect differs from SQLite by design: floats, moments and truth values as text, columns that are not grouped by,
//! buckets without GROUP BY, the largest integers in one column with floats, and which row meets an overflow first.

mod calendar;
mod compare;
mod dice;
mod expression;
mod maker;
mod query;
mod sqlite;
mod statement;
mod table;
mod written;

pub use compare::{Outcome, compare, multiset_difference};
pub use dice::Dice;
pub use expression::Kind;
pub use query::{Partition, Query};
pub use sqlite::Sqlite;
pub use statement::{difference, plain, plain_rows, statement};
pub use table::{Table, TableColumn};

use shared::message::ErrorCode;
use std::fmt;

/// What runs Picolake's queries over the rows of one [`Table`].
pub trait Engine {
    /// The whole answer to a query, or why there is none.
    fn run(&mut self, sql: &str) -> Result<Answer, (ErrorCode, String)>;
}

/// The answer to a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows, in order.
    pub rows: Vec<Vec<Cell>>,
}

/// One value of an answer or of a table.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "as in `shared::value::Value`")]
pub enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Float32(f32),
    Timestamp(i64),
    Text(String),
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => f.write_str("NULL"),
            Cell::Bool(value) => write!(f, "{value}"),
            Cell::Int(value) => write!(f, "{value}"),
            Cell::Float(value) => write!(f, "{value:?}"),
            Cell::Float32(value) => write!(f, "{value:?}f32"),
            Cell::Timestamp(value) => write!(f, "@{value}"),
            Cell::Text(value) => write!(f, "{value:?}"),
        }
    }
}

/// A tenth of the cases in every run, all of them in a soak.
pub fn cases(all: u64) -> u64 {
    if std::env::var("PICOLAKE_CASES").is_ok_and(|cases| cases == "all") { all } else { all / 10 }
}
