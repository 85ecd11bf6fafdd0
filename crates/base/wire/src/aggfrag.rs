//! The AGGFRAG payload of IP-TFS (RFC 9347 6.1): what stands in ESP with next header 144.
//!
//! ```text
//!  0                   1                   2                   3
//! +---------------+---------------+-------------------------------+
//! |  Sub-type (0) |   Reserved    |          BlockOffset          |
//! +---------------+---------------+-------------------------------+
//! |       DataBlocks ...
//!
//! +---------------+-----------+-+-+-------------------------------+
//! |  Sub-type (1) |  Reserved |P|E|          BlockOffset          |
//! +---------------+-----------+-+-+-------------------------------+
//! |                          LossEventRate                        |
//! +-------------------------------------------+-------------------+
//! |                 RTT (22 bits)             |    Echo Delay ... |
//! +---------------------+---------------------+-------------------+
//! | ... (21 bits)       |            Transmit Delay (21 bits)     |
//! +---------------------+-----------------------------------------+
//! |                              TVal                             |
//! +---------------------------------------------------------------+
//! |                             TEcho                             |
//! +---------------------------------------------------------------+
//! |       DataBlocks ...
//! ```
//!
//! The drafts had next header 5; the RFC has 144. A data block is an IP packet, which contains its own type and
//! length, or padding to the end of the payload, whose first four bits are zero.

use crate::{Malformed, ipv6};

/// Length of a header without congestion information, in bytes.
pub const HEADER: usize = 4;
/// Length of a header with congestion information, in bytes.
pub const CONGESTION_HEADER: usize = 24;
/// The largest round-trip time that the header can state, in microseconds.
pub const MAX_RTT: u32 = 0x3f_ffff;
/// The largest delay that the header can state, in microseconds.
pub const MAX_DELAY: u32 = 0x1f_ffff;

/// A checked AGGFRAG payload: its sub-type is known and its header whole.
#[derive(Clone, Copy, Debug)]
pub struct Aggfrag<'a> {
    bytes: &'a [u8],
    header_len: usize,
}

impl<'a> Aggfrag<'a> {
    /// Checks `bytes`, an ESP payload without padding and trailer.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Aggfrag<'a>, Malformed> {
        let header_len = match bytes.first().ok_or(Malformed::Truncated)? {
            0 => HEADER,
            1 => CONGESTION_HEADER,
            _ => return Err(Malformed::Version),
        };
        if bytes.len() < header_len {
            return Err(Malformed::Truncated);
        }
        Ok(Aggfrag { bytes, header_len })
    }

    /// Bytes of [`Aggfrag::blocks`] before the first data block that begins in this payload; past their
    /// end if none does.
    #[inline]
    pub fn block_offset(&self) -> usize {
        usize::from(u16::from_be_bytes([self.bytes[2], self.bytes[3]]))
    }

    /// Length of the header in bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// The data blocks, the first of which may be the rest of one that began in an earlier payload.
    #[inline]
    pub fn blocks(&self) -> &'a [u8] {
        &self.bytes[self.header_len..]
    }

    /// Whether it is nothing but padding, or nothing at all: such a payload may stand between the parts of
    /// an inner packet (RFC 9347 2.2.3).
    #[inline]
    pub fn is_all_pad(&self) -> bool {
        self.block_offset() == 0 && self.blocks().first().is_none_or(|first| first >> 4 == 0)
    }

    /// The congestion information of sub-type 1.
    pub fn congestion(&self) -> Option<CongestionInfo> {
        let header = self.bytes.first_chunk::<CONGESTION_HEADER>()?;
        (self.header_len == CONGESTION_HEADER).then(|| CongestionInfo::read(header))
    }
}

/// Writes a header without congestion information.
#[inline]
pub fn write_header(block_offset: u16) -> [u8; HEADER] {
    let [high, low] = block_offset.to_be_bytes();
    [0, 0, high, low]
}

/// The congestion control information that the two ends of an IP-TFS tunnel exchange (RFC 9347 6.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongestionInfo {
    /// P: packets may be missing because the path MTU is being probed.
    pub probing: bool,
    /// E: marks of congestion experienced (ECN) count in the loss event rate.
    pub ecn: bool,
    /// Inverse of the loss event rate; zero is no loss.
    pub loss_event_rate: u32,
    /// The sender's round-trip time estimate in microseconds, zero while it has none.
    pub rtt: u32,
    /// Microseconds between the arrival of what is in `t_echo` and now.
    pub echo_delay: u32,
    /// Microseconds between two payloads of the sender.
    pub transmit_delay: u32,
    /// Opaque value, to be sent back in `t_echo`.
    pub t_val: u32,
    /// The last `t_val` received.
    pub t_echo: u32,
}

impl CongestionInfo {
    fn read(header: &[u8; CONGESTION_HEADER]) -> CongestionInfo {
        let word =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let delays = u64::from(word(8)) << 32 | u64::from(word(12));
        CongestionInfo {
            probing: header[1] & 2 != 0,
            ecn: header[1] & 1 != 0,
            loss_event_rate: word(4),
            rtt: (delays >> 42) as u32,
            echo_delay: (delays >> 21) as u32 & MAX_DELAY,
            transmit_delay: delays as u32 & MAX_DELAY,
            t_val: word(16),
            t_echo: word(20),
        }
    }

