//! AH from hostile hands: wrong lengths, fragments, chains of headers, numbers; and SAs that cannot be.

use crate::reference::{Gateway, ah, esp, keys, other_end};
use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{DropReason, Encapsulation, Ipsec, IvRange, Mode, Protocol, SaConfig, SaConfigError};
use proptest::prelude::*;

const ENDS: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const ENDS_V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];

fn pair(config: &SaConfig) -> (Gateway, Gateway) {
    let (mut sealer, mut opener) = (Gateway::default(), Gateway::default());
    sealer.seals(config.clone(), keys(config.suite, 7));
    opener.opens(other_end(config), keys(config.suite, 7));
    (sealer, opener)
}

fn ipv4(payload: usize) -> Vec<u8> {
    let mut packet =
        vec![0x45, 0, 0, 20 + payload as u8, 0, 0, 0, 0, 64, 253, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    packet.extend((0..payload).map(|n| n as u8));
    packet
}

/// An IPv6 packet with `extensions`, the first of which is a `next`.
fn ipv6(next: u8, extensions: &[u8], payload: usize) -> Vec<u8> {
    let [high, low] = ((extensions.len() + payload) as u16).to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, high, low, next, 64];
    for last in [1, 2] {
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(extensions);
    packet.extend((0..payload).map(|n| n as u8));
    packet
}

#[test]
fn headers_of_a_wrong_length() {
    for (ends, plain) in [(ENDS, ipv4(60)), (ENDS_V6, ipv6(253, &[], 60))] {
        let at = plain.len() - 60;
        for proposal in ["sha1", "sha256", "sha384", "sha512", "aes128gmac"] {
            let (mut sealer, mut opener) = pair(&ah(proposal, Mode::Transport, 0x1001, ends));
            let sealed = sealer.pass(Direction::Seal, &plain).expect("a packet to protect");
            let right = sealed[at + 1];
            for wrong in (0..=255).filter(|&len| len != right) {
                let mut sealed = sealed.clone();
                sealed[at + 1] = wrong;
                let reason = opener.pass(Direction::Open, &sealed).expect_err("a wrong length");
                // Over IPv4 padding to eight bytes is taken, and covered: see `expects`.
                let padded = ends == ENDS && wrong == right + 1;
                let expected = if padded { DropReason::InStateProtoError } else { DropReason::InHdrError };
                let aligned = !padded || matches!(proposal, "sha256" | "sha384" | "sha512" | "aes128gmac");
                assert_eq!(
                    reason,
                    if aligned { expected } else { DropReason::InHdrError },
                    "{proposal} {wrong}"
                );
            }
            assert!(opener.pass(Direction::Open, &sealed).is_ok());
        }
    }
}

#[test]
fn packets_cut_short() {
    for (ends, plain) in [(ENDS, ipv4(8)), (ENDS_V6, ipv6(0, &[253, 0, 1, 4, 0, 0, 0, 0], 8))] {
        for mode in [Mode::Transport, Mode::Tunnel] {
            let (mut sealer, mut opener) = pair(&ah("sha256", mode, 0x1001, ends));
            let sealed = sealer.pass(Direction::Seal, &plain).expect("a packet to protect");
            for len in 0..sealed.len() {
                assert!(opener.pass(Direction::Open, &sealed[..len]).is_err());
                // The same with a length field that fits.
                let mut cut = sealed[..len].to_vec();
                let (at, less) = if sealed[0] >> 4 == 4 { (2, 0) } else { (4, 40) };
                if let (Some(field), Some(stated)) = (cut.get_mut(at..at + 2), len.checked_sub(less)) {
                    field.copy_from_slice(&(stated as u16).to_be_bytes());
                    assert!(opener.pass(Direction::Open, &cut).is_err());
                }
            }
            assert!(opener.pass(Direction::Open, &sealed).is_ok());
        }
    }
}

#[test]
fn numbers() {
    for esn in [false, true] {
        let config = SaConfig { esn, ..ah("sha256", Mode::Transport, 0x1001, ENDS) };
        let (mut sealer, mut opener) = pair(&config);
        let sealed = sealer.pass(Direction::Seal, &ipv4(8)).expect("a packet to protect");
        let mut zero = sealed.clone();
        zero[28..32].fill(0);
        assert_eq!(opener.pass(Direction::Open, &zero), Err(DropReason::InStateSeqError));
        let mut ahead = sealed.clone();
        ahead[28] = 0x7f;
        assert_eq!(opener.pass(Direction::Open, &ahead), Err(DropReason::InStateProtoError));
        // That has moved no window.
        assert!(opener.pass(Direction::Open, &sealed).is_ok());
        assert_eq!(opener.pass(Direction::Open, &sealed), Err(DropReason::InStateSeqError));
        let counters = opener.sad.iter().next().expect("an SA").3;
        assert_eq!((counters.packets, counters.auth_failures, counters.replays), (1, 1, 2));
        assert_eq!(counters.bytes, sealed.len() as u64);
        // The end of all numbers.
        let last = if esn { u64::MAX } else { u32::MAX.into() };
        sealer.sad.continue_after(SessionId(0), last - 1);
        opener.sad.continue_after(SessionId(0), last - 1);
        let sealed = sealer.pass(Direction::Seal, &ipv4(8)).expect("the last packet");
        assert!(opener.pass(Direction::Open, &sealed).is_ok());
        assert_eq!(sealer.pass(Direction::Seal, &ipv4(8)), Err(DropReason::OutStateSeqError));
    }
}

#[test]
fn esn_is_covered_and_not_sent() {
    let plain = ipv4(8);
    let numbered = |after: u64, esn| {
        let config = SaConfig { esn, ..ah("sha256", Mode::Transport, 0x1001, ENDS) };
        let (mut sealer, mut opener) = pair(&config);
        sealer.sad.continue_after(SessionId(0), after);
        opener.sad.continue_after(SessionId(0), after.max(1) - 1);
        (sealer.pass(Direction::Seal, &plain).expect("a packet to protect"), opener)
    };
    let ((low, mut opener), (high, mut far_opener)) = (numbered(4, true), numbered((9 << 32) + 4, true));
    assert_eq!(low[..32], high[..32]);
    assert_ne!(low[32..48], high[32..48]);
    assert_ne!(low[32..48], numbered(4, false).0[32..48]);
    assert_eq!(opener.pass(Direction::Open, &high), Err(DropReason::InStateProtoError));
    assert_eq!(far_opener.pass(Direction::Open, &low), Err(DropReason::InStateProtoError));
    assert!(opener.pass(Direction::Open, &low).is_ok());
    assert!(far_opener.pass(Direction::Open, &high).is_ok());
}

#[test]
fn fragments_are_neither_protected_nor_opened() {
    let (mut sealer, mut opener) = pair(&ah("sha256", Mode::Transport, 0x1001, ENDS));
    for (at, bits) in [(6, 0x20), (6, 0x01), (7, 0x01)] {
        let mut plain = ipv4(8);
        plain[at] |= bits;
        assert_eq!(sealer.pass(Direction::Seal, &plain), Err(DropReason::OutFragment));
        let mut sealed = sealer.pass(Direction::Seal, &ipv4(8)).expect("a packet to protect");
        sealed[at] |= bits;
        assert_eq!(opener.pass(Direction::Open, &sealed), Err(DropReason::InFragment));
    }
    let (mut sealer, mut opener) = pair(&ah("sha256", Mode::Transport, 0x1001, ENDS_V6));
    let fragment = |next, word: u8| [next, 0, 0, word, 0, 0, 0, 9];
    let plain = ipv6(44, &fragment(253, 1), 8);
    assert_eq!(sealer.pass(Direction::Seal, &plain), Err(DropReason::OutFragment));
    let mut sealed = sealer.pass(Direction::Seal, &ipv6(253, &[], 8)).expect("a packet to protect");
    sealed.splice(40..40, fragment(51, 1));
    (sealed[5], sealed[6]) = (sealed[5] + 8, 44);
    assert_eq!(opener.pass(Direction::Open, &sealed), Err(DropReason::InFragment));
}

/// RFC 4302 A2: a fragment header in a packet that is whole is taken out before the ICV is made or checked.
#[test]
fn fragment_headers_of_whole_packets_are_not_seen() {
    let options = |next| [next, 0, 1, 4, 0, 0, 0, 0];
    let fragment = |next| [next, 0, 0, 0, 0, 0, 0, 9];
    let (mut sealer, mut opener) = pair(&ah("sha256", Mode::Transport, 0x1001, ENDS_V6));
    let without = ipv6(0, &options(253), 8);
    let with = ipv6(0, &[options(44), fragment(253)].concat(), 8);
    let sealed = sealer.pass(Direction::Seal, &with).expect("a packet to protect");
    assert_eq!(opener.pass(Direction::Open, &sealed).as_ref(), Ok(&without));
    // One that was put in behind the sealer's back.
    for at in [40, 48] {
        let mut sealed = sealer.pass(Direction::Seal, &without).expect("a packet to protect");
        let named_at = if at == 40 { 6 } else { 40 };
        let next = std::mem::replace(&mut sealed[named_at], 44);
        sealed.splice(at..at, fragment(next));
        sealed[5] += 8;
        assert_eq!(opener.pass(Direction::Open, &sealed).as_ref(), Ok(&without), "at {at}");
    }
}

#[test]
fn headers_that_have_no_room() {
    let options = |len: u8| {
        let mut header = vec![253, len, 0x1e, 0];
        header.resize(8 + 8 * usize::from(len), 0);
        header[3] = (header.len() - 4).min(255) as u8;
        header
    };
    let (mut sealer, _) = pair(&ah("sha512", Mode::Transport, 0x1001, ENDS_V6));
    for words in 0..40 {
        let header = options(words);
        let plain = ipv6(0, &header, 8);
        let sealed = sealer.pass(Direction::Seal, &plain);
        match 40 + header.len() {
            0..=192 => assert!(sealed.is_ok(), "{words}: {sealed:?}"),
            _ => assert_eq!(sealed, Err(DropReason::TooLong), "{words}"),
        }
    }
}

#[test]
fn packets_at_the_limit_of_ip() {
    let packet = |len: u16| {
        let mut packet = ipv4(8);
        packet.resize(len.into(), 0);
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        packet
    };
    // The length in an IPv6 header is that of what follows it (RFC 8200 3), and AH is padded to 8 bytes there.
    for (ends, outer, limit) in [(ENDS, 20 + 28, 65_535), (ENDS_V6, 40 + 32, 40 + 65_535)] {
        let (mut sealer, _) = pair(&ah("sha256", Mode::Tunnel, 0x1001, ends));
        let longest = (limit - outer) as u16;
        assert_eq!(sealer.pass(Direction::Seal, &packet(longest)).map(|sealed| sealed.len()), Ok(limit));
        assert_eq!(sealer.pass(Direction::Seal, &packet(longest + 1)), Err(DropReason::OutTooBig));
    }
}

#[test]
fn tunnels_with_something_else_inside() {
    let transport = ah("sha256", Mode::Transport, 0x1001, ENDS);
    let (mut sealer, _) = pair(&transport);
    let (_, mut opener) = pair(&SaConfig { mode: Mode::Tunnel, ..transport });
    let mut plain = ipv4(40);
    for (protocol, first) in [(17, 0x45), (4, 0x60), (41, 0x45), (4, 0x00), (59, 0x45)] {
        (plain[9], plain[20]) = (protocol, first);
        let sealed = sealer.pass(Direction::Seal, &plain).expect("a packet to protect");
        assert_eq!(opener.pass(Direction::Open, &sealed), Err(DropReason::InStateModeError));
    }
}

#[test]
fn sas_that_cannot_be() {
    let check = |config: SaConfig| config.check();
    let ah = |proposal| ah(proposal, Mode::Tunnel, 0x1001, ENDS);
    for proposal in ["sha256", "md5", "aesxcbc", "aescmac", "aes128gmac"] {
        assert_eq!(check(ah(proposal)), Ok(()));
    }
    for proposal in ["aes128gcm16", "aes128-sha256", "chacha20poly1305", "3des-sha1", "aes256ctr-sha1"] {
        let suite = proposal.parse().expect("a proposal");
        assert_eq!(check(ah(proposal)), Err(SaConfigError::AhEnciphers(suite)));
        assert_eq!(check(SaConfig { protocol: Protocol::Esp, ..ah(proposal) }), Ok(()));
    }
    let in_udp = SaConfig { encapsulation: Encapsulation::Udp, ..ah("sha256") };
    assert_eq!(check(in_udp), Err(SaConfigError::AhInUdp));
}

#[test]
fn one_space_of_spis_and_the_right_protocol() {
    let mut sad = Ipsec::default();
    sad.add_inbound(ah("sha256", Mode::Tunnel, 0x1001, ENDS)).expect("settings without fault");
    assert!(sad.add_inbound(esp("aes128gcm16", Mode::Tunnel, 0x1001, ENDS)).is_err());
    let (mut ah_sealer, mut ah_opener) = pair(&ah("sha256", Mode::Tunnel, 0x1001, ENDS));
    let (mut esp_sealer, mut esp_opener) = pair(&esp("aes128gcm16", Mode::Tunnel, 0x1001, ENDS));
    let ah = ah_sealer.pass(Direction::Seal, &ipv4(8)).expect("a packet to protect");
    let esp = esp_sealer.pass(Direction::Seal, &ipv4(8)).expect("a packet to protect");
    assert_eq!(esp_opener.pass(Direction::Open, &ah), Err(DropReason::InNoStates));
    assert_eq!(ah_opener.pass(Direction::Open, &esp), Err(DropReason::InNoStates));
}

#[test]
fn gmac_takes_ivs_and_others_do_not() {
    let seal = |proposal: &str| {
        let config = ah(proposal, Mode::Transport, 0x1001, ENDS);
        let mut gateway = Gateway::default();
        gateway.seals_from(config.clone(), keys(config.suite, 7), IvRange::share(1, 3, 0, 1));
        [0; 3].map(|_| gateway.pass(Direction::Seal, &ipv4(8)).map(|sealed| sealed[32..40].to_vec()))
    };
    let [first, second, third] = seal("aes128gmac");
    assert_eq!(first, Ok(vec![0, 0, 0, 0, 0, 0, 0, 1]));
    assert_eq!(second, Ok(vec![0, 0, 0, 0, 0, 0, 0, 2]));
    assert_eq!(third, Err(DropReason::OutStateIvError));
    assert!(seal("sha256").iter().all(Result::is_ok));
}

/// Bytes with an IP header, and mostly an AH header of the SA, in front.
fn headed() -> impl Strategy<Value = Vec<u8>> {
    let protocol = prop::sample::select(vec![51u8, 51, 51, 0, 43, 44, 50, 60, 4]);
    (any::<bool>(), protocol, prop::collection::vec(any::<u8>(), 0..120), 0usize..12, any::<bool>()).prop_map(
        |(v6, protocol, mut rest, options, good)| {
            if good {
                rest.splice(0..0, [253, if v6 { 6 } else { 5 }, 0, 0, 0, 0, 0x10, 1, 0, 0, 0, 9]);
            }
            match v6 {
                true => [ipv6(protocol, &rest, 0)].concat(),
                false => {
                    let words = options.min(rest.len() / 4);
                    let mut packet = ipv4(0);
                    packet[0] = 0x45 + words as u8;
                    packet[9] = protocol;
                    packet.extend(&rest[..4 * words]);
                    packet.extend(&rest);
                    let len = packet.len() as u16;
                    packet[2..4].copy_from_slice(&len.to_be_bytes());
                    packet
                }
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// No panic, no job against the rules ([`Gateway::work`] looks), a packet that is refused early as it was.
    #[test]
    fn anything_at_all(bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), headed()], esn: bool) {
        for (mode, ends) in [(Mode::Transport, ENDS), (Mode::Tunnel, ENDS), (Mode::Transport, ENDS_V6)] {
            let (mut sealer, mut opener) = pair(&SaConfig { esn, ..ah("sha256", mode, 0x1001, ends) });
            prop_assert!(opener.pass(Direction::Open, &bytes).is_err());
            if let Ok(sealed) = sealer.pass(Direction::Seal, &bytes) {
                let whole = forebay_wire::Ip::parse(&sealed).map(|ip| ip.bytes().len());
                prop_assert_eq!(whole, Ok(sealed.len()));
            }
        }
    }
}
