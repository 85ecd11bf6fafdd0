//! Removal of SAs: their packets in flight, their numbers, their SPIs, their policies.

use crate::traffic::{Flow, add_in, add_out, buffer, receive, sa, sealed, send};
use forebay_crypto::{Direction, JobSpec, Packet, SessionId, Verdict};
use forebay_ipsec::{Action, DropReason, Ipsec, Policy, PolicyPlace, Prepared, SadError, Spi, Stop};

fn flow() -> Flow {
    Flow::udp("10.1.0.1", "10.2.0.1", (1, 2))
}

fn under_way(sad: &mut Ipsec, direction: Direction, bytes: &[u8]) -> (Packet, JobSpec) {
    let (mut packet, mut spec) = (buffer(bytes), JobSpec::default());
    assert_eq!(sad.prepare(direction, &mut packet, &mut spec), Ok(Prepared::Job));
    (packet, spec)
}

#[test]
fn a_job_of_a_removed_sa_is_not_completed_into_its_successor() {
    let mut sad = Ipsec::default();
    let old = add_in(&mut sad, sa(0, &[], &[]));
    let mut jobs: Vec<_> =
        (1..4).map(|n| under_way(&mut sad, Direction::Open, &sealed(0, n, &flow().back()))).collect();
    sad.remove(old).expect("it is there");
    assert!(sad.remove(old).is_none() && sad.config(old).is_none() && sad.iter().count() == 0);
    // The same SPI is added again at once; it gets another number, because jobs of the old SA are in flight.
    let new = add_in(&mut sad, sa(0, &[], &[]));
    assert_ne!(new, old);
    for verdict in [Verdict::Done, Verdict::AuthFailed, Verdict::Failed] {
        let (mut packet, spec) = jobs.pop().expect("three jobs");
        assert_eq!(sad.complete(&mut packet, &spec, verdict), Err(DropReason::InStateInvalid));
    }
    // Nothing of that is in the new one's window or counters.
    for sequence in 1..4 {
        assert_eq!(receive(&mut sad, 0, sequence, &flow().back()), Ok(()));
    }
    assert_eq!(sad.iter().map(|(_, _, _, counters)| counters.packets).sum::<u64>(), 3);
    // Now the number is free.
    assert_eq!(add_out(&mut sad, sa(1, &[], &[])), old);
}

#[test]
fn outbound_jobs_of_a_removed_sa_are_dropped_one_by_one_and_in_bursts() {
    let mut sad = Ipsec::default();
    let old = add_out(&mut sad, sa(0, &[], &[]));
    let job = || forebay_crypto::Job::new(buffer(&flow().bytes()), JobSpec::default(), 0);
    let mut jobs: Vec<_> = (0..5).map(|_| job()).collect();
    assert_eq!(sad.prepare_burst(Direction::Seal, &mut jobs), Ok(()));
    sad.remove(old).expect("it is there");
    jobs.iter_mut().for_each(|job| job.verdict = Verdict::Done);
    while !jobs.is_empty() {
        assert_ne!(add_out(&mut sad, sa(jobs.len() as u32, &[], &[])), old);
        assert_eq!(sad.complete_burst(&mut jobs), Err((0, Stop::Drop(DropReason::OutStateInvalid))));
        jobs.remove(0);
    }
    assert_eq!(add_out(&mut sad, sa(9, &[], &[])), old);
    // Completing what was never prepared sets nothing free twice.
    sad.remove(old).expect("it is there");
    let spec = JobSpec { session: old, ..JobSpec::default() };
    assert_eq!(
        sad.complete(&mut buffer(&flow().bytes()), &spec, Verdict::Done),
        Err(DropReason::OutStateInvalid)
    );
    let two = [10, 11].map(|n| add_out(&mut sad, sa(n, &[], &[])));
    assert_ne!(two[0], two[1]);
}

