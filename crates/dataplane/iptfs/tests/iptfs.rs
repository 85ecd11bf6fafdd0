//! IP-TFS: payloads by hand after RFC 9347, scenarios by name, and a second, slow receiver to compare with.

use std::collections::{BTreeMap, HashSet};

use forebay_crypto::Packet;
use forebay_drops::DropReason;
use forebay_iptfs::{Aggregator, Congestion, Deaggregator, Iptfs, IptfsCounters, Seen};
use forebay_time::{Duration, Time};
use forebay_wire::aggfrag::CongestionInfo;
use proptest::prelude::*;

/// Longer than any timer here.
const LONG: Duration = Duration::from_millis(10_000);

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// An IPv4 packet of `len` bytes whose content tells it from others.
fn v4(len: usize, mark: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, mark, 0, 0, 64, 17, 0, 0];
    packet.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend((20..len).map(|at| (at as u8).wrapping_mul(31) ^ mark));
    packet
}

/// An IPv6 packet of `len` bytes.
fn v6(len: usize, mark: u8) -> Vec<u8> {
    let payload = len - 40;
    let mut packet = vec![0x60, 0, 0, mark, (payload >> 8) as u8, payload as u8, 17, 64];
    packet.extend_from_slice(&[0xfd; 32]);
    packet.extend((40..len).map(|at| (at as u8).wrapping_mul(29) ^ mark));
    packet
}

/// Everything that is due, as bytes.
fn poll_all(aggregator: &mut Aggregator, now: Time) -> Vec<Vec<u8>> {
    let mut buffer = Packet::with_capacity(70_000);
    let mut payloads = Vec::new();
    while aggregator.poll(now, &mut buffer).expect("room for a payload") {
        payloads.push(buffer.bytes().to_vec());
    }
    payloads
}

/// Everything that a deaggregator has, and what it says it lost.
fn take_all(deaggregator: &mut Deaggregator, now: Time) -> (Vec<Vec<u8>>, Vec<DropReason>) {
    let mut buffer = Packet::with_capacity(70_000);
    let (mut packets, mut reasons) = (Vec::new(), Vec::new());
    while let Some(taken) = deaggregator.take(now, &mut buffer) {
        match taken {
            Ok(()) => packets.push(buffer.bytes().to_vec()),
            Err(reason) => reasons.push(reason),
        }
    }
    (packets, reasons)
}

/// What became of each payload.
type Pushed = Vec<Result<(), DropReason>>;

/// Receives payloads, then lets all timers pass.
fn receive(
    config: &Iptfs,
    arrivals: &[(u64, Vec<u8>)],
) -> (Vec<Vec<u8>>, Vec<DropReason>, Pushed, IptfsCounters) {
    let mut deaggregator = Deaggregator::new(config);
    let (mut packets, mut reasons, mut pushed) = (vec![], vec![], vec![]);
    let mut drain = |deaggregator: &mut Deaggregator, now| {
        let (more, lost) = take_all(deaggregator, now);
        packets.extend(more);
        reasons.extend(lost);
    };
    for (sequence, payload) in arrivals {
        pushed.push(deaggregator.push(*sequence, 0, payload));
        drain(&mut deaggregator, Time::ZERO);
    }
    drain(&mut deaggregator, Time::ZERO + config.lost_after);
    assert_eq!(deaggregator.due(), Time::MAX);
    (packets, reasons, pushed, deaggregator.counters())
}

fn numbered(payloads: &[Vec<u8>]) -> Vec<(u64, Vec<u8>)> {
    (1..).zip(payloads.iter().cloned()).collect()
}

/// RFC 9347 appendix A, figure 11: payloads of 1404 bytes, offsets 0, 100, 2000, 600.
#[test]
fn the_flow_of_appendix_a() {
    let packets = [v4(750, 1), v6(750, 2), v4(60, 3), v6(240, 4), v4(3_000, 5)];
    let config = Iptfs { rate: Some(1_000), ..Iptfs::default() };
    let mut aggregator = Aggregator::new(&config, 1_404);
    packets.iter().for_each(|packet| aggregator.push(Time::ZERO, packet).unwrap());
    let mut payloads = Vec::new();
    for ms in 0..4 {
        payloads.extend(poll_all(&mut aggregator, at_ms(ms)));
    }
    // The four payloads by hand: the header's four bytes, then the stream cut every 1400 bytes.
    let stream: Vec<u8> = packets.concat();
    assert_eq!(stream.len(), 4_800);
    let mut expected: Vec<Vec<u8>> = vec![
        [&[0, 0, 0, 0], &stream[..1_400]].concat(),
        [&[0, 0, 0, 100], &stream[1_400..2_800]].concat(),
        [&[0, 0, 0x07, 0xd0], &stream[2_800..4_200]].concat(),
        [&[0, 0, 0x02, 0x58], &stream[4_200..]].concat(),
    ];
    expected[3].resize(1_404, 0);
    assert_eq!(payloads, expected);
    let (received, reasons, _, counters) = receive(&config, &numbered(&expected));
    assert_eq!((received, reasons), (packets.to_vec(), vec![]));
    assert_eq!(counters, IptfsCounters { payloads: 4, packets: 5, reassembled: 2, ..Default::default() });
}

