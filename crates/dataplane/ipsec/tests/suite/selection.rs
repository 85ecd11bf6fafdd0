//! Thousands of random policies, put anywhere and taken out again under traffic, against a list that is
//! gone through from its begin: the RFC's words on the values of the packet, not on its bytes.

use std::net::IpAddr;

use crate::traffic::{Flow, Upper, add_out, receive_clear, sa, send};
use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{
    Action, DropReason, DscpSet, Ipsec, Policy, PolicyId, PolicyPlace, PortRange, TrafficSelector,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Whether a packet is meant by a selector; nothing if only ports that it does not hold could tell.
fn meant(selector: &TrafficSelector, address: IpAddr, flow: &Flow, port: PortOf) -> Option<bool> {
    if let Some((first, last)) = selector.addresses()
        && (first.is_ipv4() != address.is_ipv4() || address < first || address > last)
    {
        return Some(false);
    }
    if selector.protocol().is_some_and(|protocol| protocol != flow.upper.protocol()) {
        return Some(false);
    }
    let (ports, opaque) = (selector.ports(), selector.ports() == PortRange::OPAQUE);
    if ports == PortRange::ANY {
        return Some(true);
    }
    match port {
        PortOf::Type(_) | PortOf::OtherSide | PortOf::HiddenType
            if selector.protocol().is_none() && !opaque =>
        {
            Some(false)
        }
        PortOf::OtherSide => Some(true),
        PortOf::Nothing => Some(opaque),
        PortOf::HiddenType | PortOf::HiddenPort => {
            if opaque {
                Some(true)
            } else {
                None
            }
        }
        PortOf::Type(value) | PortOf::Port(value) => Some(ports.first() <= value && value <= ports.last()),
    }
}

/// A packet's value for one side's port selector.
#[derive(Clone, Copy)]
enum PortOf {
    Port(u16),
    /// ICMP type and code, or Mobility Header type, on the sender's side.
    Type(u16),
    OtherSide,
    Nothing,
    HiddenPort,
    HiddenType,
}

/// Of source and destination.
fn ports(flow: &Flow) -> [PortOf; 2] {
    match (flow.upper, flow.later_fragment) {
        (Upper::Ports(..), true) => [PortOf::HiddenPort; 2],
        (Upper::Ports(_, source, destination), false) => [PortOf::Port(source), PortOf::Port(destination)],
        (Upper::Icmp(..) | Upper::Mobility(_), true) => [PortOf::HiddenType, PortOf::OtherSide],
        (Upper::Icmp(_, kind, code), false) => {
            [PortOf::Type(u16::from(kind) * 256 + u16::from(code)), PortOf::OtherSide]
        }
        (Upper::Mobility(kind), false) => [PortOf::Type(u16::from(kind) * 256), PortOf::OtherSide],
        (Upper::Other(_), _) => [PortOf::Nothing; 2],
    }
}

/// Whether a packet is meant by a policy.
fn matches(policy: &Policy, flow: &Flow) -> Option<bool> {
    let [source, destination] = ports(flow);
    let (local, remote) = match policy.direction {
        Direction::Seal => ((flow.source, source), (flow.destination, destination)),
        Direction::Open => ((flow.destination, destination), (flow.source, source)),
    };
    if !policy.dscp.contains(flow.dscp) {
        return Some(false);
    }
    let side = |selectors: &[TrafficSelector], (address, port)| {
        let all: Vec<_> = selectors.iter().map(|selector| meant(selector, address, flow, port)).collect();
        match all {
            _ if all.is_empty() || all.contains(&Some(true)) => Some(true),
            _ if all.contains(&None) => None,
            _ => Some(false),
        }
    };
    match (side(&policy.local_ts, local), side(&policy.remote_ts, remote)) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// The linear look-up.
fn oracle(policies: &[Policy], flow: &Flow) -> Result<Option<SessionId>, DropReason> {
    let mut doubtful = false;
    for policy in policies {
        match (matches(policy, flow), &policy.action) {
            (Some(false), _) => {}
            (None, action) => doubtful |= *action != Action::Bypass,
            (Some(true), Action::Protect(sas)) => return Ok(Some(sas[0])),
            (Some(true), Action::Discard) => return Err(DropReason::OutPolBlock),
            (Some(true), Action::Bypass) if doubtful => return Err(DropReason::OutFragmentPorts),
            (Some(true), Action::Bypass) => return Ok(None),
        }
    }
    Err(if doubtful { DropReason::OutFragmentPorts } else { DropReason::OutNoPols })
}

/// Addresses out of few, so that policies overlap and packets meet them.
fn address(v6: bool) -> impl Strategy<Value = IpAddr> {
    let byte = || prop_oneof![Just(0u8), Just(1), Just(127), Just(128), Just(255), any::<u8>()];
    (byte(), byte()).prop_map(move |(c, d)| match v6 {
        false => IpAddr::from([10, 0, c, d]),
        true => IpAddr::from([0x20, 1, 0x0d, 0xb8, 0, 0, 0, c, 0, 0, 0, 0, 0, 0, 0, d]),
    })
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![Just(0u16), Just(53), Just(80), Just(0x0800), Just(u16::MAX), 0u16..2_000, any::<u16>()]
}

fn selector(v6: bool) -> impl Strategy<Value = TrafficSelector> {
    let prefix = (address(v6), 0u8..=128).prop_map(move |(address, len)| {
        let len = if v6 { len } else { 16 + len % 17 };
        ipnet::IpNet::new(address, len).expect("a length that fits").trunc().into()
    });
    let range = (address(v6), address(v6))
        .prop_map(|(a, b)| TrafficSelector::range(a.min(b), a.max(b)).expect("in order"));
    let addresses = prop_oneof![
        2 => Just(TrafficSelector::ANY),
        6 => prefix,
        3 => range,
        3 => address(v6).prop_map(TrafficSelector::from),
    ];
    let ports = prop_oneof![
        6 => Just(PortRange::ANY),
        1 => Just(PortRange::OPAQUE),
        3 => port().prop_map(PortRange::one),
        2 => (port(), port()).prop_map(|(a, b)| PortRange::new(a.min(b), a.max(b)).expect("in order")),
    ];
    (addresses, prop::sample::select(vec![0u8, 0, 0, 6, 6, 17, 17, 1, 58, 135, 47]), ports)
        .prop_map(|(selector, protocol, ports)| selector.with(protocol, ports))
}

fn policy() -> impl Strategy<Value = Policy> {
    let sides = any::<bool>().prop_flat_map(|v6| {
        let side = || {
            prop_oneof![
                1 => Just(vec![]),
                8 => prop::collection::vec(selector(v6), 1..2),
                2 => prop::collection::vec(selector(v6), 2..4),
            ]
        };
        (side(), side())
    });
    let dscp = prop_oneof![5 => Just(DscpSet::ALL), 1 => any::<u64>().prop_map(DscpSet)];
    (sides, dscp, 0u32..8).prop_map(|((local_ts, remote_ts), dscp, action)| Policy {
        local_ts,
        remote_ts,
        dscp,
        ..Policy::new(
            "random",
            Direction::Seal,
            match action {
                0..4 => Action::Protect(vec![SessionId(action)]),
                4..6 => Action::Bypass,
                _ => Action::Discard,
            },
        )
    })
}

fn flow() -> impl Strategy<Value = Flow> {
    let upper = prop_oneof![
        (prop::sample::select(vec![6u8, 17]), port(), port()).prop_map(|(p, s, d)| Upper::Ports(p, s, d)),
        (prop::sample::select(vec![1u8, 58]), 0u8..12, 0u8..3).prop_map(|(p, t, c)| Upper::Icmp(p, t, c)),
        (0u8..9).prop_map(Upper::Mobility),
        prop::sample::select(vec![47u8, 50, 59, 253]).prop_map(Upper::Other),
    ];
    let ends = any::<bool>().prop_flat_map(|v6| (address(v6), address(v6)));
    let fragment = (prop::bool::weighted(0.2), prop::bool::weighted(0.2));
    (ends, upper, prop_oneof![Just(0u8), Just(46), 0u8..64], fragment).prop_map(
        |((source, destination), upper, dscp, (later_fragment, first_fragment))| Flow {
            source,
            destination,
            upper,
            dscp,
            later_fragment,
            first_fragment,
        },
    )
}

/// A database with four SAs for anything.
fn database() -> Ipsec {
    let mut sad = Ipsec::seeded(0x0123_4567_89ab_cdef);
    for n in 0..4 {
        assert_eq!(add_out(&mut sad, sa(n, &[], &[])), SessionId(n));
    }
    sad
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new_with_rng(Config::with_cases(cases), TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn draw<S: Strategy>(runner: &mut TestRunner, strategy: &S) -> S::Value {
    use proptest::strategy::ValueTree;
    strategy.new_tree(runner).expect("a value").current()
}

#[test]
fn ten_thousand_random_policies_as_the_list_says() {
    let (mut runner, policies, flows) = (runner(1), policy(), flow());
    let mut sad = database();
    let mut list = Vec::new();
    for _ in 0..10_000 {
        let policy = draw(&mut runner, &policies);
        sad.add_policy(policy.clone(), PolicyPlace::Last).expect("SAs that exist");
        list.push(policy);
    }
    let mut seen = [0; 5];
    for _ in 0..1_500 {
        let flow = draw(&mut runner, &flows);
        let expected = oracle(&list, &flow);
        // Twice: found, then remembered.
        for _ in 0..2 {
            assert_eq!(send(&mut sad, &flow), expected, "{flow:?}");
        }
        seen[match expected {
            Ok(Some(_)) => 0,
            Ok(None) => 1,
            Err(DropReason::OutPolBlock) => 2,
            Err(DropReason::OutFragmentPorts) => 3,
            Err(_) => 4,
        }] += 1;
    }
    assert!(seen[..3].iter().all(|&count| count > 50), "{seen:?}");
}

/// Policies that seldom overlap, so that a packet's is as likely the last as the first: packets are drawn out
/// of policies. Some crowd together: the same addresses, told apart by their ports.
#[test]
fn packets_out_of_ten_thousand_scattered_policies() {
    let mut runner = runner(1);
    let (kinds, protocols, flows) = (0u8..4, prop::sample::select(vec![6u8, 17, 1]), flow());
    let (numbers, ports) = (any::<u32>(), any::<u16>());
    let mut sad = database();
    let mut list = Vec::new();
    for n in 0..10_000u32 {
        let number = draw(&mut runner, &numbers);
        let address = |n: u32| IpAddr::from((0x0a00_0000 | n & 0x00ff_ffff).to_be_bytes());
        let net =
            |n: u32, len| TrafficSelector::from(ipnet::IpNet::new(address(n), len).expect("short").trunc());
        let a = draw(&mut runner, &ports);
        let range = PortRange::new(a, a.saturating_add(20)).expect("in order");
        let protocol = draw(&mut runner, &protocols);
        let (local, remote) = match draw(&mut runner, &kinds) {
            0 => (net(number >> 3, 24), net(number, 32)),
            1 => (net(number >> 3, 20 + (n % 8) as u8), net(number, 22 + (n % 10) as u8)),
            2 => {
                let end = number.wrapping_add(n % 3_000) & 0x00ff_ffff;
                let (first, last) = ((number & 0x00ff_ffff).min(end), (number & 0x00ff_ffff).max(end));
                let range = TrafficSelector::range(address(first), address(last)).expect("in order");
                (net(number >> 3, 16), range)
            }
            // All in one place.
            _ => {
                let ports = if n % 3 == 0 { range } else { PortRange::one(a) };
                (
                    net(0, 16).with(protocol, [PortRange::ANY, ports][n as usize % 2]),
                    net(0x10000, 16).with(protocol, ports),
                )
            }
        };
        let action = match number % 4 {
            0 => Action::Discard,
            1 => Action::Bypass,
            n => Action::Protect(vec![SessionId(n)]),
        };
        let (local_ts, remote_ts) = (vec![local], vec![remote]);
        let policy = Policy { local_ts, remote_ts, ..Policy::new("p", Direction::Seal, action) };
        sad.add_policy(policy.clone(), PolicyPlace::Last).expect("SAs that exist");
        list.push(policy);
    }
    let mut places = Vec::new();
    for _ in 0..1_500 {
        let of = &list[draw(&mut runner, &numbers) as usize % list.len()];
        let inside = |selector: &TrafficSelector, number: u32| match selector.addresses() {
            Some((IpAddr::V4(first), IpAddr::V4(last))) => {
                let (first, last) = (u32::from(first), u32::from(last));
                IpAddr::from((first + number % (last - first + 1)).to_be_bytes())
            }
            other => panic!("{other:?}"),
        };
        let source = inside(&of.local_ts[0], draw(&mut runner, &numbers));
        let destination = inside(&of.remote_ts[0], draw(&mut runner, &numbers));
        // A port of the policy's, if it has any, of the side that has one.
        let [near, far] = [&of.local_ts[0], &of.remote_ts[0]].map(|selector| selector.ports().first());
        let upper = match of.remote_ts[0].protocol() {
            Some(1) => Upper::Icmp(1, (near >> 8) as u8, near as u8),
            Some(protocol) => Upper::Ports(protocol, near, far),
            None => Upper::Ports(6, near, far),
        };
        let flow = Flow { source, destination, upper, ..draw(&mut runner, &flows) };
        assert_eq!(send(&mut sad, &flow), oracle(&list, &flow), "{flow:?}");
        places.extend(list.iter().position(|policy| matches(policy, &flow) == Some(true)));
    }
    places.sort();
    // Half of the packets are decided behind the first thousand.
    assert!(places.len() > 1_000 && places[places.len() / 2] > 1_000, "{}", places[places.len() / 2]);
}

/// In a crowd of policies for the same addresses, each for a port of one side, the last port there is as well.
#[test]
fn every_port_of_a_crowd_is_found() {
    let net = |net: &str| TrafficSelector::from(net.parse::<ipnet::IpNet>().expect("a network"));
    for is_remote in [false, true] {
        let mut sad = database();
        let mut list = Vec::new();
        for port in (1..=40).map(|n| n * 100).chain([u16::MAX]) {
            let narrow = |of: TrafficSelector, yes| if yes { of.with(17, PortRange::one(port)) } else { of };
            let local_ts = vec![narrow(net("10.0.0.0/16"), !is_remote)];
            let remote_ts = vec![narrow(net("10.1.0.0/16"), is_remote)];
            let policy = Policy { local_ts, remote_ts, ..Policy::new("p", Direction::Seal, Action::Discard) };
            sad.add_policy(policy.clone(), PolicyPlace::Last).expect("a policy");
            list.push(policy);
        }
        for port in [100, 4_000, 4_001, u16::MAX - 1, u16::MAX] {
            let (near, far) = if is_remote { (5, port) } else { (port, 5) };
            let flow = Flow {
                source: IpAddr::from([10, 0, 0, 1]),
                destination: IpAddr::from([10, 1, 0, 1]),
                upper: Upper::Ports(17, near, far),
                dscp: 0,
                later_fragment: false,
                first_fragment: false,
            };
            assert_eq!(send(&mut sad, &flow), oracle(&list, &flow), "{flow:?}");
        }
    }
}

/// As above with policies that come and go, anywhere in the order, under the same traffic all the time.
#[derive(Clone, Debug)]
enum Step {
    Add(Box<Policy>, prop::sample::Index, u8),
    Remove(prop::sample::Index),
    /// Taken out and put back where it was.
    Again(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        5 => (policy(), index(), 0u8..4).prop_map(|(policy, at, how)| Step::Add(Box::new(policy), at, how)),
        2 => index().prop_map(Step::Remove),
        1 => index().prop_map(Step::Again),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn policies_come_and_go_under_traffic(
        steps in prop::collection::vec(step(), 1..120),
        flows in prop::collection::vec(flow(), 12),
    ) {
        let mut sad = database();
        let mut list: Vec<(PolicyId, Policy)> = Vec::new();
        for step in steps {
            match step {
                Step::Add(policy, at, how) => {
                    let at = at.index(list.len() + 1);
                    let (place, at) = match how {
                        0 => (PolicyPlace::First, 0),
                        1 => (PolicyPlace::Last, list.len()),
                        2 if at < list.len() => (PolicyPlace::Before(list[at].0), at),
                        _ if at > 0 => (PolicyPlace::After(list[at - 1].0), at),
                        _ => (PolicyPlace::First, 0),
                    };
                    let id = sad.add_policy((*policy).clone(), place).expect("SAs that exist");
                    list.insert(at, (id, *policy));
                }
                Step::Remove(at) if !list.is_empty() => {
                    let (id, policy) = list.remove(at.index(list.len()));
                    prop_assert_eq!(sad.remove_policy(id), Some(policy));
                    prop_assert_eq!(sad.remove_policy(id), None);
                }
                Step::Again(at) if !list.is_empty() => {
                    let at = at.index(list.len());
                    let policy = sad.remove_policy(list[at].0).expect("it is there");
                    let place = list.get(at + 1).map_or(PolicyPlace::Last, |next| PolicyPlace::Before(next.0));
                    list[at].0 = sad.add_policy(policy, place).expect("SAs that exist");
                }
                Step::Remove(_) | Step::Again(_) => {}
            }
            let order: Vec<PolicyId> = sad.policies(Direction::Seal).map(|(id, _)| id).collect();
            prop_assert!(order.iter().eq(list.iter().map(|(id, _)| id)));
            let behind = sad.policies_behind(Direction::Seal, 1).map(|(id, _)| id);
            prop_assert!(behind.eq(order.iter().copied().skip(1)));
            let policies: Vec<Policy> = list.iter().map(|(_, policy)| policy.clone()).collect();
            for flow in &flows {
                let expected = match policies.is_empty() {
                    // The SAs themselves, which are for anything.
                    true => Ok(Some(SessionId(0))),
                    false => oracle(&policies, flow),
                };
                prop_assert_eq!(send(&mut sad, flow), expected, "{:?}", flow);
            }
        }
    }

    /// Inbound, of packets without protection, the sides are the other way round.
    #[test]
    fn cleartext_inbound_as_the_list_says(
        policies in prop::collection::vec(policy(), 5..80),
        flows in prop::collection::vec(flow(), 40),
    ) {
        let mut sad = Ipsec::default();
        let inbound: Vec<Policy> = policies
            .into_iter()
            .map(|policy| {
                let action = match policy.action { Action::Protect(_) => Action::Protect(vec![]), other => other };
                Policy { direction: Direction::Open, action, ..policy }
            })
            .collect();
        for policy in &inbound {
            sad.add_policy(policy.clone(), PolicyPlace::Last).expect("without SAs");
        }
        // ESP is no cleartext: it is what the SAs are looked up for, see `policies.rs`.
        let is_esp = |flow: &Flow| match flow.upper {
            Upper::Ports(17, source, destination) => [source, destination].contains(&4500),
            upper => upper.protocol() == 50,
        };
        for flow in flows.iter().filter(|flow| !is_esp(flow)) {
            let protect = inbound.iter().map(|policy| match &policy.action {
                Action::Protect(_) => Policy { action: Action::Protect(vec![SessionId(0)]), ..policy.clone() },
                _ => policy.clone(),
            });
            let expected = match oracle(&protect.collect::<Vec<_>>(), flow) {
                Ok(None) => Ok(()),
                Ok(Some(_)) => Err(DropReason::InTmplMismatch),
                Err(DropReason::OutPolBlock) => Err(DropReason::InPolBlock),
                Err(DropReason::OutFragmentPorts) => Err(DropReason::InFragmentPorts),
                Err(_) => Err(DropReason::InNoPols),
            };
            prop_assert_eq!(receive_clear(&mut sad, flow), expected, "{:?}", flow);
        }
    }
}
