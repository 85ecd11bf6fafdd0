//! See `forebay_fuzz::http_head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::http_head(data));