/// RFC 9347 6.1.1 and 6.1.3, by hand: two small packets, of either version, and padding.
#[test]
fn a_golden_payload() {
    let ipv4 = [0x45, 0, 0, 22, 0, 1, 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xaa, 0xbb];
    let mut ipv6 = vec![0x60, 0, 0, 0, 0, 3, 253, 64];
    ipv6.extend_from_slice(&[0xfd; 32]);
    ipv6.extend_from_slice(&[1, 2, 3]);
    let golden = [&[0, 0, 0, 0][..], &ipv4, &ipv6, &[0; 11]].concat();
    let config = Iptfs { rate: Some(1), ..Iptfs::default() };
    let mut aggregator = Aggregator::new(&config, 80);
    aggregator.push(Time::ZERO, &ipv4).unwrap();
    aggregator.push(Time::ZERO, &ipv6).unwrap();
    assert_eq!(poll_all(&mut aggregator, Time::ZERO), vec![golden.clone()]);
    let (packets, reasons, ..) = receive(&config, &[(1, golden)]);
    assert_eq!((packets, reasons), (vec![ipv4.to_vec(), ipv6], vec![]));
}

#[test]
fn aggregation_follows_the_load() {
    let config = Iptfs::default();
    let mut aggregator = Aggregator::new(&config, 1_404);
    assert_eq!(aggregator.due(), Time::MAX);
    // Two packets wait for more until the older has waited for max_delay: then as short as they are.
    aggregator.push(at_ms(1), &v4(100, 1)).unwrap();
    aggregator.push(at_ms(1) + Duration::from_micros(300), &v4(50, 2)).unwrap();
    assert_eq!(aggregator.due(), at_ms(1) + config.max_delay);
    assert!(poll_all(&mut aggregator, at_ms(1)).is_empty());
    let due = aggregator.due();
    let payloads = poll_all(&mut aggregator, due);
    assert_eq!(payloads, [[vec![0; 4], v4(100, 1), v4(50, 2)].concat()]);
    assert_eq!(aggregator.due(), Time::MAX);
    // What fills a payload does not wait; the rest waits for its own time.
    (0..15).for_each(|mark| aggregator.push(at_ms(9), &v4(100, mark)).unwrap());
    assert_eq!(aggregator.due(), Time::ZERO);
    assert_eq!(poll_all(&mut aggregator, at_ms(9)).len(), 1);
    assert_eq!((aggregator.waiting(), aggregator.due()), (100, at_ms(9) + config.max_delay));
}

#[test]
fn aggregation_without_fragmentation_sends_whole_packets() {
    let config = Iptfs { fragment: false, ..Iptfs::default() };
    let mut aggregator = Aggregator::new(&config, 1_004);
    assert_eq!(aggregator.push(Time::ZERO, &v4(1_001, 0)), Err(DropReason::OutTooBig));
    for (mark, len) in [600, 300, 101, 1_000, 20].into_iter().enumerate() {
        aggregator.push(Time::ZERO, &v4(len, mark as u8)).unwrap();
    }
    // 600 + 300, then 101, then 1000; 20 may be followed by others.
    let payloads = poll_all(&mut aggregator, Time::ZERO);
    assert_eq!(payloads.iter().map(Vec::len).collect::<Vec<_>>(), [904, 105, 1_004]);
    let last = poll_all(&mut aggregator, Time::ZERO + config.max_delay);
    assert_eq!(last[0].len(), 24);
    assert!(payloads.iter().chain(&last).all(|payload| payload[..4] == [0; 4]));
}

#[test]
fn fragmentation_over_many_payloads() {
    let config = Iptfs::default();
    let mut aggregator = Aggregator::new(&config, 104);
    let packets = [v6(65_575, 1), v4(65_535, 2), v4(20, 3)];
    packets.iter().for_each(|packet| aggregator.push(Time::ZERO, packet).unwrap());
    let mut payloads = poll_all(&mut aggregator, Time::ZERO);
    payloads.extend(poll_all(&mut aggregator, Time::ZERO + LONG));
    assert_eq!(payloads.len(), (65_575 + 65_535 + 20usize).div_ceil(100));
    assert_eq!(payloads[1][2..4], (65_475u16).to_be_bytes());
    let (received, reasons, ..) = receive(&config, &numbered(&payloads));
    assert_eq!((received, reasons), (packets.to_vec(), vec![]));
}

