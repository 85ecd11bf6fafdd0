//! Looks after the replay windows of inbound SAs: what may have been received is noted before it is delivered.
//!
//! Of each window [`WindowStore`] has noted that all numbers up to a limit count as received. Half-way to the limit the
//! worker sends word here, to a thread of its own, which notes a higher limit and lets the engine use it, so that packets
//! seldom wait for a disk. A packet that comes with a number beyond the limit all the same (the first packet of an SA,
//! one behind a gap, a sudden burst) waits at the worker until the limit is raised. The limit is about as far ahead as
//! the SA has received packets in its last second, and comes back when it receives fewer: after a crash all numbers up to
//! it are refused, and so at most about a second's packets are.
//!
//! After a clean stop, and when a reload or an update replaces an SA, the window is carried over as it is, with its gaps.
//!
//! The state has one lock, which is never held while the disk is written, because workers take it between packets.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_crypto::{Direction, SessionId};
use forebay_engine::Output;
use forebay_ipsec::Received;
use forebay_time::Duration;

use super::worker::{Handle, Worker};
use crate::iv_store::{IvStoreError, SequenceId, WindowNote, WindowStore};
use crate::privileges;
use crate::sas::{SaEntry, SasFile};

/// Numbers that are noted ahead at least: so many are refused after a crash where packets are rare.
const LEAST: u64 = 16;
/// Numbers that are noted ahead at most: 16 million packets a second.
const MOST: u64 = 1 << 24;
/// What limits go by: packets of so long a time are noted ahead.
const PERIOD: Duration = Duration::from_millis(1_000);
/// What nobody waits for is noted with what else comes until so long nothing has, or so much has come.
const GATHER: std::time::Duration = std::time::Duration::from_millis(5);
const GATHERED: usize = 64;
/// Between two looks whether limits are too far ahead, and between two tries to note.
const LOOK: std::time::Duration = std::time::Duration::from_secs(1);

/// What the thread is told.
pub enum Word {
    /// A window is half-way to its limit, or beyond it.
    Wanted {
        /// The worker.
        worker: usize,
        /// The SA there.
        session: SessionId,
        /// The highest number received.
        top: u64,
        /// Packets received.
        packets: u64,
    },
    /// SAs were removed: what was carried over of them is to be noted.
    Removed,
}

/// An inbound SA with a replay window.
#[derive(Default)]
struct Window {
    /// Where it is; none while it is carried over.
    place: Option<(usize, SessionId)>,
    /// All numbers up to this one are noted.
    limit: u64,
    /// The highest number that was certainly received when the limit was noted.
    certain: u64,
    /// Whether an SA is about to be added that goes on with it.
    awaited: bool,
    rate: Rate,
    /// What was received, until there is an SA again.
    carried: Option<Received>,
    /// Packets of the SA that was there which wait for the limit, and their worker.
    held: (usize, Vec<Output>),
}

impl Window {
    /// Takes the limit of an SA back if it is too far ahead: the new one, zero if it stays, and whether it is as low as it
    /// gets.
    fn lower(
        &mut self,
        worker: &mut Worker,
        session: SessionId,
        id: SequenceId,
        now: std::time::Duration,
    ) -> Option<(bool, Raised)> {
        let sad = worker.engine().sad();
        let (top, packets) = (sad.sequence(session)?, sad.admitted(session));
        let lately = self.rate.lately(now, packets).clamp(LEAST, MOST);
        let ahead = self.limit.saturating_sub(top);
        if ahead <= 2 * lately {
            return Some((ahead <= 2 * LEAST, Raised { id, top, limit: 0 }));
        }
        let limit = top + lately;
        worker.note_window(session, limit);
        Some((false, Raised { id, top, limit }))
    }
}

/// How many packets came lately.
#[derive(Clone, Copy, Default)]
struct Rate {
    /// When, and how many had come: about a period ago, and at the last look.
    before: (std::time::Duration, u64),
    last: (std::time::Duration, u64),
}

