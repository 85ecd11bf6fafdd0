//! Audit records of packets that were dropped (RFC 4303 2.1, 3.4.2 to 3.4.4; RFC 4301 4.4.1, 5.2). Their rate is
//! limited so that an attacker who sends forged packets cannot fill the disk.

use std::net::IpAddr;

pub use forebay_admission::Limiter;
use forebay_crypto::Direction;
use forebay_ipsec::DropReason;
use forebay_time::Time;
use forebay_wire::{Ip, protocol, udp};

/// Says what was dropped, with the fields that RFC 4303 asks for: SPI, time, source, destination, sequence
/// number and, in IPv6, flow label. The time is the log's.
#[derive(Debug)]
pub struct Audit(Limiter);

impl Audit {
    /// At most `per_second` records a second, none for 0, and `burst` at once after a quiet time.
    pub fn new(per_second: u32, burst: u32) -> Audit {
        Audit(Limiter::new(per_second, burst))
    }

    /// Makes a record of a dropped packet, unless there were too many.
    pub fn note(&mut self, now: Time, direction: Direction, reason: DropReason, packet: &[u8]) {
        if direction == Direction::Seal && is_of_the_host(packet) {
            tracing::debug!(reason = reason.name(), "multicast of this host itself dropped");
            return;
        }
        let Some(unsaid) = self.0.admit(now) else { return };
        let direction = if direction == Direction::Seal { "out" } else { "in" };
        let (reason, why) = (reason.name(), reason.explanation());
        match Fields::of(packet) {
            Some(Fields { source, destination, esp: Some((spi, sequence)), flow_label }) => {
                tracing::warn!(target: "forebay::audit", direction, reason, %source, %destination,
                    spi = format_args!("{spi:#010x}"), sequence, flow_label, unsaid, "{why}");
            }
            Some(Fields { source, destination, esp: None, flow_label }) => {
                tracing::warn!(target: "forebay::audit", direction, reason, %source, %destination, flow_label,
                    unsaid, "{why}");
            }
            None => tracing::warn!(target: "forebay::audit", direction, reason, unsaid, "{why}"),
        }
    }
}

/// Whether it is what a kernel and its programs send through every new interface, to a group or with an address that no
/// router passes on: router solicitations, MLD, IGMP, mDNS. It says nothing about the tunnel, so it is no record.
fn is_of_the_host(packet: &[u8]) -> bool {
    let Ok(ip) = Ip::parse(packet) else { return false };
    match (ip.source(), ip.destination()) {
        (_, IpAddr::V4(to)) => to.octets()[..3] == [224, 0, 0] || to.is_link_local(),
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let scope = to.octets()[1] & 0xf;
            to.is_multicast() && (scope <= 2 || from.is_unicast_link_local() || from.is_unspecified())
                || to.is_unicast_link_local()
        }
        _ => false,
    }
}

/// What a record says of a packet.
struct Fields {
    source: IpAddr,
    destination: IpAddr,
    /// SPI and sequence number.
    esp: Option<(u32, u32)>,
    flow_label: Option<u32>,
}

impl Fields {
    fn of(packet: &[u8]) -> Option<Fields> {
        let ip = Ip::parse(packet).ok()?;
        let (at, upper, flow_label) = match &ip {
            Ip::V4(v4) => (v4.header_len(), v4.protocol(), None),
            Ip::V6(v6) => {
                let label = u32::from_be_bytes([0, packet[1] & 0xf, packet[2], packet[3]]);
                let upper = v6.upper_layer().ok()?;
                (upper.at, upper.protocol, Some(label))
            }
        };
        // AH has its SPI behind four bytes of its own.
        let at = match upper {
            protocol::ESP => Some(at),
            protocol::UDP => Some(at + udp::HEADER),
            protocol::AH => Some(at + 4),
            _ => None,
        };
        let word = |at: usize| Some(u32::from_be_bytes(*packet.get(at..)?.first_chunk()?));
        let esp = at.and_then(|at| Some((word(at)?, word(at + 4)?)));
        Some(Fields { source: ip.source(), destination: ip.destination(), esp, flow_label })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(destination: [u8; 4]) -> Vec<u8> {
        [&[0x45, 0, 0, 20, 0, 0, 0, 0, 1, 2, 0, 0, 10, 1, 0, 1][..], &destination].concat()
    }

    fn v6(source: &str, destination: &str) -> Vec<u8> {
        let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
        [&[0x60, 0, 0, 0, 0, 0, 59, 1][..], &address(source), &address(destination)].concat()
    }

    #[test]
    fn only_what_the_host_sends_to_its_own_link_is_no_record() {
        // IGMP, mDNS; a router solicitation, MLD of a host without an address yet, mDNS.
        let own = [v4([224, 0, 0, 22]), v4([224, 0, 0, 251]), v6("fe80::1", "ff02::2"), v6("::", "ff02::16")];
        assert!(own.iter().chain([&v6("fe80::1", "ff02::fb")]).all(|packet| is_of_the_host(packet)));
        let others = [
            v4([10, 2, 0, 1]),
            v4([239, 1, 2, 3]),
            v6("2001:db8::1", "ff0e::1"),
            v6("fe80::1", "2001:db8::2"),
        ];
        assert!(!others.iter().any(|packet| is_of_the_host(packet)));
    }
}
