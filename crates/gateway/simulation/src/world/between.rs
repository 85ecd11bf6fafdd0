//! What is between the machines of a gateway: the store of a cluster, and who learns where the shared addresses are.

use std::net::IpAddr;
use std::time::Duration as StdDuration;

use forebay_cluster::fake::Network as Fate;
use forebay_time::Duration;

use forebay_config::ShareBy;

use super::{Event, World};
use crate::network::Network;
use crate::packet;
use crate::site::{By, Site};

/// One look in so many delivers a request that was late.
const DELIVERS_EVERY: u64 = 150;
/// Longest time until the network has learnt where an address is now.
const LEARNS_MAX_MS: u64 = 1_500;

/// The default of `lease`, and the time in which a machine that has lost it stops.
const LEASE: Duration = Duration::from_millis(2_000);
const STOPS_WITHIN: Duration = Duration::from_millis(1_000);

impl World {
    /// Leases in the store end, and requests that were late arrive.
    pub(super) fn pass_time_of_store(&mut self) {
        self.etcd.set_time(StdDuration::from_nanos(self.now.0 / 1_000));
        if self.chance.below(DELIVERS_EVERY) == 0 {
            self.etcd.deliver(self.chance.bits());
        }
    }

    /// The way of a packet from outside within a gateway: the number of the address to which it goes, or the SPI where something else
    /// brings packets to the right machine.
    pub(super) fn way_in(&self, gateway: usize, packet: &[u8]) -> u32 {
        match self.site.share_by {
            _ if !self.site.has_shares() || self.site.pair != Some(gateway) => 0,
            ShareBy::Local => {
                let (_, (address, _)) = packet::places(packet);
                Network::home_of(address, gateway).unwrap_or(0).into()
            }
            ShareBy::Remote | ShareBy::Spi => packet::spi(packet).unwrap_or(0),
        }
    }

    /// The way of a program's packet from one gateway to another.
    pub(super) fn way_out(&self, from: usize, to: usize) -> u32 {
        if !self.site.has_shares() || self.site.pair != Some(from) {
            return 0;
        }
        let tunnel = &self.site.tunnels[self.site.tunnel(from, to)];
        match self.site.share_by {
            ShareBy::Local => tunnel.home(from, tunnel.outbound).into(),
            ShareBy::Remote | ShareBy::Spi => Site::spi(from, to, tunnel.outbound),
        }
    }

    /// The machine to which a way leads; of one that is not known, some machine.
    pub(super) fn holder(&self, gateway: usize, way: u32) -> Option<usize> {
        let some = || self.holders.range((gateway, 0)..=(gateway, u32::MAX)).next().map(|(_, holder)| holder);
        self.holders.get(&(gateway, way)).or_else(some).copied()
    }

    /// A machine may have told the network of something that is here.
    pub(super) fn announced(&mut self, machine: usize) {
        let gateway = self.nodes[machine].number;
        if self.site.pair != Some(gateway) {
            return;
        }
        let announced = self.nodes[machine].host.take_announced();
        if self.site.by == By::Links {
            self.holders.extend(announced.first().map(|_| ((gateway, 0), machine)));
            return;
        }
        let ways = match self.site.share_by {
            ShareBy::Local => announced.into_iter().map(|address| way_of(address, gateway)).collect(),
            ShareBy::Remote | ShareBy::Spi => self.nodes[machine].spis(),
        };
        for way in ways {
            if self.holders.get(&(gateway, way)) != Some(&machine) && self.nodes[machine].unlearnt.insert(way)
            {
                // Mostly at once; where announcements are lost, what is sent still goes to the machine that had the address.
                let late = if self.chance.below(3) == 0 { self.chance.below(LEARNS_MAX_MS) } else { 0 };
                self.schedule_in(Duration::from_millis(late), Event::Learn(machine, way));
            }
        }
    }

    /// A way leads to this machine from now on, if it still has what is there.
    pub(super) fn learn(&mut self, machine: usize, way: u32) {
        let node = &mut self.nodes[machine];
        node.unlearnt.remove(&way);
        let has = match self.site.share_by {
            ShareBy::Local => node.host.has_address(Network::address_at(node.number, way as u8).into()),
            ShareBy::Remote | ShareBy::Spi => node.spis().contains(&way),
        };
        if has {
            self.holders.insert((node.number, way), machine);
        }
    }

    /// What becomes of a machine's requests to the store.
    pub(super) fn set_way(&mut self, machine: usize, fate: Fate) {
        if let Some(side) = self.site.side_of(machine) {
            self.ways[side].set(fate);
            let answers = matches!(fate, Fate::Works | Fate::Full);
            let node = &mut self.nodes[machine];
            // A process that was busy for long may be ahead of the network.
            let at = node.clock.now().max(self.now);
            node.cut_at = if answers { None } else { node.cut_at.or(Some(at)) };
        }
    }

    /// Whether a machine must serve nothing now, because the store may have given its share to the other one.
    pub(super) fn must_have_stopped(&self, machine: usize) -> bool {
        let node = &self.nodes[machine];
        let since = node.cut_at.map(|at| (at + LEASE).max(node.resumed_at) + STOPS_WITHIN);
        self.site.stops_alone && since.is_some_and(|since| self.now > since)
    }
}

/// The way of what goes to an address of a gateway.
fn way_of(address: IpAddr, gateway: usize) -> u32 {
    let home = match address {
        IpAddr::V4(address) => Network::home_of(address.octets(), gateway),
        IpAddr::V6(_) => None,
    };
    home.unwrap_or(0).into()
}
