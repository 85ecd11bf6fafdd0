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

/// Maximum number of records of a peer.
const RECORDS_MAX: usize = 1 << 22;

/// Messages of the peer with records.
pub(super) enum Work {
    /// Records to note.
    Note { link: u64, at: u64, records: Vec<Record> },
    /// A part of all of its records.
    Merge { link: u64, records: Vec<Record>, active: bool, term: u64, number: u64, last: bool },
    /// The peer has ended.
    Resign { term: u64 },
}

/// Handles messages of the peer with records, in their order.
pub(super) struct Notes {
    works: Receiver<Work>,
    /// Parts of all of the peer's records, by connection.
    parts: BTreeMap<u64, Vec<Record>>,
}

impl Notes {
    pub(super) fn new(works: Receiver<Work>) -> Notes {
        Notes { works, parts: BTreeMap::new() }
    }

    /// Works until the pair ends.
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

    /// Handles the messages that are present.
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
            // There is no acknowledgement, so the peer does not rely on these records; this gateway's records do not count as complete.
            shared.lacks();
            if let IvStoreError::Implausible { .. } = error {
                lock(&shared.state).refused += 1;
            }
            tracing::error!(%error, "cannot note records of the peer; this gateway's records are not complete");
        }
    }
}

impl Shared {
    /// Records the peer's records and acknowledges them. While this gateway is active itself, its own records of windows are valid; the peer
    /// sends all of its windows again when it has become the standby.
    fn note(&self, link: u64, at: u64, records: &[Record]) -> Result<(), IvStoreError> {
        // A data plane that starts meanwhile gets these records or the next ones.
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
        // If the data plane stops meanwhile, the second thread merges the records.
        let mut mirror = lock(&self.mirror);
        let (now, plausible) = self.plausible();
        let raised = match self.holds() {
            Some(holds) => {
                // The records here may be newer if the peer is not active, has an older directory, or lacks records.
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
        // Otherwise the peer continues to count as the gateway that has them.
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

    /// The time, and the limits of plausible records.
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

    /// Records of the peer were not accepted.
    fn lacks(&self) {
        self.memory.change(|note| note.complete = None);
        let mut state = lock(&self.state);
        (state.complete, state.received) = (None, None);
    }

    /// Which windows are valid on this standby; `None` if it is not a standby, or if its data plane has not ended yet.
    fn holds(&self) -> Option<Holds> {
        let state = lock(&self.state);
        if state.running || state.election.role() == Role::Active {
            return None;
        }
        Some(if self.memory.note().unmerged { Holds::Both } else { Holds::New })
    }
}
