//! How a worker on a thread of this machine waits, and how busy its CPU was meanwhile.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;

use forebay_time::Duration;
use forebay_worker::{Poll, Wait};
use rustix::event::PollFlags;

/// What the scheduler of Linux says of the thread that opens it: nanoseconds on a CPU, nanoseconds of waiting for one, and how
/// many times (Documentation/scheduler/sched-stats.rst).
const SCHEDSTAT: &str = "/proc/thread-self/schedstat";

/// Waits by poll(2).
#[derive(Debug, Default)]
pub(super) struct ThreadWait {
    poll: Poll,
    /// Opened by the thread itself at its first question.
    schedstat: Option<io::Result<File>>,
}

impl Wait for ThreadWait {
    fn poll(&mut self, asked: &[(BorrowedFd<'_>, PollFlags)], limit: Duration) -> io::Result<Vec<PollFlags>> {
        self.poll.poll(asked, limit)
    }

    fn rest(&mut self, moved: bool) {
        self.poll.rest(moved);
    }

    fn busy(&mut self) -> Option<Duration> {
        let opened = self.schedstat.get_or_insert_with(|| {
            File::open(SCHEDSTAT).inspect_err(|error| {
                tracing::warn!(
                    path = SCHEDSTAT, %error,
                    "cannot read the load of this thread's CPU: policy adaptive-alpha keeps alpha as configured; use a kernel with CONFIG_SCHED_INFO"
                );
            })
        });
        let mut text = [0; 80];
        let len = opened.as_ref().ok()?.read_at(&mut text, 0).ok()?;
        parse(text.get(..len)?)
    }
}

/// Time on a CPU and time of waiting for one, together. A thread that reads has run: a kernel that says zero does not count
/// (`sysctl kernel.sched_schedstats`, `schedstats=disable`, or a sandbox).
fn parse(text: &[u8]) -> Option<Duration> {
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (ran > 0).then(|| Duration::from_nanos(ran.saturating_add(waited)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_is_busy_and_one_that_sleeps_is_not() {
        let mut wait = ThreadWait::default();
        let Some(begin) = wait.busy() else { return };
        let clock = forebay_engine::Clock::start();
        while clock.now().0 < Duration::from_millis(40).0 {
            std::hint::spin_loop();
        }
        let worked = Duration(wait.busy().unwrap().0 - begin.0);
        assert!(worked >= Duration::from_millis(20), "{worked:?} of 40 ms");
        assert_eq!(parse(b"1000 500 3\n"), Some(Duration::from_nanos(1_500)));
        assert_eq!(parse(b"1000"), None);
        assert_eq!(parse(b"0 0 0\n"), None, "a kernel that does not count is not one without load");
    }
}
