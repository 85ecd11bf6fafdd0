//! Release: packets whose crypto is done, and which are first in their order, are completed and leave.

use forebay_crypto::{Job, JobSpec, Packet, SessionId, Verdict};
use forebay_ipsec::{DropReason, Next, Path, Stop};
use forebay_time::Time;

use crate::engine::{Engine, Output};

impl Engine {
    /// Releases the packets at the head of the order of `session` whose crypto is done.
    pub(crate) fn release(&mut self, session: u32) {
        while self.release_run(session) {}
    }

    /// Completes a run of packets together. Returns whether there may be more.
    fn release_run(&mut self, session: u32) -> bool {
        let mut run = std::mem::take(&mut self.scratch.run);
        let mut slots = std::mem::take(&mut self.scratch.slots);
        let in_flight = &mut self.in_flight;
        let mut unusual = None;
        while let Some(first) = in_flight.reorder.first(session) {
            let slot = in_flight.slots.get_mut(first);
            if slot.verdict == Verdict::Pending {
                break;
            }
            if slot.bypass || !slot.path.sas().is_empty() {
                unusual = Some(first);
                break;
            }
            let Some(packet) = slot.packet.take() else { break };
            self.stats.released += 1;
            self.stats.held += self.now.since(slot.done);
            run.push(Job { verdict: slot.verdict, ..Job::new(packet, slot.spec, slot.tag) });
            slots.push((first, slot.admitted));
            in_flight.reorder.release(session);
        }
        let more = if run.is_empty() { unusual.is_some() } else { true };
        if run.is_empty() {
            if let Some(index) = unusual {
                self.release_one(session, index);
            }
        } else {
            self.complete_run(session, &mut run, &mut slots);
        }
        run.clear();
        slots.clear();
        (self.scratch.run, self.scratch.slots) = (run, slots);
        more
    }

    /// Completes the packets of `run`, which have left their queue, and lets them out.
    fn complete_run(&mut self, session: u32, run: &mut Vec<Job>, slots: &mut Vec<(u32, Time)>) {
        let mut from = 0;
        let result = loop {
            match self.sad.complete_burst(&mut run[from..]) {
                Ok(()) => break None,
                Err((place, stop)) => {
                    from += place;
                    match stop {
                        // What is behind it may have to wait for it.
                        Stop::Again | Stop::Unpack => break Some(stop),
                        Stop::Drop(reason) => self.scratch.dropped.push((from, reason)),
                        Stop::Bypass | Stop::Remote(_) => {
                            self.scratch.dropped.push((from, DropReason::InError))
                        }
                    }
                    from += 1;
                }
            }
        };
        let complete = if result.is_some() { from } else { run.len() };
        let mut dropped = std::mem::take(&mut self.scratch.dropped);
        let mut drops = dropped.drain(..).peekable();
        let mut rest = run.drain(..).zip(slots.drain(..)).enumerate();
        for (place, (job, (slot, admitted))) in rest.by_ref().take(complete) {
            self.in_flight.slots.give_back(slot);
            let result = match drops.next_if(|(at, _)| *at == place) {
                Some((_, reason)) => Err(reason),
                None => Ok(Next::Deliver),
            };
            self.give_out(job.packet, job.spec.session, job.token, admitted, result);
        }
        drop(drops);
        self.scratch.dropped = dropped;
        let Some(stop) = result else { return };
        if let Some((_, (job, (slot, admitted)))) = rest.next() {
            // Those behind it are not complete: they go back to where they were.
            for (_, (job, (slot, _))) in rest.rev() {
                self.in_flight.slots.get_mut(slot).packet = Some(job.packet);
                self.in_flight.reorder.put_back(session, slot);
            }
            if stop == Stop::Again {
                self.in_flight.reorder.put_back(session, slot);
                self.continue_in(session, slot, Path::default(), job.packet, job.spec);
            } else {
                self.in_flight.slots.give_back(slot);
                self.give_out(job.packet, job.spec.session, job.token, admitted, Ok(Next::Unpack));
            }
        }
    }

