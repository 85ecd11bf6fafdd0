//! Selectors of both sides, prepared for comparison with packets.

use std::net::IpAddr;

use crate::dscp::DscpSet;
use crate::headers::{self, Headers, Port, UNKNOWN, has_ports, has_type};
use crate::selector::Addresses;
use crate::selector::{PortRange, TrafficSelector};

/// Whether a packet is one of those meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// It is none.
    No,
    /// It may belong to one that is meant; the deciding field is in another fragment.
    Maybe,
    /// It is one.
    Yes,
}

/// The traffic selectors of both sides and the classes of an SA or policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    pub(crate) local: Box<[Side]>,
    pub(crate) remote: Box<[Side]>,
    /// The classes of traffic that are meant.
    pub dscp: DscpSet,
    /// Whether nothing but addresses matters.
    pub wide: bool,
}

/// One traffic selector, its addresses aligned left as in [`Headers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Side {
    pub families: Families,
    pub first: u128,
    pub last: u128,
    /// Zero for any.
    pub protocol: u8,
    pub ports: PortRange,
}

/// IP versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Families {
    V4,
    V6,
    Both,
}

impl Families {
    #[inline]
    pub fn has(self, v6: bool) -> bool {
        self == Families::Both || v6 == (self == Families::V6)
    }
}

/// All bits behind an IPv4 address that is aligned left.
const BEHIND_V4: u128 = u128::MAX >> 32;

impl Rule {
    /// The rule of these selectors; none on a side means any traffic.
    pub fn new(local: &[TrafficSelector], remote: &[TrafficSelector], dscp: DscpSet) -> Rule {
        let side = |selectors: &[TrafficSelector]| -> Box<[Side]> {
            match selectors {
                [] => [Side::new(&TrafficSelector::ANY)].into(),
                selectors => selectors.iter().map(Side::new).collect(),
            }
        };
        let addresses_only = |selector: &TrafficSelector| selector.is_addresses_only();
        let wide = local.iter().chain(remote).all(addresses_only) && dscp == DscpSet::ALL;
        Rule { local: side(local), remote: side(remote), dscp, wide }
    }

    /// Whether a packet is meant.
    #[inline]
    pub fn matches(&self, headers: &Headers) -> Match {
        if !self.wide && !self.dscp.contains(headers.dscp) {
            return Match::No;
        }
        self.matches_selectors(headers)
    }

    /// The same without a look at the class, which is not checked on what an SA brings in
    /// (RFC 4301 4.4.2.1).
    #[inline]
    pub fn matches_selectors(&self, headers: &Headers) -> Match {
        let best = |sides: &[Side], address, port| {
            let mut best = Match::No;
            for side in sides {
                best = best.max(side.matches(headers, address, port));
                if best == Match::Yes {
                    break;
                }
            }
            best
        };
        let local = best(&self.local, headers.local, headers.local_port);
        if local == Match::No {
            return Match::No;
        }
        local.min(best(&self.remote, headers.remote, headers.remote_port))
    }

    /// Whether a packet that is meant is so by a selector that names its protocol.
    pub fn names(&self, headers: &Headers) -> bool {
        let named = |sides: &[Side], address, port| {
            let by_name = |side: &&Side| side.protocol != 0;
            sides.iter().filter(by_name).any(|side| side.matches(headers, address, port) == Match::Yes)
        };
        named(&self.local, headers.local, headers.local_port)
            || named(&self.remote, headers.remote, headers.remote_port)
    }
}

impl Rule {
    /// Whether there are packets that it means: both sides have an IP version in common.
    pub fn can_match(&self) -> bool {
        let has = |sides: &[Side], v6| sides.iter().any(|side| side.families.has(v6));
        [false, true].into_iter().any(|v6| has(&self.local, v6) && has(&self.remote, v6))
    }

