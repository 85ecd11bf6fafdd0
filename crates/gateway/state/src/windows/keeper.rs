//! The thread that raises and lowers the limits of replay windows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc;

use forebay_crypto::SessionId;

use super::state::{Notes, Raised, near};
use crate::recorder::Recorder;
use crate::{Ahead, SequenceId};
use forebay_worker::Handle;
use forebay_worker::Word;

/// Maximum number of requests that are recorded together if no packet waits for them.
const GATHERED: usize = 64;

/// A window whose limit should be raised.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// Its SA, and the removals at its worker by then.
    at: SessionId,
    removals: u64,
    /// The highest number, and the number of packets.
    top: u64,
    packets: u64,
}

/// The thread.
pub struct Keeper {
    /// The shared state.
    pub notes: Arc<Notes>,
    /// The first worker, which performs changes of SAs.
    pub worker: Handle,
    /// Windows whose limits should be raised.
    pub wanted: BTreeMap<SequenceId, Wanted>,
    /// Whether a packet waits for one of them.
    pub urgent: bool,
    /// Windows whose limits may be too far ahead.
    pub ahead: BTreeSet<SequenceId>,
    /// When these were checked.
    pub looked: std::time::Duration,
    /// Whether SAs were removed.
    pub removed: bool,
    /// The connection to another gateway for which limits were checked.
    pub epoch: u64,
    /// Messages of workers.
    pub words: mpsc::Receiver<Word>,
}

impl Recorder for Keeper {
    type Message = Word;
    const THREAD: &'static str = "forebay-windows";
    const AGAIN: std::time::Duration = Ahead::DISK.look;

    fn messages(&self) -> &mpsc::Receiver<Word> {
        &self.words
    }

    fn has_work(&self) -> bool {
        !self.wanted.is_empty() || !self.ahead.is_empty() || self.notes.store.replica().ahead() != Ahead::DISK
    }

    fn again(&self) -> std::time::Duration {
        self.look_every()
    }

    /// Handles this message and those that follow shortly. No packet waits for most of them, and one record costs as much as
    /// many.
    fn gather(&mut self, first: Word) {
        self.take(first);
        let gather = self.notes.store.replica().ahead().gather;
        while !self.urgent && self.wanted.len() < GATHERED {
            let Ok(word) = self.words.recv_timeout(gather) else { break };
            self.take(word);
        }
    }

    fn take(&mut self, word: Word) {
        let Word::Wanted { session, top, packets, removals } = word else {
            self.removed = true;
            return;
        };
        let state = self.notes.state();
        let place = state.places.get(&session).filter(|place| removals >= place.since);
        // An SA that has just been removed; another SA may have its session number already.
        let Some(id) = place.map(|place| place.id) else { return };
        let Some(window) = state.windows.get(&id) else { return };
        self.urgent |= top > window.limit;
        let before = self.wanted.get(&id).map_or(0, |wanted| wanted.top);
        let wanted = Wanted { at: session, removals, top: top.max(before), packets };
        self.wanted.insert(id, wanted);
    }

    fn work(&mut self) {
        if std::mem::take(&mut self.removed) {
            self.notes.settle(false);
        }
        if !self.wanted.is_empty() {
            self.raise();
        }
        let now = (self.notes.clock)();
        let epoch = self.notes.store.replica().epoch();
        if epoch != self.epoch {
            // Another gateway that has connected knows the limits on the disk, which are far ahead.
            self.epoch = epoch;
            self.ahead.extend(self.notes.state().places.values().map(|place| place.id));
        }
        // A clock that was set back does not prevent the check.
        if now < self.looked || now - self.looked >= self.look_every() {
            self.looked = now;
            self.lower(now);
        }
    }
}

impl Keeper {
    fn look_every(&self) -> std::time::Duration {
        self.notes.store.replica().ahead().look
    }

    /// Raises the requested limits, and lets the engines use them.
    fn raise(&mut self) {
        self.urgent = false;
        let notes = self.notes.clone();
        let _writing = notes.writing();
        let now = (notes.clock)();
        let ahead = notes.store.replica().ahead();
        let mut state = notes.state();
        let raised = self.wanted.iter().filter_map(|(&id, &Wanted { at, removals, top, packets })| {
            // Another SA may have the window by now, with a new count of packets.
            state.places.get(&at).filter(|place| place.id == id && removals >= place.since)?;
            let window = state.windows.get_mut(&id)?;
            let lately = window.rate.lately(now, packets);
            let limit = top.saturating_add(near(lately, ahead)).max(window.limit);
            let far = top.saturating_add(near(lately, Ahead::DISK)).max(limit);
            Some(Raised { id, top, limit, disk: if limit > window.disk { far } else { 0 } })
        });
        let raised: Vec<Raised> = raised.collect();
        drop(state);
        if let Err(error) = notes.put_raised(&raised) {
            tracing::error!(%error, "cannot record received sequence numbers; new packets are held, and dropped when too many are held");
            return;
        }
        self.wanted.clear();
        self.ahead.extend(raised.iter().map(|raised| raised.id));
        let mut sessions = Vec::new();
        let mut state = notes.state();
        for Raised { id, top, limit, disk } in raised {
            let Some(window) = state.windows.get_mut(&id) else { continue };
            (window.limit, window.certain, window.disk) = (limit, top, window.disk.max(disk));
            // Another SA may have the keys by now, at another place.
            sessions.extend(window.place.map(|session| (session, limit)));
        }
        drop(state);
        if sessions.is_empty() {
            return;
        }
        let notes = notes.clone();
        drop(self.worker.post(move |worker| {
            for (session, limit) in sessions {
                // Or the SA has been removed.
                let is_noted = notes.state().is_noted(session, limit);
                if is_noted {
                    worker.note_window(session, limit);
                }
            }
        }));
    }

    /// Lowers limits that are further ahead than the recent rate of packets: after a crash that many would be refused.
    fn lower(&mut self, now: std::time::Duration) {
        let notes = self.notes.clone();
        let _writing = notes.writing();
        let near = notes.store.replica().ahead();
        let mut sessions = Vec::new();
        let state = notes.state();
        self.ahead.retain(|id| {
            let place = state.windows.get(id).and_then(|window| window.place);
            sessions.extend(place.map(|session| (*id, session)));
            place.is_some()
        });
        drop(state);
        let mut lowered = Vec::new();
        if !sessions.is_empty() {
            let notes = notes.clone();
            let looked = self.worker.ask(move |worker| {
                let mut state = notes.state();
                let look = |(id, session): (SequenceId, SessionId)| {
                    let (found, window) = state.at(session)?;
                    (found == id).then(|| window.lower(worker, session, id, now, near)).flatten()
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
        lowered.retain(|raised| raised.limit > 0 || raised.disk > 0);
        let put = notes.put_raised(&lowered);
        if let Err(error) = &put {
            tracing::warn!(%error, "cannot compact the record of received sequence numbers; look at space and permissions of `state`");
        }
        let mut state = notes.state();
        for raised in lowered {
            if let Some(window) = state.windows.get_mut(&raised.id) {
                window.unsettled = put.is_err();
            }
        }
    }
}
