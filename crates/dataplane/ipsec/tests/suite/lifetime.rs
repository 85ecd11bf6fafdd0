//! Lifetimes: each limit to the packet, the byte and the picosecond, packet by packet and in runs, both ways,
//! of ESP and of AH.

use crate::pair::{PROTOCOLS, Pair, buffer, ipv4, speak, work};
use forebay_crypto::{Direction, Job, JobSpec, SessionId};
use forebay_ipsec::{
    DropReason, Event, EventKind, Ipsec, IvRange, Lifetime, LifetimeError, Limits, Lived, Protocol, SaConfig,
    SaConfigError, Spi, Stop,
};
use forebay_time::{Duration, Time};

/// Bytes of payload in every packet that is counted.
const LEN: usize = 20;

/// A kind of SA, and how many bytes it works on for a packet with `LEN` bytes of payload.
#[derive(Clone, Copy, Debug)]
struct Kind {
    protocol: Protocol,
    esn: bool,
    text: u64,
}

const KINDS: [Kind; 3] = [
    // 40 bytes of packet, two of padding, two of trailer are enciphered.
    Kind { protocol: Protocol::Esp, esn: false, text: 44 },
    // 20 bytes of outer header, 28 of AH and the packet are authenticated, with ESN four more.
    Kind { protocol: Protocol::Ah, esn: false, text: 88 },
    Kind { protocol: Protocol::Ah, esn: true, text: 92 },
];

impl Kind {
    fn pair(self, change: impl FnOnce(&mut Lifetime)) -> Pair {
        Pair::new(|config| {
            speak(self.protocol, config);
            config.esn = self.esn;
            change(&mut config.lifetime);
        })
    }
}

/// Seals up to `count` packets, in bursts of `burst`, and tells where it ends and what was told before that.
fn seal_all(pair: &mut Pair, count: usize, burst: usize) -> (usize, Vec<Vec<EventKind>>) {
    let (mut sealed, mut told) = (0, Vec::new());
    while sealed < count {
        let burst = burst.min(count - sealed);
        let mut jobs: Vec<Job> = (0..burst)
            .map(|n| Job::new(buffer(&ipv4(17, &[1; LEN])), JobSpec::default(), n as u64))
            .collect();
        let outcome = pair.sealer.prepare_burst(Direction::Seal, &mut jobs);
        let kinds: Vec<EventKind> = pair.sealer.events().map(|event| event.kind).collect();
        match outcome {
            Ok(()) => {
                sealed += burst;
                told.push(kinds);
            }
            Err((place, reason)) => {
                assert_eq!(reason, Stop::Drop(DropReason::OutStateExpired));
                told.push(kinds);
                return (sealed + place, told);
            }
        }
    }
    (sealed, told)
}

#[test]
fn a_hard_limit_of_packets_lets_that_many_pass() {
    for kind in KINDS {
        for limit in [0, 1, 2, 7, 40] {
            for burst in [1, 3, 32] {
                let mut pair = kind.pair(|lifetime| lifetime.hard.packets = Some(limit));
                let (sealed, told) = seal_all(&mut pair, 100, burst);
                assert_eq!(sealed as u64, limit);
                assert_eq!(told.concat(), [EventKind::Hard], "once");
                assert_eq!(pair.seal(&ipv4(17, &[1; LEN])), Err(DropReason::OutStateExpired));
                assert_eq!(pair.sealer.events().count(), 0);
            }
        }
    }
}

#[test]
fn a_hard_limit_of_bytes_counts_what_is_worked_on() {
    for kind in KINDS {
        for (limit, packets) in [
            (0, 0),
            (kind.text - 1, 0),
            (kind.text, 1),
            (2 * kind.text - 1, 1),
            (2 * kind.text, 2),
            (22 * kind.text + 32, 22),
        ] {
            for burst in [1, 3, 32] {
                let mut pair = kind.pair(|lifetime| lifetime.hard.bytes = Some(limit));
                assert_eq!(seal_all(&mut pair, 100, burst).0, packets, "{limit} bytes");
            }
        }
        // Once it has ended, a packet that would still go in does not.
        let mut pair = kind.pair(|lifetime| lifetime.hard.bytes = Some(100));
        assert!(pair.seal(&ipv4(17, &[1; LEN])).is_ok());
        assert_eq!(pair.seal(&ipv4(17, &[1; 200])), Err(DropReason::OutStateExpired));
        assert_eq!(pair.seal(&ipv4(17, &[1; 2])), Err(DropReason::OutStateExpired));
    }
}

