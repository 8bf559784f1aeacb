//! Any stream of bytes against the decoder of frames; see `shared_fuzz::frame_decoder`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shared_fuzz::frame_decoder(bytes));
