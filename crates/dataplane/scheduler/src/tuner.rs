//! A window that adapts its size and timeout to the traffic. Changing how touches this file only.
//!
//! Two questions decide, asked anew after every few hundred packets:
//!
//! * *What does waiting cost?* A packet waits in the window for free as long as it would wait in a
//!   queue anyway. So the timeout is the mean waiting time w that jobs met lately, and the window holds
//!   no more than arrives in that time. Where processors are idle, w is zero and nothing waits.
//! * *What does it bring?* Bundles of n packets save (1 - 1/n) of the setup a packet. n is found for all
//!   sizes at once, also larger ones than the present, from the distance of each packet to the one before
//!   it of its SA. The smallest size that brings nearly as much as any is taken.
//!
//! The size doubles at most once a decision, and falls as soon as waiting would cost.

use std::fmt;
use std::str::FromStr;

use forebay_time::{Duration, Time};

use crate::config::UnknownWord;
use crate::{ClassConfig, Item, Prediction, Work};

/// Whether a window's size and timeout stay as they are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Windowing {
    /// They do.
    #[default]
    Fixed,
    /// They follow the traffic, from a window of 1 up to the set size and timeout: a window grows
    /// while packets of few SAs, small ones above all, meet busy processors, and shrinks to 1 where
    /// nothing would be bundled or packets would wait for nothing else.
    Adaptive,
}

impl Windowing {
    /// Both.
    pub const ALL: [Windowing; 2] = [Windowing::Fixed, Windowing::Adaptive];

    /// The word it has in scenario and configuration files.
    pub fn word(&self) -> &'static str {
        match self {
            Windowing::Fixed => "fixed-window",
            Windowing::Adaptive => "adaptive-window",
        }
    }
}

impl fmt::Display for Windowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Windowing {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Windowing, UnknownWord> {
        UnknownWord::find("windowing", text, &Windowing::ALL, Windowing::word)
    }
}

/// Packets between two decisions at least: few enough to follow a change within milliseconds, enough
/// that a saving of a few per cent stands out.
const PERIOD: u64 = 256;
/// Share of a packet's service that bundling must save to be begun, and half of it to be kept up.
const WORTH: f64 = 0.02;
/// Of the best saving, what a smaller window must reach to be taken instead.
const NEARLY: f64 = 0.875;

/// Watches a class's packets and jobs, and sets its window.
#[derive(Debug)]
pub(crate) struct Tuner {
    /// The configured limits.
    most: usize,
    longest: Duration,
    max_bytes: u64,
    /// The present size is 2^step, or `most` if that is less.
    step: u32,
    last_arrival: Time,
    /// How long a packet may wait: at most the mean wait of the jobs of the last period.
    patience: Duration,
    /// When an SA was last seen, as the number of the packet; a newcomer takes another's place.
    seen: Box<[(u32, u64)]>,
    number: u64,
    period: Period,
}

/// What was seen since the last decision.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    began: Time,
    packets: u64,
    bytes: u64,
    /// Packets with an earlier one of their SA in the same block of 2^k packets, but of no smaller power.
    joins: [u64; 32],
    jobs: u64,
    placed: u64,
    init: Duration,
    service: Duration,
    wait: Duration,
}

impl Tuner {
    pub(crate) fn new(config: &ClassConfig) -> Tuner {
        // Eight places for each packet of the window, or the SAs of a busy gateway.
        let places = (8 * config.window).next_power_of_two().max(1_024);
        Tuner {
            most: config.window,
            longest: config.timeout.unwrap_or(Duration(u64::MAX)),
            max_bytes: config.max_bytes.unwrap_or(u64::MAX),
            step: 0,
            last_arrival: Time::ZERO,
            patience: Duration::ZERO,
            seen: vec![(0, 0); places].into(),
            // Far from the numbers that the empty table holds.
            number: 1 << 40,
            period: Period::default(),
        }
    }

