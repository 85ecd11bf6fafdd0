//! The Authentication Header (RFC 4302 2).
//!
//! ```text
//! +---------------+---------------+-------------------------------+
//! |  Next Header  |  Payload Len  |          RESERVED             |
//! +---------------+---------------+-------------------------------+
//! |               Security Parameters Index (SPI)                 |
//! +---------------------------------------------------------------+
//! |                    Sequence Number Field                      |
//! +---------------------------------------------------------------+
//! |                                                               |
//! +              Integrity Check Value (variable)                 |
//! |                       and its padding                         |
//! +---------------------------------------------------------------+
//! ```

use crate::{Family, Malformed};

/// Length of all but the Integrity Check Value, in bytes.
pub const FIXED: usize = 12;

/// A checked Authentication Header: its length agrees with the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Ah<'a> {
    bytes: &'a [u8],
}

impl<'a> Ah<'a> {
    /// Checks `bytes`, which start with the header; what lies behind it is left out of the view.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Ah<'a>, Malformed> {
        let fixed: &[u8; FIXED] = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        // In words of four bytes, less two (RFC 4302 2.2).
        let len = (usize::from(fixed[1]) + 2) * 4;
        if len < FIXED {
            return Err(Malformed::Length);
        }
        Ok(Ah { bytes: bytes.get(..len).ok_or(Malformed::Truncated)? })
    }

    /// Protocol of what is behind the header.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.bytes[0]
    }

    /// Length of the header with the ICV and its padding, in bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        self.bytes.len()
    }

    /// The Security Parameters Index.
    #[inline]
    pub fn spi(&self) -> u32 {
        u32::from_be_bytes([self.bytes[4], self.bytes[5], self.bytes[6], self.bytes[7]])
    }

    /// The sequence number as sent: its low 32 bits.
    #[inline]
    pub fn sequence(&self) -> u32 {
        u32::from_be_bytes([self.bytes[8], self.bytes[9], self.bytes[10], self.bytes[11]])
    }

    /// The ICV and its padding.
    #[inline]
    pub fn icv(&self) -> &'a [u8] {
        &self.bytes[FIXED..]
    }
}

/// What a header says beside its own length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Protocol of what is behind the header.
    pub next_header: u8,
    /// The Security Parameters Index.
    pub spi: u32,
    /// The sequence number's low 32 bits.
    pub sequence: u32,
}

impl Header {
    /// Length of a header with an ICV of `icv_len` bytes and the least padding that makes it whole words
    /// of four bytes in IPv4, of eight in IPv6 (RFC 4302 3.3.3.2.1), in bytes.
    #[inline]
    pub fn len(family: Family, icv_len: usize) -> usize {
        (FIXED + icv_len).next_multiple_of(match family {
            Family::V4 => 4,
            Family::V6 => 8,
        })
    }

    /// Writes the header over all of `room`, ICV and padding as zeros.
    ///
    /// # Panics
    /// If `room` is shorter than [`FIXED`], longer than 1028 bytes, or not whole words of four bytes.
    #[inline]
    pub fn write(&self, room: &mut [u8]) {
        assert!(room.len().is_multiple_of(4) && (FIXED..=1028).contains(&room.len()), "{} bytes", room.len());
        let (fixed, icv) = room.split_at_mut(FIXED);
        fixed[..4].copy_from_slice(&[self.next_header, ((FIXED + icv.len()) / 4 - 2) as u8, 0, 0]);
        fixed[4..8].copy_from_slice(&self.spi.to_be_bytes());
        fixed[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        icv.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_the_icvs_in_use() {
        let lens = |family| [12, 16, 24, 32].map(|icv_len| Header::len(family, icv_len));
        assert_eq!(lens(Family::V4), [24, 28, 36, 44]);
        assert_eq!(lens(Family::V6), [24, 32, 40, 48]);
    }

    #[test]
    fn what_is_written_is_read() {
        let header = Header { next_header: 6, spi: 0x1234_5678, sequence: 9 };
        let mut room = [0xaa; 24];
        header.write(&mut room);
        // "If an integrity algorithm yields a 96-bit authentication value, this length field will be 4".
        assert_eq!(room[..12], [6, 4, 0, 0, 0x12, 0x34, 0x56, 0x78, 0, 0, 0, 9]);
        let ah = Ah::parse(&room).expect("a header");
        assert_eq!((ah.next_header(), ah.spi(), ah.sequence(), ah.header_len()), (6, 0x1234_5678, 9, 24));
        assert_eq!(ah.icv(), [0; 12]);
    }

    #[test]
    fn lengths_that_cannot_be() {
        let mut bytes = [0; 40];
        assert_eq!(Ah::parse(&bytes).map(|_| ()), Err(Malformed::Length));
        bytes[1] = 1;
        assert_eq!(Ah::parse(&bytes).map(|ah| ah.header_len()), Ok(12));
        bytes[1] = 9;
        assert_eq!(Ah::parse(&bytes).map(|_| ()), Err(Malformed::Truncated));
        assert_eq!(Ah::parse(&bytes[..11]).map(|_| ()), Err(Malformed::Truncated));
    }
}
