//! Where one packet becomes several or several one: fragments that are put together before IPsec, packets
//! too big for their path, aggregation (IP-TFS); and what comes to pass with time alone.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use forebay_crypto::{Direction, JobSpec, Packet, SessionId};
use forebay_ipsec::reassembly::ReassemblyLimits;
use forebay_ipsec::{DropReason, Event, Reassembler, Reassembly};
use forebay_time::Time;
use forebay_wire::{Family, Fragments, Ip};

use crate::engine::{Engine, Output};

/// Longest ICMP message that answers a packet, in bytes (RFC 4443 2.4 c: the least MTU of IPv6).
const ANSWER_MAX: usize = 1_280;

/// Answers that wait to be taken; further ones are not made. A source that hears nothing sends again.
const ANSWERS_MAX: usize = 1_024;

/// This gateway's addresses on the side of the plain packets, from which it answers their sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// In IPv4; without, sources there get no answer.
    pub v4: Option<Ipv4Addr>,
    /// In IPv6; likewise.
    pub v6: Option<Ipv6Addr>,
}

/// An ICMP message for the source of a packet that was too big.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The message with its IP header.
    pub message: Vec<u8>,
    /// What the caller gave with the packet that it is about.
    pub tag: u64,
}

/// What the engine keeps for this.
pub struct Edges {
    pub reassembler: Reassembler,
    from: Addresses,
    answers: Vec<Answer>,
    /// The time that SAs are told, if that is not the clock's.
    told: Option<Time>,
    /// Tag of the packet that was admitted last, which what time brings about comes behind.
    latest: u64,
    /// A packet as it is taken apart.
    room: Vec<u8>,
}

/// What has become of a packet that may be a part of something, or have others to go with.
pub enum Gathered {
    /// It is whole now and goes on.
    Go,
    /// Its content is kept; the buffer is free.
    Kept,
}

impl Edges {
    pub fn new(limits: ReassemblyLimits, seed: u64, from: Addresses, packet_capacity: usize) -> Edges {
        Edges {
            reassembler: Reassembler::new(limits, seed),
            from,
            answers: Vec::new(),
            told: None,
            latest: 0,
            room: vec![0; packet_capacity.max(ANSWER_MAX)],
        }
    }
}

impl Engine {
    /// Tells the SAs the time, from now on in place of the clock's: packets of a file have times of their own.
    pub fn tell_time(&mut self, time: Time) {
        self.edges.told = Some(time);
        self.pass_time();
    }

    /// When something is due that time alone brings about; [`Time::MAX`] if nothing is. By the time that SAs
    /// are told.
    pub fn next_due(&self) -> Time {
        self.sad.next_due().min(self.edges.reassembler.next_expiry()).min(self.strangers.next_due())
    }

    /// Bytes of plain packets that wait for others to share an aggregate with.
    pub fn waiting(&self) -> usize {
        self.sad.waiting()
    }

