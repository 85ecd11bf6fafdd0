//! Release: packets whose crypto is done, and whose tickets are next, are completed and leave.

use std::cmp::Ordering;

use forebay_crypto::{Job, Packet, SessionId, Verdict};
use forebay_ipsec::{DropReason, Next, Stop};
use forebay_planted::{Fault, planted};
use forebay_time::Time;

use crate::databases::Databases;
use crate::engine::{Core, Output};
use crate::tickets::Run;

/// Where a burst has more runs than so many, what other cores may have changed last is loaded for all of them before the first is
/// completed.
const FEW: usize = 4;

impl Core {
    /// Completes the runs of a burst whose crypto is done, in order, with all that is parked behind them; leaves the
    /// burst empty. A run whose turn has not come is parked, and one that was overtaken is dropped.
    pub(crate) fn release(&mut self, db: &mut Databases, burst: &mut Vec<Job>, runs: &mut Vec<Run>) {
        if runs.len() > FEW && db.cores > 1 && !db.tickets.is_total() {
            db.ipsec.touch(runs.iter().map(|run| SessionId(run.line)));
            runs.iter().for_each(|run| db.tickets.touch(run.line));
        }
        let mut jobs = burst.as_mut_slice();
        for run in runs.drain(..) {
            let (own, rest) = std::mem::take(&mut jobs).split_at_mut(run.len as usize);
            jobs = rest;
            match db.tickets.compare(&run) {
                Ordering::Equal => {
                    self.complete(db, &run, own);
                    if !planted(Fault::ParkedForgotten) {
                        self.release_parked(db, run.line);
                    }
                }
                Ordering::Greater => db.tickets.park(run, own, self.now),
                Ordering::Less if planted(Fault::OvertakenSent) => {
                    let _ = db.ipsec.complete_burst(own);
                    self.deliver(db, own, run.admitted);
                }
                Ordering::Less => self.drop_overtaken(db, &run, own),
            }
        }
        burst.clear();
        self.look_at_backlog(db);
    }

    /// Completes what is parked in a line and next.
    #[inline]
    pub(crate) fn release_parked(&mut self, db: &mut Databases, line: u32) {
        while let Some((run, mut jobs, since)) = db.tickets.take_parked(line) {
            self.stats.released += jobs.len() as u64;
            self.stats.held += self.now.since(since).times(jobs.len() as u64);
            self.complete(db, &run, &mut jobs);
            db.tickets.give_back(jobs);
        }
    }

    /// Completes a run whose turn it is.
    #[inline]
    fn complete(&mut self, db: &mut Databases, run: &Run, jobs: &mut [Job]) {
        if !run.bypass && run.path.sas().is_empty() && run.last {
            match db.ipsec.complete_burst(jobs) {
                Ok(()) => {
                    db.tickets.advance(run.line, run.len);
                    self.deliver(db, jobs, run.admitted);
                }
                Err(stopped) => self.complete_unusual(db, run, jobs, stopped),
            }
        } else {
            self.complete_singly(db, run, jobs);
        }
    }

    /// Lets out packets that are complete.
    #[inline]
    fn deliver(&mut self, db: &mut Databases, jobs: &mut [Job], admitted: Time) {
        let released = self.now;
        let Some(first) = jobs.first().map(|job| job.spec.session) else { return };
        let longest = db.ipsec.whole_up_to(first);
        let is_one_sa = !db.tickets.is_total() || jobs.iter().all(|job| job.spec.session == first);
        let is_whole = longest == usize::MAX || jobs.iter().all(|job| job.packet.len() <= longest);
        if is_one_sa && is_whole {
            let session = Some(first);
            let outputs = jobs.iter_mut().map(|Job { packet, token, .. }| {
                let (packet, tag) = (std::mem::take(packet), *token);
                Output { packet, tag, session, result: Ok(()), admitted, released }
            });
            return db.outputs.extend(self.cpu, session, outputs);
        }
        // In total order a run may be of several SAs.
        let (mut session, mut whole) = (None, usize::MAX);
        for Job { packet, spec, token: tag, .. } in jobs {
            let (packet, tag) = (std::mem::take(packet), *tag);
            if session != Some(spec.session) {
                (session, whole) = (Some(spec.session), db.ipsec.whole_up_to(spec.session));
            }
            if packet.len() > whole && self.deliver_divided(db, spec.session, &packet, tag, admitted) {
                self.buffers.put(packet);
                continue;
            }
            db.outputs.push(self.cpu, Output { packet, tag, session, result: Ok(()), admitted, released });
        }
    }

    /// Completes a run in which packets are dropped, go through another SA, or hold an aggregate.
    #[cold]
    fn complete_unusual(&mut self, db: &mut Databases, run: &Run, jobs: &mut [Job], stopped: (usize, Stop)) {
        let (mut from, mut stopped) = (0, Some(stopped));
        while let Some((place, stop)) = stopped {
            let at = from + place;
            db.tickets.advance(run.line, place as u32);
            self.deliver(db, &mut jobs[from..at], run.admitted);
            let result = match stop {
                Stop::Again => Ok(Next::Again),
                Stop::Unpack => Ok(Next::Unpack),
                Stop::Drop(reason) => Err(reason),
                Stop::Bypass => Err(DropReason::InError),
            };
            from = at + 1;
            if !self.go_on(db, run, &mut jobs[at], result) {
                return self.park_behind(db, run, from, jobs);
            }
            stopped = db.ipsec.complete_burst(&mut jobs[from..]).err();
        }
        db.tickets.advance(run.line, (jobs.len() - from) as u32);
        self.deliver(db, &mut jobs[from..], run.admitted);
    }

