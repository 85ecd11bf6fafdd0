//! Durable records: no IV and no sequence number is given out twice for one key, not across restarts and
//! crashes, not between processes, not between SAs; no packet is received twice, and no lifetime begins again.
//!
//! A directory has one [journal] with all records, a [note] that names its owner, and a lock.
//! A reservation raises a record, makes that durable, and only then gives out the numbers below
//! it; numbers that a process does not use are lost. A range of IVs starts above its record *and* above the
//! clock in nanoseconds since the Unix epoch. The clock still keeps IVs apart if the directory is lost,
//! as long as it does not run backwards and no more IVs were reserved than nanoseconds passed.
//!
//! The steps of a reservation, under one lock for the directory:
//!
//! ```text
//! lock | read what others have appended | send to the other gateway | append, sync | note, for IVs | unlock | wait for the other gateway | give out
//! ```
//!
//! Nothing is given out before the sync; a crash may leave all, some or none of the new lines. The lock is a separate file that
//! is never renamed or removed: a lock on a file that is replaced would be held on the old file only.
//!
//! The store cannot detect two cases: the same key in use on another machine, and the same key in use with
//! another directory, where only the clock keeps IVs apart.

mod directory;
mod error;
mod files;
mod journal;
mod key_id;
mod legacy;
mod lifetimes;
mod note;
mod plausible;
mod record;
mod replica;
mod sequences;
mod territory;
mod windows;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_crypto::SaKeys;
use forebay_ipsec::IvRange;
use forebay_planted::{Fault, planted};

use self::journal::{Journal, Writing as Wrote};
use self::record::{HALF, Records};

pub use error::IvStoreError;
pub use files::{Files, Identity, Lock, System, Writing};
pub use key_id::KeyId;
pub use lifetimes::LifeNote;
pub use note::{ClusterNote, PairNote, Provenance, Role};
pub use plausible::Plausible;
pub use record::{Record, WindowNote};
pub use replica::{Ahead, Alone, NotNoted, Noting, Replica};
pub use sequences::{Block, SequenceId, Used, Wanted};
pub use territory::Territory;

/// IVs that suffice for an SA without ESN: its sequence numbers end earlier (RFC 4303 3.3.3).
/// As nanoseconds they are 4.3 s, so that restarts do not drive the records far ahead of the clock.
pub const IVS_PER_SA: u64 = 1 << 32;

/// Number of cipher keys that keep records of their own, even below the clock.
const KEPT: usize = 1_024;

/// A directory of records. Clones share their state.
#[derive(Clone, Debug)]
pub struct IvStore {
    directory: PathBuf,
    files: Arc<dyn Files>,
    /// Number of keys whose ends of reserved IVs are kept before those below the clock become the floor.
    kept: usize,
    /// The territory of a gateway of a pair.
    territory: Option<Territory>,
    replica: Arc<dyn Replica>,
    journal: Arc<Mutex<Journal>>,
    /// The number of the last write that is in the journal, for the note.
    written: Arc<AtomicU64>,
    /// Held while the note is changed, because the end of a data plane and the pair or cluster use different threads. Between
    /// processes a file is locked.
    noting: Arc<Mutex<()>>,
}

impl IvStore {
    /// The store in this directory, which is made when the first IVs are reserved.
    pub fn new(directory: impl Into<PathBuf>) -> IvStore {
        IvStore::on(directory, Arc::new(System))
    }

    /// The same on another file system.
    pub fn on(directory: impl Into<PathBuf>, files: Arc<dyn Files>) -> IvStore {
        let (directory, kept, replica) = (directory.into(), KEPT, Arc::new(Alone));
        let (journal, written, noting) = Default::default();
        IvStore { directory, files, kept, territory: None, replica, journal, written, noting }
    }

    /// The same directory as that of a gateway of a pair, which uses only IVs and sequence numbers of its `territory`.
    #[must_use]
    pub fn in_territory(self, territory: Territory) -> IvStore {
        // The floor would stand for marks that the other gateway has to know by their keys.
        IvStore { territory: Some(territory), kept: usize::MAX, ..self }
    }

    /// The same with another gateway that records every record before it is used.
    #[must_use]
    pub fn with_replica(self, replica: Arc<dyn Replica>) -> IvStore {
        IvStore { replica, ..self }
    }

    /// The other gateway.
    pub fn replica(&self) -> &Arc<dyn Replica> {
        &self.replica
    }