    /// A packet came; gives the window's new size and timeout if they change.
    #[inline]
    pub(crate) fn arrived(&mut self, now: Time, item: &Item) -> Option<(usize, Duration)> {
        self.number += 1;
        let place = (item.sa.wrapping_mul(0x9E37_79B9) >> 8) as usize & (self.seen.len() - 1);
        let (sa, before) = std::mem::replace(&mut self.seen[place], (item.sa, self.number));
        if sa == item.sa {
            // The smallest power of two whose blocks have both in one.
            let power = u64::BITS - (before ^ self.number).leading_zeros();
            if let Some(joins) = self.period.joins.get_mut(power as usize) {
                *joins += 1;
            }
        }
        self.period.packets += 1;
        self.period.bytes += u64::from(item.bytes);
        let pause = now.since(self.last_arrival);
        self.last_arrival = now;
        if self.step > 0 && pause > self.patience {
            // No packet came for longer than a packet may wait, so that waiting for more is useless.
            self.step = 0;
            return Some((1, Duration::ZERO));
        }
        // A decision needs jobs: with a burst pushed first, it waits for the next packet after them.
        if self.period.packets < PERIOD.max(4 * self.most as u64) || self.period.jobs == 0 {
            return None;
        }
        self.decide(now)
    }

    /// A job was placed.
    #[inline(never)]
    pub(crate) fn placed(&mut self, work: &Work, prediction: &Prediction, init: Duration) {
        let period = &mut self.period;
        period.jobs += 1;
        period.placed += u64::from(work.packets);
        period.init += init;
        period.service += prediction.service;
        period.wait += prediction.wait;
    }

    fn size(&self, step: u32) -> usize {
        1usize.checked_shl(step).unwrap_or(self.most).min(self.most)
    }

    /// What the window is to be now.
    fn setting(&self) -> (usize, Duration) {
        (self.size(self.step), if self.step == 0 { Duration::ZERO } else { self.patience })
    }

    fn decide(&mut self, now: Time) -> Option<(usize, Duration)> {
        let period = std::mem::replace(&mut self.period, Period { began: now, ..Period::default() });
        let before = self.setting();
        self.patience = Duration(period.wait.0 / period.jobs).min(self.longest);
        let room = period.arrive_in(self.patience, now).saturating_add(1);

        let top = usize::BITS - (self.most - 1).leading_zeros();
        let highest = (0..=top).rev().find(|&step| self.size(step) as u64 <= room).unwrap_or(0);
        let saving = |step| period.saving(self.size(step), step, self.max_bytes);
        let best = (0..=highest).map(saving).fold(0.0, f64::max);
        let worth = if self.step == 0 { WORTH } else { WORTH / 2.0 };
        let target = match (0..=highest).find(|&step| saving(step) >= NEARLY * best) {
            Some(step) if best >= worth => step,
            _ => 0,
        };
        self.step = target.min(self.step + 1);
        let after = self.setting();
        (after != before).then_some(after)
    }
}

impl Period {
    /// Packets that arrive in `time` at the period's rate.
    fn arrive_in(&self, time: Duration, now: Time) -> u64 {
        let elapsed = u128::from(now.since(self.began).0);
        let expected = u128::from(self.packets) * u128::from(time.0);
        match expected.checked_div(elapsed) {
            Some(packets) => u64::try_from(packets).unwrap_or(u64::MAX),
            None if time == Duration::ZERO => 0,
            None => u64::MAX,
        }
    }

    /// The share of a packet's service that a window of `size`, about 2^step, saves against none.
    fn saving(&self, size: usize, step: u32, max_bytes: u64) -> f64 {
        // A reference meets every packet of its window, one of a block on the average only those of
        // half the block: so blocks of twice the size bundle as much.
        let joined: u64 = self.joins.iter().take(step as usize + 2).sum();
        let bundles = self.packets as f64 / (self.packets - joined) as f64;
        let fit = max_bytes as f64 * self.packets as f64 / self.bytes.max(1) as f64;
        let bundle = bundles.min(size as f64).min(fit).max(1.0);
        let init = self.init.0 as f64 / self.jobs as f64;
        let rest = (self.service - self.init).0 as f64 / self.placed as f64;
        if init > 0.0 { (1.0 - 1.0 / bundle) * init / (init + rest) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Job, Service, window::State, window::Window};

    fn config(window: usize) -> ClassConfig {
        ClassConfig { window, ..ClassConfig::new(Service::Strict) }
    }

    fn item(sa: u32) -> Item {
        Item { id: 0, sa, class: 0, suite: 0, bytes: 100 }
    }

    /// Jobs of one packet that wait `wait` and take 3, of which 1 is setup.
    fn place(tuner: &mut Tuner, wait: u64) {
        let prediction = Prediction { at: Time::ZERO, wait: Duration(wait), service: Duration(3) };
        tuner.placed(&Work::packet(100), &prediction, Duration(1));
    }

    #[test]
    fn words_read_back() {
        for windowing in Windowing::ALL {
            assert_eq!(windowing.to_string().parse(), Ok(windowing));
        }
        let error = "adaptive".parse::<Windowing>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown windowing `adaptive`; there are fixed-window, adaptive-window"
        );
    }