    /// Completes packets that a policy bypasses, or that have been through another SA before.
    #[cold]
    fn complete_singly(&mut self, db: &mut Databases, run: &Run, jobs: &mut [Job]) {
        for at in 0..jobs.len() {
            let job = &mut jobs[at];
            if run.bypass {
                let (packet, tag) = (std::mem::take(&mut job.packet), job.token);
                let (admitted, released) = (run.admitted, self.now);
                db.outputs.push(
                    self.cpu,
                    Output { packet, tag, session: None, result: Ok(()), admitted, released },
                );
                db.tickets.advance(run.line, 1);
                continue;
            }
            let result = db.ipsec.complete_on(&run.path, &mut job.packet, &job.spec, job.verdict);
            if !self.go_on(db, run, &mut jobs[at], result) {
                return self.park_behind(db, run, at + 1, jobs);
            }
        }
    }

    /// Does what is left for a packet that is complete for one SA. Whether the packets behind it may go on: where all
    /// packets keep their order, they wait until one that goes through a further SA is through.
    fn go_on(
        &mut self,
        db: &mut Databases,
        run: &Run,
        job: &mut Job,
        result: Result<Next, DropReason>,
    ) -> bool {
        let (packet, tag) = (std::mem::take(&mut job.packet), job.token);
        if result == Ok(Next::Again) {
            let waits = self.continue_in(db, run, &job.spec, packet, tag);
            if waits && db.tickets.is_total() {
                return false;
            }
        } else {
            self.give_out(db, packet, job.spec.session, tag, run.admitted, result);
        }
        db.tickets.advance(run.line, u32::from(run.last));
        true
    }

    /// Parks what is left of a run behind a packet that keeps its ticket.
    fn park_behind(&mut self, db: &mut Databases, run: &Run, from: usize, jobs: &mut [Job]) {
        let rest = &mut jobs[from..];
        if !rest.is_empty() {
            let ticket = run.ticket.wrapping_add(from as u32);
            db.tickets.park(Run { ticket, len: rest.len() as u32, ..*run }, rest, self.now);
        }
    }

    /// Drops packets of a core that was held up for so long that others were let past: their numbers are not used.
    #[cold]
    fn drop_overtaken(&mut self, db: &mut Databases, run: &Run, jobs: &mut [Job]) {
        for job in jobs {
            let mut packet = std::mem::take(&mut job.packet);
            if !run.bypass {
                let _ = db.ipsec.complete(&mut packet, &job.spec, Verdict::Failed);
            }
            let result = Err(DropReason::Overtaken);
            self.give_out(db, packet, job.spec.session, job.token, run.admitted, result);
        }
    }

    /// Lets those past that have waited for too long for a core which is held up.
    #[cold]
    pub(crate) fn overtake(&mut self, db: &mut Databases) -> bool {
        let mut moved = false;
        while let Some((line, skipped)) = db.tickets.overtake(self.limits.overtake) {
            self.stats.overtaken += u64::from(skipped);
            self.release_parked(db, line);
            moved = true;
        }
        moved
    }

    /// Lets a packet out that is complete, or that was dropped.
    #[inline]
    pub(crate) fn give_out(
        &mut self,
        db: &mut Databases,
        packet: Packet,
        session: SessionId,
        tag: u64,
        admitted: Time,
        result: Result<Next, DropReason>,
    ) {
        let result = match result {
            Ok(Next::Unpack) => {
                self.buffers.put(packet);
                return self.unpack(db, session, tag, admitted);
            }
            Ok(_) => Ok(()),
            Err(reason) => {
                self.drops.count(reason);
                Err(reason)
            }
        };
        if result.is_ok()
            && packet.len() > db.ipsec.whole_up_to(session)
            && self.deliver_divided(db, session, &packet, tag, admitted)
        {
            return self.buffers.put(packet);
        }
        let (session, released) = (Some(session), self.now);
        db.outputs.push(self.cpu, Output { packet, tag, session, result, admitted, released });
    }

    /// Gives out the packets that an aggregate brought.
    pub(crate) fn unpack(&mut self, db: &mut Databases, session: SessionId, tag: u64, admitted: Time) {
        let (now, released) = (self.sa_time(db), self.now);
        loop {
            let mut packet = self.buffers.take();
            match db.ipsec.take_inner(now, session, &mut packet) {
                Some(Ok(())) => {
                    let session = Some(session);
                    db.outputs
                        .push(self.cpu, Output { packet, tag, session, result: Ok(()), admitted, released });
                }
                Some(Err(reason)) => {
                    self.drops.count(reason);
                    self.buffers.put(packet);
                }
                None => return self.buffers.put(packet),
            }
        }
    }

    /// Delivers a sealed packet in fragments if its path takes it only so; whether it did.
    #[cold]
    pub(crate) fn deliver_divided(
        &mut self,
        db: &mut Databases,
        session: SessionId,
        packet: &Packet,
        tag: u64,
        admitted: Time,
    ) -> bool {
        let Some(fragments) = db.ipsec.divide_sealed(session, packet.bytes()) else { return false };
        let released = self.now;
        for packet in db.edges.pieces(fragments, &mut self.buffers) {
            let session = Some(session);
            db.outputs.push(self.cpu, Output { packet, tag, session, result: Ok(()), admitted, released });
        }
        true
    }
}
