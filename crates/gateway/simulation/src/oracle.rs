//! The rules that must hold, checked with every packet that leaves a gateway or reaches one.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use forebay_time::Time;

use crate::opener::Opener;
use crate::packet::{self, EspSeen, Seen};
use crate::site::{Site, Tunnel};

/// Something that must never be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that is broken.
    pub rule: Rule,
    /// What was seen.
    pub what: String,
    /// When.
    pub at: Time,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:.6} s: {:?}: {}", self.at.0 as f64 / 1e12, self.rule, self.what)
    }
}

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// No packet of a protected flow outside, unless sealed.
    NothingOutside,
    /// What leaves is sealed with the keys of its SA and holds what a program sent.
    SealedRightly,
    /// Inside there is only what the peer's programs sent.
    NothingForged,
    /// And each of it at most once.
    DeliveredOnce,
    /// No sequence number twice under one key, over all lives of a gateway.
    SequencesOnce,
    /// No IV twice under one key, over all lives of a gateway.
    IvsOnce,
    /// Packets of an SA leave in the order in which they came.
    Order,
    /// Packets go to the peer's addresses only.
    RightPeer,
    /// Every packet is counted once.
    Accounted,
    /// Memory stays within its limits.
    Memory,
    /// A gateway starts with the state that it left, and goes on running.
    Runs,
    /// A machine of a cluster with `alone = "stop"` serves nothing once the store has not answered for the time of its lease.
    StopsAlone,
    /// A machine of a pair goes on alone only if an operator has accepted that.
    AsksFirst,
    /// After the faults, traffic flows.
    Flows,
}

/// A program's packet.
#[derive(Clone, Debug)]
struct Inner {
    from: usize,
    to: usize,
    len: usize,
    far: bool,
    /// The SPI of the SA that sealed it.
    sealed: Option<u32>,
    /// It was delivered under this window.
    delivered: Option<u64>,
    /// When intact copies of it reached its gateway, as numbers that count up.
    arrivals: Vec<u64>,
}

/// What is known of the packets of an SA.
#[derive(Default)]
struct Sealed {
    sequences: HashSet<u64>,
    ivs: HashSet<Vec<u8>>,
    last: u64,
    /// By machine, and by machine and flow.
    last_sequence: BTreeMap<usize, u64>,
    last_number: BTreeMap<(usize, u32), u64>,
    /// The life of the receiving gateway, and the arrival of its last packet that was delivered.
    delivered: (u64, u64),
}

/// What a packet outside is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The number of the program's packet inside.
    pub number: u64,
}

/// Knows everything that was sent, and what may be seen of it.
#[derive(Default)]
pub struct Oracle {
    opener: Opener,
    inner: Vec<Inner>,
    sas: BTreeMap<u32, Sealed>,
    arrivals: u64,
    /// Packets that both machines of a pair delivered while they could not hear each other.
    repeated: u64,
    repeated_by: HashSet<usize>,
    violation: Option<Violation>,
    /// Of all that was seen.
    fingerprint: u64,
}

impl Oracle {
    /// The first violation.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// A number for all that was seen: the same run has the same.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Notes a violation.
    pub fn report(&mut self, rule: Rule, at: Time, what: impl Into<String>) {
        self.violation.get_or_insert_with(|| Violation { rule, what: what.into(), at });
    }

    fn see(&mut self, at: Time, bytes: &[u8]) {
        let mut hash = self.fingerprint ^ at.0;
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        self.fingerprint = hash;
    }

    /// Learns of an SA.
    pub fn add_sa(&mut self, site: &Site, tunnel: &Tunnel, spi: u32) {
        self.opener.add(site, tunnel, spi);
    }

    /// The next packet of a program, which is noted as sent.
    pub fn sends(&mut self, from: usize, to: usize, len: usize, far: bool) -> (u64, Vec<u8>) {
        let number = self.inner.len() as u64;
        let packet = packet::inner(number, from, to, len, far);
        let len = packet.len();
        let (delivered, arrivals) = (None, Vec::new());
        self.inner.push(Inner { from, to, len, far, sealed: None, delivered, arrivals });
        (number, packet)
    }

