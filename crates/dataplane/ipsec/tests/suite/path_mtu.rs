//! Path MTUs: what fits by trying every length, and what becomes of a packet that does not.

use std::net::IpAddr;

use crate::pair::{PROTOCOLS, Pair, buffer, ipv4, ipv6, speak, with_header};
use forebay_crypto::{Direction, JobSpec, Packet, Suite};
use forebay_ipsec::{
    DropReason, Encapsulation, LEARNED_FOR, Mode, Overhead, PathMtuCounters, Protocol, SaConfig,
    SaConfigError, Tfc,
};
use forebay_time::{Duration, Time};
use forebay_wire::icmp::{self, TooBig};
use forebay_wire::{Family, Fragments, Ip};
use proptest::prelude::*;

fn over_v6(config: &mut SaConfig) {
    (config.local, config.remote) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
}

fn limited(protocol: Protocol, mtu: u16) -> Pair {
    Pair::new(|config| {
        speak(protocol, config);
        config.mtu = Some(mtu);
    })
}

fn dont_fragment(packet: Vec<u8>) -> Vec<u8> {
    with_header(packet, |header| header[6] = 0x40)
}

fn pieces(mut fragments: Fragments<'_>) -> Vec<Vec<u8>> {
    let mut room = vec![0; 65_535];
    std::iter::from_fn(|| fragments.next_into(&mut room).map(|len| room[..len].to_vec())).collect()
}

/// The effective MTU is the longest packet that, really prepared, is no longer than the path takes.
#[test]
fn the_effective_mtu_is_what_trying_every_length_finds() {
    use Protocol::{Ah, Esp};
    let kinds = [
        (Esp, "aes128gcm16"),
        (Esp, "aes256gcm8"),
        (Esp, "aes128-sha256"),
        (Esp, "aes128ctr-sha512"),
        (Esp, "null-sha256"),
        (Esp, "chacha20poly1305"),
        (Ah, "sha1"),
        (Ah, "sha256"),
        (Ah, "sha512"),
        (Ah, "aes128gmac"),
    ];
    for (protocol, suite) in kinds {
        // Not every suite is known to every stage of this tree.
        let Ok(suite) = suite.parse::<Suite>() else { continue };
        for mode in [Mode::Tunnel, Mode::Transport] {
            for v6 in [false, true] {
                for encapsulation in [Encapsulation::None, Encapsulation::Udp] {
                    if protocol == Ah && encapsulation == Encapsulation::Udp {
                        continue;
                    }
                    let settings = |mtu| {
                        move |config: &mut SaConfig| {
                            if v6 {
                                over_v6(config);
                            }
                            (config.protocol, config.suite, config.mode) = (protocol, suite, mode);
                            (config.encapsulation, config.mtu) = (encapsulation, mtu);
                        }
                    };
                    let mut unlimited = Pair::new(settings(None));
                    let sealed: Vec<usize> = (0..1_520)
                        .map(|len| {
                            let plain = match v6 {
                                false => dont_fragment(ipv4(17, &vec![0; len])),
                                true => ipv6(17, &vec![0; len]),
                            };
                            unlimited.seal(&plain).expect("sealed").len()
                        })
                        .collect();
                    let header = if v6 { 40 } else { 20 };
                    for mtu in (1_400..=1_416).chain([1_280, 1_492, 1_500]) {
                        let tried =
                            sealed.iter().rposition(|&len| len <= mtu.into()).expect("one fits") + header;
                        let mut limited = Pair::new(settings(Some(mtu)));
                        let told = limited.sealer.effective_mtu(limited.session, header);
                        let place = (protocol, suite, mode, v6, encapsulation, mtu);
                        assert_eq!(told.map(usize::from), Some(tried), "{place:?}");
                        // And preparing goes by it, where nothing must pass.
                        for (len, fits) in [(tried, true), (tried + 1, false)] {
                            let plain = match v6 {
                                false => dont_fragment(ipv4(17, &vec![0; len - header])),
                                true => ipv6(17, &vec![0; len - header]),
                            };
                            let outcome = limited.seal(&plain).map(|sealed| sealed.len() <= mtu.into());
                            let expected = match (fits, v6 && len <= 1_280) {
                                (true, _) => Ok(true),
                                (false, false) => Err(DropReason::OutPathMtu),
                                (false, true) => Ok(false),
                            };
                            assert_eq!(outcome, expected, "{len}, {place:?}");
                        }
                    }
                }
            }
        }
    }
}

