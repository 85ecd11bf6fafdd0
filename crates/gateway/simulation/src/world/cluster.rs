//! A gateway that is two machines by a store: as `forebay gateway` with `[cluster]`, each runs a data plane and serves what it has claimed.

use std::time::Duration as StdDuration;

use forebay_cluster::fake::Network as Fate;
use forebay_time::Duration;

use super::{AGAIN, Event, World};
use crate::oracle::Rule;

/// One look in so many delivers a request that was late.
const DELIVERS_EVERY: u64 = 150;
/// Longest time until the network has learnt where an address is now.
const LEARNS_MAX_MS: u64 = 1_500;

impl World {
    /// Has a machine do what its cluster wants.
    pub(super) fn share(&mut self, machine: usize) {
        let now = self.now;
        self.etcd.set_time(StdDuration::from_nanos(now.0 / 1_000));
        if self.chance.below(DELIVERS_EVERY) == 0 {
            self.etcd.deliver(self.chance.bits());
        }
        let node = &mut self.nodes[machine];
        if node.suspended || node.sharing.is_none() {
            return;
        }
        let shared = node.share(now);
        if node.host.disk().is_killed() {
            return self.killed(machine);
        }
        self.carry(machine);
        match shared {
            Ok(false) => {}
            Ok(true) => {
                self.take_overs += 1;
                // Mostly at once; where an announcement is lost, what is sent still goes to the machine that had the address.
                let late = if self.chance.below(3) == 0 { self.chance.below(LEARNS_MAX_MS) } else { 0 };
                self.schedule_in(Duration::from_millis(late), Event::Learn(machine));
                self.wakes(machine);
            }
            Err((_, false)) => {}
            Err((why, true)) => {
                let what = format!("machine {machine} does not serve its shares: {why}");
                self.oracle.report(Rule::Runs, now, what);
            }
        }
        let node = &mut self.nodes[machine];
        if node.sharing.as_mut().is_some_and(|sharing| sharing.has_left(now)) {
            let stopped = node.stop(now);
            if node.host.disk().is_killed() {
                return self.killed(machine);
            }
            if let Err(why) = stopped {
                self.oracle.report(Rule::Runs, now, format!("machine {machine} does not stop: {why}"));
            }
            self.schedule_in(AGAIN, Event::Start(machine));
        }
    }

    /// The gateway's addresses lead to this machine from now on, if it still serves them.
    pub(super) fn learn(&mut self, machine: usize) {
        let node = &self.nodes[machine];
        if node.sharing.as_ref().is_some_and(|sharing| !sharing.served.is_empty()) {
            self.holders[node.number] = Some(machine);
        }
    }

    /// Has a machine leave its cluster and stop.
    pub(super) fn leave(&mut self, machine: usize) {
        if let Some(sharing) = &mut self.nodes[machine].sharing {
            sharing.leaves.get_or_insert(self.now);
        }
    }

    /// What becomes of a machine's requests to the store.
    pub(super) fn set_way(&mut self, machine: usize, fate: Fate) {
        if let Some(side) = self.site.side_of(machine) {
            self.ways[side].set(fate);
        }
    }
}
