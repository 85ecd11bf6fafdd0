//! What comes out of the engine goes to its link.

use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_crypto::{Direction, SessionId};
use forebay_engine::{Engine, Output};
use forebay_ipsec::{DropReason, Ipsec};
use forebay_planted::{Fault, planted};
use forebay_time::{Duration, Time};

use super::Worker;
use crate::intake::{self, FROM_INSIDE};
use crate::port::{Outgoing, Port, Queue};
use crate::stations::{Outgoings, Shared};

/// Times that a lane is looked at again for what others have left in it meanwhile.
const LOOKS: usize = 4;

/// How long the kernel may take with what one CPU has sent, beyond which another may send packets of the same SAs.
const SETTLES: Duration = Duration::from_millis(4);

/// How long packets wait for the worker that should send them.
const ABSENT: Duration = Duration::from_millis(50);

/// An SA as the packets that come out see it.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    session: SessionId,
    direction: Direction,
    /// The number up to which it has received, if that is not noted.
    unnoted: Option<u64>,
}

impl Worker {
    /// Sends what is through, of all lanes that nobody else is at; whether anything moved.
    pub(super) fn give_out(&mut self) -> bool {
        let mut moved = false;
        let shared = self.shared.clone();
        let notes = shared.notes.load(Ordering::Acquire);
        let unsent = || shared.stations[self.index].ports().any(|port| port.pass().link.unsent());
        let all = self.notes_seen != notes || unsent();
        if all || self.engine.untaken() > 0 || shared.waiting() > 0 {
            self.notes_seen = notes;
            for place in 0..shared.lanes.len() {
                // Its own first, so that cores are not at one lane together.
                let place = (self.index + place) % shared.lanes.len();
                let waits = || shared.lanes[place].waiting.load(Ordering::Relaxed) > 0;
                if all || !self.engine.is_empty_lane(place) || waits() {
                    moved |= self.send_lane(&shared, place);
                }
            }
        }
        self.answer(&shared);
        moved
    }

    fn send_lane(&mut self, shared: &Shared, place: usize) -> bool {
        let lane = &shared.lanes[place];
        let Some(mut packets) = lane.packets.try_pass() else { return false };
        let now = self.engine.clock().now();
        if !self.may_send(shared, place, &mut packets, now) {
            return false;
        }
        let mut moved = false;
        for _ in 0..LOOKS {
            self.fill_lane(shared, place, &mut packets);
            let Outgoings { inside, outside, .. } = &mut *packets;
            let station = &shared.stations[self.index];
            let queues = std::iter::once(inside).chain(outside);
            let mut sent = false;
            for (port, queue) in station.ports().zip(queues) {
                sent |= send(&mut self.engine, &mut port.pass(), queue);
            }
            moved |= sent;
            if sent {
                packets.sent = self.engine.clock().now();
            }
            let sealed: usize = packets.outside.iter().map(Queue::len).sum();
            // Mostly nothing waits, and the others go on without a look at who has written that.
            put(&lane.sealed, sealed);
            put(&lane.waiting, sealed + packets.inside.len());
            if !sent || self.engine.untaken() == 0 {
                break;
            }
        }
        moved
    }

    /// Whether this worker may send the packets of a lane; if not, it wakes the one that should.
    fn may_send(&self, shared: &Shared, place: usize, packets: &mut Outgoings, now: Time) -> bool {
        let workers = shared.stations.len();
        let (sender, since, limit) = match place < workers {
            // For good, unless that one does not come.
            true => (place, packets.left, ABSENT),
            false => (packets.sender, Some(packets.sent), SETTLES),
        };
        let is_over = since.is_some_and(|since| now.since(since) >= limit);
        if sender != self.index && packets.held.len() == 0 && self.engine.is_empty_lane(place) {
            packets.left = None;
            return false;
        }
        if sender != self.index && !is_over {
            packets.left.get_or_insert(now);
            shared.stations[sender].bell.ring_for_work();
            return false;
        }
        packets.left = None;
        packets.sender = self.index;
        true
    }

