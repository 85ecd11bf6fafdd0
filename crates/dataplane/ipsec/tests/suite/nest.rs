//! SAs within SAs, both ways: AH over ESP, tunnels in tunnels, and what must not get through.

use crate::reference::{Gateway, ah, esp, keys, other_end};
use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{DropReason, Encapsulation, Mode, NEST_MAX, SaConfig, SadError};

const HOSTS: [&str; 2] = ["10.1.0.1", "10.2.0.1"];
const GATES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const GATES_V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];

/// A UDP packet between `ends`.
fn plain(ends: [&str; 2]) -> Vec<u8> {
    let octets = |text: &str| text.parse::<std::net::Ipv4Addr>().expect("an address").octets();
    let mut packet = vec![0x45, 0, 0, 40, 0, 7, 0x40, 0, 64, 17, 0, 0];
    packet.extend(octets(ends[0]));
    packet.extend(octets(ends[1]));
    packet.extend((0..20).map(|n| n * 3));
    let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    packet
}

fn selecting(config: SaConfig, ends: [&str; 2]) -> SaConfig {
    let net = |text: &str| vec![format!("{text}/32").parse().expect("a network")];
    SaConfig { local_ts: net(ends[0]), remote_ts: net(ends[1]), ..config }
}

/// Gateways that seal through all of `sas`, the innermost first, and open the same; `bound` ties those
/// of the opener to each other.
fn pair(sas: &[SaConfig], bound: bool) -> (Gateway, Gateway) {
    let (mut sealer, mut opener) = (Gateway::default(), Gateway::default());
    for (index, config) in sas.iter().enumerate() {
        let key = keys(config.suite, index as u8);
        sealer.seals(config.clone(), key.clone());
        opener.opens(other_end(config), key);
    }
    for inner in 1..sas.len() as u32 {
        let nested = (SessionId(inner - 1), SessionId(inner));
        sealer.sad.nest(nested.0, nested.1).expect("SAs that are there");
        if bound {
            opener.sad.nest(nested.0, nested.1).expect("SAs that are there");
        }
    }
    (sealer, opener)
}

/// The protocols from the outside, of IPv4 and IPv6 without extensions.
fn outer_protocol(packet: &[u8]) -> u8 {
    if packet[0] >> 4 == 4 { packet[9] } else { packet[6] }
}

fn in_udp(mode: Mode, spi: u32, ends: [&str; 2]) -> SaConfig {
    SaConfig { encapsulation: Encapsulation::Udp, ..esp("aes128gcm16", mode, spi, ends) }
}

/// A datagram between `ends` from and to `port`, with `payload`.
fn datagram(ends: [&str; 2], port: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = plain(ends);
    packet[20..24].copy_from_slice(&[port.to_be_bytes(), port.to_be_bytes()].concat());
    packet[24..28].copy_from_slice(&[0, 20, 0, 0]);
    packet[28..28 + payload.len()].copy_from_slice(payload);
    packet
}