/// A long way to the limit is taken in runs, and the last of it packet by packet: the same all the same.
#[test]
fn a_limit_far_away_is_as_exact() {
    for kind in KINDS {
        let packets = 6_000;
        let mut pair = kind.pair(|lifetime| {
            lifetime.soft.bytes = Some(4_000 * kind.text);
            lifetime.hard.bytes = Some(packets * kind.text + kind.text - 1);
        });
        let (sealed, told) = seal_all(&mut pair, 7_000, 32);
        assert_eq!(sealed as u64, packets);
        let soft = told.iter().position(|kinds| kinds.contains(&EventKind::Soft));
        // Packet number 4,000 is in the 125th burst.
        assert_eq!(soft, Some(124));
        assert_eq!(told.concat(), [EventKind::Soft, EventKind::Hard]);
    }
}

#[test]
fn a_soft_limit_is_told_once_with_the_packet_that_reaches_it() {
    for kind in KINDS {
        let limits = [
            Limits { packets: Some(5), ..Limits::default() },
            Limits { bytes: Some(5 * kind.text), ..Limits::default() },
            Limits { bytes: Some(4 * kind.text + 1), ..Limits::default() },
            Limits { packets: Some(5), bytes: Some(5 * kind.text), ..Limits::default() },
        ];
        for soft in limits {
            let mut pair = kind.pair(|lifetime| lifetime.soft = soft);
            let (sealed, told) = seal_all(&mut pair, 50, 1);
            assert_eq!(sealed, 50);
            let mut expected = vec![vec![]; 50];
            expected[4].push(EventKind::Soft);
            assert_eq!(told, expected, "{soft:?}");
        }
    }
}

#[test]
fn inbound_bytes_and_packets_end_as_exactly() {
    for kind in KINDS {
        let hard = [(Some(6), None), (None, Some(6 * kind.text)), (None, Some(7 * kind.text - 1))];
        for (packets, bytes) in hard {
            for together in [false, true] {
                let mut pair = kind.pair(|_| {});
                let sealed: Vec<Vec<u8>> =
                    (0..9).map(|_| pair.seal(&ipv4(17, &[1; LEN])).expect("sealed")).collect();
                let mut opener = kind.pair(|lifetime| {
                    lifetime.soft.packets = Some(3);
                    (lifetime.hard.packets, lifetime.hard.bytes) = (packets, bytes);
                });
                let outcomes = match together {
                    true => opener.open_burst(&sealed),
                    false => sealed.iter().map(|sealed| opener.open(sealed)).collect(),
                };
                for (n, outcome) in outcomes.iter().enumerate() {
                    let expected =
                        if n < 6 { Ok(ipv4(17, &[1; LEN])) } else { Err(DropReason::InStateExpired) };
                    assert_eq!(*outcome, expected, "packet {n}");
                }
                let kinds: Vec<EventKind> = opener.opener.events().map(|event| event.kind).collect();
                assert_eq!(kinds, [EventKind::Soft, EventKind::Hard]);
            }
        }
    }
}

/// What fails its check costs no lifetime: else a forger could end an SA.
#[test]
fn forged_and_replayed_packets_count_for_nothing() {
    for kind in KINDS {
        let mut pair = kind.pair(|lifetime| lifetime.hard.packets = Some(2));
        let sealed = pair.seal(&ipv4(17, &[1; LEN])).expect("sealed");
        for _ in 0..10 {
            let mut forged = sealed.clone();
            *forged.last_mut().expect("bytes") ^= 1;
            assert_eq!(pair.open(&forged), Err(DropReason::InStateProtoError));
        }
        assert!(pair.open(&sealed).is_ok());
        for _ in 0..10 {
            assert_eq!(pair.open(&sealed), Err(DropReason::InStateSeqError));
        }
        let last = pair.seal(&ipv4(17, &[1; LEN])).expect("the last one");
        assert!(pair.open(&last).is_ok());
    }
}

const SECOND: u64 = Duration::from_millis(1_000).0;