/// A packet may be cut anywhere, so also before it has told its length.
#[test]
fn fragmentation_inside_the_length_field() {
    for packet in [v4(40, 7), v6(64, 9)] {
        for cut in 1..packet.len() {
            for again in cut..packet.len() {
                let rest = |from: usize| ((packet.len() - from) as u16).to_be_bytes();
                let payloads = [
                    [&[0, 0, 0, 0], &packet[..cut]].concat(),
                    vec![0, 0, 0, 0, 0, 0, 0],
                    [&[0, 0], &rest(cut)[..], &packet[cut..again]].concat(),
                    [&[0, 0], &rest(again)[..], &packet[again..], &[0; 5]].concat(),
                ];
                let (received, reasons, ..) = receive(&Iptfs::default(), &numbered(&payloads));
                assert_eq!((received, reasons), (vec![packet.clone()], vec![]), "cut at {cut} and {again}");
            }
        }
    }
}

/// Payloads of a hundred bytes that carry packets of fifty: every packet in one payload.
fn pairs(count: u8) -> Vec<(u64, Vec<u8>)> {
    let payload = |n: u8| [vec![0; 4], v4(50, 2 * n), v4(50, 2 * n + 1)].concat();
    numbered(&(0..count).map(payload).collect::<Vec<_>>())
}

#[test]
fn reordering_within_the_window() {
    let config = Iptfs { reorder_window: 3, ..Iptfs::default() };
    let arrivals = pairs(8);
    let order = [0, 4, 2, 3, 1, 7, 6, 5].map(|place: usize| arrivals[place].clone());
    let (packets, reasons, pushed, counters) = receive(&config, &order);
    // 5 is three behind the place of 2: all of them come out in order.
    assert!(pushed.iter().all(Result::is_ok) && reasons.is_empty());
    assert_eq!(packets, (0..16).map(|mark| v4(50, mark)).collect::<Vec<_>>());
    assert_eq!(counters.lost, 0);
}

#[test]
fn reordering_beyond_the_window() {
    let config = Iptfs { reorder_window: 2, ..Iptfs::default() };
    let arrivals = pairs(6);
    let order = [0, 2, 3, 4, 1, 5, 5].map(|place: usize| arrivals[place].clone());
    let (packets, _, pushed, counters) = receive(&config, &order);
    // 2 was given up when 5 came.
    assert_eq!(pushed[4], Err(DropReason::InIptfsLate));
    assert_eq!(pushed[6], Err(DropReason::InIptfsLate));
    assert_eq!(packets.len(), 10);
    assert!(!packets.contains(&v4(50, 2)) && packets.is_sorted());
    assert_eq!(counters.lost, 1);
}

#[test]
fn loss_costs_only_the_packets_that_were_in_it() {
    let config = Iptfs { reorder_window: 0, ..Iptfs::default() };
    let mut aggregator = Aggregator::new(&config, 104);
    // Payload n carries bytes 100 (n - 1) to 100 n of this stream.
    let packets: Vec<Vec<u8>> = (0..20).map(|mark| v4(60 + usize::from(mark), mark)).collect();
    packets.iter().for_each(|packet| aggregator.push(Time::ZERO, packet).unwrap());
    let payloads = poll_all(&mut aggregator, Time::ZERO + LONG);
    for lost in 2..=payloads.len() {
        let arrivals: Vec<_> = numbered(&payloads).into_iter().filter(|(n, _)| *n != lost as u64).collect();
        let (received, reasons, ..) = receive(&config, &arrivals);
        let (from, to) = (100 * (lost - 1), 100 * lost);
        let mut at = 0;
        let mut expected = packets.clone();
        expected.retain(|packet| {
            at += packet.len();
            at <= from || at - packet.len() >= to
        });
        assert_eq!(received, expected, "payload {lost} lost");
        assert!(reasons.iter().all(|reason| *reason == DropReason::InIptfsIncomplete), "{reasons:?}");
    }
}

