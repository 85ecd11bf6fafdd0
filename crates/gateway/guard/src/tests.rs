//! Tests which packets the rules guard and pass, by an interpreter of the rules that is independent of nftables.

use std::net::IpAddr;

use forebay_crypto::Direction;
use forebay_links::nftables::{End, Hook, Match, Table, Verdict};
use ipnet::IpNet;
use proptest::prelude::*;

use super::*;

fn entry(direction: Direction, bypasses: bool, local: &[&str], remote: &[&str]) -> Entry {
    let ts = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Entry { direction, bypasses, local_ts: ts(local), remote_ts: ts(remote), interface: None, peers: vec![] }
}

/// Policies of both directions alike.
fn both(policies: &[(bool, &[&str], &[&str])]) -> Vec<Entry> {
    let of = |direction| {
        policies.iter().map(move |(bypasses, local, remote)| entry(direction, *bypasses, local, remote))
    };
    of(Direction::Seal).chain(of(Direction::Open)).collect()
}

fn host() -> Host {
    Host { table: "forebay_fb0".to_owned(), inside: vec!["fb0".to_owned()], ports: vec![4501], ways: None }
}

/// A packet, as far as rules look at it.
#[derive(Clone, Debug)]
struct Seen {
    by: &'static str,
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    /// Ports, or type and code.
    ports: (u16, u16),
    is_later: bool,
}

fn tcp(by: &'static str, from: &str, to: &str) -> Seen {
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    Seen { by, from, to, protocol: 6, ports: (40_000, 80), is_later: false }
}

fn udp(by: &'static str, from: &str, to: &str, ports: (u16, u16)) -> Seen {
    Seen { protocol: 17, ports, ..tcp(by, from, to) }
}

const OWN: [&str; 4] = ["192.0.2.1", "10.1.0.1", "172.16.0.1", "2001:db8:1::1"];

fn is_match(one: &Match, packet: &Seen, table: &Table) -> bool {
    let address = |end: &End| if *end == End::Source { packet.from } else { packet.to };
    match one {
        Match::ArrivesBy(name) | Match::LeavesBy(name) => name == packet.by,
        Match::ArrivesByIndex(index) | Match::LeavesByIndex(index) => *index == 7 && packet.by == "lan",
        Match::V6(v6) => packet.from.is_ipv6() == *v6,
        Match::InSet(end, set) => {
            let set = table.sets.iter().find(|one| one.name == *set).unwrap();
            set.ranges.iter().any(|(first, last)| (first..=last).contains(&&address(end)))
        }
        Match::InRange(end, first, last) => (first..=last).contains(&&address(end)),
        Match::IsLocal(end) => OWN.iter().any(|own| own.parse::<IpAddr>().unwrap() == address(end)),
        Match::IsBroadcast => {
            packet.to == IpAddr::from([255; 4]) || packet.to == IpAddr::from([192, 0, 2, 255])
        }
        Match::Protocol(protocol) => packet.protocol == *protocol,
        Match::Port(end, first, last) => {
            let port = if *end == End::Source { packet.ports.0 } else { packet.ports.1 };
            !packet.is_later && (first..=last).contains(&&port)
        }
        Match::Type(first, last) => (u16::from(*first)..=u16::from(*last)).contains(&(packet.ports.0 >> 8)),
        Match::TypeAndCode(first, last) => (first..=last).contains(&&packet.ports.0),
        Match::FromLink => true,
        Match::LaterFragment { .. } => packet.is_later,
    }
}

/// Whether a packet from the gateway's interface is forwarded to another.
fn is_forwarded(table: &Table, packet: &Seen) -> bool {
    let chain = |name: &str| table.chains.iter().find(|chain| chain.name == name).unwrap();
    let from = Seen { by: "fb0", ..packet.clone() };
    let opened = &chain("opened").rules;
    assert!(opened.iter().any(|rule| rule.matches.iter().all(|one| is_match(one, &from, table))));
    let rule = chain("opened_out")
        .rules
        .iter()
        .find(|rule| rule.matches.iter().all(|one| is_match(one, packet, table)));
    rule.is_none_or(|rule| rule.verdict == Verdict::Accept)
}

