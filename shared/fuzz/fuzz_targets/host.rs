//! Any script of noise, frames, requests and time against the asking end; see `shared_fuzz::host`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shared_fuzz::host(bytes));
