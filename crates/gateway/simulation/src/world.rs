//! A run: events in the order of virtual time.

mod between;
mod faults;
mod operator;
mod process;
mod roles;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;

use forebay_cluster::fake::{FakeEtcd, Link};
use forebay_random::{Random, hash};
use forebay_time::{Duration, Time};

use crate::network::{Coming, Network};
use crate::node::{Node, Others, Woken};
use crate::oracle::{self, Oracle, Rule, Violation};
use crate::packet;
use crate::pairing::Path;
use crate::plan::Plan;
use crate::site::{By, Site};

/// From a packet's arrival until the worker wakes.
const WAKES: Duration = Duration::from_micros(8);
/// Between two tries of what failed.
const AGAIN: Duration = Duration::from_millis(1_000);
/// Time after the last fault until traffic has to flow: reservations are retried each second, tokens and processors
/// recover, and peers find each other.
const GRACE: Duration = Duration::from_millis(8_000);
/// Between two packets each way in that time, and of those that have to arrive.
const PROBES: Duration = Duration::from_millis(100);
/// How long these are sent, and how long one may take.
const PROBED: Duration = Duration::from_millis(1_000);
const ARRIVES: Duration = Duration::from_millis(500);
/// Wake-ups between two looks at a gateway's counts.
const CHECK_EVERY: u64 = 32;

/// What is known of a run that broke no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Packets and other events.
    pub events: u64,
    /// Packets that programs sent.
    pub sent: usize,
    /// Packets of them that were delivered.
    pub delivered: usize,
    /// How often a machine of a pair or of a cluster took over.
    pub take_overs: u64,
    /// Packets that both machines of a pair delivered while they could not hear each other.
    pub repeated: u64,
    /// Of all that was seen outside and inside.
    pub fingerprint: u64,
}

/// Something that is to happen.
enum Event {
    Burst,
    Deliver(Box<Coming>),
    Wake(usize),
    Keep(usize, bool),
    Begin(usize),
    End(usize),
    Start(usize),
    Reload(usize),
    Operate(usize, u8),
    Calm,
    /// An operator looks at a pair of which neither machine serves.
    Decide,
    Probe(bool),
    Look(usize),
    Learn(usize, u32),
    /// The operator wants the machines of a gateway in another role.
    Role(bool),
    Accept(usize),
    Judge(Vec<u64>),
}

struct Scheduled {
    at: Time,
    order: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Scheduled) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Scheduled) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Scheduled) -> Ordering {
        // The heap gives the greatest.
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// All gateways of a run and what is between them.
pub struct World {
    plan: Plan,
    site: Site,
    /// Between the machines of the pair.
    path: Path,
    /// Between the machines of a cluster, and the way of each to it.
    etcd: FakeEtcd,
    ways: Vec<Link>,
    /// By gateway and [way](World::way_in): the machine to which it leads.
    holders: BTreeMap<(usize, u32), usize>,
    now: Time,
    queue: BinaryHeap<Scheduled>,
    order: u64,
    nodes: Vec<Node>,
    network: Network,
    oracle: Oracle,
    traffic: Random,
    chance: Random,
    events: u64,
    take_overs: u64,
    /// Tunnels whose keys are being replaced.
    rekeying: Vec<bool>,
    /// The operator has a gateway take another role.
    changing: bool,
    /// The faults are over.
    calm: bool,
    probes: Vec<u64>,
}

/// Runs a plan.
///
/// # Errors
/// The first rule that was broken.
pub fn run(plan: &Plan) -> Result<Report, Violation> {
    let ran = std::panic::catch_unwind(AssertUnwindSafe(|| World::new(plan.clone()).run()));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let what = format!("it panicked: {}", text.unwrap_or_default());
        Err(Violation { rule: Rule::Runs, what, at: Time::ZERO })
    })
}

