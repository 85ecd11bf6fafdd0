//! Packets as a hostile or a merely different peer would send them, a test for each kind, with a processor that
//! finds out what was changed.

use crate::pair::{Pair, ipv4, ipv6, set_len, with_header};
use forebay_crypto::Suite;
use forebay_ipsec::{DropReason, Encapsulation, Mode, SaConfig};

const SUITES: [&str; 3] = ["aes128gcm16", "aes128-sha256", "aes128ctr-sha512"];

fn with_suite(suite: &str) -> Pair {
    let suite: Suite = suite.parse().expect("a proposal");
    Pair::new(|config| config.suite = suite)
}

fn in_transport(change: impl FnOnce(&mut SaConfig)) -> Pair {
    Pair::new(|config| {
        config.mode = Mode::Transport;
        change(config);
    })
}

#[test]
fn runt_and_header_only_packets() {
    for suite in SUITES {
        let mut pair = with_suite(suite);
        let sealed = pair.seal(&ipv4(17, &[1; 12])).expect("sealed");
        for len in 0..sealed.len() {
            // Cut short, and the header telling the old length.
            assert!(pair.open(&sealed[..len]).is_err(), "{suite}, {len} bytes");
            // Cut short, and the header telling so.
            if len >= 20 {
                let mut runt = sealed[..len].to_vec();
                set_len(&mut runt, len);
                let reason = pair.open(&runt).expect_err("too short");
                let allowed = [DropReason::InHdrError, DropReason::InStateProtoError];
                assert!(allowed.contains(&reason), "{suite}, {len} bytes: {reason}");
            }
        }
        // Nothing but headers: IP; ESP; ESP and IV; ESP, IV and ICV.
        for body in [0, 8, 8 + pair.suite.iv_len(), 8 + pair.suite.iv_len() + pair.suite.icv_len()] {
            let mut bare = sealed[..20].to_vec();
            bare.extend(&sealed[20..28]);
            bare.resize(20 + body, 0);
            set_len(&mut bare, 20 + body);
            assert_eq!(pair.open(&bare), Err(DropReason::InHdrError), "{suite}, {body} bytes of ESP");
        }
        assert!(pair.open(&sealed).is_ok());
    }
}

#[test]
fn ip_total_length_shorter_than_the_header() {
    for total in 0..20 {
        let mut pair = Pair::new(|_| {});
        let mut sealed = pair.seal(&ipv4(17, &[1; 12])).expect("sealed");
        sealed[2..4].copy_from_slice(&(total as u16).to_be_bytes());
        assert_eq!(pair.open(&sealed), Err(DropReason::InHdrError));
        let mut plain = ipv4(17, &[1; 12]);
        plain[2..4].copy_from_slice(&(total as u16).to_be_bytes());
        assert_eq!(pair.seal(&plain), Err(DropReason::OutHdrError));
        // Inside of the tunnel it must not get out.
        let sealed = pair.seal_text(&ipv4(17, &[1; 12]), |text| set_len(text, total));
        assert_eq!(pair.open(&sealed), Err(DropReason::InStateModeError));
    }
    // A header of less than 20 bytes, or more than the packet.
    for first in [0x40, 0x44, 0x4f] {
        let mut pair = Pair::new(|_| {});
        let sealed = pair.seal_text(&ipv4(17, &[1; 12]), |text| text[0] = first);
        assert_eq!(pair.open(&sealed), Err(DropReason::InStateModeError));
    }
}

#[test]
fn tampered_icv_ciphertext_trailer_or_header() {
    for suite in SUITES {
        for esn in [false, true] {
            let fresh =
                || Pair::new(|config| (config.suite, config.esn) = (suite.parse().expect("a proposal"), esn));
            let plain = ipv4(17, &[1; 12]);
            let sealed = fresh().seal(&plain).expect("sealed");
            // All from the sequence number's low byte on: IV, ciphertext, trailer, ICV.
            for bit in 8 * 27..8 * sealed.len() {
                let (mut pair, mut tampered) = (fresh(), sealed.clone());
                tampered[bit / 8] ^= 1 << (bit % 8);
                let expected = match tampered[27] {
                    0 => DropReason::InStateSeqError,
                    _ => DropReason::InStateProtoError,
                };
                assert_eq!(pair.open(&tampered), Err(expected), "{suite}, byte {} bit {}", bit / 8, bit % 8);
                assert_eq!(pair.open(&sealed).as_ref(), Ok(&plain));
            }
        }
    }
}

/// Makes `padding` bytes of padding, and says `says`.
fn padded(text: &mut Vec<u8>, padding: impl Iterator<Item = u8>, says: u8) {
    let next_header = text.pop().expect("a trailer");
    let pad_len = text.pop().expect("a trailer");
    text.truncate(text.len() - usize::from(pad_len));
    text.extend(padding);
    text.extend([says, next_header]);
}

