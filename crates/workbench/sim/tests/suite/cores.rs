//! Cores with turnstiles against formulas.

use forebay_sim::{CoreCost, CorePacket, Cores, CoresError, CoresOutcome, Serial};
use forebay_time::{Duration, Time};

const BURST: usize = 10;
/// 20 + 10 x 3.
const TAKE: u64 = 50;
/// 30 + 10 x 2.
const COMPLETE: u64 = 50;

fn ns(n: u64) -> Duration {
    Duration::from_nanos(n)
}

fn serial(ordered: bool) -> Serial {
    Serial {
        burst: BURST,
        take: ns(20),
        take_packet: ns(3),
        complete: ns(30),
        complete_packet: ns(2),
        ordered,
        shared: false,
    }
}

fn cost(init: u64) -> CoreCost {
    CoreCost { init: ns(init), block: ns(1), ..CoreCost::default() }
}

fn saturated(cores: &Cores, bursts: usize) -> CoresOutcome {
    cores.run(&vec![CorePacket { at: Time::ZERO, sa: 1, blocks: 10 }; bursts * BURST]).unwrap()
}

#[test]
fn one_core_takes_the_sum_of_the_parts() {
    let outcome = saturated(&Cores::equal(1, cost(30), serial(true)).unwrap(), 100);
    assert_eq!(outcome.end, Time::ZERO + ns(100 * (TAKE + 400 + COMPLETE)));
    assert_eq!(outcome.busy, [ns(100 * 500)]);
    assert_eq!((outcome.take_held, outcome.complete_held), (ns(5000), ns(5000)));
    assert_eq!((outcome.take_waited, outcome.complete_waited), (ns(0), ns(0)));
}

/// N bursts in the time of one, until a turnstile is always held.
#[test]
fn many_cores_reach_the_limit_of_cores_or_of_a_turnstile() {
    for (count, init) in (1..=16).flat_map(|count| [(count, 10), (count, 30), (count, 90)]) {
        for ordered in [false, true] {
            let total = (TAKE + COMPLETE) as f64 + 10.0 * (init + 10) as f64;
            for (shared, serial_part) in [(false, TAKE.max(COMPLETE)), (true, TAKE + COMPLETE)] {
                let serial = Serial { shared, ..serial(ordered) };
                let outcome = saturated(&Cores::equal(count, cost(init), serial).unwrap(), 2000);
                let limit = (count as f64 / total).min(1.0 / serial_part as f64) * 1e9 * BURST as f64;
                let share = outcome.packets_per_second() / limit;
                let case = format!("{count} cores, init {init}, {ordered}, {shared}: {share}");
                assert!((0.96..=1.0001).contains(&share), "{case}");
            }
        }
    }
}

/// The first burst computes for longer than the second, which waits for it only where order is kept.
#[test]
fn a_burst_stands_in_the_ring_until_the_head_is_complete() {
    let mut packets = vec![CorePacket { at: Time::ZERO, sa: 1, blocks: 100 }; BURST];
    packets.extend([CorePacket { at: Time::ZERO, sa: 1, blocks: 0 }; BURST]);
    let run = |ordered, packets: &[CorePacket]| {
        let outcome = Cores::equal(2, cost(0), serial(ordered)).unwrap().run(packets).unwrap();
        [outcome.completed[0], outcome.completed[BURST]].map(|at| at.since(Time::ZERO))
    };
    let first = ns(TAKE + 1000 + COMPLETE);
    assert_eq!(run(true, &packets), [first, first + ns(COMPLETE)]);
    assert_eq!(run(false, &packets), [first, ns(2 * TAKE + COMPLETE)]);
    packets[BURST..].iter_mut().for_each(|packet| packet.sa = 2);
    assert_eq!(run(true, &packets), [first, ns(2 * TAKE + COMPLETE)]);
}

