//! Many packets as one: the super-packets of segmentation offload, taken apart and put together.
//!
//! Pure functions over bytes. Sources: virtio 1.2 5.1.6 (`virtio_net_hdr`), RFC 9293 (TCP), RFC 768 (UDP).

pub mod merge;
pub mod partial;
pub mod split;

/// Length of the header in front of each packet of a TUN device, in bytes.
pub const VNET_LEN: usize = 10;

/// The checksum is not complete: the field holds the sum of the pseudo-header.
pub const NEEDS_CHECKSUM: u8 = 1;
/// The checksum has been verified.
pub const DATA_VALID: u8 = 2;

/// The kind of the segments of a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP over either: datagrams, not fragments.
    Udp,
}

/// `virtio_net_hdr`: the metadata of a packet that the kernel gives or takes. Numbers are in the machine's byte
/// order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// [`NEEDS_CHECKSUM`], [`DATA_VALID`].
    pub flags: u8,
    /// See [`VnetHeader::kind`].
    pub gso_type: u8,
    /// Length of all headers of a super-packet in bytes: a hint.
    pub header_len: u16,
    /// Payload of each segment but the last, in bytes.
    pub gso_size: u16,
    /// Where what the checksum covers starts, in bytes.
    pub checksum_start: u16,
    /// Where the checksum stands from there, in bytes.
    pub checksum_offset: u16,
}

const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// Added to TCP's: the first segment has CWR.
const GSO_ECN: u8 = 0x80;

impl VnetHeader {
    /// Reads the header.
    #[inline]
    pub fn parse(bytes: &[u8; VNET_LEN]) -> VnetHeader {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        VnetHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            header_len: word(2),
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// Writes the header.
    #[inline]
    pub fn emit(&self) -> [u8; VNET_LEN] {
        let [l0, l1] = self.header_len.to_ne_bytes();
        let [g0, g1] = self.gso_size.to_ne_bytes();
        let [s0, s1] = self.checksum_start.to_ne_bytes();
        let [o0, o1] = self.checksum_offset.to_ne_bytes();
        [self.flags, self.gso_type, l0, l1, g0, g1, s0, s1, o0, o1]
    }

    /// The kind of the segments; `None` for a packet that is a single one, and an error for an unknown kind.
    #[inline]
    pub fn kind(&self) -> Result<Option<Kind>, Unsound> {
        match self.gso_type & !GSO_ECN {
            0 => Ok(None),
            GSO_TCPV4 => Ok(Some(Kind::TcpV4)),
            GSO_TCPV6 => Ok(Some(Kind::TcpV6)),
            GSO_UDP_L4 => Ok(Some(Kind::Udp)),
            _ => Err(Unsound),
        }
    }
}

/// A super-packet whose headers contradict each other or the packet, or are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsound;

/// Writes a number in network byte order.
#[inline]
pub(crate) fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    // Of a length that is known: `copy_from_slice` becomes a call.
    if let Some(field) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *field = value;
    }
}

mod tcp {
    pub const SEQUENCE: usize = 4;
    pub const OFFSET: usize = 12;
    pub const FLAGS: usize = 13;
    pub const CHECKSUM: usize = 16;
    pub const HEADER: usize = 20;
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
    pub const URG: u8 = 0x20;
    pub const CWR: u8 = 0x80;
}

mod udp {
    pub const LENGTH: usize = 4;
    pub const CHECKSUM: usize = 6;
    pub const HEADER: usize = 8;
}
