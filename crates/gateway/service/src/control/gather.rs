//! From the workers to the status document, in two steps: what each has is copied between two rounds of its loop, SAs and
//! policies in portions so that packets wait for no long list, and put into words elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use forebay_crypto::{Direction, SessionId, Suite};
use forebay_engine::ProcessorStats;
use forebay_ipsec::iptfs::IptfsCounters;
use forebay_ipsec::{
    Action, DropCounts, Lifetime, Limits, Lived, Mode, PathMtuCounters, Policy, Protocol, SaConfig,
    SaCounters, Spi,
};
use forebay_links::{DeviceState, RxDrops};
use forebay_processors::CORE;
use forebay_scheduler::Cost;
use forebay_time::{Duration, Time};

use super::{
    CostDoc, DeviceDoc, EngineDoc, GuardDoc, IptfsDoc, LifetimeDoc, LimitsDoc, LinkDoc, NameDoc, OffloadsDoc,
    PolicyDoc, ProcessorDoc, ReloadsDoc, SCHEMA, SaDoc, StatusDoc, TapsDoc,
};
use crate::service::{Port, PortCounts, Worker, WorkerCounts, Workers};
use forebay_config::{Config, PeerName};

/// SAs or policies that are copied at a time: some tens of microseconds.
const PORTION: usize = 256;

/// What a worker has at one moment.
#[derive(Debug)]
pub struct Snapshot {
    now: Time,
    sas: Vec<Sa>,
    policies: Vec<Policy>,
    processors: Vec<Processor>,
    links: Vec<Link>,
    drops: DropCounts,
    counts: WorkerCounts,
    /// CPU time of the worker's thread.
    running: Duration,
    in_flight: usize,
    room: usize,
    redone: u64,
    strangers: u64,
    path_mtus: PathMtuCounters,
    audits: u64,
    moves_limited: u64,
}

#[derive(Debug)]
struct Link {
    name: String,
    counts: PortCounts,
    waiting: usize,
    passed_over: RxDrops,
    device: Option<DeviceState>,
}

#[derive(Debug)]
struct Sa {
    session: SessionId,
    direction: Direction,
    name: String,
    spi: Spi,
    protocol: Protocol,
    mode: Mode,
    suite: Suite,
    /// This side's address, and the peer's.
    ends: (IpAddr, IpAddr),
    lifetime: Lifetime,
    lived: Lived,
    cpu: Option<u32>,
    counters: SaCounters,
    mtu: Option<u16>,
    unsure: u64,
    iptfs: Option<IptfsCounters>,
    iptfs_rate: Option<u64>,
}

#[derive(Debug)]
struct Processor {
    /// Its place in the file.
    place: usize,
    stats: ProcessorStats,
    waiting: usize,
    alpha: f64,
    lateness: Duration,
    costs: Vec<(Suite, Cost)>,
}

impl Snapshot {
    /// What all workers have, with SAs and policies or without; `None` if one has ended. SAs and policies are those of about this
    /// moment.
    pub fn gather(workers: &Workers, with_lists: bool) -> Option<Vec<Snapshot>> {
        let mut all = workers.ask(Snapshot::counts)?;
        if !with_lists {
            return Some(all);
        }
        // All workers have the same SAs and policies.
        let first = all.first_mut()?;
        loop {
            let from = first.sas.last().map_or(0, |sa| sa.session.0 + 1);
            let sas = workers.first(move |worker| some_sas(worker, from))?;
            let is_last = sas.len() < PORTION;
            first.sas.extend(sas);
            if is_last {
                break;
            }
        }
        for direction in [Direction::Seal, Direction::Open] {
            for portion in 0.. {
                let policies =
                    workers.first(move |worker| some_policies(worker, direction, portion * PORTION))?;
                let is_last = policies.len() < PORTION;
                first.policies.extend(policies);
                if is_last {
                    break;
                }
            }
        }
        Some(all)
    }

