//! Packet captures as traces.

use std::io::Read;
use std::net::IpAddr;
use std::path::Path;

use forebay_links::capture::{Format, Reader, Record};
use forebay_links::frame::{Family, IpAt, ip_length, locate};

use super::{Fault, Names};
use crate::traffic::Trace;

/// The magic numbers of pcap, with micro- and nanoseconds, and pcapng.
pub(super) fn is_capture(magic: [u8; 4]) -> bool {
    let number = u32::from_be_bytes(magic);
    [number, number.swap_bytes()].iter().any(|n| [0xa1b2_c3d4, 0xa1b2_3c4d, 0x0a0d_0d0a].contains(n))
}

pub(super) fn read(input: impl Read, path: &Path) -> Result<Trace, Fault> {
    let mut reader = Reader::new(input, path).map_err(Fault::new)?;
    let (mut trace, mut stamps, mut names) = (Trace::default(), Vec::new(), Names::new());
    let mut last = 0;
    while let Some(record) = reader.next_whole_record().map_err(Fault::new)? {
        let at = locate(record.link, record.data).ok();
        let packet = at.and_then(|at| header(&at, &record));
        let Some(Header { bytes, destination, octet }) = packet else {
            trace.skipped += 1;
            continue;
        };
        trace.sizes.push(bytes);
        trace.sas.push(names.number(destination));
        trace.dscps.push(octet >> 2);
        // Simple packet blocks have no stamp: such a packet comes with the one before it.
        last = if record.timestamp_ns == 0 { last } else { u128::from(record.timestamp_ns) * 1_000 };
        stamps.push(last);
    }
    trace.skipped += u64::from(reader.cut().is_some());
    // Simple packet blocks alone make a trace without times, rather than one with all packets at one moment.
    if last > 0 || reader.format() == Format::Pcap {
        trace.set_times(&stamps).map_err(Fault::too_long)?;
    }
    Ok(trace)
}

/// What is read of an IP packet.
struct Header {
    bytes: u32,
    destination: IpAddr,
    /// The DS field and ECN's bits (RFC 2474 3, RFC 3168 5).
    octet: u8,
}

/// The header of an IP packet (RFC 791 3.1, RFC 8200 3).
fn header(at: &IpAt, record: &Record<'_>) -> Option<Header> {
    let packet = record.data.get(at.start..)?;
    let bytes = ip_length(at, record.data, record.original_len)? as u32;
    let be16 = |at: usize| packet.get(at..at + 2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    Some(match at.family {
        Family::V4 => Header {
            bytes,
            destination: IpAddr::from(*packet.get(16..)?.first_chunk::<4>()?),
            octet: *packet.get(1)?,
        },
        Family::V6 => Header {
            bytes,
            destination: IpAddr::from(*packet.get(24..)?.first_chunk::<16>()?),
            octet: (be16(0)? >> 4) as u8,
        },
    })
}
