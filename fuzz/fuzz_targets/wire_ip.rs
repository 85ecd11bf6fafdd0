//! See `forebay_fuzz::wire_ip`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::wire_ip(data));
