//! Capture files in and out: pcap and pcapng, as a stream and in bounded memory.
//!
//! Sources: draft-ietf-opsawg-pcap (pcap), draft-ietf-opsawg-pcapng (pcapng).

pub mod blocks;
mod endian;
mod error;
mod pcap;
mod pcapng;
mod reader;
mod tick;
mod window;
#[cfg(unix)]
mod writer;

pub use error::{CaptureError, CaptureErrorKind};
pub use reader::{Reader, Record};
#[cfg(unix)]
pub use writer::Writer;

/// The most bytes a record may hold: the largest snapshot length that libpcap takes
/// (`MAXIMUM_SNAPLEN`), four times the largest IP packet.
pub const MAX_RECORD: usize = 256 * 1024;

/// The most bytes of a pcapng block that has to be looked into: a record of [`MAX_RECORD`] bytes
/// with one comment of full length. Blocks that are skipped may have any length.
pub const MAX_BLOCK: usize = MAX_RECORD + 64 * 1024 + 64;

/// The most interfaces in one section of a pcapng file; old packet blocks cannot name more.
pub const MAX_INTERFACES: usize = 65_536;

/// The two container formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The classic format: one link type and one resolution a file.
    Pcap,
    /// The block format: several interfaces, each with its link type and resolution.
    PcapNg,
}

/// The unit of a capture's time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resolution {
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}