#[test]
fn time_ends_an_sa_though_nothing_passes() {
    for kind in KINDS {
        let mut pair = kind.pair(|lifetime| {
            lifetime.soft.time = Some(Duration(8 * SECOND));
            lifetime.hard.time = Some(Duration(10 * SECOND));
        });
        let plain = ipv4(17, &[1; LEN]);
        let sealed: Vec<_> = (0..2).map(|_| pair.seal(&plain).expect("sealed")).collect();
        let session = pair.session;
        for sad in [&mut pair.sealer, &mut pair.opener] {
            sad.advance(Time(8 * SECOND - 1));
            assert_eq!(sad.events().count(), 0);
            sad.advance(Time(8 * SECOND));
            assert_eq!(sad.events().collect::<Vec<_>>(), [Event { session, kind: EventKind::Soft }]);
            sad.advance(Time(10 * SECOND - 1));
        }
        assert!(pair.open(&sealed[0]).is_ok());
        assert!(pair.seal(&plain).is_ok());
        for sad in [&mut pair.sealer, &mut pair.opener] {
            sad.advance(Time(10 * SECOND));
            assert_eq!(sad.events().collect::<Vec<_>>(), [Event { session, kind: EventKind::Hard }]);
            // Time does not go back.
            sad.advance(Time(SECOND));
        }
        assert_eq!(pair.open(&sealed[1]), Err(DropReason::InStateExpired));
        assert_eq!(pair.seal(&plain), Err(DropReason::OutStateExpired));
    }
}

/// A packet whose job is in flight when the SA ends is dropped with it.
#[test]
fn time_ends_what_is_under_way() {
    for kind in KINDS {
        let mut pair = kind.pair(|lifetime| lifetime.hard.time = Some(Duration(SECOND)));
        let sealed = pair.seal(&ipv4(17, &[1; LEN])).expect("sealed");
        let (mut packet, mut spec) = (buffer(&sealed), JobSpec::default());
        let _ = pair.opener.prepare(Direction::Open, &mut packet, &mut spec).expect("in time");
        let verdict = work(pair.suite, Direction::Open, &mut packet, &spec);
        pair.opener.advance(Time(SECOND));
        assert_eq!(pair.opener.complete(&mut packet, &spec, verdict), Err(DropReason::InStateExpired));
    }
}

#[test]
fn time_of_use_begins_with_the_first_packet() {
    for kind in KINDS {
        let mut pair = kind.pair(|lifetime| {
            lifetime.soft.use_time = Some(Duration(3 * SECOND));
            lifetime.hard.use_time = Some(Duration(5 * SECOND));
        });
        let plain = ipv4(17, &[1; LEN]);
        pair.sealer.advance(Time(1_000 * SECOND));
        assert_eq!(pair.sealer.events().count(), 0, "not in use yet");
        assert!(pair.seal(&plain).is_ok());
        pair.sealer.advance(Time(1_003 * SECOND - 1));
        assert_eq!(pair.sealer.events().count(), 0);
        pair.sealer.advance(Time(1_003 * SECOND));
        assert_eq!(pair.sealer.events().map(|event| event.kind).collect::<Vec<_>>(), [EventKind::Soft]);
        assert!(pair.seal(&plain).is_ok());
        pair.sealer.advance(Time(1_005 * SECOND));
        assert_eq!(pair.seal(&plain), Err(DropReason::OutStateExpired));
    }
}

/// At the end of what a point in time can say, an SA that has an end has come to it: it fails closed.
#[test]
fn the_last_point_in_time_ends_what_ends_in_time() {
    for kind in KINDS {
        let mut limited = kind.pair(|lifetime| lifetime.hard.time = Some(Duration(u64::MAX)));
        let mut unlimited = Pair::new(|_| {});
        for pair in [&mut limited, &mut unlimited] {
            pair.sealer.advance(Time::MAX);
        }
        assert_eq!(limited.seal(&ipv4(17, &[])), Err(DropReason::OutStateExpired));
        assert!(unlimited.seal(&ipv4(17, &[])).is_ok());
    }
}

#[test]
fn low_sequence_numbers_are_told_once() {
    for (protocol, esn) in PROTOCOLS.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)]) {
        let end = if esn { u64::MAX } else { u32::MAX.into() };
        for burst in [1, 4] {
            let mut pair = Kind { protocol, esn, text: 0 }.pair(|_| {});
            // An eighth is left.
            let low = end - end / 8;
            pair.sealer.continue_after(pair.session, low - 9);
            let (_, told) = seal_all(&mut pair, 8, burst);
            assert!(told.concat().is_empty());
            let (_, told) = seal_all(&mut pair, 40, burst);
            assert_eq!(told.concat(), [EventKind::SequenceLow]);
            assert_eq!(told[0], [EventKind::SequenceLow]);
        }
    }
}

