//! From a frame to the IP packet in it, and back.

mod locate;
mod reframe;

use std::fmt;

pub use locate::{fill_in_length, ip_length, locate};
pub use reframe::reframe;

/// The most VLAN tags that [`locate()`] passes over; two are common, none has reason for more.
pub const MAX_TAGS: usize = 4;

/// The most MPLS labels that [`locate()`] passes over.
pub const MAX_LABELS: usize = 8;

/// The most bytes that can stand before an IP packet: a header of LINUX_SLL2, all tags, LLC with SNAP and all labels.
pub const MAX_PREFIX: usize = 20 + 4 * MAX_TAGS + 8 + 4 * MAX_LABELS;

/// The two families of IP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4 (RFC 791).
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

/// Where the IP packet is in a frame.
///
/// It has no end: padding and a frame check sequence may follow, the length in the IP header decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpAt {
    /// The packet's first byte; at most [`MAX_PREFIX`].
    pub start: usize,
    /// The packet's family, in which the link layer and the packet's version field agree.
    pub family: Family,
    protocol: Protocol,
    /// A length field before the packet, where there is one: of PPPoE (RFC 2516 4) or of IEEE 802.3.
    length: Option<LengthField>,
}

/// A field of two bytes with the length of what follows it; its first byte in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LengthField {
    Pppoe {
        at: u8,
    },
    /// With 8 bytes of LLC and SNAP behind it, which end with the ethertype.
    Ieee8023 {
        at: u8,
    },
}

/// The link layer's field that gives the family, and its first byte in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// Nothing but the packet.
    Absent,
    Ethertype {
        at: u8,
    },
    /// Four bytes at the begin, and what they say for IPv6 by the system that captures so.
    AddressFamily {
        little_endian: bool,
        v6: u8,
    },
    /// One byte if the field is compressed, else two (RFC 1661 6.5).
    Ppp {
        at: u8,
        compressed: bool,
    },
}

impl IpAt {
    /// The packet in a frame with such a length field.
    fn within(self, length: Option<LengthField>) -> IpAt {
        IpAt { length, ..self }
    }
}

/// Why a frame has no IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotIp {
    /// The frame ends before the IP packet's first byte.
    TooShort {
        /// Bytes there are.
        found: usize,
        /// Bytes needed.
        expected: usize,
    },
    /// Another ethertype.
    Ethertype(u16),
    /// An IEEE 802.3 frame of the given length, with an LLC header instead of an ethertype, other than that of SNAP with an
    /// ethertype (RFC 1042).
    Llc(u16),
    /// More VLAN tags than [`MAX_TAGS`].
    TooManyTags,
    /// More MPLS labels than [`MAX_LABELS`].
    TooManyLabels,
    /// A link type that cannot be looked into.
    LinkType(u16),
    /// Another address family.
    AddressFamily(u32),
    /// Another PPP protocol.
    PppProtocol(u16),
    /// The packet's version field is not 4 or 6, or not what the link layer says.
    Version {
        /// The version field.
        found: u8,
        /// What the link layer says, if it does.
        expected: Option<Family>,
    },
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}

impl fmt::Display for NotIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            NotIp::TooShort { found, expected } => {
                write!(f, "the frame has {found} bytes, expected at least {expected}")
            }
            NotIp::Ethertype(found) => {
                let name = ethertype_name(found).map(|name| format!(" ({name})")).unwrap_or_default();
                write!(f, "the frame has ethertype {found:#06x}{name}, expected IPv4 or IPv6")
            }
            NotIp::Llc(length) => write!(f, "the frame is IEEE 802.3 with {length} bytes of LLC"),
            NotIp::TooManyTags => write!(f, "the frame has more than {MAX_TAGS} VLAN tags"),
            NotIp::TooManyLabels => write!(f, "the frame has more than {MAX_LABELS} MPLS labels"),
            NotIp::LinkType(code) => {
                write!(f, "the record has link type {code}, expected one that carries IP")
            }
            NotIp::AddressFamily(found) => write!(f, "the frame has address family {found}"),
            NotIp::PppProtocol(found) => write!(f, "the frame has PPP protocol {found:#06x}"),
            NotIp::Version { found, expected: None } => {
                write!(f, "the packet has IP version {found}, expected 4 or 6")
            }
            NotIp::Version { found, expected: Some(family) } => {
                write!(f, "the packet has IP version {found}, but the frame says {family}")
            }
        }
    }
}

impl std::error::Error for NotIp {}

fn ethertype_name(ethertype: u16) -> Option<&'static str> {
    Some(match ethertype {
        0x0806 => "ARP",
        0x8035 => "RARP",
        0x8809 => "LACP",
        0x8863 | 0x8864 => "PPPoE",
        0x888e => "EAPOL",
        0x88cc => "LLDP",
        0x88e5 => "MACsec",
        0x88f7 => "PTP",
        _ => return None,
    })
}

/// The family that a packet's first byte gives.
#[inline]
fn family_of(packet: &[u8], expected: Option<Family>) -> Result<Family, NotIp> {
    let Some(&first) = packet.first() else {
        return Err(NotIp::TooShort { found: 0, expected: 1 });
    };
    match (first >> 4, expected) {
        (4, None | Some(Family::V4)) => Ok(Family::V4),
        (6, None | Some(Family::V6)) => Ok(Family::V6),
        (found, expected) => Err(NotIp::Version { found, expected }),
    }
}

const ETHERTYPE_V4: u16 = 0x0800;
const ETHERTYPE_V6: u16 = 0x86dd;
const PPP_V4: u8 = 0x21;
const PPP_V6: u8 = 0x57;
const AF_V4: u8 = 2;
