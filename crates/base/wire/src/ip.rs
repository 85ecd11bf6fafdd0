//! An IP packet of either version.

use core::net::IpAddr;

use crate::{Ipv4, Ipv6, Malformed, protocol};

/// The version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Family {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// Length of an outer header without options, in bytes.
    pub fn header_len(self) -> usize {
        match self {
            Family::V4 => crate::ipv4::MIN_HEADER,
            Family::V6 => crate::ipv6::HEADER,
        }
    }
}

/// A checked IP packet.
#[derive(Clone, Copy, Debug)]
pub enum Ip<'a> {
    /// An IPv4 packet.
    V4(Ipv4<'a>),
    /// An IPv6 packet.
    V6(Ipv6<'a>),
}

impl<'a> Ip<'a> {
    /// Checks `bytes` by the version they state.
    #[inline(always)]
    pub fn parse(bytes: &'a [u8]) -> Result<Ip<'a>, Malformed> {
        match bytes.first().ok_or(Malformed::Truncated)? >> 4 {
            4 => Ipv4::parse(bytes).map(Ip::V4),
            6 => Ipv6::parse(bytes).map(Ip::V6),
            _ => Err(Malformed::Version),
        }
    }

    /// The packet without anything behind its stated length.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        match self {
            Ip::V4(ip) => ip.bytes(),
            Ip::V6(ip) => ip.bytes(),
        }
    }

    /// The version.
    #[inline]
    pub fn family(&self) -> Family {
        match self {
            Ip::V4(_) => Family::V4,
            Ip::V6(_) => Family::V6,
        }
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> IpAddr {
        match self {
            Ip::V4(ip) => IpAddr::V4(ip.source()),
            Ip::V6(ip) => IpAddr::V6(ip.source()),
        }
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> IpAddr {
        match self {
            Ip::V4(ip) => IpAddr::V4(ip.destination()),
            Ip::V6(ip) => IpAddr::V6(ip.destination()),
        }
    }

    /// DSCP and ECN as one byte.
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        match self {
            Ip::V4(ip) => ip.tos(),
            Ip::V6(ip) => ip.traffic_class(),
        }
    }
}

/// Source and destination of a packet in its own format: for distinguishing flows, not for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Of an IPv4 packet.
    V4([u8; 8]),
    /// Of an IPv6 packet.
    V6([u8; 32]),
}

impl Addresses {
    /// Those of a packet whose fixed header says what it carries: an IPv6 packet with extension headers has none here, because
    /// packets between the same addresses may differ behind such headers in what is to be done with them.
    #[inline(always)]
    pub fn of(ip: &Ip<'_>) -> Option<Addresses> {
        match ip {
            Ip::V4(ip) => Some(Addresses::V4(ip.raw_addresses())),
            Ip::V6(ip) if is_extension(ip.next_header()) => None,
            Ip::V6(ip) => Some(Addresses::V6(ip.raw_addresses())),
        }
    }

    /// The same, of the packet that `bytes` start with.
    #[inline(always)]
    pub fn of_packet(bytes: &[u8]) -> Option<Addresses> {
        Ip::parse(bytes).ok().and_then(|ip| Addresses::of(&ip))
    }
}

/// Whether a next header of IPv6 is an extension header that others may follow (RFC 8200 4), ESP and AH not counted.
#[inline(always)]
pub fn is_extension(next_header: u8) -> bool {
    matches!(
        next_header,
        protocol::HOP_BY_HOP | protocol::ROUTING | protocol::FRAGMENT | protocol::DESTINATION
    )
}

/// Changes DSCP and ECN of the IP packet that `packet` starts with; an IPv4 header's checksum follows
/// (RFC 1624), so that one that was wrong stays wrong.
///
/// # Panics
/// If `packet` is shorter than the header of the version that it states.
#[inline]
pub fn set_traffic_class(packet: &mut [u8], class: u8) {
    if packet[0] >> 4 == 6 {
        packet[0] = 0x60 | class >> 4;
        packet[1] = class << 4 | packet[1] & 0x0f;
    } else {
        let word = |class: u8| u16::from_be_bytes([packet[0], class]);
        let checksum = u16::from_be_bytes([packet[10], packet[11]]);
        let checksum = crate::checksum::update(checksum, word(packet[1]), word(class));
        packet[1] = class;
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}
