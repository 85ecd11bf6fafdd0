//! The running core by itself: a prepared burst goes through crypto and complete in place, at once.
//!
//! Such a burst is never in flight: it needs no slot, no lock, no allocation and no copy.

use forebay_crypto::{Job, Verdict};
use forebay_ipsec::{DropReason, Next, Path, Stop};
use forebay_scheduler::Work;
use forebay_time::Time;

use crate::engine::{Engine, Output};
use crate::pool::RUNNING_CORE;

/// How many times a processor that has done only a part of a burst is given the rest.
const ROUNDS_MAX: usize = 64;

impl Engine {
    /// Does the jobs of `burst` and completes them, in order; leaves it empty.
    #[inline]
    pub(crate) fn do_in_place(&mut self, burst: &mut Vec<Job>) {
        let begun = self.now;
        self.compute(burst);
        self.now = self.clock.now();
        let took = self.now.since(begun);
        self.moving.account(took);
        self.pool.core().stats.in_place(burst, took);
        if self.pool.len() > 1
            && let Some(first) = burst.first()
        {
            let kind = self.sessions.kind(first.spec.session);
            let jobs = burst.iter().map(|job| Work::packet(job.packet.len() as u32));
            self.pool.learn(RUNNING_CORE, kind, jobs, took, &mut self.scheduler);
        }
        match self.sad.complete_burst(burst) {
            Ok(()) => self.deliver_all(burst, begun),
            Err(stopped) => self.complete_unusual(burst, stopped, begun),
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

    #[inline]
    fn deliver_all(&mut self, burst: &mut Vec<Job>, admitted: Time) {
        let released = self.now;
        // Packets of one SA mostly.
        let (mut session, mut whole) = (None, usize::MAX);
        for Job { packet, spec, token: tag, .. } in burst.drain(..) {
            if session != Some(spec.session) {
                (session, whole) = (Some(spec.session), self.sad.whole_up_to(spec.session));
            }
            if packet.len() > whole && self.deliver_divided(spec.session, &packet, tag, admitted) {
                self.buffers.put(packet);
                continue;
            }
            self.outward.outputs.push(Output { packet, tag, session, result: Ok(()), admitted, released });
        }
    }

    /// Completes a burst in which packets are dropped, go through another SA, or hold an aggregate. These are found
    /// first, so that packets that go on do so together; then all leave in order.
    #[cold]
    fn complete_unusual(&mut self, burst: &mut Vec<Job>, mut stopped: (usize, Stop), admitted: Time) {
        let mut fates = std::mem::take(&mut self.scratch.fates);
        fates.resize(burst.len(), Ok(Next::Deliver));
        let (mut from, mut again) = (0, Vec::new());
        loop {
            let (place, stop) = stopped;
            from += place;
            match stop {
                Stop::Drop(reason) => fates[from] = Err(reason),
                Stop::Unpack => fates[from] = Ok(Next::Unpack),
                Stop::Again => again.push((from, Path::default())),
                // Nothing passes or goes elsewhere once it has been through an SA.
                Stop::Bypass | Stop::Remote(_) => fates[from] = Err(DropReason::InError),
            }
            from += 1;
            match self.sad.complete_burst(&mut burst[from..]) {
                Ok(()) => break,
                Err(next) => stopped = next,
            }
        }
        while !again.is_empty() {
            self.divide_in_place(burst, &mut again, &mut fates);
            self.go_on(burst, &mut again, &mut fates);
        }
        for (job, fate) in burst.drain(..).zip(fates.drain(..)) {
            // A fragment that waits for others has given its buffer back.
            if !job.packet.has_buffer() {
                continue;
            }
            self.give_out(job.packet, job.spec.session, job.token, admitted, fate);
        }
        self.scratch.fates = fates;
    }

    /// Takes packets, by their places, through their next SAs; those that go on after that stay in `again`.
    fn go_on(
        &mut self,
        burst: &mut [Job],
        again: &mut Vec<(usize, Path)>,
        fates: &mut [Result<Next, DropReason>],
    ) {
        let mut jobs = std::mem::take(&mut self.scratch.again);
        again.retain_mut(|(place, path)| {
            let job = &mut burst[*place];
            let gathered = self.gather_nested(&job.spec, &mut job.packet);
            let goes_on = gathered.and_then(|whole| match whole {
                true => self.sad.again(path, &mut job.packet, &mut job.spec).map(|()| true),
                false => Ok(false),
            });
            match goes_on {
                Ok(false) => {
                    self.buffers.put(std::mem::take(&mut job.packet));
                    false
                }
                Ok(true) => {
                    let packet = std::mem::take(&mut job.packet);
                    jobs.push(Job::new(packet, job.spec, *place as u64));
                    true
                }
                Err(reason) => {
                    fates[*place] = Err(reason);
                    false
                }
            }
        });
        self.compute(&mut jobs);
        jobs.sort_by_key(|job| job.token);
        for job in jobs.drain(..) {
            let at = &mut burst[job.token as usize];
            (at.packet, at.verdict) = (job.packet, job.verdict);
        }
        self.scratch.again = jobs;
        again.retain(|(place, path)| {
            let job = &mut burst[*place];
            fates[*place] = self.sad.complete_on(path, &mut job.packet, &job.spec, job.verdict);
            fates[*place] == Ok(Next::Again)
        });
    }
}