#[test]
fn loss_is_given_up_in_time() {
    let config = Iptfs::default();
    let mut deaggregator = Deaggregator::new(&config);
    let arrivals = pairs(4);
    for place in [0, 2, 3] {
        deaggregator.push(arrivals[place].0, 0, &arrivals[place].1).unwrap();
    }
    assert_eq!(take_all(&mut deaggregator, at_ms(7)).0.len(), 2);
    assert_eq!(deaggregator.due(), at_ms(7) + config.lost_after);
    assert!(take_all(&mut deaggregator, at_ms(8)).0.is_empty());
    let due = deaggregator.due();
    assert_eq!(take_all(&mut deaggregator, due).0.len(), 4);
    assert_eq!(deaggregator.push(2, 0, &arrivals[1].1), Err(DropReason::InIptfsLate));
}

/// RFC 9347 2.2.3: payloads of nothing but padding may stand between the parts of a packet.
#[test]
fn all_pad_payloads() {
    let config = Iptfs { rate: Some(1_000), ..Iptfs::default() };
    let mut aggregator = Aggregator::new(&config, 84);
    // An idle tunnel goes on sending, at its rate and in its size.
    let idle: Vec<_> = (0..5).flat_map(|ms| poll_all(&mut aggregator, at_ms(ms))).collect();
    assert_eq!(idle, vec![vec![0; 84]; 5]);
    assert_eq!(aggregator.due(), at_ms(5));
    aggregator.push(at_ms(5), &v4(100, 1)).unwrap();
    let halves: Vec<_> = (5..7).flat_map(|ms| poll_all(&mut aggregator, at_ms(ms))).collect();
    let mut payloads = idle.clone();
    payloads.push(halves[0].clone());
    payloads.extend(idle);
    payloads.push(halves[1].clone());
    let (packets, reasons, _, counters) = receive(&config, &numbered(&payloads));
    assert_eq!((packets, reasons), (vec![v4(100, 1)], vec![]));
    assert_eq!((counters.all_pad, counters.payloads), (10, 12));
}

#[test]
fn a_fixed_rate_neither_drifts_nor_bursts() {
    let config = Iptfs { rate: Some(3), ..Iptfs::default() };
    let mut aggregator = Aggregator::new(&config, 84);
    let mut times = Vec::new();
    let mut now = Time(5);
    for _ in 0..301 {
        assert_eq!(poll_all(&mut aggregator, now).len(), 1);
        times.push(now);
        now = aggregator.due();
    }
    assert_eq!(
        (times[1], times[2], times[300]),
        (Time(333_333_333_338), Time(666_666_666_671), Time(100_000_000_000_005))
    );
    // A driver that comes late by less than the catch-up sends what it missed; one that stalls does not.
    let rate = |late: u64| {
        let mut aggregator = Aggregator::new(&Iptfs { rate: Some(1_000), ..Iptfs::default() }, 84);
        poll_all(&mut aggregator, at_ms(0));
        poll_all(&mut aggregator, at_ms(late)).len()
    };
    assert_eq!((rate(1), rate(10), rate(1_000)), (1, 10, 1));
}

/// What a peer has made of this header.
fn info(payload: &[u8]) -> CongestionInfo {
    forebay_wire::Aggfrag::parse(payload).unwrap().congestion().unwrap()
}

#[test]
fn congestion_information_is_carried() {
    let config = Iptfs { congestion: true, ..Iptfs::default() };
    let mut aggregator = Aggregator::new(&config, 1_404);
    aggregator.push(Time::ZERO, &v4(100, 1)).unwrap();
    aggregator.follow(&mut Congestion::default(), at_ms(1));
    let payloads = poll_all(&mut aggregator, Time::ZERO + LONG);
    assert_eq!((payloads[0].len(), info(&payloads[0]).t_val), (124, 1_000));
    let mut deaggregator = Deaggregator::new(&config);
    deaggregator.push(1, 3, &payloads[0]).unwrap();
    // A payload without data blocks (RFC 9347 2.2.4) carries nothing else.
    let newer = CongestionInfo { rtt: 4_321, ..info(&payloads[0]) };
    deaggregator.push(4, 0, &newer.write_header(0)).unwrap();
    assert_eq!(take_all(&mut deaggregator, Time::ZERO), (vec![v4(100, 1)], vec![]));
    let first = Seen {
        payloads: 1,
        marked: 1,
        wants_answer: true,
        info: Some(info(&payloads[0])),
        ..Seen::default()
    };
    assert_eq!((deaggregator.seen(), deaggregator.seen()), (first, Seen::default()));
    take_all(&mut deaggregator, Time::ZERO + LONG);
    let second = Seen { payloads: 1, lost: 2, info: Some(newer), ..Seen::default() };
    assert_eq!(deaggregator.seen(), second);
}

