//! Reassembly of fragmented ESP and AH packets before IPsec processing (RFC 4303 3.4.1, RFC 4302 3.4.1).
//!
//! The rules are IPv6's (RFC 8200 4.5), which are the stricter, for both versions:
//! - Fragments that overlap, contradict each other or reach past the datagram's end discard the whole
//!   datagram, also what comes of it later (RFC 5722); RFC 791 would let an IPv4 packet's last fragment
//!   win, and no honest sender needs that. An exact copy of a fragment is ignored.
//! - The first fragment holds all headers up to ESP, AH or UDP (RFC 7112).
//! - A fragment that is a whole datagram is treated alone (RFC 6946).
//! - The header is the first fragment's, with the CE mark if any fragment has it (RFC 3168 5.3).
//!
//! Only ESP, AH and UDP to or from port 4500 are put together. Packets inside a tunnel are fragments of other hosts, and
//! pass as they are, unless they are for an SA of this gateway that is nested in the tunnel's.
//!
//! Memory is set aside once, and what is held is limited by [`ReassemblyLimits`]: a sender of fragments
//! that never become whole pushes out the oldest, its own first. No step costs more than a look at the at
//! most [`ReassemblyLimits::fragments`] parts of one datagram.

mod chain;
mod datagram;
mod found;
mod store;

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::net::IpAddr;

use forebay_crypto::Packet;
use forebay_time::{Duration, Time};
use forebay_wire::fragment;

use chain::{Chain, Ends, NONE};
use datagram::Datagram;
use forebay_drops::{DropCounts, DropReason};
use found::{Found, Key, Part};
use store::{BLOCK, Store};

/// The longest headers, in bytes, that a fragment may repeat; one with more is dropped.
pub const MAX_HEADERS: usize = found::HEADER_ROOM;

/// Limits on the fragments that are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Datagrams at a time.
    pub datagrams: usize,
    /// Bytes of fragments in all, counted in the blocks of 2 KiB that they occupy.
    pub bytes: usize,
    /// Bytes of fragments from one source (one /64 in IPv6, which is one host's to choose from), counted
    /// likewise, and a block more for each datagram.
    pub bytes_per_source: usize,
    /// Fragments of one datagram.
    pub fragments: usize,
    /// How long the fragments of a datagram are kept, from the first that arrived.
    pub timeout: Duration,
}

impl Default for ReassemblyLimits {
    fn default() -> ReassemblyLimits {
        ReassemblyLimits {
            // Fifty a millisecond through a path that reorders by 20 ms.
            datagrams: 1_024,
            // Linux's ipfrag_high_thresh.
            bytes: 4 << 20,
            // An eighth: one source cannot push out what seven others have.
            bytes_per_source: 512 << 10,
            // The longest IP packet over the shortest link of IPv6 (1280 bytes) has 54.
            fragments: 64,
            // RFC 8200 4.5; RFC 1122 3.3.2 asks for 60 to 120 s.
            timeout: Duration::from_millis(60_000),
        }
    }
}

/// The result of passing a packet to reassembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Reassembly {
    /// It is no fragment of IPsec, and as it was.
    Whole,
    /// It is kept until the others come; the buffer is free.
    Held,
    /// It was the last that was missing; the buffer holds the datagram.
    Complete,
    /// It is no use.
    Dropped(DropReason),
}

/// Puts fragments together, told the time.
#[derive(Debug)]
pub struct Reassembler {
    limits: ReassemblyLimits,
    by_key: HashMap<Key, u32, Seed>,
    sources: HashMap<IpAddr, Source, Seed>,
    datagrams: Vec<Datagram>,
    free: Vec<u32>,
    /// All datagrams, and those of each source, oldest first.
    ages: Chain,
    all: Ends,
    of_source: Chain,
    store: Store,
    drops: DropCounts,
    completed: u64,
}

#[derive(Debug, Default)]
struct Source {
    datagrams: Ends,
    /// What it holds, in blocks.
    charge: usize,
}

/// A hash function that senders cannot foresee, if its seed is one they cannot.
#[derive(Clone, Debug)]
struct Seed(u64);

