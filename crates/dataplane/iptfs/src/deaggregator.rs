//! The receiving side: payloads in, inner packets out (RFC 9347 2.2.3 and 2.5).
//!
//! Payloads are put into the order of their sequence numbers first, so inner packets come out in the order
//! in which they were sent, and one that spans several payloads is put together as they are read. A payload
//! that is missing holds up the ones behind it until the reorder window has moved past it or they have
//! waited long enough; then only the inner packets that it carried parts of are lost.

use std::collections::VecDeque;

use forebay_crypto::Packet;
use forebay_time::{Duration, Time};
use forebay_wire::Aggfrag;
use forebay_wire::aggfrag::{Block, CongestionInfo};

use super::settings::Iptfs;
use forebay_drops::DropReason;
use forebay_tunnel::has_experienced_congestion;

/// Payloads that may wait to be read, those in the reorder window not counted: as many as a driver
/// completes before it asks for the inner packets.
const UNREAD: usize = 64;

/// Puts the payloads of one SA into order and takes the inner packets out of them.
#[derive(Debug)]
pub struct Deaggregator {
    window: u64,
    lost_after: Duration,
    /// The sequence number to be read next.
    next: u64,
    /// Numbers below this are not waited for.
    horizon: u64,
    /// Payloads that wait, by sequence number.
    held: VecDeque<Held>,
    /// Memory of payloads that have been read.
    spare: Vec<Vec<u8>>,
    /// The payload that is being read, and how far that has got.
    current: Vec<u8>,
    at: usize,
    /// The inner packet that is being put together, as far as it has come.
    partial: Vec<u8>,
    state: Partial,
    /// What was seen of the path since it was asked for, and payloads lost before the one that is read next.
    seen: Seen,
    gap: u64,
    counters: IptfsCounters,
    /// Traffic classes of outer packets: of the payload that is being read, of those that the inner packet has come in
    /// that is being put together, and of the inner packet taken last.
    current_class: u8,
    partial_class: u8,
    taken_class: u8,
}

#[derive(Debug)]
struct Held {
    sequence: u64,
    /// When it was first seen to wait for another.
    since: Option<Time>,
    /// Of the outer packet.
    traffic_class: u8,
    bytes: Vec<u8>,
}

/// How far an inner packet has come that is in several payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Partial {
    /// There is none.
    None,
    /// Not far enough to tell its length.
    Begun,
    /// It has this length.
    Length(usize),
    /// All of it is there.
    Whole,
    /// Its begin is lost, and it goes on into the next payload.
    Skipped,
}

/// Counters of the packets that came out of a tunnel that aggregates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IptfsCounters {
    /// Payloads read.
    pub payloads: u64,
    /// Those of them that held padding only.
    pub all_pad: u64,
    /// Payloads given up as lost.
    pub lost: u64,
    /// Inner packets taken out.
    pub packets: u64,
    /// Those of them that were put together from several payloads.
    pub reassembled: u64,
    /// Payloads read whose outer packet had experienced congestion.
    pub marked: u64,
}

/// Payloads of an SA as its path has left them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Payloads that arrived.
    pub payloads: u64,
    /// Payloads before them that did not.
    pub lost: u64,
    /// Those that arrived marked with congestion experienced.
    pub marked: u64,
    /// The peer's congestion information, if it sent any.
    pub info: Option<CongestionInfo>,
    /// Whether one was more than a header.
    pub wants_answer: bool,
}

impl Deaggregator {
    /// A deaggregator that expects sequence number 1.
    pub fn new(config: &Iptfs) -> Deaggregator {
        Deaggregator {
            window: config.reorder_window.into(),
            lost_after: config.lost_after,
            next: 1,
            horizon: 0,
            held: VecDeque::new(),
            spare: Vec::new(),
            current: Vec::new(),
            at: 0,
            partial: Vec::new(),
            state: Partial::None,
            seen: Seen::default(),
            gap: 0,
            counters: IptfsCounters::default(),
            current_class: 0,
            partial_class: 0,
            taken_class: 0,
        }
    }

