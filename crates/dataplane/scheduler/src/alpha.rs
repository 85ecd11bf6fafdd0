//! An alpha that follows the load of the host's CPU. Changing how touches this file only.
//!
//! \[H\] eq 4 keeps a CPU free for other work by a factor alpha on its finish time, but leaves open
//! how large it is to be. Here a loop sets it: while the CPU, crypto and all else together, is busier than
//! the upper mark, alpha rises; while it is less busy than the lower mark, alpha falls; between them
//! it stays, so that it comes to rest. It rises faster than it falls: what the CPU has to do besides
//! is hurt at once, while unused time costs only throughput.

use forebay_time::{Duration, Time};

use crate::ConfigError;

/// How alpha follows the CPU's load ([`crate::Policy::AdaptiveAlpha`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlphaLoop {
    /// Load of the CPU in per cent above which alpha rises, at most 100.
    pub upper: u8,
    /// Load in per cent below which it falls, at most `upper`.
    pub lower: u8,
    /// The largest alpha; the smallest is the processor's own [`crate::ProcessorConfig::alpha`].
    pub most: u32,
    /// Loads are averaged over this time at least before alpha takes a step; above zero.
    pub period: Duration,
}

impl AlphaLoop {
    /// The default: alpha rises above a load of 90 % and falls below 70 %, up to the largest of the
    /// papers, 500, with a step every 10 ms.
    pub const DEFAULT: AlphaLoop =
        AlphaLoop { upper: 90, lower: 70, most: 500, period: Duration::from_millis(10) };

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let marks = self.lower <= self.upper && self.upper <= 100;
        let wrong = !marks || self.most == 0 || self.period == Duration::ZERO;
        if wrong { Err(ConfigError::AlphaLoop { found: *self }) } else { Ok(()) }
    }
}

impl Default for AlphaLoop {
    fn default() -> AlphaLoop {
        AlphaLoop::DEFAULT
    }
}

/// A step up: from 1 to 500 in 16 periods.
const RISE: f64 = 1.5;
/// A step down: from 500 to 1 in 53 periods.
const FALL: f64 = 1.125;

/// The loop of one processor.
#[derive(Clone, Debug)]
pub(crate) struct AlphaControl {
    config: AlphaLoop,
    alpha: f64,
    /// The smallest alpha: the configured one.
    least: f64,
    /// When the last load was reported; none before the first, which only sets this.
    reported: Option<Time>,
    /// Since the last step: time passed, and of it what others and what crypto took.
    passed: Duration,
    others: f64,
    crypto: Duration,
}

impl AlphaControl {
    pub(crate) fn new(config: AlphaLoop, alpha: f64) -> AlphaControl {
        AlphaControl {
            config,
            alpha,
            least: alpha,
            reported: None,
            passed: Duration::ZERO,
            others: 0.0,
            crypto: Duration::ZERO,
        }
    }

    /// Goes on from `alpha`, and never below it.
    pub(crate) fn restart(&mut self, alpha: f64) {
        (self.alpha, self.least) = (alpha, alpha);
    }

