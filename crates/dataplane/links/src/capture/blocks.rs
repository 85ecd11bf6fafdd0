//! Writes single blocks of pcapng (draft-ietf-opsawg-pcapng), for captures that are read while they grow. Each
//! function appends a whole block, little-endian, with timestamps in nanoseconds.

use super::pcapng::{
    BYTE_ORDER_MAGIC, ENHANCED_PACKET, INTERFACE_DESCRIPTION, OPTION_TSRESOL, SECTION_HEADER,
};
use crate::LinkType;

const INTERFACE_STATISTICS: u32 = 5;

const OPTION_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const EPB_FLAGS: u16 = 2;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// Type, length, interface, stamp (2), captured and original length.
const PACKET_HEADER: usize = 28;
/// The option of flags, the end of options, and the length again.
const PACKET_TRAILER: usize = 16;

/// Which way a packet went, as `epb_flags` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It was received.
    Inbound,
    /// It was sent.
    Outbound,
}

/// Begins a section; `application` says who writes it.
pub fn section(out: &mut Vec<u8>, application: &str) {
    let start = begin(out, SECTION_HEADER);
    words(out, [BYTE_ORDER_MAGIC, 1, u32::MAX, u32::MAX]); // 1.0, of unknown length
    option(out, SHB_USERAPPL, application.as_bytes());
    end(out, start);
}

/// Describes an interface; they are numbered from 0 in the order of their descriptions.
pub fn interface(out: &mut Vec<u8>, link: LinkType, name: &str, snap: u32) {
    let start = begin(out, INTERFACE_DESCRIPTION);
    words(out, [link.code().into(), snap]);
    option(out, IF_NAME, name.as_bytes());
    option(out, OPTION_TSRESOL, &[9]);
    end(out, start);
}

/// Bytes of the block of a packet of which `captured` bytes are kept.
#[inline]
pub const fn packet_len(captured: usize) -> usize {
    PACKET_HEADER + captured.next_multiple_of(4) + PACKET_TRAILER
}

/// A packet, given in two parts, of which the first `snap` bytes are kept.
#[inline]
pub fn packet(
    out: &mut Vec<u8>,
    interface: u32,
    timestamp_ns: u64,
    way: Way,
    (head, body): (&[u8], &[u8]),
    snap: usize,
) {
    let original = head.len() + body.len();
    let captured = original.min(snap);
    let len = packet_len(captured) as u32;
    let (high, low) = ((timestamp_ns >> 32) as u32, timestamp_ns as u32);
    words(out, [ENHANCED_PACKET, len, interface, high, low, captured as u32, original as u32]);
    let head = &head[..head.len().min(snap)];
    out.extend_from_slice(head);
    out.extend_from_slice(&body[..captured - head.len()]);
    out.extend_from_slice(&[0; 3][..captured.next_multiple_of(4) - captured]);
    let flags = if way == Way::Inbound { 1 } else { 2 };
    words(out, [u32::from(EPB_FLAGS) | 4 << 16, flags, 0, len]);
}

/// What has become of an interface's packets so far.
pub fn statistics(out: &mut Vec<u8>, interface: u32, timestamp_ns: u64, received: u64, lost: u64) {
    let start = begin(out, INTERFACE_STATISTICS);
    words(out, [interface, (timestamp_ns >> 32) as u32, timestamp_ns as u32]);
    if lost > 0 {
        let comment = format!("{lost} packets passed that are not in the captures");
        option(out, OPTION_COMMENT, comment.as_bytes());
    }
    option(out, ISB_IFRECV, &received.to_le_bytes());
    option(out, ISB_IFDROP, &lost.to_le_bytes());
    end(out, start);
}

/// Bytes of the block that `bytes` begins with; `None` where it is not all there.
#[inline]
pub fn block_len(bytes: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
    (len >= 12 && len <= bytes.len()).then_some(len)
}

/// The stamp of the packet whose block `bytes` begins with; `None` for other blocks.
#[inline]
pub fn stamp(bytes: &[u8]) -> Option<u64> {
    let header: &[u8; PACKET_HEADER] = bytes.first_chunk()?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    (word(0) == ENHANCED_PACKET).then(|| u64::from(word(12)) << 32 | u64::from(word(16)))
}

fn begin(out: &mut Vec<u8>, kind: u32) -> usize {
    let start = out.len();
    words(out, [kind, 0]);
    start
}

/// Ends options and block.
fn end(out: &mut Vec<u8>, start: usize) {
    words(out, [0]);
    let len = (out.len() + 4 - start) as u32;
    words(out, [len]);
    out[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
}

/// An option; of a value that is too long the begin.
fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(4_096)];
    words(out, [u32::from(code) | (value.len() as u32) << 16]);
    out.extend_from_slice(value);
    out.extend_from_slice(&[0; 3][..value.len().next_multiple_of(4) - value.len()]);
}

#[inline]
fn words<const N: usize>(out: &mut Vec<u8>, words: [u32; N]) {
    out.extend_from_slice(words.map(u32::to_le_bytes).as_flattened());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_say_their_length_twice_and_packets_their_stamp() {
        let mut out = Vec::new();
        section(&mut out, "an application");
        interface(&mut out, LinkType::Raw, "wan", 96);
        for len in 0..9usize {
            let bytes = vec![7; len];
            let (head, body) = bytes.split_at(len / 2);
            let before = out.len();
            packet(&mut out, 0, 5_000_000_000 + len as u64, Way::Outbound, (head, body), 6);
            assert_eq!(out.len() - before, packet_len(len.min(6)));
        }
        statistics(&mut out, 0, 9, 10, 1);
        let (mut at, mut stamps) = (0, vec![]);
        while at < out.len() {
            let len = block_len(&out[at..]).unwrap();
            assert_eq!(out[at + len - 4..at + len], (len as u32).to_le_bytes());
            stamps.extend(stamp(&out[at..]));
            at += len;
        }
        assert_eq!(stamps, (5_000_000_000..5_000_000_009).collect::<Vec<_>>());
        assert_eq!((block_len(&out[at..]), block_len(&out[..27])), (None, None));
    }
}
