//! SAs that are bound to CPUs (RFC 9611): which SA each core's packets go through.

use std::net::IpAddr;

use crate::traffic::{Flow, add_out, sa, send};
use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{Action, DropReason, DscpSet, Ipsec, Policy, PolicyId, PolicyPlace, SaConfig};

const HERE: &str = "10.1.0.0/16";
const THERE: &str = "10.2.0.0/16";

/// SA number `n` for the traffic of all of these tests.
fn bound(n: u32, cpu: Option<u32>) -> SaConfig {
    SaConfig { cpu, ..sa(n, &[HERE], &[THERE]) }
}

fn core(cpu: u32) -> Ipsec {
    let mut sad = Ipsec::default();
    sad.set_cpu(cpu);
    sad
}

fn flow() -> Flow {
    Flow::udp("10.1.0.1", "10.2.0.1", (1, 2))
}

fn protect(sad: &mut Ipsec, sas: Vec<SessionId>) -> PolicyId {
    let policy = Policy::new("all", Direction::Seal, Action::Protect(sas));
    sad.add_policy(policy, PolicyPlace::Last).expect("SAs that are there")
}

#[test]
fn a_core_sends_by_its_own_sa_in_any_order_and_falls_back_when_that_is_removed() {
    for (order, policies) in [([0, 1, 2], false), ([2, 1, 0], false), ([0, 1, 2], true), ([2, 1, 0], true)] {
        let mut sad = core(1);
        let configs = [bound(0, None), bound(1, Some(0)), bound(2, Some(1))];
        let mut sessions = [SessionId(u32::MAX); 3];
        for n in order {
            sessions[n] = add_out(&mut sad, configs[n].clone());
        }
        if policies {
            protect(&mut sad, order.map(|n| sessions[n]).to_vec());
        }
        let [fallback, _, own] = sessions;
        assert_eq!(send(&mut sad, &flow()), Ok(Some(own)), "{order:?} {policies}");
        sad.remove(own);
        assert_eq!(send(&mut sad, &flow()), Ok(Some(fallback)), "{order:?} {policies}");
        // The SA of another CPU is for none of these packets.
        sad.remove(fallback);
        assert_eq!(send(&mut sad, &flow()), Err(DropReason::OutNoStates), "{order:?} {policies}");
    }
}

#[test]
fn an_sa_of_this_cpu_takes_no_packets_of_an_earlier_sa_for_other_traffic() {
    for policies in [false, true] {
        let mut sad = core(0);
        let narrow = add_out(&mut sad, sa(0, &[HERE], &["10.2.0.0/16[tcp/80]"]));
        let voice = add_out(&mut sad, SaConfig { dscp: DscpSet::of([46]), ..bound(1, None) });
        let fallback = add_out(&mut sad, bound(2, None));
        let own = add_out(&mut sad, bound(3, Some(0)));
        if policies {
            protect(&mut sad, vec![narrow, voice, fallback, own]);
        }
        assert_eq!(send(&mut sad, &Flow::tcp("10.1.0.1", "10.2.0.1", (9, 80))), Ok(Some(narrow)));
        assert_eq!(send(&mut sad, &Flow { dscp: 46, ..flow() }), Ok(Some(voice)));
        assert_eq!(send(&mut sad, &flow()), Ok(Some(own)));
    }
}

#[test]
fn an_sa_of_this_cpu_stands_in_only_within_its_policy() {
    let mut sad = core(0);
    let [one, two, own] = [(0, None), (1, None), (2, Some(0))].map(|(n, cpu)| {
        // Without selectors of their own: the policies have them.
        add_out(&mut sad, SaConfig { local_ts: vec![], remote_ts: vec![], ..bound(n, cpu) })
    });
    let mut first = Policy::new("first", Direction::Seal, Action::Protect(vec![one]));
    first.remote_ts = crate::traffic::ts(&["10.2.1.0/24"]);
    sad.add_policy(first, PolicyPlace::Last).expect("an SA that is there");
    protect(&mut sad, vec![two, own]);
    assert_eq!(send(&mut sad, &Flow::udp("10.1.0.1", "10.2.1.1", (1, 2))), Ok(Some(one)));
    assert_eq!(send(&mut sad, &flow()), Ok(Some(own)));
}

