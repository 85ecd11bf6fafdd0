//! See `forebay_fuzz::sas_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forebay_fuzz::sas_file(data));
