//! What the cores of a gateway share: SAs and policies, the order of packets, and what waits at the edges. A core passes
//! here twice with each burst: to prepare it, and to complete it.

use std::sync::Arc;

use forebay_crypto::{Direction, Packet, SaKeys, SessionId};
use forebay_ipsec::Ipsec;

use crate::edges::Edges;
use crate::outputs::Outputs;
use crate::tickets::Tickets;

/// See the module. Not on the cache line that cores look at while they wait.
#[repr(align(128))]
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

impl Databases {
    /// Whether there is something to tell: events of SAs, or answers.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.ipsec.has_events() || self.edges.has_answers()
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