impl BuildHasher for Seed {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

impl Reassembler {
    /// A reassembler with all its memory; `seed` is any number that senders of fragments do not know.
    pub fn new(limits: ReassemblyLimits, seed: u64) -> Reassembler {
        let count = limits.datagrams.max(1);
        Reassembler {
            // Twice as large as they get, so that they clean up in place and never grow.
            by_key: HashMap::with_capacity_and_hasher(2 * count, Seed(seed)),
            sources: HashMap::with_capacity_and_hasher(2 * count, Seed(seed)),
            datagrams: (0..count).map(|_| Datagram::new(limits.fragments)).collect(),
            free: (0..count as u32).rev().collect(),
            ages: Chain::new(count),
            all: Ends::default(),
            of_source: Chain::new(count),
            store: Store::new(limits.bytes.div_ceil(BLOCK)),
            drops: DropCounts::default(),
            completed: 0,
            limits,
        }
    }

    /// Takes a received packet in; if it completes its datagram, that replaces it in `packet`.
    pub fn push(&mut self, now: Time, packet: &mut Packet) -> Reassembly {
        self.push_from(now, packet, None)
    }

    /// The same for a packet that has come out of SA number `through`, as those of nested SAs do: its datagram is put
    /// together from fragments that have come out of it only.
    pub fn push_through(&mut self, now: Time, packet: &mut Packet, through: u32) -> Reassembly {
        self.push_from(now, packet, Some(through))
    }

    fn push_from(&mut self, now: Time, packet: &mut Packet, through: Option<u32>) -> Reassembly {
        self.advance(now);
        let placed = match found::find(packet.bytes(), through) {
            Found::Whole => return Reassembly::Whole,
            Found::Atomic(part) => {
                let (header_len, named_at, protocol) = (part.header.len(), part.named_at, part.protocol);
                // Not what a link layer may have put behind it.
                let end = header_len + fragment::HEADER + part.payload.len();
                packet.truncate(end);
                return unwrap_atomic(packet, header_len, named_at, protocol);
            }
            Found::Part(part) => self.place(now, &part, packet.capacity()),
            Found::Hopeless(key, reason) => {
                let index = self.find_or_begin(now, key);
                self.kill(index, reason);
                Err(reason)
            }
            Found::Bad(reason) => Err(reason),
        };
        match placed {
            Ok(None) => Reassembly::Held,
            Ok(Some(index)) => {
                self.datagrams[index as usize].build(&self.store, packet);
                self.remove(index, None);
                self.completed += 1;
                Reassembly::Complete
            }
            Err(reason) => Reassembly::Dropped(reason),
        }
    }

    /// Drops datagrams whose time is over.
    pub fn advance(&mut self, now: Time) {
        while self.all.first != NONE && self.next_expiry() <= now {
            self.remove(self.all.first, Some(DropReason::FragReasmTimeout));
        }
    }

    /// When the next datagram's time is over; [`Time::MAX`] if none is held.
    pub fn next_expiry(&self) -> Time {
        match self.all.first {
            NONE => Time::MAX,
            oldest => self.datagrams[oldest as usize].began + self.limits.timeout,
        }
    }

    /// Fragments that were held and then dropped, by reason; those that were dropped at once,
    /// [`Reassembler::push`] has told.
    pub fn drops(&self) -> &DropCounts {
        &self.drops
    }

    /// Datagrams put together from several fragments.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Datagrams, and bytes in whole blocks, that are held.
    pub fn held(&self) -> (usize, usize) {
        (self.by_key.len(), self.store.used() * BLOCK)
    }

    /// Puts a fragment into its datagram, and says which that is if it is complete.
    fn place(&mut self, now: Time, part: &Part<'_>, capacity: usize) -> Result<Option<u32>, DropReason> {
        let index = self.find_or_begin(now, part.key);
        let datagram = &mut self.datagrams[index as usize];
        if let Some(reason) = datagram.dead {
            return Err(reason);
        }
        match datagram.check(part, &self.store, self.limits.fragments, capacity) {
            Ok(place) => {
                let blocks = part.payload.len().div_ceil(BLOCK);
                self.make_room(index, blocks)?;
                let first = self.store.put(part.payload);
                if let Some(source) = self.sources.get_mut(&part.key.payer()) {
                    source.charge += blocks;
                }
                let datagram = &mut self.datagrams[index as usize];
                datagram.insert(place, part, first, blocks);
                Ok(datagram.is_complete().then_some(index))
            }
            Err(DropReason::DupFrag) => Err(DropReason::DupFrag),
            Err(reason) => {
                self.kill(index, reason);
                Err(reason)
            }
        }
    }

