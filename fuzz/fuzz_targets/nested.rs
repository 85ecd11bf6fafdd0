//! See `forebay_fuzz::nested`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::nested(data));
