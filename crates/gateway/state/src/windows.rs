//! Records the replay windows of inbound SAs durably: a sequence number is recorded before its packet is delivered.
//!
//! For each window [`IvStore`] has recorded a limit up to which all numbers count as received. Half-way to the limit
//! the worker sends a message to the recording thread, which records a higher limit and lets the engine use it, so that
//! packets seldom wait for a disk. A packet with a number beyond the limit (the first packet of an SA, one behind a gap, a
//! sudden burst) waits at the worker until the limit is raised. The limit is ahead by about the number of packets that the
//! SA received in its last second, and is lowered when the rate falls: after a crash all numbers up to it are refused, and
//! thus at most about a second's packets.
//!
//! After a clean stop or an end by an error, and when a reload or an update replaces an SA, the window is carried over
//! exactly, with its gaps.
//!
//! The state has one lock, which is never held while the disk is written, because workers take it between packets.

mod keeper;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard};

use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::Received;
use forebay_planted::{Fault, planted};

pub use self::keeper::Keeper;
pub use self::state::Rate;
use self::state::{Notes, Place, State, Window};
use crate::{IvStore, IvStoreError, SequenceId, WindowNote};
use forebay_sas::{SaEntry, SasFile};
use forebay_worker::Word;
use forebay_worker::{Handle, Worker};

/// See the module. Clones share their state.
#[derive(Clone)]
pub struct Windows {
    notes: Arc<Notes>,
    thread: mpsc::Sender<Word>,
}

impl Windows {
    /// The windows, and the thread that records them. `clock` returns the time since the Unix epoch.
    pub fn new(store: IvStore, clock: fn() -> std::time::Duration, worker: Handle) -> (Windows, Keeper) {
        let (thread, words) = mpsc::channel();
        let notes = Arc::new(Notes { store, clock, state: Mutex::default(), writing: Mutex::default() });
        let keeper = Keeper {
            notes: notes.clone(),
            worker,
            wanted: BTreeMap::new(),
            urgent: false,
            ahead: BTreeSet::new(),
            looked: clock(),
            removed: false,
            epoch: 0,
            words,
        };
        (Windows { notes, thread }, keeper)
    }

    /// Lets the workers send messages about windows, by a command to one of them.
    pub fn attend(&self, worker: &mut Worker) {
        worker.send_windows(self.thread.clone());
    }

    /// Reads the records of a file's inbound SAs, before they are installed.
    ///
    /// # Errors
    /// If the records cannot be read, or not be changed so that they are valid while the SAs are in use.
    pub fn open_file(&self, file: &SasFile) -> Result<(), IvStoreError> {
        let ids: Vec<SequenceId> = file.entries.iter().filter_map(inbound_id).collect();
        self.open(&ids)
    }

