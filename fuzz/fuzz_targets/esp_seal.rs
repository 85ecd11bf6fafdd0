//! See `forebay_fuzz::esp_seal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::esp_seal(data));
