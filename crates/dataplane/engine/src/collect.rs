//! Collects the results of other processors, checks samples of them, and ejects processors that fail.

use forebay_crypto::{Job, Packet, Verdict};
use forebay_planted::{Fault, planted};
use forebay_time::{Duration, Time};

use crate::check::{CHECK, Check};
use crate::databases::Databases;
use crate::engine::{Core, Done};
use crate::health::Removal;
use crate::place::Booking;
use crate::pool::RUNNING_CORE;
use crate::stats::REMOVALS;
use crate::turnstile::Turnstile;

/// Times that a job which the running core cannot do goes to other processors again.
const TRIES: u8 = 4;

impl Core {
    /// Takes the answers that there are; whether there were some. It is called at `begun`.
    pub(crate) fn collect(&mut self, shared: &Turnstile<Databases>, mut begun: Time) -> bool {
        let mut moved = false;
        for index in self.pool.others() {
            let mut done = std::mem::take(&mut self.scratch.jobs);
            // The time of the poll counts: devices copy in it, and those of software compute.
            self.pool.get_mut(index).processor.poll(self.now, &mut done);
            if !done.is_empty() {
                moved = true;
                let count = done.len();
                self.pool.get_mut(index).health.answered(count);
                let mut booking = Booking::default();
                let checks = self.checks.len();
                for job in &mut done {
                    let is_doubtful = self.checks.len() > checks;
                    self.answer(index, job, is_doubtful, &mut booking);
                }
                done.clear();
                self.book(index, booking);
                let now = self.clock.now();
                let took = now.since(begun);
                begun = now;
                self.moving.account(took);
                self.pool.learn_collect(index, count, took);
            }
            self.scratch.jobs = done;
        }
        if moved {
            self.release_done(shared);
        }
        moved
    }

    /// Puts a packet that is done with others, for [`Core::release_done`].
    #[inline]
    pub(crate) fn finish_slot(&mut self, index: u32) {
        let (job, run) = self.in_flight.slots.take_done(index);
        self.done.jobs.push(job);
        match self.done.runs.last_mut() {
            Some(before) if before.is_continued_by(&run) => before.len += 1,
            _ => self.done.runs.push(run),
        }
    }

    /// Completes and releases what is done. Packets of nested SAs go on.
    pub(crate) fn release_done(&mut self, shared: &Turnstile<Databases>) {
        if self.done.jobs.is_empty() {
            return;
        }
        let Done { mut jobs, mut runs } = std::mem::take(&mut self.done);
        self.release(&mut shared.pass(), &mut jobs, &mut runs);
        if !self.again.jobs.is_empty() {
            std::mem::swap(&mut jobs, &mut self.again.jobs);
            std::mem::swap(&mut runs, &mut self.again.runs);
            self.put_in_flight(&mut jobs, &mut runs);
        }
        // What found no slot is done too.
        jobs.append(&mut self.done.jobs);
        runs.append(&mut self.done.runs);
        self.done = Done { jobs, runs };
    }

    /// Takes an answer. While one before it is being checked (`is_doubtful`), it is held.
    #[inline]
    fn answer(&mut self, processor: usize, job: &mut Job, is_doubtful: bool, booking: &mut Booking) {
        let attached = self.pool.get_mut(processor);
        let Some(index) = self.in_flight.slots.by_token(job.token) else {
            attached.stats.late += 1;
            self.recycle(std::mem::take(&mut job.packet));
            return;
        };
        // What the running core cannot do it cannot check.
        let judged = self.sessions.core_does(job.spec.session);
        let every = attached.check_every(self.limits.audit_every, self.sessions.kind(job.spec.session));
        match job.verdict {
            Verdict::Done => {
                if attached.health.done(every) && judged {
                    self.check(processor, index, std::mem::take(job));
                } else if is_doubtful {
                    self.held.push((processor, std::mem::take(job)));
                } else {
                    self.finish(processor, index, job.took, booking);
                    self.settle(index, job);
                }
            }
            Verdict::AuthFailed if !judged || !attached.health.rejected(every) => {
                self.account(processor, index, job.took);
                self.settle(index, job);
            }
            // A faulty card must not lose packets: the running core has the last word.
            verdict @ (Verdict::AuthFailed | Verdict::Failed | Verdict::Pending) => {
                self.recycle(std::mem::take(&mut job.packet));
                self.reclaim(index);
                self.account(processor, index, job.took);
                self.rescue(index);
                self.in_flight.slots.get_mut(index).doubted = Some((processor, verdict));
            }
        }
    }

    fn accept(&mut self, processor: usize, index: u32, mut job: Job) {
        self.account(processor, index, job.took);
        self.settle(index, &mut job);
    }

