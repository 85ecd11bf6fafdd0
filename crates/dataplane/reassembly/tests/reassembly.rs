//! Reassembly against a slow receiver that keeps every byte by its place, against scapy's fragments, and
//! by hand where limits and times are concerned.

use std::process::Command;

use forebay_crypto::Packet;
use forebay_drops::DropReason;
use forebay_reassembly::{Reassembler, Reassembly, ReassemblyLimits};
use forebay_time::{Duration, Time};
use forebay_wire::checksum::Sum;
use proptest::prelude::*;

const ESP: u8 = 50;
const AH: u8 = 51;
const UDP: u8 = 17;

/// The largest IP packet, and more.
const CAPACITY: usize = 65_600;

/// A datagram to be sent in fragments.
#[derive(Clone, Debug)]
struct Datagram {
    v6: bool,
    /// Who sends it, and its identification.
    source: u8,
    id: u16,
    /// Words of options in the first IPv4 fragment; extension headers before IPv6's fragment header.
    extras: usize,
    protocol: u8,
    payload: Vec<u8>,
    ecn: u8,
}

/// The begin of a payload that is IPsec's.
fn payload(protocol: u8, len: usize, mark: u8) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|at| (at as u8).wrapping_mul(mark | 1) ^ (at >> 8) as u8).collect();
    match protocol {
        UDP if len >= 4 => bytes[..4].copy_from_slice(&[0x11, 0x94, 0x11, 0x94]),
        AH if len >= 2 => bytes[1] = 4,
        _ => {}
    }
    bytes
}

