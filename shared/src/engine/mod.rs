//! SQL, run: scan, evaluate, group, sort. Generic over where pages come from and how much memory there is.
//!
//! ```text
//!   sql::parse ──▶ resolve ──▶ plan            names, types, how to run it
//!   scan ──▶ eval ──▶ records ──▶ aggregate    rows of pages, values of expressions, what is kept of them
//!                        └── workspace ── record     in fixed memory
//!   query                                      all of it, step by step
//!   fragment                                   the part of it that another is asked to do, as SQL
//! ```
//!
//! What a SELECT answers is what SQLite answers for the same rows; ARCHITECTURE.md lists where it is not, and why.

mod aggregate;
pub mod calendar;
mod eval;
mod filter;
mod fragment;
mod number;
mod plan;
mod query;
mod record;
mod records;
mod resolve;
mod scan;
mod text;
mod workspace;

pub use aggregate::Spread;
pub use fragment::{Fragment, Target};
pub use query::{PeriodEnd, Progress, Query, RowSink};
pub use scan::{PageColumn, Pages};
pub use workspace::{Full, Memory, Workspace};