    /// Puts what has left the engine into a lane, each packet behind those for its link.
    fn fill_lane(&mut self, shared: &Shared, place: usize, packets: &mut Outgoings) {
        let mut outputs = std::mem::take(&mut self.outputs);
        let mut fresh = std::mem::take(&mut self.fresh);
        let mut sas = std::mem::take(&mut self.seen);
        // Who waits and who goes is decided at one look: a limit that is raised between two looks would let packets go
        // before those that wait.
        let noted = self.engine.take_outputs(place, &mut fresh, |sad, fresh| {
            if packets.held.len() > 0 && !planted(Fault::HeldNotReleased) {
                packets.held.look_again();
                packets.held.release(sad, &mut outputs);
            }
            let noted = outputs.len();
            outputs.append(fresh);
            see(sad, &outputs, shared.holds.load(Ordering::Acquire), &mut sas);
            noted
        });
        self.fresh = fresh;
        let mut of = sas.iter();
        let mut seen = of.next();
        for (at, output) in outputs.drain(..).enumerate() {
            // One for each run of packets of an SA.
            while let (Some(one), Some(session)) = (seen, output.session)
                && one.session != session
            {
                seen = of.next();
            }
            let origin = if output.tag == FROM_INSIDE { Direction::Seal } else { Direction::Open };
            let sa = seen.filter(|seen| output.session == Some(seen.session));
            let direction = sa.map_or(origin, |sa| sa.direction);
            let waits = sa.and_then(|sa| sa.unnoted.map(|top| (sa.session, top)));
            if let Some((session, top)) = waits.filter(|_| at >= noted && output.result.is_ok()) {
                match packets.held.put(session, top, output) {
                    Ok(()) => self.counts.held += 1,
                    Err(output) => self.drop_received(vec![output], DropReason::InStateNotNoted),
                }
                continue;
            }
            self.put_out(shared, packets, direction, output);
        }
        sas.clear();
        (self.outputs, self.seen) = (outputs, sas);
    }

    /// Puts a packet behind those for its link.
    fn put_out(&mut self, shared: &Shared, packets: &mut Outgoings, direction: Direction, output: Output) {
        let Output { mut packet, session, result, .. } = output;
        if let Err(reason) = result {
            return self.intake.dropped(&mut self.engine, direction, reason, packet);
        }
        let station = &shared.stations[self.index];
        let way = match direction {
            Direction::Open => {
                if let Some(mtu) = self.mss_clamp {
                    intake::clamp_mss(&mut packet, mtu);
                }
                Some((&station.inside, &mut packets.inside))
            }
            Direction::Seal => {
                let link = station.link_for(packet.bytes());
                link.map(|link| (&station.outside[link].port, &mut packets.outside[link]))
            }
        };
        let refused = match way {
            Some((port, queue)) => {
                let refused = queue.put(Outgoing { packet, session }).err();
                if refused.is_some() {
                    port.pass().counts.lost.queue_full += 1;
                }
                refused
            }
            None => {
                self.counts.no_link += 1;
                Some(packet)
            }
        };
        refused.into_iter().for_each(|packet| self.engine.recycle(packet));
    }

    /// Tells programs that their packets are too big.
    fn answer(&mut self, shared: &Shared) {
        for answer in self.engine.answers() {
            let sent = self.put_new(shared, None, &answer.message);
            self.counts.answers += u64::from(sent);
        }
    }

    /// Sends a packet of the gateway's own on the inside link or an outside one, behind what waits for it; whether there
    /// is room. What does not fit a buffer is not sent: that would still hold an earlier packet.
    pub(super) fn put_new(&mut self, shared: &Shared, outside: Option<usize>, bytes: &[u8]) -> bool {
        let mut packet = self.engine.buffer();
        if !packet.fill(bytes) {
            self.engine.recycle(packet);
            return false;
        }
        let mut packets = shared.lanes[self.index].packets.pass();
        let Outgoings { inside, outside: queues, .. } = &mut *packets;
        let station = &shared.stations[self.index];
        let (port, queue) = match outside {
            None => (&station.inside, inside),
            Some(place) => (&station.outside[place].port, &mut queues[place]),
        };
        let mut port = port.pass();
        match queue.put(Outgoing { packet, session: None }) {
            Ok(()) => {
                send(&mut self.engine, &mut port, queue);
                true
            }
            Err(packet) => {
                port.counts.lost.queue_full += 1;
                self.engine.recycle(packet);
                false
            }
        }
    }
}

/// Writes a number that others read often, if it is another one.
fn put(to: &AtomicUsize, number: usize) {
    if to.load(Ordering::Relaxed) != number {
        to.store(number, Ordering::Relaxed);
    }
}

/// Notes what is to be known of the SAs of packets, for each run of packets of one SA; all at one look.
fn see(sad: &Ipsec, outputs: &[Output], holds: bool, sas: &mut Vec<Seen>) {
    let mut last = None;
    for session in outputs.iter().filter_map(|output| output.session) {
        if last.replace(session) == Some(session) {
            continue;
        }
        let Some(direction) = sad.direction(session) else {
            last = None;
            continue;
        };
        let noted = if holds && direction == Direction::Open { sad.noted(session) } else { None };
        let is_late = |(top, limit): &(u64, u64)| top > limit && !planted(Fault::DeliveredBeforeNoted);
        sas.push(Seen { session, direction, unnoted: noted.filter(is_late).map(|(top, _)| top) });
    }
}

fn send(engine: &mut Engine, port: &mut Port, queue: &mut Queue) -> bool {
    port.send(queue, &mut |outgoing: &mut Outgoing, over| {
        if let (Some(session), Some(mtu)) = (outgoing.session, over) {
            engine.lower_path_mtu(session, mtu.min(u32::from(u16::MAX)) as u16);
        }
        if outgoing.packet.has_buffer() {
            engine.recycle(std::mem::take(&mut outgoing.packet));
        }
    })
}
