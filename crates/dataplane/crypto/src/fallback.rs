//! Two processors as one: what the first lacks, the second does.

use std::collections::BTreeSet;

use forebay_time::Time;

use crate::{Capabilities, Direction, Job, Processor, SaKeys, SessionError, SessionId};

/// Two libraries on one core: each suite is done by `first` if it has it, and by `second` otherwise.
///
/// To a scheduler they are one processor, because the core does one thing at a time. It has the name of the first.
/// Jobs of one session are delivered in their order if both libraries finish theirs inside submit.
pub struct Fallback<P, Q> {
    first: P,
    second: Q,
    capabilities: Capabilities,
    /// The sessions that the second has.
    seconds: BTreeSet<SessionId>,
    /// Jobs that the second holds.
    held: usize,
    /// Jobs for the second, on their way; emptied after each use.
    batch: Vec<Job>,
}

impl<P: Processor, Q: Processor> Fallback<P, Q> {
    /// Puts `second` behind `first`.
    pub fn new(first: P, second: Q) -> Fallback<P, Q> {
        let mut capabilities = first.capabilities().clone();
        let others = second.capabilities().suites.iter().filter(|&&suite| !first.capabilities().has(suite));
        capabilities.suites.extend(others);
        capabilities.queue = capabilities.queue.min(second.capabilities().queue);
        Fallback { first, second, capabilities, seconds: BTreeSet::new(), held: 0, batch: Vec::new() }
    }
}

impl<P: Processor, Q: Processor> Processor for Fallback<P, Q> {
    fn name(&self) -> &str {
        self.first.name()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError> {
        if self.first.capabilities().has(keys.suite()) {
            self.first.open_session(id, keys, direction)?;
            if self.seconds.remove(&id) {
                self.second.close_session(id);
            }
        } else {
            self.second.open_session(id, keys, direction)?;
            self.first.close_session(id);
            self.seconds.insert(id);
        }
        Ok(())
    }

    fn close_session(&mut self, id: SessionId) {
        self.first.close_session(id);
        if self.seconds.remove(&id) {
            self.second.close_session(id);
        }
    }

    #[inline]
    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        // Seldom are there any, and then the first is all there is.
        if !self.seconds.is_empty() {
            self.batch.extend(jobs.extract_if(.., |job| self.seconds.contains(&job.spec.session)));
            let given = self.batch.len();
            self.second.submit(now, &mut self.batch);
            self.held += given - self.batch.len();
        }
        self.first.submit(now, jobs);
        jobs.append(&mut self.batch);
    }

    #[inline]
    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        self.first.poll(now, done);
        if self.held > 0 {
            let before = done.len();
            self.second.poll(now, done);
            self.held = self.held.saturating_sub(done.len() - before);
        }
    }

    fn next_due(&self) -> Option<Time> {
        self.first.next_due().into_iter().chain(self.second.next_due()).min()
    }
}
