//! What a frame that has come is: for the gateway, a message of a neighbour, or nothing of this link's business.

use std::net::IpAddr;

use forebay_wire::checksum::Sum;
use forebay_wire::{Ip, Ipv4, protocol};

use crate::ETHERNET;
use crate::messages::{self, Message, read_arp, read_nd};
use crate::{Mac, Side};

/// What a frame is.
#[derive(Clone, Copy, Debug)]
pub enum Arrival<'a> {
    /// A packet for the gateway.
    Packet(Ip<'a>),
    /// A message of a neighbour.
    Neighbour(Message),
    /// An ICMP message for an own address, with the sender's Ethernet address.
    Icmp(Ip<'a>, Mac),
    /// A NAT keepalive.
    Keepalive,
    /// An IKE message.
    Ike,
    /// For others, or for what this link has not.
    Foreign,
    /// Headers that contradict each other or the frame, or a wrong checksum.
    Malformed,
}

/// By what frames are told apart.
#[derive(Clone, Debug)]
pub struct Sorter {
    /// The own Ethernet address.
    pub mac: Mac,
    /// The own IP addresses.
    pub own: Vec<IpAddr>,
    /// Which packets are taken.
    pub side: Side,
}

impl Sorter {
    /// Says what a frame is; `checksum` is what the device says about that of an IPv4 header.
    #[inline]
    pub fn sort<'a>(&self, frame: &'a [u8], checksum: Option<bool>) -> Arrival<'a> {
        let Some((header, rest)) = frame.split_first_chunk::<ETHERNET>() else { return Arrival::Malformed };
        let (to, from) = (&header[..6], &header[6..12]);
        let is_group = to[0] & 1 != 0;
        if to != self.mac && !is_group {
            return Arrival::Foreign;
        }
        let from: Mac = [from[0], from[1], from[2], from[3], from[4], from[5]];
        let ip = match [header[12], header[13]] {
            messages::IPV4 | messages::IPV6 => Ip::parse(rest),
            messages::ARP => return read_arp(rest).map_or(Arrival::Foreign, Arrival::Neighbour),
            _ => return Arrival::Foreign,
        };
        match ip {
            Ok(Ip::V4(ip)) if !is_right(&ip, checksum) => Arrival::Malformed,
            Ok(ip) if is_group => match ip {
                Ip::V6(ip) => read_nd(&ip, from).map_or(Arrival::Foreign, Arrival::Neighbour),
                Ip::V4(_) => Arrival::Foreign,
            },
            Ok(ip) => match self.side {
                Side::Inside if !self.own.contains(&ip.destination()) => Arrival::Packet(ip),
                Side::Outside { ref ports } if self.own.contains(&ip.destination()) => {
                    outside(ip, ports, from)
                }
                Side::Inside => for_us(ip, from),
                Side::Outside { .. } => Arrival::Foreign,
            },
            Err(_) => Arrival::Malformed,
        }
    }
}

/// Whether the checksum of an IPv4 header is right (RFC 1122 3.2.1.2, RFC 1812 5.2.2).
#[inline]
fn is_right(ip: &Ipv4<'_>, checksum: Option<bool>) -> bool {
    checksum.unwrap_or_else(|| Sum::ZERO.bytes(&ip.bytes()[..ip.header_len()]).finish() == 0)
}