    /// Takes the messages for the sources of packets that were too big.
    pub fn answers(&mut self) -> std::vec::Drain<'_, Answer> {
        self.edges.answers.drain(..)
    }

    /// Takes what has happened to SAs: see [`Ipsec::events`](forebay_ipsec::Ipsec::events).
    pub fn events(&mut self) -> impl Iterator<Item = Event> {
        self.sad.events()
    }

    fn sa_time(&self) -> Time {
        self.edges.told.unwrap_or(self.now)
    }

    /// Does what is due by now; whether packets moved.
    pub(crate) fn pass_time(&mut self) -> bool {
        let now = self.sa_time();
        self.sad.advance(now);
        self.edges.reassembler.advance(now);
        let mut moved = self.look_after_strangers();
        moved |= self.sad.aggregates() && self.send_aggregates();
        while let Some(session) = self.sad.poll_inner(now) {
            self.unpack(session, self.edges.latest, self.now);
            moved = true;
        }
        moved
    }

    /// Puts a fragment to its like, or a packet into the queue of its SA.
    pub(crate) fn gather(
        &mut self,
        direction: Direction,
        packet: &mut Packet,
        tag: u64,
    ) -> Result<Gathered, DropReason> {
        let now = self.sa_time();
        self.edges.latest = tag;
        match direction {
            Direction::Open => {
                let ours = Ip::parse(packet.bytes()).is_ok_and(|ip| self.sad.is_local(&ip.destination()));
                if !ours {
                    return Ok(Gathered::Go);
                }
                match self.edges.reassembler.push(now, packet) {
                    Reassembly::Whole | Reassembly::Complete => Ok(Gathered::Go),
                    Reassembly::Held => Ok(Gathered::Kept),
                    Reassembly::Dropped(reason) => Err(reason),
                }
            }
            Direction::Seal if self.sad.aggregates() => match self.sad.aggregate(now, packet)? {
                None => Ok(Gathered::Go),
                Some(_) => {
                    self.send_aggregates();
                    Ok(Gathered::Kept)
                }
            },
            Direction::Seal => Ok(Gathered::Go),
        }
    }

    /// Makes jobs of all aggregates that are due, as far as there is room; whether there were some.
    fn send_aggregates(&mut self) -> bool {
        let (now, tag) = (self.sa_time(), self.edges.latest);
        let mut moved = false;
        while self.room() > 0 {
            let (mut packet, mut spec) = (self.buffer(), JobSpec::default());
            match self.sad.poll_aggregate(now, &mut packet, &mut spec) {
                None => {
                    self.recycle(packet);
                    break;
                }
                // An aggregate mixes classes; its DSCP is zero, so that it tells nothing (RFC 9347 2.2.5).
                Some(Ok(_)) => {
                    if let Err((packet, _)) = self.start(packet, spec, tag, 0) {
                        self.recycle(packet);
                    }
                }
                Some(Err(reason)) => {
                    self.drops.count(reason);
                    self.recycle(packet);
                }
            }
            moved = true;
        }
        moved
    }

    /// Gives out the packets that an aggregate brought.
    pub(crate) fn unpack(&mut self, session: SessionId, tag: u64, admitted: Time) {
        let (now, released) = (self.sa_time(), self.now);
        loop {
            let mut packet = self.buffer();
            match self.sad.take_inner(now, session, &mut packet) {
                Some(Ok(())) => {
                    let session = Some(session);
                    self.outputs.push(Output { packet, tag, session, result: Ok(()), admitted, released });
                }
                Some(Err(reason)) => {
                    self.drops.count(reason);
                    self.recycle(packet);
                }
                None => {
                    self.recycle(packet);
                    return;
                }
            }
        }
    }

    /// What becomes of a packet that is too big for the path of its SA: its fragments go in its place, or
    /// its source is told (RFC 4301 8.2.1).
    #[cold]
    pub(crate) fn too_big(&mut self, packet: Packet, tag: u64) -> Result<(), (Packet, DropReason)> {
        let Some(fragments) = self.sad.divide(packet.bytes()) else {
            self.tell_source(&packet, tag);
            return self.refuse(packet, DropReason::OutPathMtu);
        };
        let pieces = self.pieces(fragments);
        if pieces.len() > self.flights.free() {
            pieces.into_iter().for_each(|piece| self.recycle(piece));
            return self.refuse(packet, DropReason::QueueFull);
        }
        for piece in pieces {
            if let Err((piece, _)) = self.enter(Direction::Seal, piece, tag) {
                self.recycle(piece);
            }
        }
        self.recycle(packet);
        Ok(())
    }

    fn tell_source(&mut self, packet: &Packet, tag: u64) {
        let Ok(ip) = Ip::parse(packet.bytes()) else { return };
        let from = match ip.family() {
            Family::V4 => self.edges.from.v4.map(IpAddr::V4),
            Family::V6 => self.edges.from.v6.map(IpAddr::V6),
        };
        let Some(from) = from.filter(|_| self.edges.answers.len() < ANSWERS_MAX) else { return };
        if let Some(len) = self.sad.icmp_error(packet.bytes(), from, &mut self.edges.room) {
            self.edges.answers.push(Answer { message: self.edges.room[..len].to_vec(), tag });
        }
    }

    /// Delivers a sealed packet in fragments if its path takes it only so; whether it did.
    pub(crate) fn deliver_divided(
        &mut self,
        session: SessionId,
        packet: &Packet,
        tag: u64,
        admitted: Time,
    ) -> bool {
        let Some(fragments) = self.sad.divide_sealed(session, packet.bytes()) else { return false };
        let released = self.now;
        for packet in self.pieces(fragments) {
            let session = Some(session);
            self.outputs.push(Output { packet, tag, session, result: Ok(()), admitted, released });
        }
        true
    }

    fn pieces(&mut self, mut fragments: Fragments<'_>) -> Vec<Packet> {
        let mut pieces = Vec::new();
        while let Some(len) = fragments.next_into(&mut self.edges.room) {
            let mut piece = self.buffer();
            if piece.fill(&self.edges.room[..len]) {
                pieces.push(piece);
            }
        }
        pieces
    }
}
