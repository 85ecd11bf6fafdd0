//! Policies by scenario: what RFC 4301 says of packets that go out, come in protected, and come in clear.

use crate::traffic::{Flow, Upper, add_in, add_out, buffer, receive, receive_clear, sa, sealed, send, ts};
use forebay_crypto::{Direction, JobSpec, SessionId};
use forebay_ipsec::{Action, DropReason, DscpSet, Ipsec, Policy, PolicyError, PolicyPlace, SaConfig};

fn policy(direction: Direction, local: &[&str], remote: &[&str], action: Action) -> Policy {
    Policy { local_ts: ts(local), remote_ts: ts(remote), ..Policy::new("p", direction, action) }
}

fn out(local: &[&str], remote: &[&str], action: Action) -> Policy {
    policy(Direction::Seal, local, remote, action)
}

fn into(local: &[&str], remote: &[&str], action: Action) -> Policy {
    policy(Direction::Open, local, remote, action)
}

fn add(sad: &mut Ipsec, policy: Policy) -> forebay_ipsec::PolicyId {
    sad.add_policy(policy, PolicyPlace::Last).expect("a policy without fault")
}

const HERE: &str = "10.1.0.0/16";
const THERE: &str = "10.2.0.0/16";

fn web() -> Flow {
    Flow::tcp("10.1.0.1", "10.2.0.1", (40_000, 80))
}

#[test]
fn without_policies_the_sas_selectors_decide_in_their_order() {
    let mut sad = Ipsec::default();
    let by_port = add_out(&mut sad, sa(0, &[HERE], &["10.2.0.0/16[tcp/80]"]));
    let all = add_out(&mut sad, sa(1, &[HERE], &[THERE]));
    assert_eq!(send(&mut sad, &web()), Ok(Some(by_port)));
    assert_eq!(send(&mut sad, &Flow::tcp("10.1.0.1", "10.2.0.1", (40_000, 81))), Ok(Some(all)));
    assert_eq!(send(&mut sad, &web()), Ok(Some(by_port)), "behind another port of the same addresses");
    assert_eq!(send(&mut sad, &Flow::udp("10.1.0.1", "10.2.0.1", (40_000, 80))), Ok(Some(all)));
    assert_eq!(send(&mut sad, &Flow::tcp("10.1.0.1", "10.3.0.1", (1, 80))), Err(DropReason::OutNoStates));
}

#[test]
fn where_policies_are_required_none_is_a_decision_too() {
    for required in [false, true] {
        let mut sad = Ipsec::default();
        if required {
            sad.require_policies();
        }
        let tunnel = add_out(&mut sad, sa(0, &[], &[]));
        let inbound = add_in(&mut sad, sa(1, &[], &[]));
        let mut sequence = 0;
        let mut arrives = |sad: &mut Ipsec| {
            sequence += 1;
            receive(sad, 1, sequence, &web().back())
        };
        let (sends, opens) = match required {
            false => (Ok(Some(tunnel)), Ok(())),
            true => (Err(DropReason::OutNoPols), Err(DropReason::InNoPols)),
        };
        for _ in 0..2 {
            assert_eq!(send(&mut sad, &web()), sends);
            assert_eq!(arrives(&mut sad), opens);
        }
        // With policies both are the same, and when they are gone again as before.
        let going = add(&mut sad, out(&[], &[], Action::Protect(vec![tunnel])));
        let coming = add(&mut sad, into(&[], &[], Action::Protect(vec![inbound])));
        assert_eq!((send(&mut sad, &web()), arrives(&mut sad)), (Ok(Some(tunnel)), Ok(())));
        assert!(sad.remove_policy(going).is_some() && sad.remove_policy(coming).is_some());
        assert_eq!((send(&mut sad, &web()), arrives(&mut sad)), (sends, opens));
    }
}