impl Datagram {
    fn header(&self, first: bool) -> Vec<u8> {
        if self.v6 {
            let mut header = vec![0x60, self.ecn << 4, 0, 0, 0, 0, self.protocol, 64];
            header.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, self.source, 0, 0, 0, 0, 0, 0, 0, 1]);
            header.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
            for _ in 0..self.extras {
                let named_at = if header.len() == 40 { 6 } else { header.len() - 8 };
                header[named_at] = 60;
                header.extend_from_slice(&[self.protocol, 0, 1, 4, 0, 0, 0, 0]);
            }
            return header;
        }
        let options = if first { self.extras } else { 0 };
        let mut header = vec![0x45 + options as u8, self.ecn, 0, 0];
        header.extend_from_slice(&self.id.to_be_bytes());
        header.extend_from_slice(&[0, 0, 64, self.protocol, 0, 0, 192, 0, 2, self.source, 192, 0, 2, 254]);
        header.resize(20 + 4 * options, 1);
        header
    }

    /// The part of its payload from `from` to `to`, or the whole if `fragment` is not asked for.
    fn packet(&self, from: usize, bytes: &[u8], more: bool, fragment: bool) -> Vec<u8> {
        let mut packet = self.header(from == 0);
        if self.v6 {
            if fragment {
                let named_at = if self.extras == 0 { 6 } else { packet.len() - 8 };
                packet[named_at] = 44;
                let [high, low] = (from as u16 | u16::from(more)).to_be_bytes();
                packet.extend_from_slice(&[self.protocol, 0, high, low, 0, 0]);
                packet.extend_from_slice(&self.id.to_be_bytes());
            }
            packet.extend_from_slice(bytes);
            let len = (packet.len() - 40) as u16;
            packet[4..6].copy_from_slice(&len.to_be_bytes());
            return packet;
        }
        let header_len = packet.len();
        packet.extend_from_slice(bytes);
        let len = packet.len() as u16;
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        let word = (from / 8) as u16 | if more { 0x2000 } else { 0 };
        packet[6..8].copy_from_slice(&word.to_be_bytes());
        let checksum = Sum::default().bytes(&packet[..header_len]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    fn whole(&self) -> Vec<u8> {
        self.packet(0, &self.payload, false, false)
    }

    /// Fragments of up to `size` bytes, as (place, bytes, more).
    fn parts(&self, size: usize) -> Vec<(usize, Vec<u8>, bool)> {
        let size = size / 8 * 8;
        let chunks = self.payload.chunks(size).enumerate();
        chunks.map(|(n, chunk)| (n * size, chunk.to_vec(), (n + 1) * size < self.payload.len())).collect()
    }

    fn fragments(&self, size: usize) -> Vec<Vec<u8>> {
        self.parts(size).iter().map(|(from, bytes, more)| self.packet(*from, bytes, *more, true)).collect()
    }
}

fn esp(len: usize, id: u16) -> Datagram {
    let payload = payload(ESP, len, id as u8);
    Datagram { v6: false, source: 1, id, extras: 0, protocol: ESP, payload, ecn: 0 }
}

fn reassembler(limits: ReassemblyLimits) -> Reassembler {
    Reassembler::new(limits, 0x5eed)
}

/// What becomes of a packet, and the packet if it is whole now.
fn push(reassembler: &mut Reassembler, now: Time, bytes: &[u8]) -> (Reassembly, Option<Vec<u8>>) {
    let mut packet = Packet::with_capacity(CAPACITY);
    assert!(packet.fill(bytes), "{} bytes", bytes.len());
    let outcome = reassembler.push(now, &mut packet);
    let complete = (outcome == Reassembly::Complete).then(|| packet.bytes().to_vec());
    if outcome == Reassembly::Whole {
        assert_eq!(packet.bytes(), bytes);
    }
    (outcome, complete)
}

fn at_s(seconds: u64) -> Time {
    Time::ZERO + Duration::from_millis(1_000 * seconds)
}

// ---- The slow receiver ----

/// Keeps every byte of a datagram by its place.
#[derive(Default)]
struct Slow {
    bytes: Vec<Option<u8>>,
    seen: Vec<(usize, Vec<u8>, bool)>,
    last: Option<usize>,
    dead: Option<DropReason>,
    done: bool,
}

impl Slow {
    fn push(&mut self, from: usize, bytes: &[u8], more: bool, datagram: &Datagram) -> Reassembly {
        if bytes.is_empty() || (more && !bytes.len().is_multiple_of(8)) {
            return Reassembly::Dropped(DropReason::FragError);
        }
        if let Some(reason) = self.dead {
            return Reassembly::Dropped(reason);
        }
        let fragment = (from, bytes.to_vec(), more);
        if self.seen.contains(&fragment) {
            return Reassembly::Dropped(DropReason::DupFrag);
        }
        let end = from + bytes.len();
        self.bytes.resize(self.bytes.len().max(end), None);
        let overlaps = self.bytes[from..end].iter().any(Option::is_some);
        let behind_the_end = match self.last {
            Some(last) => !more || end >= last,
            None => !more && self.bytes[end..].iter().any(Option::is_some),
        };
        if overlaps || behind_the_end {
            return self.die(DropReason::FragOverlap);
        }
        if self.seen.len() == 64 {
            return self.die(DropReason::FragLimit);
        }
        self.bytes[from..end].iter_mut().zip(bytes).for_each(|(place, byte)| *place = Some(*byte));
        self.seen.push(fragment);
        if !more {
            self.last = Some(end);
        }
        let header = datagram.header(self.bytes[0].is_some()).len();
        let furthest = self.bytes.iter().rposition(Option::is_some).unwrap() + 1;
        if header + furthest - if datagram.v6 { 40 } else { 0 } > 65_535 {
            return self.die(DropReason::FragError);
        }
        self.done = self.last.is_some_and(|last| self.bytes[..last].iter().all(Option::is_some));
        if self.done { Reassembly::Complete } else { Reassembly::Held }
    }

    fn die(&mut self, reason: DropReason) -> Reassembly {
        self.dead = Some(reason);
        Reassembly::Dropped(reason)
    }

    fn packet(&self, datagram: &Datagram) -> Vec<u8> {
        let last = self.last.unwrap();
        let payload: Vec<u8> = self.bytes[..last].iter().flatten().copied().collect();
        Datagram { payload, ..datagram.clone() }.whole()
    }
}

/// What befalls a fragment.
#[derive(Clone, Debug)]
enum Mishap {
    Lost,
    Twice,
    /// Comes later by so many places.
    Late(usize),
    /// Another with its begin and length moved, in units of 8 bytes, and a byte changed or not.
    Forged {
        begin: i32,
        len: i32,
        byte: bool,
        flip_more: bool,
    },
}

fn datagram() -> impl Strategy<Value = Datagram> {
    let len = prop_oneof![6 => 200usize..3_000, 1 => 3_000usize..20_000, 1 => 64_000usize..65_500];
    let protocol = prop::sample::select(vec![ESP, AH, UDP]);
    (any::<bool>(), 0usize..4, protocol, len, any::<u8>(), 0u8..4).prop_map(
        |(v6, extras, protocol, len, mark, ecn)| Datagram {
            v6,
            source: 1,
            id: 0,
            extras,
            protocol,
            payload: payload(protocol, len, mark),
            ecn,
        },
    )
}

fn mishap() -> impl Strategy<Value = Mishap> {
    prop_oneof![
        1 => Just(Mishap::Lost),
        2 => Just(Mishap::Twice),
        3 => (1usize..12).prop_map(Mishap::Late),
        2 => (-3i32..4, -3i32..4, any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(begin, len, byte, flip_more)| Mishap::Forged { begin, len, byte, flip_more }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn as_the_slow_receiver(
        datagrams in prop::collection::vec((datagram(), 64usize..1_480), 1..5),
        mishaps in prop::collection::vec((0usize..200, mishap()), 0..14),
        order in any::<bool>(),
    ) {
        // Fragments of all datagrams, interleaved by a made-up time.
        let mut sent: Vec<(usize, usize, usize, Vec<u8>, bool)> = Vec::new();
        let mut all: Vec<Datagram> = Vec::new();
        for (n, (datagram, size)) in datagrams.into_iter().enumerate() {
            let datagram = Datagram { id: 100 + n as u16, source: 1 + n as u8 % 2, ..datagram };
            // Of the large ones, a few have more fragments than the limit.
            let size = if datagram.payload.len() > 20_000 { size.max(1_000) } else { size };
            let size = size.min(datagram.payload.len() - 8);
            let parts = datagram.parts(size);
            let last = parts.len();
            for (k, (from, bytes, more)) in parts.into_iter().enumerate() {
                let time = if order { k } else { last - k };
                sent.push((10 * time + n, n, from, bytes, more));
            }
            all.push(datagram);
        }
        for (place, mishap) in mishaps {
            let place = place % sent.len();
            let (time, n, from, bytes, more) = sent[place].clone();
            match mishap {
                Mishap::Lost if sent.len() > 1 => { sent.remove(place); }
                Mishap::Lost => {}
                Mishap::Twice => sent.push((time + 15, n, from, bytes, more)),
                Mishap::Late(by) => sent[place].0 += 10 * by,
                Mishap::Forged { begin, len, byte, flip_more } => {
                    let from = (from as i32 + 8 * begin).clamp(0, 65_528) as usize;
                    let mut bytes = bytes;
                    bytes.resize((bytes.len() as i32 + 8 * len).max(0) as usize, 7);
                    // The begin stays what it is: ports and lengths are looked at elsewhere.
                    if byte && bytes.len() > 40 {
                        bytes[39] ^= 1;
                    }
                    if from > 0 && from + bytes.len() < 65_400 {
                        sent.push((time + 7, n, from, bytes, more ^ flip_more));
                    }
                }
            }
        }
        sent.sort_by_key(|(time, ..)| *time);

        let mut reassembler = reassembler(ReassemblyLimits::default());
        let mut slow: Vec<Slow> = all.iter().map(|_| Slow::default()).collect();
        let mut completed = 0;
        for (_, n, from, bytes, more) in sent {
            let (datagram, slow) = (&all[n], &mut slow[n]);
            // What comes behind a datagram that is complete begins another.
            if slow.done {
                *slow = Slow::default();
            }
            let expected = slow.push(from, &bytes, more, datagram);
            let (outcome, packet) = push(&mut reassembler, Time::ZERO, &datagram.packet(from, &bytes, more, true));
            prop_assert_eq!(outcome, expected, "datagram {}, {}..{} {}", n, from, from + bytes.len(), more);
            if slow.done {
                completed += 1;
                prop_assert_eq!(packet.unwrap(), slow.packet(datagram));
            }
        }
        prop_assert_eq!(reassembler.completed(), completed);
        // All is given back in the end.
        reassembler.advance(Time::ZERO + ReassemblyLimits::default().timeout);
        prop_assert_eq!(reassembler.held(), (0, 0));
    }

    /// In any order, a datagram of any size comes out as it was.
    #[test]
    fn any_order(datagram in datagram(), size in 1_024usize..1_480, shuffle in any::<u64>()) {
        let mut fragments = datagram.fragments(size.min(datagram.payload.len() - 8));
        let mut random = shuffle | 1;
        for n in (1..fragments.len()).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            fragments.swap(n, (random >> 33) as usize % (n + 1));
        }
        let mut reassembler = reassembler(ReassemblyLimits::default());
        let last = fragments.pop().unwrap();
        for fragment in &fragments {
            prop_assert_eq!(push(&mut reassembler, Time::ZERO, fragment).0, Reassembly::Held);
        }
        prop_assert_eq!(push(&mut reassembler, Time::ZERO, &last).1, Some(datagram.whole()));
        prop_assert_eq!(reassembler.held(), (0, 0));
    }

    /// Whatever comes, nothing panics, and no more is held than the limits allow.
    #[test]
    fn noise(packets in prop::collection::vec((0u64..200, any::<[bool; 4]>(), 0usize..40, 0usize..30, prop::collection::vec(any::<u8>(), 0..60)), 1..300)) {
        let limits = ReassemblyLimits {
            datagrams: 4,
            bytes: 16 << 10,
            bytes_per_source: 8 << 10,
            fragments: 4,
            ..ReassemblyLimits::default()
        };
        let mut reassembler = reassembler(limits);
        let (mut dropped, mut held) = (0, 0);
        let mut second = 0;
        let mut total = 0u64;
        for (later, [v6, more, ah, damaged], place, id, noise) in packets {
            second += later / 10;
            let protocol = if ah { AH } else { ESP };
            let from_source = id as u8 % 7;
            let datagram = Datagram { v6, source: from_source, id: id as u16, extras: 0, protocol, payload: vec![], ecn: 0 };
            let mut bytes = datagram.packet(8 * place, &noise[..noise.len() / 8 * 8], more, true);
            if damaged {
                for (at, byte) in noise.iter().enumerate().filter(|(at, _)| at % 5 == 0) {
                    let at = (usize::from(*byte) + at) % bytes.len();
                    bytes[at] ^= byte;
                }
            }
            match push(&mut reassembler, at_s(second), &bytes).0 {
                Reassembly::Held => held += 1,
                Reassembly::Dropped(_) => dropped += 1,
                Reassembly::Whole | Reassembly::Complete => {}
            }
            total += 1;
            let (datagrams, bytes) = reassembler.held();
            prop_assert!(datagrams <= 4 && bytes <= 16 << 10);
        }
        reassembler.advance(Time::MAX);
        prop_assert_eq!(reassembler.held(), (0, 0));
        prop_assert!(reassembler.drops().total() <= held);
        prop_assert!(dropped + held <= total);
    }
}

// ---- By hand ----

#[test]
fn packets_that_are_no_fragments_of_ipsec_pass() {
    let mut reassembler = reassembler(ReassemblyLimits::default());
    let tcp = Datagram { protocol: 6, ..esp(800, 1) };
    let tcp_v6 = Datagram { v6: true, ..tcp.clone() };
    for packet in [
        esp(100, 1).whole(),
        tcp.fragments(400).remove(1),
        tcp_v6.fragments(400).remove(0),
        vec![],
        vec![0x45],
    ] {
        assert_eq!(push(&mut reassembler, Time::ZERO, &packet).0, Reassembly::Whole);
    }
    assert_eq!(reassembler.held(), (0, 0));
}

/// RFC 6946: it has nothing to do with other fragments of its identification; RFC 8200 4.5: its fragment
/// header goes.
#[test]
fn an_atomic_fragment_is_treated_alone() {
    for extras in 0..3 {
        let datagram = Datagram { v6: true, extras, ..esp(300, 9) };
        let mut reassembler = reassembler(ReassemblyLimits::default());
        assert_eq!(push(&mut reassembler, Time::ZERO, &datagram.fragments(200)[0]).0, Reassembly::Held);
        let mut atomic = datagram.packet(0, &datagram.payload, false, true);
        // What a link layer put behind it does not stay.
        atomic.extend_from_slice(&[0; 9]);
        assert_eq!(push(&mut reassembler, Time::ZERO, &atomic).1, Some(datagram.whole()));
        assert_eq!(push(&mut reassembler, Time::ZERO, &datagram.fragments(200)[1]).1, Some(datagram.whole()));
    }
}

/// RFC 7112: a first fragment without ESP's, AH's or UDP's header loses the datagram.
#[test]
fn the_first_fragment_holds_the_header_chain() {
    let first = |protocol, len: usize, v6, bytes: &[u8]| {
        let mut payload = payload(protocol, len, 3);
        payload[..bytes.len()].copy_from_slice(bytes);
        let datagram = Datagram { v6, protocol, payload, ..esp(0, 1) };
        let mut reassembler = reassembler(ReassemblyLimits::default());
        push(&mut reassembler, Time::ZERO, &datagram.packet(0, &datagram.payload, true, true)).0
    };
    let error = Reassembly::Dropped(DropReason::FragError);
    for v6 in [false, true] {
        assert_eq!(first(ESP, 8, v6, &[]), Reassembly::Held);
        assert_eq!(first(UDP, 8, v6, &[]), Reassembly::Held);
        // An ICV of twelve bytes: 24 in all.
        assert_eq!(first(AH, 24, v6, &[]), Reassembly::Held);
        assert_eq!(first(AH, 16, v6, &[]), error);
        assert_eq!(first(AH, 8, v6, &[50, 0]), error);
        // UDP, but not ESP in UDP.
        assert_eq!(first(UDP, 8, v6, &[0, 53, 0x12, 0x94]), Reassembly::Dropped(DropReason::InNoIpsec));
        assert_eq!(first(UDP, 8, v6, &[0, 53, 0x11, 0x94]), Reassembly::Held);
    }
    // Destination options of eight bytes, then ESP; of sixteen, and ESP no more in it.
    assert_eq!(first(60, 16, true, &[ESP, 0]), Reassembly::Held);
    assert_eq!(first(60, 16, true, &[ESP, 1]), error);
    assert_eq!(first(60, 16, true, &[6, 0]), Reassembly::Dropped(DropReason::InNoIpsec));
    assert_eq!(first(60, 24, true, &[44, 0]), error);
}

/// Headers before the fragment header are kept up to 256 bytes: the fixed one, options, and 26 words of eight bytes more.
#[test]
fn headers_before_the_fragment_header_have_a_limit() {
    let first = |words: u8| {
        let datagram = Datagram { v6: true, extras: 1, ..esp(304, 1) };
        let mut packet = datagram.packet(0, &datagram.payload, true, true);
        // Longer destination options.
        packet[41] = words;
        packet.splice(48..48, vec![0; 8 * usize::from(words)]);
        let len = (packet.len() - 40) as u16;
        packet[4..6].copy_from_slice(&len.to_be_bytes());
        push(&mut reassembler(ReassemblyLimits::default()), Time::ZERO, &packet).0
    };
    assert_eq!(first(26), Reassembly::Held);
    assert_eq!(first(26 + 1), Reassembly::Dropped(DropReason::FragError));
    assert_eq!(first(u8::MAX), Reassembly::Dropped(DropReason::FragError));
}

/// RFC 5722: the datagram is gone, with what is still to come, until its time is over.
#[test]
fn an_overlap_ends_a_datagram() {
    for v6 in [false, true] {
        let datagram = Datagram { v6, ..esp(300, 1) };
        let fragments = datagram.fragments(104);
        let mut reassembler = reassembler(ReassemblyLimits::default());
        assert_eq!(push(&mut reassembler, at_s(0), &fragments[0]).0, Reassembly::Held);
        let overlapping = datagram.packet(96, &[0; 16], true, true);
        let overlap = Reassembly::Dropped(DropReason::FragOverlap);
        assert_eq!(push(&mut reassembler, at_s(1), &overlapping).0, overlap);
        assert_eq!(reassembler.drops().get(DropReason::FragOverlap), 1);
        assert_eq!(reassembler.held(), (1, 0));
        for fragment in &fragments {
            assert_eq!(push(&mut reassembler, at_s(59), fragment).0, overlap);
        }
        assert_eq!(push(&mut reassembler, at_s(60), &fragments[0]).0, Reassembly::Held);
        assert_eq!(push(&mut reassembler, at_s(60), &fragments[1]).0, Reassembly::Held);
        assert_eq!(push(&mut reassembler, at_s(60), &fragments[2]).1, Some(datagram.whole()));
    }
}

/// More than IP can hold ("ping of death"), at once and as the header of the first makes it so.
#[test]
fn datagrams_longer_than_ip_allows() {
    for v6 in [false, true] {
        let datagram = Datagram { v6, ..esp(0, 1) };
        let mut reassembler = reassembler(ReassemblyLimits::default());
        let late = datagram.packet(65_528, &[0; 64], false, true);
        assert_eq!(push(&mut reassembler, Time::ZERO, &late).0, Reassembly::Dropped(DropReason::FragError));
        // The longest: 65,535 with the header in IPv4, without in IPv6.
        let longest = if v6 { 65_535 } else { 65_515 };
        let whole = Datagram { payload: payload(ESP, longest, 5), ..datagram };
        let fragments = whole.fragments(1_400);
        for fragment in &fragments[..fragments.len() - 1] {
            assert_eq!(push(&mut reassembler, Time::ZERO, fragment).0, Reassembly::Held);
        }
        assert_eq!(
            push(&mut reassembler, Time::ZERO, &fragments[fragments.len() - 1]).1,
            Some(whole.whole())
        );
    }
    let options = Datagram { extras: 2, payload: payload(ESP, 65_512, 1), ..esp(0, 1) };
    let fragments = options.fragments(1_400);
    let mut reassembler = reassembler(ReassemblyLimits::default());
    for fragment in &fragments[1..] {
        assert_eq!(push(&mut reassembler, Time::ZERO, fragment).0, Reassembly::Held);
    }
    assert_eq!(
        push(&mut reassembler, Time::ZERO, &fragments[0]).0,
        Reassembly::Dropped(DropReason::FragError)
    );
    assert_eq!(reassembler.drops().get(DropReason::FragError), fragments.len() as u64 - 1);
}

#[test]
fn datagrams_longer_than_the_buffer() {
    let datagram = esp(3_000, 1);
    let fragments = datagram.fragments(1_000);
    let mut reassembler = reassembler(ReassemblyLimits::default());
    let mut packet = Packet::with_capacity(3_019);
    let mut outcomes = fragments.iter().map(|fragment| {
        assert!(packet.fill(fragment));
        reassembler.push(Time::ZERO, &mut packet)
    });
    assert_eq!(outcomes.next(), Some(Reassembly::Held));
    assert_eq!(outcomes.next(), Some(Reassembly::Held));
    assert_eq!(outcomes.next(), Some(Reassembly::Dropped(DropReason::TooLong)));
    assert_eq!(outcomes.next(), None);
}

#[test]
fn time_runs_from_the_first_fragment() {
    let datagram = esp(300, 1);
    let fragments = datagram.fragments(104);
    let mut reassembler = reassembler(ReassemblyLimits::default());
    assert_eq!(reassembler.next_expiry(), Time::MAX);
    assert_eq!(push(&mut reassembler, at_s(5), &fragments[0]).0, Reassembly::Held);
    assert_eq!(push(&mut reassembler, at_s(30), &fragments[1]).0, Reassembly::Held);
    assert_eq!(reassembler.next_expiry(), at_s(65));
    reassembler.advance(Time(at_s(65).0 - 1));
    assert_eq!(reassembler.held().0, 1);
    assert_eq!(push(&mut reassembler, at_s(65), &fragments[2]).0, Reassembly::Held);
    assert_eq!(reassembler.drops().get(DropReason::FragReasmTimeout), 2);
    assert_eq!(reassembler.held().0, 1);
}

/// The oldest goes first; one that floods pushes out its own.
#[test]
fn limits_of_all_and_of_a_source() {
    let limits = ReassemblyLimits {
        datagrams: 8,
        bytes: 64 << 10,
        bytes_per_source: 16 << 10,
        ..ReassemblyLimits::default()
    };
    let from_source = |source: u8, id: u16| Datagram { source, ..esp(300, id) };
    // Datagrams: the first of nine is gone.
    let mut one = reassembler(limits.clone());
    for id in 0..9 {
        let fragment = from_source(id as u8, id).fragments(104).remove(0);
        assert_eq!(push(&mut one, at_s(id.into()), &fragment).0, Reassembly::Held);
    }
    assert_eq!((one.held().0, one.drops().get(DropReason::FragLimit)), (8, 1));
    assert_eq!(one.next_expiry(), at_s(61));
    // A source: each datagram counts a block, and each fragment one; eight blocks are four datagrams.
    let mut two = reassembler(limits);
    let other = from_source(1, 77);
    assert_eq!(push(&mut two, at_s(0), &other.fragments(104)[0]).0, Reassembly::Held);
    for id in 0..50 {
        assert_eq!(push(&mut two, at_s(1), &from_source(2, id).fragments(104)[0]).0, Reassembly::Held);
    }
    assert_eq!((two.held().0, two.drops().get(DropReason::FragLimit)), (5, 46));
    assert_eq!(push(&mut two, at_s(2), &other.fragments(104)[1]).0, Reassembly::Held);
    assert_eq!(push(&mut two, at_s(2), &other.fragments(104)[2]).1, Some(other.whole()));
    // One datagram that is more than its source's share.
    let big = from_source(2, 99);
    let big = Datagram { payload: payload(ESP, 20_000, 1), ..big };
    let outcomes: Vec<_> = big.fragments(1_400).iter().map(|f| push(&mut two, at_s(3), f).0).collect();
    assert!(outcomes.contains(&Reassembly::Dropped(DropReason::FragLimit)));
    assert!(!outcomes.contains(&Reassembly::Complete));
}

/// All of the memory is used before a datagram has to go.
#[test]
fn the_last_block_of_memory_is_used() {
    let limits =
        ReassemblyLimits { bytes: 4 * 2_048, bytes_per_source: 1 << 20, ..ReassemblyLimits::default() };
    let mut reassembler = reassembler(limits);
    for id in 0..4 {
        assert_eq!(push(&mut reassembler, at_s(0), &esp(300, id).fragments(104)[0]).0, Reassembly::Held);
    }
    assert_eq!((reassembler.held().0, reassembler.drops().get(DropReason::FragLimit)), (4, 0));
    assert_eq!(push(&mut reassembler, at_s(0), &esp(300, 4).fragments(104)[0]).0, Reassembly::Held);
    assert_eq!((reassembler.held().0, reassembler.drops().get(DropReason::FragLimit)), (4, 1));
}

#[test]
fn limit_of_fragments() {
    let datagram = esp(65 * 8, 1);
    let fragments = datagram.fragments(8);
    let mut reassembler = reassembler(ReassemblyLimits::default());
    let limit = Reassembly::Dropped(DropReason::FragLimit);
    for fragment in &fragments[..64] {
        assert_eq!(push(&mut reassembler, Time::ZERO, fragment).0, Reassembly::Held);
    }
    assert_eq!(push(&mut reassembler, Time::ZERO, &fragments[64]).0, limit);
    assert_eq!(reassembler.held(), (1, 0));
}

/// RFC 3168 5.3.
#[test]
fn congestion_experienced_by_one_fragment() {
    for v6 in [false, true] {
        for (marks, expected) in [
            ([2, 3, 2], Some(3)),
            ([2, 2, 2], Some(2)),
            ([1, 2, 1], Some(1)),
            ([0, 0, 0], Some(0)),
            ([0, 3, 0], None),
            ([2, 2, 0], None),
        ] {
            let mut reassembler = reassembler(ReassemblyLimits::default());
            let datagram = Datagram { v6, ..esp(300, 1) };
            let mut last = None;
            for ((from, bytes, more), ecn) in datagram.parts(104).into_iter().zip(marks) {
                last = push(
                    &mut reassembler,
                    Time::ZERO,
                    &Datagram { ecn, ..datagram.clone() }.packet(from, &bytes, more, true),
                )
                .1;
            }
            let whole = expected.map(|ecn| Datagram { ecn, ..datagram }.whole());
            assert_eq!(last, whole, "{marks:?}");
        }
    }
}

/// All memory is there from the begin.
#[test]
fn no_memory_is_taken() {
    let mut one = reassembler(ReassemblyLimits { datagrams: 32, ..ReassemblyLimits::default() });
    let mut packet = Packet::with_capacity(4_096);
    let datagrams: Vec<Vec<Vec<u8>>> =
        (0..400).map(|id| Datagram { source: id as u8, ..esp(3_000, id) }.fragments(1_000)).collect();
    let taken = allocation_counter::measure(|| {
        for (second, fragments) in (0..).zip(&datagrams) {
            // Half of them stay incomplete, and are pushed out or expire.
            for fragment in &fragments[second as usize % 2..] {
                assert!(packet.fill(fragment));
                assert!(!matches!(one.push(at_s(second), &mut packet), Reassembly::Dropped(_)));
            }
        }
    });
    assert_eq!(taken.count_total, 0);
    assert_eq!(one.completed(), 200);
}

// ---- scapy ----

/// For each packet a line: what it is whole, then its fragments, in hexadecimal.
const SCAPY: &str = r#"
from scapy.all import *
def show(whole, fragments):
    print(raw(whole).hex(), *[raw(f).hex() for f in fragments])
for n, (proto, size, length) in enumerate([(50, 576, 1400), (50, 1480, 9000), (51, 400, 4096), (50, 8, 100)]):
    load = bytes((5 * i + n) % 256 for i in range(length))
    if proto == 51: load = b'\x32\x04' + load[2:]
    ip = IP(src='192.0.2.1', dst='192.0.2.2', id=1000 + n, tos=0x28, ttl=61, proto=proto)
    show(ip / Raw(load), fragment(ip / Raw(load), fragsize=size))
    options = IP(src='192.0.2.1', dst='192.0.2.2', id=2000 + n, proto=proto, options=[IPOption_RR()])
    show(options / Raw(load), fragment(options / Raw(load), fragsize=size))
    ip6 = IPv6(src='2001:db8::1', dst='2001:db8::2', tc=0x28, fl=77, hlim=9, nh=proto)
    named = IPv6(src='2001:db8::1', dst='2001:db8::2', tc=0x28, fl=77, hlim=9)
    split = named / IPv6ExtHdrFragment(id=3000 + n, nh=proto) / Raw(load)
    show(ip6 / Raw(load), fragment6(split, max(size, 1280)))
    hop = IPv6ExtHdrHopByHop(options=[PadN(optdata=b'\0' * 4)])
    split = named / hop.copy() / IPv6ExtHdrFragment(id=4000 + n, nh=proto) / Raw(load)
    hop.nh = proto
    show(named / hop / Raw(load), fragment6(split, max(size, 1280)))
esp_in_udp = UDP(sport=4500, dport=4500) / Raw(bytes(i % 251 for i in range(3000)))
ip = IP(src='192.0.2.1', dst='192.0.2.2', id=77)
show(ip / esp_in_udp, fragment(ip / esp_in_udp, fragsize=1480))
"#;

#[test]
fn fragments_of_scapy() {
    let output = Command::new("/usr/bin/python3").args(["-c", SCAPY]).output();
    let Ok(output) = output else { return eprintln!("skipped: no python3") };
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains("No module named 'scapy'") {
        return eprintln!("skipped: no scapy");
    }
    assert!(output.status.success(), "{text}");
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal"))
            .collect()
    };
    let mut compared = 0;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut packets: Vec<Vec<u8>> = line.split(' ').map(bytes).collect();
        let whole = packets.remove(0);
        for backwards in [false, true] {
            let mut one = reassembler(ReassemblyLimits::default());
            if backwards {
                packets.reverse();
            }
            let outcomes: Vec<_> = packets.iter().map(|packet| push(&mut one, Time::ZERO, packet)).collect();
            let (last, before) = outcomes.split_last().expect("fragments");
            assert!(before.iter().all(|(outcome, _)| *outcome == Reassembly::Held), "{before:?}");
            assert_eq!(last.1.as_ref().expect("complete"), &whole, "{} fragments", packets.len());
        }
        compared += 1;
    }
    assert_eq!(compared, 17);
}
