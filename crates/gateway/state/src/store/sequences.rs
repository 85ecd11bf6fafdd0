//! Durable reservations of sequence numbers, for SAs whose keys outlive the process.
//!
//! An SA that began at 1 again would be refused by its peer, for whom all numbers behind the highest it has seen are
//! replays. So numbers are noted before their use, in blocks: what is noted of all SAs stands in one file, which is
//! replaced as marks are. After a crash an SA goes on behind its block, after a clean stop behind the number that it
//! really used.
//!
//! An SA that is gone leaves its mark for good, because its keys may be configured again. Where many have gone, their marks
//! move to a second file, which is read only when an SA comes that the first one does not know: a reservation
//! costs what the SAs that are there cost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::Path;

use forebay_crypto::SaKeys;
use forebay_ipsec::Spi;
use forebay_planted::{Fault, planted};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::table::Table;
use super::{IvStore, IvStoreError, Record, Step, provenance, replace};

/// Sets these fingerprints apart from any other hash of the keys.
const DOMAIN: &[u8] = b"forebay sequence numbers v1\0";
/// The file; each SA has a line in it.
pub(super) const FILE: &str = "sequences.json";
/// That of SAs that are gone, a line each: fingerprint and number.
pub(super) const RETIRED: &str = "retired-sequences.txt";
/// Longest such file, in bytes: more than sixty million SAs.
const RETIRED_MAX_LEN: u64 = 4 << 30;

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

/// The bytes of a fingerprint that was printed.
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

/// How many numbers are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Of which SA.
    pub id: SequenceId,
    /// So many.
    pub count: u64,
    /// The last number that there is.
    pub end: u64,
}

/// Numbers that one SA may use: those behind `after`, up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The last that may have been used before.
    pub after: u64,
    /// The last of these.
    pub last: u64,
}

/// What an SA has used of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Which SA.
    pub id: SequenceId,
    /// The end of its last block.
    pub last: u64,
    /// The last number that it used.
    pub sent: u64,
}

impl IvStore {
    /// Reserves numbers for each of `wanted` and makes that durable, in their order; fewer where their end is near,
    /// and none, so that `after` is `last`, where it is reached.
    ///
    /// # Errors
    /// If the file cannot be read or written, or says something else; then nothing is reserved.
    pub fn reserve_sequences(&self, wanted: &[Wanted]) -> Result<Vec<Block>, IvStoreError> {
        let ids: Vec<SequenceId> = wanted.iter().map(|one| one.id).collect();
        self.change_sequences(&ids, |marks| {
            let block = |wanted: &Wanted| {
                let mark = marks.entry(wanted.id.to_string()).or_default();
                if let Some(territory) = self.territory {
                    let block = territory.block(*mark, wanted.count, wanted.end);
                    if block.after < block.last {
                        *mark = block.last;
                    }
                    return block;
                }
                let after = (*mark).min(wanted.end);
                *mark = after.saturating_add(wanted.count).min(wanted.end);
                Block { after, last: *mark }
            };
            wanted.iter().map(block).collect()
        })
    }

    /// Records which numbers ended SAs did not use, so that these SAs can continue where they stopped. A mark that
    /// has been raised by another reservation meanwhile is left unchanged.
    ///
    /// # Errors
    /// As [`IvStore::reserve_sequences`]; the unused numbers are then skipped, which is harmless.
    pub fn settle_sequences(&self, used: &[Used]) -> Result<(), IvStoreError> {
        let ids: Vec<SequenceId> = used.iter().map(|one| one.id).collect();
        self.change_sequences(&ids, |marks| {
            for one in used {
                if let Some(mark) = marks.get_mut(&one.id.to_string()).filter(|mark| **mark == one.last) {
                    let less = if planted(Fault::SettledTooLow) { 1 } else { 0 };
                    *mark = one.sent.min(one.last).saturating_sub(less);
                }
            }
        })
    }

    /// Moves the marks of SAs that are not `used` to the file of those that are gone, if there are many. They keep what they
    /// say, and come back with their SAs.
    ///
    /// # Errors
    /// If a file cannot be read or written; every mark is in one of the two all the same.
    pub fn retire_sequences(&self, used: &BTreeSet<SequenceId>) -> Result<(), IvStoreError> {
        self.retire_sequences_stepwise(used, &mut |_| Ok(()))
    }

