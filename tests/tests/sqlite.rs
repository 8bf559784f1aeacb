//! SQL beyond the board's dialect, run in SQLite on the gateway: what it answers, that it equals plain SQLite's answers, and
//! that no statement does more than read.

#[path = "sqlite/answers.rs"]
mod answers;
#[path = "sqlite/hostile.rs"]
mod hostile;
#[path = "sqlite/oracle.rs"]
mod oracle;
#[path = "sqlite/tables.rs"]
mod tables;
