//! The UDP header (RFC 768), as far as ESP in UDP needs it (RFC 3948).

use crate::checksum::Sum;
use crate::{Malformed, protocol};

/// Length of the header in bytes.
pub const HEADER: usize = 8;
/// The port of IKE and ESP behind NAT (RFC 3948 2).
pub const NAT_T_PORT: u16 = 4500;

/// Where the fields stand in the header, in bytes.
pub mod field {
    use core::ops::Range;

    /// Source port.
    pub const SOURCE_PORT: Range<usize> = 0..2;
    /// Destination port.
    pub const DESTINATION_PORT: Range<usize> = 2..4;
    /// Length of the datagram with its header, in bytes.
    pub const LENGTH: Range<usize> = 4..6;
    /// Checksum; zero for none, over IPv4.
    pub const CHECKSUM: Range<usize> = 6..8;
}

/// A header without a checksum, to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Length of the datagram with its header, in bytes.
    pub len: u16,
}

impl Header {
    /// The header's bytes.
    #[inline]
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[field::SOURCE_PORT].copy_from_slice(&self.source_port.to_be_bytes());
        header[field::DESTINATION_PORT].copy_from_slice(&self.destination_port.to_be_bytes());
        header[field::LENGTH].copy_from_slice(&self.len.to_be_bytes());
        header
    }
}

/// A checked UDP datagram: its length field agrees with the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Udp<'a> {
    bytes: &'a [u8],
}

impl<'a> Udp<'a> {
    /// Checks `bytes`, an IP payload.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Udp<'a>, Malformed> {
        let header: &[u8; HEADER] = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        if len < HEADER {
            return Err(Malformed::Length);
        }
        Ok(Udp { bytes: bytes.get(..len).ok_or(Malformed::Truncated)? })
    }

    /// Source port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.bytes[0], self.bytes[1]])
    }

    /// Destination port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.bytes[2], self.bytes[3]])
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER..]
    }
}

/// Computes the checksum of the datagram that `packet`, an IPv6 packet, holds from `at` to its end,
/// and writes it: mandatory over IPv6 (RFC 8200 8.1).
///
/// # Panics
/// If `packet` has no room for both headers.
pub fn fill_checksum_v6(packet: &mut [u8], at: usize) {
    let len = packet.len() - at;
    packet[at + 6..at + 8].fill(0);
    let sum =
        Sum::default().bytes(&packet[8..40]).word(protocol::UDP.into()).word(len as u16).bytes(&packet[at..]);
    // Zero means "no checksum" and is sent as its other form (RFC 768).
    let checksum = match sum.finish() {
        0 => 0xffff,
        checksum => checksum,
    };
    packet[at + 6..at + 8].copy_from_slice(&checksum.to_be_bytes());
}
