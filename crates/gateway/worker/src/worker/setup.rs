//! What a worker is made of, and what it counts.

use std::net::IpAddr;

use forebay_engine::Engine;
use forebay_links::Link;
use forebay_time::Duration;

use crate::port::Port;
use crate::wait::Wait;

/// A worker's port to a link.
pub enum PortOf {
    /// One of its own.
    Own(Port),
    /// That of the worker of this number, where the link has fewer queues than there are workers. This one sends by it too, and
    /// receives by it when that worker has more than it can do.
    Worker(usize),
}

impl From<Port> for PortOf {
    fn from(port: Port) -> PortOf {
        PortOf::Own(port)
    }
}

impl PortOf {
    /// Puts something around the link of a port of its own.
    #[must_use]
    pub fn map_link(self, map: impl FnOnce(&str, Box<dyn Link + Send>) -> Box<dyn Link + Send>) -> PortOf {
        match self {
            PortOf::Own(port) => PortOf::Own(port.map_link(map)),
            PortOf::Worker(other) => PortOf::Worker(other),
        }
    }
}

/// A link to the outside, and what it carries.
pub struct Outside {
    /// The link.
    pub port: PortOf,
    /// The IP protocols that it takes: UDP for ESP in UDP, ESP, AH.
    pub protocols: Vec<u8>,
    /// The local address it is for; an unspecified one for all of its IP version, `None` for all.
    pub local: Option<IpAddr>,
}

/// How a worker is set up.
pub struct Setup {
    /// The engine. Those of all workers share their SAs.
    pub engine: Engine,
    /// The side of programs.
    pub inside: PortOf,
    /// The side of peers, at least one; the same ones at each worker.
    pub outside: Vec<Outside>,
    /// ICMP messages for this host, about paths; at one worker.
    pub icmp: Vec<Box<dyn Link + Send>>,
    /// What it goes by.
    pub own: OwnSettings,
    /// What it waits by while it has nothing to do.
    pub wait: Box<dyn Wait>,
}

/// What a worker goes by.
#[derive(Clone, Debug, Default)]
pub struct OwnSettings {
    /// To lower the segment size that TCP announces so that segments fit in this many bytes of plain packet.
    pub mss_clamp: Option<u16>,
    /// And so that they fit the narrowest path of all SAs.
    pub mss_by_path: bool,
    /// Silence after which a peer behind NAT gets a keepalive (RFC 3948 4); `None` for never.
    pub keepalive: Option<Duration>,
    /// Audit records a second, and at once.
    pub audit: (u32, u32),
    /// Whether to wait for the scheduler's window to fill by its timeout alone.
    pub window_waits: bool,
    /// The places in the file of the engine's processors.
    pub processors: Vec<usize>,
}

/// What a worker has done beyond what engine and links count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Rounds of the loop.
    pub rounds: u64,
    /// Times it slept.
    pub naps: u64,
    /// ICMP messages that told of a smaller path.
    pub paths_learnt: u64,
    /// ICMP answers to programs whose packets are too big.
    pub answers: u64,
    /// Keepalives sent.
    pub keepalives: u64,
    /// Peers that moved.
    pub moved_peers: u64,
    /// Sealed packets that no link to the outside carries.
    pub no_link: u64,
    /// Packets taken from links of other workers that had too much to do.
    pub helped: u64,
    /// Received packets that waited until their numbers were noted.
    pub held: u64,
}
