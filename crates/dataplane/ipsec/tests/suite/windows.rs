//! Replay windows that outlive their SA: what is carried over, what is noted, and what is refused after a crash. Each for
//! ESP and AH, with extended sequence numbers and without.

use crate::pair::{PROTOCOLS, Pair, ipv4, speak};
use forebay_crypto::SessionId;
use forebay_ipsec::{DropReason, EventKind, MAX_WINDOW, Received, Replay, ReplayWindow};
use proptest::prelude::*;

fn plain() -> Vec<u8> {
    ipv4(17, &[5; 30])
}

/// Ends of an SA in all variants.
fn pairs() -> impl Iterator<Item = Pair> {
    let variants = PROTOCOLS.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)]);
    variants.map(|(protocol, esn)| {
        Pair::new(|config| {
            speak(protocol, config);
            (config.esn, config.replay_window) = (esn, 64);
        })
    })
}

fn sealed(pair: &mut Pair, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| pair.seal(&plain()).expect("sealed")).collect()
}

/// The receiver begins anew, with what is said that it has received.
fn restart(pair: &mut Pair, received: &Received) {
    let config = pair.opener.config(pair.session).expect("there").clone();
    pair.opener = forebay_ipsec::Ipsec::default();
    pair.session = pair.opener.add_inbound(config).expect("no fault");
    pair.opener.restore_window(pair.session, received);
}

fn wanted(pair: &mut Pair) -> Vec<(u64, u64)> {
    let kind = |kind| match kind {
        EventKind::WindowWanted { top, packets } => (top, packets),
        other => panic!("{other:?}"),
    };
    pair.opener.events().map(|event| kind(event.kind)).collect()
}

const REPLAYED: DropReason = DropReason::InStateSeqError;

#[test]
fn what_was_received_stays_refused_and_what_was_not_passes() {
    for mut pair in pairs() {
        let packets = sealed(&mut pair, 100);
        let late = [70, 80, 81];
        for (place, packet) in packets[..90].iter().enumerate() {
            if !late.contains(&place) {
                pair.open(packet).expect("new");
            }
        }
        let received = pair.opener.received(pair.session).expect("a window");
        assert_eq!(received, Received { top: 90, certain: 90, missing: vec![(71, 71), (81, 82)] });
        restart(&mut pair, &received);
        assert_eq!(pair.opener.received(pair.session), Some(received));
        for (place, packet) in packets[30..90].iter().enumerate() {
            assert_eq!(pair.open(packet).is_ok(), late.contains(&(30 + place)), "{place}");
        }
        assert!(packets[90..].iter().all(|packet| pair.open(packet).is_ok()));
        assert_eq!(pair.opener.unsure(pair.session), 0);
        let counters = *pair.opener.counters(pair.session).expect("there");
        assert_eq!((counters.packets, counters.replays, counters.auth_failures), (13, 57, 0));
    }
}

/// After a crash all that is noted is refused; with extended numbers, too, without being taken for what is far ahead.
#[test]
fn after_a_crash_what_may_have_been_received_is_refused_and_counted() {
    for mut pair in pairs() {
        let packets = sealed(&mut pair, 1_000);
        restart(&mut pair, &Received { top: 900, certain: 500, missing: vec![] });
        pair.opener.note_window(pair.session, 900);
        for packet in &packets[437..900] {
            assert_eq!(pair.open(packet), Err(REPLAYED));
        }
        assert_eq!(pair.opener.unsure(pair.session), 400);
        assert_eq!(wanted(&mut pair), []);
        // The first that is certainly new ends the doubt.
        assert!(pair.open(&packets[900]).is_ok());
        assert_eq!(wanted(&mut pair), [(901, 0)]);
        pair.opener.note_window(pair.session, 2_000);
        assert_eq!(pair.open(&packets[899]), Err(REPLAYED));
        assert!(packets[901..].iter().all(|packet| pair.open(packet).is_ok()));
        assert_eq!(pair.opener.unsure(pair.session), 400);
        assert_eq!(pair.opener.received(pair.session), Some(Received::up_to(1_000)));
    }
}

/// In doubt when it ended, in doubt when it goes on.
#[test]
fn doubt_is_carried_over() {
    for mut pair in pairs() {
        let doubtful = Received { top: 90, certain: 50, missing: vec![] };
        restart(&mut pair, &doubtful);
        assert_eq!(pair.opener.received(pair.session), Some(doubtful));
    }
}

