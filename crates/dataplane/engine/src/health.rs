//! Whether a processor may be given jobs, and how many of its results are checked.

use forebay_crypto::Verdict;
use forebay_time::{Duration, Time};

/// Why a processor was ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removal {
    /// It did not answer by the deadline of a job.
    Silent,
    /// It failed at many jobs in a row that the running core could do.
    Failing,
    /// The running core came to another result.
    WrongResult,
}

/// Wrong verdicts after which a processor is not trusted any more.
const STRIKES: u32 = 3;
/// Failures in a row, of jobs that the running core could do, after which it is taken out.
const FAILURES: u32 = 64;
/// How long a processor stays out the first time; doubled each time after.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Maximum number of doublings: the longest pause is just over a minute.
const DOUBLINGS: u32 = 8;
/// Pauses that it must have worked for without being taken out, to begin again with the first pause.
const GOOD_AGAIN: u64 = 16;
/// Number of unanswered jobs with which a processor may still return. Whether they are lost or the processor is dead
/// shows only when it is tried again; this bounds the number of tries and the memory that it holds.
const LOST_MAX: u64 = 32;
/// Rejections that are checked one by one before they are only sampled: more than a processor may answer at once,
/// before the first of them has been checked.
const DOUBTS: u32 = 256;
/// Jobs done that earn another such check.
const EARNS_A_DOUBT: u32 = 64;

/// A processor's record.
#[derive(Debug)]
pub struct Health {
    /// Jobs that it holds, those no longer wanted included.
    outstanding: u64,
    out: Option<Out>,
    /// Removals that count for the next pause.
    removals: u32,
    /// When it was last let back.
    back: Time,
    strikes: u32,
    failures: u32,
    doubts: u32,
    earned: u32,
    audits: Sampler,
    checks: Sampler,
}

#[derive(Debug)]
struct Out {
    until: Time,
    for_good: bool,
}

impl Health {
    /// The record of processor number `processor`, which may be given jobs.
    pub fn new(processor: usize) -> Health {
        Health {
            outstanding: 0,
            out: None,
            removals: 0,
            back: Time::ZERO,
            strikes: 0,
            failures: 0,
            doubts: DOUBTS,
            earned: 0,
            audits: Sampler::new(2 * processor as u64),
            checks: Sampler::new(2 * processor as u64 + 1),
        }
    }

    /// The record of a processor that can do nothing, and never is given jobs.
    pub fn absent(processor: usize) -> Health {
        Health { out: Some(Out { until: Time::ZERO, for_good: true }), ..Health::new(processor) }
    }

    /// Records that the processor was given `jobs`.
    pub fn submitted(&mut self, jobs: usize) {
        self.outstanding += jobs as u64;
    }

    /// Records that jobs were returned, whether or not their results are still needed.
    pub fn answered(&mut self, jobs: usize) {
        self.outstanding = self.outstanding.saturating_sub(jobs as u64);
    }

    /// Whether it holds nothing.
    pub fn is_idle(&self) -> bool {
        self.outstanding == 0
    }

    /// A job came back as done. Returns whether to check it: one in `every`.
    #[inline]
    pub fn done(&mut self, every: u64) -> bool {
        self.failures = 0;
        self.earned += 1;
        if self.earned == EARNS_A_DOUBT {
            self.earned = 0;
            self.doubts = (self.doubts + 1).min(DOUBTS);
        }
        self.audits.pick(every)
    }

    /// Records a job that was returned as rejected. Returns whether to check that verdict.
    ///
    /// Every such verdict is checked while they are rare, so that a processor that rejects good packets loses none of
    /// them. Forged packets, however, must not make the running core repeat all of them: beyond a budget, which
    /// completed work refills, one verdict in `every` is checked.
    pub fn rejected(&mut self, every: u64) -> bool {
        if self.doubts == 0 {
            return self.checks.pick(every);
        }
        self.doubts -= 1;
        true
    }

    /// The running core could do a job on which the processor had returned `verdict`. Returns why the processor is to be
    /// ejected, if it is.
    pub fn contradicted(&mut self, verdict: Verdict) -> Option<Removal> {
        match verdict {
            // A job that could not be done is no lie; a verdict is. After one, all are looked at.
            Verdict::AuthFailed => {
                self.strikes += 1;
                self.doubts = DOUBTS;
                let for_good = self.out.as_ref().is_some_and(|out| out.for_good);
                (self.strikes >= STRIKES && !for_good).then_some(Removal::WrongResult)
            }
            _ => {
                self.failures += 1;
                (self.failures >= FAILURES && self.out.is_none()).then_some(Removal::Failing)
            }
        }
    }

    /// Records that the processor was ejected at `now`. One that gave a wrong result stays out until it is attached
    /// again; others may return after a pause.
    pub fn removed(&mut self, why: Removal, now: Time) {
        if now.since(self.back) > self.pause().times(GOOD_AGAIN) {
            self.removals = 0;
        }
        let until = now + self.pause();
        self.removals += 1;
        self.failures = 0;
        let wrong_before = self.out.as_ref().is_some_and(|out| out.for_good);
        let for_good = why == Removal::WrongResult || wrong_before;
        self.out = Some(Out { until, for_good });
    }

    /// The pause after the next removal.
    fn pause(&self) -> Duration {
        FIRST_PAUSE.times(1 << self.removals.min(DOUBLINGS))
    }

    /// Whether its pause is over and it has answered what it held, but for a few jobs.
    pub fn may_return(&self, now: Time) -> bool {
        self.out.as_ref().is_some_and(|out| !out.for_good && out.until <= now) && self.outstanding <= LOST_MAX
    }

    /// Records that the processor is given jobs again.
    pub fn returned(&mut self, now: Time) {
        self.out = None;
        self.back = now;
    }
}

