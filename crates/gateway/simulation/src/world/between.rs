//! What is between the machines of a gateway: the store of a cluster, and who learns where the shared addresses are.

use std::time::Duration as StdDuration;

use forebay_cluster::fake::Network as Fate;
use forebay_time::Duration;

use super::{Event, World};
use crate::site::By;

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

    /// A machine has told the network that the gateway's addresses are here.
    pub(super) fn announced(&mut self, machine: usize) {
        let gateway = self.nodes[machine].number;
        if self.site.by == By::Links {
            self.holders[gateway] = Some(machine);
        } else if self.holders[gateway] != Some(machine) && !self.nodes[machine].is_unlearnt {
            self.nodes[machine].is_unlearnt = true;
            // Mostly at once; where announcements are lost, what is sent still goes to the machine that had the address.
            let late = if self.chance.below(3) == 0 { self.chance.below(LEARNS_MAX_MS) } else { 0 };
            self.schedule_in(Duration::from_millis(late), Event::Learn(machine));
        }
    }

    /// The gateway's addresses lead to this machine from now on, if it still has them.
    pub(super) fn learn(&mut self, machine: usize) {
        let node = &mut self.nodes[machine];
        node.is_unlearnt = false;
        if node.host.has_address() {
            self.holders[node.number] = Some(machine);
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
