//! How a worker waits: on this machine by poll(2).

use std::io;
use std::os::fd::BorrowedFd;

use forebay_engine::Idle;
use forebay_time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How a worker waits while it has nothing to do.
pub trait Wait: Send {
    /// Waits until one of the descriptors is ready for what is asked of it, `limit` at most. Returns what each is ready
    /// for.
    ///
    /// # Errors
    /// What poll(2) says; interruptions are none.
    fn poll(&mut self, asked: &[(BorrowedFd<'_>, PollFlags)], limit: Duration) -> io::Result<Vec<PollFlags>>;

    /// Rests a little if many rounds in a row moved nothing while other processors had packets; `moved` says whether
    /// the last one moved anything.
    fn rest(&mut self, moved: bool);

    /// For how long this thread has had a CPU so far, or has waited for one that others had; `None` where that is not known.
    fn busy(&mut self) -> Option<Duration> {
        None
    }
}

/// Waits by poll(2).
#[derive(Debug, Default)]
pub struct Poll {
    idle: Idle,
}

impl Wait for Poll {
    fn poll(&mut self, asked: &[(BorrowedFd<'_>, PollFlags)], limit: Duration) -> io::Result<Vec<PollFlags>> {
        let nanoseconds = limit.as_nanos();
        let timeout = Timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as i64,
            tv_nsec: (nanoseconds % 1_000_000_000) as i64,
        };
        let mut fds: Vec<PollFd<'_>> =
            asked.iter().map(|&(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(fds.iter().map(PollFd::revents).collect()),
            Err(error) => Err(error.into()),
        }
    }

    fn rest(&mut self, moved: bool) {
        self.idle.after(moved);
    }
}