impl Rate {
    /// Packets in about the last period, now that there have been so many in all.
    fn lately(&mut self, now: std::time::Duration, packets: u64) -> u64 {
        if now.saturating_sub(self.before.0).as_nanos() >= u128::from(PERIOD.as_nanos()) {
            self.before = self.last;
        }
        self.last = (now, packets);
        packets.saturating_sub(self.before.1)
    }
}

#[derive(Default)]
struct State {
    windows: HashMap<SequenceId, Window>,
    /// Those that no SA has.
    loose: HashSet<SequenceId>,
    places: HashMap<(usize, SessionId), SequenceId>,
}

impl State {
    fn at(&mut self, worker: usize, session: SessionId) -> Option<(SequenceId, &mut Window)> {
        let id = *self.places.get(&(worker, session))?;
        self.windows.get_mut(&id).map(|window| (id, window))
    }

    /// Whether a window's numbers are noted up to `limit`, and it is that of this SA.
    fn is_noted(&self, worker: usize, session: SessionId, limit: u64) -> bool {
        let id = self.places.get(&(worker, session));
        id.and_then(|id| self.windows.get(id)).is_some_and(|window| window.limit >= limit)
    }
}

/// See the module. A copy is the same one.
#[derive(Clone)]
pub struct Windows {
    notes: Arc<Notes>,
    thread: mpsc::Sender<Word>,
}

impl Windows {
    /// Starts the thread, which ends when the last copy of this is gone. `clock` tells the time since the Unix epoch.
    ///
    /// # Errors
    /// If there is no thread left.
    pub fn start(
        store: WindowStore,
        clock: fn() -> std::time::Duration,
        workers: Vec<Handle>,
    ) -> std::io::Result<Windows> {
        let (thread, words) = mpsc::channel();
        let notes = Arc::new(Notes { store, clock, state: Mutex::default(), writing: Mutex::default() });
        let keeper = Keeper {
            notes: notes.clone(),
            workers,
            wanted: HashMap::new(),
            urgent: false,
            ahead: HashSet::new(),
            looked: clock(),
            removed: false,
        };
        std::thread::Builder::new().name("forebay-windows".to_owned()).spawn(move || {
            privileges::keep_files();
            keeper.run(&words);
        })?;
        Ok(Windows { notes, thread })
    }

    /// Lets a worker send word here of its windows.
    pub fn attend(&self, worker: &mut Worker) {
        worker.send_windows(self.thread.clone());
    }

    /// Takes up what is noted of the inbound SAs of a file, before they are installed.
    ///
    /// # Errors
    /// If it cannot be read, or not be changed so that it holds while the SAs are in use.
    pub fn open_file(&self, file: &SasFile) -> Result<(), IvStoreError> {
        let ids: Vec<SequenceId> = file.entries.iter().filter_map(inbound_id).collect();
        self.open(&ids)
    }

    /// Takes up what is noted of these SAs, which [`Windows::give`] is to give to SAs of the engine.
    ///
    /// # Errors
    /// As [`Windows::open_file`].
    pub fn open(&self, ids: &[SequenceId]) -> Result<(), IvStoreError> {
        let _writing = self.notes.writing();
        let mut new = Vec::new();
        let mut state = self.state();
        for &id in ids {
            match state.windows.get_mut(&id) {
                Some(window) => window.awaited = true,
                None => new.push(id),
            }
        }
        drop(state);
        if new.is_empty() {
            return Ok(());
        }
        // Better no SA than one whose packets are all held.
        self.notes.store.prepare()?;
        self.begin(self.notes.store.of(&new)?)?;
        let mut state = self.state();
        for id in new {
            state.windows.entry(id).or_default().awaited = true;
        }
        Ok(())
    }

    /// Takes up all that is noted, for SAs that are not known yet.
    ///
    /// # Errors
    /// As [`Windows::open_file`].
    pub fn open_all(&self) -> Result<(), IvStoreError> {
        let _writing = self.notes.writing();
        self.notes.store.prepare()?;
        self.begin(self.notes.store.all()?)
    }

