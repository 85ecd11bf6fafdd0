//! Captures out: complete under the output's name, or not at all.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::error::check_record_length;
use super::{CaptureError, CaptureErrorKind, Format, MAX_RECORD, Resolution, pcap, pcapng};
use crate::LinkType;
use crate::output::Output;

/// Bytes gathered before they are given to the system.
const BUFFER: usize = 256 * 1024;

/// A capture file that is being written.
///
/// The format follows the output's name: `.pcapng` is pcapng with nanosecond stamps, anything else
/// pcap. Records go to a temporary file in the output's directory; [`Writer::finish`] gives it the
/// output's name, and a writer that is dropped before leaves nothing behind. An output that is a
/// device or a pipe is written to directly.
pub struct Writer {
    output: BufWriter<Output>,
    path: PathBuf,
    format: Format,
    /// Link types declared so far: at most one in a pcap file, else by interface number.
    links: Vec<LinkType>,
    resolution: Resolution,
    written: u64,
    records: u64,
}

impl Writer {
    /// Opens an output for writing, so that one that cannot be written is known before any work.
    ///
    /// Fails on `-`, a directory, a missing directory or missing permissions.
    pub fn create(path: impl AsRef<Path>) -> Result<Writer, CaptureError> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return Err(CaptureError::new(path, 0, CaptureErrorKind::StandardOutput));
        }
        let target = Output::create(path)
            .map_err(|source| CaptureError::new(path, 0, CaptureErrorKind::Io { doing: "create", source }))?;
        let is_pcapng = path.extension().is_some_and(|word| word.eq_ignore_ascii_case("pcapng"));
        Ok(Writer {
            output: BufWriter::with_capacity(BUFFER, target),
            path: path.to_owned(),
            format: if is_pcapng { Format::PcapNg } else { Format::Pcap },
            links: Vec::new(),
            resolution: Resolution::Nanoseconds,
            written: 0,
            records: 0,
        })
    }

    /// Writes the file's header now, rather than with the first record: even a capture that stays
    /// empty then has the link type, and a pcap file the resolution (pcapng always has nanoseconds).
    /// Without this call stamps have nanoseconds, and an empty capture is [`LinkType::Raw`].
    ///
    /// Further calls add link types to a pcapng file; a pcap file fails on a second one, and keeps
    /// its resolution.
    pub fn declare(&mut self, link: LinkType, resolution: Resolution) -> Result<(), CaptureError> {
        if self.links.is_empty() && self.format == Format::Pcap {
            self.resolution = resolution;
        }
        self.interface(link).map(drop).map_err(|kind| self.error(kind))
    }

    /// Appends a record; stamps are rounded down to the file's resolution.
    ///
    /// Fails if `data` is longer than [`MAX_RECORD`], if the format has no room for the stamp or for
    /// a second link type, and if the system cannot take it. A record that failed for its content
    /// was not written, and the next may be.
    #[inline]
    pub fn write(
        &mut self,
        link: LinkType,
        timestamp_ns: u64,
        original_len: u32,
        data: &[u8],
    ) -> Result<(), CaptureError> {
        match self.try_write(link, timestamp_ns, original_len, data) {
            Ok(()) => {
                self.records += 1;
                Ok(())
            }
            Err(kind) => Err(self.error(kind)),
        }
    }

    /// Completes the file and gives it the output's name.
    pub fn finish(mut self) -> Result<(), CaptureError> {
        if self.links.is_empty() {
            self.interface(LinkType::Raw).map_err(|kind| self.error(kind))?;
        }
        let Writer { output, path, written, .. } = self;
        let target = output.into_inner().map_err(io::IntoInnerError::into_error);
        let finished = target.and_then(Output::finish);
        finished.map_err(|source| {
            CaptureError::new(&path, written, CaptureErrorKind::Io { doing: "finish", source })
        })
    }

    /// The container format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How many records were written.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The name of the output.
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[inline]
    fn try_write(
        &mut self,
        link: LinkType,
        timestamp_ns: u64,
        original_len: u32,
        data: &[u8],
    ) -> Result<(), CaptureErrorKind> {
        let captured = u32::try_from(data.len()).unwrap_or(u32::MAX);
        check_record_length(self.records + 1, captured)?;
        let interface = self.interface(link)?;
        match self.format {
            Format::Pcap => self.pcap_record(timestamp_ns, captured, original_len, data),
            Format::PcapNg => self.pcapng_record(interface, timestamp_ns, captured, original_len, data),
        }
    }

    /// The number of the interface with this link type, which is added if it is new.
    #[inline]
    fn interface(&mut self, link: LinkType) -> Result<u32, CaptureErrorKind> {
        match self.links.iter().position(|&known| known == link) {
            Some(number) => Ok(number as u32),
            None => self.new_interface(link),
        }
    }

    #[cold]
    fn new_interface(&mut self, link: LinkType) -> Result<u32, CaptureErrorKind> {
        match (self.format, self.links.first()) {
            (Format::Pcap, Some(&expected)) => {
                let record = self.records + 1;
                return Err(CaptureErrorKind::MixedLinkTypes { record, found: link, expected });
            }
            (Format::Pcap, None) => self.pcap_header(link)?,
            (Format::PcapNg, first) => {
                if first.is_none() {
                    self.pcapng_section()?;
                }
                self.pcapng_interface(link)?;
            }
        }
        self.links.push(link);
        Ok(self.links.len() as u32 - 1)
    }

    fn pcap_header(&mut self, link: LinkType) -> Result<(), CaptureErrorKind> {
        let magic = match self.resolution {
            Resolution::Microseconds => pcap::MAGIC_MICROSECONDS,
            Resolution::Nanoseconds => pcap::MAGIC_NANOSECONDS,
        };
        let version = 2 | 4 << 16;
        self.words([magic, version, 0, 0, MAX_RECORD as u32, link.code().into()])
    }

    #[inline]
    fn pcap_record(
        &mut self,
        timestamp_ns: u64,
        captured: u32,
        original_len: u32,
        data: &[u8],
    ) -> Result<(), CaptureErrorKind> {
        let Ok(seconds) = u32::try_from(timestamp_ns / 1_000_000_000) else {
            return Err(CaptureErrorKind::TimestampRange { record: self.records + 1, until: 2106 });
        };
        let nanoseconds = (timestamp_ns % 1_000_000_000) as u32;
        let fraction = match self.resolution {
            Resolution::Microseconds => nanoseconds / 1_000,
            Resolution::Nanoseconds => nanoseconds,
        };
        self.words([seconds, fraction, captured, original_len])?;
        self.bytes(data)
    }

    fn pcapng_section(&mut self) -> Result<(), CaptureErrorKind> {
        let length = 28;
        let (version, unknown) = (1, u32::MAX); // 1.0; the section's length is not known yet
        self.words([
            pcapng::SECTION_HEADER,
            length,
            pcapng::BYTE_ORDER_MAGIC,
            version,
            unknown,
            unknown,
            length,
        ])
    }

    fn pcapng_interface(&mut self, link: LinkType) -> Result<(), CaptureErrorKind> {
        let length = 32;
        let (option, nanoseconds, end) = (u32::from(pcapng::OPTION_TSRESOL) | 1 << 16, 9, 0);
        self.words([
            pcapng::INTERFACE_DESCRIPTION,
            length,
            link.code().into(),
            MAX_RECORD as u32,
            option,
            nanoseconds,
            end,
            length,
        ])
    }

    #[inline]
    fn pcapng_record(
        &mut self,
        interface: u32,
        timestamp_ns: u64,
        captured: u32,
        original_len: u32,
        data: &[u8],
    ) -> Result<(), CaptureErrorKind> {
        let padding = data.len().next_multiple_of(4) - data.len();
        let length = 32 + captured + padding as u32;
        let (high, low) = ((timestamp_ns >> 32) as u32, timestamp_ns as u32);
        self.words([pcapng::ENHANCED_PACKET, length, interface, high, low, captured, original_len])?;
        self.bytes(data)?;
        self.bytes(&[0; 3][..padding])?;
        self.words([length])
    }

    #[inline]
    fn words<const N: usize>(&mut self, words: [u32; N]) -> Result<(), CaptureErrorKind> {
        self.bytes(words.map(u32::to_le_bytes).as_flattened())
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), CaptureErrorKind> {
        self.written += bytes.len() as u64;
        self.output.write_all(bytes).map_err(writing)
    }

    #[cold]
    fn error(&self, kind: CaptureErrorKind) -> CaptureError {
        CaptureError::new(&self.path, self.written, kind)
    }
}

#[cold]
fn writing(source: io::Error) -> CaptureErrorKind {
    CaptureErrorKind::Io { doing: "write", source }
}
