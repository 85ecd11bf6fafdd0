//! One deadline for all reads and writes of an exchange.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};

/// The least that a timeout of a socket can be: zero is none.
const SHORTEST: Duration = Duration::from_millis(1);

/// A socket all of whose reads and writes are done by a deadline, or fail with [`io::ErrorKind::TimedOut`] or
/// [`io::ErrorKind::WouldBlock`].
#[derive(Debug)]
pub struct Within<S> {
    stream: S,
    until: Instant,
}

impl<S: AsFd> Within<S> {
    /// One with the deadline so much time from now.
    pub fn new(stream: S, limit: Duration) -> Within<S> {
        Within { stream, until: now() + limit }
    }

    /// Another deadline, so much time from now.
    pub fn again(&mut self, limit: Duration) {
        self.until = now() + limit;
    }

    /// Has the next read or write of the socket end at the deadline.
    fn set(&self, which: Timeout) -> io::Result<()> {
        let left = self.until.saturating_duration_since(now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(set_socket_timeout(&self.stream, which, Some(left.max(SHORTEST)))?)
    }
}

impl<S: AsFd> AsFd for Within<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl<S: AsFd + Read> Read for Within<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.set(Timeout::Recv)?;
        self.stream.read(into)
    }
}

impl<S: AsFd + Write> Write for Within<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.set(Timeout::Send)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[allow(clippy::disallowed_methods)] // the timeouts of sockets have no other clock
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    #[test]
    fn bytes_that_drip_do_not_move_the_deadline() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let dripping = thread::spawn(move || {
            while far.write_all(&[0]).is_ok() {
                thread::park_timeout(Duration::from_millis(20));
            }
        });
        let began = now();
        let mut within = Within::new(near, Duration::from_millis(200));
        let error = within.read_exact(&mut [0; 1_000]).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error}");
        assert!(began.elapsed() >= Duration::from_millis(190) && began.elapsed() < Duration::from_secs(10));
        within.again(Duration::from_secs(20));
        within.read_exact(&mut [0; 3]).unwrap();
        drop(within);
        dripping.join().unwrap();
    }

    #[test]
    fn a_reader_that_takes_nothing_ends_a_write() {
        let (near, _far) = UnixStream::pair().unwrap();
        let mut within = Within::new(near, Duration::from_millis(100));
        assert!(within.write_all(&vec![0; 16 << 20]).is_err());
    }
}
