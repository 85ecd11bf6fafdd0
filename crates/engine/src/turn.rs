//! The steps of a turn: answers taken, jobs placed, the running core's own done, deadlines seen to.

use forebay_crypto::{Job, Verdict};
use forebay_ipsec::Next;
use forebay_scheduler::{Decision, JobHead, Work};
use forebay_time::Duration;

use crate::engine::{Engine, Output, RUNNING_CORE, Tally};
use crate::flight::Placed;
use crate::health::Removal;
use crate::stats::REMOVALS;

/// Jobs after which a processor's refitted costs are given to the scheduler.
const REFIT_EVERY: u32 = 64;
/// Times that a job which the running core cannot do goes to other processors again.
const TRIES: u8 = 4;

impl Engine {
    pub(crate) fn collect(&mut self) -> bool {
        let mut moved = false;
        for index in RUNNING_CORE + 1..self.attached.len() {
            let mut done = std::mem::take(&mut self.done);
            self.attached[index].processor.poll(self.now, &mut done);
            moved |= !done.is_empty();
            for job in done.drain(..) {
                self.answer(index, job);
            }
            self.done = done;
        }
        moved
    }

    pub(crate) fn place(&mut self) -> bool {
        let mut moved = false;
        loop {
            let (processor, head, placed) = match self.scheduler.next(self.now) {
                Decision::Dispatch { processor, job, prediction, chosen } => {
                    self.members.clear();
                    self.members.extend(job.items().iter().map(|&id| id as u32));
                    (processor, job.head, Placed { prediction, chosen })
                }
                Decision::Nowhere { job } => {
                    self.rescued.extend(job.items().iter().map(|&id| id as u32));
                    continue;
                }
                // The window cannot fill if no packet can be admitted.
                Decision::Wait { .. } if self.flights.free() == 0 => {
                    self.scheduler.end_of_input();
                    continue;
                }
                Decision::Blocked { .. } | Decision::Wait { .. } | Decision::Idle => return moved,
            };
            moved = true;
            self.dispatch(processor, head, placed);
        }
    }

    fn dispatch(&mut self, processor: usize, head: JobHead, placed: Placed) {
        let patience =
            placed.prediction.finish().since(self.now).times(self.limits.patience) + self.limits.slack;
        let deadline = self.now + patience.min(self.limits.hold);
        let group = self.groups.open(head, placed, deadline, self.members.iter().copied());
        for &index in &self.members {
            self.flights.get_mut(index).group = Some(group);
        }
        self.attached[processor].groups.push_back(group);
        if processor == RUNNING_CORE {
            self.own.extend(&self.members);
            return;
        }
        let mut jobs = std::mem::take(&mut self.jobs);
        for k in 0..self.members.len() {
            let index = self.members[k];
            let token = self.flights.token(index);
            let mut copy = self.buffer();
            let flight = self.flights.get(index);
            if flight.packet.as_ref().is_some_and(|packet| copy.copy_from(packet)) {
                jobs.push(Job::new(copy, flight.spec, token));
            } else {
                // In a larger buffer than the engine's, and far behind in it.
                self.account(processor, index, Duration::ZERO);
                self.rescue(index);
            }
        }
        let attached = &mut self.attached[processor];
        attached.health.submitted(jobs.len());
        attached.processor.submit(self.now, &mut jobs);
        self.scheduler.submitted(processor);
        for job in jobs.drain(..) {
            self.refused(processor, job);
        }
        self.jobs = jobs;
    }

    /// Does a burst of the running core's own jobs in place.
    pub(crate) fn work(&mut self) -> bool {
        let mut jobs = std::mem::take(&mut self.jobs);
        while jobs.len() < self.limits.burst {
            let Some(index) = self.next_own() else { break };
            let token = self.flights.token(index);
            let flight = self.flights.get_mut(index);
            if flight.verdict == Verdict::Pending
                && let Some(packet) = flight.packet.take()
            {
                jobs.push(Job::new(packet, flight.spec, token));
            }
        }
        let moved = !jobs.is_empty();
        if moved {
            let start = self.clock.now();
            let processor = &mut self.attached[RUNNING_CORE].processor;
            processor.submit(start, &mut jobs);
            processor.poll(start, &mut jobs);
            self.now = self.clock.now();
            self.share_out(&mut jobs, self.now.since(start));
            for job in jobs.drain(..) {
                self.finish_own(job);
            }
            self.learn_from_burst();
        }
        self.jobs = jobs;
        moved
    }

