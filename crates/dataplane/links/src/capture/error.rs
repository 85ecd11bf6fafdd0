//! Errors of capture files, with their position and a hint.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::{MAX_INTERFACES, MAX_RECORD};
use crate::LinkType;

/// A capture that could not be read or written: the file, the byte, and what was found there.
#[derive(Debug)]
#[non_exhaustive]
pub struct CaptureError {
    /// The file, as it was named.
    pub path: PathBuf,
    /// Byte of the file at which the part begins that is wrong; when writing, the bytes written so far.
    pub offset: u64,
    /// The kind of the error, with the value found and the value expected.
    pub kind: CaptureErrorKind,
}

/// Errors in captures; records are counted from 1, as Wireshark does.
#[derive(Debug)]
#[non_exhaustive]
pub enum CaptureErrorKind {
    /// The system refused: `doing` completes "cannot ...".
    Io {
        /// `open`, `read`, `create`, `write` or `finish`.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The output was named `-`.
    StandardOutput,
    /// The file has no byte.
    Empty,
    /// The file begins like no capture.
    UnknownMagic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// A version of the format with another layout.
    UnsupportedVersion {
        /// Major version found.
        major: u16,
        /// Minor version found.
        minor: u16,
        /// The version that can be read.
        expected: &'static str,
    },
    /// A link type that holds no IP packets, or none that Forebay can find.
    UnsupportedLinkType {
        /// The code in the file's header, which holds for all of its records.
        found: u32,
    },
    /// The file ends inside of something.
    Truncated {
        /// What it ends in.
        what: &'static str,
        /// The record that was to be read.
        record: u64,
        /// How many of its bytes there are.
        found: u64,
        /// How many there should be.
        expected: u64,
    },
    /// Something is longer than any that makes sense.
    TooLong {
        /// What is too long.
        what: &'static str,
        /// The record that it is or stands before.
        record: u64,
        /// Its length in bytes.
        found: u64,
        /// The most it may have.
        limit: u64,
    },
    /// A field contradicts another one or the format.
    Malformed {
        /// The field.
        what: &'static str,
        /// The record that it belongs to or stands before.
        record: u64,
        /// Its value.
        found: u64,
        /// What it may be.
        expected: String,
    },
    /// A packet names an interface that was not described.
    UnknownInterface {
        /// The record.
        record: u64,
        /// The interface's number.
        found: u32,
        /// How many were described before.
        known: usize,
    },
    /// More interfaces than [`MAX_INTERFACES`] in one section.
    TooManyInterfaces,
    /// A time stamp before 1970, or too late for the format.
    TimestampRange {
        /// The record.
        record: u64,
        /// The last year that fits.
        until: u16,
    },
    /// A record of another link type in a file that can have one only.
    MixedLinkTypes {
        /// The record.
        record: u64,
        /// Its link type.
        found: LinkType,
        /// The file's link type.
        expected: LinkType,
    },
}

/// How a file begins that is no capture, and what it is.
const KNOWN_MAGICS: [(&[u8], &str); 7] = [
    (&[0x1f, 0x8b], "a gzip file: decompress it first, `gunzip`"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "a zstd file: decompress it first, `zstd -d`"),
    (&[0xfd, b'7', b'z', b'X'], "an xz file: decompress it first, `xz -d`"),
    (b"BZh", "a bzip2 file: decompress it first, `bunzip2`"),
    (&[0x34, 0xcd, 0xb2, 0xa1], "a modified pcap: convert it, `editcap -F pcapng IN OUT`"),
    (&[0xa1, 0xb2, 0xcd, 0x34], "a modified pcap: convert it, `editcap -F pcapng IN OUT`"),
    (b"snoo", "a snoop file: convert it, `editcap -F pcapng IN OUT`"),
];

impl CaptureError {
    pub(super) fn new(path: &Path, offset: u64, kind: CaptureErrorKind) -> CaptureError {
        CaptureError { path: path.to_owned(), offset, kind }
    }

    /// Whether the file merely ends inside of something: what was read before is whole.
    pub fn is_cut(&self) -> bool {
        matches!(self.kind, CaptureErrorKind::Truncated { .. })
    }