#[test]
fn exceptions_inside_a_protected_prefix() {
    let mut sad = Ipsec::default();
    let tunnel = add_out(&mut sad, sa(0, &[HERE], &[THERE]));
    add(&mut sad, out(&[HERE], &["10.2.0.53[udp/53]"], Action::Bypass));
    add(&mut sad, out(&["10.1.6.6"], &[], Action::Discard));
    add(&mut sad, out(&[HERE], &[THERE], Action::Protect(vec![tunnel])));
    let dns = Flow::udp("10.1.0.1", "10.2.0.53", (5_353, 53));
    assert_eq!(send(&mut sad, &dns), Ok(None));
    assert_eq!(send(&mut sad, &Flow { upper: Upper::Ports(6, 5_353, 53), ..dns }), Ok(Some(tunnel)));
    assert_eq!(send(&mut sad, &dns), Ok(None));
    assert_eq!(send(&mut sad, &Flow::udp("10.1.6.6", "10.2.0.9", (1, 1))), Err(DropReason::OutPolBlock));
    // The order is what counts: the exception stands before the discard.
    assert_eq!(send(&mut sad, &Flow::udp("10.1.6.6", "10.2.0.53", (1, 53))), Ok(None));
    assert_eq!(send(&mut sad, &Flow::udp("10.9.0.1", "10.2.0.9", (1, 1))), Err(DropReason::OutNoPols));
}

/// Bursts stop at a packet that has no job, and no run carries it along.
#[test]
fn an_exception_in_the_middle_of_a_run() {
    use forebay_crypto::Job;
    use forebay_ipsec::Stop;
    let mut sad = Ipsec::default();
    let tunnel = add_out(&mut sad, sa(0, &[HERE], &[THERE]));
    add(&mut sad, out(&[], &["10.2.0.0/16[udp/53]"], Action::Bypass));
    add(&mut sad, out(&[], &["10.2.0.0/16[udp/54]"], Action::Discard));
    add(&mut sad, out(&[HERE], &[THERE], Action::Protect(vec![tunnel])));
    let ports = [80, 80, 53, 80, 54, 53, 80];
    let flow = |port| Flow::udp("10.1.0.1", "10.2.0.1", (9, port));
    for _ in 0..3 {
        let job =
            |(n, &port): (usize, &u16)| Job::new(buffer(&flow(port).bytes()), JobSpec::default(), n as u64);
        let mut jobs: Vec<Job> = ports.iter().enumerate().map(job).collect();
        let (mut stops, mut from) = (Vec::new(), 0);
        while let Err((place, stop)) = sad.prepare_burst(Direction::Seal, &mut jobs[from..]) {
            from += place;
            stops.push((jobs.remove(from).token, stop));
        }
        let blocked = Stop::Drop(DropReason::OutPolBlock);
        assert_eq!(stops, [(2, Stop::Bypass), (4, blocked), (5, Stop::Bypass)]);
        assert!(jobs.iter().map(|job| job.token).eq([0, 1, 3, 6]));
    }
}

#[test]
fn a_policy_is_added_removed_and_added_again_under_traffic() {
    let mut sad = Ipsec::default();
    let tunnel = add_out(&mut sad, sa(0, &[HERE], &[THERE]));
    // Enough others for the flow cache to be in use.
    for n in 0..20 {
        add(&mut sad, out(&[], &[&format!("10.77.{n}.0/24")], Action::Discard));
    }
    add(&mut sad, out(&[HERE], &[THERE], Action::Protect(vec![tunnel])));
    for _ in 0..5 {
        assert_eq!(send(&mut sad, &web()), Ok(Some(tunnel)));
        let bypass = out(&[], &["10.2.0.0/16[tcp/80]"], Action::Bypass);
        let id = sad.add_policy(bypass, PolicyPlace::First).expect("no fault");
        assert_eq!(send(&mut sad, &web()), Ok(None));
        assert_eq!(send(&mut sad, &web()), Ok(None));
        sad.remove_policy(id).expect("it is there");
        assert_eq!(send(&mut sad, &web()), Ok(Some(tunnel)));
        let discard = out(&[], &["10.2.0.0/16[tcp/80]"], Action::Discard);
        let again = sad.add_policy(discard, PolicyPlace::First).expect("no fault");
        assert_ne!(again, id, "an id is never another policy's");
        assert_eq!(sad.policy(id), None);
        assert_eq!(send(&mut sad, &web()), Err(DropReason::OutPolBlock));
        sad.remove_policy(again).expect("it is there");
    }
}

