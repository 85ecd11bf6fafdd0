//! Cipher keys that two SAs share.
//!
//! IVs are unique among the packets that one gateway seals under a key. They say nothing of the peer's, which begin
//! at the peer's clock: with one key for both directions, or for the SAs of two gateways, nonces repeat, and GCM, CCM,
//! CTR, GMAC and ChaCha20-Poly1305 lose their secrecy and their integrity (RFC 4106 2, RFC 5116 3.1).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use forebay_crypto::SaKeys;

use super::SaEntry;
use super::errors::Findings;
use super::mask;
use super::problem::Problem;

/// Where an SA says its cipher key.
pub(super) struct KeyPlace {
    /// The key of the table: `key` or `key_file`.
    pub(super) key: &'static str,
    /// Its value.
    pub(super) span: Range<usize>,
}

/// Reports each SA whose cipher key is that of one before it, whatever its suite, salt and direction. `places` are those
/// of `entries`, in their order.
pub(super) fn report(entries: &[SaEntry], places: &[KeyPlace], findings: &mut Findings) {
    // The keys are compared where they are: the table holds references, of which nothing has to be wiped.
    let mut owners: HashMap<&[u8], (&SaEntry, &KeyPlace)> = HashMap::with_capacity(entries.len());
    for (entry, place) in entries.iter().zip(places).filter(|(entry, _)| has_cipher_key(&entry.keys)) {
        match owners.entry(entry.keys.cipher()) {
            Entry::Vacant(free) => drop(free.insert((entry, place))),
            Entry::Occupied(owner) => {
                let (first, first_place) = owner.get();
                let problem = Problem::SharedKey {
                    key: place.key,
                    sa: mask::shown(&entry.config.name),
                    first: mask::shown(&first.config.name),
                    opposite: first.direction != entry.direction,
                };
                let (here, there) = (place.span.clone(), first_place.span.clone());
                findings.add_pair(problem, here, "the same cipher key again", there, "first used here");
            }
        }
    }
}

fn has_cipher_key(keys: &SaKeys) -> bool {
    !keys.cipher().is_empty()
}
