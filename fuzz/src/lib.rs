//! What is fuzzed: everything that reads bytes from outside, one function for each target.
//!
//! A target fails by panicking, and says more than "no panic": what a view promises, what two ways of
//! reading the same bytes must agree on, what a round trip must give back. `fuzz_targets/` hands the
//! functions to libFuzzer; `tests/smoke.rs` runs them for a few seconds with any Rust, and `tests/malformed.rs`
//! on the packets of captures that have broken others.
//!
//! | Target | Reads | Must hold besides |
//! |---|---|---|
//! | `wire_ip` | headers of every kind | views agree with the bytes, checksums with RFC 1071's text |
//! | `capture` | pcap and pcapng | in one piece or byte by byte comes to the same |
//! | `sas_file` | the SAs file | each error has its line, no message a part of a key |
//! | `gateway_file` | the gateway's file | each error has its line |
//! | `imports` | what `ip xfrm` prints, configurations of ipsec-secgw, IKE daemons and WireGuard | what is written is read |
//! | `http_head` | requests to metrics and the live page | in one piece or byte by byte comes to the same |
//! | `netlink` | the kernel's XFRM messages | no event out of nothing, and not more than messages tell |
//! | `words` | selectors, classes, proposals | what is read is written so that it reads the same |
//! | `esp_open`, `ah_open` | packets off the wire; packets and texts of a peer who has the keys | sound IP or a reason; none twice |
//! | `esp_seal`, `ah_seal` | plain packets | the other end has the packet again, once |
//! | `nested` | both, through two or three SAs | the same |
//! | `bursts` | trains of packets on two SAs | as one by one |
//! | `policies` | policies that come and go, packets | as a list says that is gone through from its begin |
//! | `path_mtu` | packets too big, ICMP messages | divided or reported, never both; a path MTU only falls |
//! | `iptfs`, `aggfrag` | aggregated payloads, with SA and without | no more comes out than went in |
//! | `fragments` | fragments of ESP and AH | no more is held than allowed |
//! | `offload` | super-packets, packets to be put together | what was put together comes apart as it was |
//!
//! The targets of SAs take every suite, mode, encapsulation and limit from their first bytes (`Kind`), with the
//! real cipher; keys are set up once (`Bench`), so that an input takes some microseconds.

mod bench;
mod bursts;
mod capture;
mod crypto;
mod files;
mod http;
mod kind;
mod netlink;
mod offload;
mod path;
mod policies;
mod sa;
mod sas;
mod stream;
mod wire;
mod words;

// The packets of the tests of `forebay-ipsec`.
#[path = "../../crates/dataplane/ipsec/tests/traffic/mod.rs"]
mod traffic;

pub use bench::{Tally, tally};
pub use bursts::bursts;
pub use capture::capture;
pub use files::{gateway_file, imports};
pub use http::http_head;
pub use netlink::netlink;
pub use offload::offload;
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
pub const TARGETS: [Target; 20] = [
    ("wire_ip", wire_ip),
    ("capture", capture),
    ("sas_file", sas_file),
    ("gateway_file", gateway_file),
    ("imports", imports),
    ("http_head", http_head),
    ("netlink", netlink),
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
    ("offload", offload),
];

/// Fails on input that a working fuzzer finds in seconds: one that does not is dead.
pub fn must_fail(data: &[u8]) {
    if let [b'd', b'e', b'a', b'd', ..] = data {
        panic!("the fuzzer is alive");
    }
}