/// Whether a packet passes, of those that arrive (`false`) or leave (`true`).
fn passes(table: &Table, leaves: bool, packet: &Seen) -> bool {
    let hook = if leaves { Hook::Postrouting } else { Hook::Prerouting };
    let mut chain = table.chains.iter().find(|chain| chain.hook == Some(hook)).unwrap();
    'chain: loop {
        for rule in &chain.rules {
            if rule.matches.iter().all(|one| is_match(one, packet, table)) {
                match rule.verdict {
                    Verdict::Accept => return true,
                    Verdict::Drop(counter) => {
                        assert_eq!(counter, if leaves { LEAKED } else { FORGED });
                        return false;
                    }
                    Verdict::Goto(name) => chain = table.chains.iter().find(|one| one.name == name).unwrap(),
                }
                continue 'chain;
            }
        }
        return true;
    }
}

/// A packet that arrives.
fn arrives(table: &Table, packet: Seen) -> bool {
    passes(table, false, &packet)
}

fn leaves(table: &Table, packet: Seen) -> bool {
    passes(table, true, &packet)
}

#[test]
fn what_is_protected_comes_and_goes_by_the_gateway_alone() {
    let plan = Plan::of(
        &both(&[(false, &["10.1.0.0/16", "2001:db8:1::/48"], &["10.2.0.0/16", "2001:db8:2::/48"])]),
        &[],
    );
    let table = host().table(&plan);
    for (near, far) in
        [("10.1.0.10", "10.2.0.10"), ("2001:db8:1::10", "2001:db8:2::10"), ("192.0.2.1", "10.2.0.10")]
    {
        assert!(!arrives(&table, tcp("wan", far, near)) && !arrives(&table, tcp("lan", far, near)), "{far}");
        assert!(arrives(&table, tcp("fb0", far, near)) && arrives(&table, tcp("lo", far, near)));
        assert!(!leaves(&table, tcp("wan", near, far)) && leaves(&table, tcp("fb0", near, far)), "{near}");
        assert!(arrives(&table, tcp("lan", near, far)) && leaves(&table, tcp("lan", far, near)));
    }
    assert!(arrives(&table, tcp("wan", "203.0.113.1", "10.1.0.10")), "no business of ours");
    // The tunnel's own packets, as long as the peer is none of the protected: not even looked at.
    assert!(arrives(&table, udp("wan", "192.0.2.2", "192.0.2.1", (4500, 4500))));
    assert_eq!((plan.any_to_any, plan.left_out), (0, 0));
}

#[test]
fn a_tunnel_for_everything_leaves_the_host_what_it_needs() {
    let plan = Plan::of(&both(&[(false, &["10.1.0.0/16", "2001:db8:1::/48"], &["0.0.0.0/0", "::/0"])]), &[]);
    let table = host().table(&plan);
    // The inner network and the world: through the tunnel only.
    assert!(!arrives(&table, tcp("wan", "203.0.113.1", "10.1.0.10")));
    assert!(!leaves(&table, tcp("wan", "10.1.0.10", "203.0.113.1")));
    assert!(!leaves(&table, tcp("wan", "2001:db8:1::10", "2001:db8:9::1")));
    assert!(arrives(&table, tcp("fb0", "203.0.113.1", "10.1.0.10")));
    // Among themselves, and with the gateway.
    assert!(
        arrives(&table, tcp("lan", "10.1.0.10", "10.1.0.1"))
            && leaves(&table, tcp("lan", "10.1.0.1", "10.1.0.10"))
    );
    // The gateway's own address outside is not in `local_ts`: its packets are no business of the policy's.
    assert!(
        arrives(&table, tcp("wan", "203.0.113.1", "192.0.2.1"))
            && leaves(&table, tcp("wan", "192.0.2.1", "203.0.113.1"))
    );
    assert!(
        arrives(&table, tcp("lan", "fe80::1", "2001:db8:1::1"))
            && arrives(&table, tcp("lan", "10.1.0.1", "224.0.0.251"))
    );
    assert_eq!(plan.any_to_any, 0);
}

