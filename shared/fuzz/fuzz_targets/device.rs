//! Any script of noise, frames and time against the answering end; see `shared_fuzz::device`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shared_fuzz::device(bytes));
