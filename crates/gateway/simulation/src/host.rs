//! A simulated host: it gives a gateway links, routes, a packet filter, a disk and a way to wait.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_config::{Config, Raw, SharedAddress, Tun, Udp};
use forebay_engine::Clock;
use forebay_gateway::service::{Address, Firewall, Host, Queues, Routing, StartError, Wait};
use forebay_ipsec::Protocol;
use forebay_links::Link;
use forebay_links::nftables::{Counted, Table};
use forebay_state::Files;
use forebay_time::Duration;
use ipnet::IpNet;
use rustix::event::PollFlags;

use crate::disk::Disk;
use crate::link::SimLink;
use crate::packet;

/// Sequence numbers of an SA's first reservation: few, so that reservations happen.
const SEQUENCE_BLOCK: u64 = 64;

/// The links of one process.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// To the inside.
    pub inside: Option<SimLink>,
    /// ESP in UDP.
    pub udp: Option<SimLink>,
    /// ESP in IP, by the gateway's address.
    pub raw: Vec<(IpAddr, SimLink)>,
    /// ICMP errors.
    pub icmp: Option<SimLink>,
}

impl Links {
    /// The link by which a packet comes from outside.
    pub fn by_which_comes(&self, packet: &[u8]) -> Option<&SimLink> {
        let (_, (address, _)) = packet::places(packet);
        match packet[9] {
            17 => self.udp.as_ref(),
            _ => self.raw.iter().find(|(of, _)| *of == IpAddr::from(address)).map(|(_, link)| link),
        }
    }

    /// The links to the outside.
    pub fn outside(&self) -> impl Iterator<Item = &SimLink> {
        self.udp.iter().chain(self.raw.iter().map(|(_, link)| link))
    }

    /// The queues of a worker, in the order in which it waits for them.
    fn of(&self, worker: usize) -> impl Iterator<Item = SimLink> {
        let raw = self.raw.iter().map(|(_, link)| link);
        let queues = [&self.inside, &self.udp].into_iter().flatten().chain(raw);
        let icmp = self.icmp.iter().filter(move |_| worker == 0);
        queues.map(move |link| link.queue(worker)).chain(icmp.cloned())
    }
}

/// How the last poll iteration of a worker ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// Something moved.
    #[default]
    Moved,
    /// Nothing moved, and other processors have packets.
    Rests,
    /// It waits, for so long at most.
    Waits(Duration),
}

impl Ended {
    /// How an iteration of several workers ended.
    pub fn and(self, other: Ended) -> Ended {
        match (self, other) {
            (Ended::Waits(one), Ended::Waits(two)) => Ended::Waits(one.min(two)),
            (Ended::Moved, _) | (_, Ended::Moved) => Ended::Moved,
            _ => Ended::Rests,
        }
    }
}

/// The routing table.
#[derive(Debug, Default)]
pub struct Routes {
    /// Networks that go to the gateway's interface; gone with the process.
    pub tunnel: BTreeSet<IpNet>,
    /// Networks that are discarded behind all other routes.
    pub blackholes: BTreeSet<IpNet>,
}

/// A host. Its copies are of the same one.
#[derive(Clone, Debug, Default)]
pub struct SimHost {
    disk: Disk,
    links: Arc<Mutex<Links>>,
    routes: Arc<Mutex<Routes>>,
    tables: Arc<Mutex<BTreeMap<String, Table>>>,
    /// By worker.
    ended: Arc<Mutex<BTreeMap<usize, Ended>>>,
    shared: Arc<Mutex<BTreeMap<IpAddr, Shared>>>,
}

/// An address that the machines of a gateway share, as one of them has it.
#[derive(Debug, Default)]
struct Shared {
    is_here: bool,
    is_announced: bool,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimHost {
    /// The disk.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The links of the process.
    pub fn links(&self) -> Links {
        locked(&self.links).clone()
    }

    /// How the last poll iteration of a worker ended.
    pub fn take_ended(&self, worker: usize) -> Ended {
        locked(&self.ended).remove(&worker).unwrap_or_default()
    }

    /// The routes.
    pub fn routes(&self) -> MutexGuard<'_, Routes> {
        locked(&self.routes)
    }

    /// Whether a table of the packet filter names an address, so that it comes and goes by the gateway only. Tables stay
    /// when the process ends.
    pub fn guards(&self, address: IpAddr) -> bool {
        let names = |(first, last): &(IpAddr, IpAddr)| (*first..=*last).contains(&address);
        locked(&self.tables).values().flat_map(|table| &table.sets).any(|set| set.ranges.iter().any(names))
    }

    /// Whether the host has an address that the machines of its gateway share.
    pub fn has_address(&self, address: IpAddr) -> bool {
        locked(&self.shared).get(&address).is_some_and(|shared| shared.is_here)
    }

    /// The addresses that were announced since the last call.
    pub fn take_announced(&self) -> Vec<IpAddr> {
        let mut shared = locked(&self.shared);
        let announced = shared
            .iter_mut()
            .filter_map(|(address, one)| std::mem::take(&mut one.is_announced).then_some(*address));
        announced.collect()
    }

    /// The process has ended: its interface is gone, and the routes to it.
    pub fn process_ends(&self) {
        *locked(&self.links) = Links::default();
        self.routes().tunnel.clear();
    }

    fn open(&self, workers: usize, put: impl FnOnce(&mut Links, SimLink)) -> Queues {
        let link = SimLink::new(self.disk.clone(), workers);
        put(&mut locked(&self.links), link.clone());
        (0..workers).map(|worker| -> Box<dyn Link + Send> { Box::new(link.queue(worker)) }).collect()
    }
}

