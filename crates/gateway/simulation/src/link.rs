//! Links in memory: packets from the network, packets that the gateway sent, and the link's behaviour.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use forebay_links::{Link, RxDrops, TxReport};

use crate::disk::Disk;

/// Packets that wait to be taken, beyond which more are lost as in a kernel's queue.
const QUEUE: usize = 2_000;

/// A link's queues.
#[derive(Debug, Default)]
pub struct LinkState {
    /// What waits to be taken by the gateway, in a queue for each of its cores.
    pub inboxes: Vec<VecDeque<Vec<u8>>>,
    /// Was sent by the gateway, by whichever queue.
    pub sent: Vec<Vec<u8>>,
    /// Packets that it takes before it blocks.
    pub room: Option<usize>,
    /// The largest packet that it takes, in bytes.
    pub mtu: Option<u32>,
    /// It takes and gives nothing.
    pub down: bool,
}

/// A queue of a simulated link. Its copies are of the same one.
#[derive(Clone, Debug)]
pub struct SimLink {
    state: Arc<Mutex<LinkState>>,
    queue: usize,
    /// The host's, which says when the process has been killed.
    disk: Disk,
}

impl SimLink {
    /// The first queue of an empty link with so many, of the host with this disk.
    pub fn new(disk: Disk, queues: usize) -> SimLink {
        let inboxes = (0..queues).map(|_| VecDeque::new()).collect();
        SimLink { state: Arc::new(Mutex::new(LinkState { inboxes, ..LinkState::default() })), queue: 0, disk }
    }

    /// Another queue of the same link.
    pub fn queue(&self, queue: usize) -> SimLink {
        SimLink { queue, ..self.clone() }
    }

    /// Its state.
    pub fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a packet for the gateway, in the queue to which `steer`, a number of its flow, leads; whether there was
    /// room.
    pub fn give(&self, packet: Vec<u8>, steer: u32) -> bool {
        let mut state = self.lock();
        let queue = steer as usize % state.inboxes.len();
        let fits = state.inboxes[queue].len() < QUEUE && !state.down;
        if fits {
            state.inboxes[queue].push_back(packet);
        }
        fits
    }

    /// Whether it can be read, and whether it can be written.
    pub fn ready(&self) -> (bool, bool) {
        let state = self.lock();
        (!state.inboxes[self.queue].is_empty() && !state.down, state.room != Some(0))
    }
}

impl Link for SimLink {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        if self.lock().down {
            return Ok(0);
        }
        let mut count = 0;
        while count < room {
            let Some(packet) = self.lock().inboxes[self.queue].pop_front() else { break };
            let (head, body) = packet.split_at(packet.len().min(28));
            take(head, body);
            count += 1;
        }
        Ok(count)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let mut sent = TxReport::default();
        if self.disk.is_killed() {
            sent.down = packets.len();
            return sent;
        }
        let state = &mut *self.lock();
        for packet in packets {
            if sent.would_block > 0 || state.room == Some(0) {
                sent.would_block += 1;
            } else if state.down {
                sent.down += 1;
            } else if state.mtu.is_some_and(|mtu| packet.len() as u32 > mtu) {
                sent.too_big += 1;
                sent.mtu = state.mtu;
            } else {
                state.room = state.room.map(|room| room - 1);
                state.sent.push(packet.to_vec());
                sent.taken += 1;
            }
        }
        sent
    }

    fn fd(&self) -> BorrowedFd<'_> {
        // Never asked: the simulated wait looks at the links themselves.
        static FD: OnceLock<OwnedFd> = OnceLock::new();
        let flags = rustix::event::EventfdFlags::CLOEXEC;
        FD.get_or_init(|| rustix::event::eventfd(0, flags).expect("a descriptor for all links")).as_fd()
    }

    fn pending(&self) -> bool {
        false
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops::default()
    }
}
