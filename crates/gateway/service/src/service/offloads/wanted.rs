//! Which offloads of which interfaces are to be on: it follows from the file, from what is protected and from the host's routes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use forebay_config::{Config, InsideLink, KeySource, prefixes};
use forebay_guard::Entry;
use forebay_links::features::{RX_GRO, RX_UDP_GRO_FORWARDING, TX_UDP_SEGMENTATION};
use ipnet::IpNet;

use super::super::guard::kernel_entries;
use super::interfaces::{Interfaces, Kernel, State, is_on};

/// Most networks and peers that interfaces are looked up for.
const LOOKED_UP: usize = 64;

/// Where the packets of protected traffic come from and go to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Networks on this side.
    networks: BTreeSet<IpNet>,
    /// Outer addresses of peers.
    peers: BTreeSet<IpAddr>,
}

impl Ends {
    /// Outer addresses of peers.
    pub fn peers(&self) -> impl Iterator<Item = IpAddr> {
        self.peers.iter().copied()
    }

    /// Those of policies, as many as are looked up.
    pub fn of(entries: &[Entry]) -> Ends {
        let mut ends = Ends::default();
        for entry in entries.iter().filter(|entry| !entry.bypasses) {
            let peers = entry.peers.iter().take(LOOKED_UP - ends.peers.len());
            ends.peers.extend(peers);
            // All addresses are no network of a side.
            let networks = if entry.local_ts.is_empty() { vec![] } else { prefixes(&entry.local_ts) };
            let networks = networks.into_iter().filter(|network| network.prefix_len() > 0);
            ends.networks.extend(networks.take(LOOKED_UP - ends.networks.len()));
        }
        ends
    }
}

/// What is to be on, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The gateway's own interface, whose routes lead to no other network; empty without one.
    own: String,
    /// Whether batches come from the inside and go there.
    inside: bool,
    /// The interfaces to the inside that the file names.
    named: Option<Vec<String>>,
    /// Whether batches go to peers.
    outside: bool,
}

impl Wanted {
    pub(super) fn of(config: &Config) -> Wanted {
        let own = match &config.inside.link {
            InsideLink::Tun(tun) => tun.name.clone(),
            InsideLink::Xdp { .. } | InsideLink::Dpdk(_) => String::new(),
        };
        let (inside, outside) = (config.offloads_inside(), config.offloads_outside());
        Wanted { own, inside, named: config.offloads.inside.clone(), outside }
    }

    /// Whether there is anything to look after.
    pub(super) fn is_any(&self) -> bool {
        self.inside || self.outside
    }

    /// The offloads that are to be on: the interface and the name of each.
    pub(super) fn find(
        &self,
        ends: &Ends,
        interfaces: &mut dyn Interfaces,
    ) -> BTreeSet<(String, &'static str)> {
        let mut found = BTreeSet::new();
        if self.inside {
            // One of the two may be the gateway's own address.
            let both = ends.networks.iter().flat_map(|network| [network.network(), network.broadcast()]);
            let inside = self.named.clone().unwrap_or_else(|| self.towards(both, interfaces));
            for interface in inside {
                found.insert((interface.clone(), RX_UDP_GRO_FORWARDING));
                found.insert((interface, TX_UDP_SEGMENTATION));
            }
        }
        if self.outside {
            let outside = self.towards(ends.peers.iter().copied(), interfaces);
            found.extend(outside.into_iter().map(|interface| (interface, TX_UDP_SEGMENTATION)));
        }
        found
    }

    /// What of that is wanted now: batches from the inside only while the gateway's own interface is there and takes them, which it
    /// does from Linux 6.2 on.
    pub(super) fn now(&self, interfaces: &mut dyn Interfaces) -> Wanted {
        let taken = interfaces.read(&self.own, [TX_UDP_SEGMENTATION, RX_GRO]);
        let inside = self.inside && taken.is_ok_and(|[taken, _]| is_on(taken));
        Wanted { inside, ..self.clone() }
    }

    fn towards(
        &self,
        addresses: impl Iterator<Item = IpAddr>,
        interfaces: &mut dyn Interfaces,
    ) -> Vec<String> {
        let names = addresses.filter_map(|address| interfaces.towards(address, 0).ok().flatten());
        let names: BTreeSet<_> = names.filter(|name| *name != self.own).collect();
        names.into_iter().collect()
    }
}

/// The offloads that a gateway with this file would look after on this machine and that are not on, with their states. Keys from the kernel
/// need `CAP_NET_ADMIN`; without it there is nothing to say.
pub fn lacks_offloads(config: &Config) -> Vec<(String, &'static str, &'static str)> {
    let wanted = Wanted::of(config);
    if !wanted.is_any() {
        return vec![];
    }
    let entries = match &config.keys.source {
        KeySource::Static { .. } => config.guard_entries(),
        KeySource::Xfrm(options) => kernel_entries(options).unwrap_or_default(),
    };
    let mut interfaces = Kernel::default();
    let found = wanted.find(&Ends::of(&entries), &mut interfaces);
    let state = |(interface, name): (String, &'static str)| {
        let state = State::read(&mut interfaces, &interface, name).unwrap_or(State::Absent);
        (state != State::On).then_some((interface, name, state.word()))
    };
    found.into_iter().filter_map(state).collect()
}
