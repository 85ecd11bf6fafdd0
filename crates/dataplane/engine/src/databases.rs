//! What the cores of a gateway share: SAs and policies, the order of packets, and what waits at the edges. A core passes
//! here twice with each burst: to prepare it, and to complete it.

use std::sync::Arc;

use forebay_crypto::{Direction, Packet, SaKeys, SessionId};
use forebay_ipsec::Ipsec;

use crate::edges::Edges;
use crate::engine::Output;
use crate::tickets::Tickets;

/// See the module.
pub struct Databases {
    pub ipsec: Ipsec,
    pub tickets: Tickets,
    pub edges: Edges,
    pub keys: Keys,
    pub outputs: Outputs,
    /// How many cores there are, and packet buffers of which one had too many.
    pub cores: usize,
    pub spare: Vec<Packet>,
}

/// Packets that have left, in the order of their release. Each SA has its *lane*, so that packets of several SAs can be
/// taken by several cores at the same time: one for each core and direction.
#[derive(Debug, Default)]
pub struct Outputs {
    lanes: Vec<Vec<Output>>,
    cores: usize,
    /// By SA.
    lane_of: Vec<u8>,
    len: usize,
}

/// Cores that have lanes of their own; further ones share them.
const CORES: usize = 64;

impl Outputs {
    /// Lanes for so many cores, with room for so many packets each.
    pub fn new(cores: usize, room: usize) -> Outputs {
        let cores = cores.clamp(1, CORES);
        let lanes = if cores == 1 { 1 } else { 2 * cores };
        let lanes = (0..lanes).map(|_| Vec::with_capacity(room)).collect();
        Outputs { lanes, cores, lane_of: Vec::new(), len: 0 }
    }

    /// Gives an SA its lane: an inbound one that of the core to which its SPI leads ([`Engine::set_lanes`](crate::Engine::set_lanes)).
    pub fn open(&mut self, session: SessionId, direction: Direction, spi: u32) {
        let number = session.0 as usize;
        if self.lane_of.len() <= number {
            self.lane_of.resize(number + 1, 0);
        }
        let cores = self.cores;
        self.lane_of[number] = match direction {
            _ if cores == 1 => 0,
            Direction::Open => (spi as usize % cores) as u8,
            // Packets of one lane leave in trains, and the peer's kernel steers a train by its first SPI.
            Direction::Seal => (cores + spi as usize % cores) as u8,
        };
    }

    /// Packets in all lanes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The lane of an SA's packets; of those without one the first.
    #[inline]
    pub fn lane_of(&self, session: Option<SessionId>) -> usize {
        session.and_then(|session| self.lane_of.get(session.0 as usize)).map_or(0, |lane| usize::from(*lane))
    }

    /// Puts packets of one SA behind those of its lane.
    #[inline]
    pub fn extend(&mut self, session: Option<SessionId>, outputs: impl Iterator<Item = Output>) {
        let lane = self.lane_of(session);
        let lane = &mut self.lanes[lane];
        let before = lane.len();
        lane.extend(outputs);
        self.len += lane.len() - before;
    }

    /// Puts a packet behind those of its lane.
    #[inline]
    pub fn push(&mut self, output: Output) {
        self.extend(output.session, std::iter::once(output));
    }

    /// Takes all packets of a lane behind those of `to`.
    #[inline]
    pub fn take(&mut self, lane: usize, to: &mut Vec<Output>) {
        let Some(lane) = self.lanes.get_mut(lane) else { return };
        self.len -= lane.len();
        if to.is_empty() {
            std::mem::swap(lane, to);
        } else {
            to.append(lane);
        }
    }

    /// Whether a lane has no packets.
    pub fn is_empty(&self, lane: usize) -> bool {
        self.lanes.get(lane).is_none_or(Vec::is_empty)
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }
}

/// The keys of every SA, from which each core opens a session when it first has a packet of the SA.
#[derive(Debug, Default)]
pub struct Keys {
    of: Vec<Of>,
    /// SAs that have been removed.
    removals: u64,
}

/// The keys of one number of an SA.
#[derive(Debug, Default)]
struct Of {
    /// Counts the SAs that have had this number; never zero for one that has keys.
    generation: u32,
    keys: Option<(Direction, Arc<SaKeys>)>,
}

impl Keys {
    /// Notes the keys of a new SA.
    pub fn put(&mut self, session: SessionId, direction: Direction, keys: &SaKeys) {
        let number = session.0 as usize;
        if self.of.len() <= number {
            self.of.resize_with(number + 1, Of::default);
        }
        let of = &mut self.of[number];
        of.generation = of.generation.wrapping_add(1).max(1);
        of.keys = Some((direction, Arc::new(keys.clone())));
    }

    /// Forgets the keys of an SA that is removed.
    pub fn remove(&mut self, session: SessionId) {
        if let Some(of) = self.of.get_mut(session.0 as usize) {
            of.keys = None;
            self.removals += 1;
        }
    }

    /// Which SA it is that has a number; zero if none ever had.
    #[inline]
    pub fn generation(&self, session: SessionId) -> u32 {
        self.of.get(session.0 as usize).map_or(0, |of| of.generation)
    }

    /// The keys of an SA; `None` if it has been removed.
    pub fn get(&self, session: SessionId) -> Option<(Direction, Arc<SaKeys>)> {
        self.of.get(session.0 as usize)?.keys.clone()
    }

    /// Changes whenever an SA is removed.
    #[inline]
    pub fn removals(&self) -> u64 {
        self.removals
    }
}