    /// Continues behind `sequence`, without what has been received so far.
    pub fn continue_after(&mut self, sequence: u64) {
        self.next = sequence.saturating_add(1);
        self.horizon = 0;
        self.spare.extend(self.held.drain(..).map(|held| held.bytes));
        self.at = self.current.len();
        self.state = Partial::None;
        self.gap = 0;
    }

    /// Takes in a copy of a payload that arrived in the ESP packet with this sequence number, 64 bits of it
    /// where those are known, behind an IP header with this traffic class.
    pub fn push(&mut self, sequence: u64, traffic_class: u8, payload: &[u8]) -> Result<(), DropReason> {
        if sequence < self.next.max(self.horizon) {
            return Err(DropReason::InIptfsLate);
        }
        if self.held.len() > self.window as usize + UNREAD {
            return Err(DropReason::QueueFull);
        }
        let place = self.held.partition_point(|held| held.sequence < sequence);
        if self.held.get(place).is_some_and(|held| held.sequence == sequence) {
            return Err(DropReason::InStateSeqError);
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        self.held.insert(place, Held { sequence, since: None, traffic_class, bytes });
        self.horizon = self.horizon.max(sequence.saturating_sub(self.window));
        Ok(())
    }

    /// Puts the next inner packet into `packet`; an error for something that is lost, of which `packet`
    /// holds nothing; `None` if there is no more. To be asked until then after every payload, and when
    /// [`Deaggregator::due`] has passed.
    pub fn take(&mut self, now: Time, packet: &mut Packet) -> Option<Result<(), DropReason>> {
        loop {
            let taken = if self.state == Partial::Whole {
                self.state = Partial::None;
                self.counters.reassembled += 1;
                self.taken_class = self.partial_class;
                Some(fill(packet, &self.partial))
            } else if self.at < self.current.len() {
                self.read(packet)
            } else {
                self.open(now)?.map(Err)
            };
            if let Some(taken) = taken {
                self.counters.packets += u64::from(taken.is_ok());
                return Some(taken);
            }
        }
    }

    /// When a payload will have waited long enough for one before it; [`Time::MAX`] if none waits.
    #[inline]
    pub fn due(&self) -> Time {
        let oldest = self.held.iter().filter_map(|held| held.since).min();
        oldest.map_or(Time::MAX, |since| since + self.lost_after)
    }

    /// What was seen of the path since this was asked last.
    pub fn seen(&mut self) -> Seen {
        std::mem::take(&mut self.seen)
    }

    /// Counters of the packets that came out so far.
    #[inline]
    pub fn counters(&self) -> IptfsCounters {
        self.counters
    }

    /// Opens the next payload; `None` if it has to be waited for.
    fn open(&mut self, now: Time) -> Option<Option<DropReason>> {
        let first = self.held.front()?.sequence;
        if first > self.next {
            self.give_up(now);
            if self.next >= self.horizon {
                return None;
            }
            // Whatever was between them is lost, except before the first: a receiver may join late.
            let next = first.min(self.horizon);
            self.gap += if self.counters.payloads > 0 { next - self.next } else { 0 };
            self.next = next;
            return Some(self.abandon());
        }
        let held = self.held.pop_front()?;
        self.spare.push(std::mem::replace(&mut self.current, held.bytes));
        self.next = held.sequence.saturating_add(1);
        self.current_class = held.traffic_class;
        let is_marked = has_experienced_congestion(held.traffic_class);
        self.counters.marked += u64::from(is_marked);
        let lost = std::mem::take(&mut self.gap);
        self.counters.lost += lost;
        self.seen.payloads += 1;
        self.seen.lost += lost;
        self.seen.marked += u64::from(is_marked);
        Some(self.begin())
    }

    /// The traffic class of the outer packet in which the inner packet taken last has come: with congestion
    /// experienced if any of several has that.
    pub fn traffic_class(&self) -> u8 {
        self.taken_class
    }

    /// No payload waits longer for those before it than [`Iptfs::lost_after`].
    fn give_up(&mut self, now: Time) {
        for held in &mut self.held {
            let since = *held.since.get_or_insert(now);
            if since + self.lost_after <= now {
                self.horizon = self.horizon.max(held.sequence);
            }
        }
    }

    /// Gives up the inner packet that is being put together.
    fn abandon(&mut self) -> Option<DropReason> {
        let begun = matches!(self.state, Partial::Begun | Partial::Length(_));
        self.state = Partial::None;
        begun.then_some(DropReason::InIptfsIncomplete)
    }

    /// Reads the begin of a payload: its header, and the rest of an inner packet from before.
    fn begin(&mut self) -> Option<DropReason> {
        self.counters.payloads += 1;
        self.at = self.current.len();
        let Ok(payload) = Aggfrag::parse(&self.current) else {
            self.state = Partial::None;
            return Some(DropReason::InIptfsError);
        };
        self.seen.info = payload.congestion().or(self.seen.info);
        self.seen.wants_answer |= !payload.blocks().is_empty();
        if payload.is_all_pad() {
            // May stand between the parts of an inner packet.
            self.counters.all_pad += 1;
            return None;
        }
        let (offset, blocks) = (payload.block_offset(), payload.blocks());
        let rest = &blocks[..offset.min(blocks.len())];
        self.at = payload.header_len() + rest.len();
        let goes_on = offset > blocks.len();
        let expected = match self.state {
            Partial::Length(len) => offset == len - self.partial.len(),
            Partial::Begun => offset > 0,
            Partial::None | Partial::Skipped | Partial::Whole => {
                let news = offset > 0 && self.state != Partial::Skipped;
                self.state = if goes_on { Partial::Skipped } else { Partial::None };
                return news.then_some(DropReason::InIptfsIncomplete);
            }
        };
        if !expected {
            // RFC 9347 2.5: a sender that contradicts itself loses the inner packet.
            self.state = if goes_on { Partial::Skipped } else { Partial::None };
            return Some(DropReason::InIptfsError);
        }
        let len = self.partial.len() + offset;
        self.partial.extend_from_slice(rest);
        // As of fragments: one that is marked marks the whole (RFC 3168 5.3).
        if !has_experienced_congestion(self.partial_class) {
            self.partial_class = self.current_class;
        }
        if self.state == Partial::Begun {
            match Block::read(&self.partial) {
                Ok(Block::Packet(stated)) if stated == len => self.state = Partial::Length(len),
                Ok(Block::Unknown) if goes_on => {}
                _ => {
                    self.state = if goes_on { Partial::Skipped } else { Partial::None };
                    return Some(DropReason::InIptfsError);
                }
            }
        }
        if !goes_on {
            self.state = Partial::Whole;
        }
        None
    }

    /// Reads the next data block of the current payload.
    fn read(&mut self, packet: &mut Packet) -> Option<Result<(), DropReason>> {
        let rest = &self.current[self.at..];
        let block = Block::read(rest);
        if let Ok(Block::Packet(len)) = block
            && len <= rest.len()
        {
            self.at += len;
            self.taken_class = self.current_class;
            return Some(fill(packet, &rest[..len]));
        }
        self.at = self.current.len();
        self.state = match block {
            Ok(Block::Packet(len)) => Partial::Length(len),
            Ok(Block::Unknown) => Partial::Begun,
            Ok(Block::Pad) => return None,
            Err(_) => return Some(Err(DropReason::InIptfsError)),
        };
        self.partial.clear();
        self.partial.extend_from_slice(rest);
        self.partial_class = self.current_class;
        None
    }
}

fn fill(packet: &mut Packet, bytes: &[u8]) -> Result<(), DropReason> {
    if packet.fill(bytes) { Ok(()) } else { Err(DropReason::TooLong) }
}
