//! Packets that are prepared and completed as a burst come out as those that are one by one: bytes,
//! places, jobs, reasons, counters, events.

use crate::support::{Damage, Plain, SAS, buffer, damage, database, opening, plain, seal, sealing};
use forebay_crypto::{Direction, Job, JobSpec, SessionId, Verdict};
use forebay_ipsec::{
    Action, DropReason, Event, EventKind, Ipsec, IvRange, Policy, PolicyPlace, Prepared, SaConfig,
    SaCounters, Stop,
};
use forebay_wire::Family;
use proptest::prelude::*;

/// What became of a packet.
type Outcome = Result<(usize, Vec<u8>, JobSpec), DropReason>;

/// A burst: runs of packets that are alike but for what the lists change.
#[derive(Clone, Debug)]
struct Run {
    plain: Plain,
    count: usize,
    /// Changes to some of the packets, by their place in the run.
    lengths: Vec<(usize, usize)>,
    damage: Vec<(usize, Damage)>,
    verdicts: Vec<(usize, Verdict)>,
}

fn run() -> impl Strategy<Value = Run> {
    let place = || 0usize..12;
    let verdict = prop::sample::select(vec![Verdict::AuthFailed, Verdict::Failed, Verdict::Pending]);
    (
        plain(),
        1usize..12,
        prop::collection::vec((place(), 0usize..200), 0..6),
        prop::collection::vec((place(), damage()), 0..3),
        prop::collection::vec((place(), verdict), 0..2),
    )
        .prop_map(|(plain, count, lengths, damage, verdicts)| Run {
            plain,
            count,
            lengths,
            damage,
            verdicts,
        })
}

impl Run {
    fn plain_packets(&self) -> Vec<Vec<u8>> {
        (0..self.count)
            .map(|n| {
                let length = self.lengths.iter().find(|(place, _)| *place == n);
                let payload = length.map_or(self.plain.payload, |&(_, length)| length);
                Plain { payload, ..self.plain.clone() }.bytes()
            })
            .collect()
    }

    fn damaged(&self, mut packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        for (place, damage) in &self.damage {
            if let Some(packet) = packets.get_mut(*place) {
                damage.apply(packet);
            }
        }
        packets
    }

    fn verdict(&self, n: usize) -> Verdict {
        self.verdicts.iter().find(|(place, _)| *place == n).map_or(Verdict::Done, |&(_, verdict)| verdict)
    }
}

/// One by one. The token of a packet is its place in the burst.
fn singly(
    sad: &mut Ipsec,
    direction: Direction,
    packets: &[(Vec<u8>, Verdict)],
) -> (Vec<Outcome>, Vec<Outcome>) {
    let mut prepared: Vec<Outcome> = Vec::new();
    let mut jobs = Vec::new();
    for (bytes, _) in packets {
        let (mut packet, mut spec) = (buffer(bytes), JobSpec::default());
        let outcome = sad.prepare(direction, &mut packet, &mut spec);
        assert_ne!(outcome, Ok(Prepared::Bypass), "there are no policies");
        prepared.push(outcome.map(|_| (packet.offset(), packet.bytes().to_vec(), spec)));
        jobs.push(Job::new(packet, spec, 0));
    }
    let completed = prepared
        .iter()
        .zip(jobs)
        .zip(packets)
        .map(|((prepared, mut job), (_, verdict))| {
            prepared.as_ref().map_err(|&reason| reason)?;
            sad.complete(&mut job.packet, &job.spec, *verdict)?;
            Ok((job.packet.offset(), job.packet.bytes().to_vec(), job.spec))
        })
        .collect();
    (prepared, completed)
}

