//! Evaluates the header of sub-type 1: round-trip time, loss event rate and the rate that follows from them (RFC 9347
//! 3 and appendix B, RFC 5348).
//!
//! Each end of a tunnel keeps one [`Congestion`], whichever SAs the tunnel has in turn: it is told what arrives, says what to send, and
//! computes the rate that a TCP flow would have, to which a fixed rate yields.

use forebay_time::{Duration, PS_PER_S, Time};
use forebay_wire::aggfrag::{self, CongestionInfo};

use super::deaggregator::Seen;

/// Loss intervals that count, and their weights in fifths (RFC 5348 5.4).
const WEIGHTS: [u64; 8] = [5, 5, 5, 5, 4, 3, 2, 1];

/// One end's knowledge of the path.
#[derive(Debug, Default)]
pub struct Congestion {
    losses: LossHistory,
    /// Payloads that have arrived, and that are known to be lost.
    position: u64,
    /// The peer's last `t_val`, and when it first arrived.
    echo: Option<(u32, Time)>,
    /// The last of our `t_val` that the peer has returned, and when it first did.
    answered: Option<(u32, Time)>,
    /// Our estimate of the round-trip time.
    rtt: Option<Duration>,
    /// The peer's, by which its losses are grouped.
    peer_rtt: Duration,
    /// The inverse of the loss event rate that the peer sees.
    peer_losses: Option<u32>,
    /// Our time between two payloads.
    transmit_delay: Duration,
    /// A payload arrived with congestion experienced.
    ecn: bool,
}

impl Congestion {
    /// Tells our time between two payloads.
    pub fn set_transmit_delay(&mut self, delay: Duration) {
        self.transmit_delay = delay;
    }

    /// Takes note of payloads that arrived together, and of those before them that did not. One that is marked with congestion
    /// experienced counts as lost although it is not (RFC 9347 3.1).
    pub fn payloads(&mut self, now: Time, seen: &Seen) {
        self.ecn |= seen.marked > 0;
        if seen.lost > 0 {
            self.losses.lost(now, self.position + 1, self.peer_rtt);
        }
        self.position += seen.lost + seen.payloads;
        if seen.marked > 0 {
            self.losses.lost(now, self.position, self.peer_rtt);
        }
        self.losses.received(self.position);
        if let Some(info) = &seen.info {
            self.received(now, info);
        }
    }

    /// The peer's congestion information arrived.
    fn received(&mut self, now: Time, info: &CongestionInfo) {
        if self.echo.is_none_or(|(t_val, _)| t_val != info.t_val) {
            self.echo = Some((info.t_val, now));
        }
        self.peer_rtt = micros(info.rtt);
        self.peer_losses = Some(info.loss_event_rate);
        let is_new = self.answered.is_none_or(|(t_echo, _)| t_echo != info.t_echo);
        if info.t_echo == 0 || !is_new {
            return;
        }
        self.answered = Some((info.t_echo, now));
        // The longest delay that the field can say may be any longer one.
        if info.echo_delay < aggfrag::MAX_DELAY {
            // A time that is still to come is of another worker, or of before a restart.
            let since = (clock(now).wrapping_sub(info.t_echo) as i32).max(0) as u32;
            // RFC 9347 3: the larger of what was measured and what both ends' spacing makes of it.
            let measured = since.saturating_sub(info.echo_delay);
            let spacing = micros(info.transmit_delay) + self.transmit_delay;
            let sample = micros(measured).max(spacing);
            // RFC 5348 4.3: an average that forgets a tenth at a time.
            self.rtt = Some(match self.rtt {
                Some(rtt) => Duration(rtt.0 / 10 * 9 + sample.0 / 10),
                None => sample,
            });
        }
    }

    /// Contents of the next header of sub-type 1.
    pub fn info(&self, now: Time) -> CongestionInfo {
        let since = |time: Time| in_micros(now.since(time));
        CongestionInfo {
            probing: false,
            ecn: self.ecn,
            loss_event_rate: self.losses.inverse_rate(),
            rtt: self.rtt.map_or(0, in_micros),
            echo_delay: self.echo.map_or(0, |(_, arrived)| since(arrived)),
            transmit_delay: in_micros(self.transmit_delay),
            t_val: clock(now),
            t_echo: self.echo.map_or(0, |(t_val, _)| t_val),
        }
    }

    /// Our estimate of the round-trip time, once there is one.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Payloads a second that may be sent where `most` are wanted: as many as a flow of TCP would send at the losses that the peer
    /// reports, and half of that for each four round trips in which it has returned nothing new (RFC 9347 2.4.2).
    pub fn allowed_rate(&self, now: Time, most: f64) -> f64 {
        let rate = self.tcp_rate().map_or(most, |rate| rate.min(most));
        let (Some((_, answered)), Some(rtt)) = (self.answered, self.rtt) else { return rate };
        let halvings = now.since(answered).0 / (4 * rtt.0.max(Duration::from_millis(1).0));
        rate / 2.0_f64.powi(halvings.min(64) as i32)
    }

