//! Packets that are too big for their path: ICMP messages to and fro, fragments, what is believed of a stranger.

use std::net::IpAddr;

use forebay_crypto::Direction;
use forebay_ipsec::reassembly::{MAX_HEADERS, ReassemblyLimits};
use forebay_ipsec::{DropReason, MIN_PATH_MTU_V4, Reassembler, Reassembly};
use forebay_wire::icmp::{self, TooBig, packet_too_big};
use forebay_wire::{Family, Fragment, Fragments, Ip, ipv6};

use crate::bench::{Bench, buffer, on_bench, sound};
use crate::kind::{Kind, other_end};

const INPUT_MAX: usize = 4_096;

/// `data` says by four bytes for what SA, by two what MTU a message asks for, and holds a packet.
pub fn path_mtu(data: &[u8]) {
    let Some((kind, data)) = Kind::take(data) else { return };
    let Some(([high, low], packet)) = data.split_first_chunk() else { return };
    let mtu = u16::from_be_bytes([*high, *low]);
    if packet.len() > INPUT_MAX {
        return;
    }
    message_about(packet, mtu);
    divided(packet, mtu.into());
    // A path MTU always, no selectors and no limits, which would only stand in the way.
    let config = kind.esp(0x1001);
    let family = Family::of(config.local);
    let config = forebay_ipsec::SaConfig {
        mtu: config.mtu.or(Some(1_280)),
        lifetime: Default::default(),
        local_ts: vec![],
        remote_ts: vec![],
        ..config
    };
    on_bench(|bench| {
        let session = bench.near.add(Direction::Seal, config.clone(), 0);
        let before = bench.near.sad.path_mtu(session).expect("it has one");
        assert_eq!(bench.near.sad.learn_path_mtu(packet), None, "nothing has been sent that it could quote");
        match bench.seal(packet).result {
            Err(DropReason::OutPathMtu) => too_big(bench, packet, before),
            Err(_) => {}
            Ok(sealed) => {
                divided_sealed(bench, session, &sealed, before);
                let router: IpAddr = match Ip::parse(&sealed).expect("an IP packet").family() {
                    Family::V4 => [203, 0, 113, 1].into(),
                    Family::V6 => ipv6_router(),
                };
                let mut room = [0; icmp::MAX_V6];
                let Some(len) = packet_too_big(&sealed, mtu, router, &mut room) else { return };
                let learned = bench.near.sad.learn_path_mtu(&room[..len]);
                let after = bench.near.sad.path_mtu(session).expect("it has one");
                assert_eq!(learned.is_some(), after != before);
                assert!(
                    after <= before && (after == before || after >= least(family)),
                    "{before} to {after}"
                );
                // The far end opens it nevertheless.
                bench.far.add(Direction::Open, other_end(&config), 0);
                _ = bench.open(&sealed);
            }
        }
    });
}

fn least(family: Family) -> u16 {
    if family == Family::V4 { MIN_PATH_MTU_V4 } else { ipv6::MIN_MTU }
}

fn ipv6_router() -> IpAddr {
    IpAddr::from([0x2001, 0xdb8, 0, 9, 0, 0, 0, 9])
}

/// A packet that the path of its SA does not take is divided or reported, and never both.
fn too_big(bench: &mut Bench, packet: &[u8], mtu: u16) {
    let mut parts = vec![];
    if let Some(mut fragments) = bench.near.sad.divide(packet) {
        let mut room = [0; INPUT_MAX];
        while let Some(len) = fragments.next_into(&mut room) {
            parts.push(room[..len].to_vec());
        }
        assert!(parts.len() > 1);
    }
    for part in &parts {
        match bench.seal(part).result {
            Ok(sealed) => assert!(sealed.len() <= mtu.into(), "{} bytes for {mtu}", sealed.len()),
            Err(reason) => assert_ne!(reason, DropReason::OutPathMtu, "{} bytes", part.len()),
        }
    }
    for from in [IpAddr::from([203, 0, 113, 1]), ipv6_router()] {
        let mut room = [0; icmp::MAX_V6];
        if let Some(len) = bench.near.sad.icmp_error(packet, from, &mut room) {
            assert!(parts.is_empty(), "divided and reported");
            check_message(&room[..len], packet);
        }
    }
}

