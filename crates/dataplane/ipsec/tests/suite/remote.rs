//! SAs of other cores: every core decides alike, and says whose a packet is without touching it.

use crate::traffic::{Flow, add_in, add_out, buffer, sa, sealed, ts};
use forebay_crypto::{Direction, Job, JobSpec, Verdict};
use forebay_ipsec::{
    Action, DropReason, Encapsulation, Ipsec, IvRange, Policy, PolicyPlace, Prepared, SaConfig, SadError,
    Stop,
};
use forebay_wire::protocol;
use proptest::prelude::*;

const CORES: u16 = 3;

/// SA number `n` of the tests, and its core.
fn config(n: u32) -> (SaConfig, u16) {
    let remote = format!("10.{n}.0.0/16");
    (sa(n, &["10.1.0.0/16"], &[&remote]), (n % u32::from(CORES)) as u16)
}

/// Databases of all cores with the same SAs, each at home in one of them, and the same policies.
fn cores(policies: bool) -> Vec<Ipsec> {
    let core = |core: u16| {
        let mut sad = Ipsec::default();
        let mut sessions = [vec![], vec![]];
        for n in 2..8 {
            let (config, home) = config(n);
            let both = match home == core {
                true => [add_out(&mut sad, config.clone()), add_in(&mut sad, config)],
                false => [Direction::Seal, Direction::Open]
                    .map(|direction| sad.add_remote(direction, config.clone(), home).expect("no fault")),
            };
            sessions.iter_mut().zip(both).for_each(|(list, session)| list.push(session));
        }
        if policies {
            for (direction, sessions) in [Direction::Seal, Direction::Open].into_iter().zip(sessions) {
                let mut bypass = Policy::new("bypass", direction, Action::Bypass);
                bypass.remote_ts = ts(&["10.3.0.0/17"]);
                let mut discard = Policy::new("discard", direction, Action::Discard);
                discard.remote_ts = ts(&["10.4.128.0/17"]);
                for policy in [bypass, discard, Policy::new("protect", direction, Action::Protect(sessions))]
                {
                    sad.add_policy(policy, PolicyPlace::Last).expect("SAs that are there");
                }
            }
        }
        sad
    };
    (0..CORES).map(core).collect()
}

/// What becomes of a packet at first, with the SA's name in the place of its number.
fn prepare(sad: &mut Ipsec, direction: Direction, bytes: &[u8]) -> Result<Prepared, DropReason> {
    let (mut packet, mut spec) = (buffer(bytes), JobSpec::default());
    let before = packet.offset();
    let prepared = sad.prepare(direction, &mut packet, &mut spec);
    match prepared {
        Ok(Prepared::Job) => drop(sad.complete(&mut packet, &spec, Verdict::Failed)),
        Ok(Prepared::Remote(_)) => {
            assert_eq!((packet.offset(), packet.bytes()), (before, bytes), "untouched")
        }
        _ => {}
    }
    prepared
}

fn flow(remote: u8, host: u8) -> Flow {
    Flow::udp("10.1.0.1", &format!("10.{remote}.{host}.1"), (1, 2))
}

proptest! {
    /// Beside each other stand a database with all SAs, and one for each core.
    #[test]
    fn all_cores_decide_as_one_would(
        policies: bool, outbound: bool, remote in 0u8..10, host: u8, sequence in 1u32..1_000,
    ) {
        let mut one = Ipsec::default();
        let mut sessions = [vec![], vec![]];
        for n in 2..8 {
            sessions[0].push(add_out(&mut one, config(n).0));
            sessions[1].push(add_in(&mut one, config(n).0));
        }
        if policies {
            for (id, policy) in [Direction::Seal, Direction::Open].into_iter().flat_map(|direction| {
                cores(true)[0].policies(direction).collect::<Vec<_>>()
            }) {
                let _ = id;
                let sas = sessions[usize::from(policy.direction == Direction::Open)].clone();
                let action = match policy.action {
                    Action::Protect(_) => Action::Protect(sas),
                    ref other => other.clone(),
                };
                one.add_policy(Policy { action, ..policy }, PolicyPlace::Last).expect("SAs that are there");
            }
        }
        let (direction, bytes) = match outbound {
            true => (Direction::Seal, flow(remote, host).bytes()),
            false => (Direction::Open, sealed(remote.into(), sequence, &flow(remote, host).back())),
        };
        let wanted = prepare(&mut one, direction, &bytes);
        for (core, sad) in cores(policies).iter_mut().enumerate() {
            let found = prepare(sad, direction, &bytes);
            match (wanted, found) {
                (Ok(Prepared::Job), Ok(Prepared::Job)) => {
                    prop_assert_eq!(usize::from(remote) % usize::from(CORES), core);
                }
                (Ok(Prepared::Job), Ok(Prepared::Remote(home))) => {
                    prop_assert!(usize::from(home) != core);
                    prop_assert_eq!(u32::from(home), u32::from(remote) % u32::from(CORES));
                }
                _ => prop_assert_eq!(found, wanted),
            }
        }
    }
}

