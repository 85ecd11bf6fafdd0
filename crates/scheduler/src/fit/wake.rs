//! How long an idle processor takes to begin.

use forebay_time::Duration;

/// The usual time from a hand-over to an idle processor until it begins: near to the median of what was
/// measured lately, so that a thread that waited for its CPU once does not count.
#[derive(Clone, Copy, Debug)]
pub struct Wake {
    /// In picoseconds.
    usual: f64,
    measured: u32,
}

impl Wake {
    /// A measurement moves what is usual by at most this share of it, ...
    const STEP: f64 = 1.0 / 16.0;
    /// ... by more while there are fewer, ...
    const FIRST: u32 = 16;
    /// ... and by this much at least, in picoseconds.
    const LEAST: f64 = 1_000.0;

    /// Begins with `prior`.
    pub fn new(prior: Duration) -> Wake {
        Wake { usual: prior.0 as f64, measured: 0 }
    }

    /// Takes a measurement in.
    pub fn add(&mut self, wake: Duration) {
        self.measured = (self.measured + 1).min(Wake::FIRST);
        let step = (self.usual / f64::from(self.measured)).max(self.usual * Wake::STEP).max(Wake::LEAST);
        self.usual += (wake.0 as f64 - self.usual).clamp(-step, step);
    }

    /// The time as known now.
    pub fn time(&self) -> Duration {
        Duration((self.usual + 0.5) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_is_found_among_outliers_and_followed() {
        let mut wake = Wake::new(Duration::ZERO);
        let mut number = super::super::samples::numbers();
        let mut feed = |wake: &mut Wake, usual: u64| {
            for _ in 0..500 {
                let outlier = if number(10) == 0 { 1_000_000_000 } else { 0 };
                wake.add(Duration(usual - usual / 20 + number(usual / 10) + outlier));
            }
        };
        for usual in [5_000_000, 60_000_000, 1_000_000] {
            feed(&mut wake, usual);
            let found = wake.time().0 as f64 / usual as f64;
            assert!((0.9..1.3).contains(&found), "{usual} ps: {found} of it");
        }
    }
}