#[test]
fn an_idle_sa_answers_with_a_header_when_it_is_due() {
    let mut aggregator = Aggregator::new(&Iptfs { congestion: true, ..Iptfs::default() }, 1_404);
    assert_eq!(aggregator.due(), Time::MAX);
    aggregator.owe(at_ms(40));
    aggregator.owe(at_ms(50));
    assert_eq!((aggregator.due(), poll_all(&mut aggregator, at_ms(39)).len()), (at_ms(40), 0));
    let payloads = poll_all(&mut aggregator, at_ms(40));
    assert_eq!((payloads.len(), payloads[0].len(), aggregator.due()), (1, 24, Time::MAX));
    // What is to be sent anyway takes it along.
    aggregator.owe(at_ms(60));
    aggregator.push(at_ms(50), &v4(100, 1)).unwrap();
    let due = aggregator.due();
    assert_eq!(poll_all(&mut aggregator, due)[0].len(), 124);
    assert_eq!(aggregator.due(), Time::MAX);
    // It is the business of neither a fixed rate nor an SA without congestion information.
    for iptfs in [Iptfs { congestion: true, rate: Some(1), ..Iptfs::default() }, Iptfs::default()] {
        let mut other = Aggregator::new(&iptfs, 1_404);
        let due = other.due();
        other.owe(at_ms(1));
        assert_eq!(other.due(), due);
    }
}

#[test]
fn the_queue_has_an_end() {
    let config = Iptfs { queue: 2_000, ..Iptfs::default() };
    let mut aggregator = Aggregator::new(&config, 1_404);
    for _ in 0..20 {
        aggregator.push(Time::ZERO, &v4(100, 1)).unwrap();
    }
    assert_eq!(aggregator.push(Time::ZERO, &v4(20, 1)), Err(DropReason::OutNoQueueSpace));
    assert_eq!(poll_all(&mut aggregator, Time::ZERO).len(), 1);
    aggregator.push(Time::ZERO, &v4(1_400, 2)).unwrap();
    let payloads = poll_all(&mut aggregator, Time::ZERO + LONG);
    assert_eq!(payloads.iter().map(Vec::len).collect::<Vec<_>>(), [1_404, 604]);
    let mut small = Packet::with_capacity(100);
    aggregator.push(Time::ZERO, &v4(200, 3)).unwrap();
    assert_eq!(aggregator.poll(Time::ZERO + LONG, &mut small), Err(DropReason::TooLong));
    assert_eq!(aggregator.waiting(), 200);
}

/// A receiver that is not drained holds a limited amount and no more.
#[test]
fn memory_is_bounded() {
    let config = Iptfs { reorder_window: 3, ..Iptfs::default() };
    let mut deaggregator = Deaggregator::new(&config);
    let taken = (1..=1_000).filter(|&n| deaggregator.push(n, 0, &[0; 1_404]).is_ok()).count();
    assert_eq!(taken, 3 + 64 + 1);
}

/// What a sender contradicts itself in is dropped, and what comes after it is not.
#[test]
fn payloads_that_contradict_each_other() {
    let packet = v4(100, 1);
    let begin = [&[0, 0, 0, 0], &packet[..60]].concat();
    let next = v4(40, 2);
    let with = |offset: u8, rest: &[u8]| [&[0, 0, 0, offset], rest, &next].concat();
    for (second, error) in [
        // Too short and too long an offset, and none at all.
        (with(39, &packet[61..]), DropReason::InIptfsError),
        (with(41, &[&packet[60..], &[0][..]].concat()), DropReason::InIptfsError),
        (with(0, &[]), DropReason::InIptfsError),
    ] {
        let (packets, reasons, ..) = receive(&Iptfs::default(), &numbered(&[begin.clone(), second]));
        assert_eq!((packets, reasons), (vec![next.clone()], vec![error]));
    }
    for broken in [
        vec![],
        vec![0, 0, 0],
        vec![2, 0, 0, 0, 0x45],
        vec![1; 23],
        [&[0, 0, 0, 0, 0x10][..], &next].concat(),
    ] {
        let arrivals = numbered(&[broken, [&[0, 0, 0, 0], &next[..]].concat()]);
        let (packets, reasons, ..) = receive(&Iptfs::default(), &arrivals);
        assert_eq!((packets, reasons), (vec![next.clone()], vec![DropReason::InIptfsError]));
    }
}

// ---- Against a second receiver ----

