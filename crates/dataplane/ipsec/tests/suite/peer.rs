//! Peers behind a NAT that moves: whom a gateway believes, and where it sends from then on.

use std::net::{IpAddr, SocketAddr};

use crate::reference::{Gateway, esp, keys, other_end};
use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{Encapsulation, EventKind, Mode, SaConfig, SadError};
use forebay_time::{Duration, Time};

const GATES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const MOVED: &str = "198.51.100.7";

fn plain() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 7, 0x40, 0, 64, 253, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
    packet.extend([7; 20]);
    packet
}

fn in_udp() -> SaConfig {
    SaConfig { encapsulation: Encapsulation::Udp, ..esp("aes128gcm16", Mode::Tunnel, 0x1001, GATES) }
}

fn pair() -> (Gateway, Gateway) {
    let (mut sealer, mut opener) = (Gateway::default(), Gateway::default());
    let config = in_udp();
    sealer.seals(config.clone(), keys(config.suite, 0));
    opener.opens(other_end(&config), keys(config.suite, 0));
    (sealer, opener)
}

/// The packet as a NAT would send it on.
fn from(packet: &[u8], address: &str, port: u16) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let IpAddr::V4(address) = address.parse().unwrap() else { panic!("IPv4") };
    packet[12..16].copy_from_slice(&address.octets());
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet
}

fn moves(opener: &mut Gateway) -> Vec<EventKind> {
    opener.sad.events().map(|event| event.kind).collect()
}

#[test]
fn only_genuine_packets_newer_than_all_others_move_a_peer() {
    let (mut sealer, mut opener) = pair();
    let sealed: Vec<_> = (0..6).map(|_| sealer.pass(Direction::Seal, &plain()).unwrap()).collect();
    let moved = EventKind::Moved(format!("{MOVED}:1024").parse().unwrap());
    opener.pass(Direction::Open, &sealed[0]).unwrap();
    assert_eq!(moves(&mut opener), [], "it is where it was");

    let mut forged = from(&sealed[1], MOVED, 1024);
    *forged.last_mut().unwrap() ^= 1;
    opener.pass(Direction::Open, &forged).unwrap_err();
    assert_eq!(moves(&mut opener), [], "forged");

    opener.pass(Direction::Open, &sealed[2]).unwrap();
    opener.pass(Direction::Open, &from(&sealed[1], MOVED, 1024)).unwrap();
    assert_eq!(moves(&mut opener), [], "held back and sent from elsewhere");
    opener.pass(Direction::Open, &from(&sealed[2], MOVED, 1024)).unwrap_err();
    assert_eq!(moves(&mut opener), [], "sent again");

    opener.pass(Direction::Open, &from(&sealed[3], MOVED, 1024)).unwrap();
    assert_eq!(moves(&mut opener), [moved]);
    opener.pass(Direction::Open, &from(&sealed[4], MOVED, 1024)).unwrap();
    assert_eq!(moves(&mut opener), [], "told once");
    opener.pass(Direction::Open, &from(&sealed[5], MOVED, 1025)).unwrap();
    assert_eq!(moves(&mut opener), [EventKind::Moved(format!("{MOVED}:1025").parse().unwrap())]);
}