    /// Whether some packet may be meant by both; of ports nothing is asked.
    pub fn meets(&self, other: &Rule) -> bool {
        self.dscp.0 & other.dscp.0 != 0
            && meet(&self.local, &other.local)
            && meet(&self.remote, &other.remote)
    }

    /// Whether it means every packet that `other` means.
    pub fn covers(&self, other: &Rule) -> bool {
        let classes = other.dscp.0 & !self.dscp.0 == 0;
        classes && covers(&self.local, &other.local) && covers(&self.remote, &other.remote)
    }
}

/// Whether some address with its protocol is in both.
fn meet(sides: &[Side], others: &[Side]) -> bool {
    let meets = |side: &Side, other: &Side| {
        let version = |v6| side.families.has(v6) && other.families.has(v6);
        let in_common = side.first <= other.last && other.first <= side.last;
        in_common && (version(false) || version(true)) && side.common_protocol(other).is_some()
    };
    sides.iter().any(|side| others.iter().any(|other| meets(side, other)))
}

/// Whether all addresses of `others`, with their protocols and ports, are in `sides`.
fn covers(sides: &[Side], others: &[Side]) -> bool {
    let covers = |other: &Side, v6| !other.families.has(v6) || covers_one(sides, other, v6);
    others.iter().all(|other| covers(other, false) && covers(other, true))
}

fn covers_one(sides: &[Side], other: &Side, v6: bool) -> bool {
    let takes = |side: &&Side| {
        let protocol = side.protocol == 0 && side.ports == PortRange::ANY
            || side.protocol == other.protocol && side.ports.holds(other.ports);
        side.families.has(v6) && protocol
    };
    let mut ranges: Vec<(u128, u128)> =
        sides.iter().filter(takes).map(|side| (side.first, side.last)).collect();
    ranges.sort_unstable();
    // What of the range is not in those that begin before it.
    let mut next = Some(other.first);
    for (first, last) in ranges {
        match next {
            Some(begin) if first <= begin && last >= begin => next = last.checked_add(1),
            _ => {}
        }
    }
    next.is_none_or(|next| next > other.last)
}

impl Side {
    fn new(selector: &TrafficSelector) -> Side {
        let (families, first, last) = match selector.addresses {
            Addresses::Any => (Families::Both, 0, u128::MAX),
            Addresses::Range { first: IpAddr::V6(first), last: IpAddr::V6(last) } => {
                (Families::V6, first.into(), last.into())
            }
            Addresses::Range { first: IpAddr::V4(first), last: IpAddr::V4(last) } => {
                let aligned = |address: std::net::Ipv4Addr| u128::from(u32::from(address)) << 96;
                (Families::V4, aligned(first), aligned(last) | BEHIND_V4)
            }
            // A selector of two IP versions cannot be made; it would match nothing.
            Addresses::Range { .. } => (Families::V4, 1, 0),
        };
        Side { families, first, last, protocol: selector.protocol, ports: selector.ports }
    }

    #[inline]
    fn matches(&self, headers: &Headers, address: u128, port: Port) -> Match {
        if !self.families.has(headers.v6) || address < self.first || address > self.last {
            return Match::No;
        }
        let any_ports = self.ports == PortRange::ANY;
        if self.protocol == 0 && any_ports {
            return Match::Yes;
        }
        let protocol = match headers.protocol {
            UNKNOWN if self.protocol != 0 => Match::Maybe,
            protocol if self.protocol != 0 && protocol != u16::from(self.protocol) => return Match::No,
            _ => Match::Yes,
        };
        protocol.min(if any_ports { Match::Yes } else { self.match_port(headers.protocol, port) })
    }

