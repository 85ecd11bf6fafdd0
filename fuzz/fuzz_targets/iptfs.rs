//! See `forebay_fuzz::iptfs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::iptfs(data));
