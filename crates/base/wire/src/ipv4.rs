//! The IPv4 header (RFC 791 3.1).
//!
//! ```text
//!  0                   1                   2                   3
//! +-------+-------+---------------+-------------------------------+
//! |Version|  IHL  |Type of Service|          Total Length         |
//! +-------+-------+---------------+-----+-------------------------+
//! |         Identification        |Flags|      Fragment Offset    |
//! +---------------+---------------+-----+-------------------------+
//! |  Time to Live |    Protocol   |         Header Checksum       |
//! +---------------+---------------+-------------------------------+
//! |                         Source Address                        |
//! +---------------------------------------------------------------+
//! |                      Destination Address                      |
//! +---------------------------------------------------------------+
//! ```

use core::net::Ipv4Addr;

use crate::Malformed;
use crate::checksum::Sum;

/// Length of a header without options, in bytes.
pub const MIN_HEADER: usize = 20;
/// Length of a header with as many options as there can be, in bytes.
pub const MAX_HEADER: usize = 60;
/// The "don't fragment" flag in the word of flags and fragment offset.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// The "more fragments" flag in that word.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// The fragment offset in that word, in units of eight bytes.
pub const OFFSET_MASK: u16 = 0x1fff;

/// Where the fields stand in the header, in bytes.
pub mod field {
    use core::ops::Range;

    /// Version, and header length in words of four bytes.
    pub const VERSION_IHL: usize = 0;
    /// Type of service: DSCP and ECN (RFC 2474, RFC 3168).
    pub const TRAFFIC_CLASS: usize = 1;
    /// Length of the packet in bytes.
    pub const TOTAL_LENGTH: Range<usize> = 2..4;
    /// Identification.
    pub const IDENTIFICATION: Range<usize> = 4..6;
    /// Flags and fragment offset.
    pub const FRAGMENT_WORD: Range<usize> = 6..8;
    /// Time to live.
    pub const TTL: usize = 8;
    /// Protocol of the payload.
    pub const PROTOCOL: usize = 9;
    /// Header checksum.
    pub const CHECKSUM: Range<usize> = 10..12;
    /// Source address.
    pub const SOURCE: Range<usize> = 12..16;
    /// Destination address.
    pub const DESTINATION: Range<usize> = 16..20;
}

/// A header without options, to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Length of the packet in bytes.
    pub total_len: u16,
    /// Identification.
    pub identification: u16,
    /// Flags and fragment offset.
    pub fragment_word: u16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

impl Header {
    /// A header between two addresses with zeros in all other fields.
    pub fn between(source: Ipv4Addr, destination: Ipv4Addr) -> Header {
        Header {
            traffic_class: 0,
            total_len: 0,
            identification: 0,
            fragment_word: 0,
            ttl: 0,
            protocol: 0,
            source,
            destination,
        }
    }

    /// The header's bytes, the checksum as zero.
    #[inline]
    pub fn bytes(&self) -> [u8; MIN_HEADER] {
        let mut header = [0; MIN_HEADER];
        header[field::VERSION_IHL] = 0x45;
        header[field::TRAFFIC_CLASS] = self.traffic_class;
        header[field::TOTAL_LENGTH].copy_from_slice(&self.total_len.to_be_bytes());
        header[field::IDENTIFICATION].copy_from_slice(&self.identification.to_be_bytes());
        header[field::FRAGMENT_WORD].copy_from_slice(&self.fragment_word.to_be_bytes());
        header[field::TTL] = self.ttl;
        header[field::PROTOCOL] = self.protocol;
        header[field::SOURCE].copy_from_slice(&self.source.octets());
        header[field::DESTINATION].copy_from_slice(&self.destination.octets());
        header
    }
}

/// A checked IPv4 packet: version, header length and total length agree with the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a> {
    bytes: &'a [u8],
}

impl<'a> Ipv4<'a> {
    /// Checks `bytes`; what lies behind the total length (link-layer padding) is left out of the view.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Ipv4<'a>, Malformed> {
        let header: &[u8; MIN_HEADER] = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        if header[0] >> 4 != 4 {
            return Err(Malformed::Version);
        }
        let header_len = usize::from(header[0] & 15) * 4;
        let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header_len < MIN_HEADER || total_len < header_len {
            return Err(Malformed::Length);
        }
        let bytes = bytes.get(..total_len).ok_or(Malformed::Truncated)?;
        Ok(Ipv4 { bytes })
    }

    /// The packet, from its first header byte to its total length.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Length of the header with options, in bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.bytes[0] & 15) * 4
    }

    /// The type-of-service byte: DSCP and ECN.
    #[inline]
    pub fn tos(&self) -> u8 {
        self.bytes[1]
    }

    /// Protocol number of the payload.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.bytes[9]
    }

    /// Whether routers may not fragment the packet.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.fragment_word() & DONT_FRAGMENT != 0
    }

    /// Whether the packet is one part of a larger one.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.fragment_word() & (MORE_FRAGMENTS | OFFSET_MASK) != 0
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> Ipv4Addr {
        self.address(12)
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> Ipv4Addr {
        self.address(16)
    }

    /// Source and destination in the packet's own format: for distinguishing flows, not for reading.
    #[inline]
    pub fn raw_addresses(&self) -> [u8; 8] {
        let mut raw = [0; 8];
        raw.copy_from_slice(&self.bytes[12..20]);
        raw
    }

    /// Time to live.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.bytes[8]
    }

    /// Flags and fragment offset.
    #[inline]
    pub fn fragment_word(&self) -> u16 {
        u16::from_be_bytes([self.bytes[6], self.bytes[7]])
    }

    #[inline]
    fn address(&self, at: usize) -> Ipv4Addr {
        let b = &self.bytes[at..at + 4];
        Ipv4Addr::new(b[0], b[1], b[2], b[3])
    }
}

/// Gives a header, `packet`'s first `header_len` bytes, a new total length and protocol, and
/// computes its checksum anew.
///
/// # Panics
/// If `packet` is shorter than `header_len` or that is under 20.
#[inline]
pub fn rewrite(packet: &mut [u8], header_len: usize, total_len: u16, protocol: u8) {
    let header = &mut packet[..header_len];
    header[field::TOTAL_LENGTH].copy_from_slice(&total_len.to_be_bytes());
    header[field::PROTOCOL] = protocol;
    header[field::CHECKSUM].fill(0);
    let checksum = Sum::default().bytes(header).finish();
    header[field::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
}