impl World {
    /// A world before its first event.
    pub fn new(plan: Plan) -> World {
        let (count, machines) = (plan.site.layouts.len(), plan.site.machines());
        let seed = plan.seed;
        let (etcd, path) = (FakeEtcd::default(), Path::default());
        let ways: Vec<Link> = (0..plan.site.members).map(|_| etcd.link()).collect();
        let node = |machine| {
            let others = match plan.site.side_of(machine) {
                Some(side) if plan.site.by == By::Store => Others::Cluster(ways[side].clone()),
                Some(side) => Others::Pair(side, path.clone()),
                None => Others::None,
            };
            Node::new(plan.site.gateway_of(machine), machine, others)
        };
        let nodes = (0..machines).map(node).collect();
        let mut world = World {
            site: plan.site.clone(),
            path,
            ways,
            etcd,
            holders: (0..count)
                .filter(|&gateway| plan.site.pair != Some(gateway))
                .map(|gateway| ((gateway, 0), gateway))
                .collect(),
            changing: false,
            now: Time::ZERO,
            queue: BinaryHeap::new(),
            order: 0,
            nodes,
            network: Network::new(count, Random::seeded(seed ^ hash("network"))),
            oracle: Oracle::default(),
            traffic: Random::seeded(seed ^ hash("traffic")),
            chance: Random::seeded(seed ^ hash("chance")),
            events: 0,
            take_overs: 0,
            rekeying: vec![false; plan.site.tunnels.len()],
            calm: false,
            probes: Vec::new(),
            plan,
        };
        if world.site.has_shares() {
            let members = world.site.machines_of(0);
            members
                .into_iter()
                .for_each(|machine| world.nodes[machine].file = Some(world.site.file(machine)));
        }
        for tunnel in 0..world.site.tunnels.len() {
            world.learn_keys(tunnel, 0);
        }
        (0..machines).for_each(|machine| world.schedule(Time::ZERO, Event::Start(machine)));
        let length = Duration::from_millis(world.plan.length_ms);
        for _ in 0..world.plan.bursts {
            let at = Time::ZERO + Duration::from_micros(world.traffic.below(world.plan.length_ms * 1_000));
            world.schedule(at, Event::Burst);
        }
        for fault in 0..world.plan.faults.len() {
            let at = Time::ZERO + Duration::from_millis(world.plan.faults[fault].at_ms);
            world.schedule(at, Event::Begin(fault));
        }
        world.schedule(Time::ZERO + length, Event::Calm);
        world
    }

    fn run(mut self) -> Result<Report, Violation> {
        while let Some(Scheduled { at, event, .. }) = self.queue.pop() {
            self.now = self.now.max(at);
            self.events += 1;
            let is_last = matches!(event, Event::Judge(_));
            self.happen(event);
            if let Some(violation) = self.oracle.violation() {
                return Err(violation.clone());
            }
            if is_last {
                break;
            }
        }
        let (sent, delivered) = self.oracle.counts();
        Ok(Report {
            events: self.events,
            sent,
            delivered,
            take_overs: self.take_overs,
            repeated: self.oracle.repeated(),
            fingerprint: self.oracle.fingerprint(),
        })
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.queue.push(Scheduled { at, order: self.order, event });
    }

    fn schedule_in(&mut self, by: Duration, event: Event) {
        self.schedule(self.now + by, event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Burst => {
                let count = self.site.layouts.len();
                let from = self.traffic.below(count as u64) as usize;
                let to = (from + 1 + self.traffic.below(count as u64 - 1) as usize) % count;
                let packets = 1 + self.traffic.below(19);
                let far = self.traffic.below(6) == 0;
                for _ in 0..packets {
                    let len = self.length();
                    self.send_inside(from, to, len, far);
                }
            }
            Event::Deliver(coming) => self.deliver(*coming),
            Event::Wake(gateway) => self.wake(gateway),
            Event::Keep(gateway, again) => self.keep(gateway, again),
            Event::Begin(fault) => self.begin(fault),
            Event::End(fault) => self.end(fault),
            Event::Start(gateway) => self.start(gateway),
            Event::Reload(gateway) => self.reload(gateway),
            Event::Operate(tunnel, step) => self.operate(tunnel, step),
            Event::Calm => self.calm_down(),
            Event::Decide => self.decide(),
            Event::Probe(counts) => self.probe(counts),
            Event::Look(machine) => self.look_after(machine),
            Event::Learn(machine, way) => self.learn(machine, way),
            Event::Role(keeps) => self.change_role(keeps),
            Event::Accept(machine) => self.accept(machine),
            Event::Judge(probes) => self.judge(&probes),
        }
    }

    /// The length of a packet, in bytes.
    fn length(&mut self) -> usize {
        let len = match self.traffic.below(3) {
            0 => 36 + self.traffic.below(60),
            1 => 36 + self.traffic.below(1_300),
            _ => 1_200,
        };
        len as usize
    }

    /// A program inside sends a packet of so many bytes, which is not to be fragmented.
    fn send_inside(&mut self, from: usize, to: usize, len: usize, far: bool) -> u64 {
        self.events += 1;
        let (number, packet) = self.oracle.sends(from, to, len, far);
        let Some(machine) = self.holder(from, self.way_out(from, to)) else { return number };
        let node = &self.nodes[machine];
        let destination = IpAddr::from(packet::network(to, far));
        let network = |net: &ipnet::IpNet| net.contains(&destination);
        let (tunnel, blackhole) = {
            let routes = node.host.routes();
            (routes.tunnel.iter().any(network), routes.blackholes.iter().any(network))
        };
        if tunnel && let Some(link) = node.host.links().inside {
            link.give(packet, to as u32 + packet::flow(number));
            self.wakes(machine);
        } else if !blackhole && node.life > 0 && !far {
            let what = format!("gateway {from} is down, and nothing keeps packets to {to} inside");
            self.oracle.report(Rule::NothingOutside, self.now, what);
        }
        // One that serves another part of the SAs may get it as well.
        for other in self.site.machines_of(from).into_iter().filter(|_| self.site.has_shares()) {
            let node = &self.nodes[other];
            let kept = {
                let routes = node.host.routes();
                routes.tunnel.iter().chain(&routes.blackholes).any(network)
            };
            if !kept && node.life > 0 && !far {
                let what = format!("machine {other} keeps nothing to {to} inside");
                self.oracle.report(Rule::NothingOutside, self.now, what);
            }
        }
        if self.nodes[machine].life > 0 && !far && !self.nodes[machine].host.guards(destination) {
            let what = format!("no rule of gateway {from}'s guard names {destination}, which is behind {to}");
            self.oracle.report(Rule::NothingOutside, self.now, what);
        }
        number
    }