    /// What the user can do about the error; `None` where no remedy is known.
    pub fn hint(&self) -> Option<&'static str> {
        use CaptureErrorKind as Kind;
        Some(match &self.kind {
            Kind::Io { doing: "open", source } if source.kind() == io::ErrorKind::NotFound => {
                "check the path; standard input is read as /dev/stdin"
            }
            Kind::Io { doing: "create", source } => return create_hint(source.kind()),
            Kind::Io { .. } => return None,
            Kind::StandardOutput => "name a file, or /dev/stdout",
            Kind::Empty => "whatever was to write the capture has not written its header yet, or failed",
            Kind::UnknownMagic { found } => {
                let known = KNOWN_MAGICS.iter().find(|(magic, _)| found.starts_with(magic));
                known.map_or("captures in pcap and pcapng format are read", |row| row.1)
            }
            Kind::UnsupportedVersion { .. } => "convert it with `editcap -F pcapng IN OUT`",
            Kind::UnsupportedLinkType { .. } => {
                "link types read: NULL, ETHERNET, PPP, PPP_HDLC, RAW, LOOP, LINUX_SLL, IPV4, IPV6, LINUX_SLL2"
            }
            Kind::Truncated { .. } => {
                "the capture was cut short while written or copied; `editcap IN OUT` saves what is whole"
            }
            Kind::TooLong { .. } | Kind::Malformed { .. } => {
                "the file is damaged from here on; `editcap IN OUT` saves what lies before"
            }
            Kind::UnknownInterface { .. } => "the interface description block is missing or stands later",
            Kind::TooManyInterfaces => "split the capture by interface with tshark",
            Kind::TimestampRange { .. } => "shift the stamps with `editcap -t SECONDS IN OUT`",
            Kind::MixedLinkTypes { .. } => "name the output .pcapng, which can hold several link types",
        })
    }
}

fn create_hint(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::NotFound => Some("the directory does not exist: create it first"),
        io::ErrorKind::IsADirectory => Some("name a file in the directory"),
        io::ErrorKind::PermissionDenied => Some("the file and its directory must be writable"),
        _ => None,
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.kind {
            CaptureErrorKind::Io { doing, source } => write!(f, "cannot {doing} {path}: {source}"),
            CaptureErrorKind::StandardOutput => write!(f, "captures are not written to `{path}`"),
            CaptureErrorKind::Empty => write!(f, "{path}: the file is empty, expected a capture"),
            kind => write!(f, "{path}: byte {}: {kind}", self.offset),
        }
    }
}

impl fmt::Display for CaptureErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use CaptureErrorKind as Kind;
        match self {
            Kind::Io { doing, source } => write!(f, "cannot {doing}: {source}"),
            Kind::StandardOutput => f.write_str("standard output is not supported"),
            Kind::Empty => f.write_str("the file is empty, expected a capture"),
            Kind::UnknownMagic { found: [a, b, c, d] } => write!(
                f,
                "the file begins with {a:02x} {b:02x} {c:02x} {d:02x}, expected the magic number of pcap or pcapng"
            ),
            Kind::UnsupportedVersion { major, minor, expected } => {
                write!(f, "version {major}.{minor} of the format, expected {expected}")
            }
            Kind::UnsupportedLinkType { found } => {
                write!(f, "link type {found}, expected one that carries IP")
            }
            Kind::Truncated { what, record, found, expected } => write!(
                f,
                "the file ends in a {what}, at record {record}: found {found} of {expected} expected bytes"
            ),
            Kind::TooLong { what, record, found, limit } => {
                write!(f, "{what} of {found} bytes, at record {record}, expected at most {limit}")
            }
            Kind::Malformed { what, record, found, expected } => {
                write!(f, "{what} is {found}, at record {record}, expected {expected}")
            }
            Kind::UnknownInterface { record, found, known } => write!(
                f,
                "record {record} is of interface {found}, expected one of the {known} described so far"
            ),
            Kind::TooManyInterfaces => {
                write!(f, "an interface too many, expected at most {MAX_INTERFACES} in a section")
            }
            Kind::TimestampRange { record, until } => {
                write!(f, "the time stamp of record {record} is out of range, expected 1970 to {until}")
            }
            Kind::MixedLinkTypes { record, found, expected } => {
                write!(f, "record {record} has link type {found}, expected {expected} as the ones before")
            }
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            CaptureErrorKind::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The one length check of both formats.
pub(super) fn check_record_length(record: u64, length: u32) -> Result<usize, CaptureErrorKind> {
    match length as usize {
        length if length <= MAX_RECORD => Ok(length),
        length => Err(CaptureErrorKind::TooLong {
            what: "a record",
            record,
            found: length as u64,
            limit: MAX_RECORD as u64,
        }),
    }
}
