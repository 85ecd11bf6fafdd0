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

/// Maximum number of sequence numbers that are recorded ahead: 16 million packets per second.
pub const MOST: u64 = 1 << 24;
/// Time in which packets are counted; limits follow from it.
const PERIOD: Duration = Duration::from_millis(1_000);

/// An inbound SA with a replay window.
#[derive(Default)]
pub struct Window {
    /// The SA that has it; none while it is carried over.
    pub place: Option<SessionId>,
    /// All numbers up to this one are recorded.
    pub limit: u64,
    /// All up to this one are recorded on the disk here: more, if another gateway records limits that are nearer.
    pub disk: u64,
    /// The highest number that was certainly received when the limit was recorded.
    pub certain: u64,
    /// Whether limits were lowered without knowledge whether their record was made.
    pub unsettled: bool,
    /// Whether an SA is about to be added that continues with it.
    pub awaited: bool,
    /// The rate of received packets.
    pub rate: Rate,
    /// The received numbers, until there is an SA again.
    pub carried: Option<Received>,
    /// Packets of the previous SA that wait for the limit.
    pub held: Vec<Output>,
}

impl Window {
    /// Lowers the limit of an SA if it is too far ahead. Returns the new limit, zero if it stays, and whether it equals the highest received
    /// number, as after a pause: after a crash no new packet is refused then, and the next packet waits for a record.
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
        // Packets that wait for a limit are not delivered.
        let top = top.min(self.limit).min(self.disk);
        Some((is_quiet, Raised { id, top, limit, disk }))
    }
}

/// Number by which the limit of an SA is ahead that received this many packets in [`PERIOD`].
pub fn near(lately: u64, ahead: Ahead) -> u64 {
    let share = u128::from(lately) * ahead.time.as_nanos() / u128::from(PERIOD.as_nanos());
    u64::try_from(share).unwrap_or(MOST).clamp(ahead.least, MOST)
}

/// The recent rate of packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// The time of a count one or two periods ago, and the packets until then.
    pub before: (std::time::Duration, u64),
    /// The same a period later, which is next.
    pub last: (std::time::Duration, u64),
    /// Number of packets in total.
    pub most: u64,
}

impl Rate {
    /// Packets per period in about the last one, now that the total is `packets`.
    pub fn lately(&mut self, now: std::time::Duration, packets: u64) -> u64 {
        // A request whose record failed repeats its old count.
        self.most = self.most.max(packets);
        let packets = self.most;
        if now < self.last.0 {
            // The clock was set back.
            self.before = (now, self.last.1);
            self.last = (now, packets);
        }
        if now.saturating_sub(self.last.0).as_nanos() >= u128::from(PERIOD.as_nanos()) {
            self.before = std::mem::replace(&mut self.last, (now, packets));
        }
        let (since, count) =
            (now.saturating_sub(self.before.0).as_nanos(), packets.saturating_sub(self.before.1));
        let period = u128::from(PERIOD.as_nanos());
        // A new window has no earlier count.
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
    /// The value of [`Worker::removals`] when the SA was added: an earlier message is about another SA.
    pub since: u64,
}

/// All windows.
#[derive(Default)]
pub struct State {
    /// The windows, by the keys of their SAs.
    pub windows: BTreeMap<SequenceId, Window>,
    /// The windows that no SA has.
    pub loose: BTreeSet<SequenceId>,
    /// The window of each SA.
    pub places: BTreeMap<SessionId, Place>,
}

impl State {
    /// The window of an SA.
    pub fn at(&mut self, session: SessionId) -> Option<(SequenceId, &mut Window)> {
        let id = self.places.get(&session)?.id;
        self.windows.get_mut(&id).map(|window| (id, window))
    }

    /// Whether a window's numbers are recorded up to `limit`, and the window is that of this SA.
    pub fn is_noted(&self, session: SessionId, limit: u64) -> bool {
        let place = self.places.get(&session);
        place.and_then(|place| self.windows.get(&place.id)).is_some_and(|window| window.limit >= limit)
    }
}

/// State that the thread and the others share.
pub struct Notes {
    /// The store of the records.
    pub store: IvStore,
    /// The time since the Unix epoch.
    pub clock: fn() -> std::time::Duration,
    /// The known windows.
    pub state: Mutex<State>,
    /// Held from the decision what to record until that is done, so that an older record never follows a newer one.
    pub writing: Mutex<()>,
}

impl Notes {
    /// The known windows, locked.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to record.
    pub fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records these and makes them durable.
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

    /// Records limits: all of them at the other gateway, here those for the disk.
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

    /// Records the windows that no SA has now; at the `end` also those for which an SA is awaited.
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
            // The record of a window that the engine has lost stays valid; a window that has received nothing gets no record.
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

/// A limit that was recorded, with its SA, and the highest number that the SA had received.
pub struct Raised {
    /// The SA.
    pub id: SequenceId,
    /// The highest number that it had received.
    pub top: u64,
    /// The limit; zero if it stays.
    pub limit: u64,
    /// The limit on the disk here; zero if it stays.
    pub disk: u64,
}

impl Raised {
    /// What to record.
    fn note(&self, limit: u64) -> WindowNote {
        let received = Received { top: limit, certain: self.top, missing: Vec::new() };
        WindowNote { id: self.id, received }
    }
}
