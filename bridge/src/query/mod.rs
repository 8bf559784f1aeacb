//! A SELECT over boards: planned, split, its rows batch by batch. Knows no tool and writes no JSON.
//!
//! ```text
//!   Lake         whom a SELECT is put to
//!   Question     SELECT … planned over the columns of all boards; the SQL that each board is asked
//!   Asked        a question and the boards that it reaches
//!   Scan         a stream from each board, one behind the other, with the row_id of each row
//!   Joined       groups, different or sorted rows of all boards, put together in LargeMemory
//!   Statement    a SELECT beyond the dialect: what boards are asked for its tables, then SQLite
//!   Source       any of them, as pages, streams and exports read it
//!   sqlite       what the dialect has no words for, run here over rows that were fetched or found
//! ```

mod beyond;
mod cells;
mod columns;
mod context;
mod gather;
mod lake;
mod local;
mod memory;
mod question;
mod scan;
mod source;
pub mod sqlite;
mod views;

pub use beyond::{Planned, Statement, StatementRows, check_select};
pub use columns::{OwnedColumn, United};
pub use context::{Context, Progress, ProgressSender};
pub use gather::{Asked, Joined};
pub use lake::{Lake, Select};
pub use memory::{LargeMemory, QUERY_BYTES_MAX};
pub use question::Question;
pub use scan::{Leg, Pin, Scan, Step};
pub use source::{Batch, Source};
pub use views::{VIEWS_MAX, View, Views};
