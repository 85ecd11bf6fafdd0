//! State that the workers of a gateway share beside the engine's databases: links, and packets that wait for transmission.
//!
//! Every worker has a *station*: a queue of each link. It receives packets from its own queues first; when its station is crowded, others
//! help. If a link has fewer queues than there are workers, some workers have no queue of their own there: they only help, and send through the
//! queue of another. A core that receives packets prepares them before the next one may receive from the same link, so that the packets of a
//! flow are numbered in the order in which they came.
//!
//! Packets leave through *lanes*, and each SA has one lane. One core at a time sends the packets of a lane, through its own
//! station's links, regardless of the core that added them; a core that finds a lane in use leaves its packets to the core that is
//! sending. The packets of an SA are therefore sent in order, and no core waits. Because the kernel
//! may reorder packets that it gets from two CPUs at almost the same time, the core that sent last continues to send. The lanes of inbound
//! SAs belong to one worker for good: the kernel delivers a flow at the queue of the TUN interface on which the other direction
//! arrives, so that queue must not change.

use std::io;
use std::net::IpAddr;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;

use forebay_engine::Turnstile;
use forebay_ipsec::Event;
use forebay_time::Time;
use forebay_wire::{Ip, ipv4, protocol};

use crate::bell::Bell;
use crate::held::Held;
use crate::port::{Port, Queue};
use crate::word::Word;
use crate::worker::{Outside, PortOf};

/// See the module.
pub struct Shared {
    pub stations: Vec<Station>,
    pub lanes: Vec<Lane>,
    pub events: Turnstile<Events>,
    /// How many times SAs were removed.
    pub removals: AtomicU64,
    /// Received packets wait until their numbers are noted.
    pub holds: AtomicBool,
    /// How many times limits of replay windows were raised.
    pub notes: AtomicU64,
}

/// The links of one worker, and how it is woken.
pub struct Station {
    pub inside: Gate,
    pub outside: Vec<OutsideLink>,
    pub bell: Arc<Bell>,
    /// The links had more than the worker took at a time.
    pub crowded: AtomicBool,
}

/// A worker's way to a queue of a link, which it may have together with others.
pub struct Gate {
    port: Arc<Turnstile<Port>>,
    /// Whether this worker is the one that takes packets here.
    pub is_own: bool,
    /// What poll(2) is asked for where others have it too: they use the port while this worker sleeps.
    pub fd: Option<OwnedFd>,
}

impl Gate {
    /// The gates of all workers to one link.
    ///
    /// # Errors
    /// If the system has no descriptor left, or a worker is to use the port of one that has none.
    pub fn all(ports: Vec<PortOf>) -> io::Result<Vec<Gate>> {
        let owner_of = |port: &PortOf| if let PortOf::Worker(owner) = port { Some(*owner) } else { None };
        let owners: Vec<Option<usize>> = ports.iter().map(owner_of).collect();
        let own: Vec<Option<Arc<Turnstile<Port>>>> = ports
            .into_iter()
            .map(
                |port| if let PortOf::Own(port) = port { Some(Arc::new(Turnstile::new(port))) } else { None },
            )
            .collect();
        let gate = |(worker, owner): (usize, &Option<usize>)| {
            let port = own.get(owner.unwrap_or(worker)).and_then(Option::as_ref);
            let port = port.ok_or_else(|| io::Error::other("no worker with such a port"))?.clone();
            let is_lent = owner.is_some() || owners.contains(&Some(worker));
            let fd = is_lent.then(|| port.pass().link.fd().try_clone_to_owned()).transpose()?;
            Ok(Gate { port, is_own: owner.is_none(), fd })
        };
        owners.iter().enumerate().map(gate).collect()
    }

    /// Whether another gate leads to the same queue.
    pub fn is(&self, other: &Gate) -> bool {
        Arc::ptr_eq(&self.port, &other.port)
    }
}

impl Outgoings {
    /// Packets for the inside link, or behind it for one of the outside ones.
    pub fn queue(&self, link: usize) -> Option<&Queue> {
        link.checked_sub(1).map_or(Some(&self.inside), |place| self.outside.get(place))
    }
}

impl Deref for Gate {
    type Target = Turnstile<Port>;

    fn deref(&self) -> &Turnstile<Port> {
        &self.port
    }
}

/// A link to the outside, and what it carries.
pub struct OutsideLink {
    pub port: Gate,
    protocols: Vec<u8>,
    local: Option<IpAddr>,
}

/// A way to the links. See the module.
#[derive(Default)]
pub struct Lane {
    pub packets: Turnstile<Outgoings>,
    /// Packets that wait for a link to have room, and those of them for the outside.
    pub waiting: AtomicUsize,
    pub sealed: AtomicUsize,
}

