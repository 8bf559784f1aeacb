//! SQL beyond the board's dialect (joins, windows, subqueries, CTEs, UNION), run in SQLite over pages of rows. Asks no board
//! and opens no file: rows are given.
//!
//! ```text
//!   text ─▶ words ─▶ Beyond ─────────────────▶ rewrite ─▶ SQLite ─▶ Answer: batches of 100 rows
//!                      │ tables, columns in use,   │ SQLite's words,    │ virtual tables over sources
//!                      ▼ conditions for boards     ▼ types of columns   ▼ stopped by time, memory, whoever asked
//!   caller: fetches or finds the rows ─▶ TableRows: pages of an archive, packed rows of boards
//! ```

mod answer;
mod beyond;
mod functions;
mod kind;
mod limits;
mod moment;
mod pushed;
mod reading;
mod rewrite;
mod run;
mod source;
mod stop;
mod table;
mod words;

pub use answer::{Answer, Cell, Row};
pub use beyond::{Beyond, ColumnsInUse, TableUse};
pub use limits::{
    BATCH_ROWS_MAX, KEPT_BYTES_MAX, PACKED_BYTES_MAX, SQL_BYTES_MAX, STATEMENTS_MAX, TABLES_MAX,
};
pub use run::{check, run};
pub use source::{PackedRows, PageBytes, PagePacker, PageReader, Source, SourceRows, TableRows, Wanted};
pub use words::is_beyond;