#[test]
fn a_number_is_free_once_all_its_jobs_are_complete_whatever_became_of_them() {
    let mut sad = Ipsec::default();
    let one = add_in(&mut sad, sa(0, &[], &["10.2.0.0/16"]));
    // Good, outside the selectors, a replay, a forgery, a dummy's worth of failure.
    let outside = Flow::udp("10.9.0.1", "10.1.0.1", (1, 2));
    let mut jobs = [
        under_way(&mut sad, Direction::Open, &sealed(0, 1, &flow().back())),
        under_way(&mut sad, Direction::Open, &sealed(0, 1, &flow().back())),
        under_way(&mut sad, Direction::Open, &sealed(0, 2, &outside)),
        under_way(&mut sad, Direction::Open, &sealed(0, 3, &flow().back())),
        under_way(&mut sad, Direction::Open, &sealed(0, 4, &flow().back())),
    ];
    let verdicts = [Verdict::Done, Verdict::Done, Verdict::Done, Verdict::AuthFailed, Verdict::Failed];
    let outcomes: Vec<_> = jobs
        .iter_mut()
        .zip(verdicts)
        .map(|((packet, spec), verdict)| sad.complete(packet, spec, verdict).err())
        .collect();
    use DropReason::{InError, InStateMismatch, InStateProtoError, InStateSeqError};
    assert_eq!(
        outcomes,
        [None, Some(InStateSeqError), Some(InStateMismatch), Some(InStateProtoError), Some(InError)]
    );
    sad.remove(one).expect("it is there");
    assert_eq!(add_in(&mut sad, sa(0, &[], &[])), one);
}

/// The same in bursts, which count by runs.
#[test]
fn a_number_is_free_once_all_bursts_are_complete() {
    let mut sad = Ipsec::default();
    let one = add_in(&mut sad, sa(0, &[], &["10.2.0.0/16"]));
    let outside = Flow::udp("10.9.0.1", "10.1.0.1", (1, 2));
    let packet = |n: u32| match n % 4 {
        0 => sealed(0, n, &outside),
        _ => sealed(0, n, &flow().back()),
    };
    let mut jobs: Vec<_> = (1..30)
        .map(|n| forebay_crypto::Job::new(buffer(&packet(n)), JobSpec::default(), u64::from(n)))
        .collect();
    assert_eq!(sad.prepare_burst(Direction::Open, &mut jobs), Ok(()));
    for job in &mut jobs {
        job.verdict = if job.token % 5 == 0 { Verdict::AuthFailed } else { Verdict::Done };
    }
    let mut from = 0;
    while let Err((place, _)) = sad.complete_burst(&mut jobs[from..]) {
        from += place;
        jobs.remove(from);
    }
    sad.remove(one).expect("it is there");
    assert_eq!(add_in(&mut sad, sa(0, &[], &[])), one);
}

#[test]
fn spis_are_free_again() {
    let mut sad = Ipsec::default();
    let (out, into) = (add_out(&mut sad, sa(0, &[], &[])), add_in(&mut sad, sa(0, &[], &[])));
    let spi = Spi::new(0x1000).expect("not zero");
    let clash = |first: SessionId| SadError::OverlappingSpi { first: first.0 as usize, second: 2, spi };
    assert_eq!(sad.add_inbound(sa(0, &[], &[])), Err(clash(into)));
    let ivs = forebay_ipsec::IvRange::for_throwaway_key;
    assert_eq!(sad.add_outbound(sa(0, &[], &[]), ivs()), Err(clash(out)));
    sad.remove(out).expect("it is there");
    sad.remove(into).expect("it is there");
    assert_eq!(receive(&mut sad, 0, 1, &flow().back()), Err(DropReason::InNoStates));
    assert_eq!(send(&mut sad, &flow()), Err(DropReason::OutNoStates));
    add_out(&mut sad, sa(0, &[], &[]));
    add_in(&mut sad, sa(0, &[], &[]));
    assert_eq!(receive(&mut sad, 0, 1, &flow().back()), Ok(()));
    assert!(send(&mut sad, &flow()).is_ok());
}

/// A successor with the number of a removed SA does not inherit its policies or its runs.
#[test]
fn a_removed_sa_leaves_its_policies() {
    let mut sad = Ipsec::default();
    let (one, other) = (add_out(&mut sad, sa(0, &[], &[])), add_out(&mut sad, sa(1, &[], &[])));
    let policy = Policy::new("p", Direction::Seal, Action::Protect(vec![one, other]));
    let id = sad.add_policy(policy, PolicyPlace::Last).expect("no fault");
    assert_eq!(send(&mut sad, &flow()), Ok(Some(one)));
    sad.remove(one).expect("it is there");
    assert_eq!(sad.policy(id).map(|policy| policy.action), Some(Action::Protect(vec![other])));
    assert_eq!(send(&mut sad, &flow()), Ok(Some(other)));
    sad.remove(other).expect("it is there");
    assert_eq!(send(&mut sad, &flow()), Err(DropReason::OutNoStates));
    let successor = add_out(&mut sad, sa(2, &[], &[]));
    assert_eq!(successor, one);
    assert_eq!(send(&mut sad, &flow()), Err(DropReason::OutNoStates), "no policy names it");
    sad.set_policy_sas(id, vec![successor]).expect("no fault");
    assert_eq!(send(&mut sad, &flow()), Ok(Some(successor)));
}

