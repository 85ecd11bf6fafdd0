//! Packets put together: successive TCP segments or UDP datagrams of one flow become one super-packet.
//!
//! The rules are those of Linux's GRO (`tcp_gro_receive`, `udp_gro_receive`), so that taking the super-packet
//! apart again gives the same packets: equal headers but for length, checksum, identification and sequence
//! number; segments of equal length but the last.

use std::array;

use forebay_wire::{ipv4, protocol};

use super::{GSO_ECN, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, Kind, NEEDS_CHECKSUM, VnetHeader, tcp, udp};
use crate::checksum::{fold, is_ipv4_right, is_l4_right, pseudo_header};

/// The most packets that are looked at together.
pub const BURST: usize = 256;
/// The most packets in one super-packet.
pub const MAX_SEGMENTS: usize = 64;
/// The longest headers of packets that are put together: IPv6, TCP with all options.
pub const MAX_HEAD: usize = 40 + 60;
/// How many of the latest trains are looked at for one that a packet can join.
const LOOK_BACK: usize = 16;
/// The largest IP packet that a super-packet may be.
const MAX_LEN: usize = 65_535;

/// Which packets are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Every packet goes alone.
    Nothing,
    /// TCP.
    Tcp,
    /// TCP and UDP.
    TcpAndUdp,
}

/// Packets of a burst put into trains, each of which is sent as one. Kept from burst to burst.
#[derive(Debug)]
pub struct Merger {
    trains: Vec<Train>,
    /// The packet behind each packet in its train.
    next: [u16; BURST],
}

/// One or more packets that are sent as one.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    first: u16,
    last: u16,
    /// Number of packets.
    pub packets: u16,
    /// `None`: the packet can be in no train but this one.
    flow: Option<Flow>,
    /// Whether a packet may still be put behind.
    open: bool,
    /// Whether the first packet's checksum has been looked at.
    verified: bool,
    len: usize,
    next_sequence: u32,
}

/// What of a packet matters here.
#[derive(Clone, Copy, Debug)]
struct Flow {
    kind: Kind,
    is_v4: bool,
    /// Where TCP or UDP, and the payload start.
    l4: u8,
    head: u8,
    payload: u16,
    /// Whether it can be in a train with others, by its own looks.
    joins: bool,
}

impl Default for Merger {
    fn default() -> Merger {
        Merger { trains: Vec::with_capacity(BURST), next: [0; BURST] }
    }
}

impl Merger {
    /// Puts `packets` into trains. Packets of one flow stay in order; flows may overtake
    /// each other.
    ///
    /// # Panics
    /// If there are more than [`BURST`] packets.
    pub fn group(&mut self, packets: &[&[u8]], merge: Merge) {
        assert!(packets.len() <= BURST);
        self.trains.clear();
        for (i, packet) in packets.iter().enumerate() {
            let flow = match merge {
                Merge::Nothing => None,
                Merge::Tcp => Flow::of(packet).filter(|flow| flow.kind != Kind::Udp),
                Merge::TcpAndUdp => Flow::of(packet),
            };
            let joined = flow.is_some_and(|flow| self.join(packets, i, &flow));
            if !joined {
                self.trains.push(Train::new(i, packet, flow));
            }
        }
    }

    /// The trains, in the order of their first packets.
    pub fn trains(&self) -> &[Train] {
        &self.trains
    }

    /// The packets of a train by number, in order.
    pub fn members(&self, train: &Train) -> impl Iterator<Item = usize> {
        let mut at = usize::from(train.first);
        (0..train.packets).map(move |_| {
            let this = at;
            at = usize::from(self.next[at]);
            this
        })
    }

    /// Puts packet `i` behind the train of its flow, if it fits there; if not, closes that train.
    #[inline]
    fn join(&mut self, packets: &[&[u8]], i: usize, flow: &Flow) -> bool {
        let packet = packets[i];
        let recent = self.trains.iter_mut().rev().take(LOOK_BACK);
        for train in recent {
            let Some(other) = &train.flow else { continue };
            let first = packets[usize::from(train.first)];
            if !flow.is_same(packet, other, first) {
                continue;
            }
            // The latest train of this flow: behind this one or behind none.
            let last = packets[usize::from(train.last)];
            let fits = train.open && flow.joins && train.takes(first, last, packet, flow);
            if !fits || !train.verify(first) || !flow.checksums_are_right(packet) {
                train.open = false;
                return false;
            }
            self.next[usize::from(train.last)] = i as u16;
            train.add(i, packet, flow);
            return true;
        }
        false
    }
}

impl Train {
    fn new(i: usize, packet: &[u8], flow: Option<Flow>) -> Train {
        let mut train = Train {
            first: i as u16,
            last: i as u16,
            packets: 1,
            flow,
            open: false,
            verified: false,
            len: packet.len(),
            next_sequence: 0,
        };
        if let Some(flow) = flow.filter(|flow| flow.joins) {
            train.open = !flow.ends_train(packet);
            train.next_sequence = flow.sequence(packet).wrapping_add(flow.payload.into());
        }
        train
    }