/// RFC 4302 3.3.3.2.1: 96 bits of ICV make a header of 24 bytes in both, 128 bits one of 28 or 32.
#[test]
fn the_overhead_of_ah_counts_its_alignment() {
    for (mode, family, icv_len, grown) in [
        (Mode::Transport, Family::V4, 12, 24),
        (Mode::Transport, Family::V6, 12, 24),
        (Mode::Transport, Family::V4, 16, 28),
        (Mode::Transport, Family::V6, 16, 32),
        (Mode::Tunnel, Family::V4, 12, 44),
        (Mode::Tunnel, Family::V6, 16, 72),
    ] {
        let overhead = Overhead::ah(mode, family, icv_len);
        assert_eq!(overhead.sealed_len(1_000), 1_000 + grown);
        assert_eq!(overhead.longest_payload(1_500), 1_500 - grown);
    }
}

#[test]
fn too_big_with_df_is_reported_and_left_as_it_was() {
    for protocol in PROTOCOLS {
        let mut pair = limited(protocol, 1_500);
        let mtu = pair.sealer.effective_mtu(pair.session, 20).expect("an MTU");
        // 1500 - 20 - 8 - 8 - 16 is a multiple of four, and two bytes are ESP's trailer; AH has 28 bytes in all.
        assert_eq!(mtu, if protocol == Protocol::Esp { 1_446 } else { 1_452 });
        let plain = dont_fragment(ipv4(17, &[7; 1_460]));
        let (mut packet, mut spec) = (buffer(&plain), JobSpec::default());
        let refused = pair.sealer.prepare(Direction::Seal, &mut packet, &mut spec);
        assert_eq!((refused, packet.bytes()), (Err(DropReason::OutPathMtu), &plain[..]));
        assert!(pair.sealer.divide(&plain).is_none());
        let mut room = [0; icmp::MAX_V4];
        let from = "10.1.0.254".parse().unwrap();
        let len = pair.sealer.icmp_error(&plain, from, &mut room).expect("an answer");
        let message = TooBig::parse(&room[..len]).expect("sound");
        assert_eq!((message.mtu, message.quoted), (mtu.into(), &plain[..548]));
        // What fits gets no answer.
        assert!(pair.sealer.icmp_error(&dont_fragment(ipv4(17, &[7; 1_426])), from, &mut room).is_none());
    }
}

#[test]
fn too_big_without_df_is_divided_and_each_piece_fits() {
    for protocol in PROTOCOLS {
        let mut pair = limited(protocol, 1_500);
        let plain = ipv4(17, &vec![7; 4_000]);
        assert_eq!(pair.seal(&plain), Err(DropReason::OutPathMtu));
        assert!(pair.sealer.icmp_error(&plain, "10.1.0.254".parse().unwrap(), &mut [0; 600]).is_none());
        let pieces = pieces(pair.sealer.divide(&plain).expect("may be divided"));
        assert_eq!(pieces.len(), 3);
        let mut payload = Vec::<u8>::new();
        for piece in &pieces {
            // Inner fragments pass a tunnel (RFC 4301 7).
            let sealed = pair.seal(piece).expect("fits");
            assert!(sealed.len() <= 1_500);
            let opened = pair.open(&sealed).expect("opened");
            assert_eq!(opened, *piece);
            payload.extend(&opened[20..]);
        }
        assert_eq!(payload, plain[20..]);
    }
}