#[test]
fn an_sa_for_each_class_of_traffic() {
    let mut sad = Ipsec::default();
    let class =
        |n, points: &str| SaConfig { dscp: points.parse().expect("code points"), ..sa(n, &[HERE], &[THERE]) };
    let voice = add_out(&mut sad, class(0, "ef"));
    let video = add_out(&mut sad, class(1, "af41-af43"));
    let rest = add_out(&mut sad, class(2, "all"));
    let with = |dscp| Flow { dscp, ..web() };
    let check = |sad: &mut Ipsec| {
        for _ in 0..2 {
            assert_eq!(send(sad, &with(46)), Ok(Some(voice)));
            assert_eq!(send(sad, &with(36)), Ok(Some(video)));
            assert_eq!(send(sad, &with(0)), Ok(Some(rest)));
        }
    };
    check(&mut sad);
    let protect = out(&[HERE], &[THERE], Action::Protect(vec![voice, video, rest]));
    let id = add(&mut sad, protect);
    check(&mut sad);
    sad.set_policy_sas(id, vec![voice]).expect("no fault");
    assert_eq!(send(&mut sad, &with(46)), Ok(Some(voice)));
    assert_eq!(send(&mut sad, &with(0)), Err(DropReason::OutNoStates), "a policy, but no SA for the class");
    // The policy's own classes.
    let limited = Policy { dscp: DscpSet::of([0]), ..out(&[], &[], Action::Discard) };
    sad.add_policy(limited, PolicyPlace::First).expect("no fault");
    assert_eq!(send(&mut sad, &with(0)), Err(DropReason::OutPolBlock));
    assert_eq!(send(&mut sad, &with(46)), Ok(Some(voice)));
}

/// RFC 4301 4.4.2.1: of what comes in the class is not checked.
#[test]
fn an_inbound_sa_takes_every_class() {
    let mut sad = Ipsec::default();
    add_in(&mut sad, SaConfig { dscp: DscpSet::of([46]), ..sa(0, &[HERE], &[THERE]) });
    assert_eq!(receive(&mut sad, 0, 1, &web().back()), Ok(()));
}

/// RFC 4301 4.4.1.3: the sender's side says which types.
#[test]
fn icmp_may_be_sent_and_not_received() {
    let mut sad = Ipsec::default();
    let pings = add_out(&mut sad, sa(0, &["10.1.0.0/16[icmp/8]"], &["10.2.0.0/16[icmp/opaque]"]));
    add_in(&mut sad, sa(0, &["10.1.0.0/16[icmp/8]"], &["10.2.0.0/16[icmp/opaque]"]));
    add_in(&mut sad, sa(1, &["10.1.0.0/16[icmp/opaque]"], &["10.2.0.0/16[icmp/0]"]));
    let icmp = |kind| Flow::new("10.1.0.1", "10.2.0.1", Upper::Icmp(1, kind, 0));
    assert_eq!(send(&mut sad, &icmp(8)), Ok(Some(pings)));
    assert_eq!(send(&mut sad, &icmp(0)), Err(DropReason::OutNoStates));
    assert_eq!(receive(&mut sad, 0, 1, &icmp(8).back()), Err(DropReason::InStateMismatch));
    assert_eq!(receive(&mut sad, 1, 1, &icmp(8).back()), Err(DropReason::InStateMismatch));
    assert_eq!(receive(&mut sad, 1, 2, &icmp(0).back()), Ok(()));
    let v6 = |kind| Flow::new("2001:db8:1::1", "2001:db8:2::1", Upper::Icmp(58, kind, 0));
    let echo = add_out(&mut sad, sa(2, &["[ipv6-icmp/128]"], &["[ipv6-icmp]"]));
    assert_eq!(send(&mut sad, &v6(128)), Ok(Some(echo)));
    assert_eq!(send(&mut sad, &v6(135)), Err(DropReason::OutNoStates));
}