    fn begin(&self, notes: Vec<WindowNote>) -> Result<(), IvStoreError> {
        // Gaps are filled in use, so what is noted must not have any.
        let full = notes.iter().filter(|note| !note.received.missing.is_empty()).map(|note| WindowNote {
            id: note.id,
            received: Received { missing: Vec::new(), ..note.received.clone() },
        });
        self.notes.put(&full.collect::<Vec<_>>())?;
        let mut state = self.state();
        for WindowNote { id, received } in notes {
            let (limit, certain) = (received.top, received.certain);
            let window = Window { limit, certain, carried: Some(received), ..Window::default() };
            state.windows.insert(id, window);
            state.loose.insert(id);
        }
        Ok(())
    }

    /// What belongs into the same order as [`Worker::install`], behind it: the file's inbound SAs continue with what was
    /// received under their keys.
    pub fn give_file(&self, worker: &mut Worker, file: &SasFile) {
        let sessions = worker.sessions().to_vec();
        for (session, entry) in sessions.into_iter().zip(&file.entries) {
            if let Some(id) = inbound_id(entry) {
                self.give(worker, session, id, 0);
            }
        }
    }

    /// Lets a new inbound SA of this worker continue with what was received under its keys, and at least behind
    /// `received`. Does nothing for one that it has already, is another worker's, or has no window.
    pub fn give(&self, worker: &mut Worker, session: SessionId, id: SequenceId, received: u64) {
        let at = (worker.share().place(), session);
        let mut state = self.state();
        if state.places.get(&at) == Some(&id) {
            state.windows.entry(id).or_default().awaited = false;
            return;
        }
        if worker.engine().sad().received(session).is_none() {
            return;
        }
        state.loose.remove(&id);
        let window = state.windows.entry(id).or_default();
        let known = window.carried.take().unwrap_or_else(|| Received {
            top: window.limit,
            certain: window.certain,
            missing: Vec::new(),
        });
        let continues = if known.top < received { Received::up_to(received) } else { known };
        let limit = window.limit;
        let held = std::mem::take(&mut window.held);
        let packets = worker.engine().sad().admitted(session);
        let rate =
            Rate { before: (std::time::Duration::ZERO, packets), last: (std::time::Duration::ZERO, packets) };
        (window.rate, window.awaited) = (rate, false);
        if let Some(before) = window.place.replace(at)
            && state.places.get(&before) == Some(&id)
        {
            state.places.remove(&before);
        }
        state.places.insert(at, id);
        drop(state);
        worker.engine().restore_window(session, &continues);
        worker.note_window(session, limit);
        worker.put_held(session, held.1);
    }

    /// Takes what SAs of a worker have received, to be carried over to others with their keys, or to be noted by
    /// [`Windows::settle`]; which keys they have. What these SAs receive from now on is not noted: they have to be
    /// removed at once.
    pub fn take_back(&self, worker: &mut Worker, sessions: &[SessionId]) -> Vec<SequenceId> {
        let place = worker.share().place();
        let mut state = self.state();
        let mut taken = Vec::new();
        for &session in sessions {
            let Some(id) = state.places.remove(&(place, session)) else { continue };
            let Some(window) = state.windows.get_mut(&id) else { continue };
            window.place = None;
            window.carried = worker.engine().sad().received(session);
            window.held = (place, worker.take_held(session));
            state.loose.insert(id);
            taken.push(id);
        }
        taken
    }

    /// The same for all SAs of a worker.
    pub fn take_back_all(&self, worker: &mut Worker) -> Vec<SequenceId> {
        let place = worker.share().place();
        let sessions = |state: &State| {
            let own = state.places.keys().filter(|(worker, _)| *worker == place);
            own.map(|(_, session)| *session).collect::<Vec<_>>()
        };
        let sessions = sessions(&self.state());
        self.take_back(worker, &sessions)
    }