#[test]
fn more_is_wanted_half_way_to_the_limit_and_beyond_it_and_never_twice() {
    for mut pair in pairs() {
        pair.opener.note_window(pair.session, 100);
        let packets = sealed(&mut pair, 400);
        let mut said = vec![];
        for (place, burst) in packets[..200].chunks(10).enumerate() {
            assert!(pair.open_burst(burst).iter().all(Result::is_ok));
            said.extend(wanted(&mut pair));
            let (top, limit) = pair.opener.noted(pair.session).expect("noted");
            assert_eq!((top, limit), (10 * (place as u64 + 1), 100));
        }
        assert_eq!(said, [(51, 50), (101, 100)]);
        // It is noted while more come.
        pair.opener.note_window(pair.session, 150);
        pair.open(&packets[200]).expect("new");
        assert_eq!(wanted(&mut pair), [(201, 200)]);
        pair.opener.note_window(pair.session, 1_000);
        assert!(packets[201..].iter().all(|packet| pair.open(packet).is_ok()));
        assert_eq!(wanted(&mut pair), []);
        assert_eq!(pair.opener.admitted(pair.session), 400);
    }
}

#[test]
fn without_a_window_nothing_is_noted() {
    for protocol in PROTOCOLS {
        let mut pair = Pair::new(|config| {
            speak(protocol, config);
            config.replay_window = 0;
        });
        pair.opener.note_window(pair.session, 1);
        let packets = sealed(&mut pair, 10);
        assert!(packets.iter().all(|packet| pair.open(packet).is_ok()));
        assert_eq!((pair.opener.noted(pair.session), pair.opener.received(pair.session)), (None, None));
        assert_eq!(wanted(&mut pair), []);
        assert_eq!(pair.sealer.received(SessionId(0)), None, "outbound");
    }
}

fn settled(window: u32, numbers: &[u64]) -> ReplayWindow {
    let mut replay = ReplayWindow::new(window);
    for &number in numbers {
        replay.settle(number);
    }
    replay
}

/// Gaps beyond the last 1,024 count as received: nothing is accepted twice for that.
#[test]
fn very_many_gaps_are_told_as_far_as_there_is_room() {
    let numbers: Vec<u64> = (1..=10_000).filter(|number| number % 2 == 0).collect();
    let received = settled(MAX_WINDOW, &numbers).received();
    assert_eq!((received.top, received.missing.len()), (10_000, 1_024));
    assert_eq!((received.missing[0], received.missing[1_023]), ((7_953, 7_953), (9_999, 9_999)));
    let mut again = ReplayWindow::new(MAX_WINDOW);
    again.restore(&received);
    assert_eq!((again.check(7_951), again.check(7_953)), (Replay::Duplicate, Replay::New));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A window that is carried over into one of the same width says the same as before of every number, and one of
    /// another width never takes what was received.
    #[test]
    fn a_window_carried_over_is_the_same(
        window in prop::sample::select(vec![1u32, 32, 64, 100, 1_024, 4_096]),
        wider in prop::sample::select(vec![1u32, 64, 200, 8_192]),
        start in prop::sample::select(vec![0u64, 1, 60, 4_000, (1 << 32) - 70, u64::MAX - 300]),
        steps in prop::collection::vec(-120i64..200, 0..200),
    ) {
        let mut sequence = start;
        let mut numbers = vec![start];
        for step in steps {
            sequence = sequence.saturating_add_signed(step);
            numbers.push(sequence);
        }
        let mut before = settled(window, &numbers);
        let received = before.received();
        let (mut after, mut other) = (ReplayWindow::new(window), ReplayWindow::new(wider));
        after.restore(&received);
        other.restore(&received);
        let top = before.top();
        for number in top.saturating_sub(u64::from(window) + 200)..=top.saturating_add(200) {
            prop_assert_eq!(after.check(number), before.check(number), "{} of {}", number, top);
            if before.check(number) != Replay::New {
                prop_assert_ne!(other.check(number), Replay::New, "{} of {}", number, top);
            }
        }
        // And goes on like it.
        for step in [3u64, 1, 70, 2, 5_000, 1] {
            let next = before.top().saturating_add(step);
            prop_assert_eq!(after.settle(next), before.settle(next));
            for number in next.saturating_sub(u64::from(window) + 70)..=next {
                prop_assert_eq!(after.check(number), before.check(number), "{} of {}", number, next);
            }
        }
    }
}
