//! How many packets a core may take, where the cores that share SAs are unlike: the rule of predicted finishing time, at the moment
//! of taking.
//!
//! Among cores with the same library there is nothing to predict: whoever is free is done first, and what their packets took
//! differs by what their caches held and what else their CPUs did. A core whose library is slower takes only as many packets as
//! it is done with before a faster core would have come to them and been done. With `n` packets that came together last,
//! the times of a packet `own` and `other`, and the time `free` until the other core ends its burst, that is
//!
//! ```text
//! taken = (free + n * other) / own
//! ```
//!
//! So bursts of all cores take about the same time, and no core waits long for the tickets of a slower one. Nothing at all is taken
//! where a faster core is free and has less to do than one packet takes here.
//!
//! Where what a core does once a burst, and once for each SA of it, is a large part of the time, it takes twice as many packets at a
//! time. Where it is not, the caches hold fewer packets better, and others need not wait for what so long a burst completes.
//!
//! Each core writes its own numbers, once a burst; the others read them without a lock, and a number that is a moment old makes a
//! prediction a little worse and nothing else.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use forebay_time::{Duration, Time};

use crate::TAKE;

/// Most cores that are compared; further ones count as like the first.
const CORES_MAX: usize = 64;
/// A core with another library is slower than that one if a packet takes it this much longer: within it they are alike.
const ALIKE: (u64, u64) = (3, 2);
/// Times are known by the size of the burst, in powers of two up to this one: some libraries do the packets of a burst side by side.
const SIZES: usize = 7;
/// Weight of the newest burst in the time of a packet: one in so many.
const SMOOTH: u64 = 8;
/// About what a core does once for a burst of half of [`TAKE`], and once for each run of packets of an SA in it.
const OF_BURST: Duration = Duration::from_nanos(1_000);
const OF_RUN: Duration = Duration::from_nanos(50);
/// A core takes [`TAKE`] packets at a time where that is more than one part in so many of the time of their cryptography.
const LARGE_PART: u64 = 6;
/// A core that has not taken a whole burst for this time takes one, or a packet if it takes nothing, so that its own time of a
/// packet stays known: a small burst tells nothing of a large one.
const TRIED_EVERY: Duration = Duration::from_millis(100);
/// A core that found no faster one looks again after this time: the numbers of the others change with every burst, and each look
/// fetches them from their caches.
const ALIKE_FOR: Duration = Duration::from_millis(1);
/// Others take what comes to a core that is at its burst for longer: about twice what it takes to wake one of them.
const LONG: Duration = Duration::from_micros(50);
/// A core that has done nothing for so long sleeps, and has to be woken first.
const SLEEPS_AFTER: Duration = Duration::from_micros(50);
/// How long that takes.
const WAKES_IN: Duration = Duration::from_micros(20);

/// What the others know of a core, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Core {
    /// Which library it has.
    library: AtomicU64,
    /// The time that a packet takes, by the size of its burst, smoothed, in picoseconds; zero before the first.
    packet: [AtomicU64; SIZES],
    /// When it will be, or was, done with its burst.
    free: AtomicU64,
}

impl Core {
    /// The time of a packet in a burst of so many.
    fn packet(&self, burst: usize) -> &AtomicU64 {
        let size = burst.max(1).ilog2() as usize;
        &self.packet[size.min(SIZES - 1)]
    }
}

/// The cores that share SAs.
#[derive(Debug)]
pub(crate) struct Cores {
    all: [Core; CORES_MAX],
    count: AtomicUsize,
    /// Packets that came together last.
    burst: AtomicUsize,
}

/// A core's place among them.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    cores: Arc<Cores>,
    own: usize,
    /// How many packets it takes at a time, if there are as many.
    at_once: usize,
    /// When it took something last, and all that there was.
    taken: Time,
    whole: Time,
    /// How many it was to take last, if fewer than it could.
    limited: Option<usize>,
    /// No other core was faster when this one last looked, and it need not look again before.
    alike_until: Time,
}

impl Pace {
    /// The first core, with its library.
    pub fn first(library: &str) -> Pace {
        let all = std::array::from_fn(|_| Core::default());
        let cores = Cores { all, count: AtomicUsize::new(0), burst: AtomicUsize::new(1) };
        Pace::of(Arc::new(cores), library)
    }

    /// A further core.
    pub fn beside(&self, library: &str) -> Pace {
        Pace::of(self.cores.clone(), library)
    }

    fn of(cores: Arc<Cores>, library: &str) -> Pace {
        let own = cores.count.fetch_add(1, Ordering::Relaxed);
        let mut hasher = DefaultHasher::new();
        library.hash(&mut hasher);
        if let Some(core) = cores.all.get(own) {
            core.library.store(hasher.finish(), Ordering::Relaxed);
        }
        let (at_once, limited) = (TAKE / 2, None);
        Pace { cores, own, at_once, taken: Time::ZERO, whole: Time::ZERO, limited, alike_until: Time::ZERO }
    }

