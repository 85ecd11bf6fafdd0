//! The addresses that policies require to be guarded.

use std::net::IpAddr;

use forebay_crypto::Direction;
use forebay_ipsec::TrafficSelector;
use ipnet::IpNet;

use super::ranges::Ranges;

/// A policy, or an SA that acts as one, with the parts that the guard uses. Policies of a direction have their order of
/// precedence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The direction of the packets.
    pub direction: Direction,
    /// Whether its packets pass in the clear: if not, they are protected.
    pub bypasses: bool,
    /// Traffic on this side; empty means any.
    pub local_ts: Vec<TrafficSelector>,
    /// Traffic on the peers' side; empty means any.
    pub remote_ts: Vec<TrafficSelector>,
    /// The number of the interface to which it is limited.
    pub interface: Option<u32>,
    /// Outer addresses of the peers from which its packets come.
    pub peers: Vec<IpAddr>,
}

/// Guarded addresses of one IP version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guarded {
    /// Of the peers' networks.
    pub remote: Ranges,
    /// Of each `remote_ts` that is wider than a peer's networks.
    pub wide: Ranges,
    /// The `local_ts` of the same policies.
    pub local: Ranges,
    /// Each `local_ts` that is no wider than the networks of one side.
    pub own: Ranges,
    /// Outer addresses of peers.
    pub peers: Ranges,
}

/// Packets that pass in the clear because of a bypass policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exempt {
    /// The direction of the packets.
    pub direction: Direction,
    /// Of IPv6.
    pub v6: bool,
    /// Addresses on this side, first and last.
    pub local: (IpAddr, IpAddr),
    /// Addresses on the peers' side.
    pub remote: (IpAddr, IpAddr),
    /// Selectors of both sides, for protocol and ports.
    pub selectors: (TrafficSelector, TrafficSelector),
    /// The only interface.
    pub interface: Option<u32>,
}

/// The plan of the guard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// IPv4.
    pub v4: Guarded,
    /// IPv6.
    pub v6: Guarded,
    /// Exemptions by bypass policies.
    pub exempt: Vec<Exempt>,
    /// Number of entries that protect any address from any, or equal networks from each other. An address does not determine its
    /// side there, so they are not guarded.
    pub any_to_any: usize,
    /// Number of exemptions beyond the limit: their packets are dropped.
    pub left_out: usize,
}

/// Maximum number of exemptions.
const EXEMPT_MAX: usize = 1_024;

impl Plan {
    /// The plan for these policies, without the networks in `except`.
    pub fn of(entries: &[Entry], except: &[IpNet]) -> Plan {
        let mut plan = Plan::default();
        for direction in [Direction::Seal, Direction::Open] {
            for v6 in [false, true] {
                plan.add(entries.iter().filter(|entry| entry.direction == direction), v6, except);
            }
        }
        // Both directions usually have the same entries.
        plan.any_to_any = plan.any_to_any.div_ceil(2);
        for version in [&mut plan.v4, &mut plan.v6] {
            version.remote.settle();
            version.wide.settle();
            version.local.settle();
            version.own.settle();
            version.peers.settle();
        }
        plan
    }

    /// Number of guarded ranges of peers' addresses.
    pub fn ranges(&self) -> usize {
        [&self.v4, &self.v6].iter().map(|version| version.remote.len() + version.wide.len()).sum()
    }

    /// The ranges of one IP version for decrypted packets that belong to this side only.
    pub fn own(entries: &[Entry], v6: bool) -> Vec<(IpAddr, IpAddr)> {
        let protect = entries.iter().filter(|entry| !entry.bypasses);
        let mut ranges: Vec<_> = protect.flat_map(|entry| narrow(entry, v6).addresses(v6)).collect();
        ranges.sort_unstable();
        ranges.dedup();
        ranges
    }

    fn add<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>, v6: bool, except: &[IpNet]) {
        let spared = Ranges::spared(v6, except);
        let never = Ranges::spared(v6, &[]);
        let mut before = Ranges::default();
        for entry in entries {
            // A peer of IPv4 may carry IPv6.
            let version = if v6 { &mut self.v6 } else { &mut self.v4 };
            version.peers.add(&Ranges::alone(&entry.peers, v6));
            let remote = Ranges::of(&entry.remote_ts, v6);
            let local = Ranges::of(&entry.local_ts, v6);
            if remote.is_empty() || local.is_empty() {
                continue;
            }
            if entry.bypasses {
                self.exempt(entry, v6, &before);
                continue;
            }
            let version = if v6 { &mut self.v6 } else { &mut self.v4 };
            version.own.add(&narrow(entry, v6).without(&never));
            let mut is_clear = true;
            for range in remote.iter() {
                let one = Ranges::from(range).without(&local.not_wider_than(range));
                if one.is_empty() || (range.is_wide(v6) && local.iter().any(|local| local.is_all(v6))) {
                    is_clear = false;
                    continue;
                }
                let one = one.without(&spared);
                if range.is_wide(v6) {
                    version.wide.add(&one);
                    version.local.add(&local);
                } else {
                    version.remote.add(&one);
                }
            }
            // An entry for both IP versions counts once.
            let is_first = !v6 || Ranges::of(&entry.remote_ts, false).is_empty();
            self.any_to_any += usize::from(!is_clear && is_first);
            before.add(&remote);
            before.settle();
        }
    }

    /// Exempts the packets of a bypass policy, except those that are protected by a policy `before` it.
    fn exempt(&mut self, entry: &Entry, v6: bool, before: &Ranges) {
        let any = [TrafficSelector::ANY];
        let or_any = |selectors: &'_ [TrafficSelector]| {
            if selectors.is_empty() { any.to_vec() } else { selectors.to_vec() }
        };
        for local in or_any(&entry.local_ts) {
            for remote in or_any(&entry.remote_ts) {
                let far = Ranges::of(&[remote], v6).without(before);
                for near in Ranges::of(&[local], v6).iter() {
                    for far in far.iter() {
                        if self.exempt.len() >= EXEMPT_MAX {
                            self.left_out += 1;
                            continue;
                        }
                        self.exempt.push(Exempt {
                            direction: entry.direction,
                            v6,
                            local: near.addresses(v6),
                            remote: far.addresses(v6),
                            selectors: (local, remote),
                            interface: entry.interface,
                        });
                    }
                }
            }
        }
    }
}

/// The ranges of each `local_ts` that is no wider than the networks of one side.
fn narrow(entry: &Entry, v6: bool) -> Ranges {
    let mut narrow = Ranges::default();
    for selector in &entry.local_ts {
        let range = Ranges::of(std::slice::from_ref(selector), v6);
        if range.iter().all(|range| !range.is_wide(v6)) {
            narrow.add(&range);
        }
    }
    narrow.settle();
    narrow
}
