//! The peer's records, written one after another by one thread, so that no heartbeat waits for a disk.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use forebay_planted::{Fault, planted};
use forebay_state::{IvStoreError, Plausible, Record, SequenceId};

use super::{SESSION_AGAIN, Shared, lock};
use crate::election::{Heard, Role};
use crate::message::Message;
use crate::mirror::Holds;

/// Most records that a peer may have.
const RECORDS_MAX: usize = 1 << 22;

/// What the peer has sent.
pub(super) enum Work {
    /// Records to note.
    Note { link: u64, at: u64, records: Vec<Record> },
    /// A part of all of its records.
    Merge { link: u64, records: Vec<Record>, active: bool, term: u64, number: u64, last: bool },
    /// It has ended.
    Resign { term: u64 },
}

/// Takes what the peer has sent, in its order.
pub(super) struct Notes {
    works: Receiver<Work>,
    /// Parts of all of the peer's records, by connection.
    parts: BTreeMap<u64, Vec<Record>>,
}

impl Notes {
    pub(super) fn new(works: Receiver<Work>) -> Notes {
        Notes { works, parts: BTreeMap::new() }
    }

    /// Does the work until the end.
    pub(super) fn run(&mut self, shared: &Shared) {
        while !shared.ended.load(Ordering::Relaxed) {
            match self.works.recv_timeout(SESSION_AGAIN) {
                Ok(work) => self.take(shared, work),
                Err(RecvTimeoutError::Timeout) => {
                    self.parts.retain(|link, _| lock(&shared.state).links.contains_key(link));
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Does what there is now.
    pub(super) fn run_once(&mut self, shared: &Shared) {
        while let Ok(work) = self.works.try_recv() {
            self.take(shared, work);
        }
    }

    fn take(&mut self, shared: &Shared, work: Work) {
        let done = match work {
            Work::Note { link, at, records } => shared.note(link, at, &records),
            Work::Merge { link, mut records, active, term, number, last } => {
                let all = self.parts.entry(link).or_default();
                all.append(&mut records);
                match (last, all.len() > RECORDS_MAX) {
                    (_, true) => {
                        self.parts.remove(&link);
                        let what = format!("more than {RECORDS_MAX} records");
                        Err(IvStoreError::Implausible { what })
                    }
                    (true, false) => {
                        let all = self.parts.remove(&link).unwrap_or_default();
                        shared.merge((link, number), &all, active, term)
                    }
                    (false, false) => Ok(()),
                }
            }
            Work::Resign { term } => {
                let heard = Heard { role: Role::Standby, term, preferred: false, resigned: true };
                tracing::info!("the peer resigned");
                shared.hear(&mut lock(&shared.state), heard);
                Ok(())
            }
        };
        if let Err(error) = done {
            // Nothing is acknowledged, so that the peer does not count on it; and this gateway does not count on what it has.
            shared.lacks();
            if let IvStoreError::Implausible { .. } = error {
                lock(&shared.state).refused += 1;
            }
            tracing::error!(%error, "cannot note records of the peer; this gateway's records are not complete");
        }
    }
}

impl Shared {
    /// Notes records and acknowledges them. While this gateway is active itself, its own notes of windows hold; the peer will
    /// send all of its again when it has stood down.
    fn note(&self, link: u64, at: u64, records: &[Record]) -> Result<(), IvStoreError> {
        // A data plane that starts meanwhile has these records or the next that are sent.
        let mut mirror = lock(&self.mirror);
        let (now, plausible) = self.plausible();
        match self.holds() {
            Some(holds) => self.tell_of_put_back(&mirror.note(records, holds, now, plausible)?),
            None => drop(self.store.take_over(records, plausible)?),
        }
        lock(&self.state).noted_at = Some(now);
        self.send_on(&lock(&self.state), link, &Message::Noted { at });
        Ok(())
    }

    fn merge(
        &self,
        (link, number): (u64, u64),
        records: &[Record],
        active: bool,
        term: u64,
    ) -> Result<(), IvStoreError> {
        // One that stops meanwhile leaves them to be merged by whoever comes second.
        let mut mirror = lock(&self.mirror);
        let (now, plausible) = self.plausible();
        let raised = match self.holds() {
            Some(holds) => {
                // What is here may be newer: of a peer that is not active, has an older directory, or lacks something.
                let is_newer = Some(term) >= self.memory.note().complete && !lock(&self.state).peer_wants;
                let holds = if active && is_newer { holds } else { Holds::Both };
                self.tell_of_put_back(&mirror.note(records, holds, now, plausible)?);
                if self.has_all(&lock(&self.state)) {
                    self.memory.change(|note| note.completed(term));
                }
                false
            }
            None => mirror.merge_running(records, plausible)?,
        };
        let mut state = lock(&self.state);
        (state.received, state.noted_at) = (Some(link), Some(now));
        state.received_session = state.source.session();
        let has_all = self.has_all(&state);
        let is_new = std::mem::replace(&mut state.lacks_together, !has_all) == has_all;
        if has_all {
            (state.complete, state.lacks) = (state.complete.max(Some(term)), false);
        } else if is_new {
            tracing::warn!(
                "one of the two gateways has an empty state directory, and the other one was not the last that was active: the records of neither \
                 are known to be complete; `forebay state accept` on the gateway that was active last resolves it"
            );
        }
        let restarts = raised && !planted(Fault::MergedUnderWay);
        if restarts {
            tracing::warn!(
                "the peer was active too and has records that were not known here; the data plane starts again with them. Look at the links of [pair]"
            );
            state.restart = true;
        }
        // Otherwise the peer goes on to count as the one that has them.
        match (has_all, restarts) {
            (false, _) => {}
            (true, true) => state.owed.push((link, number)),
            (true, false) => {
                tracing::info!(records = records.len(), "merged the records of the peer");
                self.remember(&state, None);
                self.send_on(&state, link, &Message::Merged { number });
            }
        }
        Ok(())
    }

    /// The time, and what may be said of records by now.
    fn plausible(&self) -> (Duration, Plausible) {
        let now = (self.clock)();
        let noted = lock(&self.state).noted_at;
        (now, Plausible::after(noted.map(|at| now.saturating_sub(at))))
    }

    fn tell_of_put_back(&self, sas: &[SequenceId]) {
        let Some(first) = sas.first() else { return };
        lock(&self.state).refused += sas.len() as u64;
        tracing::error!(
            sas = sas.len(), sa = %first,
            "the peer would put replay windows back; what was certainly received stays so"
        );
    }

    /// Something of the peer's was not taken.
    fn lacks(&self) {
        self.memory.change(|note| note.complete = None);
        let mut state = lock(&self.state);
        (state.complete, state.received) = (None, None);
    }

    /// Whose windows hold on this standby; `None` if it is none, or has a data plane that still ends.
    fn holds(&self) -> Option<Holds> {
        let state = lock(&self.state);
        if state.running || state.election.role() == Role::Active {
            return None;
        }
        Some(if self.memory.note().unmerged { Holds::Both } else { Holds::New })
    }
}