/// Slow and obvious: with all payloads that were accepted at hand, each run without a gap is one stream,
/// which is read from the first block offset on.
fn slow_receiver(arrivals: &[(u64, Vec<u8>)], window: u64) -> (Vec<Vec<u8>>, HashSet<u64>) {
    let mut accepted: BTreeMap<u64, &[u8]> = BTreeMap::new();
    let mut highest = 0;
    for (sequence, payload) in arrivals {
        if *sequence + window >= highest {
            accepted.entry(*sequence).or_insert(payload);
        }
        highest = highest.max(*sequence);
    }
    let mut packets = Vec::new();
    let mut runs: Vec<Vec<u64>> = Vec::new();
    for &sequence in accepted.keys() {
        match runs.last_mut() {
            Some(run) if run.last() == Some(&(sequence - 1)) => run.push(sequence),
            _ => runs.push(vec![sequence]),
        }
    }
    for run in runs {
        // The data of the run, where each payload's ends, and where its first new block begins.
        let (mut stream, mut ends, mut start) = (Vec::new(), Vec::new(), None);
        for sequence in run {
            let payload = accepted[&sequence];
            let header = if payload[0] == 1 { 24 } else { 4 };
            let offset = usize::from(payload[2]) * 256 + usize::from(payload[3]);
            if offset == 0 && payload.get(header).is_none_or(|byte| byte >> 4 == 0) {
                continue;
            }
            start.get_or_insert(offset);
            stream.extend_from_slice(&payload[header..]);
            ends.push(stream.len());
        }
        let mut at = start.unwrap_or(0);
        while at < stream.len() {
            let rest = &stream[at..];
            let len = match rest[0] >> 4 {
                0 => {
                    at = *ends.iter().find(|&&end| end > at).expect("inside a payload");
                    continue;
                }
                4 if rest.len() >= 4 => usize::from(rest[2]) * 256 + usize::from(rest[3]),
                6 if rest.len() >= 6 => 40 + usize::from(rest[4]) * 256 + usize::from(rest[5]),
                _ => break,
            };
            if len > rest.len() {
                break;
            }
            packets.push(rest[..len].to_vec());
            at += len;
        }
    }
    (packets, accepted.into_keys().collect())
}

#[derive(Clone, Debug)]
struct Traffic {
    config: Iptfs,
    payload: usize,
    /// Length, IPv6 or not, and how many payloads may leave before the next packet.
    packets: Vec<(usize, bool, u64)>,
    /// Before which payloads one of padding is put.
    pads: Vec<usize>,
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let length = prop_oneof![5 => 20usize..120, 2 => 120usize..1_500, 1 => 1_500usize..9_000];
    let packets = prop::collection::vec((length, any::<bool>(), 0u64..4), 1..60);
    (
        packets,
        any::<[bool; 3]>(),
        prop_oneof![68usize..200, 200usize..1_500],
        0u32..6,
        prop::collection::vec(0usize..200, 0..4),
    )
        .prop_map(|(packets, [fixed, fragment, congestion], payload, reorder_window, pads)| {
            let rate = fixed.then_some(1_000);
            let config =
                Iptfs { rate, fragment, congestion, reorder_window, queue: 1 << 20, ..Iptfs::default() };
            let payload = if fragment { payload + 24 } else { 9_100 };
            Traffic { config, payload, packets, pads }
        })
}

/// What a tunnel sent: the packets, and for each payload the range of their bytes that it carries.
struct Sent {
    packets: Vec<Vec<u8>>,
    payloads: Vec<(Vec<u8>, std::ops::Range<usize>)>,
}

fn send(traffic: &Traffic) -> Sent {
    let mut aggregator = Aggregator::new(&traffic.config, traffic.payload);
    let (mut packets, mut payloads, mut pushed) = (Vec::new(), Vec::new(), 0);
    let mut buffer = Packet::with_capacity(70_000);
    let mut ms = 0;
    let mut poll = |aggregator: &mut Aggregator, pushed: usize, ms: u64| {
        loop {
            let from = pushed - aggregator.waiting();
            if !aggregator.poll(at_ms(ms), &mut buffer).unwrap() {
                return;
            }
            payloads.push((buffer.bytes().to_vec(), from..pushed - aggregator.waiting()));
        }
    };
    for (number, &(len, v6_packet, pause)) in traffic.packets.iter().enumerate() {
        let packet = if v6_packet { v6(len.max(40), number as u8) } else { v4(len, number as u8) };
        aggregator.push(at_ms(ms), &packet).unwrap();
        pushed += packet.len();
        packets.push(packet);
        for _ in 0..pause {
            poll(&mut aggregator, pushed, ms);
            ms += 1;
        }
    }
    while aggregator.waiting() > 0 {
        poll(&mut aggregator, pushed, ms);
        ms += 1;
    }
    for &place in traffic.pads.iter().filter(|&&place| place <= payloads.len()).collect::<Vec<_>>() {
        let from = payloads.get(place).map_or(pushed, |(_, range)| range.start);
        payloads.insert(place.min(payloads.len()), (vec![0; 30], from..from));
    }
    Sent { packets, payloads }
}

