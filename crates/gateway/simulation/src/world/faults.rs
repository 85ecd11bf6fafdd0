//! What goes wrong: how each thing of a plan begins and ends.

use forebay_cluster::fake::Network as Fate;
use forebay_crypto::fault::Fault;
use forebay_time::Duration;

use super::{Event, World};
use crate::link::SimLink;
use crate::network::{Coming, Network, Weather};
use crate::oracle::Wire;
use crate::packet;
use crate::plan::What;
use crate::site::By;

/// The links of a side.
fn side(world: &World, gateway: usize, outside: bool) -> Vec<SimLink> {
    let links = world.nodes[gateway].host.links();
    match outside {
        true => links.outside().cloned().collect(),
        false => links.inside.into_iter().collect(),
    }
}

impl World {
    /// A fault begins.
    pub(super) fn begin(&mut self, fault: usize) {
        if self.calm {
            return;
        }
        let crate::plan::Event { for_ms, about, what, .. } = self.plan.faults[fault].clone();
        let now = self.now;
        match what {
            What::Weather { loss, duplicate, corrupt, jitter_ms } => {
                self.network.weather[about] = Weather { loss, duplicate, corrupt, jitter_ms };
            }
            What::Replay { count, elsewhere } => {
                let oracle = &self.oracle;
                let delivered = |wire: Wire| oracle.is_delivered(wire.number);
                let coming = self.network.replay(about, count, elsewhere, now, delivered);
                self.come(coming);
            }
            What::ForgeEsp { count } => {
                let coming = self.network.forge_esp(about, count, now);
                self.come(coming);
            }
            What::ForgeIcmp { count, mtu } => {
                let messages = self.network.forge_icmp(about, count, mtu);
                let Some(machine) = self.holder(about, 0) else { return };
                if let Some(link) = self.nodes[machine].host.links().icmp {
                    for message in messages {
                        link.give(message, 0);
                    }
                    self.wakes(machine);
                }
            }
            What::ForgePlain { count } => self.forge_plain(about, count),
            What::Nat => self.network.moves(about),
            What::LinkDown { outside } => {
                side(self, about, outside).iter().for_each(|link| link.lock().down = true);
            }
            What::LinkFull { outside, room } => {
                side(self, about, outside).iter().for_each(|link| link.lock().room = Some(room.into()));
            }
            What::LinkMtu { mtu } => {
                side(self, about, true).iter().for_each(|link| link.lock().mtu = Some(mtu.into()));
            }
            What::Processor { which, how } => self.misbehave(about, which, how),
            What::CpusLost => self.nodes[about].interleaving.lose_cpus(true),
            // It would act on the signal when it goes on.
            What::Stop if self.nodes[about].suspended => {}
            What::Stop => {
                self.nodes[about].stop(now);
                self.step(about);
            }
            What::Kill { power } => {
                if self.nodes[about].serving.is_some() {
                    self.nodes[about].power = power;
                    self.nodes[about].kill();
                    if std::mem::take(&mut self.nodes[about].power) {
                        self.nodes[about].lose_power(&mut self.chance);
                    }
                }
            }
            What::KillAtWrite { after, power } => {
                self.nodes[about].power = power;
                self.nodes[about].host.disk().kill_after(after);
            }
            What::DiskFull => self.nodes[about].host.disk().set_full(true),
            What::ClockStep { by_ms } => self.nodes[about].clock.step(i128::from(by_ms) * 1_000_000),
            What::ClockStuck => self.nodes[about].stuck = true,
            What::Reload => {
                let tunnel = &mut self.site.tunnels[about];
                tunnel.wide = !tunnel.wide;
                self.reload_ends(about);
            }
            What::Rekey => {
                if !std::mem::replace(&mut self.rekeying[about], true) {
                    self.operate(about, 0);
                }
            }
            What::Suspend => self.suspend(about, true),
            What::Partition { to } => (0..2).for_each(|side| self.path.hold(side, to[side], now)),
            What::Reset => self.path.reset(),
            What::Replace if self.may_lose_disk(about) => self.nodes[about].replace_disk(false),
            What::Restore if self.may_lose_disk(about) => self.nodes[about].back_up(),
            What::Replace | What::Restore => {}
            What::Move { home, keys } => self.move_tunnel(about, home, keys),
            What::Role { keeps } => {
                if !std::mem::replace(&mut self.changing, true) {
                    self.change_role(keeps);
                }
            }
            What::Store { how } => self.set_way(about, how),
        }
        self.schedule_in(Duration::from_millis(for_ms), Event::End(fault));
    }