/// As a burst, with what is dropped taken out of it.
fn together(
    sad: &mut Ipsec,
    direction: Direction,
    packets: &[(Vec<u8>, Verdict)],
) -> (Vec<Outcome>, Vec<Outcome>) {
    let state = |job: &Job| (job.packet.offset(), job.packet.bytes().to_vec(), job.spec);
    let mut jobs: Vec<Job> = packets
        .iter()
        .enumerate()
        .map(|(n, (bytes, _))| Job::new(buffer(bytes), JobSpec::default(), n as u64))
        .collect();
    let mut prepared: Vec<Outcome> = vec![Err(DropReason::QueueFull); packets.len()];
    let mut from = 0;
    while let Err((place, stop)) = sad.prepare_burst(direction, &mut jobs[from..]) {
        let Stop::Drop(reason) = stop else { panic!("there are no policies") };
        from += place;
        prepared[jobs.remove(from).token as usize] = Err(reason);
    }
    let mut completed = prepared.clone();
    for job in &mut jobs {
        prepared[job.token as usize] = Ok(state(job));
        job.verdict = packets[job.token as usize].1;
    }
    let mut from = 0;
    while let Err((place, stop)) = sad.complete_burst(&mut jobs[from..]) {
        from += place;
        let Stop::Drop(reason) = stop else { panic!("no SA is in another") };
        completed[jobs.remove(from).token as usize] = Err(reason);
    }
    for job in &jobs {
        completed[job.token as usize] = Ok(state(job));
    }
    (prepared, completed)
}

fn counters(sad: &Ipsec) -> Vec<SaCounters> {
    sad.iter().map(|(_, _, _, counters)| *counters).collect()
}

fn events(sad: &mut Ipsec) -> Vec<Event> {
    sad.events().collect()
}

/// Both ways, on databases that are alike, in bursts of so many packets.
fn compare(
    database: impl Fn() -> Ipsec,
    direction: Direction,
    burst: usize,
    packets: &[(Vec<u8>, Verdict)],
) -> Result<Vec<Outcome>, TestCaseError> {
    let (mut one, mut other) = (database(), database());
    let mut all = Vec::new();
    for (number, packets) in packets.chunks(burst).enumerate() {
        let (prepared, completed) = singly(&mut one, direction, packets);
        let (prepared_together, completed_together) = together(&mut other, direction, packets);
        for n in 0..packets.len() {
            let place = (direction, number, n);
            prop_assert_eq!(&prepared_together[n], &prepared[n], "prepared, {:?}", place);
            prop_assert_eq!(&completed_together[n], &completed[n], "completed, {:?}", place);
        }
        prop_assert_eq!(events(&mut other), events(&mut one), "{:?}, burst {}", direction, number);
        all.extend(completed);
    }
    prop_assert_eq!(counters(&other), counters(&one));
    Ok(all)
}

/// A database of one SA, in both directions.
fn alone(sa: usize) -> Ipsec {
    alone_with(sa, opening(sa).replay_window)
}

fn alone_with(sa: usize, replay_window: u32) -> Ipsec {
    let mut sad = Ipsec::default();
    sad.add_inbound(SaConfig { replay_window, ..opening(sa) }).expect("settings without fault");
    sad.add_outbound(sealing(sa), IvRange::for_throwaway_key()).expect("settings without fault");
    sad
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sealed_alike(runs in prop::collection::vec(run(), 1..6), burst in 1usize..40) {
        let packets: Vec<_> = runs
            .iter()
            .flat_map(|run| {
                let packets = run.damaged(run.plain_packets()).into_iter().enumerate();
                packets.map(|(n, packet)| (packet, run.verdict(n)))
            })
            .collect();
        compare(database, Direction::Seal, burst, &packets)?;
    }

    #[test]
    fn opened_alike(runs in prop::collection::vec(run(), 1..6), burst in 1usize..40) {
        let mut sealer = database();
        let mut packets = Vec::new();
        for run in &runs {
            let sealed = run.plain_packets().iter().filter_map(|plain| seal(&mut sealer, plain).ok()).collect();
            let damaged = run.damaged(sealed).into_iter().enumerate();
            packets.extend(damaged.map(|(n, packet)| (packet, run.verdict(n))));
        }
        compare(database, Direction::Open, burst, &packets)?;
    }
}

