//! Exports SAs for Wireshark as its `esp_sa` table, so that it decrypts and verifies ESP in captures.
//!
//! The text contains keys; the caller that writes it to a file must restrict who can read it. Names and columns are
//! those of Wireshark 4.0 and were tried with it for every suite (`tests/interop/tshark_icv.py`).

use std::net::IpAddr;

use forebay_crypto::{Cipher, Direction, Integrity, SaKeys};
use forebay_ipsec::{Protocol, SaConfig};
use zeroize::Zeroizing;

use crate::SaEntry;

/// One line for each SA of ESP that Wireshark supports. Wireshark supports neither ChaCha20-Poly1305 nor AES-CCM and
/// AES-GMAC, and does not check ICVs by AES. With ESN it decrypts, but reports the ICV of every packet as bad,
/// because it does not have the high half of the sequence number.
pub fn export(entries: &[SaEntry]) -> Zeroizing<String> {
    table(entries.iter().map(|entry| (entry.direction, &entry.config, &entry.keys)))
}

/// As [`export`], for SAs that are not those of a file.
pub fn table<'a>(sas: impl Iterator<Item = (Direction, &'a SaConfig, &'a SaKeys)>) -> Zeroizing<String> {
    let mut table = Zeroizing::new(String::from("# Wireshark: Edit, Preferences, Protocols, ESP, ESP SAs\n"));
    for (direction, config, keys) in sas.filter(|(_, config, _)| config.protocol == Protocol::Esp) {
        let (encryption, authentication) = match names(keys) {
            Some(names) => names,
            None => continue,
        };
        let (source, destination) = match direction {
            Direction::Seal => (config.local, config.remote),
            Direction::Open => (config.remote, config.local),
        };
        let family = if matches!(source, IpAddr::V4(_)) { "IPv4" } else { "IPv6" };
        let key = hex([keys.cipher(), keys.salt()]);
        let unchecked = authentication == UNCHECKED_96;
        let auth_key = hex([if unchecked { &[] } else { keys.integrity() }, &[]]);
        let line = Zeroizing::new(format!(
            "\"{family}\",\"{source}\",\"{destination}\",\"{}\",\"{encryption}\",\"{}\",\"{authentication}\",\"{}\"\n",
            config.spi, *key, *auth_key
        ));
        table.push_str(&line);
    }
    table
}

/// What has an ICV of 96 bits that is not checked, and no key for it.
const UNCHECKED_96: &str = "ANY 96 bit authentication [no checking]";

/// Wireshark's names for encryption and authentication.
fn names(keys: &SaKeys) -> Option<(String, &'static str)> {
    let suite = keys.suite();
    let encryption = match suite.cipher() {
        Cipher::AesGcm(_) => format!("AES-GCM with {} octet ICV [RFC4106]", suite.icv_len()),
        Cipher::AesCbc(_) => "AES-CBC [RFC3602]".to_owned(),
        Cipher::AesCtr(_) => "AES-CTR [RFC3686]".to_owned(),
        Cipher::TripleDesCbc => "TripleDES-CBC [RFC2451]".to_owned(),
        Cipher::Null => "NULL".to_owned(),
        _ => return None,
    };
    let authentication = match suite.integrity() {
        Integrity::Combined | Integrity::None => "NULL",
        Integrity::HmacMd5 => "HMAC-MD5-96 [RFC2403]",
        Integrity::HmacSha1 => "HMAC-SHA-1-96 [RFC2404]",
        Integrity::HmacSha256 => "HMAC-SHA-256-128 [RFC4868]",
        Integrity::HmacSha384 => "HMAC-SHA-384-192 [RFC4868]",
        Integrity::HmacSha512 => "HMAC-SHA-512-256 [RFC4868]",
        Integrity::AesXcbc | Integrity::AesCmac => UNCHECKED_96,
        _ => return None,
    };
    Some((encryption, authentication))
}

/// Both parts as one number, nothing for none.
fn hex(parts: [&[u8]; 2]) -> Zeroizing<String> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let mut text = Zeroizing::new(String::with_capacity(2 + 2 * len));
    if len > 0 {
        text.push_str("0x");
    }
    for byte in parts.iter().copied().flatten() {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
        }
    }
    text
}