/// Through a tunnel come datagrams to the gateway itself, and ESP in UDP for it between the same addresses: neither is taken
/// for the other, however many of one kind have come before, and also if the SA in UDP is added only then.
#[test]
fn datagrams_to_the_gateway_are_not_taken_for_esp_nor_the_other_way() {
    let tunnel = esp("aes256gcm16", Mode::Tunnel, 0x1002, GATES_V6);
    let inner = in_udp(Mode::Tunnel, 0x1001, GATES);
    let (mut sealer, mut opener) = (Gateway::default(), Gateway::default());
    sealer.seals(tunnel.clone(), keys(tunnel.suite, 1));
    opener.opens(other_end(&tunnel), keys(tunnel.suite, 1));
    let (mut host, _) = pair(std::slice::from_ref(&inner), false);
    let burst = |sealer: &mut Gateway, opener: &mut Gateway, packets: &[Vec<u8>]| -> Vec<Vec<u8>> {
        let sealed = packets.iter().map(|packet| sealer.pass(Direction::Seal, packet).expect("protected"));
        let sealed: Vec<_> = sealed.collect();
        opener.pass_burst(&sealed).into_iter().map(|opened| opened.expect("opened")).collect()
    };
    let others =
        [datagram(GATES, 53, b"hello"), datagram(GATES, 4500, &[0xff]), datagram(GATES, 4500, &[0; 12])];
    let unknown = host.pass(Direction::Seal, &plain(HOSTS)).expect("protected");
    let many: Vec<_> = std::iter::repeat_n(others[0].clone(), 5).chain([unknown.clone()]).collect();
    assert_eq!(burst(&mut sealer, &mut opener, &many), many, "there is no SA for it yet");
    opener.opens(other_end(&inner), keys(inner.suite, 0));
    for _ in 0..3 {
        let known = host.pass(Direction::Seal, &plain(HOSTS)).expect("protected");
        let mut mixed: Vec<_> = std::iter::repeat_n(others[0].clone(), 5).collect();
        mixed.push(known);
        mixed.extend(others.iter().cloned());
        let mut expected = mixed.clone();
        expected[5] = plain(HOSTS);
        assert_eq!(burst(&mut sealer, &mut opener, &mixed), expected);
    }
}

#[test]
fn every_nesting_comes_through() {
    let ah_over_esp =
        [esp("aes128gcm16", Mode::Transport, 0x1001, HOSTS), ah("sha256", Mode::Transport, 0x1002, HOSTS)];
    let ah_over_esp_tunnel =
        [esp("aes128gcm16", Mode::Tunnel, 0x1001, GATES), ah("sha1", Mode::Transport, 0x1002, GATES)];
    let esp_over_ah =
        [ah("sha512", Mode::Transport, 0x1001, HOSTS), esp("aes256gcm16", Mode::Transport, 0x1002, HOSTS)];
    let two_ahs = [ah("sha384", Mode::Transport, 0x1001, HOSTS), ah("sha1", Mode::Transport, 0x1002, HOSTS)];
    let tunnels =
        [esp("aes128gcm16", Mode::Tunnel, 0x1001, GATES), esp("aes256gcm16", Mode::Tunnel, 0x1002, GATES_V6)];
    let ah_tunnels =
        [ah("sha256", Mode::Tunnel, 0x1001, GATES_V6), ah("aes128gmac", Mode::Tunnel, 0x1002, GATES)];
    let four = [
        esp("aes128gcm16", Mode::Tunnel, 0x1001, GATES),
        ah("sha512", Mode::Transport, 0x1002, GATES),
        esp("aes192gcm16", Mode::Tunnel, 0x1003, GATES_V6),
        ah("sha512", Mode::Transport, 0x1004, GATES_V6),
    ];
    let in_udp_in_tunnel =
        [in_udp(Mode::Tunnel, 0x1001, GATES), esp("aes256gcm16", Mode::Tunnel, 0x1002, GATES_V6)];
    let in_udp_v6_in_ah =
        [in_udp(Mode::Tunnel, 0x1001, GATES_V6), ah("sha256", Mode::Transport, 0x1002, GATES_V6)];
    let in_udp_in_transport =
        [in_udp(Mode::Transport, 0x1001, HOSTS), esp("aes128gcm16", Mode::Transport, 0x1002, HOSTS)];
    let in_udp_twice = [in_udp(Mode::Tunnel, 0x1001, GATES), in_udp(Mode::Tunnel, 0x1002, GATES_V6)];
    let all: [(&[SaConfig], u8); 11] = [
        (&in_udp_in_tunnel, 50),
        (&in_udp_v6_in_ah, 51),
        (&in_udp_in_transport, 50),
        (&in_udp_twice, 17),
        (&ah_over_esp, 51),
        (&ah_over_esp_tunnel, 51),
        (&esp_over_ah, 50),
        (&two_ahs, 51),
        (&tunnels, 50),
        (&ah_tunnels, 51),
        (&four, 51),
    ];
    for (sas, protocol) in all {
        for esn in [false, true] {
            for bound in [false, true] {
                let sas: Vec<SaConfig> = sas.iter().map(|sa| SaConfig { esn, ..sa.clone() }).collect();
                let (mut sealer, mut opener) = pair(&sas, bound);
                for _ in 0..3 {
                    let sealed = sealer.pass(Direction::Seal, &plain(HOSTS)).expect("a packet to protect");
                    assert_eq!(outer_protocol(&sealed), protocol);
                    assert_eq!(opener.pass(Direction::Open, &sealed), Ok(plain(HOSTS)), "{sas:?}");
                }
                let counted = |gateway: &Gateway| -> Vec<u64> {
                    gateway.sad.iter().map(|(.., counters)| counters.packets).collect()
                };
                assert_eq!(counted(&sealer), vec![3; sas.len()]);
                assert_eq!(counted(&opener), vec![3; sas.len()]);
            }
        }
    }
}