/// Each bit of the headers, when opening of the end too, of the second packet of three that are alike: what
/// makes a run stop.
#[test]
fn one_bit_of_a_packet_in_a_run() {
    let families = [Family::V4, Family::V6];
    for (sa, family) in (0..SAS).flat_map(|sa| families.map(|family| (sa, family))) {
        let plain =
            Plain { sa, family, payload: 40, extras: 0, fragment: false, class: 0, padding: 0 }.bytes();
        let mut sealer = alone(sa);
        let sealed: Vec<Vec<u8>> = (0..3).map(|_| seal(&mut sealer, &plain).expect("sealed")).collect();
        for (direction, packets) in [(Direction::Seal, vec![plain; 3]), (Direction::Open, sealed)] {
            let len = packets[1].len();
            // Headers, and from the end of the text on; what lies between is payload.
            let behind = if direction == Direction::Seal { len } else { len.max(100) - 40 };
            for bit in (0..8 * 60).chain(8 * behind..8 * len) {
                let mut changed = packets.clone();
                changed[1][bit / 8] ^= 1 << (bit % 8);
                let changed: Vec<_> = changed.into_iter().map(|packet| (packet, Verdict::Done)).collect();
                if let Err(difference) = compare(|| alone(sa), direction, 3, &changed) {
                    panic!(
                        "SA {sa}, {family:?}, {direction:?}, byte {} bit {}: {difference}",
                        bit / 8,
                        bit % 8
                    );
                }
            }
        }
    }
}

/// Numbers and IVs end in the middle of a run as they do elsewhere.
#[test]
fn a_run_ends_where_numbers_or_ivs_do() {
    for sa in 0..SAS {
        let last = if sealing(sa).esn { u64::MAX } else { u32::MAX.into() };
        let plain =
            Plain { sa, family: Family::V4, payload: 40, extras: 0, fragment: false, class: 0, padding: 9 };
        let packets = vec![(plain.bytes(), Verdict::Done); 8];
        for left in 0..8 {
            let few_numbers = || {
                let mut sad = alone(sa);
                sad.continue_after(SessionId(1), last - left);
                sad
            };
            let few_ivs = || {
                let mut sad = Ipsec::default();
                sad.add_outbound(sealing(sa), IvRange::share(9, 9 + 3 * left, 2, 3)).expect("no fault");
                sad
            };
            for (burst, reason) in [3, 8].into_iter().flat_map(|burst| {
                [DropReason::OutStateSeqError, DropReason::OutStateIvError].map(|reason| (burst, reason))
            }) {
                let outcomes = match reason {
                    DropReason::OutStateSeqError => compare(few_numbers, Direction::Seal, burst, &packets),
                    _ => compare(few_ivs, Direction::Seal, burst, &packets),
                };
                let outcomes =
                    outcomes.unwrap_or_else(|difference| panic!("SA {sa}, {left} left: {difference}"));
                let sealed = outcomes.iter().take_while(|outcome| outcome.is_ok()).count();
                assert_eq!(sealed as u64, left, "SA {sa}, {reason}");
                assert!(outcomes[sealed..].iter().all(|outcome| *outcome == Err(reason)), "SA {sa}");
            }
        }
    }
}

/// The same packet twice, in one run and in another one.
#[test]
fn a_run_lets_nothing_through_twice() {
    [Family::V4, Family::V6].into_iter().for_each(lets_nothing_through_twice);
}

fn lets_nothing_through_twice(family: Family) {
    let plain = Plain { sa: 0, family, payload: 40, extras: 0, fragment: false, class: 0, padding: 0 };
    let mut sealer = alone(0);
    let sealed: Vec<Vec<u8>> = (0..4).map(|_| seal(&mut sealer, &plain.bytes()).expect("sealed")).collect();
    let order = [0, 1, 3, 1, 2, 2, 3, 0];
    let packets = order.map(|n| (sealed[n].clone(), Verdict::Done));
    for burst in 1..=order.len() {
        let outcomes = compare(|| alone(0), Direction::Open, burst, &packets).expect("alike");
        for (place, n) in order.iter().enumerate() {
            let expected = match order[..place].contains(n) {
                true => Some(DropReason::InStateSeqError),
                false => None,
            };
            assert_eq!(
                outcomes[place].as_ref().err().copied(),
                expected,
                "packet {place}, bursts of {burst}"
            );
        }
    }
}

/// What was decided for a flow holds as long as the policies do, and no longer.
#[test]
fn a_run_heeds_policies_that_change() {
    [Family::V4, Family::V6].into_iter().for_each(heeds_policies);
}