#[test]
fn a_host_that_protects_all_of_its_own_packets_can_still_be_reached_by_its_peer() {
    let mut entries = both(&[(false, &["192.0.2.1", "2001:db8:1::1"], &["0.0.0.0/0", "::/0"])]);
    let (peer, own) = ("203.0.113.1", "192.0.2.1");
    entries[0].peers = vec![peer.parse().unwrap(), "2001:db8:9::1".parse().unwrap()];
    let table = host().table(&Plan::of(&entries, &[]));
    assert!(!arrives(&table, tcp("wan", peer, own)) && !leaves(&table, tcp("wan", own, peer)));
    for protocol in [50, 51] {
        assert!(arrives(&table, Seen { protocol, ..tcp("wan", peer, own) }));
        assert!(leaves(&table, Seen { protocol, ..tcp("wan", own, peer) }));
    }
    for port in [500, 4500, 4501] {
        assert!(
            arrives(&table, udp("wan", peer, own, (9, port)))
                && leaves(&table, udp("wan", own, peer, (port, 9)))
        );
        assert!(
            !arrives(&table, udp("wan", peer, own, (port, 9)))
                && !leaves(&table, udp("wan", own, peer, (9, port)))
        );
    }
    let later = |from, to| Seen { is_later: true, ..udp("wan", from, to, (0, 0)) };
    for (from, to) in [(peer, own), ("2001:db8:9::1", "2001:db8:1::1")] {
        assert!(arrives(&table, later(from, to)));
        assert!(!arrives(&table, Seen { protocol: 6, ..later(from, to) }), "no tunnel is TCP");
    }
    for (from, to) in [("203.0.113.2", own), ("2001:db8:9::2", "2001:db8:1::1")] {
        assert!(!arrives(&table, later(from, to)), "from no peer: {from}");
    }
    let icmp = |protocol, kind: u16, from: &str, to: &str| Seen {
        protocol,
        ports: (kind << 8, 0),
        ..tcp("wan", from, to)
    };
    for (kind, passes) in [(3, true), (11, true), (12, true), (0, false), (5, false), (8, false)] {
        assert_eq!(arrives(&table, icmp(1, kind, peer, own)), passes, "ICMP type {kind}");
        assert!(!leaves(&table, icmp(1, kind, own, peer)), "what quotes a packet that was opened");
    }
    let (router, own6) = ("2001:db8:1::ff", "2001:db8:1::1");
    for (kind, passes) in
        [(1, true), (2, true), (4, true), (128, false), (134, true), (135, true), (136, true)]
    {
        assert_eq!(arrives(&table, icmp(58, kind, router, own6)), passes, "ICMPv6 type {kind}");
    }
    assert!(
        arrives(&table, udp("wan", peer, own, (67, 68))) && leaves(&table, udp("wan", own, peer, (68, 67)))
    );
    assert!(!arrives(&table, udp("wan", peer, own, (68, 67))));
    assert!(arrives(&table, udp("wan", router, own6, (547, 546))));
}

