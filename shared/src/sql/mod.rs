//! SQL: text → [`Select`]. One parser for the board and for the bridge; it runs nothing.
//!
//! ```text
//!   SELECT [DISTINCT] item, … FROM table [WHERE e] [GROUP BY e, …] [HAVING e]
//!          [ORDER BY e [ASC|DESC], …] [LIMIT n] [OFFSET n] [;]
//!
//!   item     *  |  e [[AS] name]
//!   e        loosest first, each level from left to right:
//!            OR · AND · NOT · = == != <> IS [NOT] NULL, [NOT] IN, LIKE, BETWEEN · < <= > >= · + - · * / % · - + · ::
//! ```
//!
//! A fault has its place in the text and says what to do; a query that is larger than a bound of
//! [`limits`](crate::limits) is refused with that bound's name.

mod fault;
mod lexer;
mod parser;
pub mod tree;

pub use lexer::unit;

use crate::message::Failure;
use tree::Select;

/// Reads a query.
pub fn parse(text: &str) -> Result<Select, Failure> {
    let mut select = Select::default();
    parse_into(text, &mut select)?;
    Ok(select)
}

/// Reads a query into a place that is there already: a [`Select`] is large for a board's stack. What was in it is
/// gone, and after a failure what is in it means nothing.
pub fn parse_into(text: &str, select: &mut Select) -> Result<(), Failure> {
    parser::parse_into(text, select).map_err(|fault| fault.into_failure())
}