#[test]
fn packets_go_to_where_the_peer_has_moved() {
    let (mut sealer, _) = pair();
    let to: SocketAddr = format!("{MOVED}:1024").parse().unwrap();
    sealer.pass(Direction::Seal, &plain()).unwrap();
    assert_eq!(sealer.sad.move_peer(SessionId(0), to), Ok(true));
    assert_eq!(sealer.sad.move_peer(SessionId(0), to), Ok(false));
    let sealed = sealer.pass(Direction::Seal, &plain()).unwrap();
    assert_eq!(sealed[16..20], [198, 51, 100, 7]);
    assert_eq!(sealed[20..24], [0x11, 0x94, 0x04, 0x00]);
    let sum: u32 = sealed[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the header's checksum");
    let config = sealer.sad.config(SessionId(0)).unwrap();
    assert_eq!((config.remote, config.udp.remote), (to.ip(), 1024));
}

#[test]
fn a_peer_does_not_move_onto_another_ones_spi_or_to_the_other_ip_version() {
    let (mut sealer, _) = pair();
    let other = SaConfig { remote: MOVED.parse().unwrap(), ..in_udp() };
    sealer.seals(other.clone(), keys(other.suite, 1));
    let to = format!("{MOVED}:1024").parse().unwrap();
    assert!(matches!(sealer.sad.move_peer(SessionId(0), to), Err(SadError::OverlappingSpi { .. })));
    let v6 = "[2001:db8::1]:1024".parse().unwrap();
    assert!(matches!(sealer.sad.move_peer(SessionId(0), v6), Err(SadError::Config { .. })));
    // When the other is gone it may.
    sealer.sad.remove(SessionId(1));
    assert_eq!(sealer.sad.move_peer(SessionId(0), to), Ok(true));
    sealer.sad.remove(SessionId(0));
    assert_eq!(sealer.sad.move_peer(SessionId(0), to), Ok(false));
}

fn with(change: impl Fn(&mut SaConfig)) -> (Gateway, Gateway) {
    let (mut sealer, mut opener) = (Gateway::default(), Gateway::default());
    let config = in_udp();
    let mut other = other_end(&config);
    change(&mut other);
    sealer.seals(config.clone(), keys(config.suite, 0));
    opener.opens(other, keys(config.suite, 0));
    (sealer, opener)
}

#[test]
fn moves_without_end_are_followed_once_a_second() {
    let (mut sealer, mut opener) = pair();
    let mut at = |opener: &mut Gateway, ms: u64, packets: u16| {
        opener.sad.advance(Time::ZERO + Duration::from_millis(ms));
        let mut told = 0;
        for port in 0..packets {
            let sealed = sealer.pass(Direction::Seal, &plain()).unwrap();
            // Each is delivered, wherever it comes from.
            opener.pass(Direction::Open, &from(&sealed, MOVED, 1024 + port % 2)).unwrap();
            told += moves(opener).len();
        }
        told
    };
    assert_eq!(at(&mut opener, 0, 1_000), 4, "a few at once");
    assert_eq!(opener.sad.moves_limited(), 996 / 2);
    assert_eq!(at(&mut opener, 1_000, 1_000), 1);
    assert_eq!(at(&mut opener, 1_999, 1_000), 0);
    assert_eq!(at(&mut opener, 2_000, 1_000), 1);
    // Where it stays it is found, and quiet times are for the next few.
    assert_eq!(at(&mut opener, 60_000, 1_000), 4);
}

#[test]
fn a_peer_that_is_not_to_move_does_not() {
    // Behind a NAT this side's address is a private one, and the peer's is not.
    assert!(!SaConfig { ..esp("aes128gcm16", Mode::Tunnel, 1, ["10.9.0.1", "192.0.2.2"]) }.follow_peer);
    assert!(!SaConfig { ..esp("aes128gcm16", Mode::Tunnel, 1, ["100.64.0.1", "192.0.2.2"]) }.follow_peer);
    for ends in [["192.0.2.1", "10.9.0.1"], ["10.8.0.1", "10.9.0.1"], GATES, ["2001:db8::1", "2001:db8::2"]] {
        assert!(esp("aes128gcm16", Mode::Tunnel, 1, ends).follow_peer, "{ends:?}");
    }
    let (mut sealer, mut opener) = with(|config| config.follow_peer = false);
    for _ in 0..10 {
        let sealed = sealer.pass(Direction::Seal, &plain()).unwrap();
        opener.pass(Direction::Open, &from(&sealed, MOVED, 1024)).unwrap();
    }
    assert_eq!(moves(&mut opener), []);
}

#[test]
fn the_sas_of_a_peer_are_found_where_it_is() {
    let (mut sealer, _) = pair();
    let [local, remote]: [IpAddr; 2] = GATES.map(|address| address.parse().unwrap());
    let (here, there) = (SocketAddr::new(remote, 4500), format!("{MOVED}:1024").parse().unwrap());
    sealer.opens(other_end(&SaConfig { local: remote, remote: local, ..in_udp() }), keys(in_udp().suite, 1));
    sealer.seals(esp("aes128gcm16", Mode::Tunnel, 0x1002, GATES), keys(in_udp().suite, 2));
    assert_eq!(sealer.sad.sas_at(local, here), [SessionId(0), SessionId(1)]);
    sealer.sad.move_peer(SessionId(0), there).unwrap();
    assert_eq!(sealer.sad.sas_at(local, here), [SessionId(1)]);
    assert_eq!(sealer.sad.sas_at(local, there), [SessionId(0)]);
    sealer.sad.remove(SessionId(0));
    sealer.sad.remove(SessionId(1));
    assert!(sealer.sad.sas_at(local, here).is_empty() && sealer.sad.sas_at(local, there).is_empty());
}

#[test]
fn the_peer_of_any_sa_is_set_with_its_numbers() {
    let to: SocketAddr = format!("{MOVED}:4500").parse().unwrap();
    for (proposal, ah) in [("aes128gcm16", false), ("sha256", true)] {
        let mut config = esp(proposal, Mode::Tunnel, 0x1001, GATES);
        if ah {
            config.protocol = forebay_ipsec::Protocol::Ah;
        }
        let mut sealer = Gateway::default();
        sealer.seals(config.clone(), keys(config.suite, 0));
        let before = sealer.pass(Direction::Seal, &plain()).unwrap();
        assert_eq!(
            sealer.sad.move_peer(SessionId(0), to),
            Ok(false),
            "only peers of SAs in UDP are followed"
        );
        assert_eq!(sealer.sad.set_peer(SessionId(0), to), Ok(true));
        assert_eq!(sealer.sad.set_peer(SessionId(0), to), Ok(false));
        let sealed = sealer.pass(Direction::Seal, &plain()).unwrap();
        let destination = |packet: &[u8]| IpAddr::from(<[u8; 4]>::try_from(&packet[16..20]).unwrap());
        assert_eq!(destination(&before), GATES[1].parse::<IpAddr>().unwrap());
        assert_eq!(destination(&sealed), to.ip());
        let sequence = if ah { 28..32 } else { 24..28 };
        assert_eq!((&before[sequence.clone()], &sealed[sequence]), (&[0, 0, 0, 1][..], &[0, 0, 0, 2][..]));
        assert!(sealer.sad.sas_at(config.local, to).is_empty(), "it is not in UDP");
        assert_eq!(sealer.sad.config(SessionId(0)).unwrap().remote, to.ip());
        // Its old place is free, and its new one is not.
        sealer.seals(config.clone(), keys(config.suite, 1));
        assert!(matches!(sealer.sad.set_peer(SessionId(1), to), Err(SadError::OverlappingSpi { .. })));
    }
}

#[test]
fn a_peer_that_is_set_or_moved_and_has_not_moved_is_followed_back() {
    for by_file in [false, true] {
        let (mut sealer, mut opener) = pair();
        let sealed: Vec<_> = (0..2).map(|_| sealer.pass(Direction::Seal, &plain()).unwrap()).collect();
        opener.pass(Direction::Open, &sealed[0]).unwrap();
        let (session, to) = (SessionId(0), format!("{MOVED}:4500").parse().unwrap());
        let moved = match by_file {
            true => opener.sad.set_peer(session, to),
            // By another SA of the peer.
            false => opener.sad.move_peer(session, to),
        };
        assert_eq!(moved, Ok(true));
        opener.pass(Direction::Open, &sealed[1]).unwrap();
        let back = format!("{}:4500", GATES[0]).parse().unwrap();
        assert_eq!(moves(&mut opener), [EventKind::Moved(back)]);
    }
}
