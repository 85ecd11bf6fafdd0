//! The tardiness of a processor: how much later than predicted its jobs are done, learnt from completed jobs.
//!
//! A prediction includes the cost of a job and of the jobs that wait before it. It does not include that a thread has
//! to get a CPU first, which takes a hundred times as long as the job on a machine whose CPUs are all busy, nor that
//! a driver does other work before it asks for results. A job placed at such a processor is returned late, and all
//! packets of its SA wait behind it. So the lateness of jobs is added to finish times as beta is.
//!
//! A processor that is no longer chosen because it was late would never be chosen again. Therefore its lateness above
//! that of the best one also fades with time, and a few jobs try it again.

use forebay_time::{Duration, Time};

/// A job that was later than its like counts for one in so many...
const RISE: u64 = 16;
/// ...and one that was less late for less: it makes no packet wait.
const FALL: u64 = 128;
/// Time between two steps of fading...
const FADE_EVERY: Duration = Duration::from_millis(10);
/// ...each of which takes one in so many away: half in 110 ms, from a slice of the system's scheduler (4 ms) to
/// what a wake-up takes (50 us) in 0.7 s.
const FADE: u64 = 16;
/// After so many steps nothing is left that counts.
const STEPS_MAX: u64 = 512;

/// What a processor's jobs are late by: a mean in which the late ones weigh more, so far above the median.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tardiness(Duration);

impl Tardiness {
    /// Takes a job in that was done `late` after it should have been.
    #[inline]
    pub(crate) fn add(&mut self, late: Duration) {
        let usual = self.0;
        self.0 = match late > usual {
            true => usual + Duration((late - usual).0 / RISE),
            false => usual - Duration((usual - late).0 / FALL),
        };
    }

    /// Lets what is above `least` fade.
    pub(crate) fn fade(&mut self, steps: u64, least: Duration) {
        for _ in 0..steps.min(STEPS_MAX) {
            self.0 = self.0 - Duration((self.0 - least).0.div_ceil(FADE));
        }
    }

    /// What is to be added to finish times.
    pub(crate) fn usual(&self) -> Duration {
        self.0
    }
}

/// When what was learnt last faded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fading(Time);

impl Fading {
    /// Steps that are due at `now`; mostly none.
    #[inline]
    pub(crate) fn steps(&mut self, now: Time) -> u64 {
        let passed = now.since(self.0);
        if passed < FADE_EVERY {
            return 0;
        }
        self.0 = now;
        passed.0 / FADE_EVERY.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_what_is_reported_and_late_ones_weigh_more() {
        let mut lateness = Tardiness::default();
        (0..1_000).for_each(|_| lateness.add(Duration::from_micros(300)));
        let learnt = lateness.usual();
        assert!(learnt > Duration::from_micros(299) && learnt <= Duration::from_micros(300), "{learnt:?}");
        (0..2_000).for_each(|_| lateness.add(Duration::ZERO));
        assert!(lateness.usual() < Duration::from_nanos(100));

        // One in ten is late by a millisecond: far above the mean.
        (0..10_000).for_each(|n| lateness.add(Duration::from_micros(if n % 10 == 0 { 1_000 } else { 0 })));
        assert!(lateness.usual() > Duration::from_micros(300), "{:?}", lateness.usual());
    }

    #[test]
    fn one_that_is_given_nothing_is_tried_again_within_a_second() {
        let (mut lateness, mut fading) = (Tardiness::default(), Fading::default());
        (0..1_000).for_each(|_| lateness.add(Duration::from_millis(4)));
        let mut now = Time::ZERO;
        while lateness.usual() > Duration::from_micros(50) {
            now = now + Duration::from_micros(700);
            let steps = fading.steps(now);
            lateness.fade(steps, Duration::ZERO);
        }
        assert!(now < Time::ZERO + Duration::from_millis(1_000), "{now:?}");
        // Down to where the best one is, also after an hour of sleep.
        let steps = fading.steps(now + Duration::from_millis(3_600_000));
        lateness.fade(steps, Duration::from_micros(20));
        assert_eq!(lateness.usual(), Duration::from_micros(20));
    }

    #[test]
    fn steps_by_hand() {
        let mut lateness = Tardiness::default();
        let mut after = |late| {
            lateness.add(Duration(late));
            lateness.usual().0
        };
        // A sixteenth of what is above, a 128th of what is below.
        assert_eq!([16_000, 0, 993, 1_009].map(&mut after), [1_000, 993, 993, 994]);
        // A sixteenth of what is above the least, rounded up.
        lateness.fade(2, Duration(100));
        assert_eq!(lateness.usual(), Duration(994 - 56 - 53));
        lateness.fade(0, Duration::ZERO);
        assert_eq!(lateness.usual(), Duration(885));

        let mut fading = Fading::default();
        let mut steps = |us: u64| fading.steps(Time::ZERO + Duration::from_micros(us));
        assert_eq!([9_999, 10_000, 19_999, 45_000, 54_999, 55_000].map(&mut steps), [0, 1, 0, 3, 0, 1]);
    }
}