    /// Copies what is counted, but for SAs and policies.
    fn counts(worker: &mut Worker) -> Snapshot {
        let waiting = worker.waiting();
        let link = |(place, port): (usize, std::sync::MutexGuard<'_, Port>)| Link {
            name: port.name.clone(),
            counts: port.counts().clone(),
            waiting: waiting.get(place).copied().unwrap_or(0),
            passed_over: port.rx_drops(),
            device: port.device(),
        };
        let links = worker.ports().enumerate().map(link).collect();
        let counts = worker.counts().clone();
        let places = worker.processors().to_vec();
        let engine = worker.engine();
        let sad = engine.sad();
        let (path_mtus, moves_limited) = (sad.path_mtu_counters(), sad.moves_limited());
        drop(sad);
        let processor = |(at, stats): (usize, &ProcessorStats)| {
            // The samples are a report's.
            let mut stats = stats.clone();
            stats.samples = vec![];
            let place = places.get(at).copied().unwrap_or(at);
            let (waiting, alpha) = (engine.waiting_at(at), engine.alpha(at));
            Processor { place, stats, waiting, alpha, lateness: engine.lateness(at), costs: engine.costs(at) }
        };
        let processors = engine.processors().enumerate().map(processor).collect();
        Snapshot {
            now: engine.clock().now(),
            running: engine.clock().running(),
            sas: vec![],
            policies: vec![],
            processors,
            links,
            drops: engine.drops(),
            counts,
            in_flight: engine.in_flight(),
            room: engine.room(),
            redone: engine.stats().redone,
            strangers: engine.stats().pending_spi,
            path_mtus,
            audits: engine.stats().audits,
            moves_limited,
        }
    }

    /// The document of a gateway that runs by `config`, read from `file`, since `start`; of all of its workers, one
    /// at least.
    pub fn status(all: Vec<Snapshot>, config: &Config, file: &str, version: &str, start: Time) -> StatusDoc {
        let now = all.iter().map(|one| one.now).max().unwrap_or(start);
        let uptime = now.since(start);
        let mut drops = DropCounts::default();
        all.iter().for_each(|one| drops.add(&one.drops));
        let mut drops: BTreeMap<String, u64> =
            drops.iter().map(|(reason, count)| (reason.name().to_owned(), count)).collect();
        let no_link: u64 = all.iter().map(|one| one.counts.no_link).sum();
        if no_link > 0 {
            drops.insert("out_no_link".to_owned(), no_link);
        }
        let first = all.first();
        let names: BTreeMap<u32, &str> =
            first.iter().flat_map(|one| &one.sas).map(|sa| (sa.session.0, sa.name.as_str())).collect();
        let policies = first.iter().flat_map(|one| &one.policies).map(|one| policy(one, &names)).collect();
        let processors = all.iter().enumerate().flat_map(|(engine, one)| {
            let processors = one.processors.iter();
            processors.map(move |one| processor(one, config, engine, uptime))
        });
        // Queues of a link side by side; all engines have the same links.
        let most = all.iter().map(|one| one.links.len()).max().unwrap_or(0);
        let links = (0..most).flat_map(|place| {
            let queues = all.iter().enumerate();
            queues.filter_map(move |(engine, one)| Some(link_doc(one.links.get(place)?, engine, place == 0)))
        });
        StatusDoc {
            schema: SCHEMA,
            version: version.to_owned(),
            pid: std::process::id(),
            uptime_s: uptime.as_secs(),
            config: file.to_owned(),
            config_file: absolute(file),
            sas: sas(&all, config),
            policies,
            processors: processors.collect(),
            links: one_of_each(links),
            drops,
            engines: all.iter().map(|one| one.engine(uptime)).collect(),
            taps: TapsDoc::default(),
            guard: GuardDoc::default(),
            offloads: OffloadsDoc::default(),
            reloads: ReloadsDoc::default(),
            names: config.names.iter().map(name).collect(),
            pair: None,
            cluster: None,
        }
    }

