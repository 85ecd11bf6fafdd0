//! The operator of a gateway of several machines: moves a tunnel to another share, dissolves a pair, and makes a machine alone one of
//! a pair, each as the documentation says.

use forebay_time::Duration;

use super::{AGAIN, Event, World};
use crate::oracle::Rule;
use crate::plan;

/// Until an operator looks again whether the roles can be changed.
const LOOKS: Duration = Duration::from_millis(200);

impl World {
    /// The SAs of a tunnel belong to another address from now on.
    pub(super) fn move_tunnel(&mut self, place: usize, home: u8, keys: bool) {
        if std::mem::replace(&mut self.rekeying[place], true) {
            return;
        }
        let homes = plan::homes(self.site.share_by, home);
        let tunnel = &mut self.site.tunnels[place];
        if keys {
            tunnel.homes.push(homes);
            return self.operate(place, 0);
        }
        // The next keys are to be where those were.
        let before = tunnel.homes[tunnel.outbound as usize];
        tunnel.homes.push(before);
        tunnel.homes[tunnel.outbound as usize] = homes;
        self.site.moved_with_keys |= self.site.are_of_two_shares(place, before, homes);
        self.reload_ends(place);
    }

    /// What was moved with the keys that it has gets new keys where it was. If its machines refused that, the file says of the old keys again
    /// where they are; what they have accepted stays where it is as long as it has these keys.
    pub(super) fn move_back(&mut self, place: usize) {
        let tunnel = &self.site.tunnels[place];
        let (outbound, next) = (tunnel.outbound as usize, tunnel.homes.len() - 1);
        // It was not begun, because the keys were being replaced.
        if next > outbound && tunnel.inbound == [tunnel.outbound] {
            let (now, before) = (tunnel.homes[outbound], tunnel.homes[next]);
            if self.site.are_of_two_shares(place, before, now) {
                self.site.tunnels[place].homes[outbound] = before;
            }
            self.operate(place, 0);
        }
    }

    /// Dissolves the pair, or makes one of a machine alone and another one, as soon as that can be done.
    pub(super) fn change_role(&mut self, keeps: bool) {
        if self.calm {
            return;
        }
        let changed = match self.site.alone {
            Some(alone) => self.couple(alone, keeps),
            None => self.dissolve(),
        };
        match changed {
            true => self.changing = false,
            false => self.schedule_in(LOOKS, Event::Role(keeps)),
        }
    }

    /// Stops the standby, and then the active machine, which starts without `[pair]`. Whether that was possible: each has to know what the
    /// other one did.
    fn dissolve(&mut self) -> bool {
        let machines = self.site.machines_of(self.site.pair.unwrap_or(0));
        let runs = |world: &World, machine: usize| {
            world.nodes[machine].serving.is_some() && !world.nodes[machine].suspended
        };
        if machines.iter().any(|&machine| !runs(self, machine) || self.nodes[machine].is_unmerged()) {
            return false;
        }
        let serves: Vec<usize> =
            machines.iter().copied().filter(|&machine| self.nodes[machine].service().is_some()).collect();
        let [active] = serves[..] else { return false };
        machines.iter().filter(|machine| **machine != active).for_each(|&machine| self.end_process(machine));
        self.site.alone = Some(active);
        self.end_process(active);
        let node = &mut self.nodes[active];
        node.changes_role();
        node.must_ask = true;
        true
    }

    /// The machine alone gets `[pair]`, and another one beside it, with the records that it had when the pair was dissolved or none.
    fn couple(&mut self, alone: usize, keeps: bool) -> bool {
        if self.nodes[alone].service().is_none() {
            return false;
        }
        self.site.alone = None;
        self.end_process(alone);
        self.nodes[alone].changes_role();
        if keeps {
            // The other one remembers terms that this one has not heard of.
            self.accept(alone);
        }
        for other in self.site.machines_of(self.site.pair.unwrap_or(0)) {
            if other != alone {
                if !keeps {
                    self.nodes[other].replace_disk(false);
                }
                self.nodes[other].changes_role();
                self.start(other);
            }
        }
        true
    }

    /// A clean stop.
    fn end_process(&mut self, machine: usize) {
        self.nodes[machine].stop(self.now);
        self.step(machine);
    }

    /// A machine has started: if it is the gateway by itself, its addresses are there, and it has asked.
    pub(super) fn started_alone(&mut self, machine: usize) {
        if self.site.alone != Some(machine) {
            return;
        }
        self.holders.insert((self.nodes[machine].number, 0), machine);
        if self.nodes[machine].must_ask {
            let what =
                format!("machine {machine} goes on alone with the records of a pair, and nobody has said so");
            self.oracle.report(Rule::AsksFirst, self.now, what);
        }
    }

    /// Whether a machine that does not start asks what an operator has to say; the operator says it.
    pub(super) fn asked(&mut self, machine: usize) -> bool {
        let asks = self.site.alone == Some(machine) && self.nodes[machine].asks;
        if asks {
            self.nodes[machine].must_ask = false;
            self.accept(machine);
        }
        asks
    }

    /// The operator has a machine go on with the records that it has, and says it again if there was no room for that.
    pub(super) fn accept(&mut self, machine: usize) {
        // If one serves by now, none waits for that.
        let serves = |machine: usize| self.nodes[machine].service().is_some();
        if self.site.machines_of(self.nodes[machine].number).into_iter().any(serves) {
            return;
        }
        if !self.nodes[machine].accept() {
            self.schedule_in(AGAIN, Event::Accept(machine));
        }
    }
}