/// A path: for each payload whether it is lost, how far it is late, and whether it comes twice.
fn path() -> impl Strategy<Value = Vec<(bool, usize, bool)>> {
    let late = prop_oneof![5 => Just(0usize), 1 => 0usize..8];
    prop::collection::vec((prop::bool::weighted(0.1), late, prop::bool::weighted(0.05)), 1..40)
}

fn travel(
    payloads: &[(Vec<u8>, std::ops::Range<usize>)],
    path: &[(bool, usize, bool)],
) -> Vec<(u64, Vec<u8>)> {
    let mut arrivals: Vec<(usize, u64, Vec<u8>)> = Vec::new();
    for (place, (payload, _)) in payloads.iter().enumerate() {
        let (lost, late, twice) = path[place % path.len()];
        if !lost {
            arrivals.push((place + late, place as u64 + 1, payload.clone()));
            if twice {
                arrivals.push((place + late + 2, place as u64 + 1, payload.clone()));
            }
        }
    }
    arrivals.sort_by_key(|(time, ..)| *time);
    arrivals.into_iter().map(|(_, sequence, payload)| (sequence, payload)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_packet_wholly_carried_comes_out_once_and_in_order(traffic in traffic(), path in path()) {
        let sent = send(&traffic);
        let carried: usize = sent.payloads.iter().map(|(_, range)| range.len()).sum();
        prop_assert_eq!(carried, sent.packets.iter().map(Vec::len).sum::<usize>());
        if traffic.config.rate.is_some() {
            let sizes = sent.payloads.iter().map(|(payload, _)| payload.len());
            prop_assert!(sizes.into_iter().all(|len| len == traffic.payload || len == 30));
        }
        let arrivals = travel(&sent.payloads, &path);
        let (packets, reasons, pushed, counters) = receive(&traffic.config, &arrivals);
        let window = traffic.config.reorder_window.into();
        let (expected, accepted) = slow_receiver(&arrivals, window);
        prop_assert_eq!(&packets, &expected);
        prop_assert_eq!(pushed.iter().filter(|result| result.is_ok()).count(), accepted.len());
        prop_assert_eq!(counters.packets as usize, packets.len());
        prop_assert!(reasons.iter().all(|reason| *reason == DropReason::InIptfsIncomplete), "{:?}", reasons);

        // And by what the sender knows: a packet arrives if everything from its first byte's payload to
        // its last byte's does.
        let mut at = 0;
        let whole = sent.packets.iter().filter(|packet| {
            let bytes = at..at + packet.len();
            at = bytes.end;
            let touches = |range: &std::ops::Range<usize>| range.start < bytes.end && range.end > bytes.start;
            let first = sent.payloads.iter().position(|(_, range)| touches(range)).expect("sent");
            let last = sent.payloads.iter().rposition(|(_, range)| touches(range)).expect("sent");
            (first..=last).all(|place| accepted.contains(&(place as u64 + 1)))
        });
        prop_assert_eq!(packets, whole.cloned().collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_lost_on_a_good_path(traffic in traffic()) {
        let sent = send(&traffic);
        let arrivals: Vec<_> = (1..).zip(sent.payloads.iter().map(|(payload, _)| payload.clone())).collect();
        let (packets, reasons, ..) = receive(&traffic.config, &arrivals);
        prop_assert_eq!((packets, reasons), (sent.packets, vec![]));
    }

    /// Whatever comes: no panic, no more bytes out than in, and everything that comes out is IP.
    #[test]
    fn malformed_payloads(
        traffic in traffic(),
        damage in prop::collection::vec((0usize..100, 0usize..70, any::<u8>()), 0..12),
        noise in prop::collection::vec((1u64..120, prop::collection::vec(any::<u8>(), 0..90)), 0..12),
    ) {
        let mut arrivals = numbered(&send(&traffic).payloads.into_iter().map(|(payload, _)| payload).collect::<Vec<_>>());
        for (place, at, byte) in damage {
            let place = place % arrivals.len();
            if let Some(target) = arrivals[place].1.get_mut(at) {
                *target = byte;
            }
        }
        for (place, payload) in noise {
            let at = place as usize % arrivals.len();
            arrivals.insert(at, (place, payload));
        }
        let bytes_in: usize = arrivals.iter().map(|(_, payload)| payload.len()).sum();
        let (packets, ..) = receive(&traffic.config, &arrivals);
        prop_assert!(packets.iter().map(Vec::len).sum::<usize>() <= bytes_in);
        for packet in packets {
            let ip = forebay_wire::Ip::parse(&packet);
            prop_assert_eq!(ip.expect("an IP packet").bytes().len(), packet.len());
        }
    }
}

const NOT_ECT: u8 = 0;
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
const CE: u8 = 3;

/// An inner packet with these marks, and a DSCP that shows nowhere.
fn marked(len: usize, ecn: u8) -> Vec<u8> {
    let mut packet = v4(len, 1);
    packet[1] = 0xb8 | ecn;
    packet
}

/// RFC 9347 3.1: congestion shows outside; and no mark where an inner packet would have to be dropped for it.
#[test]
fn an_outer_packet_is_marked_as_all_its_inner_packets_can_bear() {
    let cases: [(&[u8], u8); 9] = [
        (&[NOT_ECT], NOT_ECT),
        (&[ECT_0, ECT_0], ECT_0),
        (&[ECT_1, ECT_1], ECT_1),
        (&[ECT_0, ECT_1], ECT_0),
        (&[ECT_0, CE, ECT_0], CE),
        (&[CE], CE),
        (&[ECT_0, NOT_ECT, ECT_0], NOT_ECT),
        (&[CE, NOT_ECT], NOT_ECT),
        (&[NOT_ECT, CE], NOT_ECT),
    ];
    for (inner, outer) in cases {
        for (ecn, expected) in [(true, outer), (false, NOT_ECT)] {
            let mut aggregator = Aggregator::new(&Iptfs { ecn, ..Iptfs::default() }, 1_404);
            inner.iter().for_each(|&ecn| aggregator.push(Time::ZERO, &marked(60, ecn)).unwrap());
            assert_eq!(poll_all(&mut aggregator, Time::ZERO + LONG).len(), 1);
            assert_eq!(aggregator.ecn(), expected, "{inner:?}");
        }
    }
}

/// Each payload has the marks of the packets that it has parts of, and one of padding alone has none.
#[test]
fn marks_are_those_of_one_payload() {
    let mut aggregator = Aggregator::new(&Iptfs { ecn: true, rate: Some(1_000), ..Iptfs::default() }, 104);
    for (len, ecn) in [(150, ECT_0), (30, CE), (60, NOT_ECT)] {
        aggregator.push(Time::ZERO, &marked(len, ecn)).unwrap();
    }
    let mut room = Packet::with_capacity(2_000);
    let marks: Vec<u8> = (0..4)
        .map(|ms| {
            assert_eq!(aggregator.poll(at_ms(ms), &mut room), Ok(true));
            aggregator.ecn()
        })
        .collect();
    // Bytes 0 to 100, 100 to 200 with all three, 200 to 240, and padding.
    assert_eq!(marks, [ECT_0, NOT_ECT, NOT_ECT, NOT_ECT]);
}

/// An inner packet has what the payloads had in which it came; of several, congestion counts (RFC 3168 5.3).
#[test]
fn inner_packets_are_told_the_marks_of_their_payloads() {
    let mut aggregator = Aggregator::new(&Iptfs { rate: Some(1_000), ..Iptfs::default() }, 104);
    for len in [60, 150, 30, 60] {
        aggregator.push(Time::ZERO, &v4(len, 7)).unwrap();
    }
    let payloads: Vec<_> = (0..3).flat_map(|ms| poll_all(&mut aggregator, at_ms(ms))).collect();
    // The second packet stands in payloads 1, 2 and 3, the last two in the third.
    for (classes, expected) in [
        ([0, 0, 0], [0, 0, 0, 0]),
        ([CE, 0, 0], [CE, CE, 0, 0]),
        ([0, 0xb8 | CE, ECT_0], [0, 0xb8 | CE, ECT_0, ECT_0]),
        ([0, 0, CE], [0, CE, CE, CE]),
    ] {
        let mut deaggregator = Deaggregator::new(&Iptfs::default());
        let (mut buffer, mut told) = (Packet::with_capacity(2_000), vec![]);
        for ((sequence, payload), class) in numbered(&payloads).into_iter().zip(classes) {
            deaggregator.push(sequence, class, &payload).unwrap();
            while let Some(taken) = deaggregator.take(Time::ZERO, &mut buffer) {
                assert_eq!(taken, Ok(()));
                told.push(deaggregator.traffic_class());
            }
        }
        assert_eq!(told, expected, "{classes:?}");
        let congested = classes.iter().filter(|class| **class & CE == CE).count() as u64;
        assert_eq!(deaggregator.counters().marked, congested);
    }
}