#[test]
fn ipv6_is_reported_but_1280_bytes_always_pass() {
    for (protocol, v6_outside) in
        PROTOCOLS.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)])
    {
        let mut pair = Pair::new(|config| {
            speak(protocol, config);
            if v6_outside {
                over_v6(config);
            }
            config.mtu = Some(1_280);
        });
        let effective = pair.sealer.effective_mtu(pair.session, 40).expect("an MTU");
        assert!(effective < 1_280);
        let from: IpAddr = "2001:db8:1::fe".parse().unwrap();
        let mut room = [0; icmp::MAX_V6];
        let big = ipv6(17, &vec![3; 1_300]);
        assert_eq!(pair.seal(&big), Err(DropReason::OutPathMtu));
        let len = pair.sealer.icmp_error(&big, from, &mut room).expect("an answer");
        assert_eq!(TooBig::parse(&room[..len]).map(|message| message.mtu), Some(1_280));

        // RFC 2473 7.1: what must pass is sealed whole, and then its outer packet is divided.
        let whole = ipv6(17, &vec![3; 1_240]);
        let sealed = pair.seal(&whole).expect("must pass");
        assert!(sealed.len() > 1_280);
        let outer = pieces(pair.sealer.divide_sealed(pair.session, &sealed).expect("too long"));
        assert!(outer.len() == 2 && outer.iter().all(|piece| piece.len() <= 1_280));
        let header = if v6_outside { 48 } else { 20 };
        let payload: Vec<u8> = outer.iter().flat_map(|piece| piece[header..].to_vec()).collect();
        assert_eq!(payload, sealed[if v6_outside { 40 } else { 20 }..]);
        assert_eq!(pair.open(&sealed), Ok(whole));
        if v6_outside {
            let next = pair.seal(&ipv6(17, &vec![3; 1_240])).expect("must pass");
            let next = pieces(pair.sealer.divide_sealed(pair.session, &next).expect("too long"));
            assert_ne!(next[0][44..48], outer[0][44..48], "an identification of its own");
        }
        // What fits is sent as it is.
        let short = pair.seal(&ipv6(17, &[3; 100])).expect("sealed");
        assert!(pair.sealer.divide_sealed(pair.session, &short).is_none());
    }
}

/// RFC 4303 3.3.4: transport mode protects whole packets, and what is too long is divided behind it.
#[test]
fn transport_mode_divides_behind_protection() {
    for protocol in PROTOCOLS {
        let mut pair = Pair::new(|config| {
            speak(protocol, config);
            (config.mode, config.mtu) = (Mode::Transport, Some(1_500));
        });
        let plain = ipv4(17, &[7; 1_480]);
        let sealed = pair.seal(&plain).expect("whole");
        assert!(sealed.len() > 1_500 && pair.sealer.divide(&plain).is_none());
        let outer = pieces(pair.sealer.divide_sealed(pair.session, &sealed).expect("too long"));
        assert_eq!(outer.iter().map(|piece| piece.len() - 20).sum::<usize>(), sealed.len() - 20);
        assert_eq!(pair.seal(&dont_fragment(plain)), Err(DropReason::OutPathMtu));
    }
}

/// The message that a router on the way sends about a sealed packet.
fn message_about(sealed: &[u8], mtu: u16) -> Vec<u8> {
    let mut room = [0; icmp::MAX_V6];
    let from = match Ip::parse(sealed).expect("a packet").family() {
        Family::V4 => "203.0.113.9".parse().unwrap(),
        Family::V6 => "2001:db8:9::9".parse().unwrap(),
    };
    let len = icmp::packet_too_big(sealed, mtu, from, &mut room).expect("a message");
    room[..len].to_vec()
}

#[test]
fn a_path_mtu_is_learned_and_forgotten_again() {
    for (protocol, v6) in PROTOCOLS.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)]) {
        let mut pair = Pair::new(|config| {
            speak(protocol, config);
            if v6 {
                over_v6(config);
            }
            config.mtu = Some(1_500);
        });
        let start = Time(5_000_000);
        pair.sealer.advance(start);
        let plain = dont_fragment(ipv4(17, &[1; 1_380]));
        let sealed = pair.seal(&plain).expect("fits as yet");
        assert_eq!(pair.sealer.learn_path_mtu(&message_about(&sealed, 1_380)), Some(pair.session));
        assert_eq!(pair.sealer.path_mtu(pair.session), Some(1_380));
        assert_eq!(pair.seal(&plain), Err(DropReason::OutPathMtu));
        // Never higher by a message, and only once.
        for mtu in [1_380, 1_400, 9_000] {
            assert_eq!(pair.sealer.learn_path_mtu(&message_about(&sealed, mtu)), None);
        }
        assert_eq!(pair.sealer.path_mtu(pair.session), Some(1_380));
        // RFC 4301 8.2.2: it ages.
        pair.sealer.advance(Time(start.0 + LEARNED_FOR.0 - 1));
        assert_eq!(pair.sealer.path_mtu(pair.session), Some(1_380));
        pair.sealer.advance(start + LEARNED_FOR);
        assert_eq!(pair.sealer.path_mtu(pair.session), Some(1_500));
        assert!(pair.seal(&plain).is_ok());
    }
}