    /// Reads the records of these SAs, which [`Windows::give`] restores into SAs of the engine.
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
        self.begin(self.notes.store.windows_of(&new)?)?;
        let mut state = self.state();
        for id in new {
            state.windows.entry(id).or_default().awaited = true;
        }
        Ok(())
    }

    /// Forgets the windows that were read for inbound SAs of a file that are not installed after all: they are read again when the SAs are installed.
    pub fn forget_file(&self, file: &SasFile) {
        let mut state = self.state();
        let State { windows, loose, .. } = &mut *state;
        for id in file.entries.iter().filter_map(inbound_id) {
            if let Some(window) = windows.get_mut(&id) {
                // Also that of an SA that stays: when it is removed, no SA waits for its window.
                window.awaited = false;
                if window.place.is_none() {
                    loose.insert(id);
                }
            }
        }
        drop(state);
        self.settle();
    }

    /// Reads all records, for SAs that are not known yet.
    ///
    /// # Errors
    /// As [`Windows::open_file`].
    pub fn open_all(&self) -> Result<(), IvStoreError> {
        let _writing = self.notes.writing();
        self.notes.store.prepare()?;
        self.begin(self.notes.store.windows()?)
    }

    fn begin(&self, notes: Vec<WindowNote>) -> Result<(), IvStoreError> {
        // Gaps are filled in use, so the record must not have any.
        let full = notes.iter().filter(|note| !note.received.missing.is_empty()).map(|note| WindowNote {
            id: note.id,
            received: Received { missing: Vec::new(), ..note.received.clone() },
        });
        self.notes.put(&full.collect::<Vec<_>>())?;
        let mut state = self.state();
        for WindowNote { id, received } in notes {
            let (limit, certain) = (received.top, received.certain);
            let window = Window { limit, disk: limit, certain, carried: Some(received), ..Window::default() };
            state.windows.insert(id, window);
            state.loose.insert(id);
        }
        Ok(())
    }

    /// Call this in the same command as [`Worker::install`], after it: the file's inbound SAs continue with the windows
    /// of their keys.
    pub fn give_file(&self, worker: &mut Worker, file: &SasFile) {
        let sessions = worker.sessions().to_vec();
        for (session, entry) in sessions.into_iter().zip(&file.entries) {
            if let Some(id) = inbound_id(entry) {
                self.give(worker, session, id, 0);
            }
        }
    }

    /// Lets a new inbound SA continue with the window of its keys, and at least above
    /// `received`. Does nothing for an SA that has it already, or that has no window.
    pub fn give(&self, worker: &mut Worker, session: SessionId, id: SequenceId, received: u64) {
        let mut state = self.state();
        let is_of = |state: &State, at: &SessionId| state.places.get(at).is_some_and(|place| place.id == id);
        if is_of(&state, &session) {
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
        let begun = (std::time::Duration::ZERO, packets);
        let rate = Rate { before: begun, last: begun, most: packets };
        (window.rate, window.awaited) = (rate, false);
        if let Some(before) = window.place.replace(session)
            && is_of(&state, &before)
        {
            state.places.remove(&before);
        }
        state.places.insert(session, Place { id, since: worker.removals() });
        drop(state);
        if !planted(Fault::WindowsForgotten) {
            worker.engine().restore_window(session, &continues);
        }
        worker.note_window(session, limit);
        worker.put_held(session, held);
    }

    /// Takes the windows of SAs, to be carried over to others with their keys, or to be recorded by
    /// [`Windows::settle`]; returns their keys. Packets that these SAs receive from now on are not recorded: remove
    /// them at once.
    pub fn take_back(&self, worker: &mut Worker, sessions: &[SessionId]) -> Vec<SequenceId> {
        let mut state = self.state();
        let mut taken = Vec::new();
        for &session in sessions {
            let Some(Place { id, .. }) = state.places.remove(&session) else { continue };
            let Some(window) = state.windows.get_mut(&id) else { continue };
            window.place = None;
            window.carried = worker.engine().sad().received(session);
            window.held = worker.take_held(session);
            state.loose.insert(id);
            taken.push(id);
        }
        taken
    }

    /// The same for all SAs.
    pub fn take_back_all(&self, worker: &mut Worker) -> Vec<SequenceId> {
        let sessions: Vec<SessionId> = self.state().places.keys().copied().collect();
        self.take_back(worker, &sessions)
    }

    /// Drops the waiting packets of windows that were taken and given to no other SA.
    pub fn abandon(&self, worker: &mut Worker, taken: &[SequenceId]) {
        let mut held = Vec::new();
        let mut state = self.state();
        for id in taken {
            if let Some(window) = state.windows.get_mut(id)
                && window.place.is_none()
            {
                held.append(&mut window.held);
            }
        }
        drop(state);
        worker.drop_held(held);
    }

    /// Records the windows that were taken and not given to another SA.
    pub fn settle(&self) {
        self.notes.settle(false);
    }

    /// The same at the end, when no more SAs will be added.
    pub fn end(&self) {
        self.notes.settle(true);
    }

    /// Lets the thread do the same as [`Windows::settle`].
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

#[cfg(test)]
mod tests;