    fn engine(&self, uptime: Duration) -> EngineDoc {
        let of_uptime = self.running.as_secs() / uptime.as_secs().max(1e-9);
        EngineDoc {
            cpu_s: self.running.as_secs(),
            load: if uptime == Duration::ZERO { 0.0 } else { of_uptime.min(1.0) },
            in_flight: self.in_flight as u64,
            room: self.room as u64,
            redone: self.redone,
            strangers: self.strangers,
            audits: self.audits,
            rounds: self.counts.rounds,
            naps: self.counts.naps,
            moved_peers: self.counts.moved_peers,
            moves_limited: self.moves_limited,
            keepalives: self.counts.keepalives,
            paths_learnt: self.counts.paths_learnt,
            paths_unmatched: self.path_mtus.unmatched,
            paths_limited: self.path_mtus.limited,
            answers: self.counts.answers,
            helped: self.counts.helped,
            held: self.counts.held,
        }
    }
}

/// Links that have one name in one engine, such as the sockets of a raw link for both IP versions, as one.
fn one_of_each(links: impl Iterator<Item = LinkDoc>) -> Vec<LinkDoc> {
    let mut all: Vec<LinkDoc> = Vec::new();
    for link in links {
        let known = all.iter_mut().find(|one| (one.engine, &one.name) == (link.engine, &link.name));
        let Some(known) = known else {
            all.push(link);
            continue;
        };
        known.packets_in += link.packets_in;
        known.bytes_in += link.bytes_in;
        known.packets_out += link.packets_out;
        known.bytes_out += link.bytes_out;
        known.queue += link.queue;
        for (counts, more) in [(&mut known.drops, link.drops), (&mut known.passed_over, link.passed_over)] {
            more.into_iter().for_each(|(reason, count)| *counts.entry(reason).or_default() += count);
        }
    }
    all
}

/// A path by which others find the file too.
fn absolute(file: &str) -> String {
    std::path::absolute(file).map_or_else(|_| file.to_owned(), |path| path.display().to_string())
}

/// SAs from this number on, in the order of their numbers.
fn some_sas(worker: &mut Worker, from: u32) -> Vec<Sa> {
    let sad = worker.engine().sad();
    let sa = |(session, direction, config, counters): (SessionId, Direction, &SaConfig, &SaCounters)| Sa {
        session,
        direction,
        name: config.name.clone(),
        spi: config.spi,
        protocol: config.protocol,
        mode: config.mode,
        suite: config.suite,
        ends: (config.local, config.remote),
        lifetime: config.lifetime,
        lived: sad.lived(session).unwrap_or_default(),
        cpu: config.cpu,
        counters: *counters,
        mtu: sad.path_mtu(session),
        unsure: sad.unsure(session),
        iptfs: sad.iptfs_counters(session),
        iptfs_rate: sad.iptfs_rate(session),
    };
    sad.iter_from(SessionId(from)).take(PORTION).map(sa).collect()
}

/// Policies of a direction behind so many others.
fn some_policies(worker: &mut Worker, direction: Direction, behind: usize) -> Vec<Policy> {
    let sad = worker.engine().sad();
    sad.policies_behind(direction, behind).map(|(_, policy)| policy).take(PORTION).collect()
}

/// The SAs, in the order of their numbers.
fn sas(all: &[Snapshot], config: &Config) -> Vec<SaDoc> {
    let named = config.sas.entries.iter().filter_map(|entry| {
        Some(((entry.direction, entry.config.spi, &*entry.config.name), entry.remote_name.as_ref()?))
    });
    let named: HashMap<_, _> = named.collect();
    let doc = |one: &Sa| SaDoc {
        remote_name: named.get(&(one.direction, one.spi, &*one.name)).map(ToString::to_string),
        ..sa(one)
    };
    all.first().into_iter().flat_map(|one| &one.sas).map(doc).collect()
}

