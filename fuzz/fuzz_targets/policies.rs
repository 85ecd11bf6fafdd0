//! See `forebay_fuzz::policies`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::policies(data));
