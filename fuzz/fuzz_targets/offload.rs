//! See `forebay_fuzz::offload`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::offload(data));
