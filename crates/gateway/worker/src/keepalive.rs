//! Keepalives for peers behind NAT (RFC 3948 2.3 and 4): one byte, sent when nothing else was for a while.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use forebay_crypto::Direction;
use forebay_ipsec::{Encapsulation, Ipsec, SaConfig};
use forebay_time::{Duration, Time};
use forebay_wire::{checksum, ipv4, protocol, udp};

/// Which peers have had something to hear.
#[derive(Debug)]
pub struct Keepalives {
    interval: Option<Duration>,
    next: Time,
    /// Packets sent to each peer, from each local address and port, until the last look.
    heard: BTreeMap<(SocketAddr, SocketAddr), u64>,
}

impl Keepalives {
    /// One to each peer to which nothing was sent for `interval`, or a little more; never for `None`.
    pub fn new(interval: Option<Duration>) -> Keepalives {
        let next = if interval.is_some() { Time::ZERO } else { Time::MAX };
        Keepalives { interval, next, heard: BTreeMap::new() }
    }

    /// When to look again.
    pub fn next(&self) -> Time {
        self.next
    }

    /// The keepalives, whole IP packets, that are due.
    pub fn due(&mut self, now: Time, sad: &Ipsec) -> Vec<Vec<u8>> {
        let Some(interval) = self.interval.filter(|_| now >= self.next) else { return vec![] };
        self.next = now + interval;
        let mut heard: BTreeMap<(SocketAddr, SocketAddr), u64> = BTreeMap::new();
        for (session, direction, sa, counters) in sad.iter() {
            // A nested SA's datagrams are in another SA's packets, where no NAT sees them.
            let is_outermost = sad.outer(session).is_none();
            if is_outermost && direction == Direction::Seal && sa.encapsulation == Encapsulation::Udp {
                *heard.entry(ends(sa)).or_default() += counters.packets;
            }
        }
        // A peer that is new has just been told its keys.
        let silent = |ends: &&(SocketAddr, SocketAddr)| self.heard.get(*ends) == heard.get(*ends);
        let packets = heard.keys().filter(silent).map(|(local, remote)| packet(*local, *remote)).collect();
        self.heard = heard;
        packets
    }
}

fn ends(sa: &SaConfig) -> (SocketAddr, SocketAddr) {
    (SocketAddr::new(sa.local, sa.udp.local), SocketAddr::new(sa.remote, sa.udp.remote))
}

/// A keepalive with its headers.
fn packet(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    const LEN: u8 = udp::HEADER as u8 + 1;
    let mut packet = match (local.ip(), remote.ip()) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => {
            let len = ipv4::MIN_HEADER as u8 + LEN;
            let mut header = vec![0x45, 0, 0, len, 0, 0, 0x40, 0, 64, protocol::UDP, 0, 0];
            header.extend(local.octets());
            header.extend(remote.octets());
            let checksum = checksum::Sum::default().bytes(&header).finish();
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            header
        }
        (local, remote) => {
            let octets = |address| match address {
                IpAddr::V4(v4) => std::net::Ipv4Addr::to_ipv6_mapped(&v4).octets(),
                IpAddr::V6(v6) => v6.octets(),
            };
            let mut header = vec![0x60, 0, 0, 0, 0, LEN, protocol::UDP, 64];
            header.extend(octets(local));
            header.extend(octets(remote));
            header
        }
    };
    let at = packet.len();
    packet.extend(local.port().to_be_bytes());
    packet.extend(remote.port().to_be_bytes());
    packet.extend([0, LEN, 0, 0, 0xff]);
    if local.is_ipv6() {
        udp::fill_checksum_v6(&mut packet, at);
    }
    packet
}

#[cfg(test)]
mod tests {
    use forebay_ipsec::{IvRange, Spi};

    use super::*;

    /// What a nested SA sends is inside of another's packets, and so would its keepalives have to be: none is sent.
    #[test]
    fn only_the_outermost_sa_has_keepalives() {
        let suite = "aes128gcm16".parse().unwrap();
        let sa = |spi, remote: &str| SaConfig {
            encapsulation: Encapsulation::Udp,
            ..SaConfig::new(
                "in UDP",
                Spi::new(spi).unwrap(),
                suite,
                "192.0.2.1".parse().unwrap(),
                remote.parse().unwrap(),
            )
        };
        let mut sad = Ipsec::default();
        let inner = sad.add_outbound(sa(1, "192.0.2.3"), IvRange::for_throwaway_key()).unwrap();
        let outer = sad.add_outbound(sa(2, "192.0.2.2"), IvRange::for_throwaway_key()).unwrap();
        let destinations = |sad: &Ipsec| -> Vec<u8> {
            let mut keepalives = Keepalives::new(Some(Duration::from_millis(1)));
            assert!(keepalives.due(Time::ZERO, sad).is_empty(), "all are new");
            let packets = keepalives.due(keepalives.next(), sad);
            packets.iter().map(|packet| packet[19]).collect()
        };
        assert_eq!(destinations(&sad), [2, 3]);
        sad.nest(inner, outer).unwrap();
        assert_eq!(destinations(&sad), [2]);
    }
}
