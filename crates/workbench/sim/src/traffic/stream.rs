//! Packets as they arrive, one after the other and in constant memory.

use std::sync::Arc;

use forebay_time::{Duration, Time};

use super::sizes::{Drawer, Run};
use super::{Arrivals, DrawnClass, Gaps, Line, Source, Trace, Traffic};
use crate::random::{self, Random};

/// A packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// b: payload and overhead.
    pub bytes: u32,
    /// Security association.
    pub sa: u32,
    /// Service class.
    pub class: u8,
    /// Suite, a bit index.
    pub suite: u8,
}

/// The packets of a run; clones go on alike.
#[derive(Clone, Debug)]
pub struct Stream {
    origin: Origin,
    /// Packets so far, and the most there can be.
    next: u64,
    end: u64,
    overhead: u32,
    clock: Clock,
    sas: Vec<u64>,
    sa_random: Random,
    sa_run: Option<Run>,
    classes: Option<Box<Classes>>,
    suites: Vec<u8>,
}

/// Classes being drawn.
#[derive(Clone, Debug)]
struct Classes {
    borders: Vec<u64>,
    sizes: Vec<Option<Drawer>>,
    random: Random,
}

#[derive(Clone, Debug)]
enum Origin {
    Trace(Arc<Trace>),
    Drawn(Drawer),
}

#[derive(Clone, Debug)]
enum Clock {
    Stamps,
    BackToBack(Line),
    Poisson { mean: Duration, now: u64, random: Random },
    OnOff { line: Line, on: Duration, off: Duration, left: u64, begun: u64, now: u64, random: Random },
    Gaps { gaps: Arc<Gaps>, now: u64, last: Option<u16>, random: Random },
}

impl Stream {
    /// The packets of this traffic with this seed.
    pub fn new(traffic: &Traffic, seed: u64) -> Stream {
        let limit = traffic.packets.unwrap_or(u64::MAX);
        let (origin, end) = match &traffic.source {
            Source::Trace(trace) => (Origin::Trace(trace.clone()), limit.min(trace.len() as u64)),
            Source::Drawn(sizes) => {
                (Origin::Drawn(Drawer::new(sizes.clone(), random::stream(seed, "sizes"))), limit)
            }
        };
        let random = random::stream(seed, "arrivals");
        let clock = match &traffic.arrivals {
            Arrivals::Stamps => Clock::Stamps,
            Arrivals::BackToBack(rate) => Clock::BackToBack(Line::new(*rate)),
            Arrivals::Poisson(mean) => Clock::Poisson { mean: *mean, now: 0, random },
            &Arrivals::OnOff { rate, on, off } => {
                let mut random = random;
                let left = exponential(&mut random, on);
                Clock::OnOff { line: Line::new(rate), on, off, left, begun: 0, now: 0, random }
            }
            Arrivals::Gaps(gaps) => Clock::Gaps { gaps: gaps.clone(), now: 0, last: None, random },
        };
        Stream {
            origin,
            next: 0,
            end,
            overhead: traffic.overhead,
            clock,
            sas: traffic.sas.clone(),
            sa_random: random::stream(seed, "sas"),
            sa_run: (traffic.sa_run_length > 1.0).then(|| Run::new(traffic.sa_run_length)),
            classes: (!traffic.classes.is_empty()).then(|| Box::new(Classes::new(&traffic.classes, seed))),
            suites: traffic.suites.clone(),
        }
    }

    /// How many packets there will have been at the end.
    pub fn packets(&self) -> u64 {
        self.end
    }

    #[inline]
    fn draw_sa(&mut self) -> u32 {
        if self.sa_run.is_some() { self.draw_sa_in_runs() } else { self.fresh_sa() }
    }

    #[inline(never)] // few scenarios have runs, and every packet comes by here
    fn draw_sa_in_runs(&mut self) -> u32 {
        if let Some(sa) = self.sa_run.as_mut().and_then(Run::goes_on) {
            return sa;
        }
        let sa = self.fresh_sa();
        if let Some(run) = &mut self.sa_run {
            run.begin(sa, &mut self.sa_random);
        }
        sa
    }

