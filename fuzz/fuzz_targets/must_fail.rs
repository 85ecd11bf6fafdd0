//! See `forebay_fuzz::must_fail`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::must_fail(data));
