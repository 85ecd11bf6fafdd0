//! The peer's records, written behind each other by one thread, so that no heartbeat waits for a disk.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use forebay_state::{IvStoreError, Record};

use super::{SESSION_AGAIN, Shared, clock, lock};
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
    Merge { link: u64, records: Vec<Record>, active: bool, last: bool },
    /// It has ended.
    Resign { term: u64 },
}

/// Does the work until the end.
pub(super) fn run(shared: &Shared, works: &Receiver<Work>) {
    // Parts by connection.
    let mut parts: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    while !shared.ended.load(Ordering::Relaxed) {
        let work = match works.recv_timeout(SESSION_AGAIN) {
            Ok(work) => work,
            Err(RecvTimeoutError::Timeout) => {
                parts.retain(|link, _| lock(&shared.state).links.contains_key(link));
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let done = match work {
            Work::Note { link, at, records } => shared.note(link, at, &records),
            Work::Merge { link, mut records, active, last } => {
                let all = parts.entry(link).or_default();
                all.append(&mut records);
                match (last, all.len() > RECORDS_MAX) {
                    (_, true) => {
                        tracing::error!("the peer has more than {RECORDS_MAX} records; they are not taken");
                        parts.remove(&link);
                        Ok(())
                    }
                    (true, false) => shared.merge(link, &parts.remove(&link).unwrap_or_default(), active),
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
            // Nothing is acknowledged, so that the peer does not count on it.
            tracing::error!(%error, "cannot note records of the peer");
        }
    }
}

impl Shared {
    /// Notes records and acknowledges them. While this gateway is active itself, its own notes of windows hold; the peer will
    /// send all of its again when it has stood down.
    fn note(&self, link: u64, at: u64, records: &[Record]) -> Result<(), IvStoreError> {
        match self.holds() {
            Some(holds) => lock(&self.mirror).note(records, holds, clock())?,
            None => drop(self.store.take_over(records)?),
        }
        self.send_on(&lock(&self.state), link, &Message::Noted { at });
        Ok(())
    }

    fn merge(&self, link: u64, records: &[Record], active: bool) -> Result<(), IvStoreError> {
        let raised = match self.holds() {
            Some(holds) => {
                let holds = if active { holds } else { Holds::Both };
                lock(&self.mirror).note(records, holds, clock())?;
                false
            }
            None => lock(&self.mirror).merge_running(records)?,
        };
        let mut state = lock(&self.state);
        state.received = Some(link);
        if raised {
            tracing::warn!(
                "the peer was active too and has records that were not known here; the data plane starts again with them"
            );
            state.restart = true;
            state.owed.push(link);
        } else {
            tracing::info!(records = records.len(), "merged the records of the peer");
            self.send_on(&state, link, &Message::Merged {});
        }
        Ok(())
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
