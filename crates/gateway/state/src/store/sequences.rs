//! Durable reservations of sequence numbers, for SAs whose keys outlive the process.
//!
//! If an SA began at 1 again, its peer would refuse its packets, because numbers up to the highest received one are
//! replays. Numbers are therefore recorded before their use, in blocks. After a crash an SA continues after its block, after a clean stop after
//! the last number that it used.
//!
//! The record of a removed SA stays for good, because its keys may be configured again.

use std::collections::BTreeMap;
use std::fmt;

use forebay_crypto::SaKeys;
use forebay_ipsec::Spi;
use forebay_planted::{Fault, planted};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::journal::Writing;
use super::{IvStore, IvStoreError, Record};

/// Sets these fingerprints apart from any other hash of the keys.
const DOMAIN: &[u8] = b"forebay sequence numbers v1\0";
/// A fingerprint of an SA's keys and SPI, which identifies the SA to its peer. An attacker who sees it can confirm a
/// guess of the keys and learns nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct SequenceId([u8; 16]);

impl SequenceId {
    /// The fingerprint of an SA.
    pub fn of(keys: &SaKeys, spi: Spi) -> SequenceId {
        let mut hash = Sha256::new().chain_update(DOMAIN).chain_update(spi.get().to_be_bytes());
        for key in [keys.cipher(), keys.integrity()] {
            hash = hash.chain_update((key.len() as u64).to_be_bytes()).chain_update(key);
        }
        let mut id = [0; 16];
        id.copy_from_slice(&hash.finalize()[..16]);
        SequenceId(id)
    }
}

impl From<SequenceId> for String {
    fn from(id: SequenceId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for SequenceId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<SequenceId, &'static str> {
        fingerprint(&text).map(SequenceId)
    }
}

/// The bytes of a printed fingerprint.
pub(super) fn fingerprint(text: &str) -> Result<[u8; 16], &'static str> {
    let digits = text.as_bytes();
    let mut id = [0; 16];
    if digits.len() != 2 * id.len() {
        return Err("a fingerprint has 32 hex digits");
    }
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16).ok_or("no hex digit");
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Ok(id)
}

impl fmt::Display for SequenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SequenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SequenceId({self})")
    }
}

/// A request for numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The SA.
    pub id: SequenceId,
    /// Their number.
    pub count: u64,
    /// The last possible number.
    pub end: u64,
}

/// Numbers that one SA may use: those above `after`, up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The last number that may have been used before.
    pub after: u64,
    /// The last number of the block.
    pub last: u64,
}

/// The numbers that an SA has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// The SA.
    pub id: SequenceId,
    /// The end of its last block.
    pub last: u64,
    /// The last number that it used.
    pub sent: u64,
}

impl IvStore {
    /// Reserves numbers for each of `wanted` and makes that durable, in their order; fewer if their end is near,
    /// and none, so that `after` is `last`, if it is reached.
    ///
    /// # Errors
    /// If the journal cannot be read or written, or is damaged; then nothing is reserved.
    pub fn reserve_sequences(&self, wanted: &[Wanted]) -> Result<Vec<Block>, IvStoreError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        self.change(Writing::default(), |records| {
            let mut new: Vec<Record> = Vec::with_capacity(wanted.len());
            let mut marks = BTreeMap::new();
            let block = |&Wanted { id, count, end }: &Wanted| {
                let known = || records.numbers.get(&id).copied().unwrap_or(0);
                let mark: &mut u64 = marks.entry(id).or_insert_with(known);
                let block = match self.territory {
                    Some(territory) => territory.block(*mark, count, end),
                    None => {
                        let after = (*mark).min(end);
                        Block { after, last: after.saturating_add(count).min(end) }
                    }
                };
                if block.after < block.last {
                    *mark = block.last;
                    new.push(Record::Numbers { id, last: block.last });
                }
                block
            };
            let blocks = wanted.iter().map(block).collect();
            new.retain(|_| !planted(Fault::SequencesNotWritten));
            Ok((new, blocks))
        })
    }

    /// Records which numbers ended SAs did not use, so that these SAs can continue where they stopped. A record that
    /// has been raised by another reservation meanwhile is left unchanged.
    ///
    /// # Errors
    /// As [`IvStore::reserve_sequences`]; the unused numbers are then skipped, which is harmless.
    pub fn settle_sequences(&self, used: &[Used]) -> Result<(), IvStoreError> {
        if used.is_empty() {
            return Ok(());
        }
        self.change(Writing::default(), |records| {
            let settled =
                used.iter().filter(|one| records.numbers.get(&one.id) == Some(&one.last)).map(|one| {
                    let less = if planted(Fault::SettledTooLow) { 1 } else { 0 };
                    Record::Numbers { id: one.id, last: one.sent.min(one.last).saturating_sub(less) }
                });
            Ok((settled.collect(), ()))
        })
    }
}
