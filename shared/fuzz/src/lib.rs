//! The checks of any bytes in `shared/tests/frames`, for the fuzz targets.
//!
//! In `shared`, with `cargo install cargo-fuzz` and a nightly toolchain:
//!
//! ```text
//!   cargo +nightly fuzz run frame_decoder                         until something is found
//!   cargo +nightly fuzz run host -- -max_total_time=60            for a minute
//!   cargo +nightly fuzz run host fuzz/artifacts/host/crash-…      what was found, again
//! ```
//!
//! Targets: `frame_decoder`, `messages`, `device`, `host`, `command`, `sql`. Bytes are read as a script of what happens,
//! so that a fuzzer without a notion of check sums still sends whole frames.

#[path = "../../tests/protocol/board.rs"]
mod board;
#[path = "../../tests/frames/command_line.rs"]
mod command_line;
#[path = "../../tests/frames/contents.rs"]
mod contents;
#[path = "../../tests/frames/device_end.rs"]
mod device_end;
#[path = "../../tests/frames/host_end.rs"]
mod host_end;
#[path = "../../tests/frames/script.rs"]
mod script;
#[path = "../../tests/frames/sql_text.rs"]
mod sql_text;
#[path = "../../tests/frames/sql_written.rs"]
mod sql_written;
#[path = "../../tests/frames/stream.rs"]
mod stream;

/// The decoder finds what is in a stream however it is split, and after a delimiter the next good frame.
pub fn frame_decoder(bytes: &[u8]) {
    stream::check(bytes);
}

/// Every message and row that is read can be written again in no more bytes, and reads as the same.
pub fn messages(bytes: &[u8]) {
    contents::check(bytes);
}

/// What a device says is whole, in order and within its credit; after the script it answers a new session at once.
pub fn device(bytes: &[u8]) {
    device_end::check(bytes);
}

/// A host's events are of open requests only, each ends once, nothing that must not run twice is opened twice; after
/// the script it gets whole answers from a board that works.
pub fn host(bytes: &[u8]) {
    host_end::check(bytes);
}

/// A fault has a place in the text; what is understood means the same in any case and space, and as it is printed.
pub fn command(bytes: &[u8]) {
    command_line::check(bytes);
}

/// A fault has a place in the text; what is understood is one bounded tree, and means the same as it is written.
pub fn sql(bytes: &[u8]) {
    sql_text::check(bytes);
}
