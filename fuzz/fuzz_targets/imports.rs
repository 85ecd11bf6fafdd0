//! See `forebay_fuzz::imports`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::imports(data));
