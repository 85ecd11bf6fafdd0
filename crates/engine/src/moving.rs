//! What the running core does besides crypto: receiving, preparing, completing, sending. It is load as crypto is, and
//! the scheduler is told of it.

use forebay_time::Duration;

use crate::clock::cpu_time;

/// Packets between two measurements.
const EVERY: u64 = 1_024;
/// A new mean counts for one in so many.
const FADES: u64 = 4;

/// Measures the time of the running thread that is neither crypto nor waiting.
#[derive(Debug, Default)]
pub struct Moving {
    packets: u64,
    /// Of the time since the last measurement: crypto in place, handing jobs over, turns in which nothing moved.
    accounted: Duration,
    /// The thread's time then.
    since: Option<Duration>,
    per_packet: Duration,
}

impl Moving {
    /// The mean time a packet.
    pub fn per_packet(&self) -> Duration {
        self.per_packet
    }

    /// Time that is not for moving packets.
    #[inline]
    pub fn account(&mut self, time: Duration) {
        self.accounted += time;
    }

    /// Counts packets; the new mean if there is one.
    #[inline]
    pub fn count(&mut self, packets: usize) -> Option<Duration> {
        self.packets += packets as u64;
        if self.packets < EVERY { None } else { self.measure() }
    }

    #[cold]
    fn measure(&mut self) -> Option<Duration> {
        let now = cpu_time();
        let since = self.since.replace(now);
        let packets = std::mem::take(&mut self.packets);
        let accounted = std::mem::take(&mut self.accounted);
        let mean = Duration(((now - since?) - accounted).0 / packets.max(1));
        let before = if self.per_packet.0 == 0 { mean } else { self.per_packet };
        self.per_packet = Duration((before.0 * (FADES - 1) + mean.0) / FADES);
        Some(self.per_packet)
    }
}
