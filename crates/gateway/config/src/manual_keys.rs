//! Warnings about SAs with keys from files: suites that RFC 8221 3 forbids for them, and SAs without a lifetime (RFC 4107).

use forebay_crypto::{Cipher, Suite};
use forebay_sas::SaEntry;

use super::reader::Context;
use super::{Config, KeySource, place_of_sa};
use forebay_sas::mask::shown;

/// Notes suites that must not have such keys, and SAs whose keys have no end; of each the first, with their number.
pub(super) fn check(config: &Config, text: &str, context: &Context<'_>) {
    let KeySource::Static { accepted, .. } = config.keys.source else { return };
    let note = |found: &dyn Fn(&SaEntry) -> bool, what: &dyn Fn(&SaEntry) -> String, help: &str| {
        let mut all = config.sas.entries.iter().filter(|entry| found(entry));
        let Some(first) = all.next() else { return };
        let others = match all.count() {
            0 => String::new(),
            1 => " (1 other SA too)".to_owned(),
            more => format!(" ({more} other SAs too)"),
        };
        context.advise(format!("{}{others}", what(first)), help, &place_of_sa(config, text, first));
    };
    let name = |entry: &SaEntry| shown(&entry.config.name);
    note(
        &|entry| entry.direction == forebay_crypto::Direction::Open && entry.config.replay_window == 0,
        &|entry| {
            format!("SA `{}` has no replay window, so that recorded packets can be sent again", name(entry))
        },
        "leave out `replay_window`, or set it to the number of packets by which the network reorders",
    );
    if accepted {
        return;
    }
    note(
        &|entry| is_forbidden(entry.config.suite),
        &|entry| {
            let suite = entry.config.suite;
            format!(
                "SA `{}` has {suite} with a key from a file, which RFC 8221 3 forbids: a repeated IV reveals plaintext or allows \
                 forgery",
                name(entry)
            )
        },
        "take a suite that survives a repeated IV, such as aes128-sha256, or keys from an IKE daemon (`source = \"xfrm\"`); or \
         set `manual_keying = \"accepted\"` in `[keys]`: `state` is then what keeps IVs apart (docs/security.md)",
    );
    note(
        &|entry| is_endless(entry),
        &|entry| format!("SA `{}` has no lifetime, so that its key is used without limit", name(entry)),
        "set `life_bytes`, `life_packets` or `life_time`, and replace the keys before it ends (`forebay tunnel roll`); or set `manual_keying = \"accepted\"` in \
         `[keys]`",
    );
}

/// Suites that RFC 8221 3 forbids with manual keys: all whose IV must never repeat.
fn is_forbidden(suite: Suite) -> bool {
    matches!(
        suite.cipher(),
        Cipher::AesGcm(_)
            | Cipher::AesCcm(_)
            | Cipher::AesGmac(_)
            | Cipher::AesCtr(_)
            | Cipher::ChaCha20Poly1305
    )
}

/// Whether nothing ends the SA before its key is used too often. Without ESN 2^32 packets do, which is too late for blocks of
/// 64 bits (RFC 8221 5).
fn is_endless(entry: &SaEntry) -> bool {
    let hard = &entry.config.lifetime.hard;
    let limited =
        hard.packets.is_some() || hard.bytes.is_some() || hard.time.is_some() || hard.use_time.is_some();
    !limited && (entry.config.esn || matches!(entry.config.suite.cipher(), Cipher::TripleDesCbc))
}