/// A packet for an own address that is no ESP.
fn for_us(ip: Ip<'_>, from: Mac) -> Arrival<'_> {
    match ip {
        Ip::V4(v4) if v4.protocol() == protocol::ICMP => Arrival::Icmp(ip, from),
        Ip::V6(v6) if v6.next_header() == protocol::ICMPV6 => match read_nd(&v6, from) {
            Some(message) => Arrival::Neighbour(message),
            None => Arrival::Icmp(ip, from),
        },
        _ => Arrival::Foreign,
    }
}

/// A packet for an own address of the outside.
#[inline]
fn outside<'a>(ip: Ip<'a>, ports: &[u16], from: Mac) -> Arrival<'a> {
    let (at, upper, is_fragment) = match &ip {
        Ip::V4(v4) => (v4.header_len(), v4.protocol(), v4.is_fragment()),
        Ip::V6(v6) => match v6.upper_layer() {
            Ok(upper) => (upper.at, upper.protocol, upper.is_fragment),
            Err(_) => return Arrival::Malformed,
        },
    };
    match upper {
        protocol::ESP | protocol::AH => Arrival::Packet(ip),
        // The engine puts them together.
        protocol::UDP if is_fragment => Arrival::Packet(ip),
        protocol::UDP => {
            let datagram = ip.bytes().get(at..).unwrap_or_default();
            let Some((head, body)) = datagram.split_first_chunk::<8>() else { return Arrival::Malformed };
            if !ports.contains(&u16::from_be_bytes([head[2], head[3]])) {
                return Arrival::Foreign;
            }
            match body {
                [0xff] => Arrival::Keepalive,
                [0, 0, 0, 0, ..] => Arrival::Ike,
                _ => Arrival::Packet(ip),
            }
        }
        _ => for_us(ip, from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OWN: Mac = [2, 0, 0, 0, 0, 1];
    const PEER: Mac = [2, 0, 0, 0, 0, 2];

    fn sorter(side: Side) -> Sorter {
        let own = ["192.0.2.1", "2001:db8::1"].map(|own| own.parse().unwrap()).to_vec();
        Sorter { mac: OWN, own, side }
    }

    fn v4(to: Mac, destination: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
        let total = 20 + payload.len() as u16;
        let mut ip =
            vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 1, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 2];
        ip.extend(destination);
        let checksum = Sum::ZERO.bytes(&ip).finish();
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        [&messages::header(to, PEER, messages::IPV4)[..], &ip, payload].concat()
    }

    fn word(arrival: Arrival<'_>) -> &'static str {
        match arrival {
            Arrival::Packet(_) => "packet",
            Arrival::Neighbour(_) => "neighbour",
            Arrival::Icmp(..) => "icmp",
            Arrival::Keepalive => "keepalive",
            Arrival::Ike => "ike",
            Arrival::Foreign => "foreign",
            Arrival::Malformed => "malformed",
        }
    }

    #[test]
    fn frames_are_told_apart() {
        const SELF: [u8; 4] = [192, 0, 2, 1];
        let udp = |port: u16, payload: &[u8]| {
            let len = 8 + payload.len() as u16;
            let head = [4500u16.to_be_bytes(), port.to_be_bytes(), len.to_be_bytes(), [0, 0]].concat();
            [head, payload.to_vec()].concat()
        };
        let outside = sorter(Side::Outside { ports: vec![4500] });
        let mut fragment = v4(OWN, SELF, 17, &[7; 16]);
        fragment[20..22].copy_from_slice(&[0x00, 0x02]);
        let sum = u16::from_be_bytes([fragment[24], fragment[25]]);
        let sum = forebay_wire::checksum::update(sum, 0, 2);
        fragment[24..26].copy_from_slice(&sum.to_be_bytes());
        for (frame, expected) in [
            (v4(OWN, SELF, 50, &[1; 32]), "packet"),
            (v4(OWN, SELF, 51, &[1; 32]), "packet"),
            (v4(OWN, SELF, 17, &udp(4500, &[1; 32])), "packet"),
            (fragment, "packet"),
            (v4(OWN, SELF, 17, &udp(4500, &[0; 32])), "ike"),
            (v4(OWN, SELF, 17, &udp(4500, &[0xff])), "keepalive"),
            (v4(OWN, SELF, 17, &udp(53, &[1; 32])), "foreign"),
            (v4(OWN, SELF, 17, &[1; 4]), "malformed"),
            (v4(OWN, SELF, 6, &[1; 32]), "foreign"),
            (v4(OWN, SELF, 1, &[8, 0, 0, 0, 0, 0, 0, 0]), "icmp"),
            (v4(OWN, [192, 0, 2, 3], 50, &[1; 32]), "foreign"),
            (v4(PEER, SELF, 50, &[1; 32]), "foreign"),
            (v4([0xff; 6], SELF, 50, &[1; 32]), "foreign"),
            (
                messages::ask(("192.0.2.2".parse().unwrap(), PEER), "192.0.2.1".parse().unwrap(), None),
                "neighbour",
            ),
            (
                messages::ask(("2001:db8::2".parse().unwrap(), PEER), "2001:db8::1".parse().unwrap(), None),
                "neighbour",
            ),
            (messages::header(OWN, PEER, [0x81, 0x00]).to_vec(), "foreign"),
            (messages::header(OWN, PEER, messages::IPV4).to_vec(), "malformed"),
            (vec![2, 0, 0], "malformed"),
        ] {
            assert_eq!(word(outside.sort(&frame, None)), expected, "{frame:02x?}");
        }
        let inside = sorter(Side::Inside);
        let packet = v4(OWN, [10, 2, 0, 9], 6, &[1; 32]);
        assert_eq!(word(inside.sort(&packet, None)), "packet");
        assert_eq!(word(inside.sort(&v4(OWN, SELF, 6, &[1; 32]), None)), "foreign");
        assert_eq!(word(inside.sort(&v4(OWN, SELF, 1, &[8, 0, 0, 0, 0, 0, 0, 0]), None)), "icmp");
        let mut wrong = packet;
        wrong[ETHERNET + 10] ^= 1;
        assert_eq!(word(inside.sort(&wrong, None)), "malformed", "a wrong checksum");
        assert_eq!(word(inside.sort(&wrong, Some(true))), "packet", "the device has looked");
        assert_eq!(word(inside.sort(&wrong, Some(false))), "malformed");
    }

    proptest! {
        #[test]
        fn nothing_that_can_come_is_a_panic(frame in proptest::collection::vec(any::<u8>(), 0..100), kind in 0usize..4) {
            let mut frame = frame;
            if kind > 0 && frame.len() > ETHERNET {
                let kinds = [messages::ARP, messages::IPV4, messages::IPV6];
                frame[..ETHERNET].copy_from_slice(&messages::header(OWN, PEER, kinds[kind - 1]));
                frame[ETHERNET] = if kind == 2 { 0x45 } else { 0x60 };
            }
            for side in [Side::Inside, Side::Outside { ports: vec![4500] }] {
                sorter(side).sort(&frame, Some(true));
            }
        }
    }
}
