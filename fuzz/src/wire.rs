//! Headers.

use forebay_wire::checksum::Sum;
use forebay_wire::esp::Trailer;
use forebay_wire::ipv6::Walk;
use forebay_wire::{Aggfrag, Ah, Esp, Fragment, Ip, Udp, aggfrag::Block, icmp::TooBig, ip};

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
    class(&ip);
    if let Ok(Some(fragment)) = Fragment::find(&ip) {
        assert!(fragment.header_len <= fragment.payload_at && fragment.payload_at <= bytes.len());
        assert!(fragment.named_at < fragment.payload_at && fragment.offset <= 0xfff8);
    }
    if let Some(message) = TooBig::parse(bytes) {
        assert!(bytes.ends_with(message.quoted));
    }
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
        let padding = &bytes[bytes.len() - trailer.len()..bytes.len() - 2];
        let in_order = padding.iter().zip(1u8..).all(|(byte, expected)| *byte == expected);
        assert_eq!(trailer.is_padded_in_order(bytes), in_order);
    }
    if let Ok(ah) = Ah::parse(bytes) {
        assert!((12..=1_028).contains(&ah.header_len()) && ah.header_len() <= bytes.len());
        assert_eq!(ah.icv().len() + 12, ah.header_len());
        assert_eq!([ah.spi().to_be_bytes(), ah.sequence().to_be_bytes()].as_flattened(), &bytes[4..12]);
    }
    if let Ok(payload) = Aggfrag::parse(bytes) {
        assert_eq!(payload.header_len() + payload.blocks().len(), bytes.len());
        assert_eq!(payload.congestion().is_some(), bytes[0] == 1);
        _ = (payload.block_offset(), payload.is_all_pad());
    }
    if let Ok(Block::Packet(len)) = Block::read(bytes) {
        assert!(len >= 20);
        // As long as the IP header says.
        assert!(len > bytes.len() || Ip::parse(bytes).is_ok_and(|ip| ip.bytes().len() == len));
    }
}

/// A class that is set is read, and nothing else changes; a checksum that was good stays good.
fn class(ip: &Ip<'_>) {
    let mut changed = ip.bytes().to_vec();
    for class in [0xff, 0, ip.traffic_class()] {
        ip::set_traffic_class(&mut changed, class);
        let again = Ip::parse(&changed).expect("still an IP packet");
        assert_eq!((again.traffic_class(), again.source()), (class, ip.source()));
        if let Ip::V4(v4) = ip {
            let header = |bytes: &[u8]| Sum::default().bytes(&bytes[..v4.header_len()]).finish();
            assert_eq!(header(&changed) == 0, header(ip.bytes()) == 0);
        }
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
    assert_eq!(Sum::ZERO.word(!Sum::default().bytes(bytes).finish()).finish_with([0; 4]), !(slow as u16));
}