    #[test]
    fn one_sa_and_long_waits_double_the_window_each_period_up_to_its_limits() {
        let mut tuner = Tuner::new(&ClassConfig { timeout: Some(Duration(900)), ..config(12) });
        let mut settings = vec![];
        for number in 0..256 * 6 {
            place(&mut tuner, 1_000);
            settings.extend(tuner.arrived(Time(number), &item(7)));
        }
        // Up to 7/8 of what 12 save, 11/12: 8 save 7/8, which is more than 0.80.
        let sizes = [2, 4].map(|size| (size, Duration(900)));
        assert_eq!(settings[..2], sizes);
        assert_eq!(tuner.size(tuner.step), 8);
        // Two packets arrive in the time that jobs wait now: three are in the window at most.
        for number in 256 * 6..256 * 7 {
            place(&mut tuner, 2);
            settings.extend(tuner.arrived(Time(number), &item(7)));
        }
        assert_eq!(*settings.last().unwrap(), (2, Duration(2)));
        // A pause longer than that ends it at once.
        assert_eq!(tuner.arrived(Time(256 * 7 + 2), &item(7)), Some((1, Duration::ZERO)));
    }

    #[test]
    fn without_setup_or_company_or_waiting_there_is_no_window() {
        for (sas, wait, init) in [(1, 0, 1), (1 << 30, 1_000, 1), (1, 1_000, 0)] {
            let mut tuner = Tuner::new(&config(30));
            for number in 0..2_000u64 {
                let prediction = Prediction { at: Time::ZERO, wait: Duration(wait), service: Duration(3) };
                tuner.placed(&Work::packet(100), &prediction, Duration(init));
                assert_eq!(tuner.arrived(Time(number), &item(number as u32 % sas)).map(|set| set.0), None);
            }
        }
    }

