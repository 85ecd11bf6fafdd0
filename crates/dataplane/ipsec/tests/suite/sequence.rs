//! Sequence numbers on their whole way, a test for each thing that can go wrong with them: with a processor that
//! finds out what was changed, so that a number told wrong fails. ESP and AH alike.

use crate::pair::{PROTOCOLS, Pair, ipv4, speak};
use forebay_crypto::SessionId;
use forebay_ipsec::{DropReason, GUESSES, Mode, Protocol, TRIGGER};

const SUITES: [(Protocol, &str); 5] = [
    (Protocol::Esp, "aes128gcm16"),
    (Protocol::Esp, "aes128-sha256"),
    (Protocol::Esp, "aes128ctr-sha512"),
    (Protocol::Ah, "sha1"),
    (Protocol::Ah, "aes128gmac"),
];

fn plain() -> Vec<u8> {
    ipv4(17, &[5; 30])
}

fn pair(protocol: Protocol, esn: bool, window: u32) -> Pair {
    Pair::new(|config| {
        speak(protocol, config);
        (config.esn, config.replay_window) = (esn, window);
    })
}

/// Where the number stands in a packet with an outer header of 20 bytes.
fn number_at(protocol: Protocol) -> usize {
    if protocol == Protocol::Ah { 28 } else { 24 }
}

fn with_and_without_esn() -> impl Iterator<Item = (Protocol, bool)> {
    PROTOCOLS.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)])
}

/// A sealed packet with this number.
fn numbered(pair: &mut Pair, number: u64) -> Vec<u8> {
    pair.sealer.continue_after(pair.session, number - 1);
    pair.seal(&plain()).expect("sealed")
}

#[test]
fn the_first_packet_has_number_one() {
    for (protocol, suite) in SUITES {
        for esn in [false, true] {
            for mode in [Mode::Tunnel, Mode::Transport] {
                let mut pair = Pair::new(|config| {
                    (config.suite, config.esn, config.mode) = (suite.parse().expect("a proposal"), esn, mode);
                    config.protocol = protocol;
                });
                let sealed = pair.seal(&plain()).expect("sealed");
                assert_eq!(sealed[number_at(protocol)..][..4], [0, 0, 0, 1]);
                assert_eq!(
                    pair.open(&sealed).map(|opened| opened[20..].to_vec()),
                    Ok(plain()[20..].to_vec())
                );
            }
        }
    }
}

#[test]
fn sequence_0_is_refused() {
    for (protocol, esn) in with_and_without_esn() {
        for window in [0, 32, 64] {
            let mut pair = pair(protocol, esn, window);
            let mut sealed = pair.seal(&plain()).expect("sealed");
            sealed[number_at(protocol)..][..4].fill(0);
            assert_eq!(pair.open(&sealed), Err(DropReason::InStateSeqError));
        }
    }
}

#[test]
fn duplicate_inside_one_burst() {
    for (protocol, esn) in with_and_without_esn() {
        let mut pair = pair(protocol, esn, 64);
        let one = numbered(&mut pair, 7);
        let other = numbered(&mut pair, 8);
        let outcomes = pair.open_burst(&[one.clone(), one.clone(), other.clone(), one, other]);
        let passed: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
        assert_eq!(passed, [true, false, true, false, false]);
        let refused = outcomes.into_iter().filter_map(Result::err).collect::<Vec<_>>();
        assert_eq!(refused, [DropReason::InStateSeqError; 3]);
    }
}

#[test]
fn gap_inside_the_window_is_filled_and_below_it_is_lost() {
    for window in [32, 64, 65, 1_000, 65_536] {
        for (protocol, esn) in with_and_without_esn() {
            let mut pair = pair(protocol, esn, window);
            let window = u64::from(window);
            let top = (1 << 20) + 3;
            let sealed = numbered(&mut pair, top);
            assert!(pair.open(&sealed).is_ok());
            for inside in [top - 1, top - window / 2, top - window + 1] {
                let sealed = numbered(&mut pair, inside);
                assert!(pair.open(&sealed).is_ok(), "{inside} with a window of {window}");
                assert_eq!(pair.open(&sealed), Err(DropReason::InStateSeqError));
            }
            for below in [top - window, top - window - 1, 1] {
                let sealed = numbered(&mut pair, below);
                // With ESN it is taken for a number 2^32 ahead, which the ICV finds out.
                let reason = if esn { DropReason::InStateProtoError } else { DropReason::InStateSeqError };
                assert_eq!(pair.open(&sealed), Err(reason), "{below} with a window of {window}");
            }
        }
    }
}

#[test]
fn a_bad_icv_does_not_move_the_window() {
    for (protocol, esn) in with_and_without_esn() {
        let mut pair = pair(protocol, esn, 64);
        let (low, high) = (numbered(&mut pair, 100), numbered(&mut pair, 90_000));
        let mut forged = high.clone();
        *forged.last_mut().expect("bytes") ^= 1;
        assert_eq!(pair.open(&forged), Err(DropReason::InStateProtoError));
        assert!(pair.open(&low).is_ok(), "the window is where it was");
        assert!(pair.open(&high).is_ok(), "the number is not used up");
    }
}

