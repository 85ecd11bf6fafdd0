//! Which SA has which cipher key, so that none is taken over that shares its key with another.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use forebay_crypto::SaKeys;

use crate::SaId;

/// Names a cipher key within this process: a keyed hash of 128 bits, from which nothing of the key follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64, u64);

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint")
    }
}

/// The owners of cipher keys, and the SAs that were refused because theirs has one already.
#[derive(Debug, Default)]
pub struct KeyOwners {
    hashers: [RandomState; 2],
    owners: HashMap<Fingerprint, SaId>,
    refused: BTreeMap<SaId, Fingerprint>,
    /// Keys that have no owner any more while refused SAs may have them.
    freed: Vec<Fingerprint>,
}

impl KeyOwners {
    /// Makes `id` the owner of its cipher key, whatever its suite and salt.
    ///
    /// # Errors
    /// The SA that has the key already; `id` is then remembered as refused.
    pub fn claim(&mut self, id: SaId, keys: &SaKeys) -> Result<Option<Fingerprint>, SaId> {
        if keys.cipher().is_empty() {
            return Ok(None);
        }
        let [first, second] = &self.hashers;
        let key = Fingerprint(first.hash_one(keys.cipher()), second.hash_one(keys.cipher()));
        let owner = *self.owners.entry(key).or_insert(id);
        if owner == id {
            self.refused.remove(&id);
            return Ok(Some(key));
        }
        self.refused.insert(id, key);
        Err(owner)
    }

    /// Forgets an SA, which owned `key` if there is one.
    pub fn release(&mut self, id: &SaId, key: Option<Fingerprint>) {
        self.refused.remove(id);
        if let Some(key) = key.filter(|key| self.owners.get(key) == Some(id)) {
            self.owners.remove(&key);
            if !self.refused.is_empty() {
                self.freed.push(key);
            }
        }
    }

    /// The next refused SA whose key has become free.
    pub fn next_free(&mut self) -> Option<SaId> {
        while let Some(key) = self.freed.pop() {
            if !self.owners.contains_key(&key)
                && let Some((&id, _)) = self.refused.iter().find(|(_, refused)| **refused == key)
            {
                return Some(id);
            }
        }
        None
    }
}
