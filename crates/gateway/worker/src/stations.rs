//! What the workers of a gateway share beside the engine's databases: links, and what waits to be sent.
//!
//! Every worker has a *station*: a queue of each link. It takes packets from its own first; when that is crowded, others
//! help. A core that takes packets prepares them before the next may take from the same link, so that the packets of a
//! flow are numbered in the order in which they came.
//!
//! Packets leave by *lanes*, each SA always by the same. One core at a time sends what stands in a lane, by its own
//! station's links, whoever it was that put it there; a core that finds a lane taken leaves its packets to the one
//! inside. So the packets of an SA are sent in order, and nobody waits. Because the kernel
//! may put what two CPUs have just given to it in another order, the core that sent last goes on to send. The lanes of inbound
//! SAs belong to one worker for good: the kernel delivers a flow at the queue of the TUN interface by which the other direction
//! comes, so that queue must not change.

use std::net::IpAddr;
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
use crate::worker::Outside;

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
    pub inside: Turnstile<Port>,
    pub outside: Vec<OutsideLink>,
    pub bell: Arc<Bell>,
    /// The links had more than the worker took at a time.
    pub crowded: AtomicBool,
}

/// A link to the outside, and what it carries.
pub struct OutsideLink {
    pub port: Turnstile<Port>,
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

    /// Whether a worker has links that others should help with.
    pub fn any_crowded(&self) -> bool {
        self.stations.iter().any(|station| station.crowded.load(Ordering::Relaxed))
    }
}

impl Station {
    /// The station of a worker.
    pub fn new(inside: Port, outside: Vec<Outside>, bell: Arc<Bell>) -> Station {
        let outside = outside.into_iter().map(|Outside { port, protocols, local }| OutsideLink {
            port: Turnstile::new(port),
            protocols,
            local,
        });
        let (inside, outside) = (Turnstile::new(inside), outside.collect());
        Station { inside, outside, bell, crowded: AtomicBool::new(false) }
    }

    /// The inside link, then the outside ones.
    pub fn ports(&self) -> impl Iterator<Item = &Turnstile<Port>> {
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
