//! Packets that have left and wait to be taken, in the order of their release.
//!
//! Each SA has its *lane*, so that packets of several SAs can be taken by several cores at the same time: one for each core
//! and direction. A lane has *batches*, each written by one core, in memory that goes back to this core: mostly a core takes
//! what it has released itself, and then no other core touches the memory.

use std::collections::VecDeque;

use forebay_crypto::{Direction, SessionId};

use crate::engine::Output;

/// See the module.
#[derive(Debug)]
pub struct Outputs {
    lanes: Vec<VecDeque<Batch>>,
    cores: usize,
    /// By SA.
    lane_of: Vec<u8>,
    len: usize,
    /// A bit for each lane that has packets, of lanes with the same number modulo 64 together.
    filled: u64,
    /// Empty batches, by core.
    spare: Vec<Vec<Vec<Output>>>,
}

/// Packets of a lane that one core has released.
#[derive(Debug)]
struct Batch {
    /// The core.
    by: u32,
    outputs: Vec<Output>,
}

/// Cores that have lanes of their own; further ones share them.
const CORES: usize = 64;

impl Outputs {
    /// Lanes for so many cores.
    pub fn new(cores: usize) -> Outputs {
        let cores = cores.clamp(1, CORES);
        let lanes = if cores == 1 { 1 } else { 2 * cores };
        let lanes = (0..lanes).map(|_| VecDeque::new()).collect();
        let spare = (0..CORES).map(|_| Vec::new()).collect();
        Outputs { lanes, cores, lane_of: Vec::new(), len: 0, filled: 0, spare }
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

    /// Puts packets of one SA, which a core has released, behind those of their lane.
    #[inline]
    pub fn extend(&mut self, by: u32, session: Option<SessionId>, outputs: impl Iterator<Item = Output>) {
        let lane = self.lane_of(session);
        if self.lanes[lane].back().is_none_or(|batch| batch.by != by) {
            let outputs = self.spare[place_of(by)].pop().unwrap_or_default();
            self.lanes[lane].push_back(Batch { by, outputs });
        }
        let Some(batch) = self.lanes[lane].back_mut() else { return };
        let before = batch.outputs.len();
        batch.outputs.extend(outputs);
        self.len += batch.outputs.len() - before;
        self.filled |= bit_of(lane);
    }

    /// Puts a packet behind those of its lane.
    #[inline]
    pub fn push(&mut self, by: u32, output: Output) {
        self.extend(by, output.session, std::iter::once(output));
    }

    /// Has a core take all packets of a lane; they come behind those of `to`.
    #[inline]
    pub fn take(&mut self, by: u32, number: usize, to: &mut Vec<Output>) {
        if self.lanes.len() <= BITS {
            self.filled &= !bit_of(number);
        }
        let Some(lane) = self.lanes.get_mut(number) else { return };
        while let Some(Batch { by: owner, mut outputs }) = lane.pop_front() {
            self.len -= outputs.len();
            if owner == by && to.is_empty() {
                std::mem::swap(&mut outputs, to);
            } else {
                to.append(&mut outputs);
            }
            self.spare[place_of(owner)].push(outputs);
        }
    }

    /// Lanes that have packets, as [`bit_of`] names them.
    #[inline]
    pub fn filled(&self) -> u64 {
        if self.len == 0 { 0 } else { self.filled }
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }
}

/// Lanes that have a bit of their own.
const BITS: usize = u64::BITS as usize;

/// The bit of a lane in [`Outputs::filled`].
#[inline]
pub fn bit_of(lane: usize) -> u64 {
    1 << (lane % BITS)
}

/// Where the spare batches of a core are.
fn place_of(core: u32) -> usize {
    core as usize % CORES
}

#[cfg(test)]
mod tests {
    use forebay_crypto::Packet;
    use forebay_time::Time;

    use super::*;

    fn put(outputs: &mut Outputs, session: u32) {
        let (packet, at) = (Packet::default(), Time::ZERO);
        let session = Some(SessionId(session));
        outputs.push(0, Output { packet, tag: 0, session, result: Ok(()), admitted: at, released: at });
    }

    #[test]
    fn a_lane_that_has_packets_is_never_taken_for_an_empty_one() {
        for cores in [1, 2, CORES] {
            let mut outputs = Outputs::new(cores);
            let lanes = outputs.lanes() as u32;
            (0..lanes).for_each(|n| {
                let direction = if n < cores as u32 { Direction::Open } else { Direction::Seal };
                outputs.open(SessionId(n), direction, n);
            });
            assert_eq!(outputs.filled(), 0);
            (0..lanes).for_each(|n| put(&mut outputs, n));
            for lane in 0..lanes as usize {
                assert_ne!(outputs.filled() & bit_of(lane), 0, "lane {lane} of {lanes}");
                let mut taken = Vec::new();
                outputs.take(0, lane, &mut taken);
                assert_eq!(taken.len(), 1, "lane {lane} of {lanes}");
            }
            assert_eq!((outputs.filled(), outputs.len()), (0, 0));
        }
    }
}
