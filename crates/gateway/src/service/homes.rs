//! Which worker has which SA.

use std::sync::atomic::{AtomicU32, Ordering};

use forebay_ipsec::Spi;
use forebay_links::udp::steer;

use crate::sas::SasFile;

/// One worker's share of the SAs. Each SA has its *home* at the worker that the kernel steers packets with its SPI to;
/// SAs inside of others are where the outermost is, whose SPI the packets show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    place: usize,
    workers: usize,
}

impl Share {
    /// All of them.
    pub const ALL: Share = Share { place: 0, workers: 1 };

    /// That of worker number `place`, from 0, of so many.
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

    /// The worker that has an SA that is in no other, if that is another worker.
    pub fn away(self, spi: Spi) -> Option<u16> {
        self.unless_here(home(spi, self.workers))
    }

    /// For each SA of a file the worker that has it, if that is another.
    pub fn away_of_file(self, file: &SasFile) -> impl Iterator<Item = Option<u16>> {
        homes(file, self.workers).into_iter().map(move |home| self.unless_here(home))
    }

    /// For each SA of a file whether the worker has it.
    pub fn own(self, file: &SasFile) -> Vec<bool> {
        self.away_of_file(file).map(|away| away.is_none()).collect()
    }

    fn unless_here(self, home: usize) -> Option<u16> {
        // There are 256 at most.
        (home != self.place).then_some(home as u16)
    }
}

/// The worker, of so many, that has an SA that is in no other.
pub fn home(spi: Spi, workers: usize) -> usize {
    steer(spi.get(), workers)
}

/// For each SA of a file the worker, of so many, that has it.
pub fn homes(file: &SasFile, workers: usize) -> Vec<usize> {
    let home = |place: usize| {
        // The reader lets no circles pass; if one did, this would end all the same.
        let outer = |place: &usize| file.entries.get(*place)?.outer;
        let outermost = std::iter::successors(Some(place), outer).take(file.entries.len()).last();
        outermost.and_then(|place| file.entries.get(place)).map_or(0, |entry| home(entry.config.spi, workers))
    };
    (0..file.entries.len()).map(home).collect()
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

    #[test]
    fn every_sa_has_one_home_and_nests_stay_together() {
        let entry = |name: &str, spi: u32, inside: Option<&str>| {
            let inside = inside.map_or_else(String::new, |outer| format!("outer = \"{outer}\"\n"));
            format!(
                "[[sa]]\nname = \"{name}\"\ndirection = \"out\"\nspi = {spi}\nproposal = \"aes128gcm16\"\n\
                 key = \"{}\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n{inside}",
                "07".repeat(20)
            )
        };
        let text = [
            entry("a", 0x1000, None),
            entry("b", 0x1001, None),
            entry("c", 0x1003, Some("b")),
            entry("d", 0x1004, Some("c")),
        ]
        .concat();
        let file = crate::sas::parse(&text, "test").unwrap();
        assert_eq!(Share::ALL.own(&file), [true; 4]);
        let shares: Vec<_> = (0..3).map(|place| Share::of(place, 3).own(&file)).collect();
        // 0x1000 is 1 modulo 3.
        assert_eq!(shares, [[false; 4], [true, false, false, false], [false, true, true, true]]);
        let away: Vec<_> = Share::of(0, 3).away_of_file(&file).collect();
        assert_eq!(away, [Some(1), Some(2), Some(2), Some(2)]);
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
