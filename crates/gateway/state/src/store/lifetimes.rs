//! How far SAs have come in their lives, for SAs whose keys outlive the process: their limits hold for the keys, not for a
//! run of the process.
//!
//! When an SA with limits is seen first, that moment is noted before the SA is used. Packets and bytes are noted at a
//! clean stop and at each reload; after a crash, those since then are not counted.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Files, IvStore, IvStoreError, Record, SCHEMA, SequenceId, provenance, replace};

/// The file.
pub(super) const FILE: &str = "lifetimes.json";
/// Longest file, in bytes: half a million SAs.
const MAX_LEN: u64 = 64 << 20;

/// What is noted of an SA. Times are milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LifeNote {
    /// When it was seen first.
    pub since: u64,
    /// When it had its first packet.
    pub used: Option<u64>,
    /// Packets counted.
    pub packets: u64,
    /// Bytes counted.
    pub bytes: u64,
    /// When this was noted, by the same clock as the others; zero in notes of versions before.
    #[serde(default)]
    pub at: u64,
}

impl LifeNote {
    /// What is left by both: the earlier start and the higher counts.
    pub(super) fn further(&self, other: &LifeNote) -> LifeNote {
        let used = self.used.into_iter().chain(other.used).min();
        let (packets, bytes) = (self.packets.max(other.packets), self.bytes.max(other.bytes));
        let at = self.at.max(other.at);
        LifeNote { since: self.since.min(other.since), used, packets, bytes, at }
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    schema: u32,
    pub(super) sas: BTreeMap<SequenceId, LifeNote>,
}

impl Table {
    pub(super) fn read(files: &dyn Files, path: &Path) -> Result<Table, IvStoreError> {
        let corrupt = |why: String| IvStoreError::Corrupt { path: path.to_owned(), why };
        let Some(text) = provenance::read(files, path, MAX_LEN)? else {
            return Ok(Table { schema: SCHEMA, sas: BTreeMap::new() });
        };
        let table: Table = serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
        if table.schema != SCHEMA {
            return Err(corrupt(format!("it has schema {}, expected {SCHEMA}", table.schema)));
        }
        Ok(table)
    }
}

impl IvStore {
    /// What is noted of SAs, in their order; of those that are new it is noted that they begin `now`.
    ///
    /// # Errors
    /// If the file cannot be read or written, or says something else.
    pub fn lives(&self, ids: &[SequenceId], now: u64) -> Result<Vec<LifeNote>, IvStoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.change_lives(|sas| {
            let new = LifeNote { since: now, at: now, ..LifeNote::default() };
            ids.iter().map(|id| *sas.entry(*id).or_insert(new)).collect()
        })
    }

    /// Notes how far SAs have come.
    ///
    /// # Errors
    /// As [`IvStore::lives`]; then what was noted before holds.
    pub fn settle_lives(&self, lives: &[(SequenceId, LifeNote)]) -> Result<(), IvStoreError> {
        if lives.is_empty() {
            return Ok(());
        }
        self.change_lives(|sas| sas.extend(lives.iter().copied()))
    }

    pub(super) fn change_lives<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<SequenceId, LifeNote>) -> T,
    ) -> Result<T, IvStoreError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| IvStoreError::Write { path, error }
        };
        self.files.make_directory(&self.directory).map_err(failed(&self.directory))?;
        let lock_path = self.directory.join("lock");
        let lock = self.files.lock(&lock_path).map_err(failed(&lock_path))?;
        let path = self.directory.join(FILE);
        let mut table = Table::read(&*self.files, &path)?;
        let before = table.sas.clone();
        let changed = change(&mut table.sas);
        if table.sas != before {
            let new = table.sas.iter().filter(|(id, note)| before.get(*id) != Some(*note));
            let records: Vec<Record> = new.map(|(&id, &note)| Record::Life { id, note }).collect();
            let noting = self.replica.begin(&records).map_err(IvStoreError::NotNoted)?;
            let text = serde_json::to_string(&table).map_err(io::Error::from).map_err(failed(&path))?;
            replace(&*self.files, &[(path.clone(), text + "\n")], &mut |_| Ok(())).map_err(failed(&path))?;
            self.files.sync_directory(&self.directory).map_err(failed(&self.directory))?;
            drop(lock);
            noting.wait();
        }
        Ok(changed)
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

    #[test]
    fn damage_is_an_error_and_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (store, path) = (IvStore::new(directory.path()), directory.path().join(FILE));
        for text in ["", "{\"schema\":2,\"sas\":{}}", "{\"schema\":1,\"sas\":{\"xy\":{}}}", "{\"schema\":1}"]
        {
            std::fs::write(&path, text).unwrap();
            let error = store.lives(&[id('1')], 5).unwrap_err();
            assert!(matches!(error, IvStoreError::Corrupt { .. }), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
