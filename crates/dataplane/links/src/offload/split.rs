//! A super-packet taken apart: TCP segments, UDP datagrams, each a packet of its own.

use forebay_wire::{ipv4, ipv6};

use super::{Kind, NEEDS_CHECKSUM, Unsound, VnetHeader, put, tcp, udp};
use crate::checksum::{fold, sum};

/// The longest headers that segments have: IPv4 with all options and TCP with all options are 120 bytes, the
/// rest is for extension headers.
const MAX_HEAD: usize = 256;

/// Where a super-packet's segments are, and what their headers have in common. It holds no bytes of the
/// payload: each segment is a header of its own and a slice of the super-packet.
#[derive(Clone, Debug)]
pub struct Split {
    /// The first segment's header, in which each segment's own numbers are put.
    head: [u8; MAX_HEAD],
    head_len: usize,
    kind: Kind,
    /// Where TCP or UDP starts.
    l4: usize,
    gso_size: usize,
    /// The next segment's payload, and the end of all.
    at: usize,
    end: usize,
    /// What of IPv4's header checksum, and of TCP's or UDP's, is the same in all segments.
    ip_sum: u64,
    l4_sum: u64,
    /// Of the super-packet.
    flags: u8,
    sequence: u32,
    identification: u16,
    first: bool,
}

impl Split {
    /// Nothing to split.
    pub const EMPTY: Split = Split {
        head: [0; MAX_HEAD],
        head_len: 0,
        kind: Kind::Udp,
        l4: 0,
        gso_size: 0,
        at: 0,
        end: 0,
        ip_sum: 0,
        l4_sum: 0,
        flags: 0,
        sequence: 0,
        identification: 0,
        first: false,
    };

    /// Whether no segment is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// How many segments are left.
    pub fn count(&self) -> usize {
        (self.end - self.at).div_ceil(self.gso_size.max(1))
    }

    /// Looks at super-packet `packet`, of which `header` says that it is `kind`.
    ///
    /// # Errors
    /// If headers are cut off or contradict each other.
    pub fn start(&mut self, header: &VnetHeader, kind: Kind, packet: &[u8]) -> Result<(), Unsound> {
        *self = Split { first: true, kind, gso_size: header.gso_size.into(), ..Split::EMPTY };
        self.l4 = header.checksum_start.into();
        // The kernel's length of headers is a hint, and wrong for packets that it forwards.
        let l4_len = match kind {
            Kind::Udp => udp::HEADER,
            _ => usize::from(packet.get(self.l4 + tcp::OFFSET).ok_or(Unsound)? >> 4) * 4,
        };
        self.head_len = self.l4 + l4_len;
        (self.at, self.end) = (self.head_len, self.head_len);
        let is_v4 = packet.first().ok_or(Unsound)? >> 4 == 4;
        let sound = header.flags & NEEDS_CHECKSUM != 0
            && self.gso_size > 0
            && l4_len >= if kind == Kind::Udp { udp::HEADER } else { tcp::HEADER }
            && self.head_len <= MAX_HEAD
            && self.head_len < packet.len()
            && packet.len() - self.l4 <= usize::from(u16::MAX)
            && match kind {
                Kind::TcpV4 => is_v4,
                Kind::TcpV6 => !is_v4,
                Kind::Udp => true,
            }
            && self.l4 >= if is_v4 { usize::from(packet[0] & 15) * 4 } else { ipv6::HEADER }
            && self.l4 >= ipv4::MIN_HEADER;
        if !sound {
            return Err(Unsound);
        }
        self.head[..self.head_len].copy_from_slice(&packet[..self.head_len]);
        self.keep_what_is_common(is_v4, packet.len() - self.l4);
        self.end = packet.len();
        Ok(())
    }

