//! The IPv6 header and its extension headers (RFC 8200 3, 4).
//!
//! ```text
//!  0                   1                   2                   3
//! +-------+---------------+---------------------------------------+
//! |Version| Traffic Class |              Flow Label               |
//! +-------+---------------+-------+---------------+---------------+
//! |        Payload Length         |  Next Header  |   Hop Limit   |
//! +-------------------------------+---------------+---------------+
//! |                 Source Address (16 bytes)                     |
//! |               Destination Address (16 bytes)                  |
//! +---------------------------------------------------------------+
//! ```

use core::net::Ipv6Addr;

use crate::{Malformed, protocol};

/// Length of the fixed header in bytes.
pub const HEADER: usize = 40;
/// The smallest MTU of a link, in bytes (RFC 8200 5).
pub const MIN_MTU: u16 = 1_280;
/// Most extension headers that are walked; real packets have a few, an attacker's may have hundreds.
pub const MAX_EXTENSIONS: usize = 16;

/// Where the fields stand in the fixed header, in bytes.
pub mod field {
    use core::ops::Range;

    /// Version, traffic class and flow label.
    pub const FIRST_WORD: Range<usize> = 0..4;
    /// Length of what stands behind the fixed header, in bytes.
    pub const PAYLOAD_LENGTH: Range<usize> = 4..6;
    /// Next header.
    pub const NEXT_HEADER: usize = 6;
    /// Hop limit.
    pub const HOP_LIMIT: usize = 7;
    /// Source address.
    pub const SOURCE: Range<usize> = 8..24;
    /// Destination address.
    pub const DESTINATION: Range<usize> = 24..40;
}

/// Version, traffic class and flow label, which has 20 bits.
#[inline]
pub fn first_word(traffic_class: u8, flow_label: u32) -> u32 {
    0x6000_0000 | u32::from(traffic_class) << 20 | flow_label
}

/// A fixed header, to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Twenty bits.
    pub flow_label: u32,
    /// Length of what stands behind the header, in bytes.
    pub payload_len: u16,
    /// Protocol of what stands behind the header.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

impl Header {
    /// A header between two addresses with zeros in all other fields.
    pub fn between(source: Ipv6Addr, destination: Ipv6Addr) -> Header {
        Header {
            traffic_class: 0,
            flow_label: 0,
            payload_len: 0,
            next_header: 0,
            hop_limit: 0,
            source,
            destination,
        }
    }

    /// The header's bytes.
    #[inline]
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let word = first_word(self.traffic_class, self.flow_label);
        header[field::FIRST_WORD].copy_from_slice(&word.to_be_bytes());
        header[field::PAYLOAD_LENGTH].copy_from_slice(&self.payload_len.to_be_bytes());
        header[field::NEXT_HEADER] = self.next_header;
        header[field::HOP_LIMIT] = self.hop_limit;
        header[field::SOURCE].copy_from_slice(&self.source.octets());
        header[field::DESTINATION].copy_from_slice(&self.destination.octets());
        header
    }
}

/// Gives a packet a new length, `total_len` bytes with the fixed header, and puts `protocol` into the field at `named_at`
/// that names what the last extension header leads to ([`Walk::named_at`]).
///
/// # Panics
/// If `packet` has no whole header or nothing at `named_at`, or `total_len` is under 40.
#[inline]
pub fn rewrite(packet: &mut [u8], named_at: usize, total_len: usize, protocol: u8) {
    packet[named_at] = protocol;
    packet[field::PAYLOAD_LENGTH].copy_from_slice(&((total_len - HEADER) as u16).to_be_bytes());
}

/// A checked IPv6 packet: version and payload length agree with the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6<'a> {
    bytes: &'a [u8],
}

/// Where the chain of extension headers leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Protocol of the first header that is not walked over.
    pub protocol: u8,
    /// Where that header starts, in bytes from the packet's begin.
    pub at: usize,
    /// Where the next-header byte that names it stands.
    pub named_at: usize,
    /// Whether a fragment header with an offset or more fragments was passed.
    pub is_fragment: bool,
}