#[test]
fn what_is_bound_comes_through_its_outer_sa_only() {
    let sas = [esp("aes128gcm16", Mode::Tunnel, 0x1001, GATES), ah("sha1", Mode::Transport, 0x1002, GATES)];
    let (_, mut opener) = pair(&sas, true);
    let (mut without_ah, _) = pair(&sas[..1], false);
    let bare = without_ah.pass(Direction::Seal, &plain(HOSTS)).expect("a packet to protect");
    assert_eq!(opener.pass(Direction::Open, &bare), Err(DropReason::InStateMismatch));
    let (_, mut loose) = pair(&sas, false);
    assert_eq!(loose.pass(Direction::Open, &bare), Ok(plain(HOSTS)));
}

#[test]
fn the_innermost_packet_matches_the_selectors_of_all() {
    let inner = esp("aes128gcm16", Mode::Tunnel, 0x1001, GATES);
    let outer = ah("sha256", Mode::Transport, 0x1002, GATES);
    let other = ["10.1.0.9", "10.2.0.9"];
    for (inner_ts, outer_ts, passes) in
        [(HOSTS, HOSTS, true), (other, HOSTS, false), (HOSTS, other, false), (HOSTS, GATES, false)]
    {
        let (mut sealer, _) = pair(&[inner.clone(), outer.clone()], false);
        let sas = [selecting(inner.clone(), inner_ts), selecting(outer.clone(), outer_ts)];
        let (_, mut opener) = pair(&sas, false);
        let sealed = sealer.pass(Direction::Seal, &plain(HOSTS)).expect("a packet to protect");
        let opened = opener.pass(Direction::Open, &sealed);
        match passes {
            true => assert_eq!(opened, Ok(plain(HOSTS))),
            false => assert_eq!(opened, Err(DropReason::InStateMismatch), "{inner_ts:?} {outer_ts:?}"),
        }
    }
}

/// ESP of others that a tunnel carries is payload like any other, whatever its SPI.
#[test]
fn what_is_for_others_is_passed_on() {
    let tunnel = ah("sha256", Mode::Tunnel, 0x1002, GATES);
    let theirs = esp("aes128gcm16", Mode::Transport, 0x1001, HOSTS);
    let (mut sealer, mut opener) = (Gateway::default(), Gateway::default());
    sealer.seals(selecting(tunnel.clone(), HOSTS), keys(tunnel.suite, 1));
    opener.opens(other_end(&selecting(tunnel.clone(), HOSTS)), keys(tunnel.suite, 1));
    // The opener has an SA of its own with that SPI, for itself.
    let own = esp("aes128gcm16", Mode::Transport, 0x1001, GATES);
    opener.opens(other_end(&own), keys(own.suite, 9));
    let (mut host, _) = pair(&[theirs], false);
    let carried = host.pass(Direction::Seal, &plain(HOSTS)).expect("a packet to protect");
    let sealed = sealer.pass(Direction::Seal, &carried).expect("a packet to protect");
    assert_eq!(opener.pass(Direction::Open, &sealed), Ok(carried));
}

