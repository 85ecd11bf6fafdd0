//! The rules of the table.
//!
//! A packet without a guarded address costs one look-up in each set that has elements. The others go to a chain that
//! accepts the following packets, and counts and drops the rest:
//!
//! | Packets | Arriving | Leaving |
//! |---|---|---|
//! | ESP and AH | for this host | of this host |
//! | UDP of IKE (500, 4500) and of the links' own ports | for this host's port | from this host's port |
//! | later fragments of UDP, whose ports cannot be seen | from a peer's outer address, for this host | |
//! | ICMP errors: unreachable, too big, time exceeded, parameter problem | for this host | |
//! | Neighbour Discovery with hop limit 255 | all | all |
//! | DHCP and DHCPv6, of this host only | from server to client: to its addresses, or to all hosts of the interface's network | from client to server, from its addresses |
//! | bypass policies | inbound ones | outbound ones |
//!
//! Packets from the gateway's interface for a network of this side are counted as leaving packets if they are forwarded
//! to an interface that leads elsewhere too ([`Ways`]).

use std::net::IpAddr;

use forebay_crypto::Direction;
use forebay_ipsec::{PortRange, TrafficSelector};
use forebay_links::nftables::{Chain, End, Hook, Match, Rule, Set, Table, Verdict};
use forebay_wire::{protocol, udp};

use super::plan::{Exempt, Guarded, Plan};
use super::ranges::Ranges;

/// The counter of dropped packets that arrived.
pub const FORGED: &str = "forged";
/// The counter of dropped packets that would have left.
pub const LEAKED: &str = "leaked";

const IKE: u16 = 500;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const TCP: u8 = 6;

/// Properties of the host that the rules depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name of the table.
    pub table: String,
    /// Interfaces through which protected networks are reached.
    pub inside: Vec<String>,
    /// UDP ports of the gateway's own links.
    pub ports: Vec<u16>,
    /// The interfaces through which decrypted packets may leave; `None` if they are unknown and nothing is dropped.
    pub ways: Option<Ways>,
}

/// Interfaces of a host, classified for the forwarding of decrypted packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// Interfaces that lead to networks of this side, and maybe elsewhere too.
    pub local: Vec<String>,
    /// Interfaces with an address in a network of this side, and the first and last address of that network.
    pub near: Vec<(String, (IpAddr, IpAddr))>,
    /// Interfaces that lead to peers or to the default route. While there are none, each interface that is in no other list may
    /// be one.
    pub outside: Vec<String>,
}

/// The two directions of packets, described alike.
#[derive(Clone, Copy)]
struct Way {
    direction: Direction,
    /// The field of the peer's address.
    far: End,
    near: End,
}

const ARRIVING: Way = Way { direction: Direction::Open, far: End::Source, near: End::Destination };
const LEAVING: Way = Way { direction: Direction::Seal, far: End::Destination, near: End::Source };

impl Host {
    /// The table for `plan`.
    pub fn table(&self, plan: &Plan) -> Table {
        let set = |name, v6, ranges: &Ranges| Set { name, v6, ranges: ranges.addresses(v6) };
        let sets = |v6, [remote, wide, local, peers, own]: [&'static str; 5], guarded: &Guarded| {
            [
                set(remote, v6, &guarded.remote),
                set(wide, v6, &guarded.wide),
                set(local, v6, &guarded.local),
                set(peers, v6, &guarded.peers),
                set(own, v6, &guarded.own),
            ]
        };
        let chains = [
            self.let_through("clear_in", FORGED, ARRIVING, plan),
            self.let_through("clear_out", LEAKED, LEAVING, plan),
            self.strays("opened_out"),
            self.opened("opened", "opened_out"),
            self.look_up("arriving", Hook::Prerouting, "clear_in", ARRIVING, plan),
            self.look_up("leaving", Hook::Postrouting, "clear_out", LEAVING, plan),
        ];
        Table {
            name: self.table.clone(),
            counters: vec![FORGED, LEAKED],
            sets: [sets(false, SETS[0], &plan.v4), sets(true, SETS[1], &plan.v6)].concat(),
            chains: chains.into(),
        }
    }