    /// Writes a header of sub-type 1; times that are longer than a field become its largest value.
    pub fn write_header(&self, block_offset: u16) -> [u8; CONGESTION_HEADER] {
        let mut header = [0; CONGESTION_HEADER];
        header[0] = 1;
        header[1] = u8::from(self.probing) << 1 | u8::from(self.ecn);
        header[2..4].copy_from_slice(&block_offset.to_be_bytes());
        header[4..8].copy_from_slice(&self.loss_event_rate.to_be_bytes());
        let delays = u64::from(self.rtt.min(MAX_RTT)) << 42
            | u64::from(self.echo_delay.min(MAX_DELAY)) << 21
            | u64::from(self.transmit_delay.min(MAX_DELAY));
        header[8..16].copy_from_slice(&delays.to_be_bytes());
        header[16..20].copy_from_slice(&self.t_val.to_be_bytes());
        header[20..24].copy_from_slice(&self.t_echo.to_be_bytes());
        header
    }
}

/// What begins where a data block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// An IP packet of so many bytes, which may be more than there are.
    Packet(usize),
    /// Padding to the end of the payload.
    Pad,
    /// Too few bytes to contain the length: the rest is in the next payload.
    Unknown,
}

impl Block {
    /// Number of bytes that suffice for the length of every block.
    pub const PREFIX: usize = 6;

    /// Looks at the begin of a data block; an error for one that is neither IP nor padding, or whose
    /// length is less than its own header's.
    #[inline]
    pub fn read(bytes: &[u8]) -> Result<Block, Malformed> {
        let Some(first) = bytes.first() else { return Ok(Block::Unknown) };
        match (first >> 4, bytes) {
            (0, _) => Ok(Block::Pad),
            (4, [_, _, high, low, ..]) => {
                let len = usize::from(u16::from_be_bytes([*high, *low]));
                let header_len = usize::from(first & 15) * 4;
                let sound = header_len >= crate::ipv4::MIN_HEADER && len >= header_len;
                if sound { Ok(Block::Packet(len)) } else { Err(Malformed::Length) }
            }
            (6, [_, _, _, _, high, low, ..]) => {
                Ok(Block::Packet(ipv6::HEADER + usize::from(u16::from_be_bytes([*high, *low]))))
            }
            (4 | 6, _) => Ok(Block::Unknown),
            _ => Err(Malformed::Version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_congestion_header_by_hand() {
        let info = CongestionInfo {
            probing: true,
            ecn: true,
            loss_event_rate: 0x0102_0304,
            rtt: 0x20_0001,
            echo_delay: 0x10_0001,
            transmit_delay: 0x10_0003,
            t_val: 0xaabb_ccdd,
            t_echo: 0x1122_3344,
        };
        // 22 bits 10 0000 0000 0000 0000 0001, 21 bits 1 0000 0000 0000 0000 0001, 21 bits ..0011.
        let bytes = [
            1, 3, 0x12, 0x34, 1, 2, 3, 4, 0x80, 0, 6, 0, 0, 0x30, 0, 3, 0xaa, 0xbb, 0xcc, 0xdd, 0x11, 0x22,
            0x33, 0x44,
        ];
        assert_eq!(info.write_header(0x1234), bytes);
        let payload = Aggfrag::parse(&bytes).unwrap();
        assert_eq!(payload.congestion(), Some(info));
        assert_eq!((payload.block_offset(), payload.blocks()), (0x1234, &[][..]));
    }

    #[test]
    fn times_that_are_too_long_are_cut_off() {
        let long = CongestionInfo {
            rtt: u32::MAX,
            echo_delay: u32::MAX,
            transmit_delay: u32::MAX,
            ..CongestionInfo::default()
        };
        let header = long.write_header(0);
        assert_eq!(header[8..16], [0xff; 8]);
        let cut = Aggfrag::parse(&header).unwrap().congestion().unwrap();
        assert_eq!((cut.rtt, cut.echo_delay, cut.transmit_delay), (MAX_RTT, MAX_DELAY, MAX_DELAY));
    }

    #[test]
    fn short_and_unknown_payloads_are_refused() {
        assert_eq!(Aggfrag::parse(&[]).err(), Some(Malformed::Truncated));
        assert_eq!(Aggfrag::parse(&[0, 0, 0]).err(), Some(Malformed::Truncated));
        assert_eq!(Aggfrag::parse(&[1; 23]).err(), Some(Malformed::Truncated));
        assert_eq!(Aggfrag::parse(&[2; 40]).err(), Some(Malformed::Version));
        assert!(Aggfrag::parse(&[0, 9, 0, 0]).unwrap().is_all_pad());
        assert!(Aggfrag::parse(&[0, 0, 0, 0, 0x0f]).unwrap().is_all_pad());
        assert!(!Aggfrag::parse(&[0, 0, 0, 1, 0]).unwrap().is_all_pad());
    }

    #[test]
    fn blocks_tell_their_length() {
        assert_eq!(Block::read(&[0x45, 0, 0x01, 0x02]), Ok(Block::Packet(0x102)));
        assert_eq!(Block::read(&[0x60, 0, 0, 0, 0xff, 0xff]), Ok(Block::Packet(65_575)));
        assert_eq!(Block::read(&[0x60, 0, 0, 0, 0xff]), Ok(Block::Unknown));
        assert_eq!(Block::read(&[0x45, 0, 0x01]), Ok(Block::Unknown));
        assert_eq!(Block::read(&[]), Ok(Block::Unknown));
        assert_eq!(Block::read(&[0x0f]), Ok(Block::Pad));
        assert_eq!(Block::read(&[0x45, 0, 0, 19]), Err(Malformed::Length));
        assert_eq!(Block::read(&[0x44, 0, 0, 99]), Err(Malformed::Length));
        assert_eq!(Block::read(&[0x10]), Err(Malformed::Version));
    }
}
