//! A gateway that is two machines: as `forebay gateway` with `[pair]`, each stands by or runs the data plane.

use forebay_pair::Verdict;
use forebay_time::Duration;

use super::{Event, World};
use crate::oracle::Rule;
use crate::site::By;

/// Between two looks at what the pair decides.
pub const LOOK: Duration = Duration::from_millis(10);

impl World {
    /// Has a machine do what its pair decides.
    pub(super) fn look_after(&mut self, machine: usize) {
        self.schedule_in(LOOK, Event::Look(machine));
        if self.site.by == By::Store {
            return self.share(machine);
        }
        let now = self.now;
        let node = &mut self.nodes[machine];
        let Some(member) = node.member.as_mut().filter(|_| !node.suspended) else { return };
        node.clock.enter(now);
        member.pass_time(now);
        let verdict = member.pair.verdict();
        let every = member.pair.announce_every();
        // What one says, the other writes.
        if let Some(killed) = (0..self.nodes.len()).find(|&other| self.is_killed(other)) {
            self.killed(killed);
            if killed == machine {
                return;
            }
        }
        match (verdict, self.nodes[machine].service.is_some()) {
            (Verdict::Standby, false) => {}
            (Verdict::Active, true) => self.announce(machine, every),
            (_, true) => {
                if self.stop_data_plane(machine) && verdict == Verdict::Restart {
                    self.take_over(machine);
                }
            }
            (_, false) => self.take_over(machine),
        }
    }

    fn is_killed(&self, machine: usize) -> bool {
        let node = &self.nodes[machine];
        node.member.is_some() && node.host.disk().is_killed()
    }

    /// The shared addresses lead to this machine, once its announcement is due.
    fn announce(&mut self, machine: usize, every: Option<std::time::Duration>) {
        let Some(every) = every.map(|every| Duration::from_millis(every.as_millis() as u64)) else { return };
        let Some(member) = &mut self.nodes[machine].member else { return };
        if member.announced.is_none_or(|at| self.now.since(at) >= every) {
            member.announced = Some(self.now);
            self.holders[self.nodes[machine].number] = Some(machine);
        }
    }

    fn take_over(&mut self, machine: usize) {
        let now = self.now;
        match self.nodes[machine].take_over(&self.site, now) {
            Ok(()) => {
                self.take_overs += 1;
                self.nodes[machine].wake_at = None;
                self.announce(machine, Some(std::time::Duration::ZERO));
                self.wakes(machine);
            }
            // The process ends with an error, and is started again.
            Err((why, is_wrong)) => {
                if is_wrong {
                    let what = format!("machine {machine} does not take over: {why}");
                    self.oracle.report(Rule::Runs, now, what);
                }
                self.killed(machine);
            }
        }
        if self.nodes[machine].host.disk().is_killed() && self.nodes[machine].member.is_some() {
            self.killed(machine);
        }
    }

    /// Ends a data plane; whether the process goes on.
    fn stop_data_plane(&mut self, machine: usize) -> bool {
        let now = self.now;
        self.carry(machine);
        let node = &mut self.nodes[machine];
        node.clock.enter(now);
        let stopped = node.stop_service();
        if node.host.disk().is_killed() {
            self.killed(machine);
            return false;
        }
        if let Err(why) = stopped {
            let what = format!("machine {machine} does not stop: {why}");
            self.oracle.report(Rule::Runs, now, what);
        }
        let Some(member) = &self.nodes[machine].member else { return false };
        if member.pair.verdict() == Verdict::Standby {
            member.pair.stopped();
        }
        if self.is_killed(machine) {
            self.killed(machine);
            return false;
        }
        true
    }

    /// A machine's process stops where it is, or goes on.
    pub(super) fn suspend(&mut self, machine: usize, suspended: bool) {
        let node = &mut self.nodes[machine];
        match &node.member {
            Some(member) => member.suspend(suspended),
            None if node.sharing.is_some() => {}
            None => return,
        }
        node.suspended = suspended;
        if !suspended {
            node.wake_at = None;
            self.wakes(machine);
        }
    }
}