    /// Finds packets with guarded addresses on other interfaces. Every packet of the host passes these rules, so sets that are
    /// empty are not looked at.
    fn look_up(&self, name: &'static str, hook: Hook, then: &'static str, way: Way, plan: &Plan) -> Chain {
        let mut rules: Vec<Rule> =
            self.inside.iter().map(|interface| accept(vec![way.by(interface)])).collect();
        for (v6, [remote, wide, local, ..], guarded) in
            [(false, SETS[0], &plan.v4), (true, SETS[1], &plan.v6)]
        {
            let far = |set| Match::InSet(way.far, set);
            let goes = |matches| Rule { matches, verdict: Verdict::Goto(then) };
            if !guarded.remote.is_empty() {
                rules.push(goes(vec![Match::V6(v6), far(remote)]));
            }
            if !guarded.wide.is_empty() && !guarded.local.is_empty() {
                rules.push(goes(vec![Match::V6(v6), Match::InSet(way.near, local), far(wide)]));
            }
        }
        Chain { name, hook: Some(hook), rules }
    }

    /// Finds packets that the gateway has decrypted.
    fn opened(&self, name: &'static str, then: &'static str) -> Chain {
        let from = |interface: &String| Rule {
            matches: vec![Match::ArrivesBy(interface.clone())],
            verdict: Verdict::Goto(then),
        };
        Chain { name, hook: Some(Hook::Forward), rules: self.inside.iter().map(from).collect() }
    }

    /// Drops decrypted packets that leave to other than this side.
    fn strays(&self, name: &'static str) -> Chain {
        let mut rules = Vec::new();
        if let Some(ways) = &self.ways {
            let by = |interface: &String| Match::LeavesBy(interface.clone());
            rules.extend(self.inside.iter().chain(&ways.local).map(|interface| accept(vec![by(interface)])));
            for (interface, (first, last)) in &ways.near {
                let network = Match::InRange(End::Destination, *first, *last);
                rules.push(accept(vec![by(interface), Match::V6(first.is_ipv6()), network]));
            }
            let outside = ways.outside.iter().map(|interface| Some(by(interface)));
            let any = ways.outside.is_empty().then_some(None);
            for by in outside.chain(any) {
                for (v6, [.., own]) in [(false, SETS[0]), (true, SETS[1])] {
                    let matches =
                        by.iter().cloned().chain([Match::V6(v6), Match::InSet(End::Destination, own)]);
                    rules.push(Rule { matches: matches.collect(), verdict: Verdict::Drop(LEAKED) });
                }
            }
        }
        Chain { name, hook: None, rules }
    }

    fn let_through(&self, name: &'static str, counter: &'static str, way: Way, plan: &Plan) -> Chain {
        // Here and not where all packets pass, because comparing a name costs as much as a look-up.
        let mut rules = vec![accept(vec![way.by("lo")])];
        let ours = |matches: &[Match]| accept([&[Match::IsLocal(way.near)], matches].concat());
        for sealed in [protocol::ESP, protocol::AH] {
            rules.push(ours(&[Match::Protocol(sealed)]));
        }
        let mut ports: Vec<u16> = self.ports.iter().copied().chain([IKE, udp::NAT_T_PORT]).collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            rules.push(ours(&[Match::Protocol(protocol::UDP), Match::Port(way.near, port, port)]));
        }
        if way.direction == Direction::Open {
            for (v6, [.., peers, _]) in [(false, SETS[0]), (true, SETS[1])] {
                // They are useless without a first fragment. A peer's own cleartext is not protected, but no other
                // sender may complete a datagram that began in a tunnel.
                let from = Match::InSet(way.far, peers);
                let later = Match::LaterFragment { v6 };
                rules.push(ours(&[Match::V6(v6), from, Match::Protocol(protocol::UDP), later]));
            }
            // They report path MTUs of protected packets; ICMP errors that leave would quote decrypted packets.
            for (v6, icmp, (first, last)) in
                [(false, ICMP, (3, 3)), (false, ICMP, (11, 12)), (true, ICMPV6, (1, 4))]
            {
                rules.push(ours(&[Match::V6(v6), Match::Protocol(icmp), Match::Type(first, last)]));
            }
        }
        let neighbours = [Match::V6(true), Match::Protocol(ICMPV6), Match::FromLink, Match::Type(133, 137)];
        rules.push(accept(neighbours.to_vec()));
        for (v6, client, server) in [(false, 68, 67), (true, 546, 547)] {
            let ports = way.sender_first(client, server).map(|(end, port)| Match::Port(end, port, port));
            let dhcp = [&[Match::V6(v6), Match::Protocol(protocol::UDP)], &ports[..]].concat();
            rules.push(ours(&dhcp));
            if way.direction == Direction::Open && !v6 {
                rules.push(accept([&dhcp[..1], &[Match::IsBroadcast], &dhcp[1..]].concat()));
            }
        }
        let exempt = plan.exempt.iter().filter(|exempt| exempt.direction == way.direction);
        rules.extend(exempt.flat_map(|exempt| way.bypass(exempt)).map(accept));
        rules.push(Rule { matches: vec![], verdict: Verdict::Drop(counter) });
        Chain { name, hook: None, rules }
    }
}

