//! Reserves sequence numbers and IVs for the SAs of the file before their use, and logs when they or the lifetime of an SA end.
//!
//! Each outbound SA has a block of numbers that [`IvStore`] has recorded, and the engine uses no others. When half of the block is used, the
//! worker sends an event to a separate thread, which reserves the next block, so that no packet
//! waits for a disk. If that fails, the thread tries again; an SA whose block is used up meanwhile sends nothing. Each
//! gateway has one reserver. IVs are refilled in the same way, without a command to the worker:
//! the SA takes the next range itself ([`IvRefill`]).

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{Event, EventKind, IvRange, IvRefill};
use forebay_planted::{Fault, planted};
use forebay_time::{Duration, Time};

use crate::recorder::Recorder;
use crate::{Block, IVS_PER_SA, IvStore, IvStoreError, KeyId, SequenceId, Used, Wanted};
use forebay_sas::{SaEntry, SasFile};
use forebay_worker::{Handle, Worker};

/// Minimum numbers of a block, which are lost when the process is killed: the 4096th part of all without ESN.
pub const BLOCK: u64 = 1 << 20;
/// Maximum numbers of a block, for an SA that uses its blocks up fast. Larger blocks would come near the 2^31 from which
/// on a peer that counts in 32 bits mistakes higher numbers for lower ones (RFC 4303 A2).
const BLOCK_MAX: u64 = 1 << 26;
/// Time that a block should last: longer than a write to a disk.
const LASTS: Duration = Duration::from_millis(4_000);
/// Time between two attempts to reserve.
const TRY_AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// An SA of the file.
#[derive(Clone, Debug)]
struct Looked {
    name: String,
    /// The sequence numbers of an outbound SA.
    numbers: Option<Numbers>,
    /// The IVs of an outbound SA that uses IVs.
    ivs: Option<Ivs>,
}

/// The IVs of an outbound SA.
#[derive(Clone, Debug)]
pub struct Ivs {
    key: KeyId,
    refill: IvRefill,
    /// Size of the next reservation.
    count: u64,
    /// The time of the last reservation, since the Unix epoch, and the first IV after it.
    reserved: std::time::Duration,
    end: u64,
}

impl Ivs {
    /// The IVs of `entry`, which begins with `range` and gets `count` more when half of it is used.
    pub fn of(entry: &SaEntry, range: IvRange, count: u64) -> (IvRange, Ivs) {
        let refill = IvRefill::default();
        let key = KeyId::of(&entry.keys);
        let range = range.refilled_by(refill.clone());
        (range, Ivs { key, refill, count, reserved: std::time::Duration::ZERO, end: 0 })
    }
}

/// The numbers of an outbound SA.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    id: SequenceId,
    /// The last possible number.
    end: u64,
    /// The last reserved number.
    last: u64,
    /// Size of the next block, and its maximum.
    block: u64,
    most: u64,
    /// When the last block was granted.
    granted: Time,
}

type Sas = Arc<Mutex<HashMap<SessionId, Looked>>>;

/// See the module.
pub struct SequenceReserver {
    store: IvStore,
    /// The time since the Unix epoch.
    clock: fn() -> std::time::Duration,
    sas: Sas,
    /// Numbers of the first block of an SA.
    block: u64,
}

/// Numbers for the new outbound SAs of a file at one worker.
#[derive(Default)]
pub struct Reserved {
    /// By place in the file.
    numbers: Vec<Option<(Numbers, Block)>>,
    /// The IVs of new SAs, by their keys.
    ivs: HashMap<KeyId, Ivs>,
}

impl Reserved {
    /// The reserved numbers, and the refills of the IVs of the same SAs.
    pub fn with_ivs(mut self, ivs: Vec<Ivs>) -> Reserved {
        self.ivs = ivs.into_iter().map(|ivs| (ivs.key, ivs)).collect();
        self
    }
}

impl SequenceReserver {
    /// Records numbers in `store`, initially `block` for an SA; `clock` returns the time since the Unix epoch.
    pub fn new(store: IvStore, clock: fn() -> std::time::Duration, block: u64) -> SequenceReserver {
        SequenceReserver { store, clock, sas: Sas::default(), block }
    }

    /// The thread that reserves more, to which the worker sends its events from now on.
    pub fn keeper(&self, worker: &mut Worker, handle: Handle) -> Keeper {
        let (sender, events) = mpsc::channel();
        worker.send_events(sender);
        Keeper {
            store: self.store.clone(),
            clock: self.clock,
            sas: self.sas.clone(),
            handle,
            wanted: Vec::new(),
            ivs_wanted: Vec::new(),
            events,
        }
    }