    /// Releases a packet that a policy lets pass, or that has been through another SA before.
    #[cold]
    fn release_one(&mut self, session: u32, index: u32) {
        let slot = self.in_flight.slots.get_mut(index);
        let (spec, path, verdict) = (slot.spec, slot.path, slot.verdict);
        let (tag, admitted, bypass) = (slot.tag, slot.admitted, slot.bypass);
        let Some(mut packet) = slot.packet.take() else { return };
        if bypass {
            self.in_flight.reorder.release(session);
            self.in_flight.slots.give_back(index);
            let released = self.now;
            let output = Output { packet, tag, session: None, result: Ok(()), admitted, released };
            return self.outward.outputs.push(output);
        }
        let result = self.sad.complete_on(&path, &mut packet, &spec, verdict);
        if result == Ok(Next::Again) {
            return self.continue_in(session, index, path, packet, spec);
        }
        self.in_flight.reorder.release(session);
        self.in_flight.slots.give_back(index);
        self.give_out(packet, spec.session, tag, admitted, result);
    }

    /// Lets a packet, which is first in the order of `session`, go on through its next SA.
    fn continue_in(
        &mut self,
        session: u32,
        index: u32,
        mut path: Path,
        mut packet: Packet,
        mut spec: JobSpec,
    ) {
        match self.sad.again(&mut path, &mut packet, &mut spec) {
            Ok(()) => {
                self.in_flight.slots.begin_again(index, path);
                self.in_flight.reorder.go_on(session, spec.session.0, index);
                self.launch(index, packet, spec);
            }
            Err(reason) => {
                let slot = self.in_flight.slots.get(index);
                let (tag, admitted) = (slot.tag, slot.admitted);
                self.in_flight.reorder.release(session);
                self.in_flight.slots.give_back(index);
                self.give_out(packet, spec.session, tag, admitted, Err(reason));
            }
        }
    }

    /// Lets a packet out that is complete, or that was dropped.
    #[inline]
    pub(crate) fn give_out(
        &mut self,
        packet: Packet,
        session: SessionId,
        tag: u64,
        admitted: Time,
        result: Result<Next, DropReason>,
    ) {
        let result = match result {
            Ok(Next::Unpack) => {
                self.buffers.put(packet);
                return self.unpack(session, tag, admitted);
            }
            Ok(_) => Ok(()),
            Err(reason) => {
                self.drops.count(reason);
                Err(reason)
            }
        };
        if result.is_ok()
            && packet.len() > self.sad.whole_up_to(session)
            && self.deliver_divided(session, &packet, tag, admitted)
        {
            return self.buffers.put(packet);
        }
        let (session, released) = (Some(session), self.now);
        self.outward.outputs.push(Output { packet, tag, session, result, admitted, released });
    }

    /// Gives out the packets that an aggregate brought.
    pub(crate) fn unpack(&mut self, session: SessionId, tag: u64, admitted: Time) {
        let (now, released) = (self.sa_time(), self.now);
        loop {
            let mut packet = self.buffers.take();
            match self.sad.take_inner(now, session, &mut packet) {
                Some(Ok(())) => {
                    let session = Some(session);
                    let output = Output { packet, tag, session, result: Ok(()), admitted, released };
                    self.outward.outputs.push(output);
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
        session: SessionId,
        packet: &Packet,
        tag: u64,
        admitted: Time,
    ) -> bool {
        let Some(fragments) = self.sad.divide_sealed(session, packet.bytes()) else { return false };
        let released = self.now;
        for packet in self.edges.pieces(fragments, &mut self.buffers) {
            let session = Some(session);
            self.outward.outputs.push(Output { packet, tag, session, result: Ok(()), admitted, released });
        }
        true
    }
}