fn name(one: &PeerName) -> NameDoc {
    let address = one.address.map(|address| address.to_string());
    NameDoc { name: one.name.to_string(), address, left_out: one.left_out.clone() }
}

fn word(direction: Direction) -> String {
    (if direction == Direction::Seal { "out" } else { "in" }).to_owned()
}

fn sa(one: &Sa) -> SaDoc {
    SaDoc {
        name: one.name.clone(),
        spi: one.spi.to_string(),
        direction: word(one.direction),
        protocol: (if one.protocol == Protocol::Esp { "esp" } else { "ah" }).to_owned(),
        mode: (if one.mode == Mode::Tunnel { "tunnel" } else { "transport" }).to_owned(),
        proposal: one.suite.to_string(),
        local: one.ends.0.to_string(),
        remote: one.ends.1.to_string(),
        remote_name: None,
        packets: one.counters.packets,
        bytes: one.counters.bytes,
        auth_failures: one.counters.auth_failures,
        replays: one.counters.replays,
        unsure: one.unsure,
        mtu: one.mtu,
        lifetime: LifetimeDoc { soft: limits(&one.lifetime.soft), hard: limits(&one.lifetime.hard) },
        left: left(&one.lifetime.hard, &one.lived),
        cpu: one.cpu,
        iptfs: one.iptfs.map(iptfs),
        iptfs_rate: one.iptfs_rate,
    }
}

fn iptfs(counters: IptfsCounters) -> IptfsDoc {
    let IptfsCounters { payloads, all_pad, lost, packets, reassembled, marked } = counters;
    IptfsDoc { payloads, all_pad, lost, packets, reassembled, marked }
}

/// What is left until each hard limit.
fn left(hard: &Limits, lived: &Lived) -> LimitsDoc {
    let less = |limit: Duration, spent: Duration| (limit - spent).as_secs();
    LimitsDoc {
        time_s: hard.time.map(|limit| less(limit, lived.age)),
        use_time_s: hard.use_time.map(|limit| less(limit, lived.used.unwrap_or(Duration::ZERO))),
        bytes: hard.bytes.map(|limit| limit.saturating_sub(lived.bytes)),
        packets: hard.packets.map(|limit| limit.saturating_sub(lived.packets)),
    }
}

fn limits(limits: &Limits) -> LimitsDoc {
    LimitsDoc {
        time_s: limits.time.map(Duration::as_secs),
        use_time_s: limits.use_time.map(Duration::as_secs),
        bytes: limits.bytes,
        packets: limits.packets,
    }
}

fn policy(policy: &Policy, names: &BTreeMap<u32, &str>) -> PolicyDoc {
    let (action, sas): (_, &[SessionId]) = match &policy.action {
        Action::Protect(sas) => ("protect", sas),
        Action::Bypass => ("bypass", &[]),
        Action::Discard => ("discard", &[]),
    };
    let texts =
        |selectors: &[forebay_ipsec::TrafficSelector]| selectors.iter().map(ToString::to_string).collect();
    PolicyDoc {
        name: policy.name.clone(),
        direction: word(policy.direction),
        action: action.to_owned(),
        sas: sas.iter().filter_map(|session| names.get(&session.0)).map(|name| (*name).to_owned()).collect(),
        local_ts: texts(&policy.local_ts),
        remote_ts: texts(&policy.remote_ts),
    }
}

