//! What is fuzzed: everything that reads bytes from outside, one function for each target.
//!
//! A target fails by panicking, and says more than "no panic": what a view promises, what two ways of
//! reading the same bytes must agree on, what a round trip must give back. `fuzz_targets/` hands the
//! functions to libFuzzer; `tests/smoke.rs` runs them for a few seconds with any Rust.
#![forbid(unsafe_code)]

mod bench;
mod bursts;
mod capture;
mod crypto;
mod kind;
mod path;
mod policies;
mod sa;
mod sas;
mod stream;
mod wire;
mod words;

// The packets of the tests of `forebay-ipsec`.
#[path = "../../crates/ipsec/tests/traffic/mod.rs"]
mod traffic;

pub use bench::{Tally, tally};
pub use bursts::bursts;
pub use capture::capture;
pub use path::path_mtu;
pub use policies::policies;
pub use sa::{ah_open, ah_seal, esp_open, esp_seal, iptfs, nested};
pub use sas::sas_file;
pub use stream::{aggfrag, fragments};
pub use wire::wire_ip;
pub use words::words;

/// A target: its name and what it does with some bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target that must not fail.
pub const TARGETS: [Target; 15] = [
    ("wire_ip", wire_ip),
    ("capture", capture),
    ("sas_file", sas_file),
    ("words", words),
    ("esp_open", esp_open),
    ("esp_seal", esp_seal),
    ("ah_open", ah_open),
    ("ah_seal", ah_seal),
    ("nested", nested),
    ("bursts", bursts),
    ("policies", policies),
    ("path_mtu", path_mtu),
    ("iptfs", iptfs),
    ("fragments", fragments),
    ("aggfrag", aggfrag),
];

/// Fails on input that a working fuzzer finds in seconds: one that does not is dead.
pub fn must_fail(data: &[u8]) {
    if let [b'd', b'e', b'a', b'd', ..] = data {
        panic!("the fuzzer is alive");
    }
}
