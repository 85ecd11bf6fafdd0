//! Which worker owns which SA; the owning worker is the SA's *home*.
//!
//! An inbound SA belongs to the worker to which the kernel steers packets with its SPI. An outbound SA belongs to the
//! same worker as the inbound one of the same tunnel: packets from the inbound SA reach programs through that
//! worker's queue of the TUN interface, and the kernel then delivers the programs' replies to the same queue, so that
//! no handoff is needed. An outbound SA without an inbound one is placed by its SPI, and nested SAs belong to the
//! worker of the outermost one, whose SPI the packets show.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use forebay_crypto::Direction;
use forebay_ipsec::Spi;
use forebay_links::udp::steer;

use forebay_sas::{SaEntry, SasFile};

/// One worker's place among so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    place: usize,
    workers: usize,
}

impl Share {
    /// The share of the only worker.
    pub const ALL: Share = Share { place: 0, workers: 1 };

    /// The share of worker number `place`, from 0, of `workers`.
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn of(place: usize, workers: usize) -> Share {
        assert!(place < workers, "worker {place} of {workers}");
        Share { place, workers }
    }

    /// The worker's number.
    pub fn place(self) -> usize {
        self.place
    }

    /// The worker at `home`, if that is another.
    pub fn away(self, home: usize) -> Option<u16> {
        // There are 256 at most.
        (home != self.place).then_some(home as u16)
    }

    /// The worker that the kernel steers packets with this SPI to, if that is another.
    pub fn away_by_spi(self, spi: Spi) -> Option<u16> {
        self.away(by_spi(spi, self.workers))
    }
}

/// The worker, of so many, that the kernel steers packets with this SPI to.
pub fn by_spi(spi: Spi, workers: usize) -> usize {
    steer(spi.get(), workers)
}

/// The owning worker of each SA of a file, among `workers`. An SA that continues stays where it is, as `stays` says
/// by its index in the file.
pub fn homes(file: &SasFile, workers: usize, stays: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
    let tunnel = |entry: &SaEntry| {
        let config = &entry.config;
        format!("{} {} {:?} {:?}", config.local, config.remote, config.local_ts, config.remote_ts)
    };
    let own =
        |place: usize, entry: &SaEntry| stays(place).unwrap_or_else(|| by_spi(entry.config.spi, workers));
    let all = || file.entries.iter().enumerate();
    let inbound = all().filter(|(_, entry)| entry.direction == Direction::Open && workers > 1);
    let inbound: HashMap<String, usize> =
        inbound.map(|(place, entry)| (tunnel(entry), own(place, entry))).collect();
    let by_itself = |(place, entry): (usize, &SaEntry)| {
        let companion = match entry.direction {
            Direction::Seal if workers > 1 && stays(place).is_none() => inbound.get(&tunnel(entry)).copied(),
            _ => None,
        };
        companion.unwrap_or_else(|| own(place, entry))
    };
    let by_itself: Vec<usize> = all().map(by_itself).collect();
    let outermost = |place: usize| {
        // The reader lets no circles pass; if one did, this would end all the same.
        let outer = |place: &usize| file.entries.get(*place)?.outer;
        std::iter::successors(Some(place), outer).take(file.entries.len()).last().unwrap_or(place)
    };
    (0..file.entries.len()).map(|place| by_itself[outermost(place)]).collect()
}

/// The narrowest path of each worker's SAs, for segments of TCP: they are clamped before it is known whose SA it is.
#[derive(Debug)]
pub struct Paths(Vec<AtomicU32>);

impl Paths {
    /// Of so many workers that have said nothing yet.
    pub fn new(workers: usize) -> Paths {
        Paths((0..workers).map(|_| AtomicU32::new(u32::MAX)).collect())
    }

    /// Says what a worker's narrowest path lets through, in bytes; `None` if it has none.
    pub fn set(&self, place: usize, mtu: Option<u16>) {
        if let Some(of) = self.0.get(place) {
            of.store(mtu.map_or(u32::MAX, u32::from), Ordering::Relaxed);
        }
    }

    /// The narrowest of all.
    pub fn narrowest(&self) -> Option<u16> {
        self.0.iter().map(|mtu| mtu.load(Ordering::Relaxed)).min().and_then(|mtu| u16::try_from(mtu).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(sas: &[(&str, &str, u32, &str)]) -> SasFile {
        let entry = |(name, direction, spi, more): &(&str, &str, u32, &str)| {
            format!(
                "[[sa]]\nname = \"{name}\"\ndirection = \"{direction}\"\nspi = {spi}\nproposal = \"aes128gcm16\"\n\
                 key = \"{}\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n{more}\n",
                format!("{spi:08x}").repeat(5)
            )
        };
        forebay_sas::parse(&sas.iter().map(entry).collect::<String>(), "test").unwrap()
    }

    #[test]
    fn every_sa_has_one_home_and_nests_stay_together() {
        let file = file(&[
            ("a", "out", 0x1000, ""),
            ("b", "out", 0x1001, ""),
            ("c", "out", 0x1003, "outer = \"b\""),
            ("d", "out", 0x1004, "outer = \"c\""),
        ]);
        assert_eq!(homes(&file, 1, |_| None), [0; 4]);
        // 0x1000 is 1 modulo 3.
        assert_eq!(homes(&file, 3, |_| None), [1, 2, 2, 2]);
        // What stays takes along what is new inside of it.
        assert_eq!(homes(&file, 3, |place| (place == 1).then_some(0)), [1, 0, 0, 0]);
        assert_eq!((Share::of(0, 3).away(0), Share::of(0, 3).away(2)), (None, Some(2)));
    }

    #[test]
    fn both_directions_of_a_tunnel_are_together() {
        let (one, two) = ("remote_ts = [\"10.2.0.0/16\"]", "remote_ts = [\"10.3.0.0/16\"]");
        let file = file(&[
            ("a", "out", 0x1000, one),
            ("b", "out", 0x1001, two),
            ("c", "out", 0x1002, ""),
            ("d", "in", 0x2001, one),
            ("e", "in", 0x2002, two),
        ]);
        assert_eq!(homes(&file, 2, |_| None), [1, 0, 0, 1, 0]);
        // The inbound one is another now, as after a reload: the outbound one cannot leave its sequence numbers.
        assert_eq!(homes(&file, 2, |place| (place == 0).then_some(0)), [0, 0, 0, 1, 0]);
    }

    #[test]
    fn the_narrowest_path_of_all_counts() {
        let paths = Paths::new(2);
        assert_eq!(paths.narrowest(), None);
        paths.set(1, Some(1_300));
        paths.set(0, Some(1_400));
        assert_eq!(paths.narrowest(), Some(1_300));
        paths.set(1, None);
        assert_eq!(paths.narrowest(), Some(1_400));
    }
}