    /// Wakes a gateway soon.
    fn wakes(&mut self, gateway: usize) {
        self.wake_by(gateway, self.now + WAKES);
    }

    fn wake_by(&mut self, gateway: usize, at: Time) {
        let node = &mut self.nodes[gateway];
        if at == Time::MAX || node.wake_at.is_some_and(|earlier| earlier <= at) {
            return;
        }
        node.wake_at = Some(at);
        self.schedule(at, Event::Wake(gateway));
    }

    fn wake(&mut self, gateway: usize) {
        let now = self.now;
        let node = &mut self.nodes[gateway];
        // Another, earlier wake-up was put in its place.
        if node.wake_at.is_none_or(|at| at > now) || node.service().is_none() {
            return;
        }
        node.wake_at = None;
        if node.suspended {
            return;
        }
        let woken = node.wake(now);
        self.carry(gateway);
        match woken {
            Woken::At(at) => {
                self.wake_by(gateway, at);
                self.keep_soon(gateway);
                if self.events.is_multiple_of(CHECK_EVERY) {
                    self.check(gateway);
                }
            }
            Woken::Killed => self.killed(gateway),
            Woken::Failed(why) => {
                self.oracle.report(Rule::Runs, now, format!("gateway {gateway}: {why}"));
            }
        }
    }

    fn check(&mut self, gateway: usize) {
        if let Some(what) = self.nodes[gateway].check() {
            self.oracle.report(Rule::Accounted, self.now, format!("gateway {gateway}: {what}"));
        }
    }

    /// Takes what a gateway has sent, and carries what goes outside.
    fn carry(&mut self, machine: usize) {
        let node = &self.nodes[machine];
        let gateway = node.number;
        let life = oracle::life(machine, node.life, node.reloads);
        let (sent, at, lies) = (node.take_sent(), node.clock.now().max(self.now), node.lies);
        let serves = sent.inside.iter().chain(&sent.outside).any(|packet| is_served(packet, gateway));
        if serves && self.must_have_stopped(machine) {
            let what =
                format!("machine {machine} serves, and the store has not answered for longer than its lease");
            self.oracle.report(Rule::StopsAlone, at, what);
        }
        for packet in sent.inside {
            self.events += 1;
            let nodes = &mut self.nodes;
            let may_repeat =
                |other: usize| other != machine && nodes[other].is_unmerged() && !nodes[other].is_new;
            self.oracle.delivered(gateway, life, &packet, at, may_repeat);
        }
        for packet in sent.outside {
            self.events += 1;
            let wire = self.oracle.leaves((gateway, machine), &packet, at, lies);
            if let Some((_, to)) = wire.and_then(|wire| self.oracle.way(wire.number)) {
                let (_, destination) = packet::places(&packet);
                if !self.network.is_place_of(destination, to) && !self.oracle.may_have_moved(gateway) {
                    let what = format!("gateway {gateway} sends to {destination:?} what is for {to}");
                    self.oracle.report(Rule::RightPeer, at, what);
                }
            }
            for coming in self.network.carry(gateway, packet, wire, at) {
                self.schedule(coming.at, Event::Deliver(Box::new(coming)));
            }
        }
    }

    /// A packet reaches a gateway from outside.
    fn deliver(&mut self, Coming { to, packet, wire, .. }: Coming) {
        let Some(machine) = self.holder(to, self.way_in(to, &packet)) else { return };
        let links = self.nodes[machine].host.links();
        let link = links.by_which_comes(&packet).cloned();
        let steer = packet::spi(&packet).unwrap_or(0);
        if link.is_some_and(|link| link.give(packet, steer)) {
            if let Some(wire) = wire {
                self.oracle.arrives(wire);
            }
            self.wakes(machine);
        }
    }
}

/// Whether a packet that gateway `from` sends is one of its peers' or of its programs, and not its own.
fn is_served(packet: &[u8], from: usize) -> bool {
    !oracle::is_own(packet, from) && !matches!(packet::see(packet), packet::Seen::Keepalive)
}
