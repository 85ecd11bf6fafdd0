//! The classic format: a file header, then records (draft-ietf-opsawg-pcap).
//!
//! ```text
//! file    magic | major, minor | zone | sigfigs | snaplen | FCS, link type     6 words
//! record  seconds | fraction | captured length | original length | data      4 words, data
//! ```

use std::io::Read;

use super::endian::Endian;
use super::error::check_record_length;
use super::reader::{Fault, Found, reading, truncated};
use super::window::Window;
use super::{CaptureErrorKind, Resolution};
use crate::LinkType;

pub(super) const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
pub(super) const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
pub(super) const FILE_HEADER: usize = 24;
pub(super) const RECORD_HEADER: usize = 16;

/// The upper bits of the last word describe a frame check sequence behind the data.
const LINK_TYPE_MASK: u32 = 0x03ff_ffff;

/// What a file header says about the records that follow.
pub(super) struct PcapSource {
    endian: Endian,
    lengths: Lengths,
    link: LinkType,
    resolution: Resolution,
    fraction_ns: u64,
}

/// The order of a record's two lengths: versions before 2.4 differ, and some writers of 2.3 from
/// others (libpcap, sf-pcap.c).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    OriginalFirst,
    SmallerIsCaptured,
}

impl PcapSource {
    /// Reads the file header; `None` if `magic` is not that of a pcap file.
    pub(super) fn open<R: Read>(window: &mut Window<R>, magic: [u8; 4]) -> Result<Option<PcapSource>, Fault> {
        let Some((endian, resolution)) = kind_of(magic) else {
            return Ok(None);
        };
        let here = window.want(FILE_HEADER).map_err(|source| (0, reading(source)))?;
        let Some(header) = window.bytes().first_chunk::<FILE_HEADER>() else {
            return Err((0, truncated("file header", 1, here, FILE_HEADER as u64)));
        };
        let version = |at| endian.u16([header[at], header[at + 1]]);
        let (major, minor) = (version(4), version(6));
        let lengths = match (major, minor) {
            (2, 0..=2) => Lengths::OriginalFirst,
            (2, 3) => Lengths::SmallerIsCaptured,
            (2, 4) => Lengths::CapturedFirst,
            _ => return Err((4, CaptureErrorKind::UnsupportedVersion { major, minor, expected: "2.4" })),
        };
        let [.., last] = endian.words::<FILE_HEADER, 6>(header);
        let code = last & LINK_TYPE_MASK;
        let link =
            LinkType::from_code(code).ok_or((20, CaptureErrorKind::UnsupportedLinkType { found: code }))?;
        window.consume(FILE_HEADER);
        let fraction_ns = match resolution {
            Resolution::Microseconds => 1_000,
            Resolution::Nanoseconds => 1,
        };
        Ok(Some(PcapSource { endian, lengths, link, resolution, fraction_ns }))
    }

    #[inline]
    pub(super) fn next<R: Read>(
        &mut self,
        window: &mut Window<R>,
        number: u64,
    ) -> Result<Option<Found>, Fault> {
        let offset = window.offset();
        let here = window.want(RECORD_HEADER).map_err(|source| (offset, reading(source)))?;
        let Some(header) = window.bytes().first_chunk::<RECORD_HEADER>() else {
            return match here {
                0 => Ok(None),
                _ => Err((offset, truncated("record header", number, here, RECORD_HEADER as u64))),
            };
        };
        let [seconds, fraction, first, second] = self.endian.words::<RECORD_HEADER, 4>(header);
        let (captured, original_len) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::OriginalFirst => (second, first),
            Lengths::SmallerIsCaptured => (first.min(second), first.max(second)),
        };
        let length = check_record_length(number, captured).map_err(|kind| (offset, kind))?;
        let size = RECORD_HEADER + length;
        let here = window.want(size).map_err(|source| (offset, reading(source)))?;
        if here < size {
            return Err((offset, truncated("record", number, here, size as u64)));
        }
        let start = window.consume(size) + RECORD_HEADER;
        Ok(Some(Found {
            // No overflow: 2^32 s + 2^32 us are 4.3e18 ns. A fraction over a second carries.
            timestamp_ns: u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.fraction_ns,
            link: self.link,
            original_len,
            data: start..start + length,
            offset,
        }))
    }

    pub(super) fn resolution(&self) -> Resolution {
        self.resolution
    }

    pub(super) fn link(&self) -> LinkType {
        self.link
    }
}

fn kind_of(magic: [u8; 4]) -> Option<(Endian, Resolution)> {
    let read_by = |endian: Endian| match endian.u32(magic) {
        MAGIC_MICROSECONDS => Some((endian, Resolution::Microseconds)),
        MAGIC_NANOSECONDS => Some((endian, Resolution::Nanoseconds)),
        _ => None,
    };
    read_by(Endian::Little).or_else(|| read_by(Endian::Big))
}