impl Host for SimHost {
    fn tun(&self, _tun: &Tun, workers: usize) -> Result<Queues, StartError> {
        Ok(self.open(workers, |links, link| links.inside = Some(link)))
    }

    fn udp(&self, _: &str, _: &Udp, _: SocketAddr, workers: usize, _: Clock) -> Result<Queues, StartError> {
        Ok(self.open(workers, |links, link| links.udp = Some(link)))
    }

    fn raw(&self, _: &str, _: &Raw, at: IpAddr, _: Protocol, workers: usize) -> Result<Queues, StartError> {
        Ok(self.open(workers, |links, link| links.raw.push((at, link))))
    }

    fn icmp(&self) -> Queues {
        self.open(1, |links, link| links.icmp = Some(link))
    }

    fn routing(&self, _config: &Config) -> io::Result<Option<Box<dyn Routing>>> {
        Ok(Some(Box::new(SimRouting(self.clone()))))
    }

    fn address(&self, shared: &SharedAddress) -> io::Result<Box<dyn Address>> {
        Ok(Box::new(SimAddress(self.shared.clone(), shared.address.addr())))
    }

    fn firewall(&self) -> Box<dyn Firewall> {
        Box::new(SimFirewall(self.clone()))
    }

    fn files(&self) -> Arc<dyn Files> {
        Arc::new(self.disk.clone())
    }

    fn wait(&self, worker: usize) -> Box<dyn Wait> {
        Box::new(SimWait { host: self.clone(), worker })
    }

    fn has_threads(&self) -> bool {
        false
    }

    fn sequence_block(&self) -> u64 {
        SEQUENCE_BLOCK
    }
}

struct SimRouting(SimHost);

impl Routing for SimRouting {
    fn add_route(&self, network: IpNet) -> io::Result<()> {
        match self.0.routes().tunnel.insert(network) {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
        }
    }

    fn remove_route(&self, network: IpNet) -> io::Result<()> {
        found(self.0.routes().tunnel.remove(&network))
    }

    fn add_blackhole(&self, network: IpNet) -> io::Result<()> {
        self.0.routes().blackholes.insert(network);
        Ok(())
    }

    fn remove_blackhole(&self, network: IpNet) -> io::Result<()> {
        found(self.0.routes().blackholes.remove(&network))
    }
}

fn found(was_there: bool) -> io::Result<()> {
    if was_there { Ok(()) } else { Err(io::Error::from(io::ErrorKind::NotFound)) }
}

struct SimAddress(Arc<Mutex<BTreeMap<IpAddr, Shared>>>, IpAddr);

impl Address for SimAddress {
    fn lease(&self, _seconds: u32) -> io::Result<()> {
        locked(&self.0).entry(self.1).or_default().is_here = true;
        Ok(())
    }

    fn announce(&self) -> io::Result<()> {
        locked(&self.0).entry(self.1).or_default().is_announced = true;
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        match std::mem::take(&mut locked(&self.0).entry(self.1).or_default().is_here) {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::AddrNotAvailable)),
        }
    }
}

struct SimFirewall(SimHost);

impl Firewall for SimFirewall {
    fn replace(&mut self, table: &Table) -> io::Result<u64> {
        locked(&self.0.tables).insert(table.name.clone(), table.clone());
        Ok(content(table))
    }

    fn change(&mut self, before: &Table, table: &Table) -> io::Result<u64> {
        let mut tables = locked(&self.0.tables);
        if tables.get(&before.name) != Some(before) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        tables.insert(table.name.clone(), table.clone());
        Ok(content(table))
    }

    fn delete(&mut self, name: &str) -> io::Result<()> {
        locked(&self.0.tables).remove(name);
        Ok(())
    }

    fn counted(&mut self, name: &str) -> io::Result<Counted> {
        let count = |table: &Table| Counted {
            packets: table.counters.iter().map(|&counter| (counter.to_owned(), 0)).collect(),
            content: Some(content(table)),
        };
        Ok(locked(&self.0.tables).get(name).map(count).unwrap_or_default())
    }
}

/// By what the guard tells tables apart.
fn content(table: &Table) -> u64 {
    let mut hasher = DefaultHasher::new();
    table.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Says at once what is ready, and leaves the waiting to the simulation.
struct SimWait {
    host: SimHost,
    worker: usize,
}

impl Wait for SimWait {
    fn poll(&mut self, asked: &[(BorrowedFd<'_>, PollFlags)], limit: Duration) -> io::Result<Vec<PollFlags>> {
        let links = self.host.links();
        let flags = |link: SimLink| {
            let (reads, writes) = link.ready();
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, reads);
            flags.set(PollFlags::OUT, writes);
            flags
        };
        // The worker's bell comes before the links; in the simulation it is never rung.
        let ready = std::iter::once(PollFlags::empty()).chain(links.of(self.worker).map(flags));
        let ready: Vec<PollFlags> =
            asked.iter().zip(ready).map(|((_, asked), ready)| ready & *asked).collect();
        let any = ready.iter().any(|flags| !flags.is_empty());
        let ended = if any { Ended::Moved } else { Ended::Waits(limit) };
        locked(&self.host.ended).insert(self.worker, ended);
        Ok(ready)
    }

    fn rest(&mut self, moved: bool) {
        let ended = if moved { Ended::Moved } else { Ended::Rests };
        locked(&self.host.ended).insert(self.worker, ended);
    }
}