#[test]
fn a_forged_message_teaches_nothing() {
    for protocol in PROTOCOLS {
        let mut pair = limited(protocol, 1_500);
        let sealed = pair.seal(&ipv4(17, &[1; 1_000])).expect("sealed");
        let mut forge = |at: usize, to: u8| {
            let mut quoted = sealed.clone();
            quoted[at] = to;
            pair.sealer.learn_path_mtu(&message_about(&quoted, 1_000))
        };
        assert_eq!(forge(14, 9), None, "another source");
        assert_eq!(forge(19, 9), None, "another destination");
        assert_eq!(forge(9, 6), None, "another protocol");
        let numbers = if protocol == Protocol::Ah { 24 } else { 20 };
        assert_eq!(
            forge(9, if protocol == Protocol::Ah { 50 } else { 51 }),
            None,
            "the other protocol of IPsec"
        );
        assert_eq!(forge(numbers + 2, 0x77), None, "another SPI");
        assert_eq!(forge(numbers + 7, 2), None, "a number that is still to be sent");
        assert_eq!(forge(numbers + 4, 0xff), None, "a number far away");
        // The smallest there is, whatever the message says.
        assert_eq!(forge(numbers + 7, 1), Some(pair.session));
        assert_eq!(pair.sealer.path_mtu(pair.session), Some(1_000));
        assert_eq!(pair.sealer.learn_path_mtu(&message_about(&sealed, 68)), Some(pair.session));
        assert_eq!(pair.sealer.path_mtu(pair.session), Some(576));
        assert_eq!(pair.sealer.learn_path_mtu(&message_about(&sealed, 68)), None);
        // RFC 8201 4: less than 1,280 bytes are not believed.
        let mut v6 = Pair::new(|config| {
            speak(protocol, config);
            over_v6(config);
            config.mtu = Some(1_500);
        });
        let sealed = v6.seal(&ipv4(17, &[1; 1_000])).expect("sealed");
        let mut message = message_about(&sealed, 1_280);
        // The MTU's low word is one less, so the checksum is one more.
        message[46..48].copy_from_slice(&1_279u16.to_be_bytes());
        let checksum = u16::from_be_bytes([message[42], message[43]]) + 1;
        message[42..44].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(TooBig::parse(&message).map(|message| message.mtu), Some(1_279));
        assert_eq!(v6.sealer.learn_path_mtu(&message), None);
    }
}

proptest! {
    /// Whatever comes: no panic, no fragment longer than the path takes, and no answer longer than it may be.
    #[test]
    fn hostile_packets_and_messages(
        kind in 0usize..4, at in 0usize..90, bytes in prop::collection::vec(any::<u8>(), 0..12), cut in 0usize..2_500,
        v6 in any::<bool>(), transport in any::<bool>(), ah in any::<bool>(),
    ) {
        let mut pair = Pair::new(|config| {
            speak(PROTOCOLS[usize::from(ah)], config);
            if v6 {
                over_v6(config);
            }
            (config.mtu, config.mode) = (Some(1_300), if transport { Mode::Transport } else { Mode::Tunnel });
        });
        let sealed = pair.seal(&ipv4(17, &[1; 1_000])).expect("sealed");
        let mut packet = match kind {
            0 => ipv4(17, &[7; 2_000]),
            1 => ipv6(17, &[7; 2_000]),
            2 => ipv6(44, &[7; 1_400]),
            _ => message_about(&if transport { ipv4(if ah { 51 } else { 50 }, &sealed[20..]) } else { sealed }, 1_290),
        };
        let end = packet.len().min(at + bytes.len());
        let from = at.min(end);
        packet[from..end].copy_from_slice(&bytes[..end - from]);
        packet.truncate(cut);
        let _ = pair.sealer.learn_path_mtu(&packet);
        let mut room = [0; icmp::MAX_V6];
        for from in ["10.1.0.254", "2001:db8:1::fe"] {
            let _ = pair.sealer.icmp_error(&packet, from.parse().expect("an address"), &mut room);
        }
        if let Some(fragments) = pair.sealer.divide(&packet) {
            for piece in pieces(fragments) {
                let sealed = pair.seal(&piece);
                prop_assert!(sealed.is_ok_and(|sealed| sealed.len() <= 1_300));
            }
        }
        if let Some(fragments) = pair.sealer.divide_sealed(pair.session, &packet) {
            prop_assert!(pieces(fragments).iter().all(|piece| piece.len() <= 1_300));
        }
    }
}

