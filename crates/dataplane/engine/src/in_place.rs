//! A core by itself: a prepared burst goes through crypto in place, and is completed at once if its turn has come.
//!
//! Such a burst is never in flight: it needs no slot, no allocation and no copy, and its packets stay on this core.

use forebay_crypto::{Job, Verdict};
use forebay_scheduler::Work;

use crate::databases::Databases;
use crate::engine::Core;
use crate::pool::RUNNING_CORE;
use crate::tickets::Run;
use crate::turnstile::Turnstile;

/// How many times a processor that has done only a part of a burst is given the rest.
const ROUNDS_MAX: usize = 64;

impl Core {
    /// Takes a prepared burst on: its jobs are done here and completed, or given to the scheduler. Leaves it empty.
    #[inline]
    pub(crate) fn carry(&mut self, shared: &Turnstile<Databases>, burst: &mut Vec<Job>) {
        if burst.is_empty() {
            return;
        }
        let mut runs = std::mem::take(&mut self.prepared);
        let waits = self.by_suite.put_off() > 0;
        if waits {
            // New packets do not overtake packets that were put off, so none starves.
            self.by_suite.join(burst, &mut runs);
        }
        if self.stays(burst) {
            match !waits && self.is_of_suites(&runs) {
                false => self.do_in_place(shared, burst, &mut runs),
                true => self.do_by_suite(shared, burst, &mut runs),
            }
        } else {
            self.put_in_flight(burst, &mut runs);
        }
        self.prepared = runs;
    }

    #[inline]
    pub(crate) fn do_in_place(
        &mut self,
        shared: &Turnstile<Databases>,
        burst: &mut Vec<Job>,
        runs: &mut Vec<Run>,
    ) {
        loop {
            self.compute_measured(burst, runs.len());
            self.release(&mut shared.pass(), burst, runs);
            if self.again.jobs.is_empty() {
                return self.give_way();
            }
            // Packets of nested SAs: their next jobs.
            std::mem::swap(burst, &mut self.again.jobs);
            std::mem::swap(runs, &mut self.again.runs);
            if !burst.iter().all(|job| self.sessions.core_does(job.spec.session)) {
                return self.put_in_flight(burst, runs);
            }
        }
    }

    /// Does the jobs of a burst, and learns what they cost.
    #[inline]
    fn compute_measured(&mut self, burst: &mut Vec<Job>, runs: usize) {
        let (begun, count) = (self.now, burst.len());
        let has_others = !self.pace.is_alone();
        if has_others {
            self.pace.begins(begun, count);
        }
        self.compute(burst);
        self.now = self.clock.now();
        let took = self.now.since(begun);
        self.pace.learn(count, runs, took);
        if has_others {
            self.pace.ends(self.now, count, took);
        }
        self.moving.account(took);
        self.pool.core().stats.in_place(burst, took);
        if self.pool.len() > 1
            && let Some(first) = burst.first()
        {
            let kind = self.sessions.kind(first.spec.session);
            let jobs = burst.iter().map(|job| Work::packet(job.packet.len() as u32));
            self.pool.learn(RUNNING_CORE, kind, jobs, took, &mut self.scheduler);
        }
    }

    /// Has the running core do the jobs.
    #[inline]
    fn compute(&mut self, jobs: &mut Vec<Job>) {
        let count = jobs.len();
        let processor = &mut self.pool.core().processor;
        // A core does its jobs in submit.
        processor.submit(self.now, jobs);
        processor.poll(self.now, jobs);
        if jobs.len() != count || jobs.iter().any(|job| job.verdict == Verdict::Pending) {
            self.compute_rest(jobs);
        }
    }

    /// Submits the jobs that the processor did not do at once again, in the order of the packets.
    #[cold]
    fn compute_rest(&mut self, jobs: &mut Vec<Job>) {
        let mut rest: Vec<Job> = jobs.extract_if(.., |job| job.verdict == Verdict::Pending).collect();
        for _ in 0..ROUNDS_MAX {
            if rest.is_empty() {
                break;
            }
            let processor = &mut self.pool.core().processor;
            processor.submit(self.now, &mut rest);
            processor.poll(self.now, jobs);
        }
        jobs.append(&mut rest);
    }
}