/// Picks one in so many, at gaps that are drawn: no regular fault falls between all of its picks.
#[derive(Debug)]
struct Sampler {
    state: u64,
    left: u64,
}

impl Sampler {
    fn new(seed: u64) -> Sampler {
        Sampler { state: seed, left: 0 }
    }

    /// Whether to pick this one; one in `every` on average and one in `2 * every - 1` at least, none
    /// for zero.
    #[inline]
    fn pick(&mut self, every: u64) -> bool {
        if every == 0 {
            return false;
        }
        if self.left == 0 {
            self.left = 1 + self.draw() % (2 * every - 1);
        }
        self.left -= 1;
        self.left == 0
    }

    /// SplitMix64.
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many_is_picked_at_gaps_of_less_than_twice_that() {
        for every in [1, 2, 16, 64] {
            let mut sampler = Sampler::new(7);
            let picked: Vec<u64> = (0..64_000).filter(|_| sampler.pick(every)).collect();
            let expected = 64_000 / every;
            assert!(
                (expected * 9 / 10..=expected * 11 / 10).contains(&(picked.len() as u64)),
                "1 in {every}"
            );
            assert!(picked.windows(2).all(|pair| pair[1] - pair[0] < 2 * every));
        }
        assert!((0..1_000).all(|_| !Sampler::new(7).pick(0)));
    }

    /// A flood of forged packets, all rejected rightly, then a processor that begins to lie.
    #[test]
    fn rejections_are_all_checked_while_rare_and_sampled_in_a_flood() {
        let mut health = Health::new(1);
        assert!((0..3).all(|_| health.rejected(64)));
        let checked = (0..100_000).filter(|_| health.rejected(64)).count();
        assert!(checked < 100_000 / 50, "{checked} of 100,000 were done again");
        // The first lie that is found out has all others looked at.
        assert_eq!(health.contradicted(Verdict::AuthFailed), None);
        assert!((0..DOUBTS).all(|_| health.rejected(64)));
        assert_eq!(health.contradicted(Verdict::AuthFailed), None);
        assert_eq!(health.contradicted(Verdict::AuthFailed), Some(Removal::WrongResult));
    }

    #[test]
    fn work_that_was_done_earns_checks_again() {
        let mut health = Health::new(1);
        while health.rejected(0) {}
        for _ in 0..EARNS_A_DOUBT {
            assert!(!health.rejected(0));
            health.done(0);
        }
        assert!(health.rejected(0));
        assert!(!health.rejected(0));
    }

    #[test]
    fn pauses_double_until_it_has_been_good_for_long() {
        let mut health = Health::new(1);
        let mut now = Time::ZERO;
        let pause = |health: &mut Health, now: Time| {
            health.removed(Removal::Silent, now);
            let back = (1..).map(|k| now + Duration::from_millis(k * 250)).find(|&at| health.may_return(at));
            let back = back.expect("it comes back");
            health.returned(back);
            back.since(now).as_nanos() / 1_000_000
        };
        let mut next = |health: &mut Health, worked: u64| {
            now = now + Duration::from_millis(worked);
            let out = pause(health, now);
            now = now + Duration::from_millis(out);
            out
        };
        assert_eq!([0; 4].map(|_| next(&mut health, 10)), [250, 500, 1_000, 2_000]);
        assert_eq!(next(&mut health, 100_000), 250);
    }

    #[test]
    fn one_that_owes_many_jobs_stays_out_until_it_answers() {
        let late = Time::ZERO + Duration::from_millis(1_000);
        let mut health = Health::new(1);
        health.submitted(LOST_MAX as usize + 1);
        health.removed(Removal::Silent, Time::ZERO);
        assert!(!health.may_return(late));
        health.answered(1);
        assert!(health.may_return(late));
    }

    #[test]
    fn one_that_was_wrong_never_comes_back() {
        let mut health = Health::new(1);
        health.removed(Removal::WrongResult, Time::ZERO);
        health.removed(Removal::Silent, Time::ZERO);
        assert!(!health.may_return(Time::ZERO + Duration::from_millis(100_000)));
    }

    #[test]
    fn failures_in_a_row_eject_a_processor_and_a_job_done_ends_the_row() {
        let mut health = Health::new(1);
        let fail = |times: u32, health: &mut Health| {
            (0..times).map(|_| health.contradicted(Verdict::Failed)).collect::<Vec<_>>()
        };
        assert_eq!(fail(FAILURES - 1, &mut health), vec![None; FAILURES as usize - 1]);
        health.done(0);
        assert_eq!(fail(FAILURES - 1, &mut health), vec![None; FAILURES as usize - 1]);
        assert_eq!(fail(1, &mut health), [Some(Removal::Failing)]);
        // It is said once: while it is out, nothing more is.
        health.removed(Removal::Failing, Time::ZERO);
        assert_eq!(fail(2 * FAILURES, &mut health), vec![None; 2 * FAILURES as usize]);
        // A lie that is found out late still counts, and again only once.
        assert_eq!([(); 2].map(|()| health.contradicted(Verdict::AuthFailed)), [None; 2]);
        assert_eq!(health.contradicted(Verdict::AuthFailed), Some(Removal::WrongResult));
        health.removed(Removal::WrongResult, Time::ZERO);
        assert_eq!(health.contradicted(Verdict::AuthFailed), None);
    }

    #[test]
    fn it_is_idle_when_all_was_answered() {
        let mut health = Health::new(1);
        assert!(health.is_idle());
        health.submitted(3);
        health.answered(2);
        assert!(!health.is_idle());
        health.answered(2);
        assert!(health.is_idle(), "more answers than jobs are none");
        health.submitted(1);
        assert!(!health.is_idle());
    }
}
