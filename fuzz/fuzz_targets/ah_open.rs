//! See `forebay_fuzz::ah_open`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::ah_open(data));
