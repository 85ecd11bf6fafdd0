//! Collecting: the answers of other processors, how far they are believed, and who is taken out.

use forebay_crypto::{Job, Verdict};
use forebay_time::Duration;

use crate::engine::Engine;
use crate::health::Removal;
use crate::pool::RUNNING_CORE;
use crate::stats::REMOVALS;

/// Times that a job which the running core cannot do goes to other processors again.
const TRIES: u8 = 4;

impl Engine {
    /// Takes the answers that there are; whether there were some.
    pub(crate) fn collect(&mut self) -> bool {
        let mut moved = false;
        for index in self.pool.others() {
            let mut done = std::mem::take(&mut self.scratch.jobs);
            self.pool.get_mut(index).processor.poll(self.now, &mut done);
            if !done.is_empty() {
                moved = true;
                let count = done.len();
                let begun = self.clock.now();
                for job in done.drain(..) {
                    self.answer(index, job);
                }
                let took = self.clock.now().since(begun);
                self.moving.account(took);
                self.pool.learn_collect(index, count, took);
            }
            self.scratch.jobs = done;
        }
        if moved {
            self.release_touched();
        }
        moved
    }

    /// Notes that a packet is done, for [`Engine::release_touched`].
    #[inline]
    pub(crate) fn touch(&mut self, index: u32) {
        let session = self.in_flight.slots.get(index).spec.session.0;
        if self.scratch.touched.last() != Some(&session) {
            self.scratch.touched.push(session);
        }
    }

    /// Releases what has become free to go.
    pub(crate) fn release_touched(&mut self) {
        let mut touched = std::mem::take(&mut self.scratch.touched);
        touched.drain(..).for_each(|session| self.release(session));
        // Releasing touches nothing.
        self.scratch.touched = touched;
    }

    /// Takes an answer.
    fn answer(&mut self, processor: usize, job: Job) {
        let attached = self.pool.get_mut(processor);
        attached.health.answered();
        let Some(index) = self.in_flight.slots.by_token(job.token) else {
            attached.stats.late += 1;
            self.recycle(job.packet);
            return;
        };
        // What the running core cannot do it cannot check.
        let judged = self.sessions.core_does(job.spec.session);
        let every = self.limits.audit_every;
        match job.verdict {
            Verdict::Done => {
                if attached.health.done(every) && judged && !self.audit(index, &job) {
                    self.recycle(job.packet);
                    self.remove(processor, Removal::WrongResult);
                } else {
                    self.accept(processor, index, job);
                }
            }
            Verdict::AuthFailed if !judged || !attached.health.rejected(every) => {
                self.recycle(job.packet);
                self.account(processor, index, job.took);
                let slot = self.in_flight.slots.get_mut(index);
                slot.verdict = Verdict::AuthFailed;
                slot.done = self.now;
                self.touch(index);
            }
            // A faulty card must not lose packets: the running core has the last word.
            verdict @ (Verdict::AuthFailed | Verdict::Failed | Verdict::Pending) => {
                self.recycle(job.packet);
                self.account(processor, index, job.took);
                self.rescue(index);
                self.in_flight.slots.get_mut(index).doubted = Some((processor, verdict));
            }
        }
    }

    fn accept(&mut self, processor: usize, index: u32, job: Job) {
        self.account(processor, index, job.took);
        let slot = self.in_flight.slots.get_mut(index);
        let original = slot.packet.replace(job.packet);
        slot.verdict = Verdict::Done;
        slot.done = self.now;
        if let Some(original) = original {
            self.recycle(original);
        }
        self.touch(index);
    }

    /// A processor did not take a job: the running core does it.
    pub(crate) fn refused(&mut self, processor: usize, job: Job) {
        self.recycle(job.packet);
        let index = job.token as u32;
        self.account(processor, index, Duration::ZERO);
        self.rescue(index);
        let health = &mut self.pool.get_mut(processor).health;
        health.answered();
        // One that is full has work to do; one that holds nothing has no excuse.
        if health.is_idle() {
            self.in_flight.slots.get_mut(index).doubted = Some((processor, Verdict::Failed));
        }
    }