/// RFC 4301 4.4.1.1, 7.2: what has no ports goes where ports are ANY or OPAQUE.
#[test]
fn fragments_without_ports() {
    for (near, far) in [("10.1.0.1", "10.2.0.1"), ("2001:db8:1::1", "2001:db8:2::1")] {
        let mut sad = Ipsec::default();
        let whole = Flow::udp(near, far, (9, 500));
        let later = Flow { later_fragment: true, ..whole };
        let by_port = add_out(&mut sad, sa(0, &["[udp]"], &["[udp/500]"]));
        assert_eq!(send(&mut sad, &whole), Ok(Some(by_port)));
        assert_eq!(send(&mut sad, &later), Err(DropReason::OutFragmentPorts));
        // An SA for fragments only.
        let rest = add_out(&mut sad, sa(1, &["[udp/opaque]"], &["[udp/opaque]"]));
        assert_eq!(send(&mut sad, &later), Ok(Some(rest)));
        assert_eq!(send(&mut sad, &whole), Ok(Some(by_port)));
        assert_eq!(
            send(&mut sad, &Flow { upper: Upper::Ports(17, 9, 501), ..whole }),
            Err(DropReason::OutNoStates)
        );
    }
}

/// RFC 4301 7.4: a fragment must not get by, unprotected, under a policy for everything else.
#[test]
fn fragments_that_may_be_of_protected_traffic_are_not_bypassed() {
    let mut sad = Ipsec::default();
    let telnet = add_out(&mut sad, sa(0, &[], &[]));
    add_in(&mut sad, sa(0, &[], &[]));
    add(&mut sad, out(&[HERE], &["10.2.0.0/16[tcp/23]"], Action::Protect(vec![telnet])));
    add(&mut sad, out(&[HERE], &[THERE], Action::Bypass));
    add(&mut sad, into(&[HERE], &["10.2.0.0/16[tcp/23]"], Action::Protect(vec![SessionId(1)])));
    add(&mut sad, into(&[HERE], &[THERE], Action::Bypass));
    let news = Flow::tcp("10.1.0.1", "10.2.0.1", (9, 119));
    let fragment = Flow { later_fragment: true, ..news };
    assert_eq!(send(&mut sad, &news), Ok(None));
    assert_eq!(send(&mut sad, &fragment), Err(DropReason::OutFragmentPorts));
    assert_eq!(receive_clear(&mut sad, &news.back()), Ok(()));
    assert_eq!(receive_clear(&mut sad, &fragment.back()), Err(DropReason::InFragmentPorts));
    // Of another protocol there is no doubt.
    let other = Flow { later_fragment: true, ..Flow::udp("10.1.0.1", "10.2.0.1", (9, 119)) };
    assert_eq!(send(&mut sad, &other), Ok(None));
    assert_eq!(receive_clear(&mut sad, &other.back()), Ok(()));
}

/// RFC 4301 5.2 step 4, without policies.
#[test]
fn a_decrypted_packet_outside_its_sas_selectors() {
    let mut sad = Ipsec::default();
    add_in(&mut sad, sa(0, &[HERE], &["10.2.0.0/16[tcp/80]"]));
    let good = web().back();
    assert_eq!(receive(&mut sad, 0, 1, &good), Ok(()));
    // The same addresses, and so a run.
    for (sequence, bad) in [
        (2, Flow { upper: Upper::Ports(6, 81, 40_000), ..good }),
        (3, Flow { upper: Upper::Ports(17, 80, 40_000), ..good }),
        (4, Flow { later_fragment: true, ..good }),
        (5, Flow { source: "10.3.0.1".parse().unwrap(), ..good }),
        (6, good.back()),
    ] {
        assert_eq!(receive(&mut sad, 0, sequence, &bad), Err(DropReason::InStateMismatch), "{bad:?}");
    }
    assert_eq!(receive(&mut sad, 0, 7, &good), Ok(()));
}

