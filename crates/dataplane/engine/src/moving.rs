//! The work of the running core besides cryptography: receiving, preparing, completing, sending. It is load like the
//! cryptography, and it is reported to the scheduler.
//!
//! A packet that is processed elsewhere costs the running core more than one that stays: it has a slot, and its bytes
//! and its job travel between the caches of two cores. So the time that is neither cryptography nor waiting has two
//! terms. One is for every packet, measured while almost none is handed over; the other is for each packet that is
//! handed over, measured while many are. Between these cases nothing is learnt, because the cost of a few packets
//! cannot be distinguished from noise. To measure the two terms separately, the running core keeps all packets for a
//! short time at the start and now and then.

use forebay_time::Duration;

use crate::clock::Clock;

/// Packets between two measurements.
const EVERY: u64 = 2_048;
/// Packets that the running core keeps for a measurement: twice as many at the start, where the first of them find cold
/// caches, and later ...
const ALONE: u64 = 512;
/// ... each time that so many have been moved.
const ALONE_EVERY: u64 = 1 << 18;
/// A new measurement counts for one in so many.
const FADES: f64 = 10.0;
/// With fewer than one in so many packets handed over, a measurement is of packets that stay.
const FEW: f64 = 64.0;
/// With more than one in so many handed over, a measurement gives the additional cost of those packets.
const MANY: f64 = 8.0;
/// What is left of that term after each measurement of packets that stay: a cost that keeps packets from being handed
/// over is tried again some time.
const FORGETS: f64 = 0.995;

/// Measures the time of the running thread that is neither crypto nor waiting.
#[derive(Debug)]
pub struct Moving {
    packets: u64,
    /// Packets that the running core is still to keep, and packets until it is to keep some again.
    alone: u64,
    until_alone: u64,
    dispatched: u64,
    /// Of the time since the last measurement: crypto in place, handing jobs over and taking them back, turns in
    /// which nothing moved.
    accounted: Duration,
    /// The thread's time then.
    since: Option<Duration>,
    /// Picoseconds a packet, and more for one that is handed over.
    each: f64,
    more: f64,
}

impl Default for Moving {
    fn default() -> Moving {
        Moving {
            packets: 0,
            alone: 2 * ALONE,
            until_alone: ALONE_EVERY,
            dispatched: 0,
            accounted: Duration::ZERO,
            since: None,
            each: 0.0,
            more: 0.0,
        }
    }
}

impl Moving {
    /// Whether the running core is to keep all packets, so that it can be measured what they cost.
    #[inline]
    pub fn keeps_all(&self) -> bool {
        self.alone > 0
    }

    /// The time a packet.
    pub fn per_packet(&self) -> Duration {
        Duration(self.each as u64)
    }

    /// How much more a packet costs that is handed over.
    pub fn per_dispatched(&self) -> Duration {
        Duration(self.more as u64)
    }

    /// Time that is not for moving packets.
    #[inline]
    pub fn account(&mut self, time: Duration) {
        self.accounted += time;
    }

    /// Counts packets that are handed over.
    #[inline]
    pub fn dispatch(&mut self, packets: usize) {
        self.dispatched += packets as u64;
    }

    /// Counts packets that are admitted; whether there are new figures.
    #[inline]
    pub fn admit(&mut self, packets: usize, clock: Clock) -> bool {
        let packets = packets as u64;
        self.packets += packets;
        if self.alone > 0 {
            self.alone = self.alone.saturating_sub(packets);
            return self.packets >= ALONE && self.measure(clock);
        }
        self.until_alone = self.until_alone.saturating_sub(packets);
        if self.until_alone == 0 {
            // What is measured next is to be of packets that stay only.
            let measured = self.measure(clock);
            (self.alone, self.until_alone) = (ALONE, ALONE_EVERY);
            return measured;
        }
        self.packets >= EVERY && self.measure(clock)
    }

    #[cold]
    fn measure(&mut self, clock: Clock) -> bool {
        let now = clock.running();
        let since = self.since.replace(now);
        let packets = std::mem::take(&mut self.packets) as f64;
        let dispatched = std::mem::take(&mut self.dispatched) as f64;
        let accounted = std::mem::take(&mut self.accounted);
        let Some(since) = since else { return false };
        self.learn(packets, dispatched, ((now - since) - accounted).0 as f64);
        true
    }

    fn learn(&mut self, packets: f64, dispatched: f64, time: f64) {
        // Measurements of packets that all stay are few where many are handed over.
        let fades = if dispatched == 0.0 { FADES / 4.0 } else { FADES };
        let fade = |mean: &mut f64, new: f64| *mean += (new - *mean) / fades;
        let mean = (time - dispatched * self.more).max(0.0) / packets;
        if self.each == 0.0 {
            self.each = mean;
        } else if dispatched * FEW <= packets {
            fade(&mut self.each, mean);
            self.more *= FORGETS;
        } else if dispatched * MANY >= packets {
            let rest = time - packets * self.each;
            fade(&mut self.more, rest.max(0.0) / dispatched);
            if rest < 0.0 {
                fade(&mut self.each, time / packets);
            }
        }
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
        learn(&mut moving, 50, 0.0, 40.0, 0.0);
        assert!((39.0..41.0).contains(&moving.each) && moving.more == 0.0, "{moving:?}");
        // From then on half of them are: the difference is theirs.
        learn(&mut moving, 100, 0.5, 40.0, 200.0);
        assert!((39.0..41.0).contains(&moving.each), "{moving:?}");
        assert!((190.0..210.0).contains(&moving.more), "{moving:?}");
        // And still where the share changes.
        learn(&mut moving, 100, 0.2, 40.0, 200.0);
        assert!((190.0..210.0).contains(&moving.more), "{moving:?}");
        // What was too dear to be chosen is forgotten in time.
        learn(&mut moving, 1_000, 0.0, 80.0, 200.0);
        assert!((79.0..81.0).contains(&moving.each) && moving.more < 10.0, "{moving:?}");
    }

    #[test]
    fn the_noise_of_many_packets_is_not_blamed_on_a_few() {
        let mut moving = Moving::default();
        // The first packets find cold caches.
        learn(&mut moving, 1, 0.03, 4_000.0, 0.0);
        for round in 0..200 {
            let noise = if round % 2 == 0 { 0.9 } else { 1.1 };
            learn(&mut moving, 1, if round % 8 == 0 { 0.03 } else { 0.0 }, 1_000.0 * noise, 200.0);
        }
        assert!((950.0..1_100.0).contains(&moving.each) && moving.more < 300.0, "{moving:?}");
    }
}