fn heeds_policies(family: Family) {
    let plain = Plain { sa: 0, family, payload: 40, extras: 0, fragment: false, class: 0, padding: 0 };
    let (mut sealer, mut sad) = (alone(0), alone(0));
    let mut open = |sad: &mut Ipsec| -> Vec<Option<DropReason>> {
        let packets: Vec<_> =
            (0..4).map(|_| (seal(&mut sealer, &plain.bytes()).expect("sealed"), Verdict::Done)).collect();
        let (_, opened) = together(sad, Direction::Open, &packets);
        opened.into_iter().map(Outcome::err).collect()
    };
    let mut check = |sad: &mut Ipsec, expected| {
        for _ in 0..2 {
            assert_eq!(open(sad), [expected; 4]);
        }
    };
    check(&mut sad, None);
    let discard = Policy::new("", Direction::Open, Action::Discard);
    let discard = sad.add_policy(discard, PolicyPlace::First).expect("a policy");
    check(&mut sad, Some(DropReason::InPolBlock));
    let protect = Policy::new("", Direction::Open, Action::Protect(vec![SessionId(0)]));
    let protect = sad.add_policy(protect, PolicyPlace::First).expect("a policy");
    check(&mut sad, None);
    sad.set_policy_sas(protect, vec![]).expect("it protects");
    check(&mut sad, Some(DropReason::InTmplMismatch));
    sad.remove_policy(protect).expect("it is there");
    check(&mut sad, Some(DropReason::InPolBlock));
    sad.remove_policy(discard).expect("it is there");
    check(&mut sad, None);
}

/// The UDP header taken out of an IPv4 packet with ESP in UDP, which needs no key.
fn without_udp(sealed: &[u8]) -> Vec<u8> {
    let mut bare = sealed.to_vec();
    bare.drain(20..28);
    let len = bare.len() as u16;
    bare[2..4].copy_from_slice(&len.to_be_bytes());
    bare[9] = 50;
    bare
}

/// RFC 3948: an SA has one encapsulation, whatever the packet before had.
#[test]
fn a_run_does_not_change_its_encapsulation() {
    // Bit 0 of its number gives an SA its encapsulation: 1 and 3 have UDP, in tunnel and in transport mode.
    for sa in [1, 3] {
        let plain =
            Plain { sa, family: Family::V4, payload: 40, extras: 0, fragment: false, class: 0, padding: 0 };
        let mut sealer = database();
        let sealed: Vec<Vec<u8>> =
            (0..3).map(|_| seal(&mut sealer, &plain.bytes()).expect("sealed")).collect();
        let packets =
            [sealed[0].clone(), without_udp(&sealed[1]), sealed[2].clone()].map(|p| (p, Verdict::Done));
        let outcomes = compare(|| alone(sa), Direction::Open, 3, &packets).expect("alike");
        assert!(outcomes[0].is_ok() && outcomes[2].is_ok(), "SA {sa}");
        assert_eq!(outcomes[1], Err(DropReason::InStateMismatch), "SA {sa}");
    }
}

/// A packet with ESP in UDP as a NAT sends it on after a move: from another address, or from another port.
fn moved(sealed: &[u8], address: bool) -> Vec<u8> {
    let is_v4 = sealed[0] >> 4 == 4;
    let mut packet = sealed.to_vec();
    let (source, port) = if is_v4 { (12..16, 20) } else { (8..24, 40) };
    match address {
        true => packet[source.end - 1] ^= 0x40,
        false => packet[port] ^= 0x40,
    }
    packet
}

/// RFC 7296 2.23: the peer's new address is told with the first packet from there, in a run as alone.
#[test]
fn a_peer_that_moves_in_the_middle_of_a_run_is_seen() {
    // Bit 1 of its number puts an SA in transport mode, which has no runs, bit 4 in IPv6.
    for (sa, address) in [1, 17].into_iter().flat_map(|sa| [(sa, false), (sa, true)]) {
        let plain =
            Plain { sa, family: Family::V4, payload: 40, extras: 0, fragment: false, class: 0, padding: 0 };
        let mut sealer = database();
        let mut sealed: Vec<Vec<u8>> =
            (0..12).map(|_| seal(&mut sealer, &plain.bytes()).expect("sealed")).collect();
        sealed[5..10].iter_mut().for_each(|packet| *packet = moved(packet, address));
        for burst in 1..=sealed.len() {
            let mut sad = alone_with(sa, 64);
            let mut told = Vec::new();
            for packets in sealed.chunks(burst) {
                let packets: Vec<_> = packets.iter().map(|p| (p.clone(), Verdict::Done)).collect();
                let (_, opened) = together(&mut sad, Direction::Open, &packets);
                assert!(opened.iter().all(Result::is_ok), "SA {sa}");
                told.extend(events(&mut sad).into_iter().filter_map(|event| match event.kind {
                    EventKind::Moved(to) => Some(to),
                    _ => None,
                }));
            }
            let home = opening(sa);
            let home = (home.remote, home.udp.remote);
            assert_eq!(told.len(), 2, "SA {sa}, bursts of {burst}: away and back, each told once: {told:?}");
            assert_ne!((told[0].ip(), told[0].port()), home, "SA {sa}");
            assert_eq!((told[1].ip(), told[1].port()), home, "SA {sa}");
        }
    }
}

