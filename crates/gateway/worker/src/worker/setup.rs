//! What a worker is made of, and what it counts.

use std::net::IpAddr;
use std::sync::Arc;

use forebay_engine::Engine;
use forebay_links::Link;
use forebay_time::Duration;
use forebay_wire::{Ip, ipv4, protocol};

use crate::handoff::Handoff;
use crate::owners::{Paths, WorkerIndex};
use crate::port::Port;
use crate::wait::Wait;

/// A link to the outside, and what it carries.
pub struct Outside {
    /// The link.
    pub port: Port,
    /// The IP protocols that it takes: UDP for ESP in UDP, ESP, AH.
    pub protocols: Vec<u8>,
    /// The local address it is for; an unspecified one for all of its IP version, `None` for all.
    pub local: Option<IpAddr>,
}

impl Outside {
    /// Whether a packet goes out here. Of the engine's packets over IPv4 only the fields that say so are read.
    pub(super) fn takes(&self, packet: &[u8]) -> bool {
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

/// How a worker is set up.
pub struct Setup {
    /// The engine, with whatever SAs there are already.
    pub engine: Engine,
    /// The side of programs.
    pub inside: Port,
    /// The side of peers, at least one.
    pub outside: Vec<Outside>,
    /// ICMP messages for this host, about paths.
    pub icmp: Vec<Box<dyn Link + Send>>,
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
    /// Its place among the workers.
    pub index: WorkerIndex,
    /// The ways to the other workers.
    pub handoff: Handoff,
    /// The narrowest paths of all workers' SAs.
    pub paths: Arc<Paths>,
    /// The places in the file of the engine's processors.
    pub processors: Vec<usize>,
    /// What it waits by while it has nothing to do.
    pub wait: Box<dyn Wait>,
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
    /// Packets given to other workers, whose SAs they are of.
    pub handed_over: u64,
    /// Packets that other workers gave.
    pub taken_over: u64,
    /// Received packets that waited until their numbers were noted.
    pub held: u64,
}
