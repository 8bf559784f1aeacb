//! Answers as text: one formatter for the bridge and for a board's console. Waits for nothing and keeps no rows.
//!
//! ```text
//!          metadata                                        query
//!   mcp    ["demo","test"]                                 [{"temp":20.5},…]             clean data
//!   json   [{"table":{"dbms":"demo","name":"sensors"}},…]  {"Query":[…],"Statistics":[…]}  as EdgeLake
//!   table  a frame of box characters, widths from the first batch
//! ```
//!
//! [`Object`] writes a status or a version, [`RowsFormat`] rows as they come, [`write_fault`] what went wrong.

mod fault;
mod object;
mod rows;
mod table;
mod value;

pub use fault::write_fault;
pub use object::{FIELDS_MAX, Object};
pub use rows::{RowsFormat, Shape, Statistics};
pub use value::{Printable, is_unseen, write_cell, write_json_text, write_json_value};
