//! See `forebay_fuzz::ah_seal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::ah_seal(data));