/// When the second burst can be taken, the fast core is busy for 450 ns more and would then compute for 400.
#[test]
fn a_slower_core_takes_only_what_it_completes_before_a_faster_one_would() {
    for (slower, takes) in [(60, BURST), (200, 4), (600, 1), (900, 0)] {
        let cores = Cores::unequal(vec![cost(30), cost(slower)], serial(false)).unwrap();
        let outcome = saturated(&cores, 2);
        let taken = outcome.bursts.iter().find(|burst| burst.core == 1);
        assert_eq!(taken.map_or(0, |burst| burst.end - burst.first), takes, "{slower}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    assert_eq!(Cores::equal(0, cost(1), serial(true)).unwrap_err(), CoresError::NoCore);
    let none = Serial { burst: 0, ..serial(true) };
    assert_eq!(Cores::equal(1, cost(1), none).unwrap_err(), CoresError::NoBurst);
    let packet = |at| CorePacket { at: Time::ZERO + ns(at), sa: 0, blocks: 0 };
    let cores = Cores::equal(1, cost(1), serial(true)).unwrap();
    assert_eq!(cores.run(&[packet(2), packet(1)]).unwrap_err(), CoresError::Unsorted(1));
    let endless =
        Cores::equal(1, CoreCost { init: Duration(u64::MAX), ..CoreCost::default() }, serial(true)).unwrap();
    assert_eq!(endless.run(&[packet(1)]).unwrap_err(), CoresError::TooLong);
}

/// A machine of like cores that is stepped nanosecond by nanosecond; when each packet is complete.
fn stepped(
    count: usize,
    cost: [u64; 2],
    s: [u64; 4],
    ordered: bool,
    packets: &[(u64, u32, u64)],
) -> Vec<u64> {
    const IDLE: u8 = 0;
    const TAKES: u8 = 1;
    const COMPUTES: u8 = 2;
    const STANDS: u8 = 3;
    const COMPLETES: u8 = 4;
    let mut done = vec![None; packets.len()];
    // Stage, what is left of it, first packet and the one behind the last.
    let mut cores = vec![(IDLE, 0, 0, 0); count];
    let (mut idle, mut line): (Vec<usize>, Vec<usize>) = ((0..count).collect(), Vec::new());
    let (mut ring, mut next): (Vec<(usize, usize)>, usize) = (Vec::new(), 0);
    let time = |s: [u64; 2], first: usize, end: usize| s[0] + s[1] * (end - first) as u64;
    let free = |done: &[Option<u64>], first: usize, end: usize| {
        let waits = |at: usize| (0..first).any(|old| done[old].is_none() && packets[old].1 == packets[at].1);
        !ordered || !(first..end).any(waits)
    };
    for now in 0.. {
        for (core, doing) in cores.iter_mut().enumerate() {
            let (stage, left, first, end) = *doing;
            if stage == IDLE || stage == STANDS {
                continue;
            }
            doing.1 = left - 1;
            if left > 1 {
                continue;
            }
            if stage == TAKES {
                let sum = packets[first..end].iter().map(|one| cost[0] + cost[1] * one.2).sum();
                *doing = (COMPUTES, sum, first, end);
            } else if stage == COMPUTES {
                doing.0 = STANDS;
                line.push(core);
            } else {
                done[first..end].fill(Some(now));
                ring.sort_unstable();
                if let Some(at) = ring.iter().position(|&(first, end)| free(&done, first, end)) {
                    let (first, end) = ring.remove(at);
                    *doing = (COMPLETES, time([s[2], s[3]], first, end), first, end);
                } else {
                    doing.0 = IDLE;
                    idle.push(core);
                }
            }
        }
        while !line.is_empty() && cores.iter().all(|core| core.0 != COMPLETES) {
            let core = line.remove(0);
            let (_, _, first, end) = cores[core];
            if free(&done, first, end) {
                cores[core] = (COMPLETES, time([s[2], s[3]], first, end), first, end);
            } else {
                ring.push((first, end));
                cores[core].0 = IDLE;
                idle.push(core);
            }
        }
        let end = (next..packets.len()).take(BURST).take_while(|&at| packets[at].0 <= now).last();
        if let Some(last) = end
            && !idle.is_empty()
            && cores.iter().all(|core| core.0 != TAKES)
        {
            cores[idle.remove(0)] = (TAKES, time([s[0], s[1]], next, last + 1), next, last + 1);
            next = last + 1;
        }
        if done.iter().all(Option::is_some) {
            break;
        }
    }
    done.into_iter().flatten().collect()
}

#[test]
fn agrees_with_a_machine_that_is_stepped() {
    for case in 0..20_u64 {
        let mut state = case + 1;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (count, ordered) = (1 + draw(5) as usize, case % 2 == 0);
        let costs = [1 + draw(20), draw(4)];
        let s = [1 + draw(20), draw(4), 1 + draw(20), draw(4)];
        let (gap, sas) = (1 + draw(30), 1 + draw(6));
        let mut at = 0;
        let mut one = || {
            at += draw(gap);
            (at, draw(sas) as u32, draw(30))
        };
        let packets: Vec<(u64, u32, u64)> = (0..300).map(|_| one()).collect();
        let serial = Serial {
            burst: BURST,
            take: ns(s[0]),
            take_packet: ns(s[1]),
            complete: ns(s[2]),
            complete_packet: ns(s[3]),
            shared: false,
            ordered,
        };
        let cores = Cores::equal(
            count,
            CoreCost { init: ns(costs[0]), block: ns(costs[1]), ..CoreCost::default() },
            serial,
        )
        .unwrap();
        let given: Vec<CorePacket> = packets
            .iter()
            .map(|&(at, sa, blocks)| CorePacket { at: Time::ZERO + ns(at), sa, blocks })
            .collect();
        let completed = cores.run(&given).unwrap().completed;
        let expected: Vec<Time> =
            stepped(count, costs, s, ordered, &packets).into_iter().map(|at| Time::ZERO + ns(at)).collect();
        assert_eq!(completed, expected, "case {case}");
    }
}