/// The fragments of a protected packet come together again.
fn divided_sealed(bench: &mut Bench, session: forebay_crypto::SessionId, sealed: &[u8], mtu: u16) {
    let Some(mut fragments) = bench.near.sad.divide_sealed(session, sealed) else { return };
    if let Ok(Ip::V6(ip)) = Ip::parse(sealed)
        && ip.fragment_place().is_ok_and(|place| place.at > MAX_HEADERS)
    {
        // The far end keeps no room for such headers.
        return;
    }
    let limits = ReassemblyLimits { datagrams: 1, bytes: 32 << 10, fragments: 16, ..Default::default() };
    let mut reassembler = Reassembler::new(limits, 1);
    let mut room = [0; INPUT_MAX + 512];
    let mut whole = None;
    while let Some(len) = fragments.next_into(&mut room) {
        assert!(len <= mtu.into() && whole.is_none());
        let mut packet = buffer(&room[..len.max(1)]);
        let mut large = forebay_crypto::Packet::with_capacity(2 * INPUT_MAX);
        assert!(large.fill(packet.bytes()));
        std::mem::swap(&mut packet, &mut large);
        match reassembler.push(bench.now(), &mut packet) {
            Reassembly::Held => {}
            Reassembly::Complete => whole = Some(sound(&packet)),
            other => panic!("{other:?}"),
        }
    }
    let whole = whole.expect("all fragments were there");
    assert_eq!(whole.len(), sealed.len());
    assert!(whole.iter().zip(sealed).enumerate().all(|(at, (a, b))| a == b || (6..12).contains(&at)));
}

/// The message about a packet, if one may be sent, is read as what it is, and never answered itself.
fn message_about(packet: &[u8], mtu: u16) {
    _ = TooBig::parse(packet);
    for from in [IpAddr::from([203, 0, 113, 1]), ipv6_router()] {
        let mut room = [0; icmp::MAX_V6];
        let Some(len) = packet_too_big(packet, mtu, from, &mut room) else { continue };
        let message = &room[..len];
        let (least, most) = if from.is_ipv4() { (0, icmp::MAX_V4) } else { (ipv6::MIN_MTU, icmp::MAX_V6) };
        assert!(len <= most);
        assert_eq!(check_message(message, packet), u32::from(mtu.max(least)));
        let mut again = [0; icmp::MAX_V6];
        assert_eq!(packet_too_big(message, mtu, from, &mut again), None, "an error about an error");
        assert_eq!(packet_too_big(packet, mtu, from, &mut again[..len - 1]), None, "no room");
    }
}

/// The MTU that a message asks for.
fn check_message(message: &[u8], about: &[u8]) -> u32 {
    assert_eq!(Ip::parse(message).map(|ip| ip.bytes().len()), Ok(message.len()));
    let read = TooBig::parse(message).expect("it is read");
    assert!(about.starts_with(read.quoted) && !read.quoted.is_empty());
    read.mtu
}

/// Fragments fit, follow each other, and hold what the packet held.
fn divided(packet: &[u8], mtu: usize) {
    let Ok(ip) = Ip::parse(packet) else { return };
    let Some(mut fragments) = Fragments::new(&ip, mtu, 7) else { return };
    let first = match Fragment::find(&ip) {
        Ok(Some(fragment)) => fragment.offset,
        _ => 0,
    };
    let mut room = [0; INPUT_MAX + 8];
    let (mut payload, mut more) = (vec![], true);
    while let Some(len) = fragments.next_into(&mut room) {
        assert!(len <= mtu && more, "{len} bytes for {mtu}");
        let part = Ip::parse(&room[..len]).expect("an IP packet");
        assert_eq!(part.bytes().len(), len);
        let (at, follows) = match Fragment::find(&part) {
            Ok(Some(found)) => {
                let fits = first + payload.len() <= 0xfff8;
                assert!(!fits || found.offset == first + payload.len(), "{found:?} behind {}", payload.len());
                (found.payload_at, found.more)
            }
            // The last part of a whole IPv4 packet that was short enough.
            other => {
                assert_eq!(other, Ok(None));
                let Ip::V4(v4) = part else { panic!("a fragment header is missing") };
                (v4.header_len(), false)
            }
        };
        payload.extend_from_slice(&room[at..len]);
        more = follows;
    }
    assert!(packet[..ip.bytes().len()].ends_with(&payload), "the payload in its order");
}