    /// Takes a packet from whoever has it, and gives it to the running core; or, where that lacks the
    /// suite, to the scheduler again, a few times. After that the running core fails at it, and that is
    /// the last word.
    pub(crate) fn rescue(&mut self, index: u32) {
        self.in_flight.slots.disown(index);
        self.stats.redone += 1;
        let slot = self.in_flight.slots.get_mut(index);
        let session = slot.spec.session;
        slot.tries = slot.tries.saturating_add(1);
        let again = slot.tries <= TRIES && !self.sessions.core_does(session) && self.schedule(index);
        if !again {
            self.retries.push_back(index);
        }
    }

    /// Does a job again on the running core, on a copy, and compares.
    fn audit(&mut self, index: u32, job: &Job) -> bool {
        let mut copy = self.buffer();
        let slot = self.in_flight.slots.get(index);
        if !slot.packet.as_ref().is_some_and(|packet| copy.copy_from(packet)) {
            self.recycle(copy);
            return true;
        }
        self.stats.audits += 1;
        let mut audited = std::mem::take(&mut self.scratch.again);
        audited.push(Job::new(copy, slot.spec, 0));
        let processor = &mut self.pool.core().processor;
        processor.submit(self.now, &mut audited);
        processor.poll(self.now, &mut audited);
        let own = audited.pop();
        self.scratch.again = audited;
        let Some(own) = own else { return true };
        let same = own.verdict == job.verdict && own.packet.bytes() == job.packet.bytes();
        self.recycle(own.packet);
        same
    }

    /// Tells the scheduler who should have answered by now.
    pub(crate) fn see_overdue(&mut self) {
        self.scheduler.fade_lateness(self.now);
        // The running core is never late by this: what it does besides delays its own jobs and others' answers.
        for processor in self.pool.others() {
            let Some(&first) = self.pool.get(processor).submissions.front() else { continue };
            let finish = self.in_flight.submissions.get(first).placed.prediction.finish();
            let overdue = self.now.since(finish);
            if overdue > Duration::ZERO {
                self.scheduler.report_overdue(processor, overdue);
            }
        }
    }

    /// Takes out processors that have stopped answering, and lets those back that have recovered.
    pub(crate) fn watch(&mut self) {
        for processor in self.pool.others() {
            let attached = self.pool.get_mut(processor);
            if attached.health.may_return(self.now) {
                attached.health.returned(self.now);
                attached.stats.out = false;
                self.scheduler.restore_processor(processor);
            }
            // By the time of the last poll: who answered while this thread was held up is not late.
            let attached = self.pool.get(processor);
            let deadline = |&first: &u32| self.in_flight.submissions.get(first).deadline;
            if attached.submissions.front().map(deadline).is_some_and(|deadline| deadline < self.polled) {
                self.remove(processor, Removal::Silent);
            }
        }
    }

    pub(crate) fn remove(&mut self, processor: usize, why: Removal) {
        self.scheduler.remove_processor(processor);
        let attached = self.pool.get_mut(processor);
        attached.health.removed(why, self.now);
        attached.stats.removals += 1;
        attached.stats.out = true;
        if self.stats.removals.len() < REMOVALS {
            self.stats.removals.push((self.now, processor, why));
        }
        debug_assert_ne!(processor, RUNNING_CORE);
        while let Some(place) = self.pool.get_mut(processor).submissions.pop_front() {
            let submission = self.in_flight.submissions.get(place);
            if self.rules.lateness && why == Removal::Silent {
                let predicted = submission.placed.prediction.finish();
                self.scheduler.report_late(processor, self.now.since(predicted));
            }
            for k in 0..self.in_flight.submissions.get(place).members.len() {
                let index = self.in_flight.submissions.get(place).members[k];
                if self.in_flight.slots.get(index).submission == place {
                    self.rescue(index);
                }
            }
            self.in_flight.submissions.close(place);
        }
    }
}
