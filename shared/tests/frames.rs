//! Any bytes at the door: what comes in damaged, forged or as noise does no harm, and the next good frame is found.
//!
//! `stream`, `contents`, `command_line`, `sql_text`, `device_end` and `host_end` each hold a `check` of any bytes. The
//! seeded test in `noise` and the targets in `shared/fuzz` run the same checks.

#[path = "protocol/board.rs"]
mod board;
#[path = "frames/command_line.rs"]
mod command_line;
#[path = "frames/contents.rs"]
mod contents;
#[path = "frames/decoding.rs"]
mod decoding;
#[path = "frames/device_end.rs"]
mod device_end;
#[path = "frames/host_end.rs"]
mod host_end;
#[path = "frames/messages.rs"]
mod messages;
#[path = "frames/noise.rs"]
mod noise;
#[path = "frames/script.rs"]
mod script;
#[path = "frames/sql_text.rs"]
mod sql_text;
#[path = "frames/sql_written.rs"]
mod sql_written;
#[path = "frames/stream.rs"]
mod stream;

/// More cases of each property when all are asked for.
fn config() -> proptest::test_runner::Config {
    let all = std::env::var("PICOLAKE_CASES").is_ok_and(|cases| cases == "all");
    let cases = if all { 4_000 } else { 250 };
    // A failure prints its smallest input; no file is written beside the sources.
    proptest::test_runner::Config { cases, failure_persistence: None, ..Default::default() }
}
