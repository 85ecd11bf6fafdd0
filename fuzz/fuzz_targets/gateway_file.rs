//! See `forebay_fuzz::gateway_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::gateway_file(data));
