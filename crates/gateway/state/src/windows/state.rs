//! The known state of replay windows, and how it is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_crypto::SessionId;
use forebay_engine::Output;
use forebay_ipsec::Received;
use forebay_planted::{Fault, planted};
use forebay_time::Duration;

use crate::{Ahead, IvStore, IvStoreError, Record, SequenceId, WindowNote};
use forebay_worker::Worker;

/// Numbers that are noted ahead at most: 16 million packets a second.
pub const MOST: u64 = 1 << 24;
/// Time in which packets are counted; limits follow from it.
const PERIOD: Duration = Duration::from_millis(1_000);

/// An inbound SA with a replay window.
#[derive(Default)]
pub struct Window {
    /// Where it is; none while it is carried over.
    pub place: Option<SessionId>,
    /// All numbers up to this one are noted.
    pub limit: u64,
    /// All up to this one are on the disk here: more, where another gateway notes limits that are nearer.
    pub disk: u64,
    /// The highest number that was certainly received when the limit was noted.
    pub certain: u64,
    /// Limits were taken back, and whether the record of that was made is not known.
    pub unsettled: bool,
    /// Whether an SA is about to be added that goes on with it.
    pub awaited: bool,
    /// How many packets it receives.
    pub rate: Rate,
    /// What was received, until there is an SA again.
    pub carried: Option<Received>,
    /// Packets of the SA that was there which wait for the limit.
    pub held: Vec<Output>,
}

impl Window {
    /// Takes the limit of an SA back if it is too far ahead: the new one, zero if it stays, and whether it is as low as it
    /// gets, at what was received. It is after a pause: after a crash no new packet is refused then, and the next packet waits for a note.
    ///
    /// A limit that was lowered stays low even if its record seems to have failed: that record may still be made later.
    pub fn lower(
        &mut self,
        worker: &mut Worker,
        session: SessionId,
        id: SequenceId,
        now: std::time::Duration,
        ahead: Ahead,
    ) -> Option<(bool, Raised)> {
        let sad = worker.engine().sad();
        let (top, packets) = (sad.sequence(session)?, sad.admitted(session));
        drop(sad);
        let lately = self.rate.lately(now, packets);
        let (far, near) = match lately {
            0 => (0, 0),
            _ => (near(lately, Ahead::DISK), near(lately, ahead)),
        };
        let too_far = |limit: u64, far: u64| limit.saturating_sub(top) > 2 * far;
        let (lowers_disk, lowers) = (too_far(self.disk, far), too_far(self.limit, near));
        if lowers_disk {
            self.disk = top + far;
        }
        if lowers {
            (self.limit, self.certain) = (top + near, top);
            worker.note_window(session, self.limit);
        }
        let is_lowest = !too_far(self.limit, 0) && !too_far(self.disk, 0);
        let is_quiet = is_lowest && !lowers && !lowers_disk && !self.unsettled;
        let written = |lowers: bool, limit: u64| if lowers || self.unsettled { limit } else { 0 };
        let (limit, disk) = (written(lowers, self.limit), written(lowers_disk, self.disk));
        // What waits for a limit is not delivered.
        let top = top.min(self.limit).min(self.disk);
        Some((is_quiet, Raised { id, top, limit, disk }))
    }
}

/// How many numbers a limit is ahead by of an SA that received so many packets in [`PERIOD`].
pub fn near(lately: u64, ahead: Ahead) -> u64 {
    let share = u128::from(lately) * ahead.time.as_nanos() / u128::from(PERIOD.as_nanos());
    u64::try_from(share).unwrap_or(MOST).clamp(ahead.least, MOST)
}

/// How many packets came lately.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// When it was looked one or two periods ago, and how many packets had come.
    pub before: (std::time::Duration, u64),
    /// The same a period later, which is next.
    pub last: (std::time::Duration, u64),
    /// How many packets have come in all.
    pub most: u64,
}

impl Rate {
    /// Packets in a period as they came in about the last one, now that there have been so many in all.
    pub fn lately(&mut self, now: std::time::Duration, packets: u64) -> u64 {
        // A request whose record failed says again and again how many there were once.
        self.most = self.most.max(packets);
        let packets = self.most;
        if now < self.last.0 {
            // The clock was put back.
            self.before = (now, self.last.1);
            self.last = (now, packets);
        }
        if now.saturating_sub(self.last.0).as_nanos() >= u128::from(PERIOD.as_nanos()) {
            self.before = std::mem::replace(&mut self.last, (now, packets));
        }
        let (since, count) =
            (now.saturating_sub(self.before.0).as_nanos(), packets.saturating_sub(self.before.1));
        let period = u128::from(PERIOD.as_nanos());
        // Of a new one, nobody has looked before.
        if self.before.0.is_zero() || since <= period {
            return count;
        }
        u64::try_from(u128::from(count) * period / since).unwrap_or(count)
    }
}