    /// Reserves numbers for the outbound SAs of `file` that are new at this worker; `new` has a flag for each place.
    ///
    /// # Errors
    /// If they cannot be recorded.
    pub fn reserve(&self, file: &SasFile, new: &[bool]) -> Result<Reserved, IvStoreError> {
        let new = file.entries.iter().zip(new).map(|(entry, new)| {
            if !new || entry.direction == Direction::Open {
                return None;
            }
            let end = if entry.config.esn { u64::MAX } else { u32::MAX.into() };
            let id = SequenceId::of(&entry.keys, entry.config.spi);
            let most = self.store.block_max(end).unwrap_or(BLOCK_MAX);
            Some(Numbers { id, end, last: 0, block: self.block.min(most), most, granted: Time::ZERO })
        });
        let new: Vec<_> = new.collect();
        let wanted: Vec<Wanted> = new.iter().flatten().map(Numbers::wanted).collect();
        let mut blocks = self.store.reserve_sequences(&wanted)?.into_iter();
        let mut with_block = |mut numbers: Numbers| {
            let block = blocks.next()?;
            numbers.last = block.last;
            Some((numbers, block))
        };
        let numbers = new.into_iter().map(|numbers| numbers.and_then(&mut with_block)).collect();
        Ok(Reserved { numbers, ivs: HashMap::new() })
    }

    /// Call this in the same command as [`Worker::install`], after it: the file's SAs get their numbers.
    pub fn give(&self, worker: &mut Worker, file: &SasFile, mut reserved: Reserved) {
        let sessions = worker.sessions().to_vec();
        let now = worker.engine().clock().now();
        let mut sas = lock(&self.sas);
        let before = std::mem::take(&mut *sas);
        for ((session, entry), numbers) in sessions.into_iter().zip(&file.entries).zip(reserved.numbers) {
            let is_new = numbers.is_some();
            let numbers = match numbers {
                Some((mut numbers, block)) => {
                    numbers.granted = now;
                    if !planted(Fault::SequencesRestart) {
                        worker.engine().continue_after(session, block.after);
                    }
                    let more = if planted(Fault::GrantedTooMuch) { 64 } else { 0 };
                    worker.engine().grant(session, block.last + more);
                    if block.after >= block.last {
                        tracing::error!(
                            sa = entry.config.name,
                            "no sequence numbers are left; the SA sends nothing"
                        );
                    }
                    Some(numbers)
                }
                None => before.get(&session).and_then(|looked| looked.numbers),
            };
            let ivs = match is_new {
                true => reserved.ivs.remove(&KeyId::of(&entry.keys)),
                false => before.get(&session).and_then(|looked| looked.ivs.clone()),
            };
            sas.insert(session, Looked { name: entry.config.name.clone(), numbers, ivs });
        }
    }

    /// Takes the unused numbers of the SAs that are removed, and lets them use no more; `go` has a flag for each place.
    pub fn take_back(&self, worker: &mut Worker, go: impl Fn(usize) -> bool) -> Vec<Used> {
        let sas = lock(&self.sas);
        let going: Vec<SessionId> = worker
            .sessions()
            .iter()
            .copied()
            .enumerate()
            .filter(|(place, _)| go(*place))
            .map(|(_, session)| session)
            .collect();
        let mut used = Vec::new();
        for session in going {
            let Some(Numbers { id, last, .. }) = sas.get(&session).and_then(|looked| looked.numbers) else {
                continue;
            };
            let Some(sent) = worker.engine().sad().sequence(session) else { continue };
            worker.engine().grant(session, sent);
            used.push(Used { id, last, sent });
        }
        used
    }

    /// Records the unused numbers that were taken.
    pub fn settle(&self, used: &[Used]) {
        if let Err(error) = self.store.settle_sequences(used) {
            tracing::warn!(%error, "cannot release unused sequence numbers; they are lost, which does no harm: look at space and permissions of `state`");
        }
    }
}

impl Numbers {
    fn wanted(&self) -> Wanted {
        Wanted { id: self.id, count: self.block, end: self.end }
    }
}

/// Reserves more for SAs that ask for it.
pub struct Keeper {
    store: IvStore,
    clock: fn() -> std::time::Duration,
    sas: Sas,
    handle: Handle,
    /// SAs that want numbers.
    wanted: Vec<SessionId>,
    /// SAs that want IVs.
    ivs_wanted: Vec<SessionId>,
    events: mpsc::Receiver<Event>,
}

impl Recorder for Keeper {
    type Message = Event;
    const THREAD: &'static str = "forebay-numbers";
    const AGAIN: std::time::Duration = TRY_AGAIN;

    fn messages(&self) -> &mpsc::Receiver<Event> {
        &self.events
    }

    fn has_work(&self) -> bool {
        !self.wanted.is_empty() || !self.ivs_wanted.is_empty()
    }

