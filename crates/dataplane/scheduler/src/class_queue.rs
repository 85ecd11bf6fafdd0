//! One service class's way through the scheduler: its input, and its job in hand.

use forebay_time::{Duration, Time};

use crate::burst::Burst;
use crate::tuner::Tuner;
use crate::window::{State, Window};
use crate::{ClassConfig, Item, Job, Prediction, Windowing};

/// Everything of a class that is not placed yet.
#[derive(Debug)]
pub(crate) struct ClassQueue {
    window: Window,
    /// The job at the head of everything, from the moment it is formed until it is placed.
    pub(crate) hand: Job,
    hand_full: bool,
    /// Where bursts are placed: the burst at hand, and a job of another suite that comes behind it.
    pub(crate) burst: Burst,
    next: Job,
    next_full: bool,
    /// Where the window is of one packet and bursts are placed, a packet joins the burst at once, up to this number of
    /// jobs. `fresh` of them are not counted yet.
    direct: usize,
    fresh: usize,
    /// Where the job in hand is to go, and since when that is settled.
    pub(crate) choice: Option<(usize, Time)>,
    /// Most jobs waiting in a queue that one of this class has joined.
    pub(crate) queue: usize,
    /// See [`ClassConfig::latency_bound`]; none is the longest time there is.
    pub(crate) bound: Duration,
    /// Only where the window adapts itself.
    tuner: Option<Box<Tuner>>,
}

impl ClassQueue {
    pub(crate) fn new(config: &ClassConfig, batch: usize) -> ClassQueue {
        let adaptive = config.windowing == Windowing::Adaptive && config.window > 1;
        let mut class_queue = ClassQueue {
            window: Window::new(config),
            hand: Job::with_capacity(config.window),
            hand_full: false,
            burst: Burst::with_capacity(if batch > 1 { batch } else { 0 }),
            next: Job::with_capacity(if batch > 1 { config.window } else { 0 }),
            next_full: false,
            direct: if batch > 1 && config.window == 1 { batch } else { 0 },
            fresh: 0,
            choice: None,
            queue: config.queue,
            bound: config.latency_bound.unwrap_or(Duration(u64::MAX)),
            tuner: adaptive.then(|| Box::new(Tuner::new(config))),
        };
        if adaptive {
            class_queue.window.resize(1, Some(Duration::ZERO));
        }
        class_queue
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, now: Time, item: Item) -> Result<(), Item> {
        if self.direct > 0 && self.push_run(now, std::slice::from_ref(&item)) > 0 {
            return Ok(());
        }
        self.window.push(now, item)?;
        if self.tuner.is_some() {
            self.tune(now, &item);
        }
        Ok(())
    }

    /// Whether nothing stands between a packet and the burst at hand.
    #[inline(always)]
    fn joins_burst(&self, item: &Item) -> bool {
        let fits =
            self.burst.left() == 0 || self.burst.len() < self.direct && self.burst.suite() == item.suite;
        self.direct > 0 && fits && self.window.len() == 0 && !self.next_full
    }

    /// Adds packets of one suite and class to the burst at hand, as far as nothing stands between; how many.
    #[inline]
    pub(crate) fn push_run(&mut self, now: Time, items: &[Item]) -> usize {
        let Some(first) = items.first().filter(|first| self.joins_burst(first)) else { return 0 };
        if self.burst.left() == 0 {
            self.burst.clear();
        }
        let most = self.room().min(self.direct - self.burst.len()).min(items.len());
        let same = |item: &&Item| item.suite == first.suite && item.class == first.class;
        let count = items[..most].iter().take_while(same).count();
        self.burst.push_packets(&items[..count], now);
        self.fresh += count;
        count
    }

    // Apart, so that a class without a tuner does not pay for it.
    #[inline(never)]
    fn tune(&mut self, now: Time, item: &Item) {
        if let Some((size, timeout)) = self.tuner.as_mut().and_then(|tuner| tuner.arrived(now, item)) {
            self.window.resize(size, Some(timeout));
        }
    }

    pub(crate) fn end(&mut self) {
        self.window.end();
    }

    /// What [`ClassQueue::fill_hand`] would find.
    #[inline]
    pub(crate) fn state(&self, now: Time) -> State {
        let at_hand = self.hand_full || self.next_full || self.burst.left() > 0;
        if at_hand { State::Ready } else { self.window.state(now) }
    }

    /// When the window's timeout passes; never if it is not that which the class waits for.
    pub(crate) fn due(&self) -> Time {
        let waits = self.hand_full || self.next_full || self.burst.left() > 0;
        if waits { Time::MAX } else { self.window.due() }
    }

    /// Takes the next job in hand unless there is one.
    #[inline(always)]
    pub(crate) fn fill_hand(&mut self, now: Time) -> State {
        if self.hand_full {
            return State::Ready;
        }
        let state = self.window.state(now);
        if state == State::Ready {
            self.window.take(&mut self.hand);
            self.hand_full = true;
        }
        state
    }

    /// Whether a job of the burst's suite may be waiting behind it.
    fn more(&self, now: Time) -> bool {
        if self.next_full {
            return self.next.head.suite == self.burst.suite();
        }
        self.window.state(now) == State::Ready
    }

    /// Fills the burst at hand: jobs of one suite, at most `batch`. How many jobs have joined it.
    pub(crate) fn fill_burst(&mut self, now: Time, batch: usize) -> (State, usize) {
        let fresh = std::mem::take(&mut self.fresh);
        if self.burst.left() == 0 {
            self.burst.clear();
        } else if self.burst.left() == batch || !self.more(now) {
            return (State::Ready, fresh);
        } else {
            self.burst.make_room();
        }
        let before = self.burst.len();
        let mut last = State::Ready;
        while self.burst.len() < batch {
            if !self.next_full {
                last = self.window.state(now);
                if last != State::Ready {
                    break;
                }
                self.window.take(&mut self.next);
                self.next_full = true;
            }
            if self.burst.len() > 0 && self.burst.suite() != self.next.head.suite {
                break;
            }
            self.burst.push(&self.next.head, self.next.items());
            self.next_full = false;
        }
        let taken = self.burst.len() - before + fresh;
        (if self.burst.len() > 0 { State::Ready } else { last }, taken)
    }

    /// The job in hand has left it; what it holds stays readable until the next is taken.
    #[inline]
    pub(crate) fn empty_hand(&mut self) {
        self.hand_full = false;
        self.choice = None;
    }

    /// The job in hand was placed where a job costs `init` before all else.
    #[inline]
    pub(crate) fn placed(&mut self, prediction: &Prediction, init: Duration) {
        if let Some(tuner) = &mut self.tuner {
            tuner.placed(&self.hand.head.work, prediction, init);
        }
    }

    /// Packets in the input.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.window.len() + self.fresh
    }

    /// Packets that the input still takes.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.window.room() - self.fresh
    }

    /// The window's size and timeout in force.
    pub(crate) fn window(&self) -> (usize, Option<Duration>) {
        self.window.setting()
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.window.capacity() + self.hand.capacity()
    }
}
