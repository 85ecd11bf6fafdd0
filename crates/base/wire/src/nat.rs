//! Checksums of transport headers whose packet has passed a NAT without the NAT having seen them: ESP in transport mode
//! carries TCP and UDP with the checksum over the addresses that the sender used (RFC 3948 3.1.2).

use core::net::IpAddr;
use core::ops::Range;

use crate::checksum::{Sum, update};
use crate::{Family, Ip, protocol, udp};

/// Source and destination of packets as their sender wrote them, before any NAT (NAT-OA, RFC 3947 5.2); both of one IP
/// version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Originals {
    /// The sender's own address.
    pub source: IpAddr,
    /// The receiver's address as the sender knows it.
    pub destination: IpAddr,
}

/// Repairs the checksum of the TCP, UDP or ICMPv6 header in `packet`, an IP packet with the addresses that it arrived
/// with: incrementally where the original addresses are known (RFC 3948 3.1.2, procedure 1), else by a new sum over
/// the payload (procedure 2), which is only right for a packet whose integrity has been verified. Whether there was
/// one: fragments, damaged packets, UDP without checksum and other protocols stay as they are.
pub fn repair_checksum(packet: &mut [u8], originals: Option<&Originals>) -> bool {
    let Some(place) = Place::find(packet) else { return false };
    let checksum = match originals {
        Some(originals) => {
            let Some(updated) = place.updated(packet, originals) else { return false };
            updated
        }
        None => place.computed(packet),
    };
    // Of UDP zero means "no checksum" and is sent as its other form (RFC 768).
    let checksum = if place.protocol == protocol::UDP && checksum == 0 { 0xffff } else { checksum };
    packet[place.checksum..place.checksum + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// Where a transport header and its checksum stand in a packet.
struct Place {
    protocol: u8,
    /// Where the addresses stand, source before destination.
    addresses: Range<usize>,
    checksum: usize,
    /// What the checksum covers beside the pseudo-header.
    covered: Range<usize>,
}

impl Place {
    fn find(packet: &[u8]) -> Option<Place> {
        let ip = Ip::parse(packet).ok()?;
        let (at, protocol, is_fragment, addresses) = match ip {
            Ip::V4(ip) => (ip.header_len(), ip.protocol(), ip.is_fragment(), 12..20),
            Ip::V6(ip) => {
                let upper = ip.upper_layer().ok()?;
                (upper.at, upper.protocol, upper.is_fragment, 8..40)
            }
        };
        let payload = ip.bytes().get(at..)?;
        let (header_len, checksum_at) = match protocol {
            protocol::TCP => (20, 16),
            protocol::UDP => (udp::HEADER, udp::field::CHECKSUM.start),
            // That of IPv4 covers no addresses.
            protocol::ICMPV6 if ip.family() == Family::V6 => (4, 2),
            _ => return None,
        };
        if is_fragment || payload.len() < header_len {
            return None;
        }
        let len = match protocol {
            protocol::UDP => usize::from(u16::from_be_bytes([payload[4], payload[5]])),
            _ => payload.len(),
        };
        let has_none = protocol == protocol::UDP && payload[udp::field::CHECKSUM] == [0, 0];
        if has_none || len < header_len || len > payload.len() {
            return None;
        }
        Some(Place { protocol, addresses, checksum: at + checksum_at, covered: at..at + len })
    }

    /// The checksum for the addresses in the packet, from the one for the original ones.
    fn updated(&self, packet: &[u8], originals: &Originals) -> Option<u16> {
        let mut bytes = [0; 32];
        let original = match (originals.source, originals.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                bytes[..4].copy_from_slice(&source.octets());
                bytes[4..8].copy_from_slice(&destination.octets());
                &bytes[..8]
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                bytes[..16].copy_from_slice(&source.octets());
                bytes[16..].copy_from_slice(&destination.octets());
                &bytes[..]
            }
            _ => return None,
        };
        let present = packet.get(self.addresses.clone()).filter(|present| present.len() == original.len())?;
        let checksum = u16::from_be_bytes([packet[self.checksum], packet[self.checksum + 1]]);
        let pairs = original.as_chunks::<2>().0.iter().zip(present.as_chunks::<2>().0);
        Some(pairs.fold(checksum, |checksum, (original, present)| {
            update(checksum, u16::from_be_bytes(*original), u16::from_be_bytes(*present))
        }))
    }

    /// The checksum by all that it covers.
    fn computed(&self, packet: &[u8]) -> u16 {
        let len = self.covered.len() as u32;
        let (before, behind) =
            (&packet[self.covered.start..self.checksum], &packet[self.checksum + 2..self.covered.end]);
        // All of `before` is of even length, in each of these protocols.
        Sum::default()
            .bytes(&packet[self.addresses.clone()])
            .word(self.protocol.into())
            .word((len >> 16) as u16)
            .word(len as u16)
            .bytes(before)
            .bytes(behind)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    /// Addresses before a NAT and behind it.
    const V4: [[&str; 2]; 2] = [["10.9.0.7", "192.0.2.2"], ["203.0.113.77", "172.16.3.4"]];
    const V6: [[&str; 2]; 2] = [["fd00::7", "2001:db8::2"], ["2001:db8:77::1", "fd01:2:3::4"]];

    fn originals(ends: [&str; 2]) -> Originals {
        let [source, destination] = ends.map(|end| end.parse().expect("an address"));
        Originals { source, destination }
    }

    fn octets(address: IpAddr) -> Vec<u8> {
        match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }

    /// A packet between `ends` with `payload` of `protocol`.
    fn packet(ends: [&str; 2], protocol: u8, payload: &[u8]) -> Vec<u8> {
        let Originals { source, destination } = originals(ends);
        let mut packet = if source.is_ipv4() {
            let [high, low] = (20 + payload.len() as u16).to_be_bytes();
            Vec::from([0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0])
        } else {
            let [high, low] = (payload.len() as u16).to_be_bytes();
            Vec::from([0x60, 0, 0, 0, high, low, protocol, 64])
        };
        packet.extend(octets(source));
        packet.extend(octets(destination));
        packet.extend(payload);
        packet
    }

    /// The same with its checksum, by sixteen bits at a time.
    fn with_checksum(ends: [&str; 2], protocol: u8, payload: &[u8], at: usize) -> Vec<u8> {
        let mut payload = payload.to_vec();
        payload[at..at + 2].fill(0);
        let Originals { source, destination } = originals(ends);
        let mut summed = octets(source);
        summed.extend(octets(destination));
        summed.extend([0, 0]);
        summed.extend((payload.len() as u16).to_be_bytes());
        summed.extend([0, protocol]);
        summed.extend(&payload);
        if summed.len() % 2 == 1 {
            summed.push(0);
        }
        let mut sum = summed.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        let checksum = match !(sum as u16) {
            0 if protocol == protocol::UDP => 0xffff,
            checksum => checksum,
        };
        payload[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        packet(ends, protocol, &payload)
    }

    /// Protocol, payload and the place of its checksum.
    fn payloads(len: usize, salt: u8) -> [(u8, Vec<u8>, usize); 3] {
        let bytes =
            |len: usize| -> Vec<u8> { (0..len).map(|n| (n as u8).wrapping_mul(151) ^ salt).collect() };
        let mut datagram = bytes(8 + len);
        datagram[4..6].copy_from_slice(&(8 + len as u16).to_be_bytes());
        [
            (protocol::TCP, bytes(20 + len), 16),
            (protocol::UDP, datagram, 6),
            (protocol::ICMPV6, bytes(4 + len), 2),
        ]
    }

    #[test]
    fn both_ways_give_the_checksum_of_the_addresses_that_are_there() {
        for [before, behind] in [V4, V6] {
            for (len, salt) in (0..40).flat_map(|len| [0, 77, 0xff].map(|salt| (len, salt))) {
                for (protocol, payload, at) in payloads(len, salt) {
                    if protocol == protocol::ICMPV6 && before == V4[0] {
                        continue;
                    }
                    let sent = with_checksum(before, protocol, &payload, at);
                    let expected = with_checksum(behind, protocol, &payload, at);
                    let header = expected.len() - payload.len();
                    let mut arrived = expected[..header].to_vec();
                    arrived.extend(&sent[header..]);
                    for known in [Some(originals(before)), None] {
                        let mut repaired = arrived.clone();
                        assert!(repair_checksum(&mut repaired, known.as_ref()));
                        assert_eq!(repaired, expected, "{protocol} {len} {known:?}");
                    }
                }
            }
        }
    }

    /// What has been damaged on the way before the NAT is not made good by an incremental repair.
    #[test]
    fn an_incremental_repair_keeps_a_wrong_checksum_wrong() {
        let [(protocol, payload, at), ..] = payloads(9, 5);
        let mut arrived = with_checksum(V4[0], protocol, &payload, at);
        arrived[12..20].copy_from_slice(&packet(V4[1], protocol, &payload)[12..20]);
        *arrived.last_mut().expect("a payload") ^= 1;
        let mut computed = arrived.clone();
        assert!(repair_checksum(&mut arrived, Some(&originals(V4[0]))));
        assert!(repair_checksum(&mut computed, None));
        assert_ne!(arrived, computed);
    }

    #[test]
    fn what_has_no_such_checksum_stays_as_it_is() {
        let [(_, tcp, _), (_, datagram, _), (_, icmp, _)] = payloads(12, 9);
        let mut without = datagram.clone();
        without[6..8].fill(0);
        let mut overlong = datagram.clone();
        overlong[5] += 1;
        let mut too_short = datagram.clone();
        too_short[4..6].copy_from_slice(&[0, 7]);
        let mut fragment = packet(V4[1], protocol::UDP, &datagram);
        fragment[6] = 0x20;
        let mut later = packet(V4[1], protocol::TCP, &tcp);
        later[7] = 3;
        let left_alone = [
            packet(V4[1], protocol::UDP, &without),
            packet(V6[1], protocol::UDP, &without),
            packet(V4[1], protocol::UDP, &overlong),
            packet(V4[1], protocol::UDP, &too_short),
            packet(V4[1], protocol::UDP, &datagram[..7]),
            packet(V4[1], protocol::TCP, &tcp[..19]),
            packet(V6[1], protocol::ICMPV6, &icmp[..3]),
            packet(V4[1], protocol::ICMPV6, &icmp),
            packet(V4[1], 50, &tcp),
            fragment,
            later,
            Vec::from([0x45, 0]),
            Vec::new(),
        ];
        for (n, packet) in left_alone.into_iter().enumerate() {
            for known in [Some(originals(V4[0])), Some(originals(V6[0])), None] {
                let mut same = packet.clone();
                assert!(!repair_checksum(&mut same, known.as_ref()), "packet {n}");
                assert_eq!(same, packet);
            }
        }
        // Originals of the other IP version say nothing about a packet.
        let mut same = packet(V4[1], protocol::TCP, &tcp);
        assert!(!repair_checksum(&mut same, Some(&originals(V6[0]))));
    }

    /// A datagram whose sum comes to zero has the other form of it, which a receiver does not take for "none".
    #[test]
    fn a_udp_checksum_is_never_repaired_to_none() {
        let [_, (protocol, mut datagram, at), _] = payloads(2, 3);
        // The last word is chosen so that the rest sums up to all ones.
        datagram[8..10].fill(0);
        let sum = with_checksum(V4[1], protocol, &datagram, at);
        let checksum = [sum[26], sum[27]];
        datagram[8..10].copy_from_slice(&checksum);
        let expected = with_checksum(V4[1], protocol, &datagram, at);
        assert_eq!(expected[26..28], [0xff, 0xff]);
        let sent = with_checksum(V4[0], protocol, &datagram, at);
        let mut arrived = expected[..20].to_vec();
        arrived.extend(&sent[20..]);
        for known in [Some(originals(V4[0])), None] {
            let mut repaired = arrived.clone();
            assert!(repair_checksum(&mut repaired, known.as_ref()));
            assert_eq!(repaired, expected, "{known:?}");
        }
    }
}
