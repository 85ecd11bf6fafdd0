//! Cores that each go with their burst: a serial part, a parallel part, a serial part.
//!
//! An idle core takes up to `burst` of the packets that have arrived, as soon as the turnstile of taking is free. It
//! computes for them as one submission, and passes the turnstile of completion. Cores wait at a turnstile in the order
//! in which they came, by index where they came at once. With [`Serial::ordered`] a burst that shares an SA with an
//! earlier, incomplete one stands in a ring when its core reaches the turnstile; the core goes on, and whoever completes
//! what it waits for completes it too. Nothing is lost: the queue of arrivals has no limit.

pub(crate) mod run;

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;

use forebay_time::{Duration, Time};

use crate::outcome::REPORT_EVERY;

/// The serial parts of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serial {
    /// Most packets of a burst.
    pub burst: usize,
    /// Time of taking and preparing: for each burst.
    pub take: Duration,
    /// And for each of its packets.
    pub take_packet: Duration,
    /// Time of completing and sending: for each burst.
    pub complete: Duration,
    /// And for each of its packets.
    pub complete_packet: Duration,
    /// Whether the bursts of an SA are completed in the order in which they were taken.
    pub ordered: bool,
    /// Whether taking and completing are one turnstile: no core is in either while another is in one of them.
    pub shared: bool,
}

/// The parallel part: what a burst costs a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCost {
    /// For each burst.
    pub submit: Duration,
    /// For each packet.
    pub init: Duration,
    /// For each block of a packet.
    pub block: Duration,
}

/// A packet for [`Cores::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorePacket {
    /// When it arrives.
    pub at: Time,
    /// Its SA.
    pub sa: u32,
    /// Blocks to compute.
    pub blocks: u64,
}

/// A machine of cores with two turnstiles.
///
/// ```
/// use forebay_sim::{CoreCost, CorePacket, Cores, Serial};
/// use forebay_time::{Duration, Time};
///
/// let ns = Duration::from_nanos;
/// let serial = Serial {
///     burst: 64, take: ns(100), take_packet: ns(5), complete: ns(100), complete_packet: ns(5), ordered: true, shared: false,
/// };
/// let cost = CoreCost { init: ns(40), block: ns(1), ..CoreCost::default() };
/// let cores = Cores::equal(2, cost, serial).unwrap();
/// let packet = CorePacket { at: Time::ZERO, sa: 0, blocks: 88 };
/// let outcome = cores.run(&vec![packet; 64 * 100]).unwrap();
/// assert!(outcome.packets_per_second() > 1.9 * 64.0 / 9.032e-6);
/// ```
#[derive(Clone, Debug)]
pub struct Cores {
    costs: Vec<CoreCost>,
    serial: Serial,
}

/// Why a machine or its packets are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoresError {
    /// There is no core.
    NoCore,
    /// A burst of no packets.
    NoBurst,
    /// A packet arrives before the one in front of it: its place among the packets.
    Unsorted(usize),
    /// The run reaches the end of time, 213 days.
    TooLong,
}

impl std::fmt::Display for CoresError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CoresError::NoCore => write!(f, "there is no core; expected at least one"),
            CoresError::NoBurst => write!(f, "a burst has room for 0 packets; expected at least 1"),
            CoresError::Unsorted(at) => write!(f, "packet {at} arrives before the packet in front of it"),
            CoresError::TooLong => write!(f, "the run takes more than 213 days; expected shorter times"),
        }
    }
}

impl std::error::Error for CoresError {}

/// A burst of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The first of its packets.
    pub first: usize,
    /// The last of them, and one.
    pub end: usize,
    /// The core that took it and computed for it.
    pub core: usize,
    /// When it was taken.
    pub at: Time,
    /// When the core computes, from and until.
    pub computes: (Time, Time),
    /// The core that completed it, which may be another one with [`Serial::ordered`].
    pub completed_by: usize,
    /// When that core completes it, from and until.
    pub completes: (Time, Time),
}