#[test]
fn dhcp_passes_for_this_host_and_its_networks_only() {
    let plan = Plan::of(
        &both(&[(false, &["10.1.0.0/16", "2001:db8:1::/48"], &["10.0.0.0/8", "2001:db8::/32"])]),
        &[],
    );
    let table = host().table(&plan);
    let server = "10.9.0.1";
    for to in ["192.0.2.1", "255.255.255.255", "192.0.2.255"] {
        assert!(arrives(&table, udp("wan", server, to, (67, 68))), "{to}");
        assert!(!arrives(&table, udp("wan", server, to, (68, 67))), "{to}");
    }
    assert!(leaves(&table, udp("wan", "192.0.2.1", server, (68, 67))));
    assert!(!leaves(&table, udp("wan", "192.0.2.1", server, (67, 68))));
    let (server6, own6, other6) = ("2001:db8:9::1", "2001:db8:1::1", "2001:db8:1::10");
    assert!(arrives(&table, udp("wan", server6, own6, (547, 546))));
    assert!(leaves(&table, udp("wan", own6, server6, (546, 547))));
    // Of others, that would be forwarded.
    for (server, other, ports) in [(server, "10.1.0.10", (67, 68)), (server6, other6, (547, 546))] {
        assert!(!arrives(&table, udp("wan", server, other, ports)), "{other}");
        assert!(!leaves(&table, udp("wan", other, server, (ports.1, ports.0))), "{other}");
    }
}

#[test]
fn sealed_packets_pass_for_this_host_only() {
    let plan = Plan::of(&both(&[(false, &["10.1.0.0/16"], &["10.2.0.0/16"])]), &[]);
    let table = host().table(&plan);
    let sealed = |from: &str, to: &str| Seen { protocol: 50, ..tcp("wan", from, to) };
    assert!(arrives(&table, sealed("10.2.0.1", "10.1.0.1")));
    assert!(
        !arrives(&table, sealed("10.2.0.1", "10.1.0.10")),
        "forwarded, it would come from nobody who is known"
    );
    assert!(!leaves(&table, sealed("10.1.0.10", "10.2.0.1")));
    assert!(!arrives(&table, udp("wan", "10.2.0.1", "10.1.0.10", (4500, 4500))));
}

#[test]
fn bypass_policies_are_let_through_as_far_as_they_decide() {
    let plan = Plan::of(
        &both(&[
            (false, &["10.1.0.0/16"], &["10.2.5.0/24"]),
            (true, &["10.1.0.0/16"], &["10.2.0.0/16[udp/53]"]),
            (true, &["10.1.0.9"], &["10.2.9.0/24"]),
            (true, &["10.1.0.0/16[icmp/8]"], &["10.2.0.0/16[icmp/0]"]),
            (false, &["10.1.0.0/16"], &["10.2.0.0/16"]),
            (true, &[], &["10.2.0.7"]),
        ]),
        &[],
    );
    let table = host().table(&plan);
    let host = "10.1.0.10";
    assert!(
        leaves(&table, udp("wan", host, "10.2.0.1", (5353, 53)))
            && arrives(&table, udp("wan", "10.2.0.1", host, (53, 5353)))
    );
    assert!(
        !leaves(&table, udp("wan", host, "10.2.0.1", (53, 5353)))
            && !arrives(&table, udp("wan", "10.2.0.1", host, (5353, 53)))
    );
    assert!(!leaves(&table, udp("wan", host, "10.2.5.1", (5353, 53))), "the policy before it protects");
    assert!(
        leaves(&table, tcp("wan", "10.1.0.9", "10.2.9.1")) && !leaves(&table, tcp("wan", host, "10.2.9.1"))
    );
    let icmp =
        |kind: u16, from: &str, to: &str| Seen { protocol: 1, ports: (kind << 8, 0), ..tcp("wan", from, to) };
    assert!(leaves(&table, icmp(8, host, "10.2.0.1")) && !leaves(&table, icmp(0, host, "10.2.0.1")));
    assert!(arrives(&table, icmp(0, "10.2.0.1", host)) && !arrives(&table, icmp(8, "10.2.0.1", host)));
    assert!(!leaves(&table, tcp("wan", host, "10.2.0.7")), "behind one that protects");
    // One interface's.
    let mut entries =
        both(&[(true, &["10.1.0.0/16"], &["10.2.8.0/24"]), (false, &["10.1.0.0/16"], &["10.2.0.0/16"])]);
    entries[0].interface = Some(7);
    let table = self::host().table(&Plan::of(&entries, &[]));
    assert!(leaves(&table, tcp("lan", host, "10.2.8.1")) && !leaves(&table, tcp("wan", host, "10.2.8.1")));
}