    /// RFC 9347 appendix B, RFC 5348 3.1; `None` while there is no estimate or no loss.
    fn tcp_rate(&self) -> Option<f64> {
        let rtt = self.rtt?.as_secs();
        let p = 1.0 / f64::from(self.peer_losses.filter(|&inverse| inverse > 0)?);
        let timeouts = 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
        Some(1.0 / (rtt * ((2.0 * p / 3.0).sqrt() + timeouts)))
    }
}

/// Where the last loss events began, for the weighted average of the intervals between them.
#[derive(Debug, Default)]
struct LossHistory {
    /// First sequence number of the current interval, and of those before it: latest first.
    begins: [u64; WEIGHTS.len() + 1],
    events: usize,
    /// When the current event began.
    since: Time,
    highest: u64,
}

impl LossHistory {
    /// `sequence` was lost; losses within a round-trip time of an event's first belong to it
    /// (RFC 5348 5.2).
    fn lost(&mut self, now: Time, sequence: u64, rtt: Duration) {
        if self.events > 0 && now.since(self.since) <= rtt {
            return;
        }
        self.begins.rotate_right(1);
        self.begins[0] = sequence;
        self.events = (self.events + 1).min(self.begins.len());
        self.since = now;
        self.highest = self.highest.max(sequence);
    }

    /// `sequence` arrived.
    fn received(&mut self, sequence: u64) {
        self.highest = self.highest.max(sequence);
    }

    /// The inverse of the loss event rate, a mean interval in packets rounded down, at least 1; zero
    /// without loss.
    fn inverse_rate(&self) -> u32 {
        if self.events == 0 {
            return 0;
        }
        let open = self.highest - self.begins[0] + 1;
        // What precedes the first event counts as an interval that began with the first packet.
        let closed = |n: usize| match n + 1 < self.events {
            true => self.begins[n].saturating_sub(self.begins[n + 1]),
            false => self.begins[n].saturating_sub(1),
        };
        let count = self.events.min(WEIGHTS.len());
        let weigh = |intervals: &dyn Fn(usize) -> u64, count: usize| -> u64 {
            let (mut sum, mut weights) = (0u64, 0u64);
            for (n, weight) in WEIGHTS.iter().enumerate().take(count) {
                sum = sum.saturating_add(intervals(n).saturating_mul(*weight));
                weights += weight;
            }
            sum / weights
        };
        // RFC 5348 5.4: the open interval counts only if it makes the mean longer.
        let without = weigh(&closed, count);
        let with = weigh(&|n| if n == 0 { open } else { closed(n - 1) }, count);
        u32::try_from(without.max(with).max(1)).unwrap_or(u32::MAX)
    }
}

/// The microseconds of a clock that wraps, never zero, which says "none".
fn clock(now: Time) -> u32 {
    ((now.0 / (PS_PER_S / 1_000_000)) as u32).max(1)
}

fn micros(us: u32) -> Duration {
    Duration::from_micros(us.into())
}