    /// Whether `packet` can stand behind this train, whose first and last packet are given; checksums apart.
    #[inline]
    fn takes(&self, first: &[u8], last: &[u8], packet: &[u8], flow: &Flow) -> bool {
        let Some(head) = &self.flow else { return false };
        flow.payload <= head.payload
            && flow.head == head.head
            && usize::from(self.packets) < MAX_SEGMENTS
            && self.len + usize::from(flow.payload) <= MAX_LEN
            && (flow.kind == Kind::Udp || flow.sequence(packet) == self.next_sequence)
            && flow.headers_agree(first, last, packet)
    }

    fn add(&mut self, i: usize, packet: &[u8], flow: &Flow) {
        self.last = i as u16;
        self.packets += 1;
        self.len += usize::from(flow.payload);
        self.next_sequence = self.next_sequence.wrapping_add(flow.payload.into());
        let shorter = self.flow.is_some_and(|head| flow.payload < head.payload);
        self.open = !shorter && !flow.ends_train(packet);
    }

    /// Whether the first packet's checksum is right: looked at only when a second one comes.
    #[inline]
    fn verify(&mut self, first: &[u8]) -> bool {
        self.verified =
            self.verified || self.flow.is_some_and(|flow| flow.joins && flow.checksums_are_right(first));
        self.verified
    }

    /// Where the payload starts in each of the packets, if there are several.
    #[inline]
    pub fn head_len(&self) -> usize {
        match &self.flow {
            Some(flow) if self.packets > 1 => flow.head.into(),
            _ => 0,
        }
    }

    /// Writes the headers in front of the payloads: the one for the kernel, and the super-packet's own in `head`, of
    /// [`Train::head_len`] bytes. A single packet goes unchanged, with its own header.
    #[inline]
    pub fn header(&self, packets: &[&[u8]], head: &mut [u8; MAX_HEAD]) -> VnetHeader {
        let (Some(flow), 2..) = (&self.flow, self.packets) else { return VnetHeader::default() };
        let (first, last) = (packets[usize::from(self.first)], packets[usize::from(self.last)]);
        let l4 = usize::from(flow.l4);
        let head = &mut head[..usize::from(flow.head)];
        head.copy_from_slice(&first[..usize::from(flow.head)]);
        let l4_len = self.len - l4;
        let pseudo = if flow.is_v4 {
            ipv4::rewrite(head, l4, self.len as u16, head[9]);
            head[12..].first_chunk::<8>().map(|addresses| pseudo_header(addresses, flow.protocol(), l4_len))
        } else {
            head[4..6].copy_from_slice(&(l4_len as u16).to_be_bytes());
            head[8..].first_chunk::<32>().map(|addresses| pseudo_header(addresses, flow.protocol(), l4_len))
        };
        let pseudo = fold(pseudo.unwrap_or(0)).to_be_bytes();
        let mut header = VnetHeader {
            flags: NEEDS_CHECKSUM,
            gso_type: flow.gso_type(),
            header_len: flow.head.into(),
            gso_size: flow.payload,
            checksum_start: flow.l4.into(),
            checksum_offset: 0,
        };
        if flow.kind == Kind::Udp {
            header.checksum_offset = udp::CHECKSUM as u16;
            head[l4 + udp::LENGTH..l4 + udp::LENGTH + 2].copy_from_slice(&(l4_len as u16).to_be_bytes());
        } else {
            header.checksum_offset = tcp::CHECKSUM as u16;
            // What only the last may have had.
            head[l4 + tcp::FLAGS] |= last[l4 + tcp::FLAGS] & (tcp::PSH | tcp::FIN);
            if head[l4 + tcp::FLAGS] & tcp::CWR != 0 {
                header.gso_type |= GSO_ECN;
            }
        }
        let at = l4 + usize::from(header.checksum_offset);
        head[at..at + 2].copy_from_slice(&pseudo);
        header
    }
}

impl Flow {
    /// `None` for what is never merged nor in the way of merging: no TCP or UDP, no ports, fragments, options of
    /// IPv4, extension headers, lengths of IP that do not agree.
    #[inline]
    fn of(packet: &[u8]) -> Option<Flow> {
        let is_v4 = match packet.first()? {
            0x45 => true,
            byte if byte >> 4 == 6 => false,
            _ => return None,
        };
        let l4 = if is_v4 { 20 } else { 40 };
        let ip = packet.get(..l4)?;
        let word = |at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
        let (protocol, len) =
            if is_v4 { (ip[9], usize::from(word(2))) } else { (ip[6], l4 + usize::from(word(4))) };
        // All of the word but "don't fragment": a fragment, or the reserved bit.
        if len != packet.len() || is_v4 && word(6) & !ipv4::DONT_FRAGMENT != 0 {
            return None;
        }
        let body = &packet[l4..];
        let (kind, header) = match protocol {
            // Without ports there is no flow whose order could be kept.
            _ if body.len() < 4 => return None,
            protocol::TCP => {
                let header = body.get(tcp::OFFSET).map_or(0, |offset| usize::from(offset >> 4) * 4);
                (if is_v4 { Kind::TcpV4 } else { Kind::TcpV6 }, header.max(tcp::HEADER))
            }
            protocol::UDP => (Kind::Udp, udp::HEADER),
            _ => return None,
        };
        // Headers that are longer than the packet: of the flow, which keeps its order, and in no train.
        let payload = body.len().saturating_sub(header);
        let joins = payload > 0 && Flow::may_join(kind, body);
        let (l4, head) = (l4 as u8, (l4 + header) as u8);
        Some(Flow { kind, is_v4, l4, head, payload: payload as u16, joins })
    }

