//! Which worker owns which SA.
//!
//! An inbound SA belongs to the worker to which the kernel steers packets with its SPI. An outbound SA belongs to the
//! same worker as the inbound one of the same tunnel: packets from the inbound SA reach programs through that
//! worker's queue of the TUN interface, and the kernel then delivers the programs' replies to the same queue, so that
//! no handoff is needed. An outbound SA without an inbound one is placed by its SPI, and nested SAs belong to the
//! worker of the outermost one, whose SPI the packets show.
//!
//! An SA that is bound to a CPU (RFC 9611) belongs to the worker with that number, which sends by it what it receives from
//! the inside. Inbound this spares the handoff where the SPI leads there too, or where a NIC steers the peer's packets to
//! that queue.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use forebay_crypto::Direction;
use forebay_ipsec::Spi;
use forebay_links::udp::steer;

use forebay_sas::{SaEntry, SasFile};

/// The index of a worker among all workers of a gateway, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerIndex {
    index: usize,
    workers: usize,
}

impl WorkerIndex {
    /// The only worker.
    pub const ONLY: WorkerIndex = WorkerIndex { index: 0, workers: 1 };

    /// Worker number `index` of `workers`.
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn new(index: usize, workers: usize) -> WorkerIndex {
        assert!(index < workers, "worker {index} of {workers}");
        WorkerIndex { index, workers }
    }

    /// The worker, of `workers`, that the kernel steers packets with this SPI to.
    pub fn by_spi(spi: Spi, workers: usize) -> WorkerIndex {
        WorkerIndex::new(steer(spi.get(), workers), workers)
    }

    /// The worker, of `workers`, that serves a CPU to which SAs are bound; `None` if none does.
    pub fn by_cpu(cpu: u32, workers: usize) -> Option<WorkerIndex> {
        let index = usize::try_from(cpu).ok().filter(|&index| index < workers)?;
        Some(WorkerIndex::new(index, workers))
    }

    /// The number by which lists of workers are indexed.
    pub fn get(self) -> usize {
        self.index
    }

    /// The number of the worker that owns an SA, if this worker does not own it: an SA that is remote here
    /// ([`Ipsec::add_remote`](forebay_ipsec::Ipsec::add_remote)).
    pub fn remote(self, owner: WorkerIndex) -> Option<u16> {
        // There are 256 at most.
        (owner.index != self.index).then_some(owner.index as u16)
    }

    /// The number of the worker that the kernel steers packets with this SPI to, if that is another.
    pub fn remote_by_spi(self, spi: Spi) -> Option<u16> {
        self.remote(WorkerIndex::by_spi(spi, self.workers))
    }
}

