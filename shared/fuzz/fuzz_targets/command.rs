//! Any text against the command language; see `shared_fuzz::command`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shared_fuzz::command(bytes));