    /// A packet's job is done.
    #[inline]
    fn settle(&mut self, index: u32, job: &mut Job) {
        self.in_flight.slots.settle(index, job);
        self.finish_slot(index);
    }

    /// A processor did not take a job: the running core does it.
    pub(crate) fn refused(&mut self, processor: usize, job: Job) {
        self.recycle(job.packet);
        let index = job.token as u32;
        self.reclaim(index);
        self.account(processor, index, Duration::ZERO);
        self.rescue(index);
        let health = &mut self.pool.get_mut(processor).health;
        health.answered(1);
        // One that is full has work to do; one that holds nothing has no excuse.
        if health.is_idle() {
            self.in_flight.slots.get_mut(index).doubted = Some((processor, Verdict::Failed));
        }
    }

    /// Puts a copy of a packet that is with its submission into its slot, because a processor may still read the
    /// original.
    fn reclaim(&mut self, index: u32) {
        if self.in_flight.slots.has_packet(index) {
            return;
        }
        let mut packet = self.buffers.take();
        if self.in_flight.original(index).is_some_and(|original| packet.copy_from(original)) {
            self.in_flight.slots.job_mut(index).packet = packet;
        }
    }

    /// Takes a packet from the processor that has it, and gives it to the running core. If that core does not support
    /// the suite, the scheduler places the packet again, up to `TRIES` times. After that the running core fails the
    /// job, and that result is final.
    pub(crate) fn rescue(&mut self, index: u32) {
        self.in_flight.slots.disown(index);
        self.stats.redone += 1;
        let session = self.in_flight.slots.job(index).spec.session;
        let slot = self.in_flight.slots.get_mut(index);
        slot.tries = slot.tries.saturating_add(1);
        let again = slot.tries <= TRIES && !self.sessions.core_does(session) && self.schedule(index);
        if !again && !planted(Fault::RescueForgotten) {
            self.retries.push_back(index);
        }
    }

    /// Makes the running core repeat a job, on a copy and with its next burst, before the result is accepted: alone,
    /// a job would cost a core that processes several side by side as much as a whole burst.
    fn check(&mut self, processor: usize, index: u32, answer: Job) {
        let mut copy = self.buffers.take();
        if !self.in_flight.original(index).is_some_and(|packet| copy.copy_from(packet)) {
            self.buffers.put(copy);
            return self.accept(processor, index, answer);
        }
        self.stats.audits += 1;
        // The processor has done its part.
        self.account(processor, index, answer.took);
        let check = Job::new(copy, answer.spec, u64::from(CHECK));
        self.checks.push(Check { processor, answer, check: Some(check) });
    }

    /// Adds the jobs of checks to a burst of the running core.
    #[inline]
    pub(crate) fn add_checks(&mut self, jobs: &mut Vec<Job>) {
        for (place, one) in self.checks.iter_mut().enumerate() {
            jobs.extend(one.check.take().map(|job| Job { token: (place as u64) << 32 | job.token, ..job }));
        }
    }

    /// Believes an answer, or not, by what the running core made of its job.
    pub(crate) fn finish_check(&mut self, job: Job) {
        let place = (job.token >> 32) as usize;
        let Some(Check { processor, answer, .. }) = self.checks.get_mut(place) else {
            return self.recycle(job.packet);
        };
        let processor = *processor;
        let empty = Job::new(Packet::default(), answer.spec, answer.token);
        let answer = std::mem::replace(answer, empty);
        let same = job.verdict == Verdict::Pending
            || (job.verdict == answer.verdict && job.packet.bytes() == answer.packet.bytes());
        let (mut right, other) =
            if same { (answer, job.packet) } else { (Job { token: answer.token, ..job }, answer.packet) };
        self.recycle(other);
        match self.in_flight.slots.by_token(right.token) {
            Some(index) => self.settle(index, &mut right),
            None => self.recycle(right.packet),
        }
        if !same && !self.pool.get(processor).stats.out {
            self.remove(processor, Removal::WrongResult);
        }
    }

    /// Accepts the answers that were held for a check, now that all checks are done. A processor that failed one is
    /// ejected by now, and its jobs have been given to the running core: their answers count no more.
    pub(crate) fn accept_held(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        for (processor, mut job) in held.drain(..) {
            match self.in_flight.slots.by_token(job.token) {
                Some(index) => self.accept(processor, index, job),
                None => {
                    self.pool.get_mut(processor).stats.late += 1;
                    self.recycle(std::mem::take(&mut job.packet));
                }
            }
        }
        // Accepting holds nothing.
        self.held = held;
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
                    self.reclaim(index);
                    self.rescue(index);
                }
            }
            self.in_flight.submissions.close(place, &mut self.buffers);
        }
    }
}
