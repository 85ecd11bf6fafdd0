//! The front of an ESP packet: its outer headers, SPI and sequence number, laid down by one copy of fixed size.
//!
//! All end at the end of the front, whatever stands before them; the IV stands right behind.
//!
//! ```text
//! |<-------------------------------- 64 bytes -------------------------------->|
//! +--------+----------------------------+-------------------+------------------+
//! | unused | IPv4, 20 bytes, or IPv6, 40 | UDP, 8 bytes, or 0 | ESP: SPI, number |
//! +--------+----------------------------+-------------------+------------------+
//! ```
//!
//! An SA has a template with everything that is the same for all its packets; what changes from packet to packet is
//! written into a copy of it. `UDP` below is the length of the UDP header: [`udp::HEADER`], or zero without.

use std::net::IpAddr;
use std::ops::Range;

use forebay_wire::checksum::Sum;
use forebay_wire::ipv4::DONT_FRAGMENT;
use forebay_wire::{esp, ipv4, ipv6, protocol, udp};

use crate::sa::{Encapsulation, SaConfig};
use forebay_tunnel::Outer;

/// Length of a front, in bytes.
pub const LEN: usize = 64;
/// The bytes of a front.
pub type Front = [u8; LEN];

const ESP_AT: usize = LEN - esp::HEADER;
const UDP_AT: usize = ESP_AT - udp::HEADER;
const SEQUENCE: Range<usize> = ESP_AT + esp::field::SEQUENCE.start..ESP_AT + esp::field::SEQUENCE.end;
const UDP_LENGTH: Range<usize> = UDP_AT + udp::field::LENGTH.start..UDP_AT + udp::field::LENGTH.end;

/// The template of an SA, and the folded sum over its IPv4 header with zeros in the fields that change. `ttl` is the TTL or hop
/// limit where that is the same for all packets, else zero.
pub fn template(config: &SaConfig, ttl: u8) -> (Front, u16) {
    let mut front = [0; LEN];
    let esp = esp::Header { spi: config.spi.get(), sequence: 0 };
    front[ESP_AT..].copy_from_slice(&esp.bytes());
    let (outer_end, protocol) = match config.encapsulation {
        Encapsulation::None => (ESP_AT, protocol::ESP),
        Encapsulation::Udp => {
            let ports = (config.udp.local, config.udp.remote);
            let udp = udp::Header { source_port: ports.0, destination_port: ports.1, len: 0 };
            front[UDP_AT..ESP_AT].copy_from_slice(&udp.bytes());
            (UDP_AT, protocol::UDP)
        }
    };
    let mut sum = 0;
    match (config.local, config.remote) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = ipv4::Header { ttl, protocol, ..ipv4::Header::between(source, destination) }.bytes();
            front[outer_end - header.len()..outer_end].copy_from_slice(&header);
            sum = !Sum::ZERO.bytes(&header).finish();
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = ipv6::Header {
                hop_limit: ttl,
                next_header: protocol,
                ..ipv6::Header::between(source, destination)
            };
            let header = header.bytes();
            front[outer_end - header.len()..outer_end].copy_from_slice(&header);
        }
        // `SaConfig::check` has refused mixed families.
        _ => {}
    }
    (front, sum)
}

/// Writes what changes from packet to packet into the IPv4 header of a tunnel packet of `total` bytes, all but its
/// identification and checksum; the sum over it so far. `base` is that of the template.
#[inline]
pub fn set_ipv4<const UDP: usize>(front: &mut Front, base: u16, outer: &Outer, total: usize) -> Sum {
    let header = &mut front[ESP_AT - UDP - ipv4::MIN_HEADER..];
    let flags = if outer.dont_fragment { DONT_FRAGMENT } else { 0 };
    let (class, ttl) = (outer.traffic_class.into(), u16::from(outer.copied_ttl) << 8);
    header[ipv4::field::TRAFFIC_CLASS] = outer.traffic_class;
    header[ipv4::field::TOTAL_LENGTH].copy_from_slice(&(total as u16).to_be_bytes());
    header[ipv4::field::FRAGMENT_WORD].copy_from_slice(&flags.to_be_bytes());
    header[ipv4::field::TTL] |= outer.copied_ttl;
    Sum::ZERO.word(base).word(class).word(total as u16).word(flags).word(ttl)
}

/// Writes the identification and the checksum, from the `sum` over the other fields. An atomic datagram
/// needs no identification (RFC 6864 4.1); others get the sequence's low bits.
#[inline]
pub fn number_ipv4<const UDP: usize>(front: &mut Front, sum: Sum, atomic: bool, sequence: u64) {
    let header = &mut front[ESP_AT - UDP - ipv4::MIN_HEADER..];
    let identification = if atomic { 0 } else { sequence as u16 };
    header[ipv4::field::IDENTIFICATION].copy_from_slice(&identification.to_be_bytes());
    header[ipv4::field::CHECKSUM].copy_from_slice(&sum.finish_with([identification]).to_be_bytes());
}