#[test]
fn a_rekeyed_sa_of_this_cpu_is_used_at_once_and_the_old_one_until_then() {
    let mut sad = core(3);
    let policy = protect(&mut sad, vec![]);
    let fallback = add_out(&mut sad, bound(0, None));
    sad.put_policy_sa_first(policy, fallback).unwrap();
    let mut used = fallback;
    for n in 1..12 {
        // Very many get an index; the fallback SA is replaced in between.
        let own = add_out(&mut sad, bound(n, Some(3)));
        assert_eq!(send(&mut sad, &flow()), Ok(Some(used)), "it is not in the policy yet");
        sad.put_policy_sa_first(policy, own).unwrap();
        assert_eq!(send(&mut sad, &flow()), Ok(Some(own)));
        let new_fallback = add_out(&mut sad, bound(100 + n, None));
        sad.put_policy_sa_first(policy, new_fallback).unwrap();
        assert_eq!(send(&mut sad, &flow()), Ok(Some(own)));
        used = own;
    }
    // Back again, the newest first.
    for n in (1..12).rev() {
        let own = sad.iter().find(|(_, _, sa, _)| sa.spi == bound(n, None).spi).expect("it is there").0;
        assert_eq!(send(&mut sad, &flow()), Ok(Some(own)));
        sad.remove(own);
    }
    let newest = sad.iter().find(|(_, _, sa, _)| sa.spi == bound(111, None).spi).expect("it is there").0;
    assert_eq!(send(&mut sad, &flow()), Ok(Some(newest)));
}

#[test]
fn cores_that_share_a_database_send_by_their_own_sas_and_remember_their_own_decisions() {
    for policies in [false, true] {
        let mut sad = core(0);
        let one = add_out(&mut sad, bound(0, Some(1)));
        let zero = add_out(&mut sad, bound(1, Some(0)));
        if !policies {
            sad.set_cpu(2);
            assert_eq!(send(&mut sad, &flow()), Err(DropReason::OutNoStates), "neither is for core 2");
        }
        let fallback = add_out(&mut sad, bound(2, None));
        if policies {
            protect(&mut sad, vec![one, zero, fallback]);
        }
        for _ in 0..3 {
            for (cpu, sa) in [(0, zero), (1, one), (2, fallback)] {
                sad.set_cpu(cpu);
                assert_eq!(send(&mut sad, &flow()), Ok(Some(sa)), "core {cpu}, {policies}");
            }
        }
    }
}

#[test]
fn a_flow_of_the_fallback_sa_is_noted_once_for_each_policy_that_wants_sas_per_cpu() {
    for wants in [false, true] {
        let mut sad = core(1);
        let fallback = add_out(&mut sad, bound(0, None));
        let policy =
            Policy { per_cpu: wants, ..Policy::new("all", Direction::Seal, Action::Protect(vec![fallback])) };
        let policy = sad.add_policy(policy, PolicyPlace::Last).unwrap();
        for port in 0..5 {
            assert_eq!(send(&mut sad, &Flow::udp("10.1.0.1", "10.2.0.1", (port, 2))), Ok(Some(fallback)));
        }
        let address = |text: &str| -> IpAddr { text.parse().unwrap() };
        let noted = vec![(address("10.1.0.1"), address("10.2.0.1"))];
        assert_eq!(sad.take_fallback_flows(), if wants { noted.clone() } else { vec![] });
        assert_eq!(send(&mut sad, &flow()), Ok(Some(fallback)));
        assert_eq!(sad.take_fallback_flows(), vec![], "it is known");
        sad.forget_decisions();
        assert_eq!(send(&mut sad, &flow()), Ok(Some(fallback)));
        assert_eq!(sad.take_fallback_flows(), if wants { noted } else { vec![] });
        // With an SA of its own there is nothing to ask for.
        let own = add_out(&mut sad, bound(1, Some(1)));
        sad.put_policy_sa_first(policy, own).unwrap();
        assert_eq!(send(&mut sad, &flow()), Ok(Some(own)));
        assert_eq!(sad.take_fallback_flows(), vec![]);
    }
}
