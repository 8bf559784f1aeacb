//! A SELECT over boards: its text taken apart, its rows batch by batch. Knows no tool and writes no JSON.
//!
//! ```text
//!   Statement    SELECT … WHERE … → clauses; now() is pinned; bounds of _row_id are added
//!   Scan         a stream from each board, one behind the other, with the row_id of each row
//!   Computed     the whole answer of one board that groups or sorts: it is small, a board's memory is
//!   Source       either of them, as pages, streams and exports read it
//!   sqlite       what the dialect has no words for, run here over rows that were fetched or found
//! ```

mod columns;
mod computed;
mod context;
mod memory;
mod scan;
mod source;
pub mod sqlite;
mod statement;

pub use columns::{OwnedColumn, United};
pub use computed::Computed;
pub use context::{Context, Progress, ProgressSender};
pub use memory::{LargeMemory, QUERY_BYTES_MAX};
pub use scan::{Leg, Pin, Scan, Step};
pub use source::{Batch, Source};
pub use statement::Statement;
