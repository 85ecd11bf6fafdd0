//! Divides a burst of several suites: the shortest processing time first.
//!
//! Packets of one SA leave in order, those of different SAs need not. So if the SAs of a burst have unlike suites, the packets of
//! the suite that is done soonest are computed and completed first (the rule of the shortest processing time, which has the
//! least mean time in the system: W. E. Smith, 1956), and the others are put off until the next poll, so that the caller can
//! send what is done. A multi-buffer library needs as long for one packet of 3DES as for sixteen, some 200 us for 1,400 bytes;
//! a packet of AES-GCM takes a thousandth.

use forebay_crypto::{Job, SessionId};
use forebay_time::Duration;

use crate::databases::Databases;
use crate::engine::{Core, Done};
use crate::tickets::Run;
use crate::turnstile::Turnstile;

/// Weight of the past in what is learnt, as in 1 - 1/8.
const SMOOTH: u64 = 8;
/// A burst that takes less is done as a whole: each part costs some 100 ns, and nothing waits for long.
const WORTH: Duration = Duration::from_micros(20);
/// One burst in so many is divided in any case, so that the times stay known.
const DIVIDED_EVERY: u32 = 256;

/// What the jobs of each kind take on the running core, and the lists by which a burst is divided.
#[derive(Default)]
pub(crate) struct BySuite {
    /// Picoseconds for a byte, by kind, smoothed; zero before the first.
    byte: Vec<u64>,
    /// The kinds of the burst at hand, each with its bytes and then its time.
    kinds: Vec<(u64, u8)>,
    /// Bursts of several kinds so far.
    bursts: u32,
    /// What is done now, what is put off, and lists for what was.
    now: Done,
    later: Done,
    spare: Done,
}

impl BySuite {
    /// For bursts of so many packets.
    pub fn new(burst: usize) -> BySuite {
        let list = |burst| Done { jobs: Vec::with_capacity(burst), runs: Vec::with_capacity(burst) };
        BySuite { now: list(burst), later: list(2 * burst), spare: list(2 * burst), ..BySuite::default() }
    }

    /// How many packets are put off.
    #[inline]
    pub fn put_off(&self) -> usize {
        self.later.jobs.len()
    }

    /// Puts what was put off before a burst.
    #[cold]
    pub fn join(&mut self, burst: &mut Vec<Job>, runs: &mut Vec<Run>) {
        self.later.jobs.append(burst);
        self.later.runs.append(runs);
        burst.append(&mut self.later.jobs);
        runs.append(&mut self.later.runs);
    }

    /// Learns the time per byte of a kind.
    pub fn learn(&mut self, kind: u8, bytes: u64, took: Duration) {
        let kind = usize::from(kind);
        if self.byte.len() <= kind {
            self.byte.resize(kind + 1, 0);
        }
        let (known, found) = (&mut self.byte[kind], took.0 / bytes.max(1));
        *known = if *known == 0 { found.max(1) } else { *known - *known / SMOOTH + found / SMOOTH };
    }

    /// Sorts the kinds of a burst's runs, which are given with their bytes, by predicted time, unknown ones first. Returns whether
    /// to divide the burst.
    fn sort(&mut self, runs: impl Iterator<Item = (u8, u64)>) -> bool {
        self.kinds.clear();
        for (kind, bytes) in runs {
            match self.kinds.iter_mut().find(|(_, known)| *known == kind) {
                Some((all, _)) => *all += bytes,
                None => self.kinds.push((bytes, kind)),
            }
        }
        for (work, kind) in &mut self.kinds {
            *work = work.saturating_mul(self.byte.get(usize::from(*kind)).copied().unwrap_or(0));
        }
        self.kinds.sort_unstable();
        self.bursts = self.bursts.wrapping_add(1);
        let all = self.kinds.iter().fold(0, |all: u64, (time, _)| all.saturating_add(*time));
        let is_known = self.kinds.iter().all(|(time, _)| *time > 0);
        !is_known || all >= WORTH.0 || self.bursts.is_multiple_of(DIVIDED_EVERY)
    }
}