/// RFC 4301 5.2 step 4, with policies: the one that matches must protect by the SA that was used.
#[test]
fn a_decrypted_packet_that_another_policy_is_for() {
    let mut sad = Ipsec::default();
    let one = add_in(&mut sad, sa(0, &[], &[]));
    let other = add_in(&mut sad, sa(1, &[], &[]));
    add(&mut sad, into(&[HERE], &["10.2.0.0/16[tcp/80]"], Action::Protect(vec![one])));
    add(&mut sad, into(&[HERE], &["10.2.6.6"], Action::Discard));
    add(&mut sad, into(&[HERE], &["10.2.0.53"], Action::Bypass));
    add(&mut sad, into(&[HERE], &[THERE], Action::Protect(vec![other])));
    let (good, plain) = (web().back(), Flow::udp("10.2.0.1", "10.1.0.1", (1, 1)));
    for round in 0..3 {
        let n = 10 * round;
        assert_eq!(receive(&mut sad, 0, n + 1, &good), Ok(()));
        assert_eq!(receive(&mut sad, 1, n + 1, &plain), Ok(()));
        assert_eq!(receive(&mut sad, 1, n + 2, &good), Err(DropReason::InTmplMismatch));
        assert_eq!(receive(&mut sad, 0, n + 2, &plain), Err(DropReason::InTmplMismatch));
        let from = |source: &str| Flow { source: source.parse().expect("an address"), ..plain };
        assert_eq!(receive(&mut sad, 1, n + 3, &from("10.2.6.6")), Err(DropReason::InPolBlock));
        assert_eq!(receive(&mut sad, 1, n + 4, &from("10.2.0.53")), Err(DropReason::InTmplMismatch));
        assert_eq!(receive(&mut sad, 1, n + 5, &from("10.9.0.1")), Err(DropReason::InNoPols));
    }
}

/// A run through an SA does not outlive a change of the policies.
#[test]
fn a_policy_is_removed_in_the_middle_of_an_inbound_run() {
    let mut sad = Ipsec::default();
    let one = add_in(&mut sad, sa(0, &[], &[]));
    let id = add(&mut sad, into(&[HERE], &[THERE], Action::Protect(vec![one])));
    add(&mut sad, into(&["10.9.0.0/16"], &[], Action::Bypass));
    assert_eq!(receive(&mut sad, 0, 1, &web().back()), Ok(()));
    assert_eq!(receive(&mut sad, 0, 2, &web().back()), Ok(()));
    sad.set_policy_sas(id, vec![]).expect("no fault");
    assert_eq!(receive(&mut sad, 0, 3, &web().back()), Err(DropReason::InTmplMismatch));
    sad.remove_policy(id).expect("it is there");
    assert_eq!(receive(&mut sad, 0, 4, &web().back()), Err(DropReason::InNoPols));
}

#[test]
fn cleartext_that_should_have_been_protected() {
    let mut sad = Ipsec::default();
    let one = add_in(&mut sad, sa(0, &[], &[]));
    assert_eq!(receive_clear(&mut sad, &web().back()), Err(DropReason::InNoIpsec), "no policies");
    add(&mut sad, into(&[HERE], &["10.2.0.53[udp/53]"], Action::Bypass));
    add(&mut sad, into(&[HERE], &["10.2.6.6"], Action::Discard));
    add(&mut sad, into(&[HERE], &[THERE], Action::Protect(vec![one])));
    assert_eq!(receive_clear(&mut sad, &web().back()), Err(DropReason::InTmplMismatch));
    assert_eq!(receive_clear(&mut sad, &Flow::udp("10.2.0.53", "10.1.0.1", (53, 9))), Ok(()));
    assert_eq!(
        receive_clear(&mut sad, &Flow::udp("10.2.6.6", "10.1.0.1", (53, 9))),
        Err(DropReason::InPolBlock)
    );
    assert_eq!(
        receive_clear(&mut sad, &Flow::udp("10.3.0.1", "10.1.0.1", (53, 9))),
        Err(DropReason::InNoPols)
    );
}

/// RFC 4301 5.2 step 2, 3a: an unknown SPI to this gateway is an error whatever the policies; ESP of others
/// is traffic like any.
#[test]
fn an_unknown_spi_and_somebody_elses_esp() {
    let mut sad = Ipsec::default();
    add_in(&mut sad, sa(0, &[], &[]));
    add(&mut sad, into(&[], &[], Action::Bypass));
    let unknown = sealed(5, 1, &web().back());
    let reason = sad.prepare(Direction::Open, &mut buffer(&unknown), &mut JobSpec::default());
    assert_eq!(reason, Err(DropReason::InNoStates));
    for known in [0, 5] {
        let mut others = sealed(known, 1, &web().back());
        others[16..20].copy_from_slice(&[192, 0, 2, 77]);
        let passed = sad.prepare(Direction::Open, &mut buffer(&others), &mut JobSpec::default());
        assert_eq!(passed, Ok(forebay_ipsec::Prepared::Bypass));
    }
}