    #[inline]
    fn fresh_sa(&mut self) -> u32 {
        let total = self.sas[self.sas.len() - 1];
        let at = self.sa_random.below(total);
        if total == self.sas.len() as u64 {
            return at as u32;
        }
        self.sas.partition_point(|&border| border <= at) as u32
    }
}

impl Iterator for Stream {
    type Item = Arrival;

    #[inline(always)]
    fn next(&mut self) -> Option<Arrival> {
        if self.next == self.end {
            return None;
        }
        let number = self.next as usize;
        self.next += 1;
        let mut sa = if self.sas.is_empty() { 0 } else { self.draw_sa() };
        let (mut size, stamp, mut class) = match &mut self.origin {
            Origin::Drawn(drawer) => (drawer.draw(sa), 0, 0),
            Origin::Trace(trace) => {
                if self.sas.is_empty() {
                    sa = trace.sas.get(number).copied().unwrap_or(0);
                }
                (
                    trace.sizes[number],
                    trace.times.get(number).copied().unwrap_or(0),
                    trace.classes.get(number).copied().unwrap_or(0),
                )
            }
        };
        if let Some(classes) = &mut self.classes {
            class = classes.draw(&mut size);
        }
        let bytes = size.saturating_add(self.overhead);
        let suite = if self.suites.len() == 1 {
            self.suites[0]
        } else {
            self.suites[sa as usize % self.suites.len()]
        };
        Some(Arrival { at: Time(self.clock.tick(stamp, bytes)), bytes, sa, class, suite })
    }
}

impl Classes {
    fn new(classes: &[DrawnClass], seed: u64) -> Classes {
        // Each class's sizes have a stream of their own: those of the others stay when one changes.
        let sizes = classes.iter().enumerate().map(|(number, class)| {
            let stream = || random::stream(seed, &format!("sizes of class {number}"));
            class.sizes.clone().map(|sizes| Drawer::new(sizes, stream()))
        });
        Classes {
            borders: classes.iter().map(|class| class.border).collect(),
            sizes: sizes.collect(),
            random: random::stream(seed, "classes"),
        }
    }

    /// Draws a packet's class, and its size anew if the class has sizes of its own.
    #[inline(never)]
    fn draw(&mut self, size: &mut u32) -> u8 {
        let at = self.random.below(self.borders[self.borders.len() - 1]);
        let class = self.borders.partition_point(|&border| border <= at);
        if let Some(drawer) = &mut self.sizes[class] {
            *size = drawer.draw(0);
        }
        class as u8
    }
}

impl Clock {
    /// When a packet of `bytes` bytes arrives.
    #[inline(always)]
    fn tick(&mut self, stamp: u64, bytes: u32) -> u64 {
        match self {
            Clock::Stamps => stamp,
            Clock::BackToBack(line) => {
                let at = line.now();
                line.send(bytes);
                at
            }
            Clock::Poisson { mean, now, random } => {
                let at = *now;
                *now = now.saturating_add(exponential(random, *mean));
                at
            }
            Clock::OnOff { line, on, off, left, begun, now, random } => {
                // The burst that ends before this packet begins is followed by a pause and another.
                let mut into = line.now() - *begun;
                while into >= *left {
                    *now = now.saturating_add(*left).saturating_add(exponential(random, *off));
                    *begun = line.now();
                    *left = exponential(random, *on).max(1);
                    into = 0;
                }
                line.send(bytes);
                now.saturating_add(into)
            }
            Clock::Gaps { gaps, now, last, random } => {
                let at = *now;
                *now = now.saturating_add(gaps.draw(last, random));
                at
            }
        }
    }
}

/// An exponential length of time, to the nearest picosecond.
fn exponential(random: &mut Random, mean: Duration) -> u64 {
    (random::exponential(random) * mean.0 as f64 + 0.5) as u64
}
