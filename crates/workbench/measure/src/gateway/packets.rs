//! The packets: those of programs, and what stands in front of them where a relay is in the place of the gateways.

use std::net::Ipv4Addr;

use forebay_wire::checksum::Sum;
use forebay_wire::{ipv4, protocol, udp};

/// Where hosts send from and to, inside the tunnel.
pub(super) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 10);
pub(super) const FAR: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
/// The UDP port that packets come from, and the first one that they go to: flows differ in that.
pub(super) const SOURCE_PORT: u16 = 5000;
const FIRST_PORT: u16 = 6000;
/// Lengths of an IPv4 header and of a UDP header behind it.
pub(super) const IP: usize = ipv4::MIN_HEADER;
pub(super) const IP_UDP: usize = IP + udp::HEADER;
/// In the place of ESP's header: an SPI, and a sequence number.
const LABEL: [u8; 8] = [0, 0, 0x10, 1, 0, 0, 0, 1];

/// UDP packets of `size` bytes, one of each flow, with their checksums: without them the kernel would join none.
pub(super) fn plain(from: Ipv4Addr, to: Ipv4Addr, size: usize, flows: usize) -> Vec<Vec<u8>> {
    let one = |flow| {
        let mut packet = vec![0x5a; size];
        let port = FIRST_PORT + flow as u16;
        write_headers(&mut packet, from, to, Some([SOURCE_PORT, port]));
        let len = (size - IP) as u16;
        let sum = Sum::default().bytes(&packet[12..]).word(protocol::UDP.into()).word(len).finish();
        packet[IP + 6..IP_UDP].copy_from_slice(&if sum == 0 { u16::MAX } else { sum }.to_be_bytes());
        packet
    };
    (0..flows).map(one).collect()
}

/// An IPv4 header in front of `packet`, which has room for it, and one of UDP if there are ports; ESP's protocol else.
fn write_headers(packet: &mut [u8], from: Ipv4Addr, to: Ipv4Addr, ports: Option<[u16; 2]>) {
    let len = packet.len() as u16;
    let header =
        ipv4::Header { ttl: 64, fragment_word: ipv4::DONT_FRAGMENT, ..ipv4::Header::between(from, to) };
    packet[..IP].copy_from_slice(&header.bytes());
    ipv4::rewrite(packet, IP, len, if ports.is_some() { protocol::UDP } else { protocol::ESP });
    if let Some([source_port, destination_port]) = ports {
        let header = udp::Header { source_port, destination_port, len: len - IP as u16 };
        packet[IP..IP_UDP].copy_from_slice(&header.bytes());
    }
}

/// What a relay puts in front of a packet, by which links take it for ESP: headers as those of a tunnel, and as many bytes as ESP's own
/// header has.
#[derive(Clone, Copy, Debug)]
pub struct Front {
    local: Ipv4Addr,
    remote: Ipv4Addr,
    is_udp: bool,
}

impl Front {
    /// That of packets between two addresses: of ESP in UDP, or of ESP alone.
    pub fn new(local: Ipv4Addr, remote: Ipv4Addr, is_udp: bool) -> Front {
        Front { local, remote, is_udp }
    }

    /// Its length in bytes.
    pub fn size(&self) -> usize {
        LABEL.len() + if self.is_udp { IP_UDP } else { IP }
    }

    /// Puts it and the parts of a packet behind it in the place of what is in `packet`.
    pub fn put(&self, packet: &mut Vec<u8>, head: &[u8], body: &[u8]) {
        packet.clear();
        packet.resize(self.size() - LABEL.len(), 0);
        packet.extend_from_slice(&LABEL);
        packet.extend_from_slice(head);
        packet.extend_from_slice(body);
        let ports = self.is_udp.then_some([udp::NAT_T_PORT; 2]);
        write_headers(packet, self.local, self.remote, ports);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_wire::Ip;

    #[test]
    fn packets_have_sound_headers_and_checksums_and_a_relay_takes_off_what_it_put_in_front() {
        let packets = plain(NEAR, FAR, 65, 3);
        for (flow, packet) in packets.iter().enumerate() {
            let ip = ipv4::Ipv4::parse(packet).unwrap();
            assert_eq!((ip.bytes().len(), ip.source(), ip.destination()), (65, NEAR, FAR));
            assert_eq!(Sum::default().bytes(&packet[..IP]).finish(), 0);
            let udp = udp::Udp::parse(&packet[IP..]).unwrap();
            assert_eq!(udp.destination_port(), FIRST_PORT + flow as u16);
            // With the pseudo-header all words add up to nothing (RFC 768).
            let whole = Sum::default().bytes(&packet[12..]).word(17).word(45).finish();
            assert_eq!(whole, 0);
        }
        for (is_udp, protocol, size) in [(true, 17, 36), (false, 50, 28)] {
            let front = Front::new(Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2), is_udp);
            let mut packet = vec![1; 9];
            front.put(&mut packet, &packets[0][..20], &packets[0][20..]);
            assert_eq!((packet.len(), front.size()), (65 + size, size));
            assert_eq!(packet[front.size()..], packets[0][..]);
            let ip = Ip::parse(&packet).unwrap();
            assert_eq!((ip.bytes().len(), packet[9]), (packet.len(), protocol));
            assert_eq!(Sum::default().bytes(&packet[..IP]).finish(), 0);
        }
    }
}
