//! Durable reservations of IVs and sequence numbers: no IV is given out twice for one key, not across restarts and
//! crashes, not between processes, not between SAs.
//!
//! A directory holds one small file for each key: the mark below which IVs may have been used. Marks of many keys that
//! were raised at once stand in one file together; of two marks for a key the higher counts. Where there are very many,
//! one mark replaces those that are behind the clock (`floor`).
//! [`IvStore::reserve`] raises the mark, makes that durable, and only then hands out what lies below
//! it; what a process does not use of it is lost. A range starts behind the mark *and* behind the
//! clock in nanoseconds since the Unix epoch, which still holds IVs apart if the directory is lost,
//! as long as the clock does not run backwards and no more IVs were reserved than nanoseconds passed.
//!
//! The steps of a reservation, under one lock for the directory:
//!
//! ```text
//! lock | read marks | write .tmp files, sync | rename each over its mark | sync directory | give out
//! ```
//!
//! Before the rename the old mark stands and nothing was given out; after it the new one may or may
//! not survive a power failure, and still nothing was given out. The lock is a file of its own that
//! is never renamed or removed: a lock on a file that is replaced would be held on the old one only.
//!
//! Two things the store cannot see: the same key in use on another machine, and one in use with
//! another directory, where only the clock keeps IVs apart.

mod cluster;
mod directory;
mod error;
mod files;
mod floor;
mod key_id;
mod lifetimes;
mod pair;
mod sequences;
mod table;
mod territory;
mod windows;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_crypto::SaKeys;
use forebay_ipsec::IvRange;
use forebay_planted::{Fault, planted};
use serde::{Deserialize, Serialize};

pub use cluster::ClusterNote;
pub use error::IvStoreError;
pub use files::{Files, Identity, Lock, System, Writing};
pub use key_id::KeyId;
pub use lifetimes::LifeNote;
pub use pair::{Ahead, Alone, NotNoted, Noting, PairNote, Record, Replica};
pub use sequences::{Block, SequenceId, Used, Wanted};
pub use territory::Territory;
pub use windows::{WindowNote, WindowStore};

/// IVs that suffice for an SA without ESN: its sequence numbers end earlier (RFC 4303 3.3.3).
/// As nanoseconds they are 4.3 s, so that restarts do not drive the marks far ahead of the clock.
pub const IVS_PER_SA: u64 = 1 << 32;

/// Longest mark file, in bytes; one that Forebay wrote is far shorter.
const MAX_MARK_LEN: u64 = 256;

/// So many keys have their marks in files of their own; those of more, reserved at once, are in one.
const OWN_FILES: usize = 16;
/// That file.
const TOGETHER: &str = "together.json";

const SCHEMA: u32 = 1;

/// What a mark file says, as one line of JSON.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    schema: u32,
    /// The first IV that no reservation has covered.
    reserved_until: u64,
}

/// The steps of a reservation that change something, for tests that stop behind one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Locked,
    Opened,
    Written,
    Synced,
    Renamed,
    DirectorySynced,
    Removed,
}

/// A directory of marks.
#[derive(Clone, Debug)]
pub struct IvStore {
    directory: PathBuf,
    files: Arc<dyn Files>,
    /// Marks that are kept before those behind the clock become one.
    kept: usize,
    /// Of a gateway of a pair.
    territory: Option<Territory>,
    replica: Arc<dyn Replica>,
}

impl IvStore {
    /// The store in this directory, which is made when the first IVs are reserved.
    pub fn new(directory: impl Into<PathBuf>) -> IvStore {
        IvStore::on(directory, Arc::new(System))
    }

    /// The same on another file system.
    pub fn on(directory: impl Into<PathBuf>, files: Arc<dyn Files>) -> IvStore {
        let (directory, kept, replica) = (directory.into(), floor::KEPT, Arc::new(Alone));
        IvStore { directory, files, kept, territory: None, replica }
    }

