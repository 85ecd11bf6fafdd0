//! See `forebay_fuzz::path_mtu`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::path_mtu(data));
