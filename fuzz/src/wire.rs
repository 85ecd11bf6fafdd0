//! Headers.

use forebay_wire::checksum::Sum;
use forebay_wire::esp::Trailer;
use forebay_wire::ipv6::Walk;
use forebay_wire::{Esp, Ip, Udp};

/// Parses `data` as an IP packet, as what may be inside one, and as an ESP trailer.
pub fn wire_ip(data: &[u8]) {
    sum(data);
    inner(data);
    let Ok(ip) = Ip::parse(data) else { return };
    let bytes = ip.bytes();
    assert!(data.starts_with(bytes), "a view of something else");
    assert!(bytes.len() >= ip.family().header_len());
    assert_eq!(ip.source().is_ipv4(), ip.destination().is_ipv4());
    // A view of a view is the same one.
    assert_eq!(Ip::parse(bytes).map(|again| again.bytes()), Ok(bytes));
    _ = ip.traffic_class();
    match ip {
        Ip::V4(ip) => {
            assert!((20..=60).contains(&ip.header_len()) && ip.header_len() <= bytes.len());
            assert_eq!(ip.raw_addresses(), bytes[12..20]);
            _ = (ip.tos(), ip.protocol(), ip.dont_fragment(), ip.is_fragment());
            inner(&bytes[ip.header_len()..]);
        }
        Ip::V6(ip) => {
            let (upper, place) = (ip.upper_layer(), ip.transport_place());
            for walk in [upper, place].into_iter().flatten() {
                check_walk(&walk, bytes);
                inner(&bytes[walk.at..]);
            }
            if let (Ok(upper), Ok(place)) = (upper, place) {
                assert!(place.at <= upper.at, "what stays in front is not behind the upper layer");
            }
            // The way to the upper layer is the longer one.
            assert!(upper.is_err() || place.is_ok());
        }
    }
}

fn check_walk(walk: &Walk, bytes: &[u8]) {
    assert!((40..=bytes.len()).contains(&walk.at), "{walk:?}");
    assert!(walk.named_at < walk.at, "{walk:?}");
    assert_eq!(bytes[walk.named_at], walk.protocol, "{walk:?}");
}

fn inner(bytes: &[u8]) {
    if let Ok(datagram) = Udp::parse(bytes) {
        assert!(datagram.payload().len() + 8 <= bytes.len());
        _ = (datagram.source_port(), datagram.destination_port());
    }
    if let Ok(esp) = Esp::parse(bytes) {
        assert_eq!([esp.spi().to_be_bytes(), esp.sequence().to_be_bytes()].as_flattened(), &bytes[..8]);
    }
    if let Ok(trailer) = Trailer::parse(bytes) {
        assert!(trailer.len() <= bytes.len());
    }
}

/// The checksum against the one of RFC 1071's text.
fn sum(bytes: &[u8]) {
    let mut slow = 0u32;
    for pair in bytes.chunks(2) {
        slow += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        slow = (slow & 0xffff) + (slow >> 16);
    }
    assert_eq!(Sum::default().bytes(bytes).finish(), !(slow as u16));
    assert_eq!(Sum::default().bytes(bytes).folded().finish_with([0; 4]), !(slow as u16));
}
