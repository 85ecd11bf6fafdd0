//! The processes of all machines: what is due in each, and what becomes of it.

use forebay_gateway::serving::Event as Happened;
use forebay_time::Duration;

use super::{AGAIN, Event, World};
use crate::node::may_fail;
use crate::oracle::Rule;
use crate::site::By;

/// Between two looks at a machine that works with another one, whose threads run as often, and at one alone.
pub(super) const LOOK: Duration = Duration::from_millis(10);
const LOOK_ALONE: Duration = Duration::from_millis(1_000);

impl World {
    /// Has a machine's process do what is due.
    pub(super) fn look_after(&mut self, machine: usize) {
        let is_alone = self.site.side_of(machine).is_none();
        self.schedule_in(if is_alone { LOOK_ALONE } else { LOOK }, Event::Look(machine));
        if self.site.by == By::Store && !is_alone {
            self.pass_time_of_store();
        }
        let now = self.now;
        let node = &mut self.nodes[machine];
        if node.suspended || node.serving.is_none() {
            return;
        }
        node.pass_time(now);
        // What one says, the other writes.
        while let Some(killed) = (0..self.nodes.len()).find(|&other| self.is_killed(other)) {
            self.killed(killed);
        }
        self.step(machine);
    }

    fn is_killed(&self, machine: usize) -> bool {
        let node = &self.nodes[machine];
        node.serving.is_some() && node.host.disk().is_killed()
    }

    /// Has a machine's loop do what is due.
    pub(super) fn step(&mut self, machine: usize) {
        let now = self.now;
        while self.nodes[machine].serving.is_some() && self.nodes[machine].step_at <= now {
            let stepped = self.nodes[machine].step(&self.site, now);
            while let Some(killed) = (0..self.nodes.len()).find(|&other| self.is_killed(other)) {
                self.killed(killed);
                if killed == machine {
                    return;
                }
            }
            self.carry(machine);
            match stepped {
                Ok(event) => {
                    self.announced(machine);
                    event.into_iter().for_each(|event| self.happened(machine, event));
                }
                // The process ends with an error, and is started again.
                Err((why, is_wrong)) => {
                    if is_wrong {
                        let what = format!("machine {machine} does not go on: {why}");
                        self.oracle.report(Rule::Runs, now, what);
                    }
                    return self.killed(machine);
                }
            }
        }
    }

    fn happened(&mut self, machine: usize, event: Happened) {
        match event {
            Happened::Started => {
                self.take_overs += 1;
                self.nodes[machine].wake_at = None;
                self.wakes(machine);
            }
            Happened::Stopped => self.nodes[machine].data_plane_ended(),
            Happened::Serves { more } => {
                self.take_overs += u64::from(more);
                self.wakes(machine);
            }
            Happened::Unserved(error) if may_fail(&error) => {}
            Happened::Unserved(error) => {
                let what = format!("machine {machine} does not serve its shares: {error}");
                self.oracle.report(Rule::Runs, self.now, what);
            }
            // The files of its gateways have addresses.
            Happened::StandsBy | Happened::Resolved => {}
            Happened::Ended => {
                self.nodes[machine].end();
                // It may have left its cluster after it was to be started again.
                self.schedule_in(AGAIN, Event::Start(machine));
            }
        }
    }

    /// A machine's process stops where it is, or goes on.
    pub(super) fn suspend(&mut self, machine: usize, suspended: bool) {
        let node = &mut self.nodes[machine];
        if node.pairing.is_none() && node.clustering.is_none() {
            return;
        }
        node.pairing.iter().for_each(|member| member.suspend(suspended));
        node.suspended = suspended;
        if !suspended {
            node.resumed_at = self.now;
            node.wake_at = None;
            self.wakes(machine);
        }
    }
}