    /// Drops the packets of a worker's SAs that were taken back and given to no other SA.
    pub fn abandon(&self, worker: &mut Worker, taken: &[SequenceId]) {
        let place = worker.share().place();
        let mut held = Vec::new();
        let mut state = self.state();
        for id in taken {
            if let Some(window) = state.windows.get_mut(id)
                && window.place.is_none()
                && window.held.0 == place
            {
                held.append(&mut window.held.1);
            }
        }
        drop(state);
        worker.drop_held(held);
    }

    /// Notes what was taken back and not given to another SA.
    pub fn settle(&self) {
        self.notes.settle(false);
    }

    /// The same when no more SAs will come.
    pub fn end(&self) {
        self.notes.settle(true);
    }

    /// Has the thread do that.
    pub fn settle_later(&self) {
        let _ = self.thread.send(Word::Removed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.notes.state()
    }
}

/// The name of an inbound SA that has a replay window.
fn inbound_id(entry: &SaEntry) -> Option<SequenceId> {
    let is_inbound = entry.direction == Direction::Open && entry.config.replay_window > 0;
    is_inbound.then(|| SequenceId::of(&entry.keys, entry.config.spi))
}

/// What the thread and the others share.
struct Notes {
    store: WindowStore,
    /// The time since the Unix epoch.
    clock: fn() -> std::time::Duration,
    state: Mutex<State>,
    /// Held from the decision what to note until that is done, so that an older note never follows a newer one.
    writing: Mutex<()>,
}

impl Notes {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, notes: &[WindowNote]) -> Result<(), IvStoreError> {
        let is_used = |id: &SequenceId| {
            self.state().windows.get(id).is_some_and(|window| window.place.is_some() || window.awaited)
        };
        self.store.put(notes, (self.clock)().as_secs(), &is_used)
    }

    /// Notes what no SA has now; of those that an SA is awaited for, too, if this is the `end`.
    fn settle(&self, end: bool) {
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
            tracing::warn!(%error, "replay windows were not saved: their SAs refuse some new packets after the next start");
        }
    }
}

/// A limit that was noted: of which SA, and the highest number that it had received.
struct Raised {
    id: SequenceId,
    top: u64,
    limit: u64,
}

impl Raised {
    fn note(&self) -> WindowNote {
        let received = Received { top: self.limit, certain: self.top, missing: Vec::new() };
        WindowNote { id: self.id, received }
    }
}

/// The thread.
struct Keeper {
    notes: Arc<Notes>,
    workers: Vec<Handle>,
    /// Windows whose limits are to be raised: the highest number, and how many packets have come.
    wanted: HashMap<SequenceId, (u64, u64)>,
    /// Whether a packet waits for one of them.
    urgent: bool,
    /// Windows whose limits may be too far ahead.
    ahead: HashSet<SequenceId>,
    /// When they were looked at.
    looked: std::time::Duration,
    removed: bool,
}