impl<'a> Ipv6<'a> {
    /// Checks `bytes`; what lies behind the payload length is left out of the view. Jumbograms
    /// (RFC 2675) are not known: their payload length of zero is taken at its word.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Ipv6<'a>, Malformed> {
        let header: &[u8; HEADER] = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        if header[0] >> 4 != 6 {
            return Err(Malformed::Version);
        }
        let total_len = HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
        let bytes = bytes.get(..total_len).ok_or(Malformed::Truncated)?;
        Ok(Ipv6 { bytes })
    }

    /// The packet, from its first header byte to the end of its payload.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The traffic class: DSCP and ECN.
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        self.bytes[0] << 4 | self.bytes[1] >> 4
    }

    /// The next-header byte of the fixed header.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.bytes[6]
    }

    /// The hop limit.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.bytes[7]
    }

    /// The flow label, 20 bits (RFC 6437).
    #[inline]
    pub fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.bytes[1] & 0x0f, self.bytes[2], self.bytes[3]])
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> Ipv6Addr {
        self.address(8)
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> Ipv6Addr {
        self.address(24)
    }

    /// Source and destination in the packet's own format: for distinguishing flows, not for reading.
    #[inline]
    pub fn raw_addresses(&self) -> [u8; 32] {
        let mut raw = [0; 32];
        raw.copy_from_slice(&self.bytes[8..40]);
        raw
    }

    /// Walks all extension headers to the upper-layer protocol, ESP and AH counted as such.
    #[inline]
    pub fn upper_layer(&self) -> Result<Walk, Malformed> {
        self.walk(|_, _| true)
    }

    /// Where ESP or AH go in transport mode: behind the headers that routers look at (hop-by-hop,
    /// routing, fragment, and destination options that stand before a routing header), before
    /// everything else (RFC 4303 3.1.1, RFC 8200 4.1). Whether the packet is a fragment is told even if
    /// the fragment header stands behind that place.
    pub fn transport_place(&self) -> Result<Walk, Malformed> {
        let place =
            self.walk(|walk, next| walk.protocol != protocol::DESTINATION || next == protocol::ROUTING)?;
        if place.protocol != protocol::DESTINATION {
            return Ok(place);
        }
        Ok(Walk { is_fragment: self.upper_layer()?.is_fragment, ..place })
    }

    /// Where a fragment header goes when the packet is divided at its source: behind the headers that
    /// routers look at, before everything else (RFC 8200 4.5); or where one stands already.
    pub fn fragment_place(&self) -> Result<Walk, Malformed> {
        self.walk(|walk, next| match walk.protocol {
            protocol::FRAGMENT => false,
            protocol::DESTINATION => next == protocol::ROUTING,
            _ => true,
        })
    }

    /// Where the fragment header stands, if there is one.
    pub fn fragment_header(&self) -> Result<Option<Walk>, Malformed> {
        let walk = self.walk(|walk, _| walk.protocol != protocol::FRAGMENT)?;
        Ok((walk.protocol == protocol::FRAGMENT).then_some(walk))
    }

    /// Steps over extension headers while `go_on(where we are, what comes next)` says so.
    #[inline]
    fn walk(&self, go_on: impl Fn(&Walk, u8) -> bool) -> Result<Walk, Malformed> {
        let mut walk = Walk { protocol: self.next_header(), at: HEADER, named_at: 6, is_fragment: false };
        for _ in 0..MAX_EXTENSIONS {
            let len = match walk.protocol {
                protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION => {
                    let len = *self.bytes.get(walk.at + 1).ok_or(Malformed::Truncated)?;
                    8 + 8 * usize::from(len)
                }
                protocol::FRAGMENT => 8,
                _ => return Ok(walk),
            };
            let header = self.bytes.get(walk.at..walk.at + len).ok_or(Malformed::Truncated)?;
            if !go_on(&walk, header[0]) {
                return Ok(walk);
            }
            if walk.protocol == protocol::FRAGMENT {
                // Offset or more-fragments: an atomic fragment (RFC 6946) is whole.
                walk.is_fragment |= u16::from_be_bytes([header[2], header[3]]) & 0xfff9 != 0;
            }
            walk = Walk { protocol: header[0], at: walk.at + len, named_at: walk.at, ..walk };
            if walk.is_fragment && walk.protocol != protocol::ESP {
                // Behind the fragment header of a later fragment stands payload, not a header.
                return Ok(walk);
            }
        }
        Err(Malformed::TooManyExtensions)
    }

    #[inline]
    fn address(&self, at: usize) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets.copy_from_slice(&self.bytes[at..at + 16]);
        Ipv6Addr::from(octets)
    }
}
