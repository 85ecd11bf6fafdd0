//! Placing: the scheduler's shares go to their processors, and the running core does its own.

use forebay_crypto::{Job, Verdict};
use forebay_scheduler::{Decision, JobHead, Work};
use forebay_time::Duration;

use crate::check::CHECK;
use crate::databases::Databases;
use crate::engine::Core;
use crate::in_flight::{InFlight, NONE, Placed, Submission};
use crate::pool::RUNNING_CORE;
use crate::turnstile::Turnstile;

/// Finished jobs of one submission that are not booked yet.
#[derive(Clone, Copy)]
pub(crate) struct Booking {
    submission: u32,
    jobs: u32,
    took: Duration,
}

impl Default for Booking {
    fn default() -> Booking {
        Booking { submission: NONE, jobs: 0, took: Duration::ZERO }
    }
}

impl Core {
    /// Places what the scheduler has; whether anything moved.
    pub(crate) fn place(&mut self) -> bool {
        let mut moved = false;
        self.scheduler.moved(self.now);
        let has_slots = self.has_slots();
        loop {
            match self.scheduler.next(self.now) {
                Decision::Dispatch { processor, job, prediction, chosen } => {
                    let (head, jobs) = (job.head, job.parts().len());
                    let placed = Placed { prediction, chosen };
                    let members = job.items().iter().map(|&id| id as u32);
                    moved = true;
                    // A submission is of one suite.
                    let open = self.scratch.open[processor];
                    let other =
                        open != NONE && { self.in_flight.submissions.get(open).head.suite != head.suite };
                    if open != NONE && !other {
                        self.in_flight.submissions.get_mut(open).extend(&head, jobs, &placed, members);
                    } else {
                        let submission = self.in_flight.submissions.open(head, jobs, placed, members);
                        self.scratch.open[processor] = submission;
                        if other {
                            self.dispatch(processor, open);
                        }
                    }
                }
                Decision::Nowhere { job } => {
                    self.retries.extend(job.items().iter().map(|&id| id as u32));
                    moved = true;
                }
                // The window cannot fill if no packet can be admitted.
                Decision::Wait { .. } if !has_slots => self.scheduler.end_of_input(),
                Decision::Blocked { .. } | Decision::Wait { .. } | Decision::Idle => break,
            }
        }
        if moved {
            for processor in 0..self.pool.len() {
                let open = std::mem::replace(&mut self.scratch.open[processor], NONE);
                if open != NONE {
                    self.dispatch(processor, open);
                }
            }
        }
        moved
    }

    /// Hands a submission to its processor.
    fn dispatch(&mut self, processor: usize, index: u32) {
        let limits = &self.limits;
        let submission = self.in_flight.submissions.get_mut(index);
        let predicted = submission.placed.prediction.finish().since(self.now);
        let patience = predicted.times(limits.patience) + limits.slack;
        submission.deadline = self.now + patience.min(limits.hold);
        for &member in &submission.members {
            self.in_flight.slots.get_mut(member).submission = index;
        }
        self.pool.get_mut(processor).submissions.push_back(index);
        if processor == RUNNING_CORE {
            self.local.extend(&submission.members);
        } else {
            self.submit(processor, index);
        }
        self.scheduler.submitted(processor);
    }

