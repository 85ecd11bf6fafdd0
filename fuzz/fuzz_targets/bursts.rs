//! See `forebay_fuzz::bursts`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::bursts(data));