    /// Whether a program's packet has been delivered.
    pub fn is_delivered(&self, number: u64) -> bool {
        self.inner.get(number as usize).is_some_and(|inner| inner.delivered.is_some())
    }

    /// How many packets were sent, and how many of them were delivered.
    pub fn counts(&self) -> (usize, usize) {
        (self.inner.len(), self.inner.iter().filter(|inner| inner.delivered.is_some()).count())
    }

    /// Where a program's packet came from and where it goes.
    pub fn way(&self, number: u64) -> Option<(usize, usize)> {
        self.inner.get(number as usize).map(|inner| (inner.from, inner.to))
    }

    /// A packet leaves gateway `from` outside by one of its machines. `lies` says that one of its processors does. Returns what it is, if it
    /// is genuine.
    pub fn leaves(
        &mut self,
        (from, machine): (usize, usize),
        packet: &[u8],
        at: Time,
        lies: bool,
    ) -> Option<Wire> {
        self.see(at, packet);
        let seen = match packet::see(packet) {
            Seen::Esp(seen) => seen,
            Seen::Keepalive => return None,
            Seen::Other => {
                self.report(Rule::NothingOutside, at, format!("gateway {from} sent {:02x?}", head(packet)));
                return None;
            }
        };
        if packet::shows_plaintext(packet) {
            self.report(Rule::NothingOutside, at, format!("gateway {from} sent a program's bytes"));
        }
        let Some(sequence) = self.sequence(from, seen, at) else {
            self.report(Rule::SealedRightly, at, format!("gateway {from} sent SPI {:#x}", seen.spi));
            return None;
        };
        self.check_iv(seen, packet, at);
        let Some(inner) = self.opener.open(seen, packet, (sequence >> 32) as u32) else {
            if !lies {
                let what =
                    format!("gateway {from}, SPI {:#x}, number {sequence}: it does not open", seen.spi);
                self.report(Rule::SealedRightly, at, what);
            }
            return None;
        };
        let number = packet::number_of(&inner);
        let sent = number.and_then(|number| self.inner.get(number as usize)).cloned();
        let (Some(number), Some(sent)) = (number, sent) else {
            self.report(Rule::SealedRightly, at, format!("gateway {from} sealed {:02x?}", head(&inner)));
            return None;
        };
        let expected = packet::inner(number, sent.from, sent.to, sent.len, sent.far);
        if sent.from != from || !packet::is_same(&expected, &inner) {
            self.report(Rule::SealedRightly, at, format!("gateway {from} sealed another packet {number}"));
        }
        if Site::receiver(seen.spi) != sent.to {
            let what = format!("gateway {from} sealed for SPI {:#x} what is for {}", seen.spi, sent.to);
            self.report(Rule::RightPeer, at, what);
        }
        let sa = self.sas.entry(seen.spi).or_default();
        let before = sa.last_sequence.insert(machine, sequence);
        let last = sa.last_number.insert((machine, packet::flow(number)), number);
        if let Some(before) = before.filter(|before| *before >= sequence) {
            self.report(Rule::Order, at, format!("gateway {from} sent {sequence} behind {before}"));
            return None;
        }
        if let Some(last) = last.filter(|last| *last >= number) {
            self.report(Rule::Order, at, format!("gateway {from} sealed {number} behind {last}"));
            return None;
        }
        self.inner[number as usize].sealed = Some(seen.spi);
        Some(Wire { number })
    }

    /// The whole sequence number of a packet, which must be a new one.
    fn sequence(&mut self, from: usize, seen: EspSeen, at: Time) -> Option<u64> {
        let esn = self.opener.esn(seen.spi)?;
        let sa = self.sas.entry(seen.spi).or_default();
        let low = u64::from(seen.sequence);
        let same = sa.last & !0xffff_ffff | low;
        // A machine of a pair that went on late is behind the other one; the low half begins anew far behind.
        let begins_anew = esn && sa.last.saturating_sub(same) > 1 << 31;
        let sequence = if begins_anew { same + (1 << 32) } else { same };
        let is_new = sa.sequences.insert(sequence);
        sa.last = sa.last.max(sequence);
        if !is_new {
            let what = format!("gateway {from}, SPI {:#x}: {sequence} again", seen.spi);
            self.report(Rule::SequencesOnce, at, what);
        }
        Some(sequence)
    }

