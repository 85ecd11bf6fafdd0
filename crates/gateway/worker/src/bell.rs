//! How a worker that sleeps in poll(2) is woken: by an eventfd(2), and only if it sleeps.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use forebay_engine::{Doorbell, Wake};
use rustix::event::{EventfdFlags, eventfd};

/// How a worker that sleeps in poll(2) is woken.
#[derive(Debug)]
pub struct Bell {
    doorbell: Doorbell<Descriptor>,
}

/// An eventfd(2), which remembers a wake-up until it is read.
#[derive(Debug)]
struct Descriptor(OwnedFd);

impl Wake for Descriptor {
    fn wake(&self) {
        // A counter that is full has been rung already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl Bell {
    /// A bell that has not been rung.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn new() -> io::Result<Bell> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Bell { doorbell: Doorbell::new(Descriptor(fd)) })
    }

    /// Wakes the worker if it sleeps or is about to, for any reason.
    pub fn ring(&self) {
        self.doorbell.wake();
    }

    /// Forgets that it was rung.
    pub fn silence(&self) {
        let _ = rustix::io::read(&self.doorbell.waker().0, &mut [0; 8]);
    }

    /// Wakes the worker if it sleeps for want of work.
    pub fn ring_for_work(&self) {
        self.doorbell.ring();
    }

    /// Says that the worker is about to sleep, unless `has_work`; whether it may.
    pub fn falls_asleep(&self, has_work: impl Fn() -> bool) -> bool {
        self.doorbell.falls_asleep(has_work)
    }

    /// Says that it is awake.
    pub fn wakes(&self) {
        self.doorbell.wakes();
    }

    /// Whether it sleeps, or is about to.
    pub fn is_asleep(&self) -> bool {
        self.doorbell.is_asleep()
    }

    /// The descriptor for poll(2).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.doorbell.waker().0.as_fd()
    }
}
