//! Packets at drawn times, and how long each takes.

use forebay_random::Random;
use forebay_time::{Duration, Time};
use hdrhistogram::Histogram;
use miette::IntoDiagnostic;

/// The longest latency that is distinguished, in nanoseconds: a minute.
const LONGEST_NS: u64 = 60_000_000_000;
/// Gaps that are drawn at most; they come again after that. Four bytes each.
const GAPS_MAX: usize = 1 << 22;

/// When packets are due: a Poisson process, whatever becomes of the packets before.
///
/// The gaps are drawn beforehand, because the look-up holds the lock of the queue.
#[derive(Debug)]
pub struct Arrivals {
    /// Gaps, as multiples of their mean.
    gaps: Vec<f32>,
    /// Which one is next.
    gap: usize,
    mean: Duration,
    length: Duration,
    next: Time,
    end: Time,
    /// Whether there has been a packet: there is one at least.
    any: bool,
}

impl Arrivals {
    /// `rate` packets per second for `length`, and one packet at least, when they have [begun](Arrivals::begin).
    pub fn new(rate: f64, length: Duration, seed: u64) -> Arrivals {
        let mut random = Random::seeded(seed);
        // Twice what comes in the mean, and some where that is little.
        let count = (2.0 * rate * length.as_secs()) as usize;
        let gaps = (0..count.clamp(1_024, GAPS_MAX)).map(|_| -random.unit().ln() as f32).collect();
        let mean = Duration::from_secs(1.0 / rate);
        Arrivals { gaps, gap: 0, mean, length, next: Time::MAX, end: Time::MAX, any: false }
    }

    /// The same, from `start` on: to draw them takes a while.
    #[must_use]
    pub fn begin(self, start: Time) -> Arrivals {
        let mut all = Arrivals { next: start, end: start + self.length, ..self };
        all.step();
        all
    }

    /// The next packet's time, if that is not after `now`.
    #[inline]
    pub fn due(&mut self, now: Time) -> Option<Time> {
        if self.next > now || self.is_over() {
            return None;
        }
        let due = self.next;
        self.any = true;
        self.step();
        Some(due)
    }

    /// Whether all packets have been due.
    pub fn is_over(&self) -> bool {
        self.any && self.next >= self.end
    }

    fn step(&mut self) {
        let gap = f64::from(self.gaps[self.gap]) * self.mean.0 as f64;
        self.gap = (self.gap + 1) % self.gaps.len();
        self.next = self.next + Duration(gap as u64);
    }
}

/// Latencies of one round.
pub struct Latencies {
    histogram: Histogram<u64>,
}

impl Latencies {
    /// None so far; three digits are kept of each.
    pub fn new() -> miette::Result<Latencies> {
        Ok(Latencies { histogram: Histogram::new_with_max(LONGEST_NS, 3).into_diagnostic()? })
    }

    /// Adds one.
    #[inline]
    pub fn add(&mut self, latency: Duration) {
        self.histogram.saturating_record(latency.as_nanos().max(1));
    }

    /// Adds all of another's.
    pub fn add_all(&mut self, others: &Latencies) {
        // Both distinguish the same, so that none is beyond what this one takes.
        let _ = self.histogram.add(&others.histogram);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Their mean in seconds; NaN without any.
    pub fn mean(&self) -> f64 {
        if self.count() == 0 { f64::NAN } else { self.histogram.mean() / 1e9 }
    }

    /// What `share` of them are below, in seconds; NaN without any.
    pub fn quantile(&self, share: f64) -> f64 {
        match self.count() {
            0 => f64::NAN,
            _ => self.histogram.value_at_quantile(share) as f64 / 1e9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_come_at_the_rate_and_scatter_as_a_poisson_process() {
        let start = Time::ZERO + Duration::from_millis(5);
        let mut arrivals = Arrivals::new(1e6, Duration::from_millis(100), 7).begin(start);
        assert_eq!(arrivals.due(start), None);
        let times: Vec<Time> = std::iter::from_fn(|| arrivals.due(Time::MAX)).collect();
        assert!(arrivals.is_over());
        assert!((99_000..=101_000).contains(&times.len()), "{}", times.len());
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]) && times[0] > start);
        // An exponential gap is longer than its mean in 1 case of e.
        let long = times.windows(2).filter(|pair| pair[1].since(pair[0]) > Duration::from_micros(1)).count();
        let share = long as f64 / times.len() as f64;
        assert!((share - (-1.0f64).exp()).abs() < 0.01, "{share}");
    }

    #[test]
    fn there_is_a_packet_however_short_the_time() {
        let mut arrivals = Arrivals::new(1.0, Duration::from_nanos(1), 7).begin(Time::ZERO);
        assert!(!arrivals.is_over() && arrivals.due(Time::MAX).is_some());
        assert!(arrivals.is_over() && arrivals.due(Time::MAX).is_none());
    }

    #[test]
    fn quantiles_are_those_of_the_latencies() {
        let mut latencies = Latencies::new().unwrap();
        assert!(latencies.quantile(0.5).is_nan());
        (1..=1000).for_each(|us| latencies.add(Duration::from_micros(us)));
        assert!((latencies.quantile(0.5) - 500e-6).abs() < 1e-6);
        assert!((latencies.quantile(0.99) - 990e-6).abs() < 1e-6);
        assert!((latencies.mean() - 500.5e-6).abs() < 1e-6);
        assert_eq!(latencies.count(), 1000);
    }
}
