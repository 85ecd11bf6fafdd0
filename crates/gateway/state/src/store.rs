//! Durable reservations of IVs and sequence numbers: no IV is given out twice for one key, not across restarts and
//! crashes, not between processes, not between SAs.
//!
//! A directory has one table with the marks of all keys, below which IVs may have been used (`ivs`).
//! [`IvStore::reserve`] raises the mark, makes that durable, and only then hands out what lies below
//! it; what a process does not use of it is lost. A range starts behind the mark *and* behind the
//! clock in nanoseconds since the Unix epoch, which still holds IVs apart if the directory is lost,
//! as long as the clock does not run backwards and no more IVs were reserved than nanoseconds passed.
//!
//! The steps of a reservation, under one lock for the directory:
//!
//! ```text
//! lock | read the table | write a .tmp file, sync | rename it over the table | sync directory | give out
//! ```
//!
//! Before the rename the old table stands and nothing was given out; after it the new one may or may
//! not survive a power failure, and still nothing was given out. The lock is a file of its own that
//! is never renamed or removed: a lock on a file that is replaced would be held on the old one only.
//!
//! Two things the store cannot see: the same key in use on another machine, and one in use with
//! another directory, where only the clock keeps IVs apart.

mod cluster;
mod directory;
mod error;
mod files;
mod ivs;
mod key_id;
mod lifetimes;
mod pair;
mod plausible;
mod provenance;
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

use self::ivs::Marks;

pub use cluster::ClusterNote;
pub use error::IvStoreError;
pub use files::{Files, Identity, Lock, System, Writing};
pub use key_id::KeyId;
pub use lifetimes::LifeNote;
pub use pair::{Ahead, Alone, NotNoted, Noting, PairNote, Record, Replica};
pub use plausible::Plausible;
pub use provenance::{Provenance, Role};
pub use sequences::{Block, SequenceId, Used, Wanted};
pub use territory::Territory;
pub use windows::{WindowNote, WindowStore};

/// IVs that suffice for an SA without ESN: its sequence numbers end earlier (RFC 4303 3.3.3).
/// As nanoseconds they are 4.3 s, so that restarts do not drive the marks far ahead of the clock.
pub const IVS_PER_SA: u64 = 1 << 32;

/// That of every file but the table of IVs.
const SCHEMA: u32 = 1;

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
        let (directory, kept, replica) = (directory.into(), ivs::KEPT, Arc::new(Alone));
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

        let mut marks = Marks::read(self)?;
        marks.prune(now_ns, self.kept);
        let (own, half) = match self.territory {
            Some(territory) => (territory.ivs(), Some(usize::from(territory.number()))),
            None => (0..u64::MAX, None),
        };
        let path = self.directory.join(ivs::FILE);
        let clock = own.start.saturating_add(now_ns);
        let mut ranges = BTreeMap::new();
        for (&key, &count) in counts {
            let known = marks.of(key)?;
            // The other half is the other gateway's; whoever is alone, or was, is behind both.
            let mark = half.map_or(known[0].max(known[1]), |half| known[half]);
            let floor = marks.floor.max(clock);
            let start = if planted(Fault::IvMarkIgnored) { clock } else { mark.max(floor) };
            let end = start
                .checked_add(count)
                .filter(|&end| end <= own.end)
                .ok_or_else(|| IvStoreError::UsedUp { path: path.clone(), key })?;
            // One that crosses the middle is in both.
            if start < ivs::HALF {
                marks.raise(key, end.min(ivs::HALF));
            }
            if end > ivs::HALF {
                marks.raise(key, end);
            }
            ranges.insert(key, start..end);
        }
        let records: Vec<Record> =
            ranges.iter().map(|(&key, range)| Record::Ivs { key, until: range.end }).collect();
        let noting = self.replica.begin(&records).map_err(IvStoreError::NotNoted)?;
        self.write_marks(&marks, after)?;
        drop(lock);
        noting.wait();
        Ok(ranges)
    }

    /// Makes the table of IVs durable, and removes what it stands for.
    fn write_marks(
        &self,
        marks: &Marks,
        after: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<(), IvStoreError> {
        let files = &*self.files;
        let mut write = || {
            replace(files, &[marks.file(&self.directory)?], after)?;
            files.sync_directory(&self.directory)?;
            after(Step::DirectorySynced)?;
            for path in marks.old() {
                files.remove(path)?;
                after(Step::Removed)?;
            }
            Ok(())
        };
        write().map_err(|error| IvStoreError::Write { path: self.directory.clone(), error })
    }

    fn files(&self) -> &dyn Files {
        &*self.files
    }
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
    let name =
        |path: &'_ Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let is_made =
        |path: &Path| files.identity(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let made: Vec<String> =
        texts.iter().filter(|(path, _)| is_made(path)).map(|(path, _)| name(path)).collect();
    for (path, _) in texts {
        files.rename(&temporary(path), path)?;
        after(Step::Renamed)?;
    }
    let Some(directory) = texts.first().and_then(|(path, _)| path.parent()).filter(|_| !made.is_empty())
    else {
        return Ok(());
    };
    if let Some(note) = provenance::with_made(files, directory, &made).map_err(io::Error::other)? {
        // Not before the file: one that is named has to be there.
        files.sync_directory(directory)?;
        replace(files, &[note], after)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
