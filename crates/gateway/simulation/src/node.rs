//! A gateway through all its lives: its host, its process when there is one, and what it sent.

use std::sync::Arc;

use forebay_cluster::fake::Link;
use forebay_config::{self as config, Config};
use forebay_crypto::fault::FaultControl;
use forebay_gateway::service::{Caretaker, Service, StartError, Worker};
use forebay_ipsec::{SaConfig, SaCounters};
use forebay_random::Random;
use forebay_state::{IvStore, IvStoreError, Lock};
use forebay_time::{Duration, Time};

use crate::clock::{HostClock, unix_time};
use crate::clustering;
use crate::host::{Ended, SimHost};
use crate::interleaving::Interleaving;
use crate::pairing::{Member, Path};
use crate::processors;
use crate::site::Site;

/// Poll iterations of one wake-up, beyond which the gateway does not come to rest.
const ITERATIONS_MAX: u32 = 5_000;
/// Iterations in a row that rest before others have their turn.
const RESTS: u32 = 40;
/// Packets in flight of a gateway's file, and buffers of each.
const IN_FLIGHT: usize = 512;
const BUFFERS_EACH: usize = 4;

/// A machine of a gateway.
pub struct Node {
    /// The gateway's number, and the machine's.
    pub number: usize,
    pub machine: usize,
    /// The part of the process that is one of a pair, if it is.
    pub member: Option<Member>,
    /// The part of the process that is one of a cluster, if it is.
    pub sharing: Option<clustering::Member>,
    /// Until it is resumed its process does not run.
    pub suspended: bool,
    unmerged: bool,
    pub host: SimHost,
    pub service: Option<Service>,
    pub clock: HostClock,
    pub controls: Vec<FaultControl>,
    /// What its cores do while one is at its crypto.
    pub interleaving: Arc<Interleaving>,
    /// Counts its processes.
    pub life: u64,
    /// Counts the reloads of a process.
    pub reloads: u64,
    /// When its worker is to run next.
    pub wake_at: Option<Time>,
    /// When its numbers are looked after next.
    pub keep_at: Option<Time>,
    /// Until when a processor of this life may have done wrong.
    pub lies: bool,
    /// Its time of day begins anew with each process.
    pub stuck: bool,
    /// How the process ends when the disk kills it.
    pub power: bool,
}

/// What a gateway has sent, and when.
#[derive(Default)]
pub struct Sent {
    pub inside: Vec<Vec<u8>>,
    pub outside: Vec<Vec<u8>>,
}

/// What becomes of a wake-up.
pub enum Woken {
    /// It is to be woken again at that time.
    At(Time),
    /// The process has ended, or does not come to rest.
    Failed(String),
    /// The disk has killed it.
    Killed,
}

/// The cores lead to the interleaving, and it to them.
impl Drop for Node {
    fn drop(&mut self) {
        self.interleaving.end();
    }
}

impl Node {
    /// A host without a process.
    pub fn new(number: usize, machine: usize) -> Node {
        let (member, sharing, suspended, unmerged) = (None, None, false, false);
        let clock = HostClock::new(Time::ZERO, 0);
        let (host, service, controls) = (SimHost::default(), None, Vec::new());
        let (life, reloads, wake_at, keep_at, lies, stuck, power) = (0, 0, None, None, false, false, false);
        Node {
            number,
            machine,
            member,
            sharing,
            suspended,
            unmerged,
            host,
            service,
            clock,
            controls,
            interleaving: Arc::default(),
            life,
            reloads,
            wake_at,
            keep_at,
            lies,
            stuck,
            power,
        }
    }

    /// Its file.
    fn config(&self, site: &Site) -> Config {
        let text = site.file(self.machine);
        let parsed = config::parse(&text, "gateway.toml", std::path::Path::new("/"));
        parsed.unwrap_or_else(|errors| panic!("a file of the simulation: {:?}\n{text}", errors.findings()))
    }