/// Writes what changes from packet to packet into the IPv6 header of a tunnel packet of `total` bytes.
#[inline]
pub fn set_ipv6<const UDP: usize>(front: &mut Front, outer: &Outer, total: usize) {
    let header = &mut front[ESP_AT - UDP - ipv6::HEADER..];
    let word = ipv6::first_word(outer.traffic_class, outer.flow_label);
    header[ipv6::field::FIRST_WORD].copy_from_slice(&word.to_be_bytes());
    header[ipv6::field::PAYLOAD_LENGTH].copy_from_slice(&((total - ipv6::HEADER) as u16).to_be_bytes());
    header[ipv6::field::HOP_LIMIT] |= outer.copied_ttl;
}

/// Writes the length of the UDP datagram.
#[inline]
pub fn set_udp_length(front: &mut Front, len: usize) {
    front[UDP_LENGTH].copy_from_slice(&(len as u16).to_be_bytes());
}

/// Writes the low half of the sequence number.
#[inline]
pub fn set_sequence(front: &mut Front, sequence: u64) {
    front[SEQUENCE].copy_from_slice(&(sequence as u32).to_be_bytes());
}

/// Writes the ESP header in one store, since a processor may read it in one piece.
#[inline]
pub fn set_esp(front: &mut Front, spi: u32, sequence: u64) {
    let header = esp::Header { spi, sequence: sequence as u32 };
    front[ESP_AT..].copy_from_slice(&header.bytes());
}

/// The SPI.
#[inline]
pub fn spi(front: &Front) -> u32 {
    let header: [u8; esp::HEADER] = *front.last_chunk().unwrap_or(&[0; esp::HEADER]);
    (u64::from_be_bytes(header) >> 32) as u32
}

/// The UDP header, if there is one, and that of ESP: what stands behind the packet's own header in transport mode.
#[inline]
pub fn transport(front: &Front, encapsulation: Encapsulation) -> &[u8] {
    match encapsulation {
        Encapsulation::None => &front[ESP_AT..],
        Encapsulation::Udp => &front[UDP_AT..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sa::{Spi, UdpPorts};
    use forebay_wire::{Esp, Ip, Udp};

    /// What the emitters write, the views read: each family, with UDP and without.
    #[test]
    fn fronts_read_back_as_written() {
        let outer = Outer { traffic_class: 0xb8, copied_ttl: 17, dont_fragment: false, flow_label: 0x12345 };
        for (ends, encapsulation) in [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]]
            .into_iter()
            .flat_map(|ends| [Encapsulation::None, Encapsulation::Udp].map(|udp| (ends, udp)))
        {
            let [local, remote] = ends.map(|end| end.parse::<IpAddr>().expect("an address"));
            let suite = "aes128gcm16".parse().expect("a suite");
            let mut config = SaConfig::new("", Spi::MIN, suite, local, remote);
            (config.encapsulation, config.udp) = (encapsulation, UdpPorts { local: 4500, remote: 1234 });
            let (mut front, base) = template(&config, 0);
            let udp_len = if encapsulation == Encapsulation::Udp { udp::HEADER } else { 0 };
            let header_len = if local.is_ipv4() { ipv4::MIN_HEADER } else { ipv6::HEADER };
            let total = header_len + udp_len + esp::HEADER;
            match (local.is_ipv4(), udp_len > 0) {
                (true, false) => {
                    let sum = set_ipv4::<0>(&mut front, base, &outer, total);
                    number_ipv4::<0>(&mut front, sum, false, 0x1_0007);
                }
                (true, true) => {
                    let sum = set_ipv4::<8>(&mut front, base, &outer, total);
                    number_ipv4::<8>(&mut front, sum, false, 0x1_0007);
                }
                (false, false) => set_ipv6::<0>(&mut front, &outer, total),
                (false, true) => set_ipv6::<8>(&mut front, &outer, total),
            }
            if udp_len > 0 {
                set_udp_length(&mut front, total - header_len);
            }
            set_sequence(&mut front, 0x5_0000_0009);
            let bytes = &front[LEN - total..];
            let ip = Ip::parse(bytes).expect("a packet");
            assert_eq!((ip.source(), ip.destination(), ip.traffic_class()), (local, remote, 0xb8));
            match ip {
                Ip::V4(ip) => {
                    assert_eq!((ip.ttl(), ip.fragment_word()), (17, 0));
                    assert_eq!(Sum::default().bytes(&bytes[..header_len]).finish(), 0, "a good checksum");
                }
                Ip::V6(ip) => assert_eq!((ip.hop_limit(), ip.flow_label()), (17, 0x12345)),
            }
            let mut payload = &bytes[header_len..];
            assert_eq!(payload, transport(&front, encapsulation));
            if udp_len > 0 {
                let udp = Udp::parse(payload).expect("a datagram");
                assert_eq!((udp.source_port(), udp.destination_port()), (4500, 1234));
                payload = udp.payload();
            }
            let esp = Esp::parse(payload).expect("a header");
            assert_eq!((esp.spi(), esp.sequence()), (Spi::MIN.get(), 9));
        }
    }
}