    /// RFC 4301 4.4.1.1: a range of ports matches no packet whose ports cannot be seen; OPAQUE no other.
    #[inline]
    fn match_port(&self, protocol: u16, port: Port) -> Match {
        let opaque = self.ports == PortRange::OPAQUE;
        // Ports without a protocol are for those that have ports, and not for the types of others.
        if self.protocol == 0 && !opaque && has_type(protocol) {
            return Match::No;
        }
        let yes = match port {
            headers::FREE => true,
            headers::NONE => opaque,
            headers::HIDDEN if opaque => true,
            headers::HIDDEN => return Match::Maybe,
            port => (u32::from(self.ports.first())..=u32::from(self.ports.last())).contains(&port),
        };
        if yes { Match::Yes } else { Match::No }
    }

    /// The one protocol, if any, that packets meant by both sides have; `None` if there is none such.
    pub fn common_protocol(&self, other: &Side) -> Option<u8> {
        match (self.protocol, other.protocol) {
            (0, protocol) | (protocol, 0) => Some(protocol),
            (one, another) => (one == another).then_some(one),
        }
    }
}

/// Whether a protocol's port fields are one for each side.
pub fn is_two_sided(protocol: u8) -> bool {
    protocol == 0 || has_ports(protocol.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(local: &[&str], remote: &[&str]) -> Rule {
        let selectors = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        Rule::new(&selectors(local), &selectors(remote), DscpSet::ALL)
    }

    #[test]
    fn a_rule_covers_what_has_all_of_its_packets_in_it() {
        let wide = rule(&[], &["10.0.0.0/8"]);
        assert!(wide.covers(&rule(&["10.1.0.0/16[tcp/80]"], &["10.2.0.0/16"])));
        assert!(!wide.covers(&rule(&[], &["10.2.0.0/16", "fd00::/8"])) && !wide.covers(&rule(&[], &[])));
        assert!(!rule(&[], &["10.2.0.0/16"]).covers(&wide));
        // Two halves are the whole, in whatever order.
        let halves = rule(&[], &["10.128.0.0/9", "10.0.0.0/9"]);
        assert!(halves.covers(&wide) && wide.covers(&halves));
        let web = rule(&[], &["10.0.0.0/8[tcp/80-90]"]);
        assert!(web.covers(&rule(&[], &["10.1.0.0/16[tcp/85]"])));
        assert!(!web.covers(&rule(&[], &["10.1.0.0/16[udp/85]"])) && !web.covers(&wide));
        assert!(!web.covers(&rule(&[], &["10.1.0.0/16[tcp/opaque]"])));
        let voice = Rule { dscp: DscpSet::of([46]), ..wide.clone() };
        assert!(wide.covers(&voice) && !voice.covers(&wide));
    }

    #[test]
    fn rules_meet_where_they_have_a_packet_in_common() {
        let wide = rule(&[], &["10.0.0.0/8"]);
        assert!(wide.meets(&rule(&["10.1.0.0/16"], &["10.2.0.0/16"])) && rule(&[], &[]).meets(&wide));
        assert!(!wide.meets(&rule(&[], &["192.0.2.0/24", "2001:db8::/32"])));
        assert!(rule(&[], &["10.2.0.0/15"]).meets(&rule(&[], &["10.3.0.0-10.9.0.0"])));
        assert!(!rule(&["10.1.0.0/16"], &[]).meets(&rule(&["10.2.0.0/16"], &[])));
        let web = rule(&[], &["10.0.0.0/8[tcp/80]"]);
        assert!(web.meets(&wide) && !web.meets(&rule(&[], &["10.0.0.0/8[udp/80]"])));
        let (voice, other) = (DscpSet::of([46]), DscpSet::of([0]));
        assert!(!Rule { dscp: voice, ..wide.clone() }.meets(&Rule { dscp: other, ..wide }));
    }

    #[test]
    fn a_rule_of_two_ip_versions_matches_nothing() {
        assert!(!rule(&["10.1.0.0/16"], &["fd02::/64"]).can_match());
        assert!(
            rule(&["10.1.0.0/16", "fd01::/64"], &["fd02::/64"]).can_match()
                && rule(&[], &["fd02::/64"]).can_match()
        );
    }
}