#[test]
fn a_burst_stops_at_what_is_another_s() {
    let mut sad = cores(false).remove(0);
    let job = |remote| Job::new(buffer(&flow(remote, 0).bytes()), JobSpec::default(), 0);
    let mut jobs: Vec<Job> = [3, 3, 4, 6, 5].map(job).into();
    let mut stops = vec![];
    while let Err((place, stop)) = sad.prepare_burst(Direction::Seal, &mut jobs) {
        stops.push((jobs.remove(place).packet.bytes().to_vec(), stop));
        // Those before it are prepared.
        jobs.drain(..place).for_each(drop);
    }
    let away = |remote| (flow(remote, 0).bytes(), Stop::Remote(u16::from(remote) % CORES));
    assert_eq!(stops, [away(4), away(5)]);
}

#[test]
fn it_comes_and_goes_like_others() {
    let mut sad = Ipsec::default();
    let (config, _) = config(2);
    let away = sad.add_remote(Direction::Open, config.clone(), 7).expect("no fault");
    assert_eq!(
        (sad.remote(away), sad.direction(away), sad.sequence(away)),
        (Some(7), Some(Direction::Open), None)
    );
    assert!(sad.is_local(&config.local));
    assert!(matches!(sad.add_inbound(config.clone()), Err(SadError::OverlappingSpi { .. })));
    let bytes = sealed(2, 1, &flow(2, 0).back());
    assert_eq!(prepare(&mut sad, Direction::Open, &bytes), Ok(Prepared::Remote(7)));
    // Not for this gateway.
    let mut stranger = bytes.clone();
    stranger[9] = protocol::TCP;
    assert_eq!(prepare(&mut sad, Direction::Open, &stranger), Err(DropReason::InNoIpsec));
    assert!(sad.remove(away).is_some() && sad.remote(away).is_none() && !sad.is_local(&config.local));
    assert_eq!(sad.add_inbound(config), Ok(away));
    assert_eq!(prepare(&mut sad, Direction::Open, &bytes), Ok(Prepared::Job));
}

#[test]
fn nested_sas_are_at_one_core() {
    let mut sad = Ipsec::default();
    let here = add_out(&mut sad, config(2).0);
    let [there, too, elsewhere] = [(3, 1), (4, 1), (5, 2)]
        .map(|(n, core)| sad.add_remote(Direction::Seal, config(n).0, core).expect("no fault"));
    for (inner, outer) in [(here, there), (there, here), (there, elsewhere)] {
        assert_eq!(sad.nest(inner, outer), Err(SadError::CannotNest { inner, outer }));
    }
    assert_eq!(sad.nest(there, too), Ok(()));
    assert_eq!(prepare(&mut sad, Direction::Seal, &flow(3, 0).bytes()), Ok(Prepared::Remote(1)));
}

#[test]
fn what_comes_out_of_one_core_s_sa_for_another_s_is_not_opened() {
    let mut sad = Ipsec::default();
    // A tunnel with a packet in it that is ESP of an SA elsewhere.
    let outer = SaConfig { local_ts: vec![], remote_ts: vec![], ..config(2).0 };
    add_in(&mut sad, outer);
    sad.add_remote(Direction::Open, config(3).0, 1).expect("no fault");
    let inner = sealed(3, 1, &flow(3, 0).back());
    let mut esp = [(0x1002_u32).to_be_bytes(), 1_u32.to_be_bytes(), [0; 4], [0; 4]].concat();
    esp.extend_from_slice(&inner);
    let pad = (4 - (inner.len() + 2) % 4) % 4;
    esp.extend((1..=pad as u8).chain([pad as u8, 4]));
    esp.extend_from_slice(&[0; 16]);
    let mut packet = sealed(2, 1, &flow(2, 0).back())[..20].to_vec();
    let [high, low] = ((20 + esp.len()) as u16).to_be_bytes();
    (packet[2], packet[3]) = (high, low);
    packet.extend(esp);
    let (mut packet, mut spec) = (buffer(&packet), JobSpec::default());
    assert_eq!(sad.prepare(Direction::Open, &mut packet, &mut spec), Ok(Prepared::Job));
    assert_eq!(sad.complete(&mut packet, &spec, Verdict::Done), Ok(forebay_ipsec::Next::Again));
    let mut path = forebay_ipsec::Path::default();
    assert_eq!(sad.again(&mut path, &mut packet, &mut spec), Err(DropReason::InNestAway));
}

#[test]
fn a_peer_moves_for_all_cores() {
    let mut sad = Ipsec::default();
    let udp = |n| SaConfig { encapsulation: Encapsulation::Udp, ..config(n).0 };
    let away = sad.add_remote(Direction::Seal, udp(2), 1).expect("no fault");
    let to = "198.51.100.77:1024".parse().expect("an address");
    assert_eq!((sad.move_peer(away, to), sad.move_peer(away, to)), (Ok(true), Ok(false)));
    // Its old place is free, its new one is not.
    assert!(sad.add_outbound(udp(2), IvRange::for_throwaway_key()).is_ok());
    let there = SaConfig { remote: to.ip(), ..udp(2) };
    assert!(matches!(sad.add_remote(Direction::Seal, there, 1), Err(SadError::OverlappingSpi { .. })));
}