    /// The oldest of the running core's flights, so that neither queue waits for the other for ever.
    fn next_own(&mut self) -> Option<u32> {
        let (Some(&rescued), Some(&own)) = (self.rescued.front(), self.own.front()) else {
            return self.rescued.pop_front().or_else(|| self.own.pop_front());
        };
        let older = self.flights.get(own).admitted < self.flights.get(rescued).admitted;
        if older { self.own.pop_front() } else { self.rescued.pop_front() }
    }

    /// Gives each job of a burst its share of the burst's time, by what it was expected to cost.
    fn share_out(&mut self, jobs: &mut [Job], took: Duration) {
        let mut expected = 0;
        for job in &mut *jobs {
            let len = self.flights.get(job.token as u32).len;
            let suite = self.sessions.kind(job.spec.session);
            job.took = self.attached[RUNNING_CORE].costs[suite as usize].of(&Work::packet(len));
            expected += job.took.0;
        }
        let equal = took.0 / (jobs.len() as u64).max(1);
        let scale = took.0 as f64 / expected as f64;
        for job in jobs {
            job.took = Duration(if expected > 0 { (job.took.0 as f64 * scale) as u64 } else { equal });
        }
    }

    fn finish_own(&mut self, job: Job) {
        let index = job.token as u32;
        let flight = self.flights.get_mut(index);
        flight.packet = Some(job.packet);
        flight.verdict = job.verdict;
        if job.verdict == Verdict::Pending {
            // The burst was more than the processor takes at a time.
            self.rescued.push_back(index);
            return;
        }
        let doubted = flight.doubted.take().filter(|_| job.verdict == Verdict::Done);
        self.account(RUNNING_CORE, index, job.took);
        self.release(index);
        if let Some((processor, verdict)) = doubted
            && let Some(why) = self.attached[processor].health.contradicted(verdict)
        {
            self.remove(processor, why);
        }
    }

    /// Takes an answer of a lane or card.
    fn answer(&mut self, processor: usize, job: Job) {
        let attached = &mut self.attached[processor];
        attached.health.answered();
        let Some(index) = self.flights.by_token(job.token) else {
            attached.stats.late += 1;
            self.recycle(job.packet);
            return;
        };
        // What the running core cannot do it cannot check.
        let judged = self.core_does(job.spec.session);
        let attached = &mut self.attached[processor];
        match job.verdict {
            Verdict::Done => {
                if attached.health.done(self.limits.audit_every) && judged && !self.audit(index, &job) {
                    self.recycle(job.packet);
                    self.remove(processor, Removal::WrongResult);
                } else {
                    self.accept(processor, index, job);
                }
            }
            Verdict::AuthFailed if !judged || !attached.health.rejected(self.limits.audit_every) => {
                self.recycle(job.packet);
                self.account(processor, index, job.took);
                self.flights.get_mut(index).verdict = Verdict::AuthFailed;
                self.release(index);
            }
            // A faulty card must not lose packets: the running core has the last word.
            verdict @ (Verdict::AuthFailed | Verdict::Failed | Verdict::Pending) => {
                self.recycle(job.packet);
                self.account(processor, index, job.took);
                self.rescue(index);
                self.flights.get_mut(index).doubted = Some((processor, verdict));
            }
        }
    }

    fn accept(&mut self, processor: usize, index: u32, job: Job) {
        self.account(processor, index, job.took);
        let flight = self.flights.get_mut(index);
        let original = flight.packet.replace(job.packet);
        flight.verdict = Verdict::Done;
        if let Some(original) = original {
            self.recycle(original);
        }
        self.release(index);
    }

    /// A processor did not take a job: the running core does it.
    fn refused(&mut self, processor: usize, job: Job) {
        self.recycle(job.packet);
        let index = job.token as u32;
        self.account(processor, index, Duration::ZERO);
        self.rescue(index);
        let health = &mut self.attached[processor].health;
        health.answered();
        // One that is full has work to do; one that holds nothing has no excuse.
        if health.is_idle() {
            self.flights.get_mut(index).doubted = Some((processor, Verdict::Failed));
        }
    }