impl Keeper {
    fn run(mut self, words: &mpsc::Receiver<Word>) {
        loop {
            let word = match self.wanted.is_empty() && self.ahead.is_empty() {
                true => words.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => words.recv_timeout(LOOK),
            };
            match word {
                Ok(word) => self.gather(word, words),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if std::mem::take(&mut self.removed) {
                self.notes.settle(false);
            }
            if !self.wanted.is_empty() {
                self.raise();
            }
            let now = (self.notes.clock)();
            // A clock that was put back does not keep limits where they are.
            if now < self.looked || now - self.looked >= LOOK {
                self.looked = now;
                self.lower(now);
            }
        }
    }

    /// Takes this word and those that come with it. Nobody waits for most of them, and one note is as dear as many.
    fn gather(&mut self, first: Word, words: &mpsc::Receiver<Word>) {
        self.take(first);
        while !self.urgent && self.wanted.len() < GATHERED {
            let Ok(word) = words.recv_timeout(GATHER) else { break };
            self.take(word);
        }
        while let Ok(word) = words.try_recv() {
            self.take(word);
        }
    }

    fn take(&mut self, word: Word) {
        let Word::Wanted { worker, session, top, packets } = word else {
            self.removed = true;
            return;
        };
        let state = self.notes.state();
        // One that has just been removed.
        let Some(id) = state.places.get(&(worker, session)).copied() else { return };
        let Some(window) = state.windows.get(&id) else { return };
        self.urgent |= top > window.limit;
        let wanted = self.wanted.entry(id).or_default();
        *wanted = (wanted.0.max(top), packets);
    }

    /// Raises the limits that are wanted, and lets the engines use them.
    fn raise(&mut self) {
        self.urgent = false;
        let notes = self.notes.clone();
        let _writing = notes.writing();
        let now = (notes.clock)();
        let mut state = notes.state();
        let raised = self.wanted.iter().filter_map(|(&id, &(top, packets))| {
            let window = state.windows.get_mut(&id)?;
            let lately = window.rate.lately(now, packets).clamp(LEAST, MOST);
            Some(Raised { id, top, limit: top.saturating_add(lately).max(window.limit) })
        });
        let raised: Vec<Raised> = raised.collect();
        drop(state);
        if let Err(error) = notes.put(&raised.iter().map(Raised::note).collect::<Vec<_>>()) {
            tracing::error!(%error, "received sequence numbers cannot be noted: new packets wait, and are dropped when too many do");
            return;
        }
        self.wanted.clear();
        self.ahead.extend(raised.iter().map(|raised| raised.id));
        let mut by_worker: BTreeMap<usize, Vec<(SessionId, u64)>> = BTreeMap::new();
        let mut state = notes.state();
        for Raised { id, top, limit } in raised {
            let Some(window) = state.windows.get_mut(&id) else { continue };
            (window.limit, window.certain) = (limit, top);
            // Another SA may have the keys by now, elsewhere.
            let Some((worker, session)) = window.place else { continue };
            by_worker.entry(worker).or_default().push((session, limit));
        }
        drop(state);
        for (worker, sessions) in by_worker {
            let (Some(handle), notes) = (self.workers.get(worker), notes.clone()) else { continue };
            drop(handle.post(move |at| {
                for (session, limit) in sessions {
                    // Or the SA is gone by now.
                    let is_noted = notes.state().is_noted(worker, session, limit);
                    if is_noted {
                        at.note_window(session, limit);
                    }
                }
            }));
        }
    }

    /// Takes limits back that are further ahead than packets have come lately: after a crash so many would be refused.
    fn lower(&mut self, now: std::time::Duration) {
        let notes = self.notes.clone();
        let _writing = notes.writing();
        let mut by_worker: BTreeMap<usize, Vec<(SequenceId, SessionId)>> = BTreeMap::new();
        let state = notes.state();
        self.ahead.retain(|id| {
            let place = state.windows.get(id).and_then(|window| window.place);
            place.is_some_and(|(worker, session)| {
                by_worker.entry(worker).or_default().push((*id, session));
                true
            })
        });
        drop(state);
        let mut lowered = Vec::new();
        for (worker, sessions) in by_worker {
            let (Some(handle), notes) = (self.workers.get(worker), notes.clone()) else { continue };
            let looked = handle.ask(move |at| {
                let mut state = notes.state();
                let look = |(id, session): (SequenceId, SessionId)| {
                    let (found, window) = state.at(worker, session)?;
                    (found == id).then(|| window.lower(at, session, id, now)).flatten()
                };
                sessions.into_iter().filter_map(look).collect::<Vec<_>>()
            });
            for (is_quiet, raised) in looked.unwrap_or_default() {
                if is_quiet {
                    self.ahead.remove(&raised.id);
                } else {
                    lowered.push(raised);
                }
            }
        }
        lowered.retain(|raised| raised.limit > 0);
        if let Err(error) = notes.put(&lowered.iter().map(Raised::note).collect::<Vec<_>>()) {
            tracing::warn!(%error, "received sequence numbers were not noted anew");
            return;
        }
        let mut state = notes.state();
        for Raised { id, top, limit } in lowered {
            if let Some(window) = state.windows.get_mut(&id) {
                (window.limit, window.certain) = (limit, top);
            }
        }
    }
}

#[cfg(test)]
mod tests;