    /// Since the last report the CPU was busy with other work for the share `others` of the time, and
    /// with crypto for the time `crypto`; gives the new alpha if it changes.
    pub(crate) fn report(&mut self, now: Time, others: f64, crypto: Duration) -> Option<f64> {
        let passed = now.since(self.reported.replace(now)?);
        self.passed += passed;
        let others = if others.is_nan() { 0.0 } else { others.clamp(0.0, 1.0) };
        self.others += others * passed.0 as f64;
        self.crypto += crypto;
        if self.passed < self.config.period {
            return None;
        }
        let load = 100.0 * (self.others + self.crypto.0 as f64) / self.passed.0 as f64;
        (self.passed, self.others, self.crypto) = (Duration::ZERO, 0.0, Duration::ZERO);

        let most = f64::from(self.config.most).max(self.least);
        let alpha = if load > f64::from(self.config.upper) {
            (self.alpha * RISE).min(most)
        } else if load < f64::from(self.config.lower) {
            (self.alpha / FALL).max(self.least)
        } else {
            self.alpha
        };
        let changed = alpha != self.alpha;
        self.alpha = alpha;
        changed.then_some(alpha)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOOP: AlphaLoop = AlphaLoop { upper: 80, lower: 50, most: 4, period: Duration(100) };

    /// Reports at intervals of 100; crypto as a share, too.
    fn alphas(control: &mut AlphaControl, loads: &[(f64, u64)]) -> Vec<f64> {
        let mut now = control.reported.unwrap_or_default().0;
        control.report(Time(now), 0.0, Duration::ZERO);
        let report = |&(others, crypto): &(f64, u64)| {
            now += 100;
            control.report(Time(now), others, Duration(crypto));
            control.alpha
        };
        loads.iter().map(report).collect()
    }

    #[test]
    fn alpha_rises_above_the_upper_mark_falls_below_the_lower_and_rests_between() {
        let mut control = AlphaControl::new(LOOP, 1.0);
        // 0.5 + 0.31 = 0.81: up by half each, to the largest.
        assert_eq!(alphas(&mut control, &[(0.5, 31); 5]), [1.5, 2.25, 3.375, 4.0, 4.0]);
        // The marks themselves are between.
        assert_eq!(alphas(&mut control, &[(0.5, 30), (0.5, 0), (0.2, 45)]), [4.0; 3]);
        // 0.49: down by an eighth of the new one, to the smallest.
        assert_eq!(alphas(&mut control, &[(0.25, 24); 2]), [4.0 / 1.125, 4.0 / 1.125 / 1.125]);
        assert_eq!(alphas(&mut control, &[(0.0, 0); 20])[19], 1.0);
    }

    #[test]
    fn loads_are_averaged_over_a_period_weighted_by_their_time() {
        let mut control = AlphaControl::new(LOOP, 1.0);
        assert_eq!(control.report(Time(1_000), 1.0, Duration(999)), None, "the first sets the time");
        assert_eq!(control.report(Time(1_060), 1.0, Duration::ZERO), None);
        // 60 of 1.0 and 40 of 0.4: 0.76, which is between the marks.
        assert_eq!(control.report(Time(1_100), 0.4, Duration::ZERO), None);
        // 90 of 0.8 and 10 of 1.0: 0.82.
        assert_eq!(control.report(Time(1_190), 0.8, Duration::ZERO), None);
        assert_eq!(control.report(Time(1_200), 1.0, Duration::ZERO), Some(1.5));
    }

    #[test]
    fn a_load_that_is_none_counts_as_the_nearest_that_is() {
        let mut control = AlphaControl::new(LOOP, 2.0);
        assert_eq!(alphas(&mut control, &[(f64::NAN, 0), (-3.0, 0), (7.0, 0)]), [2.0, 2.0, 3.0]);
        assert_eq!(alphas(&mut control, &[(f64::INFINITY, 0)]), [4.0]);
        assert_eq!(alphas(&mut AlphaControl::new(LOOP, 9.0), &[(1.0, 0)]), [9.0], "above the largest");
    }

    #[test]
    fn marks_in_the_wrong_order_are_refused() {
        assert!(LOOP.check().is_ok());
        for wrong in [
            AlphaLoop { lower: 81, ..LOOP },
            AlphaLoop { upper: 101, ..LOOP },
            AlphaLoop { most: 0, ..LOOP },
            AlphaLoop { period: Duration::ZERO, ..LOOP },
        ] {
            assert!(wrong.check().is_err());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Against a list of all instants: every one of a hundredth is busy or not, as the reports say.
        #[test]
        fn behaves_like_the_rule_over_all_that_was_reported(
            least in 1u32..5,
            reports in prop::collection::vec((1u64..150, 0u64..=100, 0u64..100), 0..200),
        ) {
            let mut control = AlphaControl::new(LOOP, f64::from(least));
            control.report(Time::ZERO, 0.0, Duration::ZERO);
            let (mut now, mut alpha, mut pending) = (0, f64::from(least), vec![]);
            for (passed, percent, crypto) in reports {
                now += passed;
                let found = control.report(Time(now), percent as f64 / 100.0, Duration(crypto));
                pending.push((passed, percent, crypto));
                let time: u64 = pending.iter().map(|report| report.0).sum();
                let before = alpha;
                if time >= 100 {
                    // In hundredths of the time, so that no rounding stands between the marks.
                    let busy: u64 = pending.drain(..).map(|(time, others, own)| time * others + 100 * own).sum();
                    // On a mark, a sum of fractions may fall to either side.
                    prop_assume!(busy != 80 * time && busy != 50 * time);
                    if busy > 80 * time {
                        alpha = (alpha * 1.5).min(f64::from(least.max(4)));
                    } else if busy < 50 * time {
                        alpha = (alpha / 1.125).max(f64::from(least));
                    }
                }
                prop_assert_eq!(found, (alpha != before).then_some(alpha));
                prop_assert!((f64::from(least)..=f64::from(least.max(4))).contains(&control.alpha));
            }
        }
    }
}
