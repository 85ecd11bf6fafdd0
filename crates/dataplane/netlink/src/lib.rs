//! Netlink's framing: messages in a datagram, attributes in a message (`linux/netlink.h`). Everything is in the machine's
//! byte order; whatever does not fit where it claims to be is [`Malformed`], never a panic.
//!
//! The mirror of the kernel's SAs (XFRM), interfaces and routes (rtnetlink) and the guard's rules (nf_tables) are read and
//! written with it. It has no sockets.
//!
//! The netlink-packet crates make a tree of owned values of a message, with a type for each attribute. What is wanted here
//! are a few attributes of messages that come by the ten thousand, looked up where they stand.

use std::fmt;

/// Length of `struct nlmsghdr` in bytes.
pub const HEADER: usize = 16;
/// Length of `struct nlattr` in bytes.
const ATTRIBUTE_HEADER: usize = 4;
/// `NLA_F_NESTED`: the attribute holds attributes.
const NESTED: u16 = 0x8000;
/// `NLMSG_ERROR`: the answer to a request.
pub const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
pub const DONE: u16 = 3;
/// `NLM_F_REQUEST`.
pub const REQUEST: u16 = 0x1;
/// `NLM_F_DUMP_INTR` in what comes: the dump has seen two states of the list.
pub const DUMP_INTERRUPTED: u16 = 0x10;
/// `NLM_F_ACK`.
pub const ACK: u16 = 0x4;
/// `NLM_F_REPLACE` in what is sent.
pub const REPLACE: u16 = 0x100;
/// `NLM_F_DUMP`.
pub const DUMP: u16 = 0x300;

/// A message that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(
    /// What was wrong.
    pub &'static str,
);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed netlink message: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// `nlmsg_type`.
    pub kind: u16,
    /// `nlmsg_flags`.
    pub flags: u16,
    /// `nlmsg_seq`.
    pub sequence: u32,
    /// What follows the header.
    pub body: &'a [u8],
}

/// The messages of a datagram; ends behind the first that is malformed.
#[derive(Clone, Debug)]
pub struct Frames<'a>(&'a [u8]);

impl<'a> Frames<'a> {
    /// Those of `datagram`.
    pub fn new(datagram: &'a [u8]) -> Frames<'a> {
        Frames(datagram)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.0);
        if rest.is_empty() {
            return None;
        }
        let frame = || {
            let len = u32_at(rest, 0)? as usize;
            let body = rest.get(HEADER..len)?;
            let frame =
                Frame { kind: u16_at(rest, 4)?, flags: u16_at(rest, 6)?, sequence: u32_at(rest, 8)?, body };
            Some((frame, align(len)))
        };
        let Some((frame, len)) = frame() else {
            return Some(Err(Malformed("its length is not that of the datagram")));
        };
        self.0 = rest.get(len..).unwrap_or_default();
        Some(Ok(frame))
    }
}

/// The attributes of a message: type and content of each.
#[derive(Clone, Debug)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Those that follow the first `fixed` bytes of a message.
    pub fn behind(body: &'a [u8], fixed: usize) -> Attributes<'a> {
        Attributes(body.get(align(fixed)..).unwrap_or_default())
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<(u16, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.0);
        if rest.is_empty() {
            return None;
        }
        let attribute = || {
            let len = u16_at(rest, 0)? as usize;
            // The two upper bits of the type are flags (nested, byte order).
            Some((u16_at(rest, 2)? & 0x3fff, rest.get(ATTRIBUTE_HEADER..len)?, align(len)))
        };
        let Some((kind, content, len)) = attribute() else {
            return Some(Err(Malformed("an attribute is longer than its message")));
        };
        self.0 = rest.get(len..).unwrap_or_default();
        Some(Ok((kind, content)))
    }
}

/// The content of the first attribute of a kind in these attributes.
pub fn find(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    Attributes(attributes).map_while(Result::ok).find(|one| one.0 == kind).map(|one| one.1)
}

/// Bytes up to the next multiple of four.
fn align(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// `N` bytes from `at` on.
pub fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// A number of 16 bits in the machine's order.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes_at(bytes, at).map(u16::from_ne_bytes)
}

/// A number of 32 bits in the machine's order.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_ne_bytes)
}

/// A number of 64 bits in the machine's order.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes_at(bytes, at).map(u64::from_ne_bytes)
}

