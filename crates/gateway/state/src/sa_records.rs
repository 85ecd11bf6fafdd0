//! The records of a gateway's SAs during the life of its workers: opened before SAs are installed, given to the SAs in the command that
//! installs them, taken from SAs that are removed, and settled afterwards. All kinds of records have the same order, at the start, at
//! each reload and at the end.
//!
//! ```text
//! open    read and reserve what the new SAs of a file need       before they are installed, by the thread that changes SAs
//! take    what removed SAs have used and received                in the worker, before their removal
//! give    what was opened or taken continues in the new SAs      in the worker, after their installation
//! settle  record what no SA has now                              after that, by the thread that changed SAs
//! ```

use std::sync::Arc;
use std::time::Duration;

use forebay_config::{Changes, Config};
use forebay_ipsec::IvRange;
use forebay_sas::SasFile;
use forebay_worker::installed::takes_ivs;
use forebay_worker::{Handle, Worker};

use crate::lifetimes::{self, Lives};
use crate::numbers::{self, Ivs, Reserved, SequenceReserver};
use crate::windows::{self, Windows};
use crate::{IvStore, IvStoreError, SequenceId, Used};

/// See the module. Clones share their state.
#[derive(Clone)]
pub struct SaRecords {
    store: IvStore,
    /// The time since the Unix epoch.
    clock: fn() -> Duration,
    reserver: Arc<SequenceReserver>,
    windows: Windows,
}

/// The records with which the new SAs of a file continue.
pub struct Opened {
    ivs: Vec<IvRange>,
    numbers: Reserved,
    lives: Lives,
}

impl Opened {
    /// The IVs of the new SAs that use IVs, in their order.
    pub fn take_ivs(&mut self) -> Vec<IvRange> {
        std::mem::take(&mut self.ivs)
    }
}

/// The numbers that SAs have used and received.
#[derive(Default)]
pub struct Taken {
    numbers: Vec<Used>,
    lives: Lives,
    windows: Vec<SequenceId>,
}

impl SaRecords {
    /// The records of a store, and the keeper of replay windows, which uses the first worker. `block` sequence numbers
    /// are reserved for an SA initially; `clock` returns the time since the Unix epoch.
    pub fn new(
        store: IvStore,
        clock: fn() -> Duration,
        block: u64,
        first: Handle,
    ) -> (SaRecords, windows::Keeper) {
        let reserver = Arc::new(SequenceReserver::new(store.clone(), clock, block));
        let (windows, keeper) = Windows::new(store.clone(), clock, first);
        (SaRecords { store, clock, reserver, windows }, keeper)
    }

    /// The replay windows, for SAs that are not from a file.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// The thread that reserves more numbers for the SAs of a file, to which the first worker sends its events from now on.
    pub fn numbers_keeper(&self, worker: &mut Worker, handle: Handle) -> numbers::Keeper {
        self.reserver.keeper(worker, handle)
    }

    /// Reads all records, for SAs that an IKE daemon will install.
    ///
    /// # Errors
    /// If the records cannot be read, or not be changed so that they are valid while the SAs are in use.
    pub fn open_all(&self) -> Result<(), IvStoreError> {
        self.windows.open_all()
    }

    /// Opens the records of the SAs of a file that are new in `changes`; `now` is the time since the Unix epoch.
    ///
    /// # Errors
    /// If records cannot be read or made; then nothing is open.
    pub fn open(&self, config: &Config, changes: &Changes, now: Duration) -> Result<Opened, IvStoreError> {
        self.windows.open_file(&config.sas)?;
        self.open_new(config, changes, now).inspect_err(|_| self.forget(&config.sas))
    }

    fn open_new(&self, config: &Config, changes: &Changes, now: Duration) -> Result<Opened, IvStoreError> {
        let is_new: Vec<bool> = changes.kept.iter().map(Option::is_none).collect();
        let lives = lifetimes::open(&self.store, &config.sas, |place| is_new[place], now)?;
        let new = config.sas.entries.iter().zip(&is_new);
        let new = new.filter(|(entry, is_new)| **is_new && takes_ivs(entry)).map(|(entry, _)| entry);
        let keys = new.clone().map(|entry| &entry.keys);
        let ranges = self.store.ranges(keys, now.as_nanos() as u64, config.keys.iv_reserve)?;
        let of = |(entry, range)| Ivs::of(entry, range, config.keys.iv_reserve);
        let (ivs, refills) = new.zip(ranges).map(of).unzip();
        let numbers = self.reserver.reserve(&config.sas, &is_new)?.with_ivs(refills);
        Ok(Opened { ivs, numbers, lives })
    }

    /// Forgets the records that were read for SAs of a file that are not installed after all.
    pub fn forget(&self, file: &SasFile) {
        self.windows.forget_file(file);
    }

    /// Lets a worker send messages about windows.
    pub fn attend(&self, worker: &mut Worker) {
        self.windows.attend(worker);
    }

    /// Takes the used and received numbers of SAs that `changes` removes, and lets these SAs use no more.
    pub fn take(&self, worker: &mut Worker, changes: &Changes) -> Taken {
        let going = worker.removed(changes);
        // Packets in flight count as received, so they are finished first.
        worker.finish(&going);
        let windows = self.windows.take_back(worker, &going);
        let numbers = self.reserver.take_back(worker, |place| changes.removed.contains(&place));
        Taken { numbers, windows, lives: Lives::new() }
    }

    /// Takes the used and received numbers of all SAs of a worker that ends.
    pub fn take_all(&self, worker: &mut Worker, file: &SasFile) -> Taken {
        let windows = self.windows.take_back_all(worker);
        Taken { windows, numbers: self.reserver.take_back(worker, |_| true), lives: self.lives(worker, file) }
    }

    /// The ages and counts of the SAs of a file.
    pub fn lives(&self, worker: &mut Worker, file: &SasFile) -> Lives {
        lifetimes::take(worker, file)
    }

    /// Call this in the same command as [`Worker::install`], after it: the SAs of the file continue with the records that were opened; SAs with the
    /// keys of removed ones continue with what was taken from those. Packets that waited for a window that no SA has now are dropped.
    pub fn give(&self, worker: &mut Worker, file: &SasFile, opened: Opened, taken: &Taken) {
        lifetimes::give(worker, &opened.lives);
        self.reserver.give(worker, file, opened.numbers);
        self.windows.give_file(worker, file);
        self.windows.abandon(worker, &taken.windows);
    }

    /// Takes the numbers of all SAs of an engine that has refused the SAs of a file, and removes the SAs.
    pub fn uninstall(&self, worker: &mut Worker) {
        let taken = self.windows.take_back_all(worker);
        self.windows.abandon(worker, &taken);
        worker.uninstall();
    }

    /// Records the ages and counts of the SAs of a file.
    pub fn settle_lives(&self, file: &SasFile, lives: &Lives) {
        lifetimes::settle(&self.store, file, lives, (self.clock)());
    }

    /// Records what was taken and given to no other SA; `file` is the file of the SAs from which it was taken.
    pub fn settle(&self, file: &SasFile, taken: &Taken) {
        self.reserver.settle(&taken.numbers);
        self.settle_lives(file, &taken.lives);
        self.windows.settle();
    }

    /// The same at the end, when no more SAs will be added.
    pub fn end(&self, file: &SasFile, taken: &Taken) {
        self.settle(file, taken);
        self.windows.end();
        if let Err(error) = self.store.end() {
            tracing::warn!(%error, "cannot note how far the records have come; look at space and permissions of `state`");
        }
    }
}