#[test]
fn overlapping_networks_belong_to_the_narrower_side() {
    let table =
        |local: &[&str], remote: &[&str]| host().table(&Plan::of(&both(&[(false, local, remote)]), &[]));
    // A branch of a network that is the centre's.
    let branch = table(&["10.1.0.0/16"], &["10.0.0.0/8"]);
    assert!(
        !arrives(&branch, tcp("wan", "10.2.0.1", "10.1.0.10"))
            && arrives(&branch, tcp("lan", "10.1.0.10", "10.2.0.1"))
    );
    // Its centre.
    let centre = table(&["10.0.0.0/8"], &["10.1.0.0/16"]);
    assert!(
        !arrives(&centre, tcp("wan", "10.1.0.1", "10.2.0.10"))
            && arrives(&centre, tcp("lan", "10.2.0.10", "10.1.0.1"))
    );
    // Equal networks on both sides cannot be told apart.
    for (local, remote) in [(["10.0.0.0/8"], ["10.0.0.0/8"]), (["0.0.0.0/0"], ["0.0.0.0/0"])] {
        let plan = Plan::of(&both(&[(false, &local, &remote)]), &[]);
        // What is opened for them is for this side.
        let own = plan.v4.own.clone();
        assert_eq!((plan.any_to_any, &plan.v4), (1, &Guarded { own, ..Guarded::default() }), "{local:?}");
    }
    assert_eq!(Plan::of(&both(&[(false, &[], &[])]), &[]).any_to_any, 1);
    assert_eq!(Plan::of(&both(&[(false, &["::/0"], &["::/0"])]), &[]).any_to_any, 1);
    assert_eq!(Plan::of(&both(&[(false, &[], &["10.2.0.0/16"])]), &[]).any_to_any, 0);
}

#[test]
fn networks_of_the_host_can_be_excepted_and_interfaces_added() {
    let entries = both(&[(false, &["10.1.0.0/16"], &["10.0.0.0/8"])]);
    let plan = Plan::of(&entries, &["10.9.0.0/24".parse().unwrap()]);
    let more = Host { inside: vec!["fb0".to_owned(), "fb1".to_owned()], ..host() };
    let table = more.table(&plan);
    assert!(
        arrives(&table, tcp("wan", "10.9.0.5", "172.16.0.1"))
            && !arrives(&table, tcp("wan", "10.9.1.5", "172.16.0.1"))
    );
    assert!(
        arrives(&table, tcp("fb1", "10.2.0.1", "10.1.0.10"))
            && leaves(&table, tcp("fb1", "10.1.0.10", "10.2.0.1"))
    );
}

#[test]
fn opened_packets_go_to_their_network_or_nowhere() {
    let entries = both(&[
        (false, &["10.1.0.0/16", "2001:db8:1::/48"], &["10.2.0.0/16", "2001:db8:2::/48"]),
        // The way to the Internet for a branch.
        (false, &["0.0.0.0/0"], &["10.3.0.0/16"]),
    ]);
    let near = |range: [&str; 2]| ("one".to_owned(), (range[0].parse().unwrap(), range[1].parse().unwrap()));
    let ways = Ways {
        local: vec!["core".to_owned()],
        near: vec![near(["10.1.0.0", "10.1.255.255"])],
        outside: vec!["one".to_owned(), "core".to_owned(), "wan".to_owned()],
    };
    let table = |outside: &[&str]| {
        let outside = outside.iter().map(ToString::to_string).collect();
        Host { ways: Some(Ways { outside, ..ways.clone() }), ..host() }.table(&Plan::of(&entries, &[]))
    };
    let known = table(&["one", "core", "wan"]);
    for (by, to, passes) in [
        ("wan", "10.1.0.10", false),
        ("wan", "2001:db8:1::10", false),
        ("lan", "10.1.0.10", true),
        ("lan2", "2001:db8:1::10", true),
        // Back to another peer, by an interface with an address in the network, and by one that the file names.
        ("fb0", "10.1.0.10", true),
        ("one", "10.1.0.10", true),
        ("one", "2001:db8:1::10", false),
        ("core", "2001:db8:1::10", true),
        ("wan", "203.0.113.1", true),
        ("wan", "224.0.0.5", true),
    ] {
        let from = if to.contains(':') { "2001:db8:2::10" } else { "10.2.0.10" };
        assert_eq!(is_forwarded(&known, &tcp(by, from, to)), passes, "{by} to {to}");
    }
    // Which one leads outside is not known yet.
    let unknown = table(&[]);
    for (by, passes) in [("wan", false), ("lan", false), ("one", true), ("core", true), ("fb0", true)] {
        assert_eq!(is_forwarded(&unknown, &tcp(by, "10.2.0.10", "10.1.0.10")), passes, "{by}");
    }
    let none = host().table(&Plan::of(&entries, &[]));
    assert!(is_forwarded(&none, &tcp("wan", "10.2.0.10", "10.1.0.10")), "nothing is known of interfaces");
}