    pub(super) fn retire_sequences_stepwise(
        &self,
        used: &BTreeSet<SequenceId>,
        after: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<(), IvStoreError> {
        self.locked(|store| {
            let (path, retired_path) = (store.directory.join(FILE), store.directory.join(RETIRED));
            let mut table = Table::read(&*store.files, &path)?;
            let used: BTreeSet<String> = used.iter().map(ToString::to_string).collect();
            let gone = table.marks.keys().filter(|id| !used.contains(*id)).count();
            // In a territory IVs have no such bound, but numbers do.
            if gone <= store.kept.min(super::ivs::KEPT) {
                return Ok(());
            }
            let (stay, go) =
                std::mem::take(&mut table.marks).into_iter().partition(|(id, _)| used.contains(id));
            table.marks = stay;
            let mut retired = store.retired()?;
            for (id, last) in go {
                let known = retired.entry(id).or_default();
                *known = last.max(*known);
            }
            let text = retired.iter().map(|(id, last)| format!("{id} {last}\n")).collect();
            // The one to which they go first: a crash between the two leaves them in both.
            let written = table.file(&path).and_then(|file| {
                replace(&*store.files, &[(retired_path.clone(), text)], after)?;
                store.files.sync_directory(&store.directory)?;
                after(Step::DirectorySynced)?;
                replace(&*store.files, &[file], after)?;
                store.files.sync_directory(&store.directory)
            });
            written.map_err(|error| IvStoreError::Write { path: retired_path, error })
        })?
    }

    /// Marks of SAs that are gone. One of an SA that has come back may be behind its mark in the table.
    pub(super) fn retired(&self) -> Result<BTreeMap<String, u64>, IvStoreError> {
        let path = self.directory.join(RETIRED);
        let Some(text) = provenance::read(&*self.files, &path, RETIRED_MAX_LEN)? else {
            return Ok(BTreeMap::new());
        };
        let mark = |line: &str| {
            let (id, last) = line.split_once(' ')?;
            fingerprint(id).ok()?;
            Some((id.to_owned(), last.parse().ok()?))
        };
        let corrupt = |place: usize| IvStoreError::Corrupt {
            path: path.clone(),
            why: format!("line {} is no fingerprint with a number", place + 1),
        };
        let text = std::str::from_utf8(&text).map_err(|_| corrupt(0))?;
        let lines = text.lines().enumerate();
        lines.map(|(place, line)| mark(line).ok_or_else(|| corrupt(place))).collect()
    }

    pub(super) fn change_sequences<T: Default>(
        &self,
        ids: &[SequenceId],
        change: impl FnOnce(&mut BTreeMap<String, u64>) -> T,
    ) -> Result<T, IvStoreError> {
        self.change_sequences_stepwise(ids, change, &mut |_| Ok(()))
    }

    pub(super) fn change_sequences_stepwise<T: Default>(
        &self,
        ids: &[SequenceId],
        change: impl FnOnce(&mut BTreeMap<String, u64>) -> T,
        after: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<T, IvStoreError> {
        if ids.is_empty() {
            return Ok(T::default());
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| IvStoreError::Write { path, error }
        };
        let files = &*self.files;
        files.make_directory(&self.directory).map_err(failed(&self.directory))?;
        let lock_path = self.directory.join("lock");
        let lock = files.lock(&lock_path).map_err(failed(&lock_path))?;
        after(Step::Locked).map_err(failed(&lock_path))?;
        let path = self.directory.join(FILE);
        let mut table = Table::read(files, &path)?;
        let unknown: Vec<String> =
            ids.iter().map(ToString::to_string).filter(|id| !table.marks.contains_key(id)).collect();
        if !unknown.is_empty() {
            let retired = self.retired()?;
            let known = unknown.into_iter().filter_map(|id| retired.get_key_value(&id));
            table.marks.extend(known.map(|(id, last)| (id.clone(), *last)));
        }
        let before = table.marks.clone();
        let changed = change(&mut table.marks);
        // What was not used after all may be used here only, so that the other gateway of a pair need not hear of it.
        let takes_unused = self.replica.takes_unused();
        let raised = table.marks.iter().filter(|(id, last)| {
            before.get(*id).is_none_or(|before| before < *last || takes_unused && before > *last)
        });
        let record = |(id, last): (&String, &u64)| {
            Some(Record::Numbers { id: id.clone().try_into().ok()?, last: *last })
        };
        let records: Vec<Record> = raised.filter_map(record).collect();
        let noting = self.replica.begin(&records).map_err(IvStoreError::NotNoted)?;
        if planted(Fault::SequencesNotWritten) {
            return Ok(changed);
        }
        table.file(&path).and_then(|file| replace(files, &[file], after)).map_err(failed(&path))?;
        files.sync_directory(&self.directory).map_err(failed(&self.directory))?;
        after(Step::DirectorySynced).map_err(failed(&path))?;
        drop(lock);
        noting.wait();
        Ok(changed)
    }
}