/// The window of an SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The window.
    pub id: SequenceId,
    /// What [`Worker::removals`] said when the SA had come: a message of before is about another one.
    pub since: u64,
}

/// All windows.
#[derive(Default)]
pub struct State {
    /// By the keys of their SAs.
    pub windows: BTreeMap<SequenceId, Window>,
    /// Those that no SA has.
    pub loose: BTreeSet<SequenceId>,
    /// Which SA has which.
    pub places: BTreeMap<SessionId, Place>,
}

impl State {
    /// The window of an SA.
    pub fn at(&mut self, session: SessionId) -> Option<(SequenceId, &mut Window)> {
        let id = self.places.get(&session)?.id;
        self.windows.get_mut(&id).map(|window| (id, window))
    }

    /// Whether a window's numbers are noted up to `limit`, and it is that of this SA.
    pub fn is_noted(&self, session: SessionId, limit: u64) -> bool {
        let place = self.places.get(&session);
        place.and_then(|place| self.windows.get(&place.id)).is_some_and(|window| window.limit >= limit)
    }
}

/// What the thread and the others share.
pub struct Notes {
    /// Where windows are noted.
    pub store: IvStore,
    /// The time since the Unix epoch.
    pub clock: fn() -> std::time::Duration,
    /// What is known.
    pub state: Mutex<State>,
    /// Held from the decision what to note until that is done, so that an older note never follows a newer one.
    pub writing: Mutex<()>,
}

impl Notes {
    /// What is known, locked.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to note.
    pub fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes this and makes it durable.
    ///
    /// # Errors
    /// As [`IvStore::put_windows`].
    pub fn put(&self, notes: &[WindowNote]) -> Result<(), IvStoreError> {
        let records: Vec<Record> = notes.iter().map(Record::from).collect();
        let noting = self.store.replica().begin(&records).map_err(IvStoreError::NotNoted)?;
        self.put_here(notes)?;
        noting.wait();
        Ok(())
    }

    /// Notes limits: at the other gateway all of them, here what is to be on the disk.
    ///
    /// # Errors
    /// As [`IvStore::put_windows`].
    pub fn put_raised(&self, raised: &[Raised]) -> Result<(), IvStoreError> {
        let written = |limit: fn(&Raised) -> u64| {
            let raised = raised.iter().filter(move |raised| limit(raised) > 0);
            raised.filter(|_| !planted(Fault::WindowsNotNoted)).map(move |raised| raised.note(limit(raised)))
        };
        let records: Vec<Record> = written(|raised| raised.limit).map(|note| Record::from(&note)).collect();
        let noting = self.store.replica().begin(&records).map_err(IvStoreError::NotNoted)?;
        self.put_here(&written(|raised| raised.disk).collect::<Vec<_>>())?;
        noting.wait();
        Ok(())
    }

    fn put_here(&self, notes: &[WindowNote]) -> Result<(), IvStoreError> {
        let is_used = |id: &SequenceId| {
            self.state().windows.get(id).is_some_and(|window| window.place.is_some() || window.awaited)
        };
        self.store.put_windows(notes, (self.clock)().as_secs(), &is_used)
    }

    /// Notes what no SA has now; of those that an SA is awaited for, too, if this is the `end`.
    pub fn settle(&self, end: bool) {
        let _writing = self.writing();
        let mut gone = Vec::new();
        let mut state = self.state();
        for id in std::mem::take(&mut state.loose) {
            let Some(window) = state.windows.get_mut(&id) else { continue };
            if window.awaited && !end {
                state.loose.insert(id);
                continue;
            }
            // Of one that the engine has lost, what is noted holds; of one that has received nothing, nothing is noted.
            let received = window.carried.take().filter(|received| received.top > 0);
            gone.extend(received.map(|received| WindowNote { id, received }));
            state.windows.remove(&id);
        }
        drop(state);
        if let Err(error) = self.put(&gone) {
            tracing::warn!(%error, "cannot save replay windows; after the next start their SAs reject some new packets; look at space and permissions of `state`");
        }
    }
}

/// A limit that was noted: of which SA, and the highest number that it had received.
pub struct Raised {
    /// Which SA.
    pub id: SequenceId,
    /// The highest number that it had received.
    pub top: u64,
    /// The limit; zero if it stays.
    pub limit: u64,
    /// The limit on the disk here; zero if it stays.
    pub disk: u64,
}

impl Raised {
    /// What is to be noted.
    fn note(&self, limit: u64) -> WindowNote {
        let received = Received { top: limit, certain: self.top, missing: Vec::new() };
        WindowNote { id: self.id, received }
    }
}