    fn check_iv(&mut self, seen: EspSeen, packet: &[u8], at: Time) {
        let Some(iv) = self.opener.iv(seen, packet).filter(|iv| !iv.is_empty()) else { return };
        let sa = self.sas.entry(seen.spi).or_default();
        if !sa.ivs.insert(iv.to_vec()) {
            self.report(Rule::IvsOnce, at, format!("SPI {:#x}: IV {iv:02x?} again", seen.spi));
        }
    }

    /// An intact copy of a packet reaches its gateway from outside.
    pub fn arrives(&mut self, wire: Wire) {
        self.arrivals += 1;
        self.inner[wire.number as usize].arrivals.push(self.arrivals);
    }

    /// How many packets both machines of a pair delivered while they could not hear each other.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Whether a gateway delivered packets again because its machines could not hear each other, so that its peers may have moved
    /// for it.
    pub fn may_have_moved(&self, gateway: usize) -> bool {
        self.repeated_by.contains(&gateway)
    }

    /// A packet leaves gateway `at_gateway` inside; `life` says by [`life`] which machine it is and what its lives and
    /// reloads are. `may_repeat` says whether a machine may have delivered what this one cannot know.
    pub fn delivered(
        &mut self,
        at_gateway: usize,
        life: u64,
        packet: &[u8],
        at: Time,
        mut may_repeat: impl FnMut(usize) -> bool,
    ) {
        self.see(at, packet);
        if is_own(packet, at_gateway) {
            return;
        }
        let number = packet::number_of(packet);
        let sent = number.and_then(|number| self.inner.get(number as usize));
        let (Some(number), Some(sent)) = (number, sent) else {
            self.report(
                Rule::NothingForged,
                at,
                format!("gateway {at_gateway} let in {:02x?}", head(packet)),
            );
            return;
        };
        let expected = packet::inner(number, sent.from, sent.to, sent.len, sent.far);
        let Some(spi) = sent.sealed.filter(|_| sent.to == at_gateway && packet::is_same(&expected, packet))
        else {
            self.report(
                Rule::NothingForged,
                at,
                format!("gateway {at_gateway} let in another packet {number}"),
            );
            return;
        };
        // The other machine of a pair may have delivered it and not have told yet, if both cannot hear each other.
        let was_elsewhere = sent.delivered.is_some_and(|window| may_repeat(machine_of(window)));
        if was_elsewhere {
            self.repeated += 1;
            self.repeated_by.insert(at_gateway);
            return;
        }
        if sent.delivered.is_some() {
            self.report(
                Rule::DeliveredOnce,
                at,
                format!("gateway {at_gateway}, packet {number}, SPI {spi:#x}"),
            );
            return;
        }
        let sa = self.sas.entry(spi).or_default();
        let last = if sa.delivered.0 == life { sa.delivered.1 } else { 0 };
        let inner = &mut self.inner[number as usize];
        inner.delivered = Some(life);
        match inner.arrivals.iter().copied().find(|arrival| *arrival > last) {
            Some(arrival) => sa.delivered = (life, arrival),
            None => {
                let what = format!(
                    "gateway {at_gateway} let in {number} of SPI {spi:#x}, which came as {:?}, behind {last}",
                    inner.arrivals
                );
                self.report(Rule::Order, at, what);
            }
        }
    }
}

/// Whether a packet inside is an ICMP error of the gateway itself.
pub fn is_own(packet: &[u8], gateway: usize) -> bool {
    packet.len() > 20 && packet[9] == 1 && packet[12..16] == [10, gateway as u8 + 1, 0, 1]
}

/// Names a data plane: its machine, its life and its reloads.
pub fn life(machine: usize, life: u64, reloads: u64) -> u64 {
    (machine as u64) << 56 | life << 24 | reloads
}

fn machine_of(life: u64) -> usize {
    (life >> 56) as usize
}

fn head(packet: &[u8]) -> &[u8] {
    &packet[..packet.len().min(48)]
}
