//! The table for Wireshark, in the words that its dissector knows (`epan/dissectors/packet-ipsec.c`).

mod common;

use common::*;
use forebay_sas::{esp_sa, parse};

/// An SA of a proposal, with keys of so many octets.
fn sa(number: usize, direction: &str, proposal: &str, key: usize, auth_key: usize) -> String {
    let mut text = format!(
        "[[sa]]\nname = \"{proposal}\"\ndirection = \"{direction}\"\nspi = {}\nproposal = \"{proposal}\"\n\
         local = \"192.0.2.1\"\nremote = \"192.0.2.2\"\nmode = \"tunnel\"\n",
        0x2000 + number
    );
    if key > 0 {
        text += &format!("key = \"{}\"\n", "1a2b".repeat(key / 2));
    }
    if auth_key > 0 {
        text += &format!("auth_key = \"{}\"\n", "b4".repeat(auth_key));
    }
    text
}

#[test]
fn every_suite_that_wireshark_has_is_a_line_in_its_words() {
    // Octets of the cipher's key with its salt, and of the integrity's.
    let suites = [
        ("aes128-sha256", 16, 32, "AES-CBC [RFC3602]", "HMAC-SHA-256-128 [RFC4868]"),
        ("aes256-sha384", 32, 48, "AES-CBC [RFC3602]", "HMAC-SHA-384-192 [RFC4868]"),
        ("aes256-sha512", 32, 64, "AES-CBC [RFC3602]", "HMAC-SHA-512-256 [RFC4868]"),
        ("aes128-sha1", 16, 20, "AES-CBC [RFC3602]", "HMAC-SHA-1-96 [RFC2404]"),
        ("aes192ctr-sha1", 28, 20, "AES-CTR [RFC3686]", "HMAC-SHA-1-96 [RFC2404]"),
        ("3des-sha256", 24, 32, "TripleDES-CBC [RFC2451]", "HMAC-SHA-256-128 [RFC4868]"),
        ("aes128gcm16", 20, 0, "AES-GCM with 16 octet ICV [RFC4106]", "NULL"),
        ("aes128-aesxcbc", 16, 16, "AES-CBC [RFC3602]", "ANY 96 bit authentication [no checking]"),
        ("null-sha256", 0, 32, "NULL", "HMAC-SHA-256-128 [RFC4868]"),
    ];
    for (number, (proposal, key, auth_key, encryption, authentication)) in suites.into_iter().enumerate() {
        for (direction, from, to) in [("out", "192.0.2.1", "192.0.2.2"), ("in", "192.0.2.2", "192.0.2.1")] {
            let text = sa(number, direction, proposal, key, auth_key);
            let file = parse(&text, "SAS.toml").unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
            let cipher = if key > 0 { format!("0x{}", "1a2b".repeat(key / 2)) } else { String::new() };
            // What is not checked needs no key.
            let checked = auth_key > 0 && !authentication.starts_with("ANY");
            let integrity = if checked { format!("0x{}", "b4".repeat(auth_key)) } else { String::new() };
            let spi = format!("{:#010x}", 0x2000 + number);
            let line = format!(
                "\"IPv4\",\"{from}\",\"{to}\",\"{spi}\",\"{encryption}\",\"{cipher}\",\"{authentication}\",\"{integrity}\"\n"
            );
            let table = esp_sa::export(&file.entries);
            assert_eq!(table.split_once('\n').unwrap().1, line, "{proposal} {direction}");
        }
    }
}

#[test]
fn a_suite_that_wireshark_lacks_has_no_line() {
    let text = sa(1, "out", "chacha20poly1305", 36, 0);
    let file = parse(&text, "SAS.toml").unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
    assert_eq!(esp_sa::export(&file.entries).lines().count(), 1);
}