    /// Takes a flight from whoever has it, and gives it to the running core; or, where that lacks the
    /// suite, to the scheduler again, a few times. After that the running core fails at it, and that is
    /// the last word.
    fn rescue(&mut self, index: u32) {
        self.flights.disown(index);
        self.stats.redone += 1;
        let flight = self.flights.get_mut(index);
        let session = flight.spec.session;
        flight.tries = flight.tries.saturating_add(1);
        let again = flight.tries <= TRIES && !self.core_does(session) && self.schedule(index);
        if !again {
            self.rescued.push_back(index);
        }
    }

    /// Does a job again on the running core, on a copy, and compares.
    fn audit(&mut self, index: u32, job: &Job) -> bool {
        let mut copy = self.buffer();
        let flight = self.flights.get(index);
        if !flight.packet.as_ref().is_some_and(|packet| copy.copy_from(packet)) {
            self.recycle(copy);
            return true;
        }
        self.stats.audits += 1;
        self.audited.push(Job::new(copy, flight.spec, 0));
        let processor = &mut self.attached[RUNNING_CORE].processor;
        processor.submit(self.now, &mut self.audited);
        processor.poll(self.now, &mut self.audited);
        let Some(own) = self.audited.pop() else { return true };
        let same = own.verdict == job.verdict && own.packet.bytes() == job.packet.bytes();
        self.recycle(own.packet);
        same
    }

    /// Books a finished job to its group and, once that is complete, to the processor.
    fn account(&mut self, processor: usize, index: u32, took: Duration) {
        let flight = self.flights.get_mut(index);
        let Some(group_index) = flight.group.take() else { return };
        let len = flight.len;
        let attached = &mut self.attached[processor];
        attached.stats.size(len);
        let group = self.groups.get_mut(group_index);
        group.took += took;
        group.remaining -= 1;
        if group.remaining > 0 {
            return;
        }
        let (head, placed, took) = (group.head, group.placed, group.took);
        if let Some(place) = attached.groups.iter().position(|&other| other == group_index) {
            attached.groups.remove(place);
        }
        attached.stats.job(&head.work, &placed, took, self.now);
        if self.lateness && processor != RUNNING_CORE {
            // It was not there at the last poll but one; that this thread asked late is not its fault.
            self.scheduler.report_late(processor, self.polled_before.since(placed.prediction.finish()));
        }
        if processor == RUNNING_CORE {
            let tally = &mut self.tallies[head.suite as usize];
            tally.jobs += 1;
            tally.work.packets += head.work.packets;
            tally.work.blocks += head.work.blocks;
            tally.work.bytes += head.work.bytes;
            tally.took += took;
        } else if took > Duration::ZERO {
            self.learn(processor, head.suite, 1, head.work, took);
        }
        self.scheduler.complete(processor, 1, self.now);
        self.groups.close(group_index);
    }

    /// Measures the running core by whole bursts: what it takes for one packet of a burst cannot be told.
    fn learn_from_burst(&mut self) {
        for suite in 0..self.tallies.len() {
            let Tally { jobs, work, took } = std::mem::take(&mut self.tallies[suite]);
            if jobs > 0 {
                self.learn(RUNNING_CORE, suite as u8, jobs, work, took);
            }
        }
    }

    /// Jobs of one batch, `work` being that of all, are taken to be alike.
    fn learn(&mut self, processor: usize, suite: u8, jobs: u32, work: Work, took: Duration) {
        let attached = &mut self.attached[processor];
        let each = Work {
            packets: work.packets / jobs,
            blocks: work.blocks / jobs,
            bytes: work.bytes / u64::from(jobs),
        };
        attached.fits[suite as usize].add(std::iter::repeat_n(each, jobs as usize), took);
        attached.measured += jobs;
        if attached.measured < REFIT_EVERY {
            return;
        }
        attached.measured = 0;
        // All of them: suites that take turns would else meet the same turn for ever.
        for (suite, (cost, fit)) in attached.costs.iter_mut().zip(&attached.fits).enumerate() {
            *cost = fit.cost();
            self.scheduler.set_suite_cost(processor, suite as u8, *cost);
        }
    }