/// One policy for very many SAs, each for its own addresses, and which are rekeyed.
#[test]
fn a_policy_of_a_thousand_sas() {
    let mut sad = Ipsec::default();
    let net = |n: u32| format!("10.2.{}.{}", n >> 8, n & 0xff);
    let host = |n: u32| Flow::udp("10.1.0.1", &net(n), (1, 2));
    let mut sas: Vec<_> = (0..1_000).map(|n| add_out(&mut sad, sa(n, &[], &[&net(n)]))).collect();
    let policy = Policy::new("p", Direction::Seal, Action::Protect(sas.clone()));
    let id = sad.add_policy(policy, PolicyPlace::Last).expect("no fault");
    for round in 1..4u32 {
        for n in (0..1_000).step_by(7) {
            assert_eq!(send(&mut sad, &host(n)), Ok(Some(sas[n as usize])), "{n}");
            let new = add_out(&mut sad, sa(10_000 * round + n, &[], &[&net(n)]));
            sad.put_policy_sa_first(id, new).expect("no fault");
            assert_eq!(send(&mut sad, &host(n)), Ok(Some(new)), "{n}");
            sad.put_policy_sa_first(id, sas[n as usize]).expect("no fault");
            assert_eq!(send(&mut sad, &host(n)), Ok(Some(sas[n as usize])), "{n}");
            sad.remove(sas[n as usize]).expect("it is there");
            assert_eq!(send(&mut sad, &host(n)), Ok(Some(new)), "{n}");
            sas[n as usize] = new;
        }
    }
    let Some(Action::Protect(mut listed)) = sad.policy(id).map(|policy| policy.action) else { panic!() };
    listed.sort();
    sas.sort();
    assert_eq!(listed, sas);
    let all = || sad.iter().map(|(session, ..)| session);
    for from in [0, sas[1].0, sas[1].0 + 1, u32::MAX] {
        let behind = sad.iter_from(SessionId(from)).map(|(session, ..)| session);
        assert!(behind.eq(all().filter(|session| session.0 >= from)), "from {from}");
    }
    sad.remove_policy(id).expect("it is there");
    assert_eq!(sad.policies(Direction::Seal).count(), 0);
}

/// Many SAs, so that bursts are loaded ahead: they come to the same SAs as packets one by one.
#[test]
fn bursts_over_many_sas() {
    let mut sad = Ipsec::seeded(3);
    let net = |n: u32| format!("10.2.{}.{}", n >> 8, n & 0xff);
    for n in 0..1_000 {
        add_out(&mut sad, sa(n, &["10.1.0.0/16"], &[&net(n)]));
        add_in(&mut sad, sa(1_000 + n, &["10.1.0.0/16"], &[&net(n)]));
    }
    for n in (0..1_000).step_by(10) {
        sad.remove(SessionId(2 * n)).expect("it is there");
    }
    for round in 0..3u32 {
        let numbers: Vec<u32> =
            (0..70).map(|k| (k * 193 + round * 7) % 1_000).filter(|n| n % 10 != 0).collect();
        let mut jobs: Vec<_> = numbers
            .iter()
            .map(|&n| {
                let flow = Flow::udp("10.1.0.1", &net(n), (1, 2));
                forebay_crypto::Job::new(buffer(&flow.bytes()), JobSpec::default(), 0)
            })
            .collect();
        assert_eq!(sad.prepare_burst(Direction::Seal, &mut jobs), Ok(()));
        assert!(jobs.iter().map(|job| job.spec.session.0).eq(numbers.iter().map(|n| 2 * n)));
        let mut jobs: Vec<_> = numbers
            .iter()
            .map(|&n| {
                let flow = Flow::udp(&net(n), "10.1.0.1", (1, 2));
                let bytes = sealed(1_000 + n, round + 1, &flow);
                forebay_crypto::Job::new(buffer(&bytes), JobSpec::default(), 0)
            })
            .collect();
        assert_eq!(sad.prepare_burst(Direction::Open, &mut jobs), Ok(()));
        assert!(jobs.iter().map(|job| job.spec.session.0).eq(numbers.iter().map(|n| 2 * n + 1)));
        jobs.iter_mut().for_each(|job| job.verdict = Verdict::Done);
        assert_eq!(sad.complete_burst(&mut jobs), Ok(()));
    }
}
