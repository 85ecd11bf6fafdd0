//! The ESP header and trailer (RFC 4303 2).
//!
//! ```text
//! +---------------------------------------------------------------+ ---
//! |               Security Parameters Index (SPI)                 |  ^
//! +---------------------------------------------------------------+  | what the
//! |                       Sequence Number                         |  | ICV covers
//! +---------------------------------------------------------------+  |  ---
//! |                  IV, then payload (variable)                  |  |   ^
//! |          +----------------------------------------------------+  |   | what the
//! |          |     Padding (0-255 bytes)                          |  |   | cipher covers
//! +----------+                    +---------------+---------------+  |   | (not the IV)
//! |                               |  Pad Length   | Next Header   |  v   v
//! +---------------------------------------------------------------+ ------
//! |         Integrity Check Value (variable)                      |
//! +---------------------------------------------------------------+
//! ```

use crate::Malformed;

/// Length of SPI and sequence number, in bytes.
pub const HEADER: usize = 8;
/// Length of pad length and next header, in bytes.
pub const TRAILER: usize = 2;
/// What an IKE message in UDP starts with, where an ESP packet has its SPI (RFC 3948 2.2).
pub const NON_ESP_MARKER: &[u8] = &[0; 4];

/// Where the fields stand in the header, in bytes.
pub mod field {
    use core::ops::Range;

    /// Security Parameters Index.
    pub const SPI: Range<usize> = 0..4;
    /// Low half of the sequence number.
    pub const SEQUENCE: Range<usize> = 4..8;
}

/// A header, to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Security Parameters Index.
    pub spi: u32,
    /// Low half of the sequence number.
    pub sequence: u32,
}

impl Header {
    /// The header's bytes.
    #[inline]
    pub fn bytes(&self) -> [u8; HEADER] {
        (u64::from(self.spi) << 32 | u64::from(self.sequence)).to_be_bytes()
    }
}

/// A checked ESP header.
#[derive(Clone, Copy, Debug)]
pub struct Esp<'a> {
    header: &'a [u8; HEADER],
}

impl<'a> Esp<'a> {
    /// Checks `bytes`, which start with the SPI.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Esp<'a>, Malformed> {
        Ok(Esp { header: bytes.first_chunk().ok_or(Malformed::Truncated)? })
    }

    /// The Security Parameters Index.
    #[inline]
    pub fn spi(&self) -> u32 {
        u32::from_be_bytes([self.header[0], self.header[1], self.header[2], self.header[3]])
    }

    /// The sequence number as sent: its low 32 bits.
    #[inline]
    pub fn sequence(&self) -> u32 {
        u32::from_be_bytes([self.header[4], self.header[5], self.header[6], self.header[7]])
    }
}

/// What stands behind the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Length of the padding in bytes.
    pub pad_len: u8,
    /// Protocol of the payload.
    pub next_header: u8,
}

/// For each padding that alignment asks for: where it is in the last sixteen bytes before the trailer, and
/// what it is.
const SHORT_PADDING: [(u128, u128); 16] = {
    let mut all = [(0, 0); 16];
    let mut len = 1;
    while len < 16 {
        let (mask, padding) = all[len - 1];
        all[len] = (mask << 8 | 0xff, padding << 8 | len as u128);
        len += 1;
    }
    all
};

impl Trailer {
    /// Longest padding that aligning to a block of sixteen bytes asks for.
    pub const MAX_ALIGNMENT: u8 = 15;

    /// Reads the trailer at the end of deciphered `text`; an error if the padding is longer than the text.
    #[inline]
    pub fn parse(text: &[u8]) -> Result<Trailer, Malformed> {
        let [pad_len, next_header] = *text.last_chunk().ok_or(Malformed::Truncated)?;
        if usize::from(pad_len) + TRAILER > text.len() {
            return Err(Malformed::Length);
        }
        Ok(Trailer { pad_len, next_header })
    }

    /// Whether the padding at the end of deciphered `text`, which the trailer was read from, is 1, 2, 3, ...
    /// (RFC 4303 2.4).
    #[inline]
    pub fn is_padded_in_order(&self, text: &[u8]) -> bool {
        let Some((before, _)) = text.split_last_chunk::<TRAILER>() else { return false };
        let pad_len = usize::from(self.pad_len);
        // Nearly always it is what alignment asks for: looked at all at once.
        if let (Some((mask, padding)), Some(last)) = (SHORT_PADDING.get(pad_len), before.last_chunk()) {
            return u128::from_be_bytes(*last) & mask == *padding;
        }
        let Some(padding) = before.len().checked_sub(pad_len).map(|at| &before[at..]) else { return false };
        padding.iter().enumerate().all(|(at, &byte)| usize::from(byte) == at + 1)
    }

    /// Length of padding and trailer, in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.pad_len) + TRAILER
    }

    /// Never: a trailer has at least its two bytes.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes padding (1, 2, 3, ...: RFC 4303 2.4) and trailer at the begin of `room`, which may be
    /// used as a whole. Padding is at most [`Trailer::MAX_ALIGNMENT`] bytes here: what alignment asks
    /// for, so that it is one store of fixed size.
    #[inline]
    pub fn write(&self, room: &mut [u8; 32]) {
        const PATTERN: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        debug_assert!(self.pad_len <= Trailer::MAX_ALIGNMENT);
        let pad_len = usize::from(self.pad_len & 15);
        room[..16].copy_from_slice(&PATTERN);
        room[16..].fill(0);
        room[pad_len] = self.pad_len;
        room[pad_len + 1] = self.next_header;
    }
}