    /// The datagram of this name; a new one, if need be in the oldest's place.
    fn find_or_begin(&mut self, now: Time, key: Key) -> u32 {
        if let Some(&index) = self.by_key.get(&key) {
            return index;
        }
        if self.free.is_empty() {
            self.remove(self.all.first, Some(DropReason::FragLimit));
        }
        let index = self.free.pop().expect("one was freed");
        self.datagrams[index as usize].begin(key, now);
        self.by_key.insert(key, index);
        self.ages.push_back(&mut self.all, index);
        let source = self.sources.entry(key.payer()).or_default();
        self.of_source.push_back(&mut source.datagrams, index);
        source.charge += 1;
        index
    }

    /// Makes room for `blocks` more of the datagram at `index`: of the source's first, then of all. An error
    /// if the datagram itself had to go.
    fn make_room(&mut self, index: u32, blocks: usize) -> Result<(), DropReason> {
        let payer = self.datagrams[index as usize].key.payer();
        let share = self.limits.bytes_per_source / BLOCK;
        while let Some(source) = self.sources.get(&payer) {
            let oldest = match source.charge + blocks > share {
                true => source.datagrams.first,
                false if self.store.free() < blocks => self.all.first,
                false => return Ok(()),
            };
            self.remove(oldest, Some(DropReason::FragLimit));
            if oldest == index {
                break;
            }
        }
        Err(DropReason::FragLimit)
    }

    /// Drops what there is of a datagram, and remembers it so that what comes later is dropped too.
    fn kill(&mut self, index: u32, reason: DropReason) {
        let payer = self.datagrams[index as usize].key.payer();
        let blocks = self.discard(index, Some(reason));
        if let Some(source) = self.sources.get_mut(&payer) {
            source.charge -= blocks;
        }
        self.datagrams[index as usize].dead = Some(reason);
    }

    /// Forgets a datagram, whose fragments are dropped if there is a reason.
    fn remove(&mut self, index: u32, reason: Option<DropReason>) {
        let key = self.datagrams[index as usize].key;
        let blocks = self.discard(index, reason);
        self.by_key.remove(&key);
        self.ages.remove(&mut self.all, index);
        if let Some(source) = self.sources.get_mut(&key.payer()) {
            source.charge -= blocks + 1;
            self.of_source.remove(&mut source.datagrams, index);
            if source.datagrams.first == NONE {
                self.sources.remove(&key.payer());
            }
        }
        self.free.push(index);
    }

    /// Gives a datagram's blocks back, and says how many.
    fn discard(&mut self, index: u32, reason: Option<DropReason>) -> usize {
        let datagram = &mut self.datagrams[index as usize];
        for part in datagram.parts.drain(..) {
            self.store.give_back(part.block);
            if let Some(reason) = reason {
                self.drops.count(reason);
            }
        }
        std::mem::take(&mut datagram.blocks)
    }
}

/// Takes the fragment header out of a packet that is whole.
fn unwrap_atomic(packet: &mut Packet, header_len: usize, named_at: usize, protocol: u8) -> Reassembly {
    packet.bytes_mut().copy_within(..header_len, fragment::HEADER);
    if packet.pull_front(fragment::HEADER).is_none() {
        return Reassembly::Dropped(DropReason::FragError);
    }
    let bytes = packet.bytes_mut();
    bytes[named_at] = protocol;
    let len = u16::from_be_bytes([bytes[4], bytes[5]]).saturating_sub(fragment::HEADER as u16);
    bytes[4..6].copy_from_slice(&len.to_be_bytes());
    Reassembly::Complete
}
