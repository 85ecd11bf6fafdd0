//! Captures in: one record after the other.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::pcap::PcapSource;
use super::pcapng::PcapNgSource;
use super::window::Window;
use super::{CaptureError, CaptureErrorKind, Format, Resolution};
use crate::LinkType;

/// One captured frame, valid until the next one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured, in nanoseconds since 1970; 0 for a simple packet block, which has no stamp.
    pub timestamp_ns: u64,
    /// The link type of its bytes.
    pub link: LinkType,
    /// The bytes that were kept, at most [`MAX_RECORD`](super::MAX_RECORD).
    pub data: &'a [u8],
    /// How many bytes the frame had on the wire, as the file says; less than were kept in damaged files.
    pub original_len: u32,
    /// Its number in the file, counted from 1 as Wireshark does.
    pub number: u64,
    /// Byte of the file at which its header begins.
    pub offset: u64,
}

/// A capture file, or any other input that holds one, read as a stream in bounded memory.
///
/// Nothing is allocated per record, and no byte sequence makes it panic. For a fuzzer or a test,
/// `&[u8]` is an input.
pub struct Reader<R> {
    window: Window<R>,
    source: Source,
    path: PathBuf,
    records: u64,
    ended: bool,
    cut: Option<CaptureError>,
}

enum Source {
    Pcap(PcapSource),
    PcapNg(PcapNgSource),
}

/// A record as the formats find it: where its data lies in the window.
pub(super) struct Found {
    pub(super) timestamp_ns: u64,
    pub(super) link: LinkType,
    pub(super) original_len: u32,
    pub(super) data: Range<usize>,
    pub(super) offset: u64,
}

/// What is wrong, and at which byte of the file.
pub(super) type Fault = (u64, CaptureErrorKind);

impl Reader<File> {
    /// Opens a capture file and reads its header.
    ///
    /// Fails if the file cannot be opened, is empty or no capture, or has a link type that carries no IP.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader<File>, CaptureError> {
        let path = path.as_ref();
        match File::open(path) {
            Ok(file) => Reader::new(file, path),
            Err(source) => Err(CaptureError::new(path, 0, CaptureErrorKind::Io { doing: "open", source })),
        }
    }
}

impl<R: Read> Reader<R> {
    /// Reads a capture's header from `input`; `path` is its name in errors.
    ///
    /// The reader has a buffer of its own: an unbuffered input is best.
    pub fn new(input: R, path: impl Into<PathBuf>) -> Result<Reader<R>, CaptureError> {
        let (path, mut window) = (path.into(), Window::new(input));
        match Source::detect(&mut window) {
            Ok(source) => Ok(Reader { window, source, path, records: 0, ended: false, cut: None }),
            Err((offset, kind)) => Err(CaptureError::new(&path, offset, kind)),
        }
    }

    /// The next record; `None` when the capture ends where it may.
    ///
    /// Fails if the file is damaged, cut short or unreadable at this place. After a failure there
    /// is no next record: what follows cannot be trusted.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        Ok(self.advance()?.map(|(found, number)| self.record(found, number)))
    }

    /// Finds the next record, and its number.
    #[inline]
    fn advance(&mut self) -> Result<Option<(Found, u64)>, CaptureError> {
        if self.ended {
            return Ok(None);
        }
        let number = self.records + 1;
        let found = match &mut self.source {
            Source::Pcap(source) => source.next(&mut self.window, number),
            Source::PcapNg(source) => source.next(&mut self.window, number),
        };
        match found {
            Ok(Some(found)) => {
                self.records = number;
                Ok(Some((found, number)))
            }
            Ok(None) => {
                self.ended = true;
                Ok(None)
            }
            Err((offset, kind)) => {
                self.ended = true;
                Err(CaptureError::new(&self.path, offset, kind))
            }
        }
    }

    #[inline]
    fn record(&self, found: Found, number: u64) -> Record<'_> {
        Record {
            timestamp_ns: found.timestamp_ns,
            link: found.link,
            data: self.window.consumed(found.data.start, found.data.len()),
            original_len: found.original_len,
            number,
            offset: found.offset,
        }
    }

    /// The same for a capture that may have been cut short while it was written or copied: a last record that is not whole
    /// ends it, and [`Reader::cut`] says so.
    ///
    /// # Errors
    /// As of [`Reader::next_record`], but for that.
    pub fn next_whole_record(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        // A record that is borrowed from `self` cannot be returned from one arm while another writes to `self`.
        match self.advance() {
            Ok(Some((found, number))) => Ok(Some(self.record(found, number))),
            Ok(None) => Ok(None),
            Err(error) if error.is_cut() => {
                self.cut = Some(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What [`Reader::next_whole_record`] found in the place of a last record.
    pub fn cut(&self) -> Option<&CaptureError> {
        self.cut.as_ref()
    }

    /// The container format.
    pub fn format(&self) -> Format {
        match self.source {
            Source::Pcap(_) => Format::Pcap,
            Source::PcapNg(_) => Format::PcapNg,
        }
    }

    /// The resolution that keeps every stamp of this capture exactly; for pcapng always nanoseconds,
    /// for interfaces that are not described yet may have them.
    pub fn resolution(&self) -> Resolution {
        match &self.source {
            Source::Pcap(source) => source.resolution(),
            Source::PcapNg(_) => Resolution::Nanoseconds,
        }
    }

    /// The link type of a pcap file; that of the first interface of a pcapng file once it was read,
    /// with the first record at the latest.
    pub fn link(&self) -> Option<LinkType> {
        match &self.source {
            Source::Pcap(source) => Some(source.link()),
            Source::PcapNg(source) => source.first_link(),
        }
    }

    /// How many records were read.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The name of the input.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Source {
    fn detect<R: Read>(window: &mut Window<R>) -> Result<Source, Fault> {
        let found = window.want(4).map_err(|source| (0, reading(source)))?;
        let Some(&magic) = window.bytes().first_chunk::<4>() else {
            return Err((
                0,
                match found {
                    0 => CaptureErrorKind::Empty,
                    _ => truncated("magic number", 1, found, 4),
                },
            ));
        };
        if magic == PcapNgSource::MAGIC {
            return PcapNgSource::open(window).map(Source::PcapNg);
        }
        match PcapSource::open(window, magic)? {
            Some(source) => Ok(Source::Pcap(source)),
            None => Err((0, CaptureErrorKind::UnknownMagic { found: magic })),
        }
    }
}

#[cold]
pub(super) fn reading(source: io::Error) -> CaptureErrorKind {
    CaptureErrorKind::Io { doing: "read", source }
}

#[cold]
pub(super) fn truncated(what: &'static str, record: u64, found: usize, expected: u64) -> CaptureErrorKind {
    CaptureErrorKind::Truncated { what, record, found: found as u64, expected }
}
