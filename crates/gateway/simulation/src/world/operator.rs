//! The operator of the gateways: restarts them, reloads their files, replaces keys, and judges at the end.

use forebay_time::Duration;

use super::process::LOOK;
use super::{AGAIN, ARRIVES, Event, GRACE, PROBED, PROBES, World};
use crate::oracle::Rule;
use crate::plan::What;
use crate::site::{By, Site};

/// Between two steps of a rekey.
const STEP: Duration = Duration::from_millis(300);
/// How long many packets are sent when the faults are over.
const REFUSED: Duration = Duration::from_millis(1_500);
/// Behind that, until traffic has to flow, only each of so many probes is sent.
const RARELY: u64 = 8;
/// Longest time that a machine of a pair may be down, and that the two take to agree behind that.
const PAIR_LATE: Duration = Duration::from_millis(6_500);
/// Until an operator looks whether a pair serves, and how long it takes to agree after an operator's acceptance.
const DECIDES: Duration = Duration::from_millis(6_500);
const DECIDED: Duration = Duration::from_millis(12_000);
/// Between the reload of the first machine of several with shares and that of the last one, in milliseconds.
const RELOADS_MAX_MS: u64 = 1_500;
/// Until the thread that reserves numbers runs.
const KEEPS_MAX_US: u64 = 3_000;

impl World {
    /// Lets a gateway's keeper of numbers run soon.
    pub(super) fn keep_soon(&mut self, gateway: usize) {
        if self.nodes[gateway].keep_at.is_none() {
            let at = self.now + Duration::from_micros(1 + self.chance.below(KEEPS_MAX_US));
            self.nodes[gateway].keep_at = Some(at);
            self.schedule(at, Event::Keep(gateway, false));
        }
    }

    /// The keeper runs.
    pub(super) fn keep(&mut self, gateway: usize, again: bool) {
        let now = self.now;
        let node = &mut self.nodes[gateway];
        if again {
            self.schedule_in(AGAIN, Event::Keep(gateway, true));
        } else {
            node.keep_at = None;
        }
        let node = &mut self.nodes[gateway];
        let Some(serving) = node.serving.as_mut().filter(|_| !node.suspended) else { return };
        node.clock.enter(now);
        serving.service_mut().into_iter().for_each(|service| service.keep_numbers(again));
        if node.host.disk().is_killed() {
            self.killed(gateway);
        }
    }

    /// A gateway was killed between two operations of its disk.
    pub(super) fn killed(&mut self, gateway: usize) {
        self.carry(gateway);
        let node = &mut self.nodes[gateway];
        node.kill();
        if std::mem::take(&mut node.power) {
            node.lose_power(&mut self.chance);
        }
        let down = Duration::from_micros(1_000 + self.chance.below(800_000));
        self.schedule_in(down, Event::Start(gateway));
    }

    /// Starts a gateway, if it does not run.
    pub(super) fn start(&mut self, gateway: usize) {
        let now = self.now;
        if self.nodes[gateway].serving.is_some() || self.site.is_off(gateway) {
            return;
        }
        let started = self.nodes[gateway].start(&self.site, now);
        match started {
            Ok(()) => {
                self.nodes[gateway].wake_at = None;
                self.wakes(gateway);
                self.started_alone(gateway);
                if !std::mem::replace(&mut self.nodes[gateway].is_looked_after, true) {
                    self.schedule_in(AGAIN, Event::Keep(gateway, true));
                    self.schedule_in(LOOK, Event::Look(gateway));
                }
            }
            Err((why, is_wrong)) => {
                if is_wrong && !self.asked(gateway) {
                    self.oracle.report(Rule::Runs, now, format!("gateway {gateway} does not start: {why}"));
                }
                let node = &mut self.nodes[gateway];
                if std::mem::take(&mut node.power) {
                    node.lose_power(&mut self.chance);
                }
                self.schedule_in(AGAIN, Event::Start(gateway));
            }
        }
    }

    /// Makes both gateways of a tunnel reload their files.
    pub(super) fn reload_ends(&mut self, tunnel: usize) {
        self.site.tunnels[tunnel].ends.into_iter().for_each(|gateway| self.reload_all(gateway));
    }

    /// Makes all machines of a gateway reload its file.
    fn reload_all(&mut self, gateway: usize) {
        for machine in self.site.machines_of(gateway) {
            if self.nodes[machine].file.is_some() {
                // One after the other: the file of each is changed, and then it reloads.
                let at = Duration::from_micros(self.chance.below(RELOADS_MAX_MS * 1_000));
                self.schedule_in(at, Event::Reload(machine));
            } else {
                self.reload(machine);
            }
        }
    }

    /// Makes a machine reload its file, and retries if it cannot.
    pub(super) fn reload(&mut self, gateway: usize) {
        let now = self.now;
        if let Some(file) = &mut self.nodes[gateway].file {
            *file = self.site.file(gateway);
        }
        if self.nodes[gateway].serving.is_none() {
            return;
        }
        if self.nodes[gateway].suspended {
            return self.schedule_in(AGAIN, Event::Reload(gateway));
        }
        // What other processors have comes back while it waits.
        let reloaded = self.nodes[gateway].reload(&self.site, now);
        if self.nodes[gateway].host.disk().is_killed() {
            return self.killed(gateway);
        }
        self.carry(gateway);
        match reloaded {
            Ok(()) => {
                self.wakes(gateway);
                self.announced(gateway);
            }
            Err((why, is_wrong)) => {
                if is_wrong {
                    self.oracle.report(Rule::Runs, now, format!("gateway {gateway} does not reload: {why}"));
                }
                self.schedule_in(AGAIN, Event::Reload(gateway));
            }
        }
    }

