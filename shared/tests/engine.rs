//! SQL over pages that are made here: what the answers are, what is refused and where, and what every bound does.

#[path = "engine/table.rs"]
mod table;

#[path = "engine/answers.rs"]
mod answers;
