//! A limit on connections at a time, by source.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_links_sys::option;
use rustix::net::{Shutdown, shutdown};

/// Most sources that are expected.
const EXPECTED: usize = 16;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An address; of IPv6 the network of 64 bits, all of whose addresses one host can have.
    Address(IpAddr),
    /// A user of this host.
    User(u32),
}

impl Source {
    /// The user at the other end of a Unix socket.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn of_user(stream: &UnixStream) -> io::Result<Source> {
        // Not by rustix: its `UCred` has no room for a peer without a process number.
        Ok(Source::User(option::peer(stream.as_fd())?.uid))
    }
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Source {
        const HOST: u128 = u64::MAX as u128;
        match address.to_canonical() {
            IpAddr::V6(v6) => Source::Address(IpAddr::V6((u128::from(v6) & !HOST).into())),
            v4 => Source::Address(v4),
        }
    }
}

/// Places for connections. Copies have the same ones.
#[derive(Clone, Debug)]
pub struct Places(Arc<Mutex<Taken>>);

#[derive(Debug)]
struct Taken {
    most: usize,
    expected: Vec<Source>,
    /// In the order in which they came.
    connections: Vec<Connection>,
    next: u64,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    source: Source,
    /// To close it for its thread.
    stream: OwnedFd,
    is_busy: bool,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Places,
    number: u64,
}

impl Places {
    /// `most` places at a time; connections of `expected` sources do not give way to others, and have one beyond
    /// that.
    pub fn new(most: usize, expected: impl IntoIterator<Item = Source>) -> Places {
        let expected = expected.into_iter().collect();
        Places(Arc::new(Mutex::new(Taken { most, expected, connections: vec![], next: 0 })))
    }

    /// A source is expected from now on.
    pub fn expect(&self, source: Source) {
        let mut taken = self.lock();
        if !taken.expected.contains(&source) && taken.expected.len() < EXPECTED {
            taken.expected.push(source);
        }
    }

    /// A place for a connection. Where all are taken the oldest connection of the source that has the most is closed;
    /// `None` if none gives way.
    ///
    /// # Errors
    /// Without descriptors.
    pub fn take(&self, source: Source, stream: &impl AsFd) -> io::Result<Option<Place>> {
        let stream = stream.as_fd().try_clone_to_owned()?;
        let mut taken = self.lock();
        if taken.connections.len() >= taken.most && !taken.make_room(source) {
            return Ok(None);
        }
        let number = taken.next;
        taken.next += 1;
        taken.connections.push(Connection { number, source, stream, is_busy: false });
        Ok(Some(Place { places: self.clone(), number }))
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Closes a connection for one from `source`; whether that one may come.
    fn make_room(&mut self, source: Source) -> bool {
        let is_expected = |source: &Source| self.expected.contains(source);
        let of = |source: Source| self.connections.iter().filter(|one| one.source == source).count();
        let gives_way =
            |one: &&Connection| !one.is_busy && (!is_expected(&one.source) || one.source == source);
        // The first of equals is the oldest, and an unknown host before the expected source.
        let rank = |one: &&Connection| (!is_expected(&one.source), of(one.source));
        let closed = self.connections.iter().filter(gives_way).rev().max_by_key(rank).map(|one| one.number);
        match closed {
            Some(number) => {
                let at = self.connections.iter().position(|one| one.number == number);
                at.into_iter().for_each(|at| {
                    // Its thread sees the end.
                    let _ = shutdown(&self.connections.remove(at).stream, Shutdown::Both);
                });
                true
            }
            None => is_expected(&source) && of(source) == 0,
        }
    }
}

impl Place {
    /// Does something for the connection, which does not give way meanwhile.
    pub fn busy<T>(&self, work: impl FnOnce() -> T) -> T {
        self.set_busy(true);
        let done = work();
        self.set_busy(false);
        done
    }

    /// The connection has shown that it is expected, and needs no place any more: its source is expected from now on.
    pub fn settle(self) {
        let source =
            self.places.lock().connections.iter().find(|one| one.number == self.number).map(|one| one.source);
        source.into_iter().for_each(|source| self.places.expect(source));
    }

    fn set_busy(&self, is_busy: bool) {
        let mut taken = self.places.lock();
        let own = taken.connections.iter_mut().find(|one| one.number == self.number);
        own.into_iter().for_each(|one| one.is_busy = is_busy);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().connections.retain(|one| one.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn address(text: &str) -> Source {
        text.parse::<IpAddr>().unwrap().into()
    }

    /// A place, and the end of its connection that sees whether it was closed.
    fn take(places: &Places, source: &str) -> Option<(Place, UnixStream)> {
        let (near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        places.take(address(source), &near).unwrap().map(|place| (place, far))
    }

    fn is_closed(of: &(Place, UnixStream)) -> bool {
        matches!((&of.1).read(&mut [0]), Ok(0))
    }

    #[test]
    fn silent_connections_keep_nobody_out() {
        let places = Places::new(4, [address("10.9.0.2")]);
        let silent: Vec<_> = (0..4).map(|_| take(&places, "192.0.2.1").unwrap()).collect();
        let one = take(&places, "192.0.2.2").unwrap();
        let peer = take(&places, "10.9.0.2").unwrap();
        assert_eq!(silent.iter().map(is_closed).collect::<Vec<_>>(), [true, true, false, false]);
        // Of many sources the oldest; never that which is expected.
        let many: Vec<_> = (0..100).map(|n| take(&places, &format!("198.51.100.{n}")).unwrap()).collect();
        assert!(is_closed(&one) && silent.iter().all(is_closed) && !is_closed(&peer));
        assert_eq!(many.iter().filter(|one| !is_closed(one)).count(), 3);
    }

    #[test]
    fn who_is_expected_comes_in_always() {
        let places = Places::new(2, [address("10.9.0.2")]);
        let both: Vec<_> = (0..2).map(|_| take(&places, "192.0.2.1").unwrap()).collect();
        both.iter().for_each(|(place, _)| place.set_busy(true));
        assert!(take(&places, "192.0.2.2").is_none(), "all are busy");
        let peer = take(&places, "10.9.0.2").unwrap();
        // Its own old connection gives way to its new one.
        let again = take(&places, "10.9.0.2").unwrap();
        assert!(is_closed(&peer) && !is_closed(&again) && !both.iter().any(is_closed));
        drop(both);
        assert!(take(&places, "192.0.2.2").is_some());
        assert!(!is_closed(&again));
    }

    #[test]
    fn who_has_been_let_in_is_expected_the_next_time() {
        let places = Places::new(2, []);
        let (place, peer) = take(&places, "10.9.0.2").unwrap();
        place.settle();
        let again = take(&places, "10.9.0.2").unwrap();
        let many: Vec<_> = (0..10).map(|n| take(&places, &format!("198.51.100.{n}")).unwrap()).collect();
        assert!(!is_closed(&again) && many[..9].iter().all(is_closed) && !is_closed(&many[9]));
        drop(peer);
    }

    #[test]
    fn what_is_answered_is_not_closed() {
        let places = Places::new(1, []);
        let first = take(&places, "2001:db8::1").unwrap();
        first.0.busy(|| assert!(take(&places, "2001:db8:1::1").is_none()));
        assert!(!is_closed(&first));
        assert!(take(&places, "2001:db8:1::1").is_some() && is_closed(&first));
    }

    #[test]
    fn addresses_of_one_host_are_one_source() {
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:1"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        let (near, _far) = UnixStream::pair().unwrap();
        assert_eq!(Source::of_user(&near).unwrap(), Source::User(rustix::process::geteuid().as_raw()));
    }
}