/// Anybody can send messages: those that match no SA must not use up the rate of those that do.
#[test]
fn forged_messages_take_nothing_from_true_ones() {
    for protocol in PROTOCOLS {
        let mut pair = limited(protocol, 1_500);
        let sealed = pair.seal(&ipv4(17, &[1; 1_400])).expect("sealed");
        let mut forged = sealed.clone();
        forged[if protocol == Protocol::Ah { 26 } else { 22 }] ^= 0x77;
        for _ in 0..1_000 {
            assert_eq!(pair.sealer.learn_path_mtu(&message_about(&forged, 1_000)), None);
        }
        let counters = PathMtuCounters { unmatched: 1_000, limited: 0 };
        assert_eq!(pair.sealer.path_mtu_counters(), counters);
        assert_eq!(pair.sealer.learn_path_mtu(&message_about(&sealed, 1_400)), Some(pair.session));
        // Those that match have their rate: 50 at once, of which one has been taken.
        for mtu in (1_300..1_400).rev() {
            let _ = pair.sealer.learn_path_mtu(&message_about(&sealed, mtu));
        }
        assert_eq!(pair.sealer.path_mtu(pair.session), Some(1_400 - 49));
        assert_eq!(pair.sealer.path_mtu_counters(), PathMtuCounters { limited: 51, ..counters });
    }
}

/// RFC 1191 5, 7.1: a router of old says nothing about its MTU, and the next step down is tried.
#[test]
fn an_mtu_that_is_not_said_is_the_next_step_down() {
    for protocol in PROTOCOLS {
        let mut pair = limited(protocol, 1_500);
        let sealed = pair.seal(&ipv4(17, &[1; 1_400])).expect("sealed");
        assert_eq!(pair.sealer.learn_path_mtu(&message_about(&sealed, 0)), Some(pair.session));
        assert_eq!(pair.sealer.path_mtu(pair.session), Some(1_006));
    }
}

/// RFC 4443 2.4 f, RFC 1812 4.3.2.8.
#[test]
fn answers_have_a_rate() {
    for protocol in PROTOCOLS {
        let mut pair = limited(protocol, 1_500);
        let (plain, mut room) = (dont_fragment(ipv4(17, &[7; 1_480])), [0; 600]);
        let mut answers = |now: u64| {
            pair.sealer.advance(Time(now));
            let from = "10.1.0.254".parse().unwrap();
            (0..200).filter(|_| pair.sealer.icmp_error(&plain, from, &mut room).is_some()).count()
        };
        let millisecond = Duration::from_millis(1).0;
        assert_eq!(answers(0), 50);
        assert_eq!(answers(millisecond - 1), 0);
        assert_eq!(answers(millisecond), 1);
        assert_eq!(answers(11 * millisecond), 10);
        assert_eq!(answers(1_000_000 * millisecond), 50);
    }
}

#[test]
fn settings_of_lengths_that_cannot_be() {
    let config = |change: fn(&mut SaConfig)| {
        let mut config = None;
        Pair::new(|c| config = Some(c.clone()));
        let mut config = config.expect("called");
        change(&mut config);
        config.check()
    };
    assert_eq!(
        config(|config| config.mtu = Some(575)),
        Err(SaConfigError::MtuTooSmall { mtu: 575, least: 576 })
    );
    assert_eq!(
        config(|config| {
            over_v6(config);
            config.mtu = Some(1_279);
        }),
        Err(SaConfigError::MtuTooSmall { mtu: 1_279, least: 1_280 })
    );
    assert_eq!(config(|config| config.tfc = Tfc::Mtu), Err(SaConfigError::TfcWithoutMtu));
    assert_eq!(
        config(|config| (config.tfc, config.mode) = (Tfc::PadTo(100), Mode::Transport)),
        Err(SaConfigError::TfcInTransport)
    );
    assert_eq!(config(|config| (config.tfc, config.mtu) = (Tfc::Mtu, Some(576))), Ok(()));
    assert_eq!(
        config(|config| {
            speak(Protocol::Ah, config);
            config.tfc = Tfc::PadTo(100);
        }),
        Err(SaConfigError::TfcInAh)
    );
}