    /// The same directory as that of a gateway of a pair, which uses only IVs and sequence numbers of its `territory`.
    #[must_use]
    pub fn in_territory(self, territory: Territory) -> IvStore {
        // The floor would stand for marks that the other gateway has to know by their keys.
        IvStore { territory: Some(territory), kept: usize::MAX, ..self }
    }

    /// The same with another gateway that notes every record before it is used.
    #[must_use]
    pub fn with_replica(self, replica: Arc<dyn Replica>) -> IvStore {
        IvStore { replica, ..self }
    }

    /// The other gateway.
    pub fn replica(&self) -> &Arc<dyn Replica> {
        &self.replica
    }

    /// The largest block of sequence numbers that an SA should ask for whose last number is `end`; `None` where there is no
    /// limit.
    pub fn block_max(&self, end: u64) -> Option<u64> {
        self.territory.map(|_| Territory::block_max(end))
    }

    /// The store where this user's state is kept: `$FOREBAY_STATE`, `$XDG_STATE_HOME/forebay`,
    /// `$HOME/.local/state/forebay`, or for root without a home `/var/lib/forebay`.
    pub fn of_user() -> Result<IvStore, IvStoreError> {
        let is_root = rustix::process::geteuid().is_root();
        directory::of_user(|name| std::env::var_os(name), is_root)
            .map(IvStore::new)
            .ok_or(IvStoreError::NoDirectory)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes this directory that of one gateway, until what is returned is dropped: two that record sequence numbers and
    /// replay windows in the same files would undo each other's records. IVs may be reserved by others all the same.
    ///
    /// # Errors
    /// [`IvStoreError::InUse`] if another gateway has it, and if the directory cannot be made or written.
    pub fn claim(&self) -> Result<Lock, IvStoreError> {
        let path = self.directory.join("gateway.lock");
        let failed = |error| IvStoreError::Write { path: path.clone(), error };
        self.files.make_directory(&self.directory).map_err(failed)?;
        let lock = self.files.try_lock(&path).map_err(failed)?;
        lock.ok_or_else(|| IvStoreError::InUse { directory: self.directory.clone() })
    }

    /// Reserves `per_sa` IVs for each of `sas`, outbound SAs, and makes that durable. The ranges
    /// come in the order of the SAs; SAs with the same cipher key get disjoint ones.
    pub fn ranges<'a>(
        &self,
        sas: impl IntoIterator<Item = &'a SaKeys>,
        now_ns: u64,
        per_sa: u64,
    ) -> Result<Vec<IvRange>, IvStoreError> {
        let ids: Vec<KeyId> = sas.into_iter().map(KeyId::of).collect();
        let mut shares: BTreeMap<KeyId, u64> = BTreeMap::new();
        for id in &ids {
            *shares.entry(*id).or_default() += 1;
        }
        let counts = shares.iter().map(|(&id, shares)| (id, per_sa.saturating_mul(*shares))).collect();
        let reserved = self.reserve(&counts, now_ns)?;
        let mut given: HashMap<KeyId, u64> = HashMap::new();
        let share = |id: KeyId| {
            let index = given.entry(id).or_default();
            *index += 1;
            let range = &reserved[&id];
            IvRange::share(range.start, range.end, *index - 1, shares[&id])
        };
        Ok(ids.into_iter().map(share).collect())
    }

    /// Reserves the given number of IVs for each key and makes that durable; `now_ns` is the time
    /// since the Unix epoch. Waits while another process reserves, which takes a few writes.
    pub fn reserve(
        &self,
        counts: &BTreeMap<KeyId, u64>,
        now_ns: u64,
    ) -> Result<BTreeMap<KeyId, Range<u64>>, IvStoreError> {
        self.reserve_stepwise(counts, now_ns, &mut |_| Ok(()))
    }