    #[test]
    fn what_bundles_save_by_hand() {
        let mut joins = [0; 32];
        joins[..6].copy_from_slice(&[0, 30, 20, 10, 8, 16]);
        let (init, service) = (Duration(500), Duration(2_500));
        let period = Period {
            packets: 100,
            bytes: 10_000,
            joins,
            jobs: 50,
            placed: 100,
            init,
            service,
            ..Period::default()
        };
        // A setup is 10, the rest of a packet 20; 60 of 100 packets join others: bundles of 2.5.
        let is = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-12, "{found}, by hand {expected}")
        };
        is(period.saving(4, 2, u64::MAX), (1.0 - 1.0 / 2.5) / 3.0);
        is(period.saving(8, 3, u64::MAX), (1.0 - 1.0 / 3.125) / 3.0);
        is(period.saving(2, 2, u64::MAX), 0.5 / 3.0);
        // Of packets of 100 bytes, one and a half fit into 150.
        is(period.saving(4, 2, 150), 1.0 / 9.0);
        is(period.saving(4, 2, 50), 0.0);
        is(Period { init: Duration::ZERO, ..period }.saving(4, 2, u64::MAX), 0.0);

        let at = |began| Period { began: Time(began), packets: 256, ..Period::default() };
        assert_eq!(at(1_000).arrive_in(Duration(10), Time(1_512)), 5);
        assert_eq!(at(1_000).arrive_in(Duration(11), Time(1_001)), 11 * 256);
        assert_eq!(at(1_000).arrive_in(Duration(1), Time(1_000)), u64::MAX);
        assert_eq!(at(1_000).arrive_in(Duration::ZERO, Time(1_000)), 0);
        assert_eq!(at(1_000).arrive_in(Duration(u64::MAX), Time(1_001)), u64::MAX);
    }

    #[test]
    fn a_packet_joins_the_one_before_it_of_its_sa_in_the_smallest_block_with_both() {
        let mut tuner = Tuner::new(&config(8));
        // Packets 1 to 9: the blocks of two are 2-3, 4-5, ...; of four 4-7, 8-11; of eight 8-15.
        for (at, sa) in [1, 1, 1, 2, 1, 2, 3, 3, 4].into_iter().enumerate() {
            assert_eq!(tuner.arrived(Time(at as u64), &item(sa)), None);
        }
        // 2 and 3 are in one block of two; 4 and 6 in one of four; 1 and 2 too; 3 and 5, 7 and 8 in larger ones.
        let mut joins = [0; 32];
        (joins[1], joins[2], joins[3], joins[4]) = (1, 2, 1, 1);
        assert_eq!(tuner.period.joins, joins);
        assert_eq!((tuner.period.packets, tuner.period.bytes), (9, 900));
    }

    #[test]
    fn decisions_come_after_four_windows_and_256_packets_and_a_job() {
        let after = |window: usize, first_job: u64| {
            let mut tuner = Tuner::new(&config(window));
            let mut arrivals = 1..;
            let decided = arrivals.find(|&number| {
                if number >= first_job {
                    place(&mut tuner, 1_000_000);
                }
                tuner.arrived(Time(number), &item(7)).is_some()
            });
            decided.expect("it is worth it")
        };
        assert_eq!((after(8, 1), after(64, 1), after(65, 1), after(100, 1)), (256, 256, 260, 400));
        assert_eq!(after(8, 300), 300);
    }

    #[test]
    fn the_mean_wait_of_the_jobs_is_the_timeout() {
        let mut tuner = Tuner::new(&config(4));
        (0..128).for_each(|_| place(&mut tuner, 300));
        (0..128).for_each(|_| place(&mut tuner, 500));
        let settings: Vec<_> = (0..256).filter_map(|at| tuner.arrived(Time(at), &item(7))).collect();
        assert_eq!(settings, [(2, Duration(400))]);
        // As long as it is a packet may wait, and not longer.
        assert_eq!(tuner.arrived(Time(255 + 400), &item(7)), None);
        assert_eq!(tuner.arrived(Time(255 + 801), &item(7)), Some((1, Duration::ZERO)));
        assert_eq!(tuner.arrived(Time(255 + 9_000), &item(7)), None, "there is no window to end");
    }

    /// The estimate that the choice is made from, against what real windows do with the same packets.
    #[test]
    fn the_bundles_foreseen_are_those_that_windows_of_all_sizes_make() {
        // SAs drawn with equal and with unequal chances, and trains of one SA.
        let mut random = 1u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let equal: Vec<u32> = (0..4_000).map(|_| draw(100) as u32).collect();
        let unequal: Vec<u32> = (0..4_000).map(|_| (draw(30) * draw(30) / 10) as u32).collect();
        let trains: Vec<u32> = (0..500).flat_map(|_| vec![draw(100) as u32; 1 + draw(15) as usize]).collect();
        for sas in [equal, unequal, trains] {
            let mut tuner = Tuner::new(&config(1_000));
            for &sa in &sas {
                let _ = tuner.arrived(Time::ZERO, &item(sa));
            }
            place(&mut tuner, 0);
            for step in 1..7 {
                let mut window = Window::new(&config(1 << step));
                let (mut job, mut jobs) = (Job::with_capacity(64), 0);
                for &sa in &sas {
                    window.push(Time::ZERO, item(sa)).unwrap();
                    while window.state(Time::ZERO) == State::Ready {
                        window.take(&mut job);
                        jobs += 1;
                    }
                }
                let real = (sas.len() - window.len()) as f64 / f64::from(jobs);
                // Setup is a third: saving = (1 - 1/n) / 3.
                let foreseen = 1.0 / (1.0 - 3.0 * tuner.period.saving(1 << step, step, u64::MAX));
                assert!((foreseen / real - 1.0).abs() < 0.25, "{foreseen} for {real} with {}", 1 << step);
            }
        }
    }
}