    /// Clears the fields that each segment has its own of, and adds up the others. `len` is that of the whole
    /// TCP or UDP.
    fn keep_what_is_common(&mut self, is_v4: bool, len: usize) {
        let head = &mut self.head[..self.head_len];
        let (ip, l4) = head.split_at_mut(self.l4);
        if is_v4 {
            self.identification = u16::from_be_bytes([ip[4], ip[5]]);
            ip[2..6].fill(0);
            ip[10..12].fill(0);
            self.ip_sum = sum(&ip[..usize::from(ip[0] & 15) * 4]).into();
        }
        let checksum = if self.kind == Kind::Udp {
            l4[udp::LENGTH..udp::LENGTH + 2].fill(0);
            &mut l4[udp::CHECKSUM..udp::CHECKSUM + 2]
        } else {
            self.sequence = u32::from_be_bytes([l4[4], l4[5], l4[6], l4[7]]);
            self.flags = l4[tcp::FLAGS];
            l4[tcp::SEQUENCE..tcp::SEQUENCE + 4].fill(0);
            l4[tcp::FLAGS] = 0;
            &mut l4[tcp::CHECKSUM..tcp::CHECKSUM + 2]
        };
        // The field holds the sum of the pseudo-header, whose length is that of the whole; with a routing
        // header the addresses in the packet are not those that count.
        let pseudo = u64::from(u16::from_be_bytes([checksum[0], checksum[1]])) + u64::from(!(len as u16));
        checksum.fill(0);
        self.l4_sum = pseudo + u64::from(sum(l4));
    }

    /// The next segment, as header and payload; `packet` is what `start` has seen.
    #[inline]
    pub fn next<'a>(&'a mut self, packet: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        if self.at >= self.end {
            return None;
        }
        let to = self.end.min(self.at + self.gso_size);
        let payload = packet.get(self.at..to)?;
        let last = to == self.end;
        let l4_len = self.head_len - self.l4 + payload.len();
        self.fill_ip(self.l4 + l4_len);
        // The length is in the pseudo-header.
        let mut sum = self.l4_sum + u64::from(sum(payload)) + l4_len as u64;
        let l4 = &mut self.head[self.l4..self.head_len];
        if self.kind == Kind::Udp {
            put(l4, udp::LENGTH, (l4_len as u16).to_be_bytes());
            let checksum = match !fold(sum + l4_len as u64) {
                0 => 0xffff, // zero means none (RFC 768)
                checksum => checksum,
            };
            put(l4, udp::CHECKSUM, checksum.to_be_bytes());
        } else {
            let mut flags = self.flags;
            if !last {
                flags &= !(tcp::FIN | tcp::PSH);
            }
            if !self.first {
                flags &= !tcp::CWR;
            }
            put(l4, tcp::SEQUENCE, self.sequence.to_be_bytes());
            l4[tcp::FLAGS] = flags;
            sum += u64::from(self.sequence) + u64::from(flags);
            put(l4, tcp::CHECKSUM, (!fold(sum)).to_be_bytes());
            self.sequence = self.sequence.wrapping_add(payload.len() as u32);
        }
        self.at = to;
        self.first = false;
        Some((&self.head[..self.head_len], payload))
    }

    /// Length, identification and checksum of the IP header of a packet of `len` bytes.
    #[inline]
    fn fill_ip(&mut self, len: usize) {
        let head = &mut self.head;
        if head[0] >> 4 != 4 {
            put(head, 4, ((len - ipv6::HEADER) as u16).to_be_bytes());
            return;
        }
        put(head, 2, (len as u16).to_be_bytes());
        put(head, 4, self.identification.to_be_bytes());
        let checksum = !fold(self.ip_sum + len as u64 + u64::from(self.identification));
        put(head, 10, checksum.to_be_bytes());
        self.identification = self.identification.wrapping_add(1);
    }
}

/// Completes the checksum of a packet that is no super-packet, as `header` says where.
///
/// # Errors
/// If that is not in the packet.
pub fn complete_checksum(header: &VnetHeader, packet: &mut [u8]) -> Result<(), Unsound> {
    let start = usize::from(header.checksum_start);
    let covered = packet.get_mut(start..).ok_or(Unsound)?;
    let at = usize::from(header.checksum_offset);
    if covered.len() < at + 2 {
        return Err(Unsound);
    }
    // The field holds the pseudo-header's sum, which so is added too.
    let checksum = match !sum(covered) {
        0 if at == udp::CHECKSUM => 0xffff,
        checksum => checksum,
    };
    covered[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}