#[test]
fn exemptions_without_end_are_left_out() {
    let mut policies: Vec<Entry> = vec![];
    for n in 0..1_100u32 {
        let net = format!("10.{}.{}.0/24", 2 + n / 256, n % 256);
        policies.push(entry(Direction::Seal, true, &["10.1.0.0/16"], &[&net]));
    }
    policies.push(entry(Direction::Seal, false, &["10.1.0.0/16"], &["10.0.0.0/8"]));
    let plan = Plan::of(&policies, &[]);
    assert_eq!((plan.exempt.len(), plan.left_out), (1_024, 76));
    let table = host().table(&plan);
    assert!(
        leaves(&table, tcp("wan", "10.1.0.1", "10.2.0.1"))
            && !leaves(&table, tcp("wan", "10.1.0.1", "10.6.70.1"))
    );
}

proptest! {
    /// Of narrow policies without overlaps: the rules say what the first policy that matches says.
    #[test]
    fn rules_are_the_policies(
        policies in prop::collection::vec((any::<bool>(), 0u8..8, 0u8..8, 24u8..=32), 1..6),
        far in (0u8..8, any::<u8>()),
        near in 0u8..8,
        ways in any::<bool>(),
    ) {
        let texts: Vec<_> = policies.iter()
            .map(|(bypasses, near, far, len)| (*bypasses, format!("10.1.{near}.0/24"), format!("10.2.{far}.0/{len}")))
            .collect();
        let entries: Vec<Entry> = [Direction::Seal, Direction::Open].into_iter().flat_map(|direction| {
            texts.iter().map(move |(bypasses, near, far)| entry(direction, *bypasses, &[near.as_str()], &[far.as_str()]))
        }).collect();
        let table = host().table(&Plan::of(&entries, &[]));
        let (near, far) = (format!("10.1.{near}.7"), format!("10.2.{}.{}", far.0, far.1));
        let is_in = |net: &str, address: &str| net.parse::<IpNet>().unwrap().contains(&address.parse::<IpAddr>().unwrap());
        let first = texts.iter().find(|(_, local, remote)| is_in(local, &near) && is_in(remote, &far));
        // What is some policy's is not in the clear whatever it is to, unless a bypass says so first.
        let protected = texts.iter().any(|(bypasses, _, remote)| !bypasses && is_in(remote, &far));
        let passes = if ways { leaves(&table, tcp("wan", &near, &far)) } else { arrives(&table, tcp("wan", &far, &near)) };
        match first {
            Some((false, ..)) => prop_assert!(!passes),
            None => prop_assert_eq!(passes, !protected),
            // One before it may protect these addresses from others: then it is no exemption.
            Some((true, ..)) if !protected => prop_assert!(passes),
            Some((true, ..)) => {}
        }
    }
}
