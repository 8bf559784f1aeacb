//! SQL: text → [`Select`](tree::Select). One parser for the board and for the bridge; it runs nothing.

pub mod tree;