#[test]
fn every_pad_length_is_taken_off() {
    for suite in SUITES {
        for mode in [Mode::Tunnel, Mode::Transport] {
            for pad_len in 0..=255u8 {
                let mut pair = Pair::new(|config| {
                    (config.suite, config.mode) = (suite.parse().expect("a proposal"), mode);
                });
                // Of chained ciphers only whole blocks come in: a payload that fits the padding.
                let block = if pair.suite.is_chained() { 16 } else { 1 };
                let header = if mode == Mode::Tunnel { 20 } else { 0 };
                let len =
                    (0..).map(|n| n + 20).find(|len| (len + header + usize::from(pad_len) + 2) % block == 0);
                let plain = ipv4(17, &vec![3; len.expect("some length")]);
                let sealed = pair.seal_text(&plain, |text| padded(text, 1..=pad_len, pad_len));
                let opened = pair.open(&sealed).expect("opened");
                assert_eq!(opened[20..], plain[20..], "{suite}, {mode:?}, {pad_len}");
                assert_eq!(opened.len(), plain.len());
            }
        }
    }
}

#[test]
fn pad_length_beyond_the_payload() {
    for mode in [Mode::Tunnel, Mode::Transport] {
        let plain = ipv4(17, &[3; 24]);
        let text_len = if mode == Mode::Tunnel { 44 } else { 24 };
        for says in 1..=255u8 {
            let mut pair = Pair::new(|config| (config.mode, config.check_padding) = (mode, false));
            let sealed = pair.seal_text(&plain, |text| padded(text, 0..0, says));
            let opened = pair.open(&sealed);
            if usize::from(says) > text_len {
                assert_eq!(opened, Err(DropReason::InPadding), "{says}");
            } else if mode == Mode::Tunnel {
                assert_eq!(opened, Err(DropReason::InStateModeError), "{says}: the inner packet is cut");
            } else {
                assert_eq!(opened.map(|opened| opened.len()), Ok(44 - usize::from(says)));
            }
        }
    }
}

/// RFC 4303 2.4: the receiver SHOULD look.
#[test]
fn wrong_pad_bytes() {
    type Pattern = fn(usize) -> u8;
    let patterns: [(&str, Pattern); 4] = [
        ("zeros", |_| 0),
        ("from zero", |at| at as u8),
        ("all the length (RFC 2630's)", |_| 18),
        ("one bit off", |at| (at as u8 + 1) ^ if at == 17 { 0x80 } else { 0 }),
    ];
    for suite in SUITES {
        for (name, pattern) in patterns {
            for check in [true, false] {
                let suite: Suite = suite.parse().expect("a proposal");
                let mut pair = Pair::new(|config| (config.suite, config.check_padding) = (suite, check));
                // With 18 bytes of padding and the trailer a multiple of sixteen.
                let plain = ipv4(17, &[3; 24]);
                let sealed = pair.seal_text(&plain, |text| padded(text, (0..18).map(pattern), 18));
                let expected = if check { Err(DropReason::InPadding) } else { Ok(plain) };
                assert_eq!(pair.open(&sealed), expected, "{suite}, {name}");
            }
        }
    }
}

/// RFC 4303 2.7: whatever stands behind the inner packet's own length.
#[test]
fn tfc_padding_comes_off_whatever_it_is() {
    for (plain, v6) in [(ipv4(17, &[3; 24]), false), (ipv6(17, &[3; 24]), true)] {
        for more in [0, 1, 4, 100, 900] {
            let mut pair = Pair::new(|_| {});
            let sealed = pair.seal_text(&plain, |text| {
                let at = text.len() - 2 - usize::from(text[text.len() - 2]);
                text.splice(at..at, (0..more).map(|at| at as u8 ^ 0x45));
            });
            assert_eq!(pair.open(&sealed).as_ref(), Ok(&plain), "{more} bytes, IPv6: {v6}");
        }
    }
}