    /// Maximum block of sequence numbers of an SA whose last number is `end`; `None` if there is no
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

    /// The reason for which every gateway refuses the directory; `None` if it does not, or if the directory does not exist yet.
    pub fn exposed(&self) -> Option<IvStoreError> {
        let mode = std::fs::metadata(&self.directory).ok()?.mode();
        directory::exposed(mode).map(|error| IvStoreError::Write { path: self.directory.clone(), error })
    }

    /// Locks this directory for one gateway, until the returned lock is dropped: two that record sequence numbers and
    /// replay windows in the same files would undo each other's records. Other processes can still reserve IVs.
    ///
    /// # Errors
    /// [`IvStoreError::InUse`] if another gateway has it, and if the directory cannot be made or written.
    pub fn claim(&self) -> Result<Lock, IvStoreError> {
        let path = self.directory.join("gateway.lock");
        let failed = |error| IvStoreError::Write { path: path.clone(), error };
        let refused = |error| IvStoreError::Write { path: self.directory.clone(), error };
        self.files.make_directory(&self.directory).map_err(refused)?;
        let lock = self.files.try_lock(&path).map_err(failed)?;
        lock.ok_or_else(|| IvStoreError::InUse { directory: self.directory.clone() })
    }

    /// Locks this directory for a program that reserves IVs beside or instead of a gateway, in the role that the directory has, with the
    /// checks of [`IvStore::enter`]. `None` if a gateway, which does that itself, or another such program has it.
    ///
    /// # Errors
    /// As [`IvStore::claim`] and [`IvStore::enter`].
    pub fn claim_if_free(&self) -> Result<Option<Lock>, IvStoreError> {
        match self.claim() {
            Err(IvStoreError::InUse { .. }) => Ok(None),
            Err(error) => Err(error),
            Ok(claimed) => self.enter(self.provenance()?.role).map(|()| Some(claimed)),
        }
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
    /// since the Unix epoch. Waits while another process reserves, which takes two writes: that of the journal and the note, which
    /// expects it before an IV is given out, so that an older copy of the journal is refused.
    ///
    /// # Errors
    /// If the journal cannot be read or written, or is damaged, or the IVs of a key are exhausted; then nothing is
    /// reserved.
    pub fn reserve(
        &self,
        counts: &BTreeMap<KeyId, u64>,
        now_ns: u64,
    ) -> Result<BTreeMap<KeyId, Range<u64>>, IvStoreError> {
        if counts.is_empty() {
            return Ok(BTreeMap::new());
        }
        let (own, half) = match self.territory {
            Some(territory) => (territory.ivs(), Some(usize::from(territory.number()))),
            None => (0..u64::MAX, None),
        };
        let clock = own.start.saturating_add(now_ns);
        self.change(Wrote { now_ns, is_noted: true, ..Wrote::default() }, |records| {
            let (mut ranges, mut new) = (BTreeMap::new(), Vec::new());
            for (&key, &count) in counts {
                let known = records.ivs_of(key);
                // The other half belongs to the other gateway; a gateway alone begins above both.
                let known = half.map_or(known[0].max(known[1]), |half| known[half]);
                let floor = records.floor.max(clock);
                let start = if planted(Fault::IvMarkIgnored) { clock } else { known.max(floor) };
                let end = start.checked_add(count).filter(|&end| end <= own.end);
                let path = || self.directory.join(journal::FILE);
                let end = end.ok_or_else(|| IvStoreError::UsedUp { path: path(), key })?;
                let less = if planted(Fault::IvMarkTooLow) { 1 } else { 0 };
                // A range that crosses the middle is in both halves.
                if start < HALF {
                    new.push(Record::Ivs { key, until: end.min(HALF) - less });
                }
                if end > HALF {
                    new.push(Record::Ivs { key, until: end - less });
                }
                ranges.insert(key, start..end);
            }
            Ok((new, ranges))
        })
    }

    /// Checks that records can be made.
    ///
    /// # Errors
    /// If the directory cannot be made or written.
    pub fn prepare(&self) -> Result<(), IvStoreError> {
        self.lock().map(drop)
    }

    /// The number of records, without a change of the directory; `None` if there is no journal yet.
    ///
    /// # Errors
    /// If the journal is missing, cannot be read, or is damaged.
    pub fn verify(&self) -> Result<Option<usize>, IvStoreError> {
        if !note::is_there(self)? && !journal::lacks_note(self)? {
            return Ok(None);
        }
        self.read(|records| Some(records.len()))
    }

    /// The result of `select` for the records.
    fn read<T>(&self, select: impl FnOnce(&Records) -> T) -> Result<T, IvStoreError> {
        let mut journal = self.journal();
        // Reading makes no directory.
        let found = self.files.identity(&self.directory);
        let is_new = found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let _lock = if is_new { None } else { Some(self.lock()?) };
        journal.refresh(self)?;
        Ok(select(&journal.records))
    }

    /// Records the new records that `decide` returns for the present ones. They are sent to the other gateway first, which has them when this
    /// returns.
    fn change<T>(
        &self,
        writing: Wrote<'_>,
        decide: impl FnOnce(&Records) -> Result<(Vec<Record>, T), IvStoreError>,
    ) -> Result<T, IvStoreError> {
        let noting: &mut Option<Box<dyn Noting>> = &mut None;
        let changed = self.change_here(writing, |records| {
            let (new, changed) = decide(records)?;
            // Numbers that were not used may be used here only, so the other gateway of a pair need not know of them.
            let takes_unused = self.replica.takes_unused();
            let is_told = |record: &&Record| match record {
                Record::Numbers { id, last } => {
                    takes_unused || records.numbers.get(id).is_none_or(|known| known < last)
                }
                _ => true,
            };
            let told: Vec<Record> = new.iter().filter(is_told).cloned().collect();
            if !told.is_empty() {
                *noting = Some(self.replica.begin(&told).map_err(IvStoreError::NotNoted)?);
            }
            Ok((new, changed))
        })?;
        if let Some(noting) = noting.take() {
            noting.wait();
        }
        Ok(changed)
    }

    /// The same, here only.
    fn change_here<T>(
        &self,
        writing: Wrote<'_>,
        decide: impl FnOnce(&Records) -> Result<(Vec<Record>, T), IvStoreError>,
    ) -> Result<T, IvStoreError> {
        let mut journal = self.journal();
        let _lock = self.lock()?;
        journal.establish(self)?;
        let (new, changed) = decide(&journal.records)?;
        if !new.is_empty() {
            journal.write(self, new, writing)?;
            if writing.is_noted {
                self.note_written()?;
            }
        }
        Ok(changed)
    }

    /// Ensures that the directory has a journal and a note.
    fn establish(&self) -> Result<(), IvStoreError> {
        let mut journal = self.journal();
        let _lock = self.lock()?;
        journal.establish(self)
    }

    /// The same, and everything in the journal is on the disk.
    fn sync(&self) -> Result<(), IvStoreError> {
        let mut journal = self.journal();
        let _lock = self.lock()?;
        journal.sync(self)
    }

    /// Begins without missing files, as an operator has accepted.
    fn begin_without_missing(&self) -> Result<(), IvStoreError> {
        let mut journal = self.journal();
        let _lock = self.lock()?;
        match note::is_there(self)? {
            true => journal.begin_anew(self),
            false if journal::lacks_note(self)? => journal.note_again(self),
            false => legacy::forget_missing(self),
        }
    }

    /// The right to change the directory, which is made if it is missing.
    fn lock(&self) -> Result<Box<dyn std::any::Any>, IvStoreError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| IvStoreError::Write { path, error }
        };
        self.files.make_directory(&self.directory).map_err(failed(&self.directory))?;
        let path = self.directory.join("lock");
        self.files.lock(&path).map_err(failed(&path))
    }

    /// Writes the last write of the journal into the note, so that a lost end of the journal is detected.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(&self) -> Result<(), IvStoreError> {
        if note::is_there(self)? { self.change_note(|_| {}) } else { Ok(()) }
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces a file by one with this text, durably. Until all is written, the file is unchanged.
fn replace(files: &dyn Files, path: &Path, text: &str) -> io::Result<()> {
    // No other process uses this name while the lock is held; remains of a crash are overwritten.
    let temporary = path.with_extension("tmp");
    let mut file = files.create(&temporary)?;
    file.write(text.as_bytes())?;
    file.sync()?;
    files.rename(&temporary, path)?;
    path.parent().map_or(Ok(()), |directory| files.sync_directory(directory))
}

#[cfg(test)]
mod tests;
