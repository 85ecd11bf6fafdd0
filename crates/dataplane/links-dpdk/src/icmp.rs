//! ICMP errors about packets that were too big for their path, which come on a port and not by the kernel.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_links::{Link, RxDrops, TxReport};
#[cfg(dpdk)]
use rustix::event::{EventfdFlags, eventfd};

/// Messages that wait; more of them are not worth waiting for.
#[cfg(dpdk)]
const WAITING: usize = 64;

/// Where the queues of a port put such messages.
#[derive(Clone)]
pub(crate) struct Messages(Arc<Shared>);

struct Shared {
    waiting: Mutex<VecDeque<Vec<u8>>>,
    bell: OwnedFd,
}

#[cfg(dpdk)]
impl Messages {
    pub(crate) fn new() -> io::Result<Messages> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Messages(Arc::new(Shared { waiting: Mutex::default(), bell })))
    }

    /// Puts a message behind the others; whether there was room.
    pub(crate) fn put(&self, message: &[u8]) -> bool {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= WAITING {
            return false;
        }
        waiting.push_back(message.to_vec());
        // A counter that is full has been rung already.
        let _ = rustix::io::write(&self.0.bell, &1_u64.to_ne_bytes());
        true
    }
}

/// The messages as a link, which sends nothing.
pub struct IcmpLink(pub(crate) Messages);

impl Link for IcmpLink {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let Messages(shared) = &self.0;
        let mut waiting = shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = room.min(waiting.len());
        let messages: Vec<_> = waiting.drain(..count).collect();
        if waiting.is_empty() {
            let _ = rustix::io::read(&shared.bell, &mut [0; 8]);
        }
        drop(waiting);
        messages.iter().for_each(|message| take(message, &[]));
        Ok(count)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        TxReport { unfit: packets.len(), ..TxReport::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0.0.bell.as_fd()
    }

    fn pending(&self) -> bool {
        false
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops::default()
    }
}