    /// `after` is called behind each step; its error ends everything there, as a crash would.
    fn reserve_stepwise(
        &self,
        counts: &BTreeMap<KeyId, u64>,
        now_ns: u64,
        after: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<BTreeMap<KeyId, Range<u64>>, IvStoreError> {
        if counts.is_empty() {
            return Ok(BTreeMap::new());
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| IvStoreError::Write { path, error }
        };
        let files = &*self.files;
        files.make_directory(&self.directory).map_err(failed(&self.directory))?;
        let lock_path = self.directory.join("lock");
        // Closing it is what unlocks.
        let lock = files.lock(&lock_path).map_err(failed(&lock_path))?;
        after(Step::Locked).map_err(failed(&lock_path))?;

        let together_path = self.directory.join(TOGETHER);
        let (floor, mut together) = self.prune(now_ns, after)?;
        let mut ranges = BTreeMap::new();
        for (&id, &count) in counts {
            let path = self.mark_path(id);
            let mark = together.marks.get(&id.to_string()).copied().unwrap_or_default();
            let mark = read_mark(files, &path)?.max(mark);
            let own = self.territory.map_or(0..u64::MAX, Territory::ivs);
            let clock = own.start.saturating_add(now_ns);
            let start = if planted(Fault::IvMarkIgnored) { clock } else { mark.max(floor).max(clock) };
            let end = start
                .checked_add(count)
                .filter(|&end| end <= own.end)
                .ok_or(IvStoreError::UsedUp { path })?;
            ranges.insert(id, start..end);
        }
        let text = |reserved_until| -> io::Result<String> {
            Ok(serde_json::to_string(&Mark { schema: SCHEMA, reserved_until })? + "\n")
        };
        // Of a pair all are in one file, which goes to the other gateway as a whole.
        let texts: io::Result<Vec<_>> = if ranges.len() > OWN_FILES || self.territory.is_some() {
            together.marks.extend(ranges.iter().map(|(id, range)| (id.to_string(), range.end)));
            together.file(&together_path).map(|file| vec![file])
        } else {
            ranges
                .iter()
                .map(|(&id, range)| {
                    let less = if planted(Fault::IvMarkTooLow) { 1 } else { 0 };
                    Ok((self.mark_path(id), text(range.end - less)?))
                })
                .collect()
        };
        let records: Vec<Record> =
            ranges.iter().map(|(&key, range)| Record::Ivs { key, until: range.end }).collect();
        let noting = self.replica.begin(&records).map_err(IvStoreError::NotNoted)?;
        let written = texts.and_then(|texts| replace(files, &texts, after));
        written.map_err(failed(&self.directory))?;
        files.sync_directory(&self.directory).map_err(failed(&self.directory))?;
        after(Step::DirectorySynced).map_err(failed(&self.directory))?;
        drop(lock);
        noting.wait();
        Ok(ranges)
    }

    fn mark_path(&self, id: KeyId) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }
}

/// The mark of a key, 0 for one that has none. A file that says anything but a mark is an error:
/// to start over could repeat IVs.
fn read_mark(files: &dyn Files, path: &Path) -> Result<u64, IvStoreError> {
    let corrupt = |why: String| IvStoreError::Corrupt { path: path.to_owned(), why };
    let text = match files.read(path, MAX_MARK_LEN + 1) {
        Ok(text) if text.is_empty() => return Err(corrupt("it is empty".into())),
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(IvStoreError::Read { path: path.to_owned(), error }),
    };
    let mark: Mark = serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
    if mark.schema != SCHEMA {
        return Err(corrupt(format!("it has schema {}, expected {SCHEMA}", mark.schema)));
    }
    Ok(mark.reserved_until)
}

/// Replaces files, which are in one directory, by ones with these texts; durable once the directory has been synced
/// too. Before all are written none is replaced.
fn replace(
    files: &dyn Files,
    texts: &[(PathBuf, String)],
    after: &mut dyn FnMut(Step) -> io::Result<()>,
) -> io::Result<()> {
    // No other process uses these names while the lock is held; what a crash left there is overwritten.
    let temporary = |path: &Path| path.with_extension("tmp");
    for (path, text) in texts {
        let mut file = files.create(&temporary(path))?;
        after(Step::Opened)?;
        file.write(text.as_bytes())?;
        after(Step::Written)?;
        file.sync()?;
        after(Step::Synced)?;
    }
    for (path, _) in texts {
        files.rename(&temporary(path), path)?;
        after(Step::Renamed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