/// More SAs end at once than there is room for events: those that wait are told later, each of them.
#[test]
fn no_event_is_lost() {
    let mut sad = Ipsec::default();
    let mut spi = 1_000;
    let [local, remote] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
    for _ in 0..2_500 {
        spi += 1;
        let suite = "aes128gcm16".parse().unwrap();
        let mut config = SaConfig::new("many", Spi::new(spi).unwrap(), suite, local, remote);
        config.lifetime.soft.time = Some(Duration(1));
        config.lifetime.hard.time = Some(Duration(2));
        sad.add_outbound(config, IvRange::for_throwaway_key()).expect("no fault");
    }
    let mut told = vec![Vec::new(); 2_500];
    for now in [1, 1, 1, 2, 2, 2, 2, 3, 4] {
        sad.advance(Time(now));
        for Event { session: SessionId(index), kind } in sad.events() {
            told[index as usize].push(kind);
        }
    }
    assert!(told.iter().all(|kinds| *kinds == [EventKind::Soft, EventKind::Hard]));
}

#[test]
fn a_soft_limit_beyond_the_hard_one_is_a_mistake() {
    let mut seen = None;
    Pair::new(|config| seen = Some(config.clone()));
    let mut config = seen.expect("called");
    config.lifetime.soft.bytes = Some(101);
    config.lifetime.hard.bytes = Some(100);
    assert_eq!(config.check(), Err(SaConfigError::Lifetime(LifetimeError { what: "bytes" })));
    config.lifetime.soft.bytes = Some(100);
    assert_eq!(config.check(), Ok(()));
}

/// A life that is handed on to another SA with the same keys ends where it would have ended in one.
#[test]
fn a_life_goes_on_in_another_sa() {
    let second = |seconds: u64| Time(Duration::from_millis(1_000 * seconds).0);
    for kind in KINDS {
        let minute = Some(Duration::from_millis(60_000));
        // Limits, and how many of 15 packets pass at once, and whether one does 15, 20 and 30 s later.
        let cases = [
            (Limits { packets: Some(30), ..Limits::default() }, 10, [0, 0, 0]),
            (Limits { bytes: Some(100_000), ..Limits::default() }, 15, [1, 1, 1]),
            (Limits { time: minute, ..Limits::default() }, 15, [1, 0, 0]),
            (Limits { use_time: minute, ..Limits::default() }, 15, [1, 1, 0]),
        ];
        for (limits, passing, later) in cases {
            let pair = || kind.pair(|lifetime| lifetime.hard = limits);
            let mut first = pair();
            first.sealer.advance(second(10));
            assert_eq!(seal_all(&mut first, 20, 7).0, 20);
            first.sealer.advance(second(40));
            let lived = first.sealer.lived(first.session).expect("here");
            let (age, used) = (Duration::from_millis(40_000), Some(Duration::from_millis(30_000)));
            assert_eq!(lived, Lived { age, used, packets: 20, bytes: 20 * kind.text });
            // Time is told since the process began, which is another one now.
            let mut next = pair();
            next.sealer.resume_life(next.session, &lived);
            assert_eq!(next.sealer.lived(next.session), Some(lived));
            assert_eq!(seal_all(&mut next, 15, 4).0, passing);
            let passed = [15, 20, 30].map(|seconds| {
                next.sealer.advance(second(seconds));
                seal_all(&mut next, 1, 1).0
            });
            assert_eq!(passed, later, "{limits:?}");
        }
        // Sequence numbers are counted from where the SA is.
        let mut granted = kind.pair(|_| ());
        granted.sealer.resume_life(granted.session, &Lived { packets: 1_000, ..Lived::default() });
        granted.sealer.continue_after(granted.session, 5);
        granted.sealer.grant(granted.session, 9);
        let sealed: Vec<bool> = (0..6).map(|_| granted.seal(&ipv4(17, &[1; LEN])).is_ok()).collect();
        assert_eq!(sealed, [true, true, true, true, false, false]);
    }
}