/// Appends a request to others of a datagram: its fixed part, and what `write` appends.
pub fn put_message(
    bytes: &mut Vec<u8>,
    kind: u16,
    flags: u16,
    sequence: u32,
    fixed: &[u8],
    write: impl FnOnce(&mut Vec<u8>),
) {
    let begin = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&(REQUEST | flags).to_ne_bytes());
    bytes.extend_from_slice(&sequence.to_ne_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(fixed);
    bytes.resize(align(bytes.len()), 0);
    write(bytes);
    let len = (bytes.len() - begin) as u32;
    bytes[begin..begin + 4].copy_from_slice(&len.to_ne_bytes());
}

/// Appends an attribute.
pub fn put_attribute(bytes: &mut Vec<u8>, kind: u16, content: &[u8]) {
    let len = (ATTRIBUTE_HEADER + content.len()) as u16;
    bytes.extend_from_slice(&len.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(content);
    bytes.resize(align(bytes.len()), 0);
}

/// Appends an attribute of attributes, which `write` appends.
pub fn put_nested(bytes: &mut Vec<u8>, kind: u16, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = bytes.len();
    put_attribute(bytes, kind | NESTED, &[]);
    write(bytes);
    let len = (bytes.len() - begin) as u16;
    bytes[begin..begin + 2].copy_from_slice(&len.to_ne_bytes());
}

/// One message being written.
#[derive(Debug)]
pub struct Builder(Vec<u8>);

impl Builder {
    /// A request with this fixed part.
    pub fn new(kind: u16, flags: u16, sequence: u32, fixed: &[u8]) -> Builder {
        let mut bytes = Vec::new();
        put_message(&mut bytes, kind, flags, sequence, fixed, |_| {});
        Builder(bytes)
    }

    /// Adds an attribute.
    #[must_use]
    pub fn attribute(mut self, kind: u16, content: &[u8]) -> Builder {
        put_attribute(&mut self.0, kind, content);
        self
    }

    /// The whole message.
    pub fn finish(mut self) -> Vec<u8> {
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_read() {
        let mut datagram = Builder::new(7, DUMP, 9, &[1, 2, 3]).attribute(5, &[4; 6]).finish();
        datagram.extend(Builder::new(8, 0, 10, &[]).finish());
        let frames: Vec<_> = Frames::new(&datagram).map(Result::unwrap).collect();
        assert_eq!(frames.len(), 2);
        assert_eq!((frames[0].kind, frames[0].flags, frames[0].sequence), (7, REQUEST | DUMP, 9));
        let attributes: Vec<_> = Attributes::behind(frames[0].body, 3).map(Result::unwrap).collect();
        assert_eq!(attributes, [(5, &[4u8; 6][..])]);
        assert_eq!((frames[1].kind, frames[1].body), (8, &[][..]));
    }

    #[test]
    fn what_is_nested_is_found() {
        let mut bytes = Vec::new();
        put_attribute(&mut bytes, 1, &[1]);
        put_nested(&mut bytes, 2, |bytes| {
            put_attribute(bytes, 3, &[9; 5]);
            put_attribute(bytes, 4, &[8; 4]);
        });
        let inner = find(&bytes, 2).unwrap();
        assert_eq!(
            (find(inner, 3), find(inner, 4), find(inner, 2)),
            (Some(&[9; 5][..]), Some(&[8; 4][..]), None)
        );
        assert_eq!((find(&bytes, 1), find(&bytes[..6], 2)), (Some(&[1][..]), None));
    }

    #[test]
    fn lengths_that_lie_end_the_reading() {
        let good = Builder::new(7, 0, 9, &[]).attribute(5, &[4; 6]).finish();
        for len in [0u32, 3, 15, good.len() as u32 + 1, u32::MAX] {
            let mut bad = good.clone();
            bad[..4].copy_from_slice(&len.to_ne_bytes());
            let frames: Vec<_> = Frames::new(&bad).collect();
            assert!(frames.len() == 1 && frames[0].is_err(), "{len}: {frames:?}");
        }
        for len in [0u16, 3, 13, u16::MAX] {
            let mut bad = good.clone();
            bad[HEADER..HEADER + 2].copy_from_slice(&len.to_ne_bytes());
            let attributes: Vec<_> = Attributes::behind(&bad[HEADER..], 0).collect();
            assert!(attributes.last().unwrap().is_err(), "{len}");
        }
    }
}