    /// Gives copies of a submission's packets to a processor.
    fn submit(&mut self, processor: usize, index: u32) {
        let begun = self.clock.now();
        let mut jobs = std::mem::take(&mut self.scratch.jobs);
        let InFlight { slots, submissions, .. } = &mut self.in_flight;
        let Submission { members, sources, .. } = submissions.get_mut(index);
        let mut misfits = false;
        for &member in &*members {
            let token = slots.token(member);
            let mut copy = self.buffers.take_for(processor);
            let own = slots.job_mut(member);
            if own.packet.has_buffer() && copy.copy_from(&own.packet) {
                let spec = own.spec;
                let packet = std::mem::take(&mut own.packet);
                slots.get_mut(member).place = sources.len() as u32;
                sources.push(packet);
                jobs.push(Job::new(copy, spec, token));
            } else {
                // In a larger buffer than the engine's, and far behind in it.
                misfits = true;
                self.buffers.put(copy);
            }
        }
        let count = jobs.len();
        self.moving.dispatch(count);
        let attached = self.pool.get_mut(processor);
        attached.health.submitted(count);
        attached.processor.submit(self.now, &mut jobs);
        let took = self.clock.now().since(begun);
        self.moving.account(took);
        if jobs.is_empty() && count > 0 {
            let works = members.iter().map(|&member| Work::packet(slots.get(member).len));
            self.pool.learn_feed(processor, works, took, &mut self.scheduler);
        }
        for job in jobs.drain(..) {
            self.refused(processor, job);
        }
        self.scratch.jobs = jobs;
        if misfits {
            self.keep_misfits(processor, index);
        }
    }

    /// Has the running core do the jobs of a submission whose packets could not be copied.
    #[cold]
    fn keep_misfits(&mut self, processor: usize, index: u32) {
        for k in 0..self.in_flight.submissions.get(index).members.len() {
            let member = self.in_flight.submissions.get(index).members[k];
            let slots = &self.in_flight.slots;
            if slots.get(member).submission == index && slots.has_packet(member) {
                self.account(processor, member, Duration::ZERO);
                self.rescue(member);
            }
        }
    }

    /// Does a burst of the running core's share in place.
    pub(crate) fn work(&mut self, shared: &Turnstile<Databases>) -> bool {
        let mut jobs = std::mem::take(&mut self.scratch.jobs);
        while jobs.len() < self.limits.burst {
            let Some(index) = self.next_local() else { break };
            let slots = &mut self.in_flight.slots;
            let (token, spec, verdict) =
                (slots.token(index), slots.job(index).spec, slots.job(index).verdict);
            if verdict == Verdict::Pending
                && let Some(packet) = slots.take_packet(index)
            {
                jobs.push(Job::new(packet, spec, token));
            }
        }
        self.add_checks(&mut jobs);
        let moved = !jobs.is_empty();
        if moved {
            let start = self.clock.now();
            let processor = &mut self.pool.core().processor;
            processor.submit(start, &mut jobs);
            processor.poll(start, &mut jobs);
            self.now = self.clock.now();
            let took = self.now.since(start);
            self.moving.account(took);
            self.share_out(&mut jobs, took);
            self.learn_from_own(&jobs, took);
            let mut booking = Booking::default();
            for job in &mut jobs {
                match job.token as u32 {
                    CHECK => self.finish_check(std::mem::take(job)),
                    _ => self.finish_local(job, &mut booking),
                }
            }
            jobs.clear();
            self.book(RUNNING_CORE, booking);
            self.checks.clear();
            self.accept_held();
            self.release_done(shared);
        }
        self.scratch.jobs = jobs;
        moved
    }

    /// The oldest of the running core's packets, so that neither queue waits for the other for ever.
    #[inline]
    fn next_local(&mut self) -> Option<u32> {
        let (Some(&retry), Some(&local)) = (self.retries.front(), self.local.front()) else {
            return self.retries.pop_front().or_else(|| self.local.pop_front());
        };
        let slots = &self.in_flight.slots;
        let older = slots.get(local).admitted < slots.get(retry).admitted;
        if older { self.local.pop_front() } else { self.retries.pop_front() }
    }

    /// Gives each job of a burst its share of the burst's time, by its length.
    fn share_out(&self, jobs: &mut [Job], took: Duration) {
        // What a packet costs besides its bytes, in bytes; how a burst's time divides is only to be about right.
        const PACKET: u64 = 128;
        let weight = |job: &Job| PACKET + job.packet.len() as u64;
        let all: u64 = jobs.iter().map(weight).sum();
        let per_weight = took.0 / all.max(1);
        jobs.iter_mut().for_each(|job| job.took = Duration(per_weight * weight(job)));
    }

