//! Release: packets whose crypto is done, and which are first in their order, are completed and leave.

use forebay_crypto::{JobSpec, Packet, SessionId, Verdict};
use forebay_ipsec::{DropReason, Next, Path, Stop};
use forebay_time::{Duration, Time};

use crate::engine::{Engine, Output};
use crate::in_flight::{InFlight, Slot};

impl Engine {
    /// Releases the packets at the head of the order of `session` whose crypto is done.
    pub(crate) fn release(&mut self, session: u32) {
        while self.release_run(session) {}
    }

    /// Completes a run of packets together: those at the head of the order that are done and stand side by side.
    /// Returns whether there may be more.
    fn release_run(&mut self, session: u32) -> bool {
        let InFlight { reorder, slots, .. } = &mut self.in_flight;
        let Some(first) = reorder.first(session) else { return false };
        let (now, mut held, mut count) = (self.now, Duration::ZERO, 0);
        reorder.release_while(session, |index| {
            let slot = slots.get(index);
            let is_done = slots.job(index).verdict != Verdict::Pending && slots.has_packet(index);
            let joins = index == first + count && is_done && !slot.is_unusual();
            if joins {
                held += now.since(slot.done);
                count += 1;
            }
            joins
        });
        if count == 0 {
            let is_done = slots.job(first).verdict != Verdict::Pending;
            return is_done && slots.get(first).is_unusual() && self.release_one(session, first);
        }
        self.stats.released += u64::from(count);
        self.stats.held += held;
        match self.sad.complete_burst(slots.jobs_mut(first, count as usize)) {
            Ok(()) => self.deliver_run(first, count),
            Err(stopped) => self.complete_unusual_run(session, first, count, stopped),
        }
        true
    }

    /// Lets out packets that are complete.
    #[inline]
    fn deliver_run(&mut self, first: u32, count: u32) {
        let released = self.now;
        // Packets of one SA mostly.
        let (mut session, mut whole) = (None, usize::MAX);
        for index in first..first + count {
            let slots = &mut self.in_flight.slots;
            let admitted = slots.get(index).admitted;
            let job = slots.job_mut(index);
            let (packet, tag) = (std::mem::take(&mut job.packet), job.token);
            let its = job.spec.session;
            slots.give_back(index);
            if session != Some(its) {
                (session, whole) = (Some(its), self.sad.whole_up_to(its));
            }
            if packet.len() > whole && self.deliver_divided(its, &packet, tag, admitted) {
                self.buffers.put(packet);
                continue;
            }
            self.outward.outputs.push(Output { packet, tag, session, result: Ok(()), admitted, released });
        }
    }

    /// Completes a run in which packets are dropped, go through another SA, or hold an aggregate. All have left their
    /// queue; those behind one that others may have to wait for go back to it.
    #[cold]
    fn complete_unusual_run(&mut self, session: u32, first: u32, count: u32, stopped: (usize, Stop)) {
        let end = first + count;
        let (mut from, mut stopped) = (first, Some(stopped));
        while let Some((place, stop)) = stopped {
            let at = from + place as u32;
            self.deliver_run(from, at - from);
            from = at + 1;
            let slots = &mut self.in_flight.slots;
            let admitted = slots.get(at).admitted;
            let job = slots.job_mut(at);
            let (packet, tag, spec) = (std::mem::take(&mut job.packet), job.token, job.spec);
            let result = match stop {
                Stop::Again | Stop::Unpack => {
                    (from..end).rev().for_each(|index| self.in_flight.reorder.put_back(session, index));
                    if stop == Stop::Again {
                        self.in_flight.reorder.put_back(session, at);
                        return self.continue_in(session, at, Path::default(), packet, spec);
                    }
                    slots.give_back(at);
                    return self.give_out(packet, spec.session, tag, admitted, Ok(Next::Unpack));
                }
                Stop::Drop(reason) => Err(reason),
                Stop::Bypass | Stop::Remote(_) => Err(DropReason::InError),
            };
            slots.give_back(at);
            self.give_out(packet, spec.session, tag, admitted, result);
            stopped =
                self.sad.complete_burst(self.in_flight.slots.jobs_mut(from, (end - from) as usize)).err();
        }
        self.deliver_run(from, end - from);
    }

    /// Releases a packet that a policy lets pass, or that has been through another SA before; whether it was there.
    #[cold]
    fn release_one(&mut self, session: u32, index: u32) -> bool {
        let slots = &mut self.in_flight.slots;
        let (Slot { path, admitted, bypass, .. }, job) = (slots.get(index), slots.job(index));
        let (path, admitted, bypass) = (*path, *admitted, *bypass);
        let (spec, verdict, tag) = (job.spec, job.verdict, job.token);
        let Some(mut packet) = slots.take_packet(index) else { return false };
        if bypass {
            self.in_flight.reorder.release(session);
            self.in_flight.slots.give_back(index);
            let released = self.now;
            let output = Output { packet, tag, session: None, result: Ok(()), admitted, released };
            self.outward.outputs.push(output);
            return true;
        }
        let result = self.sad.complete_on(&path, &mut packet, &spec, verdict);
        if result == Ok(Next::Again) {
            self.continue_in(session, index, path, packet, spec);
            return true;
        }
        self.in_flight.reorder.release(session);
        self.in_flight.slots.give_back(index);
        self.give_out(packet, spec.session, tag, admitted, result);
        true
    }

    /// Lets a packet, which is first in the order of `session`, go on through its next SA.
    fn continue_in(&mut self, session: u32, index: u32, path: Path, mut packet: Packet, spec: JobSpec) {
        match self.gather_nested(&spec, &mut packet) {
            Ok(true) => {}
            Ok(false) => {
                self.in_flight.reorder.release(session);
                self.in_flight.slots.give_back(index);
                return self.buffers.put(packet);
            }
            Err(reason) => return self.drop_in_flight(session, index, packet, &spec, reason),
        }
        match self.nested_pieces(&spec, &packet) {
            None => _ = self.continue_whole(session, index, path, packet, spec),
            Some(pieces) => {
                self.buffers.put(packet);
                self.continue_in_pieces(session, index, path, spec, pieces);
            }
        }
    }

    /// The same for a packet that goes on as it is; whether it does.
    pub(crate) fn continue_whole(
        &mut self,
        session: u32,
        index: u32,
        mut path: Path,
        mut packet: Packet,
        mut spec: JobSpec,
    ) -> bool {
        match self.sad.again(&mut path, &mut packet, &mut spec) {
            Ok(()) => {
                self.in_flight.slots.begin_again(index, path);
                self.in_flight.reorder.go_on(session, spec.session.0, index);
                self.launch(index, packet, spec);
                true
            }
            Err(reason) => {
                self.drop_in_flight(session, index, packet, &spec, reason);
                false
            }
        }
    }

    /// Drops a packet that is first in the order of `session`.
    pub(crate) fn drop_in_flight(
        &mut self,
        session: u32,
        index: u32,
        packet: Packet,
        spec: &JobSpec,
        reason: DropReason,
    ) {
        let slots = &self.in_flight.slots;
        let (tag, admitted) = (slots.job(index).token, slots.get(index).admitted);
        self.in_flight.reorder.release(session);
        self.in_flight.slots.give_back(index);
        self.give_out(packet, spec.session, tag, admitted, Err(reason));
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
