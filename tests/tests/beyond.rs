//! SQL beyond the boards' dialect, asked of many boards: what the bridge answers is what SQLite answers over the rows of all
//! of them; who is missing is named; and no statement does more than read.

#[path = "beyond/answers.rs"]
mod answers;
#[path = "beyond/hostile.rs"]
mod hostile;
#[path = "beyond/oracle.rs"]
mod oracle;
