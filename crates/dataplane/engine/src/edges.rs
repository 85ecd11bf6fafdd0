//! The edges of the engine, where an input is not simply one packet: fragments before reassembly, packets of unknown
//! SPI, ICMP errors for packets that are too big, and the time that SAs use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use forebay_crypto::Packet;
use forebay_ipsec::Reassembler;
use forebay_ipsec::reassembly::ReassemblyLimits;
use forebay_time::Time;
use forebay_wire::Fragments;

use crate::buffers::Buffers;
use crate::pending_spi::{PendingSpi, PendingSpiLimits};

/// Longest ICMP message that answers a packet, in bytes (RFC 4443 2.4 c: the least MTU of IPv6).
const ANSWER_MAX: usize = 1_280;

/// Maximum number of answers that wait to be taken. Further ones are not made; the source will send a large packet
/// again.
const ANSWERS_MAX: usize = 1_024;

/// This gateway's addresses on the side of the plain packets, from which it answers their sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The IPv4 address; without one, an IPv4 source gets its ICMP errors from the address that its packet was for.
    pub v4: Option<Ipv4Addr>,
    /// The IPv6 address; likewise.
    pub v6: Option<Ipv6Addr>,
}

/// An ICMP message for the source of a packet that was too big.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The message with its IP header.
    pub message: Vec<u8>,
    /// The tag that the caller gave with the packet concerned.
    pub tag: u64,
}

/// State of the edges: packets that wait there, and ICMP errors to send.
pub struct Edges {
    pub reassembler: Reassembler,
    pub pending: PendingSpi,
    from: Addresses,
    answers: Vec<Answer>,
    /// The time that SAs use, if it is not the clock's.
    pub told: Option<Time>,
    /// Tag of the packet that was admitted last. Outputs that are caused by time, not by a packet, get this tag.
    pub latest: u64,
    /// A packet as it is taken apart.
    room: Vec<u8>,
}

impl Edges {
    pub fn new(
        reassembly: ReassemblyLimits,
        pending: PendingSpiLimits,
        seed: u64,
        from: Addresses,
        packet_capacity: usize,
    ) -> Edges {
        Edges {
            reassembler: Reassembler::new(reassembly, seed),
            pending: PendingSpi::new(pending),
            from,
            answers: Vec::new(),
            told: None,
            latest: 0,
            room: vec![0; packet_capacity.max(ANSWER_MAX)],
        }
    }

    /// When something here is due that time alone brings about; [`Time::MAX`] if nothing is.
    pub fn next_due(&self) -> Time {
        self.reassembler.next_expiry().min(self.pending.next_due())
    }

    /// Whether ICMP errors wait to be sent.
    #[inline]
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// The ICMP errors that wait to be sent.
    pub fn answers(&mut self) -> std::vec::Drain<'_, Answer> {
        self.answers.drain(..)
    }

    /// Makes an ICMP error about a packet for `destination`: `write` is given the address that it comes from and room,
    /// and says how long it has become.
    pub fn answer(
        &mut self,
        destination: IpAddr,
        tag: u64,
        write: impl FnOnce(IpAddr, &mut [u8]) -> Option<usize>,
    ) {
        let own = match destination {
            IpAddr::V4(_) => self.from.v4.map(IpAddr::V4),
            IpAddr::V6(_) => self.from.v6.map(IpAddr::V6),
        };
        // A source that is not told would send packets of this length for ever.
        let from = own.unwrap_or(destination);
        if from.is_multicast() || self.answers.len() >= ANSWERS_MAX {
            return;
        }
        if let Some(len) = write(from, &mut self.room) {
            self.answers.push(Answer { message: self.room[..len].to_vec(), tag });
        }
    }

    /// All of `fragments`, each in a buffer of its own.
    pub fn pieces(&mut self, mut fragments: Fragments<'_>, buffers: &mut Buffers) -> Vec<Packet> {
        let mut pieces = Vec::new();
        while let Some(len) = fragments.next_into(&mut self.room) {
            let mut piece = buffers.take();
            if piece.fill(&self.room[..len]) {
                pieces.push(piece);
            }
        }
        pieces
    }
}

/// Whether a packet may be a fragment: `false` only where it certainly is none, by the two fields that nearly all
/// packets have.
#[inline]
pub fn may_be_fragment(packet: &[u8]) -> bool {
    const IPV6_EXTENSIONS: [u8; 4] = [0, 43, 44, 60];
    match packet {
        [first, _, _, _, _, _, flags, offset, ..] if first >> 4 == 4 => flags & 0x3f | offset != 0,
        [first, _, _, _, _, _, next, ..] if first >> 4 == 6 => IPV6_EXTENSIONS.contains(next),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_told_from_whole_packets() {
        let v4 = |flags: u16| [&[0x45, 0, 0, 0, 0, 0][..], &flags.to_be_bytes(), &[0; 12]].concat();
        assert!(!may_be_fragment(&v4(0)) && !may_be_fragment(&v4(0x4000)));
        assert!(may_be_fragment(&v4(0x2000)) && may_be_fragment(&v4(1)) && may_be_fragment(&v4(0x1f00)));
        assert!(may_be_fragment(&v4(0x0101)), "an offset with the same bits in both bytes");
        let v6 = |next: u8| [&[0x60, 0, 0, 0, 0, 0, next][..], &[0; 33]].concat();
        assert!(!may_be_fragment(&v6(50)) && !may_be_fragment(&v6(17)));
        assert!([0, 43, 44, 60].into_iter().all(|next| may_be_fragment(&v6(next))));
        assert!(may_be_fragment(&[]) && may_be_fragment(&[0x45]));
    }

    #[test]
    fn answers_come_from_the_address_of_the_family_and_are_bounded() {
        let v4 = Ipv4Addr::new(192, 0, 2, 1);
        let from = Addresses { v4: Some(v4), v6: None };
        let mut edges = Edges::new(ReassemblyLimits::default(), PendingSpiLimits::NONE, 0, from, 64);
        let v6 = "2001:db8::9".parse().unwrap();
        edges.answer("ff0e::1".parse().unwrap(), 0, |_, _| panic!("there is no address of one host"));
        edges.answer(v6, 1, |from, _| {
            assert_eq!(from, v6, "no address: that of the packet");
            None
        });
        let peer = IpAddr::from([10, 2, 0, 1]);
        edges.answer(peer, 2, |_, _| None);
        for tag in 0..ANSWERS_MAX as u64 + 5 {
            edges.answer(peer, tag, |from, room| {
                assert_eq!((from, room.len()), (IpAddr::V4(v4), ANSWER_MAX));
                room[..3].copy_from_slice(b"icm");
                Some(3)
            });
        }
        let tags: Vec<u64> = edges.answers().map(|answer| answer.tag).collect();
        assert_eq!(tags, (0..ANSWERS_MAX as u64).collect::<Vec<_>>());
        edges.answer(peer, 9, |_, _| Some(2));
        assert_eq!(edges.answers().collect::<Vec<_>>(), [Answer { message: b"ic".to_vec(), tag: 9 }]);
    }
}