#[test]
fn a_forged_or_replayed_layer_stops_it() {
    let sas = [esp("aes128gcm16", Mode::Tunnel, 0x1001, GATES), ah("sha256", Mode::Tunnel, 0x1002, GATES_V6)];
    let (mut sealer, mut opener) = pair(&sas, false);
    let (mut forger, _) = pair(&sas, false);
    let sealed = sealer.pass(Direction::Seal, &plain(HOSTS)).expect("a packet to protect");
    for at in 0..sealed.len() {
        let mut forged = sealed.clone();
        forged[at] ^= 4;
        let mutable = [1, 2, 3, 7].contains(&at);
        if !mutable && at != 0 {
            assert!(opener.pass(Direction::Open, &forged).is_err(), "byte {at}");
        }
    }
    assert_eq!(opener.pass(Direction::Open, &sealed), Ok(plain(HOSTS)));
    // The outer SA's second packet with the inner one's first in it: an insider's replay.
    forger.sad.continue_after(SessionId(1), 1);
    let replayed = forger.pass(Direction::Seal, &plain(HOSTS)).expect("a packet to protect");
    assert_eq!(opener.pass(Direction::Open, &replayed), Err(DropReason::InStateSeqError));
}

#[test]
fn nesting_has_a_limit() {
    let chain = |len: u32| -> (Gateway, Vec<SaConfig>) {
        let mut gateway = Gateway::default();
        let sas: Vec<SaConfig> = (0..len).map(|n| ah("sha1", Mode::Transport, 0x1001 + n, HOSTS)).collect();
        sas.iter().for_each(|sa| _ = gateway.seals(sa.clone(), keys(sa.suite, 0)));
        (gateway, sas)
    };
    let most = NEST_MAX as u32;
    let (mut gateway, sas) = chain(most + 1);
    // In any order; the one too many is refused wherever it comes, and changes nothing.
    for inner in (0..most - 1).rev() {
        assert_eq!(gateway.sad.nest(SessionId(inner), SessionId(inner + 1)), Ok(()));
    }
    let refused = |inner: u32, outer: u32| {
        Err(SadError::CannotNest { inner: SessionId(inner), outer: SessionId(outer) })
    };
    assert_eq!(gateway.sad.nest(SessionId(most - 1), SessionId(most)), refused(most - 1, most));
    assert_eq!(gateway.sad.nest(SessionId(most), SessionId(0)), refused(most, 0));
    assert_eq!(gateway.sad.nest(SessionId(most - 1), SessionId(0)), refused(most - 1, 0), "a circle");
    assert_eq!(gateway.sad.nest(SessionId(0), SessionId(0)), refused(0, 0));
    assert_eq!(gateway.sad.nest(SessionId(0), SessionId(99)), refused(0, 99));
    let sealed = gateway.pass(Direction::Seal, &plain(HOSTS)).expect("a packet to protect");
    // One layer more, by a sender who has no limit.
    let last = sas.last().expect("one at least");
    let mut sender = Gateway::default();
    sender.seals(last.clone(), keys(last.suite, 0));
    let deeper = sender.pass(Direction::Seal, &sealed).expect("a packet to protect");
    let mut opener = Gateway::default();
    sas.iter().for_each(|sa| _ = opener.opens(other_end(sa), keys(sa.suite, 0)));
    assert_eq!(opener.pass(Direction::Open, &deeper), Err(DropReason::InBufferError));
    let next = gateway.pass(Direction::Seal, &plain(HOSTS)).expect("a packet to protect");
    assert_eq!(opener.pass(Direction::Open, &next), Ok(plain(HOSTS)));
}

#[test]
fn sas_of_two_directions_do_not_nest() {
    let sa = ah("sha1", Mode::Transport, 0x1001, HOSTS);
    let mut gateway = Gateway::default();
    let out = gateway.seals(sa.clone(), keys(sa.suite, 0));
    let into = gateway.opens(other_end(&sa), keys(sa.suite, 0));
    assert_eq!(gateway.sad.nest(out, into), Err(SadError::CannotNest { inner: out, outer: into }));
}