    /// Releases what is first in its order and done.
    pub(crate) fn release(&mut self, index: u32) {
        let session = self.flights.get(index).spec.session.0;
        while let Some(first) = self.order.first(session) {
            let flight = self.flights.get_mut(first);
            if flight.verdict == Verdict::Pending {
                return;
            }
            let (mut spec, tag, admitted, verdict) =
                (flight.spec, flight.tag, flight.admitted, flight.verdict);
            let (mut path, bypass) = (flight.path, flight.bypass);
            let Some(mut packet) = flight.packet.take() else { return };
            if bypass {
                self.order.release(session);
                self.flights.give_back(first);
                let released = self.now;
                self.outputs.push(Output { packet, tag, session: None, result: Ok(()), admitted, released });
                continue;
            }
            let mut unpack = false;
            let result = match self.sad.complete_on(&path, &mut packet, &spec, verdict) {
                Ok(Next::Deliver) => Ok(()),
                Ok(Next::Unpack) => {
                    unpack = true;
                    Ok(())
                }
                Ok(Next::Again) => match self.sad.again(&mut path, &mut packet, &mut spec) {
                    Ok(()) => {
                        self.flights.begin_again(first, path);
                        self.order.go_on(session, spec.session.0, first);
                        self.launch(first, packet, spec);
                        continue;
                    }
                    Err(reason) => Err(reason),
                },
                Err(reason) => Err(reason),
            };
            if let Err(reason) = result {
                self.drops.count(reason);
            }
            self.order.release(session);
            self.flights.give_back(first);
            let released = self.now;
            if unpack {
                self.recycle(packet);
                self.unpack(spec.session, tag, admitted);
                continue;
            }
            if result.is_ok() && self.deliver_divided(spec.session, &packet, tag, admitted) {
                self.recycle(packet);
                continue;
            }
            let session = Some(spec.session);
            self.outputs.push(Output { packet, tag, session, result, admitted, released });
        }
    }

    /// Tells the scheduler who should have answered by now.
    pub(crate) fn see_overdue(&mut self) {
        self.scheduler.fade_lateness(self.now);
        // The running core is never late by this: what it does besides delays its own jobs and others' answers.
        for processor in RUNNING_CORE + 1..self.attached.len() {
            let Some(&group) = self.attached[processor].groups.front() else { continue };
            let overdue = self.now.since(self.groups.get(group).placed.prediction.finish());
            if overdue > Duration::ZERO {
                self.scheduler.report_overdue(processor, overdue);
            }
        }
    }

    /// Takes out processors that have stopped answering, and lets those back that have recovered.
    pub(crate) fn watch(&mut self) {
        for processor in RUNNING_CORE + 1..self.attached.len() {
            let attached = &mut self.attached[processor];
            if attached.health.may_return(self.now) {
                attached.health.returned(self.now);
                attached.stats.out = false;
                self.scheduler.restore_processor(processor);
            }
            // By the time of the last poll: who answered while this thread was held up is not late.
            let late =
                attached.groups.front().is_some_and(|&group| self.groups.get(group).deadline < self.polled);
            if late {
                self.remove(processor, Removal::Silent);
            }
        }
    }

    fn remove(&mut self, processor: usize, why: Removal) {
        self.scheduler.remove_processor(processor);
        let attached = &mut self.attached[processor];
        attached.health.removed(why, self.now);
        attached.stats.removals += 1;
        attached.stats.out = true;
        if self.stats.removals.len() < REMOVALS {
            self.stats.removals.push((self.now, processor, why));
        }
        while let Some(group) = self.attached[processor].groups.pop_front() {
            if self.lateness && why == Removal::Silent {
                let predicted = self.groups.get(group).placed.prediction.finish();
                self.scheduler.report_late(processor, self.now.since(predicted));
            }
            for k in 0..self.groups.get(group).members.len() {
                let index = self.groups.get(group).members[k];
                if self.flights.get(index).group == Some(group) {
                    self.rescue(index);
                }
            }
            self.groups.close(group);
        }
    }
}