impl Core {
    /// Whether the runs of a prepared burst are of several suites, and may leave in another order.
    #[inline]
    pub(crate) fn is_of_suites(&self, runs: &[Run]) -> bool {
        // A line is an SA then.
        let kind = |run: &Run| self.sessions.kind(SessionId(run.line));
        self.sessions.has_kinds()
            && self.side_by_side.is_on()
            && runs.split_first().is_some_and(|(first, rest)| rest.iter().any(|run| kind(run) != kind(first)))
    }

    /// Does the packets of a burst of several suites that are done soonest, and puts the others off.
    #[cold]
    pub(crate) fn do_by_suite(
        &mut self,
        shared: &Turnstile<Databases>,
        burst: &mut Vec<Job>,
        runs: &mut Vec<Run>,
    ) {
        let mut by = std::mem::take(&mut self.by_suite);
        let kind = |run: &Run| self.sessions.kind(SessionId(run.line));
        let mut left = burst.as_slice();
        let is_divided = by.sort(runs.iter().map(|run| {
            let own = left.split_off(..run.len as usize).unwrap_or_default();
            (kind(run), bytes(own))
        }));
        let Some(&(_, soonest)) = by.kinds.first().filter(|_| is_divided) else {
            self.by_suite = by;
            return self.do_in_place(shared, burst, runs);
        };
        let mut left = burst.as_mut_slice();
        for run in runs.drain(..) {
            let own = left.split_off_mut(..run.len as usize).unwrap_or_default();
            let to = if kind(&run) == soonest { &mut by.now } else { &mut by.later };
            to.jobs.extend(own.iter_mut().map(std::mem::take));
            to.runs.push(run);
        }
        burst.clear();
        let mut now = std::mem::take(&mut by.now);
        // Its packets may go through a further SA meanwhile.
        self.by_suite = by;
        self.do_kind(shared, soonest, &mut now);
        self.by_suite.now = now;
    }

    /// Does jobs of one kind, and learns what they take.
    fn do_kind(&mut self, shared: &Turnstile<Databases>, kind: u8, burst: &mut Done) {
        let bytes = bytes(&burst.jobs);
        self.now = self.clock.now();
        let begun = self.now;
        self.do_in_place(shared, &mut burst.jobs, &mut burst.runs);
        self.by_suite.learn(kind, bytes, self.now.since(begun));
    }

    /// Goes on with what was put off; whether there was anything.
    #[inline]
    pub(crate) fn do_put_off(&mut self, shared: &Turnstile<Databases>) -> bool {
        let is_any = self.by_suite.put_off() > 0;
        if is_any {
            self.do_later(shared);
        }
        is_any
    }

    #[cold]
    fn do_later(&mut self, shared: &Turnstile<Databases>) {
        let mut burst = std::mem::take(&mut self.by_suite.spare);
        self.by_suite.join(&mut burst.jobs, &mut burst.runs);
        if self.is_of_suites(&burst.runs) {
            self.do_by_suite(shared, &mut burst.jobs, &mut burst.runs);
        } else if let Some(first) = burst.runs.first() {
            let kind = self.sessions.kind(SessionId(first.line));
            self.do_kind(shared, kind, &mut burst);
        }
        self.by_suite.spare = burst;
    }
}

fn bytes(jobs: &[Job]) -> u64 {
    jobs.iter().map(|job| job.packet.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_that_is_done_soonest_goes_first() {
        let mut by = BySuite::default();
        let order = |by: &BySuite| by.kinds.iter().map(|(_, kind)| *kind).collect::<Vec<_>>();
        by.learn(0, 1_000, Duration::from_micros(200));
        by.learn(1, 1_000, Duration::from_nanos(100));
        assert!(by.sort([(0, 1_000), (1, 500), (0, 10), (1, 500)].into_iter()));
        assert_eq!(order(&by), [1, 0]);
        assert!(by.sort([(1, 10_000_000), (0, 100)].into_iter()));
        assert_eq!(order(&by), [0, 1], "much of what is fast takes longer than little of what is slow");
        assert!(by.sort([(0, 1), (2, 1_000_000)].into_iter()));
        assert_eq!(order(&by), [2, 0], "what it takes is learnt by doing it");
        assert!(!by.sort([(0, 1), (1, 1_000)].into_iter()), "nothing waits for long");
        let divided = (0..2 * DIVIDED_EVERY).filter(|_| by.sort([(0, 1), (1, 1_000)].into_iter())).count();
        assert_eq!(divided, 2);
    }
}