/// RFC 4301 7: a tunnel carries fragments; transport mode is for whole packets (RFC 4303 3.3.4).
#[test]
fn inner_fragments_pass_a_tunnel_and_not_transport_mode() {
    let v4 =
        |high: u8, low: u8| with_header(ipv4(17, &[1; 64]), |header| (header[6], header[7]) = (high, low));
    let v6 = |high: u8, low: u8| ipv6(44, &[&[17, 0, high, low, 0, 0, 0, 7][..], &[1; 64]].concat());
    // First, middle, last.
    let fragments = [v4(0x20, 0), v4(0x20, 9), v4(0, 9), v6(0, 1), v6(1, 1), v6(1, 0)];
    for fragment in fragments {
        let mut tunnel = Pair::new(|_| {});
        let sealed = tunnel.seal(&fragment).expect("sealed");
        assert_eq!(tunnel.open(&sealed).as_ref(), Ok(&fragment));
        assert_eq!(in_transport(|_| {}).seal(&fragment), Err(DropReason::OutFragment));
    }
    // An atomic fragment is whole (RFC 6946).
    let atomic = v6(0, 0);
    let mut transport = in_transport(|_| {});
    let sealed = transport.seal(&atomic).expect("sealed");
    assert_eq!(transport.open(&sealed), Ok(atomic));
    // A fragment header behind destination options hides nothing.
    let hidden = ipv6(60, &[&[44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 1, 0, 0, 0, 7][..], &[1; 64]].concat());
    assert_eq!(in_transport(|_| {}).seal(&hidden), Err(DropReason::OutFragment));
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ESP: u8 = 50;
const DESTINATION: u8 = 60;

/// An IPv6 packet with these extension headers, each with its own bytes inside.
fn extended(headers: &[u8], upper: u8) -> Vec<u8> {
    let mut payload = Vec::new();
    for (n, header) in headers.iter().enumerate() {
        let next = headers.get(n + 1).copied().unwrap_or(upper);
        let bytes: [u8; 8] = match *header {
            ROUTING => [next, 0, 4, 0, 0, 0, 0, n as u8],
            FRAGMENT => [next, 0, 0, 0, 0, 0, 0, n as u8],
            _ => [next, 0, 1, 4, 0, 0, 0, n as u8],
        };
        payload.extend(bytes);
        // A longer one, now and then.
        if *header == DESTINATION && n % 2 == 0 {
            let at = payload.len() - 8;
            payload[at + 1] = 1;
            payload.extend([1, 6, 0, 0, 0, 0, 0, 0]);
        }
    }
    payload.extend([0x12, 0x34, 0x56, 0x78, 0, 8, 0, 0]);
    ipv6(headers.first().copied().unwrap_or(upper), &payload)
}

/// RFC 4303 3.1.1's figure: hop-by-hop, destination before routing, routing and fragment in front of ESP;
/// destination options for the last receiver behind it. Every combination, in the order of RFC 8200 4.1.
#[test]
fn ipv6_extension_headers_before_and_after() {
    for bits in 0..32u8 {
        let with = |bit: u8, header: u8| if bits >> bit & 1 == 1 { vec![header] } else { vec![] };
        // Destination options for each hop of a route stand in front of a routing header only.
        let for_each_hop = if bits >> 2 & 1 == 1 { with(1, DESTINATION) } else { vec![] };
        let before = [with(0, HOP_BY_HOP), for_each_hop, with(2, ROUTING), with(3, FRAGMENT)].concat();
        let after = with(4, DESTINATION);
        let plain = extended(&[&before[..], &after].concat(), 17);
        for encapsulation in [Encapsulation::None, Encapsulation::Udp] {
            let mut pair = in_transport(|config| config.encapsulation = encapsulation);
            let sealed = pair.seal(&plain).expect("sealed");
            let protocol = if encapsulation == Encapsulation::None { ESP } else { 17 };
            // The headers in front are those of the packet, and the last one names ESP or UDP.
            let mut at = 40;
            let mut next = sealed[6];
            for header in &before {
                assert_eq!(next, *header, "{before:?}");
                let len = if *header == FRAGMENT { 8 } else { 8 + 8 * usize::from(sealed[at + 1]) };
                assert_eq!(sealed[at + 1..at + len], plain[at + 1..at + len]);
                (next, at) = (sealed[at], at + len);
            }
            assert_eq!(next, protocol, "{before:?} and {after:?}");
            let spi_at = if encapsulation == Encapsulation::None { at } else { at + 8 };
            assert_eq!(sealed[spi_at..spi_at + 4], 0x1001u32.to_be_bytes());
            assert_eq!(usize::from(u16::from_be_bytes([sealed[4], sealed[5]])) + 40, sealed.len());
            assert_eq!(pair.open(&sealed).as_ref(), Ok(&plain), "{before:?} and {after:?}");
            // A tunnel takes all of it inside.
            let mut tunnel = Pair::new(|config| config.encapsulation = encapsulation);
            let sealed = tunnel.seal(&plain).expect("sealed");
            assert_eq!(tunnel.open(&sealed).as_ref(), Ok(&plain));
        }
    }
}

#[test]
fn ipv6_extension_headers_that_end_too_early() {
    let whole = extended(&[HOP_BY_HOP, ROUTING, DESTINATION], 17);
    for len in 40..whole.len() {
        let mut cut = whole[..len].to_vec();
        set_len(&mut cut, len);
        let mut pair = in_transport(|_| {});
        match pair.seal(&cut) {
            // Only what stands behind ESP may be as short as it likes.
            Ok(sealed) => assert_eq!((len >= 64, pair.open(&sealed)), (true, Ok(cut))),
            Err(reason) => assert_eq!(reason, DropReason::OutHdrError, "{len} bytes"),
        }
    }
}