    /// A fault ends; one that has not begun may.
    pub(super) fn end(&mut self, fault: usize) {
        let crate::plan::Event { about, what, .. } = self.plan.faults[fault].clone();
        match what {
            What::Weather { .. } => self.network.weather[about] = Weather::default(),
            What::LinkDown { outside } => {
                side(self, about, outside).iter().for_each(|link| link.lock().down = false);
                self.wakes(about);
            }
            What::LinkFull { outside, .. } => {
                side(self, about, outside).iter().for_each(|link| link.lock().room = None);
                self.wakes(about);
            }
            What::LinkMtu { .. } => {
                side(self, about, true).iter().for_each(|link| link.lock().mtu = None);
            }
            What::Processor { which, .. } => {
                if let Some(control) = self.nodes[about].control(which) {
                    control.disarm();
                }
            }
            What::CpusLost => self.nodes[about].interleaving.lose_cpus(false),
            What::Stop | What::Kill { .. } | What::Replace => self.start(about),
            What::Restore if self.may_lose_disk(about) => {
                self.nodes[about].replace_disk(true);
                self.start(about);
            }
            What::DiskFull => self.nodes[about].host.disk().set_full(false),
            What::Suspend => self.suspend(about, false),
            What::Partition { .. } => (0..2).for_each(|side| self.path.hold(side, false, self.now)),
            What::Store { .. } => self.set_way(about, Fate::Works),
            What::Move { keys: false, .. } => self.move_back(about),
            _ => {}
        }
    }

    /// Whether the records of a machine are lost with its disk without harm, as the documentation says: those of a cluster are in the
    /// store; of a pair the other machine has them, if it serves and each has told the other one everything.
    fn may_lose_disk(&mut self, machine: usize) -> bool {
        let node = &self.nodes[machine];
        if node.serving.is_none() || node.suspended || self.site.alone.is_some() {
            return false;
        }
        match self.site.by {
            By::Store => true,
            By::Links => {
                let other = self.site.machines() - 1 - machine;
                let node = &mut self.nodes[machine];
                let has_none = node.service().is_none() && !node.is_unmerged();
                let other = &mut self.nodes[other];
                has_none && other.service().is_some() && !other.is_unmerged()
            }
        }
    }

    fn come(&mut self, coming: Vec<Coming>) {
        for coming in coming {
            self.schedule(coming.at, Event::Deliver(Box::new(coming)));
        }
    }

    /// Inner packets outside, in the clear: alone, and behind the headers of ESP in UDP.
    fn forge_plain(&mut self, to: usize, count: u16) {
        let from = (to + 1) % self.site.layouts.len();
        for nth in 0..u64::from(count) {
            let inner = packet::inner(u64::MAX - nth, from, to, 100, false);
            let packet = match nth % 2 {
                0 => inner,
                _ => {
                    let len = 28 + inner.len();
                    let mut packet =
                        packet::ipv4(Network::address(from), Network::address(to), 17, len, false);
                    packet.extend([0x11, 0x94, 0x11, 0x94]);
                    packet.extend(((len - 20) as u16).to_be_bytes());
                    packet.extend([0, 0]);
                    packet.extend(inner);
                    packet
                }
            };
            let at = self.now + Duration::from_micros(nth);
            self.come(vec![Coming { to, at, packet, wire: None }]);
        }
    }

    fn misbehave(&mut self, gateway: usize, which: u8, how: Fault) {
        let node = &mut self.nodes[gateway];
        let Some(control) = node.control(which).cloned() else { return };
        node.lies |= matches!(how, Fault::CorruptIcv { .. });
        control.arm(how);
    }
}