/// What came of a run of [`Cores`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoresOutcome {
    /// When each packet was complete, in the order of the packets.
    pub completed: Vec<Time>,
    /// The bursts, in the order in which they were taken.
    pub bursts: Vec<Taken>,
    /// The last completion.
    pub end: Time,
    /// For each core, the time in which it took, computed or completed.
    pub busy: Vec<Duration>,
    /// The time in which the turnstile of taking was held.
    pub take_held: Duration,
    /// The time for which idle cores stood before it while packets waited; of all cores together.
    pub take_waited: Duration,
    /// The time in which the turnstile of completion was held.
    pub complete_held: Duration,
    /// The time for which cores stood before it; of all cores together.
    pub complete_waited: Duration,
}

impl CoresOutcome {
    /// Packets a second from time zero to the end; 0 if no time passed.
    pub fn packets_per_second(&self) -> f64 {
        let seconds = self.end.since(Time::ZERO).as_secs();
        if seconds > 0.0 { self.completed.len() as f64 / seconds } else { 0.0 }
    }
}

impl Cores {
    /// Like cores. Without a core, or with bursts of no packets, an error.
    pub fn equal(count: usize, cost: CoreCost, serial: Serial) -> Result<Cores, CoresError> {
        Cores::unequal(vec![cost; count], serial)
    }

    /// Cores of which each has its cost. A slower core takes only as many packets as it would have done before a faster
    /// one would have come to all that wait and done them, both without waiting at a turnstile.
    pub fn unequal(costs: Vec<CoreCost>, serial: Serial) -> Result<Cores, CoresError> {
        if costs.is_empty() {
            return Err(CoresError::NoCore);
        }
        if serial.burst == 0 {
            return Err(CoresError::NoBurst);
        }
        Ok(Cores { costs, serial })
    }

    /// Runs until all packets, which are in the order of their arrival, are complete.
    pub fn run(&self, packets: &[CorePacket]) -> Result<CoresOutcome, CoresError> {
        if let Some(at) = packets.windows(2).position(|two| two[1].at < two[0].at) {
            return Err(CoresError::Unsorted(at + 1));
        }
        self.run_watched(packets, &mut |_| ControlFlow::Continue(()))
    }

    /// The same of packets that are in order. `watch` is told now and then how many were taken; where it breaks the run off, no
    /// more are, and the outcome has only those.
    pub(crate) fn run_watched(
        &self,
        packets: &[CorePacket],
        watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<CoresOutcome, CoresError> {
        let outcome = Run::new(self, packets).drive(watch);
        if outcome.end == Time::MAX { Err(CoresError::TooLong) } else { Ok(outcome) }
    }
}

/// What a core does; a burst is named by its number.
#[derive(Clone, Copy)]
enum Doing {
    Idle,
    Taking(usize, Time),
    Computing(usize, Time),
    Standing(usize),
    Completing(usize, Time),
}

impl Doing {
    fn until(self) -> Option<Time> {
        match self {
            Doing::Taking(_, until) | Doing::Computing(_, until) | Doing::Completing(_, until) => Some(until),
            Doing::Idle | Doing::Standing(_) => None,
        }
    }
}

struct Run<'a> {
    cores: &'a Cores,
    packets: &'a [CorePacket],
    /// The first packet that has not been taken.
    next: usize,
    /// Of each SA, the bursts that are incomplete, oldest first.
    open: BTreeMap<u32, VecDeque<usize>>,
    /// Bursts that are computed and wait for others, oldest first.
    ring: Vec<usize>,
    doing: Vec<Doing>,
    idle: VecDeque<usize>,
    standing: VecDeque<usize>,
    outcome: CoresOutcome,
}