/// The worker that owns each SA of a file, among `workers`. An SA that continues stays where it is, as `stays` says
/// by its index in the file.
pub fn owners(
    file: &SasFile,
    workers: usize,
    stays: impl Fn(usize) -> Option<WorkerIndex>,
) -> Vec<WorkerIndex> {
    let tunnel = |entry: &SaEntry| {
        let config = &entry.config;
        format!("{} {} {:?} {:?}", config.local, config.remote, config.local_ts, config.remote_ts)
    };
    let bound = |entry: &SaEntry| entry.config.cpu.and_then(|cpu| WorkerIndex::by_cpu(cpu, workers));
    let own = |index: usize, entry: &SaEntry| {
        stays(index)
            .or_else(|| bound(entry))
            .unwrap_or_else(|| WorkerIndex::by_spi(entry.config.spi, workers))
    };
    let all = || file.entries.iter().enumerate();
    let inbound = all().filter(|(_, entry)| entry.direction == Direction::Open && workers > 1);
    let mut inbound: Vec<(usize, &SaEntry)> = inbound.collect();
    // The fallback SA is beside an inbound one that is bound to no CPU, if there is one.
    inbound.sort_by_key(|(_, entry)| entry.config.cpu.is_none());
    let inbound: HashMap<String, WorkerIndex> =
        inbound.into_iter().map(|(index, entry)| (tunnel(entry), own(index, entry))).collect();
    let by_itself = |(index, entry): (usize, &SaEntry)| {
        let companion = match entry.direction {
            Direction::Seal if workers > 1 && stays(index).is_none() && bound(entry).is_none() => {
                inbound.get(&tunnel(entry)).copied()
            }
            _ => None,
        };
        companion.unwrap_or_else(|| own(index, entry))
    };
    let by_itself: Vec<WorkerIndex> = all().map(by_itself).collect();
    let outermost = |index: usize| {
        // The reader lets no circles pass; if one did, this would end all the same.
        let outer = |index: &usize| file.entries.get(*index)?.outer;
        std::iter::successors(Some(index), outer).take(file.entries.len()).last().unwrap_or(index)
    };
    (0..file.entries.len()).map(|index| by_itself[outermost(index)]).collect()
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
    pub fn set(&self, worker: WorkerIndex, mtu: Option<u16>) {
        if let Some(of) = self.0.get(worker.index) {
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

    fn numbers(file: &SasFile, workers: usize, stays: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
        let stays = |index| stays(index).map(|worker| WorkerIndex::new(worker, workers));
        owners(file, workers, stays).into_iter().map(WorkerIndex::get).collect()
    }

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
    fn every_sa_has_one_owner_and_nests_stay_together() {
        let file = file(&[
            ("a", "out", 0x1000, ""),
            ("b", "out", 0x1001, ""),
            ("c", "out", 0x1003, "outer = \"b\""),
            ("d", "out", 0x1004, "outer = \"c\""),
        ]);
        assert_eq!(numbers(&file, 1, |_| None), [0; 4]);
        // 0x1000 is 1 modulo 3.
        assert_eq!(numbers(&file, 3, |_| None), [1, 2, 2, 2]);
        // What stays takes along what is new inside of it.
        assert_eq!(numbers(&file, 3, |index| (index == 1).then_some(0)), [1, 0, 0, 0]);
        let [first, last] = [0, 2].map(|index| WorkerIndex::new(index, 3));
        assert_eq!((first.remote(first), first.remote(last)), (None, Some(2)));
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
        assert_eq!(numbers(&file, 2, |_| None), [1, 0, 0, 1, 0]);
        // The inbound one is another now, as after a reload: the outbound one cannot leave its sequence numbers.
        assert_eq!(numbers(&file, 2, |index| (index == 0).then_some(0)), [0, 0, 0, 1, 0]);
    }

    #[test]
    fn an_sa_of_a_cpu_is_that_workers_and_the_fallback_sa_is_beside_the_inbound_one_of_all() {
        let file = file(&[
            ("fallback", "out", 0x1000, ""),
            ("out-0", "out", 0x1001, "cpu = 0"),
            ("out-1", "out", 0x1002, "cpu = 1"),
            ("out-9", "out", 0x1003, "cpu = 9"),
            ("in", "in", 0x2001, ""),
            ("in-0", "in", 0x2003, "cpu = 0"),
            ("in-2", "in", 0x2002, "cpu = 2"),
        ]);
        // One that no worker sends by is beside the inbound one too.
        assert_eq!(numbers(&file, 4, |_| None), [1, 0, 1, 1, 1, 0, 2]);
        assert_eq!(numbers(&file, 1, |_| None), [0; 7]);
        assert_eq!(WorkerIndex::by_cpu(3, 4), Some(WorkerIndex::new(3, 4)));
        assert_eq!(WorkerIndex::by_cpu(4, 4), None);
    }

    #[test]
    fn the_narrowest_path_of_all_counts() {
        let paths = Paths::new(2);
        assert_eq!(paths.narrowest(), None);
        paths.set(WorkerIndex::new(1, 2), Some(1_300));
        paths.set(WorkerIndex::new(0, 2), Some(1_400));
        assert_eq!(paths.narrowest(), Some(1_300));
        paths.set(WorkerIndex::new(1, 2), None);
        assert_eq!(paths.narrowest(), Some(1_400));
    }
}