#[test]
fn no_wrap_without_esn() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol, false, 64);
        let last = numbered(&mut pair, u32::MAX.into());
        assert_eq!(last[number_at(protocol)..][..4], [0xff; 4]);
        assert!(pair.open(&last).is_ok());
        for _ in 0..3 {
            assert_eq!(
                pair.seal(&plain()),
                Err(DropReason::OutStateSeqError),
                "fails closed (RFC 4303 3.3.3)"
            );
        }
    }
}

#[test]
fn wrap_of_the_low_half_with_esn() {
    for (protocol, suite) in SUITES {
        let mut pair = Pair::new(|config| {
            (config.suite, config.esn) = (suite.parse().expect("a proposal"), true);
            config.protocol = protocol;
        });
        let start = (1 << 32) - 40;
        pair.sealer.continue_after(pair.session, start);
        pair.opener.continue_after(pair.session, start);
        let sealed: Vec<Vec<u8>> = (0..80).map(|_| pair.seal(&plain()).expect("sealed")).collect();
        // Backwards in eights: in and out of the window's two halves.
        for eight in sealed.chunks(8) {
            for packet in eight.iter().rev() {
                assert_eq!(pair.open(packet), Ok(plain()));
            }
        }
        for packet in &sealed {
            assert!(pair.open(packet).is_err());
        }
    }
}

#[test]
fn jumps_of_more_than_2_to_the_30_and_31() {
    for jump in [(1 << 30) + 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) - 65] {
        for (protocol, esn) in with_and_without_esn() {
            let mut pair = pair(protocol, esn, 64);
            let sealed = numbered(&mut pair, 1_000);
            assert!(pair.open(&sealed).is_ok());
            if !esn && 1_000 + jump > u64::from(u32::MAX) {
                continue;
            }
            let far = numbered(&mut pair, 1_000 + jump);
            assert_eq!(pair.open(&far), Ok(plain()), "{jump:#x} ahead, ESN {esn}");
            let back = numbered(&mut pair, 1_001);
            assert!(pair.open(&back).is_err(), "{jump:#x} back, ESN {esn}");
            let next = numbered(&mut pair, 1_000 + jump + 1);
            assert_eq!(pair.open(&next), Ok(plain()));
        }
    }
}

/// RFC 4303 A3: so many packets are lost that the high half is told wrong from then on.
#[test]
fn synchronisation_lost_and_found_again() {
    for protocol in PROTOCOLS {
        for ahead in 1..=u64::from(GUESSES) {
            let mut pair = pair(protocol, true, 64);
            let sealed = numbered(&mut pair, 1_000);
            assert!(pair.open(&sealed).is_ok());
            // `ahead` high halves more than the receiver tells by itself.
            pair.sealer.continue_after(pair.session, 2_000 + (ahead << 32));
            let mut lost = 0;
            loop {
                let sealed = pair.seal(&plain()).expect("sealed");
                match pair.open(&sealed) {
                    Ok(opened) => break assert_eq!(opened, plain()),
                    Err(reason) => assert_eq!(reason, DropReason::InStateProtoError),
                }
                lost += 1;
                assert!(lost < 10_000, "{ahead} ahead");
            }
            // A row of failures for each guess; one that was wrong is the first of the next row.
            assert_eq!(lost, u64::from(TRIGGER) * ahead);
            for _ in 0..100 {
                let sealed = pair.seal(&plain()).expect("sealed");
                assert_eq!(pair.open(&sealed), Ok(plain()), "all is well again");
            }
        }
    }
}

/// In the last subspace there is none ahead to guess.
#[test]
fn guesses_end_with_the_numbers() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol, true, 64);
        let start = u64::MAX - 1_000;
        pair.opener.continue_after(pair.session, start);
        pair.sealer.continue_after(pair.session, start);
        let sealed = pair.seal(&plain()).expect("sealed");
        let mut forged = sealed.clone();
        *forged.last_mut().expect("bytes") ^= 1;
        for _ in 0..3 * TRIGGER {
            assert_eq!(pair.open(&forged), Err(DropReason::InStateProtoError));
        }
        assert_eq!(pair.open(&sealed), Ok(plain()));
    }
}

/// The guesses cost a forger as many packets as before for nothing, and no good packet while any comes between.
#[test]
fn forged_packets_do_not_unsettle_a_receiver() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol, true, 64);
        let mut forged = pair.seal(&plain()).expect("sealed");
        *forged.last_mut().expect("bytes") ^= 1;
        for _ in 0..50 {
            for n in 0..TRIGGER as u8 - 1 {
                forged[number_at(protocol) + 3] = n.max(2);
                assert!(pair.open(&forged).is_err());
            }
            let sealed = pair.seal(&plain()).expect("sealed");
            assert_eq!(pair.open(&sealed), Ok(plain()));
        }
        // Without any good packet between them they spoil one, and only one.
        for _ in 0..TRIGGER {
            forged[number_at(protocol) + 3] = 200;
            assert_eq!(pair.open(&forged), Err(DropReason::InStateProtoError));
        }
        let spoilt = (0..10)
            .filter(|_| {
                let sealed = pair.seal(&plain()).expect("sealed");
                pair.open(&sealed).is_err()
            })
            .count();
        assert_eq!(spoilt, 1);
        assert_eq!(pair.session, SessionId(0));
    }
}
