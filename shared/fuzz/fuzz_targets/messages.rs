//! Any body of a frame against every message and against rows of any columns; see `shared_fuzz::messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shared_fuzz::messages(bytes));