    #[inline]
    fn may_join(kind: Kind, l4: &[u8]) -> bool {
        if kind == Kind::Udp {
            // Without a checksum it has to stay so, which no super-packet can say: the kernel gives every datagram of
            // one a checksum (`__udp_gso_segment`), and its own GRO leaves such datagrams alone for the same reason. Those
            // of tunnels (VXLAN, RFC 7348 5) are the usual ones; the kernel takes trains of theirs from a TUN device from 6.17
            // on only. A length of its own would be lost.
            let length = usize::from(u16::from_be_bytes([l4[4], l4[5]]));
            return length == l4.len() && (l4[6], l4[7]) != (0, 0);
        }
        let must_not = tcp::SYN | tcp::RST | tcp::URG;
        let offset = l4[tcp::OFFSET];
        // The bits beside the offset are reserved, one is AccECN's.
        offset >= 0x50 && offset & 0x0f == 0 && l4[tcp::FLAGS] & (must_not | tcp::ACK) == tcp::ACK
    }

    /// Whether nothing may stand behind this one.
    #[inline]
    fn ends_train(&self, packet: &[u8]) -> bool {
        self.kind != Kind::Udp && packet[usize::from(self.l4) + tcp::FLAGS] & (tcp::FIN | tcp::PSH) != 0
    }

    #[inline]
    fn sequence(&self, packet: &[u8]) -> u32 {
        let at = usize::from(self.l4) + tcp::SEQUENCE;
        packet[at..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    /// Same protocol, addresses and ports, which stand one behind the other without options.
    #[inline]
    fn is_same(&self, packet: &[u8], other: &Flow, first: &[u8]) -> bool {
        if self.kind != other.kind || self.is_v4 != other.is_v4 {
            return false;
        }
        if self.is_v4 {
            packet[12..].first_chunk::<12>() == first[12..].first_chunk()
        } else {
            packet[8..].first_chunk::<36>() == first[8..].first_chunk()
        }
    }

    /// Whether all that has to be equal in the headers of a train is.
    #[inline]
    fn headers_agree(&self, first: &[u8], last: &[u8], packet: &[u8]) -> bool {
        let ip = if self.is_v4 {
            let identification = |p: &[u8]| u16::from_be_bytes([p[4], p[5]]);
            // With "don't fragment" it means nothing (RFC 6864 4.1).
            let follows =
                packet[6] & 0x40 != 0 || identification(packet) == identification(last).wrapping_add(1);
            (packet[1], packet[6], packet[8]) == (first[1], first[6], first[8]) && follows
        } else {
            packet[..4] == first[..4] && packet[7] == first[7]
        };
        if !ip || self.kind == Kind::Udp {
            return ip;
        }
        let (l4, head) = (usize::from(self.l4), usize::from(self.head));
        let (a, b) = (&packet[l4..head], &first[l4..head]);
        // CWR only on the first, FIN and PSH only on the last; a packet that has those and is not the last
        // closes its train.
        let flags = a[tcp::FLAGS] & !(tcp::FIN | tcp::PSH) == b[tcp::FLAGS] & !tcp::CWR;
        // Acknowledgement; window; urgent pointer and options.
        flags && a[8..12] == b[8..12] && a[14..16] == b[14..16] && a[18..] == b[18..]
    }

    /// Whether the checksums are right: those of the super-packet will be.
    #[inline]
    fn checksums_are_right(&self, packet: &[u8]) -> bool {
        if self.is_v4 {
            let Some((ip, l4)) = packet.split_first_chunk::<20>() else { return false };
            let Some(addresses) = ip.last_chunk::<8>() else { return false };
            is_ipv4_right(ip) && is_l4_right(addresses, self.protocol(), l4)
        } else {
            let Some((ip, l4)) = packet.split_first_chunk::<40>() else { return false };
            let Some(addresses) = ip.last_chunk::<32>() else { return false };
            is_l4_right(addresses, self.protocol(), l4)
        }
    }

    fn protocol(&self) -> u8 {
        if self.kind == Kind::Udp { protocol::UDP } else { protocol::TCP }
    }

    fn gso_type(&self) -> u8 {
        match self.kind {
            Kind::TcpV4 => GSO_TCPV4,
            Kind::TcpV6 => GSO_TCPV6,
            Kind::Udp => GSO_UDP_L4,
        }
    }
}

/// Slices for writev(2): the header for the kernel, then either a whole packet or a head and the payloads.
pub type Slices<'a> = [std::io::IoSlice<'a>; MAX_SEGMENTS + 2];

/// As many empty slices as a super-packet may need.
pub fn slices<'a>() -> Slices<'a> {
    array::from_fn(|_| std::io::IoSlice::new(&[]))
}
