//! A gateway over all its restarts: its host, its process while there is one, and the packets that it sent.
//!
//! The process is the gateway's own serving loop ([`Serving`]), stepped; the work of its threads is stepped beside it.

mod running;

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_cluster::ClusterError;
use forebay_cluster::fake::Link;
use forebay_crypto::fault::FaultControl;
use forebay_gateway::service::{Caretaker, Service, StartError, Worker};
use forebay_gateway::serving::{Event, Process, Serving};
use forebay_ipsec::{SaConfig, SaCounters};
use forebay_pair::PairError;
use forebay_random::Random;
use forebay_state::{IvStore, IvStoreError};
use forebay_time::{Duration, Time};
use miette::Report;

use self::running::Running;
use crate::clock::HostClock;
use crate::clustering;
use crate::disk::DiskCopy;
use crate::host::{Ended, SimHost};
use crate::interleaving::Interleaving;
use crate::pairing::{self, Path};
use crate::site::Site;

/// The state directory, as the file names it.
const STATE: &str = "/state";
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
    others: Others,
    /// The threads of a process that is one of a pair, and its connections.
    pub pairing: Option<pairing::Member>,
    /// The thread of a process that is one of a cluster.
    pub clustering: Option<clustering::Member>,
    /// Until it is resumed its process does not run; and since when it runs again.
    pub suspended: bool,
    pub resumed_at: Time,
    /// Since when the store answers nothing.
    pub cut_at: Option<Time>,
    unmerged: bool,
    /// It became one of a pair, and the other machine has not had everything since.
    pub is_new: bool,
    /// The gateway's file on it, if that is not always the newest one.
    pub file: Option<String>,
    /// It has to ask an operator before it starts; and it has asked.
    pub must_ask: bool,
    pub asks: bool,
    /// A backup of its disk.
    backup: Option<DiskCopy>,
    pub host: SimHost,
    /// The process, while there is one, and when its loop steps next.
    pub serving: Option<Serving>,
    pub step_at: Time,
    pub clock: HostClock,
    pub controls: Vec<FaultControl>,
    /// What its cores do while one is at its crypto.
    pub interleaving: Arc<Interleaving>,
    /// Counts its processes.
    pub life: u64,
    /// Counts the data planes and the reloads of a process.
    pub reloads: u64,
    /// What the network has not learnt yet to be here.
    pub unlearnt: BTreeSet<u32>,
    /// It was started once, and has been looked after since.
    pub is_looked_after: bool,
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
    pub fn new(number: usize, machine: usize, others: Others) -> Node {
        let (pairing, clustering, suspended, unmerged) = (None, None, false, false);
        let clock = HostClock::new(Time::ZERO, 0);
        let (host, serving, controls) = (SimHost::default(), None, Vec::new());
        let (life, reloads, wake_at, keep_at, lies, stuck, power) = (0, 0, None, None, false, false, false);
        Node {
            number,
            machine,
            others,
            pairing,
            clustering,
            suspended,
            resumed_at: Time::ZERO,
            cut_at: None,
            unmerged,
            is_new: false,
            file: None,
            must_ask: false,
            asks: false,
            backup: None,
            host,
            serving,
            step_at: Time::ZERO,
            clock,
            controls,
            interleaving: Arc::default(),
            life,
            reloads,
            unlearnt: BTreeSet::new(),
            is_looked_after: false,
            wake_at,
            keep_at,
            lies,
            stuck,
            power,
        }
    }

    /// Its data plane, if one runs.
    pub fn service(&self) -> Option<&Service> {
        self.serving.as_ref()?.service()
    }

    /// Starts a process.
    ///
    /// # Errors
    /// Why it did not start, and whether its disk says nothing against it.
    pub fn start(&mut self, site: &Site, now: Time) -> Result<(), (String, bool)> {
        self.life += 1;
        self.host.disk().revive();
        self.lies = false;
        let skew_ns = if self.stuck { -i128::from(now.0 / 1_000) } else { self.clock.skew_ns() };
        self.clock = HostClock::new(now, skew_ns);
        self.clock.enter(now);
        let mut process = Running { node: self, site };
        let started = process.read().map_err(Report::new).and_then(|config| {
            let caretaker = Caretaker::open(&config, process.host(), None)?;
            Serving::start(&mut process, config, caretaker)
        });
        match started {
            Ok(serving) => (self.serving, self.step_at) = (Some(serving), now),
            Err(report) => {
                self.end();
                let of_others =
                    |error: &StartError| matches!(error, StartError::Ivs(IvStoreError::OfOthers { .. }));
                self.asks = report.downcast_ref::<StartError>().is_some_and(of_others);
                return Err((report.to_string(), !self.may_fail(&report, site)));
            }
        }
        self.data_plane_begins(site);
        if self.host.disk().is_killed() {
            self.kill();
            return Err(("killed while it started".to_owned(), false));
        }
        Ok(())
    }

    /// Lets time pass for what has threads of its own beside the loop.
    pub fn pass_time(&mut self, now: Time) {
        self.clock.enter(now);
        self.pairing.iter().for_each(|member| member.pass_time(now));
        self.is_new &= self.pairing.as_ref().is_none_or(pairing::Member::is_unmerged);
        self.clustering.iter_mut().for_each(|member| member.pass_time(now));
    }

    /// Has the loop do what is due, and says what happened.
    ///
    /// # Errors
    /// Why the process has ended, or goes on by an old version of its file; and whether that must not be.
    pub fn step(&mut self, site: &Site, now: Time) -> Result<Option<Event>, (String, bool)> {
        self.clock.enter(now);
        let Some(mut serving) = self.serving.take() else { return Ok(None) };
        let stepped = serving.step(&mut Running { node: self, site });
        self.serving = Some(serving);
        let refuse = |report: Report, node: &Node| (report.to_string(), !node.may_fail(&report, site));
        let step = stepped.map_err(|report| refuse(report, self))?;
        self.step_at = now + step.wait;
        if let Some(report) = step.refused {
            return Err(refuse(report, self));
        }
        match &step.event {
            Some(Event::Started) => {
                self.reloads += 1;
                self.data_plane_begins(site);
            }
            Some(Event::Serves { .. } | Event::Unserved(_)) => {
                self.reloads += 1;
                self.clustering.iter_mut().for_each(clustering::Member::wake);
            }
            _ => {}
        }
        Ok(step.event)
    }

    fn data_plane_begins(&mut self, site: &Site) {
        let seed = self.seed(site);
        if let Some(service) = self.service() {
            self.interleaving.begin(service.steps().to_vec(), seed);
        }
    }

    /// A data plane is gone, and its interface. What it has sent at its end has been taken.
    pub fn data_plane_ended(&mut self) {
        self.interleaving.end();
        self.host.process_ends();
    }

    fn seed(&self, site: &Site) -> u64 {
        site.seed ^ self.reloads << 24 ^ self.life << 8 ^ self.machine as u64
    }

    /// Goes by the file as it is now.
    ///
    /// # Errors
    /// Why it did not, and whether its disk says nothing against it.
    pub fn reload(&mut self, site: &Site, now: Time) -> Result<(), (String, bool)> {
        self.clock.enter(now);
        let Some(mut serving) = self.serving.take() else { return Ok(()) };
        self.reloads += 1;
        let reloaded = serving.reload(&mut Running { node: self, site });
        self.serving = Some(serving);
        reloaded.map(drop).map_err(|report| (report.to_string(), !self.may_fail(&report, site)))
    }

    /// Whether a process may be refused so: with a full disk, where it cannot reach the store, or with an SA that has moved.
    fn may_fail(&self, report: &Report, site: &Site) -> bool {
        let disk = self.host.disk();
        let moves = |error: &ClusterError| site.moved_with_keys && matches!(error, ClusterError::Moved(..));
        let is_full = |error: &PairError| matches!(error, PairError::State(_)) && disk.is_full();
        disk.is_killed()
            || report.downcast_ref::<StartError>().is_some_and(may_fail)
            || report.downcast_ref::<PairError>().is_some_and(is_full)
            || report.downcast_ref::<ClusterError>().is_some_and(moves)
    }

    /// Asks the process to end: the next steps do.
    pub fn stop(&mut self, now: Time) {
        self.clock.enter(now);
        self.step_at = now;
        let clock = self.clock.clock();
        self.serving.iter_mut().for_each(|serving| serving.end(clock.now()));
    }

    /// The process is gone.
    pub fn end(&mut self) {
        self.data_plane_ended();
        (self.serving, self.clustering) = (None, None);
        self.is_unmerged();
        if let Some(member) = self.pairing.take() {
            member.end(self.power);
        }
        self.suspended = false;
    }

    /// Ends the process as it is.
    pub fn kill(&mut self) {
        self.host.disk().kill();
        self.end();
    }

    /// Loses what a power failure loses.
    pub fn lose_power(&mut self, random: &mut Random) {
        self.host.disk().lose_power(random);
    }

    /// Whether it was complete at some time, as its note says.
    pub fn knows_all(&self) -> bool {
        self.store().pair_note().is_ok_and(|note| note.is_some_and(|note| !note.blank))
    }

    /// An operator says that it goes on with what it has: `forebay state accept`. Whether there was room for that.
    pub fn accept(&self) -> bool {
        self.store().accept(0).is_ok()
    }

    fn store(&self) -> IvStore {
        IvStore::on(STATE, Arc::new(self.host.disk().clone()))
    }

    /// Makes a backup of its disk, unless there is one.
    pub fn back_up(&mut self) {
        self.backup.get_or_insert_with(|| self.host.disk().copy());
    }

    /// The process ends, and the machine has another disk from now on: that of the backup, or an empty one.
    pub fn replace_disk(&mut self, by_backup: bool) {
        self.power = true;
        self.kill();
        self.power = false;
        let copy = if by_backup { self.backup.take() } else { None };
        self.host.disk().put_back(copy.unwrap_or_default());
    }

    /// Whether it has used or received numbers that the other machine of its pair may not know, as far as was known when it
    /// ran last.
    pub fn is_unmerged(&mut self) -> bool {
        if let Some(member) = &self.pairing {
            self.unmerged = member.is_unmerged();
        }
        self.unmerged
    }

    /// It is alone, or becomes one of a pair, which has to know everything before it serves.
    pub fn changes_role(&mut self) {
        (self.unmerged, self.is_new) = (false, true);
    }

    /// The SAs of its data plane, by their SPIs.
    pub fn spis(&self) -> Vec<u32> {
        let entries = self.service().map(|service| &service.config().sas.entries);
        entries.into_iter().flatten().map(|entry| entry.config.spi.get()).collect()
    }

    /// Runs the workers until they wait.
    pub fn wake(&mut self, now: Time) -> Woken {
        self.clock.enter(now);
        let Some(service) = self.serving.as_mut().and_then(Serving::service_mut) else {
            return Woken::At(Time::MAX);
        };
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
        let outside = links.outside().flat_map(take).collect();
        Sent { inside: links.inside.as_ref().map(take).unwrap_or_default(), outside }
    }

    /// What of each worker is to be known.
    fn ask<R: Send + 'static>(&self, what: fn(&mut Worker) -> R) -> Vec<R> {
        self.service().and_then(|service| service.workers().ask(what)).unwrap_or_default()
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
        self.service()?.workers().get(0)?.ask(describe)
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

/// How a machine reaches the others of its gateway.
pub enum Others {
    /// There are none.
    None,
    /// The machine's number in the pair, and the path between the two.
    Pair(usize, Path),
    /// The way to the store.
    Cluster(Link),
}

/// Whether a machine with a full disk, or one that cannot reach the store, may be refused so.
pub fn may_fail(error: &StartError) -> bool {
    matches!(error, StartError::Ivs(IvStoreError::Write { .. } | IvStoreError::NotNoted(_)))
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
