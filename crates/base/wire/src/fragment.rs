//! Where a fragment stands in its datagram (RFC 791 3.2, RFC 8200 4.5).
//!
//! ```text
//! +---------------+---------------+--------------------------+--+-+
//! |  Next Header  |   Reserved    |     Fragment Offset      |Re|M|
//! +---------------+---------------+--------------------------+--+-+
//! |                         Identification                        |
//! +---------------------------------------------------------------+
//! ```

use crate::{Ip, Malformed};

/// Length of the IPv6 fragment header in bytes.
pub const HEADER: usize = 8;

/// What a packet says about the datagram that it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where its payload belongs, in bytes from the begin of the fragmentable part.
    pub offset: usize,
    /// Whether others follow.
    pub more: bool,
    /// What all fragments of the datagram have in common.
    pub identification: u32,
    /// Length of the headers that every fragment repeats, the fragment header not counted.
    pub header_len: usize,
    /// Where the payload starts in the packet.
    pub payload_at: usize,
    /// Where the headers name the protocol of what follows them.
    pub named_at: usize,
    /// Protocol of the begin of the fragmentable part.
    pub protocol: u8,
}

impl Fragment {
    /// What `ip` says, if it is a fragment; IPv6 may call a whole packet one
    /// ([`Fragment::is_atomic`]).
    pub fn find(ip: &Ip<'_>) -> Result<Option<Fragment>, Malformed> {
        let bytes = ip.bytes();
        match ip {
            Ip::V4(v4) if !v4.is_fragment() => Ok(None),
            Ip::V4(v4) => Ok(Some(Fragment {
                offset: usize::from(u16::from_be_bytes([bytes[6], bytes[7]]) & 0x1fff) * 8,
                more: bytes[6] & 0x20 != 0,
                identification: u16::from_be_bytes([bytes[4], bytes[5]]).into(),
                header_len: v4.header_len(),
                payload_at: v4.header_len(),
                named_at: 9,
                protocol: v4.protocol(),
            })),
            Ip::V6(v6) => {
                let Some(place) = v6.fragment_header()? else { return Ok(None) };
                let header = bytes.get(place.at..).and_then(|rest| rest.first_chunk::<HEADER>());
                let header = header.ok_or(Malformed::Truncated)?;
                let word = u16::from_be_bytes([header[2], header[3]]);
                Ok(Some(Fragment {
                    offset: usize::from(word & 0xfff8),
                    more: word & 1 != 0,
                    identification: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
                    header_len: place.at,
                    payload_at: place.at + HEADER,
                    named_at: place.named_at,
                    protocol: header[0],
                }))
            }
        }
    }

    /// Whether it is all of its datagram (RFC 6946).
    pub fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more
    }
}