impl<'a> Run<'a> {
    fn new(cores: &'a Cores, packets: &'a [CorePacket]) -> Run<'a> {
        let count = cores.costs.len();
        let zero = Duration::ZERO;
        Run {
            cores,
            packets,
            next: 0,
            open: BTreeMap::new(),
            ring: Vec::new(),
            doing: vec![Doing::Idle; count],
            idle: (0..count).collect(),
            standing: VecDeque::new(),
            outcome: CoresOutcome {
                completed: vec![Time::ZERO; packets.len()],
                bursts: Vec::new(),
                end: Time::ZERO,
                busy: vec![zero; count],
                take_held: zero,
                take_waited: zero,
                complete_held: zero,
                complete_waited: zero,
            },
        }
    }

    fn drive(mut self, watch: &mut dyn FnMut(usize) -> ControlFlow<()>) -> CoresOutcome {
        let mut now = Time::ZERO;
        let mut reported = 0;
        loop {
            if self.next - reported >= REPORT_EVERY as usize {
                reported = self.next;
                if watch(self.next).is_break() {
                    self.packets = &self.packets[..self.next];
                    self.outcome.completed.truncate(self.next);
                }
            }
            for core in 0..self.doing.len() {
                self.end_of_phase(core, now);
            }
            // Of one turnstile a core that has completed is the first that finds it free.
            if self.cores.serial.shared {
                self.grant_taking(now);
            }
            self.grant_completion(now);
            self.grant_taking(now);
            let ends = self.doing.iter().filter_map(|doing| doing.until());
            let later = self.next + self.packets[self.next..].partition_point(|packet| packet.at <= now);
            let arrival = self.packets.get(later).map(|packet| packet.at);
            let Some(then) = ends.chain(arrival).min() else { return self.outcome };
            self.count(now, then);
            now = then;
        }
    }

    fn end_of_phase(&mut self, core: usize, now: Time) {
        if self.doing[core].until() != Some(now) {
            return;
        }
        match self.doing[core] {
            Doing::Taking(burst, _) => {
                let until = now + self.crypto(core, self.range(burst));
                self.outcome.bursts[burst].computes = (now, until);
                self.doing[core] = Doing::Computing(burst, until);
                self.end_of_phase(core, now);
            }
            Doing::Computing(burst, _) => {
                self.doing[core] = Doing::Standing(burst);
                self.standing.push_back(core);
            }
            Doing::Completing(burst, _) => {
                self.close(burst, now);
                let behind = self.ring.iter().position(|&other| self.is_free(other));
                match behind.map(|at| self.ring.remove(at)) {
                    Some(other) => self.begin_completion(core, other, now),
                    None => self.rest(core),
                }
            }
            Doing::Idle | Doing::Standing(_) => {}
        }
    }

    fn rest(&mut self, core: usize) {
        self.doing[core] = Doing::Idle;
        self.idle.push_back(core);
    }

    fn grant_completion(&mut self, now: Time) {
        while !(self.is_completing() || self.cores.serial.shared && self.is_taking()) {
            let Some(core) = self.standing.pop_front() else { return };
            let Doing::Standing(burst) = self.doing[core] else { continue };
            if self.is_free(burst) {
                self.begin_completion(core, burst, now);
            } else {
                let at = self.ring.partition_point(|&other| other < burst);
                self.ring.insert(at, burst);
                self.rest(core);
            }
        }
    }

    fn begin_completion(&mut self, core: usize, burst: usize, now: Time) {
        let until = now + self.completion(burst);
        let taken = &mut self.outcome.bursts[burst];
        (taken.completed_by, taken.completes) = (core, (now, until));
        self.doing[core] = Doing::Completing(burst, until);
        self.end_of_phase(core, now);
    }

    fn grant_taking(&mut self, now: Time) {
        while !(self.is_taking() || self.cores.serial.shared && self.is_completing()) {
            let waiting = self.waiting(now);
            if waiting.0 == waiting.1 {
                return;
            }
            let takes = |core: &usize| self.would_take(*core, waiting, now);
            let Some((at, end)) = self
                .idle
                .iter()
                .enumerate()
                .map(|(at, core)| (at, takes(core)))
                .find(|(_, end)| *end > waiting.0)
            else {
                return;
            };
            let range = (waiting.0, end);
            let Some(core) = self.idle.remove(at) else { return };
            let burst = self.outcome.bursts.len();
            self.outcome.bursts.push(Taken {
                first: range.0,
                end: range.1,
                core,
                at: now,
                computes: (now, now),
                completed_by: core,
                completes: (now, now),
            });
            for packet in &self.packets[range.0..range.1] {
                let open = self.open.entry(packet.sa).or_default();
                if open.back() != Some(&burst) {
                    open.push_back(burst);
                }
            }
            self.next = range.1;
            let serial = &self.cores.serial;
            let time = serial.take + serial.take_packet.times((range.1 - range.0) as u64);
            self.doing[core] = Doing::Taking(burst, now + time);
            if time == Duration::ZERO {
                self.end_of_phase(core, now);
                self.grant_completion(now);
            }
        }
    }

    fn is_taking(&self) -> bool {
        self.doing.iter().any(|doing| matches!(doing, Doing::Taking(..)))
    }

    fn is_completing(&self) -> bool {
        self.doing.iter().any(|doing| matches!(doing, Doing::Completing(..)))
    }

    /// The packets that a burst would have now.
    fn waiting(&self, now: Time) -> (usize, usize) {
        let rest = &self.packets[self.next..];
        let count = rest.iter().take(self.cores.serial.burst).take_while(|packet| packet.at <= now).count();
        (self.next, self.next + count)
    }

    /// The papers' rule at the moment of taking: the end of the packets with which a core would be done before each faster one would
    /// have come to all that wait and been done with them.
    fn would_take(&self, core: usize, waiting: (usize, usize), now: Time) -> usize {
        let own = self.crypto(core, waiting);
        let faster = (0..self.doing.len()).filter(|other| self.crypto(*other, waiting) < own);
        let done = faster.map(|other| self.is_idle_at(other, now) + self.crypto(other, waiting)).min();
        let Some(done) = done else { return waiting.1 };
        let is_sooner = |end: &usize| now + self.crypto(core, (waiting.0, *end)) < done;
        (waiting.0 + 1..=waiting.1).take_while(is_sooner).last().unwrap_or(waiting.0)
    }

    /// When a core would be idle if it did not wait at a turnstile.
    fn is_idle_at(&self, core: usize, now: Time) -> Time {
        match self.doing[core] {
            Doing::Idle => now,
            Doing::Taking(burst, until) => {
                until + self.crypto(core, self.range(burst)) + self.completion(burst)
            }
            Doing::Computing(burst, until) => until + self.completion(burst),
            Doing::Standing(burst) => now + self.completion(burst),
            Doing::Completing(_, until) => until,
        }
    }

    /// First and last + 1 of the packets of a burst.
    fn range(&self, burst: usize) -> (usize, usize) {
        let taken = &self.outcome.bursts[burst];
        (taken.first, taken.end)
    }

    fn crypto(&self, core: usize, (first, end): (usize, usize)) -> Duration {
        let cost = self.cores.costs[core];
        let blocks = self.packets[first..end].iter().map(|packet| packet.blocks).sum();
        cost.submit + cost.init.times((end - first) as u64) + cost.block.times(blocks)
    }

    fn completion(&self, burst: usize) -> Duration {
        let (first, end) = self.range(burst);
        self.cores.serial.complete + self.cores.serial.complete_packet.times((end - first) as u64)
    }

    /// Whether no earlier burst with an SA of this one is incomplete.
    fn is_free(&self, burst: usize) -> bool {
        let (first, end) = self.range(burst);
        let heads = self.packets[first..end].iter().map(|packet| self.open[&packet.sa].front());
        !self.cores.serial.ordered || heads.into_iter().all(|head| head == Some(&burst))
    }

    fn close(&mut self, burst: usize, now: Time) {
        let (first, end) = self.range(burst);
        for at in first..end {
            if let Some(open) = self.open.get_mut(&self.packets[at].sa) {
                open.retain(|&other| other != burst);
            }
            self.outcome.completed[at] = now;
        }
        self.outcome.end = now;
    }

    fn count(&mut self, now: Time, then: Time) {
        let time = then.since(now);
        let waits = !self.is_taking() || self.waiting(now).0 == self.waiting(now).1;
        for (core, doing) in self.doing.iter().enumerate() {
            match doing {
                Doing::Idle if waits => {}
                Doing::Idle => self.outcome.take_waited += time,
                Doing::Standing(_) => self.outcome.complete_waited += time,
                Doing::Taking(..) => self.outcome.take_held += time,
                Doing::Completing(..) => self.outcome.complete_held += time,
                Doing::Computing(..) => {}
            }
            if !matches!(doing, Doing::Idle | Doing::Standing(_)) {
                self.outcome.busy[core] += time;
            }
        }
    }
}