/// What stands in a lane.
#[derive(Default)]
pub struct Outgoings {
    pub inside: Queue,
    /// By the outside links of a station.
    pub outside: Vec<Queue>,
    pub held: Held,
    /// The worker that sent last, and when.
    pub sender: usize,
    pub sent: Time,
    /// Since when packets wait for a worker that should send them.
    pub left: Option<Time>,
}

/// What happened to SAs, for other threads.
#[derive(Default)]
pub struct Events {
    /// For the code that manages keys, until it is taken.
    pub list: Vec<Event>,
    /// The receiver of these events, if there is one.
    pub to: Option<mpsc::Sender<Event>>,
    /// The thread that records what inbound SAs receive.
    pub windows_to: Option<mpsc::Sender<Word>>,
}

impl Shared {
    /// Of these stations.
    pub fn new(stations: Vec<Station>, lanes: usize) -> Shared {
        let links = stations.first().map_or(0, |station| station.outside.len());
        let lane = || {
            let outside = (0..links).map(|_| Queue::default()).collect();
            Lane { packets: Turnstile::new(Outgoings { outside, ..Outgoings::default() }), ..Lane::default() }
        };
        let lanes = (0..lanes).map(|_| lane()).collect();
        let (events, removals, holds, notes) = Default::default();
        Shared { stations, lanes, events, removals, holds, notes }
    }

    /// Packets that wait for a link to have room.
    pub fn waiting(&self) -> usize {
        self.lanes.iter().map(|lane| lane.waiting.load(Ordering::Relaxed)).sum()
    }

    /// Whether sealed packets wait for a link, and programs with them.
    pub fn sealed_wait(&self) -> bool {
        self.lanes.iter().any(|lane| lane.sealed.load(Ordering::Relaxed) > 0)
    }

    /// Wakes one of the workers that sleep, if any does, because station number `own` is crowded.
    pub fn call_for_help(&self, own: usize) {
        let others = self.stations.iter().enumerate().filter(|(place, _)| *place != own);
        if let Some((_, other)) = others.into_iter().find(|(_, other)| other.bell.is_asleep()) {
            other.bell.ring_for_work();
        }
    }
}

impl Station {
    /// The stations of all workers, each with its bell.
    ///
    /// # Errors
    /// Those of [`Gate::all`].
    pub fn all(
        inside: Vec<PortOf>,
        outside: Vec<Vec<Outside>>,
        bells: &[Arc<Bell>],
    ) -> io::Result<Vec<Station>> {
        let links = outside.first().map_or(0, Vec::len);
        let mut carried: Vec<Vec<_>> = vec![];
        let mut ports: Vec<Vec<PortOf>> = (0..links).map(|_| vec![]).collect();
        for one in outside {
            let mut own = vec![];
            for (Outside { port, protocols, local }, ports) in one.into_iter().zip(&mut ports) {
                own.push((protocols, local));
                ports.push(port);
            }
            carried.push(own);
        }
        let inside = Gate::all(inside)?;
        let gates = ports.into_iter().map(Gate::all).collect::<io::Result<Vec<_>>>()?;
        let mut gates: Vec<_> = gates.into_iter().map(Vec::into_iter).collect();
        let stations = inside.into_iter().zip(carried).zip(bells).map(|((inside, carried), bell)| {
            let outside = carried.into_iter().zip(&mut gates);
            let outside = outside.filter_map(|((protocols, local), gates)| {
                gates.next().map(|port| OutsideLink { port, protocols, local })
            });
            let (outside, bell) = (outside.collect(), bell.clone());
            Station { inside, outside, bell, crowded: AtomicBool::new(false) }
        });
        Ok(stations.collect())
    }

    /// The inside link, then the outside ones.
    pub fn ports(&self) -> impl Iterator<Item = &Gate> {
        std::iter::once(&self.inside).chain(self.outside.iter().map(|one| &one.port))
    }

    /// The number of the outside link that a packet goes out on.
    pub fn link_for(&self, packet: &[u8]) -> Option<usize> {
        self.outside.iter().position(|one| one.takes(packet))
    }
}

impl OutsideLink {
    /// Whether a packet goes out here. Of the engine's packets over IPv4 only the fields that say so are read.
    fn takes(&self, packet: &[u8]) -> bool {
        let (source, upper) = match packet.first_chunk::<{ ipv4::MIN_HEADER }>() {
            Some(ip) if ip[0] >> 4 == 4 => (IpAddr::from([ip[12], ip[13], ip[14], ip[15]]), ip[9]),
            _ => match Ip::parse(packet) {
                Ok(Ip::V6(ip)) => {
                    (ip.source().into(), ip.upper_layer().map_or(protocol::NONE, |upper| upper.protocol))
                }
                _ => return false,
            },
        };
        let is_from = |local: IpAddr| {
            local == source || (local.is_unspecified() && local.is_ipv4() == source.is_ipv4())
        };
        self.local.is_none_or(is_from) && self.protocols.contains(&upper)
    }
}
