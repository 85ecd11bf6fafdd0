//! What the running core does besides crypto: receiving, preparing, completing, sending. It is load as crypto is, and
//! the scheduler is told of it.
//!
//! A packet whose crypto is done elsewhere costs more of it than one that stays: it has a slot, and its bytes and
//! its job travel between the caches of two cores. So two terms are fitted to the time that is neither crypto nor
//! waiting: one for every packet, and one more for each that is handed over.

use forebay_time::Duration;

use crate::clock::Clock;

/// Packets between two measurements.
const EVERY: u64 = 2_048;
/// What a measurement is worth after the next.
const KEEP: f64 = 0.9;
/// How firmly the term of every packet stays where it is, as a share of what the measurements say, ...
const FIRM: f64 = 0.5;
/// ... and that of those handed over: what cannot be told apart is theirs, because packets that stay are measured
/// by themselves as long as none is handed over.
const LOOSE: f64 = 0.01;

/// Measures the time of the running thread that is neither crypto nor waiting.
#[derive(Debug, Default)]
pub struct Moving {
    packets: u64,
    handed_over: u64,
    /// Of the time since the last measurement: crypto in place, handing jobs over and taking them back, turns in
    /// which nothing moved.
    accounted: Duration,
    /// The thread's time then.
    since: Option<Duration>,
    /// Faded sums over the measurements of packets, packets handed over and time.
    sums: Sums,
    /// Picoseconds a packet, and more for one that is handed over.
    each: f64,
    more: f64,
}

#[derive(Debug, Default)]
struct Sums {
    each_each: f64,
    each_more: f64,
    more_more: f64,
    each_time: f64,
    more_time: f64,
}

impl Moving {
    /// The time a packet.
    pub fn per_packet(&self) -> Duration {
        Duration(self.each as u64)
    }

    /// How much more a packet costs that is handed over.
    pub fn per_handed_over(&self) -> Duration {
        Duration(self.more as u64)
    }

    /// Time that is not for moving packets.
    #[inline]
    pub fn account(&mut self, time: Duration) {
        self.accounted += time;
    }

    /// Counts packets that are handed over.
    #[inline]
    pub fn hand_over(&mut self, packets: usize) {
        self.handed_over += packets as u64;
    }

    /// Counts packets that are admitted; whether there are new figures.
    #[inline]
    pub fn admit(&mut self, packets: usize, clock: Clock) -> bool {
        self.packets += packets as u64;
        self.packets >= EVERY && self.measure(clock)
    }

    #[cold]
    fn measure(&mut self, clock: Clock) -> bool {
        let now = clock.running();
        let since = self.since.replace(now);
        let packets = std::mem::take(&mut self.packets) as f64;
        let handed_over = std::mem::take(&mut self.handed_over) as f64;
        let accounted = std::mem::take(&mut self.accounted);
        let Some(since) = since else { return false };
        self.learn(packets, handed_over, ((now - since) - accounted).0 as f64);
        true
    }

    fn learn(&mut self, packets: f64, handed_over: f64, time: f64) {
        let sums = &mut self.sums;
        let add = |sum: &mut f64, product: f64| *sum = KEEP * *sum + product;
        add(&mut sums.each_each, packets * packets);
        add(&mut sums.each_more, packets * handed_over);
        add(&mut sums.more_more, handed_over * handed_over);
        add(&mut sums.each_time, packets * time);
        add(&mut sums.more_time, handed_over * time);
        if self.each == 0.0 && handed_over == 0.0 {
            self.each = time / packets;
            return;
        }
        // Least squares, held to what is known by ridges of different firmness.
        let firm = FIRM * sums.each_each;
        let loose = LOOSE * sums.each_each;
        let (a, b, c) = (sums.each_each + firm, sums.each_more, sums.more_more + loose);
        let (u, v) = (sums.each_time + firm * self.each, sums.more_time + loose * self.more);
        let determinant = a * c - b * b;
        self.more = ((a * v - b * u) / determinant).max(0.0);
        self.each = ((u - b * self.more) / a).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(moving: &mut Moving, rounds: usize, share: f64, each: f64, more: f64) {
        for _ in 0..rounds {
            moving.learn(2_048.0, 2_048.0 * share, 2_048.0 * (each + share * more));
        }
    }

    #[test]
    fn what_a_packet_costs_is_told_from_what_one_costs_that_is_handed_over() {
        let mut moving = Moving::default();
        learn(&mut moving, 20, 0.0, 40.0, 0.0);
        assert!((39.0..41.0).contains(&moving.each) && moving.more == 0.0, "{moving:?}");
        // From then on half of them are: the difference is theirs.
        learn(&mut moving, 100, 0.5, 40.0, 200.0);
        assert!((38.0..60.0).contains(&moving.each), "{moving:?}");
        assert!((150.0..210.0).contains(&moving.more), "{moving:?}");
        // And still where the share changes.
        learn(&mut moving, 100, 0.1, 40.0, 200.0);
        assert!((38.0..60.0).contains(&moving.each), "{moving:?}");
        learn(&mut moving, 100, 0.0, 80.0, 200.0);
        assert!((79.0..81.0).contains(&moving.each), "{moving:?}");
    }
}