    /// Takes in how long the running core took for a burst, if that was of one kind and alike enough to say so.
    fn learn_from_own(&mut self, jobs: &[Job], took: Duration) {
        let Some(first) = jobs.first().filter(|_| self.pool.len() > 1) else { return };
        let kind = self.sessions.kind(first.spec.session);
        if jobs.iter().all(|job| self.sessions.kind(job.spec.session) == kind) {
            let works = jobs.iter().map(|job| Work::packet(job.packet.len() as u32));
            self.pool.learn(RUNNING_CORE, kind, works, took, &mut self.scheduler);
        }
    }

    #[inline]
    fn finish_local(&mut self, job: &mut Job, booking: &mut Booking) {
        let index = job.token as u32;
        self.in_flight.slots.settle(index, job);
        if job.verdict == Verdict::Pending {
            // The burst was more than the processor takes at a time.
            self.retries.push_back(index);
            return;
        }
        let doubted =
            self.in_flight.slots.get_mut(index).doubted.take().filter(|_| job.verdict == Verdict::Done);
        self.finish(RUNNING_CORE, index, job.took, booking);
        self.finish_slot(index);
        if let Some((processor, verdict)) = doubted
            && let Some(why) = self.pool.get_mut(processor).health.contradicted(verdict)
        {
            self.remove(processor, why);
        }
    }

    /// Books a finished job to its submission and, once that is complete, to the processor.
    pub(crate) fn account(&mut self, processor: usize, index: u32, took: Duration) {
        let mut booking = Booking::default();
        self.finish(processor, index, took, &mut booking);
        self.book(processor, booking);
    }

    /// Notes a finished job, to be booked with others of its submission.
    #[inline]
    pub(crate) fn finish(&mut self, processor: usize, index: u32, took: Duration, booking: &mut Booking) {
        let slot = self.in_flight.slots.get_mut(index);
        let submission = std::mem::replace(&mut slot.submission, NONE);
        if submission == NONE {
            return;
        }
        self.pool.get_mut(processor).stats.size(slot.len);
        if submission != booking.submission {
            let others = std::mem::replace(booking, Booking { submission, ..Booking::default() });
            self.book(processor, others);
        }
        booking.jobs += 1;
        booking.took += took;
    }

    /// Books finished jobs to their submission and, once that is complete, to the processor.
    #[inline]
    pub(crate) fn book(&mut self, processor: usize, booking: Booking) {
        let Booking { submission: place, jobs, took } = booking;
        if place == NONE {
            return;
        }
        let submission = self.in_flight.submissions.get_mut(place);
        submission.took += took;
        submission.remaining -= jobs;
        if submission.remaining == 0 {
            self.close_submission(processor, place);
        }
    }

    fn close_submission(&mut self, processor: usize, place: u32) {
        let attached = self.pool.get_mut(processor);
        if let Some(at) = attached.submissions.iter().position(|&other| other == place) {
            attached.submissions.remove(at);
        }
        let submission = self.in_flight.submissions.get(place);
        let JobHead { work, suite, .. } = submission.head;
        let (placed, took, shares) = (submission.placed, submission.took, submission.shares as usize);
        attached.stats.submission(submission.jobs, &work, &placed, took, self.now);
        if processor != RUNNING_CORE {
            if self.rules.lateness {
                // It was not there at the last poll but one; that this thread asked late is not its fault.
                let late = self.polled_before.since(placed.prediction.finish());
                self.scheduler.report_late(processor, late);
            }
            if took > Duration::ZERO {
                let (slots, members) = (&self.in_flight.slots, &submission.members);
                let works = members.iter().map(|&member| Work::packet(slots.get(member).len));
                self.pool.learn(processor, suite, works, took, &mut self.scheduler);
            }
        }
        // The running core is never asked late.
        let asked = if processor == RUNNING_CORE { self.now } else { self.polled_before };
        self.scheduler.complete_since(processor, shares, asked, self.now);
        self.in_flight.submissions.close(place, &mut self.buffers);
    }
}
