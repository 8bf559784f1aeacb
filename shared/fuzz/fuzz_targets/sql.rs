//! Any text against the dialect of SQL; see `shared_fuzz::sql`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shared_fuzz::sql(bytes));
