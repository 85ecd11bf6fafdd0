//! See `forebay_fuzz::fragments`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::fragments(data));