    fn take(&mut self, Event { session, kind }: Event) {
        let name = lock(&self.sas).get(&session).map(|looked| looked.name.clone());
        // An SA that has just been removed.
        let Some(sa) = name else { return };
        match kind {
            EventKind::SequenceWanted => self.wanted.push(session),
            EventKind::IvWanted => {
                tracing::debug!(sa, "half of the SA's reserved IVs are used");
                if !planted(Fault::IvsNotRefilled) {
                    self.ivs_wanted.push(session);
                }
            }
            EventKind::IvEnd => {
                tracing::error!(sa, "reserved IVs exhausted; the SA sends nothing until more are reserved")
            }
            EventKind::Soft => tracing::warn!(
                sa,
                "SA soft lifetime expired; rekey required: `forebay tunnel roll`, unless an IKE daemon does it"
            ),
            EventKind::Hard => tracing::error!(
                sa,
                "SA hard lifetime expired; traffic stops until it has new keys (`forebay tunnel roll`, or the IKE daemon)"
            ),
            EventKind::SequenceLow => {
                tracing::warn!(
                    sa,
                    "one eighth of the SA's sequence numbers is left; rekey required: `forebay tunnel roll`, unless an IKE daemon does it"
                )
            }
            EventKind::SequenceEnd => {
                tracing::error!(
                    sa,
                    "SA sequence numbers exhausted; the SA sends nothing until it has new keys (`forebay tunnel roll`, or the IKE daemon)"
                )
            }
            _ => {}
        }
    }

    fn work(&mut self) {
        if !self.wanted.is_empty() {
            self.reserve();
        }
        if !self.ivs_wanted.is_empty() {
            self.refill();
        }
    }
}

impl Keeper {
    /// Reserves another block for each SA that wants one, and lets the engine use it.
    fn reserve(&mut self) {
        let sas = lock(&self.sas);
        let numbers = self.wanted.iter().filter_map(|session| Some((*session, sas.get(session)?.numbers?)));
        // The end of all numbers has an event of its own.
        let wanting: Vec<_> = numbers.filter(|(_, numbers)| numbers.last < numbers.end).collect();
        drop(sas);
        let wanted: Vec<Wanted> = wanting.iter().map(|(_, numbers)| numbers.wanted()).collect();
        let blocks = match self.store.reserve_sequences(&wanted) {
            Ok(blocks) => blocks,
            Err(error) => {
                if planted(Fault::NumbersNotRetried) {
                    self.wanted.clear();
                }
                tracing::error!(%error, "cannot reserve sequence numbers; each SA stops when its numbers are exhausted");
                return;
            }
        };
        self.wanted.clear();
        let blocks: Vec<_> = wanting.into_iter().zip(blocks).collect();
        let sas = self.sas.clone();
        self.handle.ask(move |worker| grant(worker, &sas, &blocks));
    }

    /// Reserves more IVs for each SA that wants some, and hands them over.
    fn refill(&mut self) {
        let now = (self.clock)();
        let mut sas = lock(&self.sas);
        let mut counts: BTreeMap<KeyId, u64> = BTreeMap::new();
        for session in &self.ivs_wanted {
            let Some(ivs) = sas.get_mut(session).and_then(|looked| looked.ivs.as_mut()) else { continue };
            if now.saturating_sub(ivs.reserved).as_nanos() < u128::from(LASTS.as_nanos()) {
                ivs.count = ivs.count.saturating_mul(2).min(ivs.count.max(IVS_PER_SA));
            }
            counts.insert(ivs.key, ivs.count);
        }
        drop(sas);
        let reserved = match self.store.reserve(&counts, now.as_nanos() as u64) {
            Ok(reserved) => reserved,
            Err(error) => {
                tracing::error!(%error, "cannot reserve IVs; each SA stops when its IVs are exhausted");
                return;
            }
        };
        let mut sas = lock(&self.sas);
        for session in std::mem::take(&mut self.ivs_wanted) {
            let Some(ivs) = sas.get_mut(&session).and_then(|looked| looked.ivs.as_mut()) else { continue };
            // Another SA may have the session number by now; no two SAs of a file have one key.
            let Some(range) = reserved.get(&ivs.key) else { continue };
            (ivs.reserved, ivs.end) = (now, range.end);
            ivs.refill.give(IvRange::share(range.start, range.end, 0, 1));
        }
    }
}

fn grant(worker: &mut Worker, sas: &Sas, blocks: &[((SessionId, Numbers), Block)]) {
    let now = worker.engine().clock().now();
    let mut sas = lock(sas);
    for ((session, before), block) in blocks {
        let Some(numbers) = sas.get_mut(session).and_then(|looked| looked.numbers.as_mut()) else { continue };
        // Another SA has the session number by now.
        if numbers.id != before.id {
            continue;
        }
        let lasted = now.since(std::mem::replace(&mut numbers.granted, now));
        numbers.last = block.last;
        if lasted < LASTS {
            numbers.block = (numbers.block * 2).min(numbers.most);
        }
        // In a pair, the numbers after the granted ones may belong to the other gateway.
        if block.after > before.last && block.after < block.last {
            worker.engine().continue_after(*session, block.after);
        }
        worker.engine().grant(*session, block.last);
    }
}

fn lock(sas: &Sas) -> MutexGuard<'_, HashMap<SessionId, Looked>> {
    sas.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