fn in_micros(length: Duration) -> u32 {
    u32::try_from(length.as_nanos() / 1_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rtt_is_what_the_echo_says_less_its_delay() {
        let (mut near, mut far) = (Congestion::default(), Congestion::default());
        let at = |ms| Time(0) + Duration::from_millis(ms);
        near.set_transmit_delay(Duration::from_millis(1));
        far.set_transmit_delay(Duration::from_millis(2));
        // There in 10 ms, 5 ms over there, back in 20 ms.
        far.received(at(110), &near.info(at(100)));
        near.received(at(135), &far.info(at(115)));
        assert_eq!(near.rtt(), Some(Duration::from_millis(30)));
        assert_eq!(near.info(at(140)).rtt, 30_000);
        // The same value again does not move the time of its first arrival.
        far.received(at(112), &near.info(at(100)));
        assert_eq!(far.info(at(115)).echo_delay, 5_000);
        // Two slow tunnels on a short path: what their spacing adds up to.
        let mut slow = Congestion::default();
        slow.set_transmit_delay(Duration::from_millis(40));
        far.received(at(201), &slow.info(at(200)));
        slow.received(at(202), &far.info(at(201)));
        assert_eq!(slow.rtt(), Some(Duration::from_millis(42)));
    }

    #[test]
    fn a_steady_loss_of_one_in_a_hundred() {
        let mut history = LossHistory::default();
        assert_eq!(history.inverse_rate(), 0);
        for sequence in 1..=2_000u64 {
            let now = Time(0) + Duration::from_millis(sequence);
            match sequence % 100 {
                0 => history.lost(now, sequence, Duration::from_millis(10)),
                // Within a round-trip time: the same event.
                5 if sequence > 5 => history.lost(now, sequence, Duration::from_millis(10)),
                _ => history.received(sequence),
            }
        }
        assert_eq!(history.inverse_rate(), 100);
        // By hand (RFC 5348 5.4): the open interval is 1,001 long and has 5 of 30 weights.
        history.received(3_000);
        assert_eq!(history.inverse_rate(), (1_001 * 5 + 100 * 25) / 30);
    }

    #[test]
    fn the_throughput_equation_by_hand() {
        let mut one = Congestion { rtt: Some(Duration::from_millis(100)), ..Congestion::default() };
        assert_eq!(one.allowed_rate(Time(0), 1e6), 1e6);
        one.peer_losses = Some(100);
        // p = 0.01: sqrt(2p/3) = 0.0816497, 12 sqrt(3p/8) p (1 + 32 p^2) = 0.0073720.
        let expected = 1.0 / (0.1 * (0.081_649_7 + 0.007_372_0));
        assert!((one.allowed_rate(Time(0), 1e6) / expected - 1.0).abs() < 1e-4);
        assert_eq!(one.allowed_rate(Time(0), 10.0), 10.0);
        // Four round trips without an answer, and eight.
        let at = |ms| Time(0) + Duration::from_millis(ms);
        one.answered = Some((1, at(1_000)));
        for (ms, parts) in
            [(1_000, 1.0), (1_399, 1.0), (1_400, 2.0), (1_800, 4.0), (600_000, 2.0_f64.powi(64))]
        {
            assert!((one.allowed_rate(at(ms), 1e6) * parts / expected - 1.0).abs() < 1e-4, "{ms}");
        }
    }

    #[test]
    fn an_echo_from_the_future_or_of_long_ago_is_no_round_trip() {
        let at = |ms| Time(0) + Duration::from_millis(ms);
        let mut one = Congestion { rtt: Some(Duration::from_millis(30)), ..Congestion::default() };
        one.received(at(100), &CongestionInfo { t_echo: clock(at(101)), ..one_info() });
        assert_eq!(one.rtt(), Some(Duration::from_millis(27)));
        let late = CongestionInfo { t_echo: clock(at(100)), echo_delay: aggfrag::MAX_DELAY, ..one_info() };
        one.received(at(60_000), &late);
        assert_eq!(one.rtt(), Some(Duration::from_millis(27)));
        // Only a new one is an answer.
        assert_eq!(one.answered, Some((clock(at(100)), at(60_000))));
        one.received(at(70_000), &late);
        assert_eq!(one.answered, Some((clock(at(100)), at(60_000))));
    }

    #[test]
    fn a_new_round_trip_counts_for_a_tenth() {
        let at = |ms| Time(0) + Duration::from_millis(ms);
        let mut one = Congestion { rtt: Some(Duration::from_millis(30)), ..Congestion::default() };
        let echo = |sent| CongestionInfo { t_echo: clock(at(sent)), echo_delay: 5_000, ..one_info() };
        one.received(at(255), &echo(200));
        assert_eq!(one.rtt(), Some(Duration::from_millis(27 + 5)));
        // Without an echo nothing is measured.
        one.received(at(300), &one_info());
        assert_eq!(one.rtt(), Some(Duration::from_millis(32)));
        assert_eq!(one.peer_losses, Some(7));
    }

    fn one_info() -> CongestionInfo {
        CongestionInfo { loss_event_rate: 7, ..CongestionInfo::default() }
    }

    #[test]
    fn what_did_not_arrive_and_what_was_marked_are_losses() {
        let at = |ms| Time(0) + Duration::from_millis(ms);
        let mut one = Congestion::default();
        let seen = |payloads, lost, marked| Seen { payloads, lost, marked, ..Seen::default() };
        (1..10).for_each(|_| one.payloads(at(1), &seen(1, 0, 0)));
        assert_eq!((one.info(at(1)).loss_event_rate, one.info(at(1)).ecn), (0, false));
        // The first of the two that are missing before the 12th ends an interval of 9; the open one has 3.
        one.payloads(at(2), &seen(1, 2, 0));
        assert_eq!((one.info(at(2)).loss_event_rate, one.info(at(2)).ecn), (9, false));
        // A mark at the 20th ends one of 10: (10 + 9) / 2.
        one.payloads(at(3), &seen(8, 0, 1));
        assert_eq!((one.info(at(3)).loss_event_rate, one.info(at(3)).ecn), (9, true));
        assert_eq!((one.losses.events, &one.losses.begins[..2]), (2, &[20, 10][..]));
    }
}