    /// The oracle learns the keys of a tunnel.
    pub(super) fn learn_keys(&mut self, tunnel: usize, generation: u32) {
        let tunnel = &self.site.tunnels[tunnel];
        let [one, two] = tunnel.ends;
        for (from, to) in [(one, two), (two, one)] {
            self.oracle.add_sa(&self.site, tunnel, Site::spi(from, to, generation));
        }
    }

    /// A step of a rekey: the new inbound SAs, the new outbound ones, and the old inbound ones away.
    pub(super) fn operate(&mut self, place: usize, step: u8) {
        let tunnel = &mut self.site.tunnels[place];
        let new = tunnel.outbound + u32::from(step == 0);
        match step {
            0 => {
                tunnel.inbound.push(new);
                // With the addresses of the keys before, or those to which it moves.
                if tunnel.homes.len() <= new as usize {
                    tunnel.homes.extend(tunnel.homes.last().copied());
                }
            }
            1 => tunnel.outbound = tunnel.inbound.last().copied().unwrap_or(0),
            _ => tunnel.inbound.retain(|generation| *generation == new),
        }
        if step == 0 {
            self.learn_keys(place, new);
        }
        self.reload_ends(place);
        match step {
            0 | 1 => self.schedule_in(STEP, Event::Operate(place, step + 1)),
            _ => self.rekeying[place] = false,
        }
    }

    /// Everything that goes wrong ends.
    pub(super) fn calm_down(&mut self) {
        for fault in 0..self.plan.faults.len() {
            if !matches!(self.plan.faults[fault].what, What::Stop | What::Kill { .. }) {
                self.end(fault);
            }
        }
        self.calm = true;
        for gateway in 0..self.nodes.len() {
            if self.nodes[gateway].serving.is_some() {
                self.nodes[gateway].host.disk().revive();
            }
            self.schedule_in(AGAIN, Event::Start(gateway));
        }
        self.schedule_in(PROBES, Event::Probe(false));
        if self.plan.loses_directories() && self.site.by == By::Links {
            self.schedule_in(DECIDES, Event::Decide);
        }
    }

    /// A machine whose peer lost its records, and which failed before it had used anything behind that, waits for an operator's acceptance:
    /// nothing says that the other one had not served. Here it had not.
    pub(super) fn decide(&mut self) {
        if self.site.alone.is_some() {
            return;
        }
        let machines = self.site.machines_of(self.site.pair.unwrap_or(0));
        if machines.iter().any(|&machine| self.nodes[machine].service().is_some()) {
            return;
        }
        let known = |machine: &&usize| self.nodes[**machine].knows_all();
        if let [machine] = machines.iter().filter(known).collect::<Vec<_>>()[..] {
            self.accept(*machine);
        }
    }

    /// How much later the last gateway starts where one is a pair: its machines may be down for so long, and then agree.
    fn late(&self) -> Duration {
        let decided = if self.plan.loses_directories() { DECIDED } else { Duration::ZERO };
        if self.site.pair.is_some() { PAIR_LATE + decided } else { Duration::ZERO }
    }

    /// A packet each way of each tunnel; once traffic has to flow, it has to arrive.
    pub(super) fn probe(&mut self, counts: bool) {
        let since = self.now.since(forebay_time::Time::ZERO + Duration::from_millis(self.plan.length_ms));
        for place in 0..self.site.tunnels.len() {
            let [one, two] = self.site.tunnels[place].ends;
            for (from, to) in [(one, two), (two, one)] {
                // Behind a crash an SA refuses as many as it received in the last second before.
                let refused = self.plan.rate() * 3 + 60;
                let ticks = REFUSED.0 / PROBES.0;
                let late = self.late();
                let packets = match since {
                    since if since < REFUSED + late => refused / ticks,
                    since if since < GRACE + late => u64::from((since.0 / PROBES.0).is_multiple_of(RARELY)),
                    _ => 1,
                };
                for _ in 0..packets {
                    // Fits the smallest path that ICMP can make a gateway believe in.
                    let len = 36 + self.traffic.below(250) as usize;
                    let number = self.send_inside(from, to, len, false);
                    if counts {
                        self.probes.push(number);
                    }
                }
            }
        }
        let grace = GRACE + self.late();
        if since < grace + PROBED {
            self.schedule_in(PROBES, Event::Probe(since >= grace));
        } else {
            let probes = std::mem::take(&mut self.probes);
            self.schedule_in(ARRIVES, Event::Judge(probes));
        }
    }

    /// Whether what had to arrive has, and all is counted.
    pub(super) fn judge(&mut self, probes: &[u64]) {
        for gateway in 0..self.nodes.len() {
            self.check(gateway);
            let left = self.nodes[gateway].left();
            if left > 0 {
                self.oracle.report(
                    Rule::Flows,
                    self.now,
                    format!("{left} packets stay in gateway {gateway}"),
                );
            }
        }
        let lost: Vec<u64> =
            probes.iter().copied().filter(|number| !self.oracle.is_delivered(*number)).collect();
        if let Some(first) = lost.first() {
            let way = self.oracle.way(*first);
            let describe = |gateway: usize| {
                let machine = self.holder(gateway, 0);
                machine.and_then(|machine| self.nodes[machine].describe()).unwrap_or_default()
            };
            let sas = way.map(|(from, to)| describe(from) + "; there: " + &describe(to)).unwrap_or_default();
            let (lost, all) = (lost.len(), probes.len());
            let what = format!("{lost} of {all} packets did not arrive, the first of {way:?}: {sas}");
            self.oracle.report(Rule::Flows, self.now, what);
        }
    }
}