const SETS: [[&str; 5]; 2] =
    [["remote4", "wide4", "local4", "peers4", "own4"], ["remote6", "wide6", "local6", "peers6", "own6"]];

fn accept(matches: Vec<Match>) -> Rule {
    Rule { matches, verdict: Verdict::Accept }
}

impl Way {
    /// The interface of the packet.
    fn by(self, interface: &str) -> Match {
        match self.direction {
            Direction::Open => Match::ArrivesBy(interface.to_owned()),
            Direction::Seal => Match::LeavesBy(interface.to_owned()),
        }
    }

    /// Matches of both ends, the sender's first, as nft(8) lists them.
    fn sender_first<T>(self, near: T, far: T) -> [(End, T); 2] {
        let both = [(self.near, near), (self.far, far)];
        if self.near == End::Source {
            both
        } else {
            let [near, far] = both;
            [far, near]
        }
    }

    /// The matches of a bypass policy: a list for each possible protocol; none if no packet matches.
    fn bypass(self, exempt: &Exempt) -> Vec<Vec<Match>> {
        let mut base = vec![Match::V6(exempt.v6)];
        base.extend(exempt.interface.map(|index| match self.direction {
            Direction::Open => Match::ArrivesByIndex(index),
            Direction::Seal => Match::LeavesByIndex(index),
        }));
        for (end, (first, last)) in self.sender_first(exempt.local, exempt.remote) {
            if !is_all(first, last) {
                base.push(Match::InRange(end, first, last));
            }
        }
        let (local, remote) = &exempt.selectors;
        let wanted = match (local.protocol(), remote.protocol()) {
            (Some(one), Some(other)) if one != other => return vec![],
            (one, other) => one.or(other),
        };
        let sides = self.sender_first(local, remote);
        let has_any = sides.iter().all(|(_, side)| side.ports() == PortRange::ANY);
        // Invisible ports (OPAQUE) get no rule: no exempted packet precedes such fragments.
        if sides.iter().any(|(_, side)| side.ports() == PortRange::OPAQUE) {
            return vec![];
        }
        let with = |protocol: u8, more: Vec<Match>| [&base[..], &[Match::Protocol(protocol)], &more].concat();
        let range = |side: &TrafficSelector| (side.ports().first(), side.ports().last());
        let ports = || {
            let limited = sides.iter().filter(|(_, side)| side.ports() != PortRange::ANY);
            limited.map(|&(end, side)| Match::Port(end, range(side).0, range(side).1)).collect::<Vec<_>>()
        };
        match wanted {
            None if has_any => vec![base],
            None => [TCP, protocol::UDP].map(|protocol| with(protocol, ports())).into(),
            Some(protocol) if has_any => vec![with(protocol, vec![])],
            // One field, of the side that the packet comes from (RFC 4301 4.4.1.3).
            Some(protocol @ (ICMP | ICMPV6)) => {
                let from = if self.direction == Direction::Seal { local } else { remote };
                let kind = Match::TypeAndCode(range(from).0, range(from).1);
                vec![with(protocol, (from.ports() != PortRange::ANY).then_some(kind).into_iter().collect())]
            }
            Some(protocol) => vec![with(protocol, ports())],
        }
    }
}

fn is_all(first: IpAddr, last: IpAddr) -> bool {
    let widest = match last {
        IpAddr::V4(last) => last.is_broadcast(),
        IpAddr::V6(last) => u128::from(last) == u128::MAX,
    };
    first.is_unspecified() && widest
}