#[test]
fn tfc_padding_hides_the_length_and_comes_off_again() {
    for v6_outside in [false, true] {
        for (tfc, mtu) in [(Tfc::PadTo(700), None), (Tfc::PadTo(9_000), Some(1_400)), (Tfc::Mtu, Some(1_400))]
        {
            let mut pair = Pair::new(|config| {
                if v6_outside {
                    over_v6(config);
                }
                (config.tfc, config.mtu) = (tfc, mtu);
            });
            let mut lens = Vec::new();
            for len in [0, 1, 2, 3, 100, 555, 640] {
                for plain in [ipv4(17, &vec![9; len]), ipv6(17, &vec![9; len])] {
                    let sealed = pair.seal(&plain).expect("sealed");
                    lens.push(sealed.len());
                    assert_eq!(pair.open(&sealed), Ok(plain));
                }
            }
            assert!(lens.iter().all(|&len| len == lens[0]), "{lens:?}");
            assert!(mtu.is_none_or(|mtu| lens[0] <= mtu.into() && lens[0] + 4 > mtu.into()), "{lens:?}");
            // Longer packets are as long as they are.
            if mtu.is_none() {
                let plain = ipv4(17, &[9; 800]);
                let sealed = pair.seal(&plain).expect("sealed");
                assert!(sealed.len() > lens[0]);
                assert_eq!(pair.open(&sealed), Ok(plain));
            }
        }
    }
}

/// What stood in the buffer before must not go out as padding.
#[test]
fn tfc_padding_is_zeros() {
    let mut pair = Pair::new(|config| config.tfc = Tfc::PadTo(600));
    let plain = ipv4(17, &[9; 10]);
    let mut packet = Packet::with_capacity(2_048);
    packet.buffer_mut().fill(0xdd);
    assert!(packet.fill(&plain));
    let mut spec = JobSpec::default();
    let _ = pair.sealer.prepare(Direction::Seal, &mut packet, &mut spec).expect("prepared");
    let text = &packet.buffer()[spec.cipher.range()];
    assert!(text.starts_with(&plain) && text[30..600].iter().all(|&byte| byte == 0));
    assert_eq!(text[600..], [1, 2, 2, 4]);
}

#[test]
fn dummy_packets_look_like_others_and_are_dropped() {
    for mode in [Mode::Tunnel, Mode::Transport] {
        let mut pair = Pair::new(|config| config.mode = mode);
        for len in [0, 1, 100, 1_400] {
            let (mut packet, mut spec) = (buffer(&[0xdd; 50]), JobSpec::default());
            pair.sealer.dummy(pair.session, len, &mut packet, &mut spec).expect("prepared");
            let sealed = pair.finish_seal(packet, &spec);
            assert_eq!(pair.open(&sealed), Err(DropReason::InDummy));
            assert_eq!(
                pair.open(&sealed),
                Err(DropReason::InStateSeqError),
                "it had a number like any other"
            );
        }
    }
    let mut pair = Pair::new(|config| config.tfc = Tfc::PadTo(500));
    let (mut packet, mut spec) = (buffer(&[]), JobSpec::default());
    pair.sealer.dummy(pair.session, 10, &mut packet, &mut spec).expect("prepared");
    let dummy = pair.finish_seal(packet, &spec);
    let real = pair.seal(&dont_fragment(ipv4(17, &[1; 30]))).expect("sealed");
    // All but identification-free length, number, IV and text: nothing tells one from the other.
    assert_eq!(dummy[..10], real[..10]);
    assert_eq!(dummy.len(), real.len());
    let (mut packet, mut spec) = (buffer(&[]), JobSpec::default());
    assert_eq!(
        pair.sealer.dummy(pair.session, 9_000, &mut packet, &mut spec),
        Err(DropReason::TooLong),
        "no room"
    );
}