/// RFC 7296 2.23: a packet that is older than another one does not move its peer, wherever it comes from.
#[test]
fn a_run_believes_no_late_packet_about_its_peer() {
    let sa = 1;
    let plain =
        Plain { sa, family: Family::V4, payload: 40, extras: 0, fragment: false, class: 0, padding: 0 };
    let mut sealer = database();
    let mut sealed: Vec<Vec<u8>> =
        (0..8).map(|_| seal(&mut sealer, &plain.bytes()).expect("sealed")).collect();
    sealed[2] = moved(&sealed[2], true);
    let packets = [0, 1, 3, 2, 4, 2, 5, 6, 7].map(|n| (sealed[n].clone(), Verdict::Done));
    for burst in 1..=packets.len() {
        compare(|| alone_with(sa, 64), Direction::Open, burst, &packets).expect("alike");
        let mut sad = alone_with(sa, 64);
        together(&mut sad, Direction::Open, &packets);
        let moves = events(&mut sad).into_iter().filter(|event| matches!(event.kind, EventKind::Moved(_)));
        assert_eq!(moves.count(), 0);
    }
}

/// RFC 7296 2.23: without a replay window an old packet cannot be told from a new one, and no packet moves the peer.
#[test]
fn a_peer_does_not_move_without_a_replay_window() {
    let sa = 1;
    let plain =
        Plain { sa, family: Family::V4, payload: 40, extras: 0, fragment: false, class: 0, padding: 0 };
    let mut sealer = database();
    let packets: Vec<_> = (0..8)
        .map(|_| seal(&mut sealer, &plain.bytes()).expect("sealed"))
        .map(|packet| (moved(&packet, true), Verdict::Done))
        .collect();
    for burst in [1, 8] {
        let mut sad = alone_with(sa, 0);
        for packets in packets.chunks(burst) {
            let (_, opened) = together(&mut sad, Direction::Open, packets);
            assert!(opened.iter().all(Result::is_ok));
        }
        assert!(events(&mut sad).iter().all(|event| !matches!(event.kind, EventKind::Moved(_))));
    }
}

/// RFC 3948 2.1: an SA takes its packets from whatever port they come, and to, as long as one of both is NAT traversal's;
/// and a run heeds the datagram's length.
#[test]
fn a_run_in_udp_ends_where_ports_or_lengths_change() {
    let sa = 1;
    let plain =
        Plain { sa, family: Family::V4, payload: 40, extras: 0, fragment: false, class: 0, padding: 0 };
    let mut sealer = database();
    let sealed: Vec<Vec<u8>> = (0..6).map(|_| seal(&mut sealer, &plain.bytes()).expect("sealed")).collect();
    let change = |n: usize, at: usize, bytes: [u8; 2]| {
        let mut packets = sealed.clone();
        packets[n][at..at + 2].copy_from_slice(&bytes);
        packets.into_iter().map(|packet| (packet, Verdict::Done)).collect::<Vec<_>>()
    };
    let len = u16::from_be_bytes([sealed[0][24], sealed[0][25]]);
    let ports = [4500u16, 4501, 0, 0xffff].map(u16::to_be_bytes);
    let lengths = [0, 7, 8, 9, 16, len - 1, len, len + 1, 0xffff].map(u16::to_be_bytes);
    for n in 0..sealed.len() {
        for packets in [20, 22]
            .into_iter()
            .flat_map(|at| ports.map(|port| change(n, at, port)))
            .chain(lengths.map(|length| change(n, 24, length)))
        {
            compare(|| alone(sa), Direction::Open, sealed.len(), &packets).expect("alike");
        }
    }
}
