//! Ages and counts of SAs whose keys outlive the process: their limits apply to the keys, not to a
//! run of the process.
//!
//! When an SA with limits is loaded for the first time, that moment is recorded before the SA is used. Packets and bytes are recorded at a
//! clean stop and at each reload; after a crash, those since the last record are not counted.

use serde::{Deserialize, Serialize};

use super::journal::Writing;
use super::{IvStore, IvStoreError, Record, SequenceId};

/// The record of an SA. Times are milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LifeNote {
    /// When it was loaded first.
    pub since: u64,
    /// When it had its first packet.
    pub used: Option<u64>,
    /// Packets counted.
    pub packets: u64,
    /// Bytes counted.
    pub bytes: u64,
    /// When this was recorded, by the same clock as the others; zero in records of earlier versions.
    #[serde(default)]
    pub at: u64,
}

impl LifeNote {
    /// The stricter of both: the earlier start and the higher counts.
    pub(super) fn further(&self, other: &LifeNote) -> LifeNote {
        let used = self.used.into_iter().chain(other.used).min();
        let (packets, bytes) = (self.packets.max(other.packets), self.bytes.max(other.bytes));
        let at = self.at.max(other.at);
        LifeNote { since: self.since.min(other.since), used, packets, bytes, at }
    }
}

impl IvStore {
    /// The records of SAs, in their order; new SAs are recorded with their beginning `now`.
    ///
    /// # Errors
    /// If the journal cannot be read or written, or is damaged.
    pub fn lives(&self, ids: &[SequenceId], now: u64) -> Result<Vec<LifeNote>, IvStoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.change(Writing::default(), |records| {
            let begins = LifeNote { since: now, at: now, ..LifeNote::default() };
            let new = ids.iter().filter(|id| !records.lives.contains_key(id));
            let new = new.map(|&id| Record::Life { id, note: begins }).collect();
            Ok((new, ids.iter().map(|id| records.lives.get(id).copied().unwrap_or(begins)).collect()))
        })
    }

    /// Records the ages and counts of SAs.
    ///
    /// # Errors
    /// As [`IvStore::lives`]; then the earlier records are valid.
    pub fn settle_lives(&self, lives: &[(SequenceId, LifeNote)]) -> Result<(), IvStoreError> {
        if lives.is_empty() {
            return Ok(());
        }
        self.change(Writing::default(), |records| {
            let new = lives.iter().filter(|(id, note)| records.lives.get(id) != Some(note));
            Ok((new.map(|&(id, note)| Record::Life { id, note }).collect(), ()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> SequenceId {
        digit.to_string().repeat(32).try_into().unwrap()
    }

    #[test]
    fn an_sa_begins_once_and_goes_on_where_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let store = IvStore::new(directory.path().join("state"));
        assert_eq!(store.lives(&[], 5).unwrap(), []);
        assert!(!store.directory().exists());
        let new = LifeNote { since: 1_000, at: 1_000, ..LifeNote::default() };
        assert_eq!(store.lives(&[id('1'), id('2')], 1_000).unwrap(), [new, new]);
        let later = LifeNote { used: Some(1_500), packets: 7, bytes: 700, ..new };
        store.settle_lives(&[(id('2'), later)]).unwrap();
        let newer = LifeNote { since: 2_000, at: 2_000, ..LifeNote::default() };
        let store = IvStore::new(directory.path().join("state"));
        assert_eq!(store.lives(&[id('1'), id('2'), id('3')], 2_000).unwrap(), [new, later, newer]);
    }
}