    /// Whether there is no other core.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.cores.count.load(Ordering::Relaxed) == 1
    }

    /// How many packets it takes at a time, if there are as many.
    #[inline]
    pub fn at_once(&self) -> usize {
        self.at_once
    }

    /// The cryptography of a burst of so many packets, in so many runs, took so long.
    #[inline]
    pub fn learn(&mut self, packets: usize, runs: usize, took: Duration) {
        let once = OF_BURST.0 * packets as u64 / (TAKE as u64 / 2) + OF_RUN.0 * runs as u64;
        self.at_once = if LARGE_PART * once > took.0 { TAKE } else { TAKE / 2 };
    }

    /// Begins a burst of so many packets.
    #[inline]
    pub fn begins(&mut self, now: Time, packets: usize) {
        self.taken = now;
        // There were more if it took all that it was to take.
        let is_all = self.limited.is_none_or(|limit| packets < limit);
        if is_all {
            self.whole = now;
        }
        // Under load it is always the same, and the cache line stays with everyone.
        if is_all && self.cores.burst.load(Ordering::Relaxed) != packets {
            self.cores.burst.store(packets, Ordering::Relaxed);
        }
        let Some(own) = self.cores.all.get(self.own) else { return };
        let takes = own.packet(packets).load(Ordering::Relaxed).saturating_mul(packets as u64);
        own.free.store(now.0.saturating_add(takes), Ordering::Relaxed);
    }

    /// The burst is done.
    #[inline]
    pub fn ends(&self, now: Time, packets: usize, took: Duration) {
        let Some(own) = self.cores.all.get(self.own) else { return };
        let packet = took.0 / packets.max(1) as u64;
        let known = own.packet(packets).load(Ordering::Relaxed);
        let smooth = if known == 0 { packet } else { known - known / SMOOTH + packet / SMOOTH };
        own.packet(packets).store(smooth, Ordering::Relaxed);
        own.free.store(now.0, Ordering::Relaxed);
    }

    /// Whether this core will be at a burst of so many packets for [`LONG`] when another one has been woken.
    #[inline]
    pub fn takes_long(&self, packets: usize) -> bool {
        let Some(own) = self.cores.all.get(self.own) else { return false };
        own.packet(packets).load(Ordering::Relaxed).saturating_mul(packets as u64) >= LONG.0 + WAKES_IN.0
    }

    /// Whether another core is predicted to be at its burst for [`LONG`] from now on.
    pub fn is_busy(&self, core: usize, now: Time) -> bool {
        let free = |core: &Core| core.free.load(Ordering::Relaxed);
        core != self.own
            && self.cores.all.get(core).is_some_and(|core| free(core) >= now.0.saturating_add(LONG.0))
    }

    /// How many of `most` packets this core may take now.
    #[inline]
    pub fn limit(&mut self, now: Time, most: usize) -> usize {
        self.limited = None;
        if now < self.alike_until { most } else { self.limit_beside_others(now, most) }
    }

    fn limit_beside_others(&mut self, now: Time, most: usize) -> usize {
        let count = self.cores.count.load(Ordering::Relaxed);
        let burst = self.cores.burst.load(Ordering::Relaxed);
        let Some(this) = self.cores.all.get(self.own) else { return most };
        let (own, library) =
            (this.packet(burst).load(Ordering::Relaxed), this.library.load(Ordering::Relaxed));
        if own == 0 {
            return most;
        }
        let others = self.cores.all.iter().take(count);
        let others = others.filter(|other| other.library.load(Ordering::Relaxed) != library);
        let limit = |other: &Core| {
            let packet = other.packet(burst).load(Ordering::Relaxed);
            if packet == 0 || own.saturating_mul(ALIKE.1) <= packet.saturating_mul(ALIKE.0) {
                return None;
            }
            let free = other.free.load(Ordering::Relaxed);
            let waits = match now.0.checked_sub(free) {
                Some(idle) if idle > SLEEPS_AFTER.0 => WAKES_IN.0,
                Some(_) => 0,
                None => free - now.0,
            };
            Some((waits + (burst as u64).saturating_mul(packet)) / own)
        };
        let Some(limit) = others.filter_map(limit).min() else {
            self.alike_until = now + ALIKE_FOR;
            return most;
        };
        if limit > 0 && now.since(self.whole) >= TRIED_EVERY {
            return most;
        }
        let is_tried = limit == 0 && now.since(self.taken) >= TRIED_EVERY;
        let limit = limit.max(u64::from(is_tried)) as usize;
        self.limited = Some(limit).filter(|limit| *limit < most);
        most.min(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURST: usize = 64;

    /// Two cores of which a packet takes the first 100 ns and the second `slower` times as long, both free.
    fn cores(slower: u64) -> (Pace, Pace) {
        let mut first = Pace::first("fast");
        let mut second = first.beside("slow");
        for (pace, packet) in [(&mut first, 100), (&mut second, 100 * slower)] {
            for burst in [1, BURST].into_iter().cycle().take(100) {
                pace.begins(Time::ZERO, burst);
                pace.ends(Time::ZERO, burst, Duration::from_nanos(packet * burst as u64));
            }
        }
        (first, second)
    }

    /// What is done once counts for more where packets take little time, and where they are of many SAs.
    #[test]
    fn a_core_takes_more_at_a_time_where_that_spares_much() {
        let mut pace = Pace::first("any");
        for (packet, runs, expected) in
            [(20, 1, TAKE), (100, 1, TAKE / 2), (100, 40, TAKE), (1_000, 64, TAKE / 2)]
        {
            for packets in [TAKE / 2, TAKE] {
                let took = Duration::from_nanos(packet).times(packets as u64);
                pace.learn(packets, runs * packets / 64, took);
                assert_eq!(pace.at_once(), expected, "{packets} packets of {packet} ns, {runs} runs in 64");
            }
        }
    }

    #[test]
    fn cores_that_are_alike_take_what_there_is() {
        let (mut first, mut second) = cores(1);
        let now = Time::ZERO + Duration::from_micros(1);
        assert_eq!([first.limit(now, BURST), second.limit(now, BURST)], [BURST; 2]);
        assert!(!first.is_alone() && Pace::first("fast").is_alone());
    }

    #[test]
    fn cores_with_one_library_are_alike_whatever_their_packets_took() {
        let (first, _) = cores(4);
        let mut third = first.beside("fast");
        for _ in 0..100 {
            third.begins(Time::ZERO, BURST);
            third.ends(Time::ZERO, BURST, Duration::from_nanos(400 * BURST as u64));
        }
        assert_eq!(third.limit(Time::ZERO, BURST), BURST);
    }

    #[test]
    fn a_core_that_is_at_a_long_burst_is_busy_to_the_others_until_shortly_before_its_end() {
        let (mut first, second) = cores(1);
        assert!(!first.takes_long(BURST), "6.4 us");
        for _ in 0..100 {
            first.ends(Time::ZERO, BURST, Duration::from_micros(200));
        }
        let begun = Time(1_000_000_000);
        first.begins(begun, BURST);
        assert!(first.takes_long(BURST) && second.is_busy(0, begun) && !first.is_busy(0, begun));
        assert!(!second.is_busy(0, begun + Duration::from_micros(160)) && !second.is_busy(1, begun));
        first.ends(begun, BURST, Duration::from_micros(200));
        assert!(!second.is_busy(0, begun), "it is done");
    }

    #[test]
    fn a_core_that_was_thought_slow_is_measured_again() {
        let (mut first, mut second) = cores(4);
        assert_eq!(second.limit(Time::ZERO, BURST), BURST / 4);
        let later = Time::ZERO + TRIED_EVERY;
        first.begins(later, BURST);
        first.ends(later, BURST, Duration::from_nanos(100 * BURST as u64));
        assert_eq!(second.limit(later, BURST), BURST);
        second.begins(later, BURST);
        assert_eq!(second.limit(later, BURST), BURST / 4);
    }

    #[test]
    fn a_slower_core_takes_what_it_is_done_with_as_soon() {
        let (mut first, mut second) = cores(4);
        assert_eq!(first.limit(Time::ZERO, BURST), BURST, "nobody is faster");
        assert_eq!(second.limit(Time::ZERO, BURST), BURST / 4, "a burst that takes as long as the other's");
        // The other one has just begun a burst of 6.4 us.
        first.begins(Time::ZERO, BURST);
        assert_eq!(second.limit(Time::ZERO, BURST), BURST / 2);
        let half = Time::ZERO + Duration::from_nanos(3_200);
        assert_eq!(second.limit(half, BURST), BURST / 4 + BURST / 8);
    }

    #[test]
    fn a_core_that_found_nobody_faster_looks_again_after_a_while() {
        let (first, mut second) = cores(1);
        assert_eq!(second.limit(Time::ZERO, BURST), BURST);
        // The other one has become much faster, and has just done a burst.
        let later = Time::ZERO + ALIKE_FOR;
        (0..100).for_each(|_| first.ends(later, BURST, Duration::from_nanos(10 * BURST as u64)));
        assert_eq!(second.limit(Time(later.0 - 1), BURST), BURST);
        assert!(second.limit(later, BURST) < BURST);
    }

    #[test]
    fn a_slower_core_leaves_a_packet_to_a_faster_one_that_is_free_and_not_to_one_that_sleeps() {
        let (mut first, mut second) = cores(4);
        first.begins(Time::ZERO, 1);
        first.ends(Time::ZERO, 1, Duration::from_nanos(100));
        assert_eq!(second.limit(Time::ZERO, BURST), 0);
        let later = Time::ZERO + SLEEPS_AFTER + Duration::from_nanos(1);
        assert_eq!(second.limit(later, BURST), 50, "20 us of 400 ns each, until the other one is awake");
        // It tries one now and then.
        second.taken = Time::ZERO;
        let later = Time::ZERO + TRIED_EVERY;
        first.begins(later, 1);
        first.ends(later, 1, Duration::from_nanos(100));
        assert_eq!(second.limit(later, BURST), 1);
    }
}