/// RFC 4301 5.2: IKE needs a policy that bypasses it.
#[test]
fn ike_passes_by_a_policy_only() {
    let mut sad = Ipsec::default();
    add_in(&mut sad, sa(0, &[], &[]));
    let ike = Flow::udp("203.0.113.0", "198.51.100.1", (500, 500));
    add(&mut sad, into(&[HERE], &[THERE], Action::Discard));
    assert_eq!(receive_clear(&mut sad, &ike), Err(DropReason::InNoPols));
    add(&mut sad, into(&["198.51.100.1[udp/500]"], &["[udp]"], Action::Bypass));
    assert_eq!(receive_clear(&mut sad, &ike), Ok(()));
}

#[test]
fn policies_that_cannot_be() {
    let mut sad = Ipsec::default();
    let outbound = add_out(&mut sad, sa(0, &[], &[]));
    let inbound = add_in(&mut sad, sa(0, &[], &[]));
    let protect = |direction, session| Policy::new("p", direction, Action::Protect(vec![session]));
    let mut refused = |policy, place| sad.add_policy(policy, place).expect_err("refused");
    let missing = SessionId(9);
    assert_eq!(refused(protect(Direction::Seal, missing), PolicyPlace::Last), PolicyError::NoSuchSa(missing));
    assert_eq!(
        refused(protect(Direction::Seal, inbound), PolicyPlace::Last),
        PolicyError::WrongDirection(inbound)
    );
    let id = add(&mut sad, protect(Direction::Seal, outbound));
    let other = Policy::new("p", Direction::Open, Action::Bypass);
    assert_eq!(sad.add_policy(other.clone(), PolicyPlace::Before(id)), Err(PolicyError::NoSuchPolicy(id)));
    let bypass = add(&mut sad, other);
    assert_eq!(sad.set_policy_sas(bypass, vec![]), Err(PolicyError::NotProtecting(bypass)));
}

/// A decision that was remembered counts no more when policies change, also those after the last one was removed.
#[test]
fn decisions_are_forgotten_when_policies_change() {
    let mut sad = Ipsec::default();
    let only = add(&mut sad, out(&[HERE], &[THERE], Action::Bypass));
    sad.remove_policy(only).expect("it is there");
    for n in 0..20 {
        add(&mut sad, out(&[&format!("10.9.{n}.0/24")], &[THERE], Action::Bypass));
    }
    add(&mut sad, out(&[HERE], &[THERE], Action::Bypass));
    for _ in 0..2 {
        assert_eq!(send(&mut sad, &web()), Ok(None));
    }
    let first = out(&[HERE], &[THERE], Action::Discard);
    let first = sad.add_policy(first, PolicyPlace::First).expect("no SAs to be there");
    for _ in 0..2 {
        assert_eq!(send(&mut sad, &web()), Err(DropReason::OutPolBlock));
    }
    sad.remove_policy(first).expect("it is there");
    assert_eq!(send(&mut sad, &web()), Ok(None));
}

/// RFC 4301 4.4.1.1: a message has its type once, on the sender's side; of many policies with the same addresses too.
#[test]
fn types_of_the_receivers_side_do_not_count_in_a_crowd() {
    let mut sad = Ipsec::default();
    for kind in 0..40 {
        add(&mut sad, into(&[&format!("{HERE}[icmp/{kind}]")], &[THERE], Action::Bypass));
        add(&mut sad, into(&[HERE], &[&format!("{THERE}[mobility-header/{kind}]")], Action::Bypass));
    }
    let flow = |upper| Flow::new("10.1.0.1", "10.2.0.1", upper).back();
    assert_eq!(receive_clear(&mut sad, &flow(Upper::Icmp(1, 200, 0))), Ok(()));
    assert_eq!(receive_clear(&mut sad, &flow(Upper::Mobility(39))), Ok(()));
    assert_eq!(receive_clear(&mut sad, &flow(Upper::Mobility(40))), Err(DropReason::InNoPols));
}
