//! Sequence numbers that are granted block by block, their end, and what a day of them is like.

use std::collections::HashSet;

use crate::pair::{PROTOCOLS, Pair, buffer, ipv4, speak};
use forebay_crypto::{Direction, Job, JobSpec};
use forebay_ipsec::{DropReason, EventKind, Protocol, Stop};

fn plain() -> Vec<u8> {
    ipv4(17, &[5; 30])
}

fn pair(protocol: Protocol, esn: bool) -> Pair {
    Pair::new(|config| {
        speak(protocol, config);
        (config.esn, config.replay_window) = (esn, 128);
    })
}

fn told(pair: &mut Pair) -> Vec<EventKind> {
    pair.sealer.events().map(|event| event.kind).collect()
}

/// Prepares up to `count` packets in bursts; how many were, and why not the next.
fn prepare(pair: &mut Pair, count: usize, burst: usize) -> (usize, Option<DropReason>) {
    let mut prepared = 0;
    while prepared < count {
        let burst = burst.min(count - prepared);
        let mut jobs: Vec<Job> =
            (0..burst).map(|n| Job::new(buffer(&plain()), JobSpec::default(), n as u64)).collect();
        match pair.sealer.prepare_burst(Direction::Seal, &mut jobs) {
            Ok(()) => prepared += burst,
            Err((place, Stop::Drop(reason))) => return (prepared + place, Some(reason)),
            Err((_, stop)) => panic!("{stop:?}"),
        }
    }
    (prepared, None)
}

fn kinds() -> impl Iterator<Item = (Protocol, bool)> {
    PROTOCOLS.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)])
}

#[test]
fn no_number_is_used_beyond_what_was_granted() {
    for (protocol, esn) in kinds() {
        for (start, burst) in [(0, 1), (0, 7), (1 << 31, 32), ((1 << 32) - 500, 5)] {
            let mut pair = pair(protocol, esn);
            pair.sealer.continue_after(pair.session, start);
            let mut end = start;
            for grant in [10_u64, 1, 100, 33] {
                end += grant;
                pair.sealer.grant(pair.session, end);
                let refused = Some(DropReason::OutStateSeqError);
                assert_eq!(prepare(&mut pair, 1_000, burst), (grant as usize, refused));
                assert_eq!(prepare(&mut pair, 1, 1), (0, refused), "and none later");
                assert_eq!(pair.sealer.sequence(pair.session), Some(end));
                let wants = told(&mut pair).into_iter().filter(|kind| *kind == EventKind::SequenceWanted);
                assert_eq!(wants.count(), 1, "once");
            }
        }
    }
}

#[test]
fn more_is_wanted_half_way_and_nothing_stops_if_it_comes() {
    for (protocol, esn) in kinds() {
        let mut pair = pair(protocol, esn);
        let mut end = 0;
        for _ in 0..50 {
            end += 64;
            pair.sealer.grant(pair.session, end);
            assert_eq!(prepare(&mut pair, 31, 8), (31, None));
            if end == 64 {
                assert_eq!(told(&mut pair), [], "not before half of it");
            }
            assert_eq!(prepare(&mut pair, 33, 8), (33, None));
            assert_eq!(told(&mut pair), [EventKind::SequenceWanted]);
        }
    }
}

/// What is taken back is not used, and what goes on goes on where it was.
#[test]
fn a_grant_may_be_taken_back() {
    for (protocol, esn) in kinds() {
        let mut pair = pair(protocol, esn);
        pair.sealer.grant(pair.session, 100);
        assert_eq!(prepare(&mut pair, 10, 4), (10, None));
        pair.sealer.grant(pair.session, 10);
        assert_eq!(prepare(&mut pair, 10, 4), (0, Some(DropReason::OutStateSeqError)));
        pair.sealer.grant(pair.session, 0);
        assert_eq!(prepare(&mut pair, 10, 4), (0, Some(DropReason::OutStateSeqError)));
        pair.sealer.grant(pair.session, 12);
        assert_eq!(prepare(&mut pair, 10, 4), (2, Some(DropReason::OutStateSeqError)));
    }
}

#[test]
fn the_end_of_all_numbers_is_told_once_and_never_passed() {
    for (protocol, esn) in kinds() {
        let end = if esn { u64::MAX } else { u32::MAX.into() };
        for granted in [None, Some(u64::MAX), Some(end)] {
            let mut pair = pair(protocol, esn);
            pair.sealer.continue_after(pair.session, end - 50);
            granted.into_iter().for_each(|last| pair.sealer.grant(pair.session, last));
            let refused = Some(DropReason::OutStateSeqError);
            assert_eq!(prepare(&mut pair, 1_000, 7), (50, refused));
            for _ in 0..100 {
                assert_eq!(prepare(&mut pair, 10, 3), (0, refused));
                // No numbers can be granted beyond the last.
                pair.sealer.grant(pair.session, u64::MAX);
            }
            assert_eq!(told(&mut pair), [EventKind::SequenceLow, EventKind::SequenceEnd]);
            assert_eq!(pair.sealer.sequence(pair.session), Some(end));
        }
    }
}

/// A generator that anyone can work out (Numerical Recipes' linear congruential one).
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

/// Ten million packets a second wrap the 32 bits on the wire 201 times a day. Each time some hundred packets around
/// the wrap are lost, swapped and repeated; in between, the receiver sees one packet in 2^30. It takes each number
/// once, and knows the high half by itself.
#[test]
fn a_day_of_wraps_with_loss_disorder_and_repetition() {
    const WRAPS: u64 = 86_400 * 10_000_000 / (1 << 32);
    for protocol in PROTOCOLS {
        let mut random = Lcg(protocol as u64);
        let mut pair = pair(protocol, true);
        let mut delivered = HashSet::new();
        for wrap in 1..=WRAPS {
            for quarter in 0..4 {
                let number = ((wrap - 1) << 32) + (quarter << 30) + 1_000;
                pair.sealer.continue_after(pair.session, number - 1);
                let sealed = pair.seal(&plain()).expect("sealed");
                assert_eq!(pair.open(&sealed), Ok(plain()), "{number:#x}");
            }
            pair.sealer.continue_after(pair.session, (wrap << 32) - 60);
            let mut sealed: Vec<(u64, Vec<u8>)> = (0..120)
                .map(|n| ((wrap << 32) - 59 + n, pair.seal(&plain()).expect("sealed")))
                .filter(|_| random.below(10) > 0)
                .collect();
            // None is moved by more than the window of 128.
            for from in (0..sealed.len()).step_by(40) {
                let to = (from + 40).min(sealed.len());
                for place in from..to {
                    let other = from + random.below(to - from);
                    sealed.swap(place, other);
                }
            }
            for place in 0..20 {
                let again = sealed[place * 4].clone();
                sealed.insert(place * 4 + 1 + random.below(20), again);
            }
            for (number, packet) in &sealed {
                let opened = pair.open(packet);
                match delivered.insert(*number) {
                    true => assert_eq!(opened, Ok(plain()), "{number:#x}"),
                    false => assert_eq!(opened, Err(DropReason::InStateSeqError), "{number:#x} again"),
                }
            }
        }
        assert!(delivered.len() as u64 > WRAPS * 90);
        assert_eq!(pair.opener.sequence(pair.session).map(|number| number >> 32), Some(WRAPS));
    }
}
