//! Records on their way to the peer: what they allow is used only after the peer has acknowledged them, or the connection
//! is lost.
//!
//! A *session* is a connection over which this gateway sends its records: first all that it has, then each new record. To lose
//! none in between, the session begins before the records are read, and the reader waits for records that were begun without
//! a session.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forebay_planted::{Fault, planted};
use forebay_state::{Ahead, Alone, NotNoted, Noting, Record, Replica};

use super::memory::Memory;
use super::message::{Message, chunks};

/// Minimum time by which limits of replay windows are ahead: a multiple of the time of a message between two machines.
const AHEAD_MIN: Duration = Duration::from_millis(2);
/// The same, as a multiple of the measured time of messages.
const AHEAD_TIMES: u32 = 4;

/// A function that sends messages to the peer; false if the connection is lost.
pub type Send = Arc<dyn Fn(&Message) -> bool + std::marker::Send + Sync>;

/// If no thread reads the peer's messages: a function that lets the peer read, and reads its answers.
pub type Meanwhile = Arc<dyn Fn() + std::marker::Send + Sync>;

#[derive(Default)]
struct State {
    /// Counts sessions, so that an acknowledgement of an older one is ignored.
    session: u64,
    send: Option<Send>,
    /// The numbers of the last message sent and acknowledged. They continue from session to session, so that a late acknowledgement
    /// counts for no message of a later session.
    sent: u64,
    acknowledged: u64,
    /// Counts of records in progress, by the session that was the newest when they were begun.
    writing: BTreeMap<u64, usize>,
    /// Time from a message to its acknowledgement, smoothed.
    takes: Duration,
    /// Number of messages that the peer has acknowledged.
    noted: u64,
}

/// See the module. Clones share their state.
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<(Mutex<State>, Condvar)>,
    memory: Arc<Memory>,
    /// Maximum wait for an acknowledgement; after that the connection counts as lost.
    timeout: Duration,
    clock: fn() -> Duration,
    meanwhile: Option<Meanwhile>,
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outbox(..)")
    }
}

impl Outbox {
    /// An outbox without a session. `memory` records that numbers were used without the peer. The peer has to answer within `timeout`; `clock`
    /// is monotonic. With `meanwhile`, only that function makes the peer answer, so there is no wait after it.
    pub fn new(
        memory: Arc<Memory>,
        timeout: Duration,
        clock: fn() -> Duration,
        meanwhile: Option<Meanwhile>,
    ) -> Outbox {
        let timeout = if meanwhile.is_some() { Duration::ZERO } else { timeout };
        Outbox { shared: Arc::default(), memory, timeout, clock, meanwhile }
    }

    /// Begins a session and returns its number.
    pub fn open(&self, send: Send) -> u64 {
        let mut state = self.state();
        state.session += 1;
        (state.send, state.acknowledged) = (Some(send), state.sent);
        self.shared.1.notify_all();
        state.session
    }

    /// Ends a session: records are used without the peer from now on.
    pub fn close(&self, session: u64) {
        let mut state = self.state();
        if state.session == session {
            state.send = None;
            self.shared.1.notify_all();
        }
    }

    /// The session, if there is one.
    pub fn session(&self) -> Option<u64> {
        let state = self.state();
        state.send.is_some().then_some(state.session)
    }

    /// The peer has merged all records of this session: from now on it has every record that is used here.
    pub fn merged(&self, session: u64) {
        let state = self.state();
        if state.send.is_some() && state.session == session {
            _ = self.memory.change(|note| note.unmerged = false);
        }
    }

    /// The peer has recorded all messages up to this one.
    pub fn acknowledge(&self, at: u64) {
        let mut state = self.state();
        state.acknowledged = state.acknowledged.max(at.min(state.sent));
        state.noted += 1;
        self.shared.1.notify_all();
    }

    /// Messages that the peer has not acknowledged yet, and the number of those that it has.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state();
        let waiting = if state.send.is_some() { state.sent - state.acknowledged.min(state.sent) } else { 0 };
        (waiting, state.noted)
    }

    /// Time from a message to its acknowledgement, smoothed.
    pub fn takes(&self) -> Duration {
        self.state().takes
    }

    /// Waits until no record is in progress that was begun before this session.
    pub fn settled(&self) {
        let mut state = self.state();
        let session = state.session;
        while state.writing.range(..session).next().is_some() {
            state = self.shared.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replica for Outbox {
    fn begin(&self, records: &[Record]) -> Result<Box<dyn Noting>, NotNoted> {
        let began = (self.clock)();
        if records.is_empty() || planted(Fault::RecordsNotSent) {
            return Ok(Box::new(Alone));
        }
        let mut state = self.state();
        let session = state.session;
        *state.writing.entry(session).or_default() += 1;
        let ticket = |at| Box::new(Ticket { outbox: self.clone(), began, session, at });
        if let Some(send) = state.send.clone() {
            // Under the lock, so that messages are sent in the order of their numbers.
            let mut is_sent = true;
            for chunk in chunks(records) {
                state.sent += 1;
                let message = Message::Note { at: state.sent, records: chunk.to_vec() };
                is_sent = is_sent && send(&message);
            }
            if is_sent {
                return Ok(ticket(Some(state.sent)));
            }
            state.send = None;
            self.shared.1.notify_all();
        }
        // A gateway that does not know after a crash that it continued alone would not send its records to the peer.
        let durable = self.memory.go_alone();
        let alone = ticket(None);
        // Dropping the ticket locks it.
        drop(state);
        match durable {
            true => Ok(alone),
            false => Err(NotNoted("the peer is gone, and that cannot be recorded here".to_owned())),
        }
    }

    fn ahead(&self) -> Ahead {
        let state = self.state();
        match state.send {
            // Each record costs one message.
            Some(_) => Ahead {
                time: (state.takes * AHEAD_TIMES).max(AHEAD_MIN),
                least: 2,
                gather: Duration::from_micros(200),
                look: Duration::from_millis(100),
            },
            None => Ahead::DISK,
        }
    }

    fn epoch(&self) -> u64 {
        self.state().session
    }
}

struct Ticket {
    outbox: Outbox,
    began: Duration,
    session: u64,
    /// The message to be acknowledged, if one was sent.
    at: Option<u64>,
}

impl Noting for Ticket {
    fn wait(self: Box<Self>) {
        let Some(at) = self.at else { return };
        if let Some(meanwhile) = &self.outbox.meanwhile {
            meanwhile();
        }
        let session = self.session;
        let (lock, changed) = &*self.outbox.shared;
        let state = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waits =
            |state: &mut State| state.session == session && state.send.is_some() && state.acknowledged < at;
        let waited = changed.wait_timeout_while(state, self.outbox.timeout, waits);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.session == session && state.acknowledged >= at {
            let took = (self.outbox.clock)().saturating_sub(self.began);
            state.takes = (state.takes * 7 + took) / 8;
            return;
        }
        if waited.timed_out() {
            tracing::warn!(
                "the peer does not acknowledge records; this gateway goes on alone: look at the peer's log and disk"
            );
            state.send = None;
            changed.notify_all();
        }
        self.outbox.memory.go_alone();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.outbox.state();
        if let Entry::Occupied(mut writing) = state.writing.entry(self.session) {
            *writing.get_mut() -= 1;
            if *writing.get() == 0 {
                writing.remove();
            }
        }
        self.outbox.shared.1.notify_all();
    }
}

#[cfg(test)]
mod tests;
