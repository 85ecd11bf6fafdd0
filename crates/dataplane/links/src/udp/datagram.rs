//! Converts a whole packet into the parameters with which a socket sends it.

use std::net::{IpAddr, SocketAddr};

use forebay_wire::{Ip, Ipv4, Ipv6, Udp, ipv4, ipv6, protocol, udp};

/// A packet to be sent by a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram<'a> {
    pub(super) source: SocketAddr,
    pub(super) to: SocketAddr,
    /// DSCP and ECN.
    pub(super) class: u8,
    /// TTL or hop limit.
    pub(super) hops: u8,
    /// Of IPv6.
    pub(super) flow_label: u32,
    /// Always, over IPv6.
    pub(super) dont_fragment: bool,
    pub(super) payload: &'a [u8],
    packet: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// `None` for all but UDP without options or extension headers in front, and for fragments.
    #[inline]
    pub(super) fn parse(packet: &'a [u8]) -> Option<Datagram<'a>> {
        match packet.first()? {
            0x45 => {
                let ip = Ipv4::parse(packet).ok()?;
                let fits = ip.protocol() == protocol::UDP && !ip.is_fragment();
                let rest = fits.then(|| &ip.bytes()[ipv4::MIN_HEADER..])?;
                let (source, to) = (ip.source().into(), ip.destination().into());
                let datagram = Datagram::new(packet, source, to, rest)?;
                let (class, dont_fragment) = (ip.tos(), ip.dont_fragment());
                Some(Datagram { class, hops: ip.ttl(), dont_fragment, ..datagram })
            }
            first if first >> 4 == 6 => {
                let ip = Ipv6::parse(packet).ok()?;
                let rest = (ip.next_header() == protocol::UDP).then(|| &ip.bytes()[ipv6::HEADER..])?;
                let (source, to) = (ip.source().into(), ip.destination().into());
                let (class, hops, flow_label) = (ip.traffic_class(), ip.hop_limit(), ip.flow_label());
                Some(Datagram { class, hops, flow_label, ..Datagram::new(packet, source, to, rest)? })
            }
            _ => None,
        }
    }

    #[inline]
    fn new(packet: &'a [u8], source: IpAddr, to: IpAddr, rest: &'a [u8]) -> Option<Datagram<'a>> {
        let udp = Udp::parse(rest).ok()?;
        Some(Datagram {
            source: SocketAddr::new(source, udp.source_port()),
            to: SocketAddr::new(to, udp.destination_port()),
            class: 0,
            hops: 0,
            flow_label: 0,
            dont_fragment: true,
            payload: udp.payload(),
            packet,
        })
    }

    /// The payload of `packet` if all that the socket is told is the same for it.
    #[inline]
    pub(super) fn follower<'b>(&self, packet: &'b [u8]) -> Option<&'b [u8]> {
        let (this, same, head) = match self.packet[0] {
            0x45 => (self.packet.first_chunk::<24>()?, packet.first_chunk::<24>()?, 20),
            _ => return self.follower_v6(packet),
        };
        let fields = |p: &[u8; 24]| {
            // Version and class; flags and fragment offset; TTL and protocol.
            (p[0], p[1], p[6], p[7], p[8], p[9])
        };
        let total = usize::from(u16::from_be_bytes([same[2], same[3]]));
        let agrees = fields(this) == fields(same) && this[12..] == same[12..];
        agrees.then(|| payload(packet, head, total))?
    }

    #[inline]
    fn follower_v6<'b>(&self, packet: &'b [u8]) -> Option<&'b [u8]> {
        let (this, same) = (self.packet.first_chunk::<44>()?, packet.first_chunk::<44>()?);
        let total = ipv6::HEADER + usize::from(u16::from_be_bytes([same[4], same[5]]));
        // Version, class and flow label; next header, hop limit, addresses and ports.
        let agrees = this[..4] == same[..4] && this[6..] == same[6..];
        agrees.then(|| payload(packet, ipv6::HEADER, total))?
    }
}

/// The payload of UDP at `at` in a packet of `total` bytes.
#[inline]
fn payload(packet: &[u8], at: usize, total: usize) -> Option<&[u8]> {
    let header = packet.get(at..at + udp::HEADER)?;
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    (at + len <= total).then(|| packet.get(at + udp::HEADER..at + len))?
}

/// Whether a packet is a fragment of a UDP datagram.
pub(super) fn is_fragment(packet: &[u8]) -> bool {
    match Ip::parse(packet) {
        Ok(Ip::V4(ip)) => ip.is_fragment() && ip.protocol() == protocol::UDP,
        Ok(Ip::V6(ip)) => {
            ip.upper_layer().is_ok_and(|walk| walk.is_fragment && walk.protocol == protocol::UDP)
        }
        Err(_) => false,
    }
}