fn processor(one: &Processor, config: &Config, engine: usize, uptime: Duration) -> ProcessorDoc {
    let set = config.processors.get(one.place);
    let stats = &one.stats;
    let costs = one.costs.iter().map(|(suite, cost)| CostDoc {
        proposal: suite.to_string(),
        init_s: cost.init.as_secs(),
        block_s: cost.block.as_secs(),
    });
    ProcessorDoc {
        name: set.map_or_else(|| stats.name.clone(), |set| set.name.clone()),
        kind: set.map_or(CORE, |set| set.kind.word()).to_owned(),
        engine,
        out: stats.out,
        jobs: stats.jobs,
        packets: stats.packets,
        bytes: stats.bytes,
        load: if uptime == Duration::ZERO { 0.0 } else { stats.busy.as_secs() / uptime.as_secs() },
        busy_s: stats.busy.as_secs(),
        queue: one.waiting as u64,
        alpha: one.alpha,
        lateness_s: one.lateness.as_secs(),
        predicted_work_s: stats.predicted.as_secs(),
        predicted_response_s: stats.predicted_response.as_secs(),
        response_s: stats.response.as_secs(),
        response_error_s: stats.response_error.as_secs(),
        late: stats.late,
        removals: stats.removals,
        costs: costs.collect(),
    }
}

fn link_doc(link: &Link, engine: usize, inside: bool) -> LinkDoc {
    let Link { name, counts, waiting, passed_over: of_rx, device } = link;
    let passed_over = [("keepalive", of_rx.keepalives), ("ike", of_rx.ike), ("foreign", of_rx.foreign)];
    let passed_over = passed_over.into_iter().filter(|(_, count)| *count > 0);
    let before = [("overrun", of_rx.overrun), ("truncated", of_rx.truncated), ("malformed", of_rx.malformed)];
    let drops = counts.lost.iter().chain(before).filter(|(_, count)| *count > 0);
    LinkDoc {
        name: name.clone(),
        engine,
        side: (if inside { "inside" } else { "outside" }).to_owned(),
        packets_in: counts.packets_in,
        bytes_in: counts.bytes_in,
        packets_out: counts.packets_out,
        bytes_out: counts.bytes_out,
        queue: *waiting as u64,
        drops: drops.map(|(reason, count)| (reason.to_owned(), count)).collect(),
        passed_over: passed_over.map(|(kind, count)| (kind.to_owned(), count)).collect(),
        device: device.map(|device| DeviceDoc {
            up: device.is_up,
            neighbours: device.neighbours,
            linearised: device.linearised,
            made_again: device.made_again,
            unsent: device.unsent,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_one_name_are_one() {
        let link = |name: &str, engine, packets_in, drops| LinkDoc {
            name: name.to_owned(),
            engine,
            packets_in,
            drops: BTreeMap::from([("too_big".to_owned(), drops)]),
            ..LinkDoc::default()
        };
        let all = [link("raw", 0, 1, 5), link("udp", 0, 2, 0), link("raw", 0, 4, 6), link("raw", 1, 8, 0)];
        let found = one_of_each(all.into_iter());
        let seen: Vec<_> = found.iter().map(|one| (&*one.name, one.engine, one.packets_in)).collect();
        assert_eq!(seen, [("raw", 0, 5), ("udp", 0, 2), ("raw", 1, 8)]);
        assert_eq!(found[0].drops["too_big"], 11);
    }

    #[test]
    fn what_a_link_did_not_give_is_shown_and_so_is_its_device() {
        let passed_over =
            RxDrops { overrun: 3, truncated: 2, malformed: 1, keepalives: 9, ike: 8, foreign: 7 };
        let link = Link {
            name: "dpdk-1".to_owned(),
            counts: PortCounts::default(),
            waiting: 0,
            passed_over,
            device: Some(DeviceState { is_up: true, neighbours: 4, linearised: 5, made_again: 6, unsent: 7 }),
        };
        let doc = link_doc(&link, 0, false);
        let counts =
            |pairs: &[(&str, u64)]| pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        assert_eq!(doc.drops, counts(&[("overrun", 3), ("truncated", 2), ("malformed", 1)]));
        assert_eq!(doc.passed_over, counts(&[("keepalive", 9), ("ike", 8), ("foreign", 7)]));
        assert_eq!(
            doc.device,
            Some(DeviceDoc { up: true, neighbours: 4, linearised: 5, made_again: 6, unsent: 7 })
        );
    }
}