    /// Starts a process.
    ///
    /// # Errors
    /// Why it did not start, and whether its disk says nothing against it.
    pub fn start(&mut self, site: &Site, now: Time) -> Result<(), (String, bool)> {
        self.begin_process(now);
        self.start_service(site, self.config(site), None)
    }

    /// Starts a process that is one of a cluster and serves nothing yet.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn start_sharing(&mut self, site: &Site, way: &Link, now: Time) -> Result<(), (String, bool)> {
        self.begin_process(now);
        let name = self.life << 8 | self.machine as u64;
        let sharing = clustering::Member::new(self.config(site), &self.host, way, name);
        let sharing = sharing.map_err(|why| (why, true))?;
        let store = sharing.cluster.store();
        let claim = store.claim().map_err(|error| (error.to_string(), !self.host.disk().is_killed()))?;
        let part = sharing.part();
        self.sharing = Some(sharing);
        self.start_service(site, part, Some((store, claim))).inspect_err(|_| self.sharing = None)
    }

    /// Has a process that is one of a cluster do what is due. Whether it serves something that it did not serve before.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn share(&mut self, now: Time) -> Result<bool, (String, bool)> {
        self.clock.enter(now);
        let (Some(sharing), Some(service)) = (&mut self.sharing, &mut self.service) else { return Ok(false) };
        let before = sharing.served.clone();
        let shared = sharing.pass_time(service, now);
        self.reloads += u64::from(before != sharing.served);
        let is_killed = self.host.disk().is_killed();
        shared.map_err(|error| (error.to_string(), !is_killed && !clustering::may_fail(&error)))
    }

    /// Starts a process that is one of a pair and stands by.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn stand_by(
        &mut self,
        site: &Site,
        path: &Path,
        side: usize,
        now: Time,
    ) -> Result<(), (String, bool)> {
        self.begin_process(now);
        let config = self.config(site);
        let guarded = Caretaker::open(&config, &self.host, None);
        guarded.map_err(|error| (error.to_string(), true))?;
        let name = self.life << 8 | self.machine as u64;
        let member = Member::new(&self.host, path, side, name, self.clock.turn());
        let disk = self.host.disk();
        self.member = Some(member.map_err(|why| (why, !disk.is_killed() && !disk.is_full()))?);
        if self.host.disk().is_killed() {
            self.kill();
            return Err(("killed while it started".to_owned(), false));
        }
        Ok(())
    }

    /// Starts the data plane of a process that stood by.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn take_over(&mut self, site: &Site, now: Time) -> Result<(), (String, bool)> {
        self.clock.enter(now);
        let Some(member) = &self.member else { return Ok(()) };
        // Its processors are other ones in each data plane.
        self.reloads += 1;
        let disk = self.host.disk();
        let expected = |error: &IvStoreError| matches!(error, IvStoreError::Write { .. }) || disk.is_killed();
        let state = member.pair.prepare().map_err(|error| (error.to_string(), !expected(&error)))?;
        self.start_service(site, self.config(site), Some(state))
    }

    fn begin_process(&mut self, now: Time) {
        self.life += 1;
        self.host.disk().revive();
        self.lies = false;
        let skew_ns = if self.stuck { -i128::from(now.0 / 1_000) } else { self.clock.skew_ns() };
        self.clock = HostClock::new(now, skew_ns);
        self.clock.enter(now);
    }

    fn start_service(
        &mut self,
        site: &Site,
        config: Config,
        state: Option<(IvStore, Lock)>,
    ) -> Result<(), (String, bool)> {
        let seed = site.seed ^ self.reloads << 24 ^ self.life << 8 ^ self.machine as u64;
        let (setups, controls) = processors::build(&config, &self.clock, seed, &self.interleaving);
        self.controls = controls;
        let (host, clock) = (&self.host, self.clock.clock());
        let started = match state {
            Some((store, claim)) => Caretaker::open(&config, host, None).and_then(|caretaker| {
                let state = (store, claim, caretaker);
                Service::start_with(host, config, setups, clock, seed, unix_time, state)
            }),
            None => Service::start_on(host, config, setups, clock, seed, unix_time),
        };
        match started {
            Ok(service) => {
                self.interleaving.begin(service.steps().to_vec(), seed);
                self.service = Some(service);
            }
            Err(error) => {
                self.host.process_ends();
                let expected = clustering::may_fail(&error) || self.host.disk().is_killed();
                return Err((error.to_string(), !expected));
            }
        }
        if self.host.disk().is_killed() {
            self.kill();
            return Err(("killed while it started".to_owned(), false));
        }
        Ok(())
    }

    /// Goes by the file as it is now.
    ///
    /// # Errors
    /// Why it did not, and whether its disk says nothing against it.
    pub fn reload(&mut self, site: &Site, now: Time) -> Result<(), (String, bool)> {
        self.clock.enter(now);
        let config = self.config(site);
        let Some(service) = &mut self.service else { return Ok(()) };
        self.reloads += 1;
        let reloaded = match &mut self.sharing {
            Some(sharing) => sharing.reload(service, config),
            None => service.reload(config, unix_time().as_nanos() as u64).map(drop),
        };
        let disk = self.host.disk();
        let expected = |error: &StartError| clustering::may_fail(error) || disk.is_killed();
        reloaded.map_err(|error| (error.to_string(), !expected(&error)))
    }

    /// Ends the process cleanly.
    pub fn stop(&mut self, now: Time) -> Result<(), String> {
        self.clock.enter(now);
        let stopped = self.stop_service();
        if let Some(sharing) = self.sharing.take() {
            sharing.cluster.leave();
        }
        self.is_unmerged();
        if let Some(member) = self.member.take() {
            member.pair.stopped();
            member.pair.resign();
            member.end(false);
        }
        stopped
    }

    /// Ends the data plane and its interface.
    pub fn stop_service(&mut self) -> Result<(), String> {
        let Some(service) = self.service.take() else { return Ok(()) };
        self.interleaving.end();
        let stopped = service.stop();
        self.host.process_ends();
        stopped.map_err(|error| error.to_string())
    }

    /// Ends the process as it is.
    pub fn kill(&mut self) {
        self.host.disk().kill();
        self.interleaving.end();
        self.service = None;
        self.sharing = None;
        self.suspended = false;
        self.is_unmerged();
        if let Some(member) = self.member.take() {
            member.end(self.power);
        }
        self.host.process_ends();
    }

    /// Loses what a power failure loses.
    pub fn lose_power(&mut self, random: &mut Random) {
        self.host.disk().lose_power(random);
    }

    /// Whether it has used or received numbers that the other machine of its pair may not know, as far as was known when it
    /// ran last.
    pub fn is_unmerged(&mut self) -> bool {
        if let Some(member) = &self.member {
            self.unmerged = member.is_unmerged();
        }
        self.unmerged
    }

    /// Runs the workers until they wait.
    pub fn wake(&mut self, now: Time) -> Woken {
        self.clock.enter(now);
        let Some(service) = &mut self.service else { return Woken::At(Time::MAX) };
        let mut rests = 0;
        for _ in 0..ITERATIONS_MAX {
            let mut all = Ended::Waits(Duration(u64::MAX));
            for worker in 0..service.steps().len() {
                if let Err(error) = service.step(worker) {
                    return Woken::Failed(error.to_string());
                }
                if self.host.disk().is_killed() {
                    return Woken::Killed;
                }
                all = all.and(self.host.take_ended(worker));
            }
            match all {
                Ended::Moved => rests = 0,
                Ended::Rests if rests < RESTS => rests += 1,
                Ended::Rests => return Woken::At(self.clock.now() + Duration::from_micros(300)),
                Ended::Waits(limit) => {
                    return Woken::At(self.clock.now() + Duration(limit.0.max(1_000_000)));
                }
            }
        }
        Woken::Failed(format!("no rest after {ITERATIONS_MAX} poll iterations"))
    }

    /// What switches the faults of a device on; a gateway may have none.
    pub fn control(&self, which: u8) -> Option<&FaultControl> {
        self.controls.get(usize::from(which) % self.controls.len().max(1))
    }

    /// Takes what was sent.
    pub fn take_sent(&self) -> Sent {
        let links = self.host.links();
        let take = |link: &crate::link::SimLink| std::mem::take(&mut link.lock().sent);
        let outside = [&links.udp, &links.raw].into_iter().flatten().flat_map(take).collect();
        Sent { inside: links.inside.as_ref().map(take).unwrap_or_default(), outside }
    }

    /// What of each worker is to be known.
    fn ask<R: Send + 'static>(&self, what: fn(&mut Worker) -> R) -> Vec<R> {
        self.service.as_ref().and_then(|service| service.workers().ask(what)).unwrap_or_default()
    }

    /// How many packets are still in it: in flight, before a link, or waiting for a note.
    pub fn left(&self) -> usize {
        self.ask(left).into_iter().sum::<usize>() + self.ask(parked).first().copied().unwrap_or(0)
    }

    /// Describes its SAs and what it dropped, for debugging.
    pub fn describe(&self) -> Option<String> {
        let describe = |worker: &mut Worker| {
            let engine = worker.engine();
            let sa = |(_, direction, sa, counters): (_, _, &SaConfig, &SaCounters)| {
                format!("{} {direction:?} {} {} {}", sa.name, sa.remote, sa.udp.remote, counters.packets)
            };
            let sas: Vec<String> = engine.sad().iter().map(sa).collect();
            let drops = engine.drops();
            let drops: Vec<String> =
                drops.iter().map(|(why, count)| format!("{} {count}", why.name())).collect();
            format!("{}; dropped: {}", sas.join(", "), drops.join(", "))
        };
        self.service.as_ref()?.workers().get(0)?.ask(describe)
    }

    /// Whether every packet is counted once, and memory within its limits; what is not.
    pub fn check(&self) -> Option<String> {
        let counted = self.ask(count);
        let taken: u64 = counted.iter().map(|one| one.0).sum();
        let gone = counted.iter().map(|one| one.1).sum::<u64>() + self.left() as u64;
        if taken != gone {
            return Some(format!("{taken} packets came, {gone} are accounted for"));
        }
        self.ask(memory).into_iter().flatten().next()
    }
}

/// Packets of a worker: on their way, before a link, or waiting for a note.
fn left(worker: &mut Worker) -> usize {
    let waiting: usize = worker.waiting().iter().sum();
    waiting + worker.held() + worker.engine().at_work()
}

/// Packets of all workers that wait for their turn, or to be sent.
fn parked(worker: &mut Worker) -> usize {
    worker.engine().backlog()
}

/// Packets that a worker has taken, and those that have left or were lost.
fn count(worker: &mut Worker) -> (u64, u64) {
    let (mut taken, mut gone) = (0, 0);
    for port in worker.ports() {
        let counts = port.counts();
        taken += counts.packets_in;
        gone += counts.packets_out + counts.lost.iter().map(|(_, count)| count).sum::<u64>();
    }
    let counts = worker.counts();
    (taken + counts.answers + counts.keepalives, gone + counts.no_link + worker.engine().drops().total())
}

fn memory(worker: &mut Worker) -> Option<String> {
    let engine = worker.engine();
    let (buffers, in_flight) = (engine.free_buffers(), engine.at_work());
    (buffers > BUFFERS_EACH * IN_FLIGHT || in_flight > IN_FLIGHT)
        .then(|| format!("{buffers} buffers, {in_flight} packets in flight"))
}
