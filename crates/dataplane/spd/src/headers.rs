//! The fields of a packet that selectors are compared with (RFC 4301 4.4.1.1).

use forebay_crypto::Direction;
use forebay_wire::{Ip, Ipv4, Ipv6, protocol};

pub const ICMP: u8 = 1;
pub const ICMP_V6: u8 = 58;
/// The IPv6 Mobility Header (RFC 6275).
pub const MOBILITY: u8 = 135;

/// A protocol that cannot be seen: a fragment's, behind extension headers that it does not hold.
pub const UNKNOWN: u16 = 0x100;

/// A port of a packet, as a number of 18 bits: a port, or one of the states below.
pub type Port = u32;
/// The protocol has no such field.
pub const NONE: Port = 0x1_0000;
/// The field is in another fragment, or cut off.
pub const HIDDEN: Port = 0x2_0000;
/// The other side's half of a field that a packet has once (ICMP type): any selector is right.
pub const FREE: Port = 0x3_0000;

/// Extension headers that are walked over behind a fragment header.
const MAX_EXTENSIONS: usize = 8;

/// The selectors' values of one packet, by side and not by source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Whether it is an IPv6 packet.
    pub v6: bool,
    /// The address of this side, aligned left: an IPv4 address is in the upper 32 bits.
    pub local: u128,
    /// The address of the other side, likewise.
    pub remote: u128,
    /// A protocol's number, or 256 if it cannot be seen.
    pub protocol: u16,
    /// The port of this side, in 18 bits.
    pub local_port: Port,
    /// The port of the other side, likewise.
    pub remote_port: Port,
    /// The differentiated services code point.
    pub dscp: u8,
}

/// Which values are wanted; the others are left at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Protocol and ports.
    pub upper: bool,
    /// The differentiated services code point.
    pub dscp: bool,
}

impl Headers {
    /// The values of a packet that is on its way out ([`Direction::Seal`]) or in.
    #[inline]
    pub fn of(ip: &Ip<'_>, direction: Direction, depth: Depth) -> Headers {
        let (v6, source, destination) = match ip {
            Ip::V4(ip) => {
                let aligned = |address: std::net::Ipv4Addr| u128::from(u32::from(address)) << 96;
                (false, aligned(ip.source()), aligned(ip.destination()))
            }
            Ip::V6(ip) => (true, ip.source().into(), ip.destination().into()),
        };
        let upper = match (depth.upper, ip) {
            (false, _) => Upper { protocol: 0, source: 0, destination: 0 },
            (true, Ip::V4(ip)) => Upper::of_v4(ip),
            (true, Ip::V6(ip)) => Upper::of_v6(ip),
        };
        let Upper { protocol, source: source_port, destination: destination_port } = upper;
        let dscp = if depth.dscp { ip.traffic_class() >> 2 } else { 0 };
        match direction {
            Direction::Seal => Headers {
                v6,
                local: source,
                remote: destination,
                protocol,
                local_port: source_port,
                remote_port: destination_port,
                dscp,
            },
            Direction::Open => Headers {
                v6,
                local: destination,
                remote: source,
                protocol,
                local_port: destination_port,
                remote_port: source_port,
                dscp,
            },
        }
    }
}

/// Whether a protocol begins with source and destination port.
#[inline]
pub fn has_ports(protocol: u16) -> bool {
    const DCCP: u8 = 33;
    const SCTP: u8 = 132;
    const UDP_LITE: u8 = 136;
    match u8::try_from(protocol) {
        Ok(protocol) => matches!(protocol, protocol::TCP | protocol::UDP | DCCP | SCTP | UDP_LITE),
        Err(_) => false,
    }
}

/// Whether a protocol has one field for both sides.
#[inline]
pub fn has_type(protocol: u16) -> bool {
    matches!(u8::try_from(protocol), Ok(ICMP | ICMP_V6 | MOBILITY))
}

struct Upper {
    protocol: u16,
    source: Port,
    destination: Port,
}

impl Upper {
    #[inline]
    fn of_v4(ip: &Ipv4<'_>) -> Upper {
        let bytes = ip.bytes();
        let offset = u16::from_be_bytes([bytes[6], bytes[7]]) & 0x1fff;
        Upper::read(ip.protocol(), bytes.get(ip.header_len()..).filter(|_| offset == 0))
    }

    fn of_v6(ip: &Ipv6<'_>) -> Upper {
        let bytes = ip.bytes();
        // Whatever cannot be walked over may hide anything.
        let Ok(walk) = ip.upper_layer() else { return Upper::HIDDEN };
        if !walk.is_fragment {
            return Upper::read(walk.protocol, bytes.get(walk.at..));
        }
        // The walk has ended behind the fragment header, which holds the byte that named the protocol.
        let offset = bytes.get(walk.named_at + 2..walk.named_at + 4);
        let offset = offset.map_or(0xfff8, |word| u16::from_be_bytes([word[0], word[1]]) & 0xfff8);
        let (mut next, mut at) = (walk.protocol, walk.at);
        for _ in 0..MAX_EXTENSIONS {
            if !matches!(
                next,
                protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION | protocol::FRAGMENT
            ) {
                return Upper::read(next, bytes.get(at..).filter(|_| offset == 0));
            }
            match (offset, bytes.get(at..at + 2)) {
                (0, Some(header)) if next != protocol::FRAGMENT => {
                    (next, at) = (header[0], at + 8 + 8 * usize::from(header[1]));
                }
                _ => break,
            }
        }
        Upper::HIDDEN
    }

    const HIDDEN: Upper = Upper { protocol: UNKNOWN, source: HIDDEN, destination: HIDDEN };

    /// From the upper-layer header, if the packet holds it.
    #[inline]
    fn read(protocol: u8, header: Option<&[u8]>) -> Upper {
        let word = |at: usize| match header.and_then(|header| header.get(at..at + 2)) {
            Some(word) => Port::from(u16::from_be_bytes([word[0], word[1]])),
            None => HIDDEN,
        };
        let protocol16 = u16::from(protocol);
        let (source, destination) = if has_ports(protocol16) {
            (word(0), word(2))
        } else if protocol == MOBILITY {
            // The type stands in the third byte; what is behind it does not count.
            (word(2) & !0xff, FREE)
        } else if has_type(protocol16) {
            (word(0), FREE)
        } else {
            (NONE, NONE)
        };
        Upper { protocol: protocol16, source, destination }
    }
}
