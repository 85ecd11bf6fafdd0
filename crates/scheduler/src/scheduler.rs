//! The scheduler: input, hand and accounts put together.

use std::collections::VecDeque;

use forebay_time::{Duration, Time};

use crate::account::Account;
use crate::policy::{Chooser, Offer};
use crate::window::{State, Window};
use crate::{Config, ConfigError, Cost, Item, Job, JobHead, Prediction};

/// Bits of a capability mask.
const SUITES: usize = 64;

/// Places jobs on processors; told the time and all events, asked for decisions.
///
/// Processors are named by their index in [`Config::processors`]; an index beyond panics. No
/// call allocates once the queues have been as long as they get, except
/// [`Scheduler::redispatch`]. A choice costs time in proportion to the number of processors,
/// everything else a constant.
#[derive(Debug)]
pub struct Scheduler {
    window: Window,
    /// Jobs that came back from a removed processor.
    returned: VecDeque<(JobHead, Box<[u64]>)>,
    /// The job at the head of everything, from the moment it is formed until it is placed.
    hand: Job,
    hand_full: bool,
    /// Where the job in hand is to go, and since when that is settled.
    choice: Option<(usize, Time)>,
    chooser: Chooser,
    accounts: Vec<Account>,
    /// By suite, then processor: one choice reads one row.
    costs: Vec<Cost>,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision<'a> {
    /// The job now stands at the end of the processor's queue; the driver puts it there.
    Dispatch {
        /// Whose queue.
        processor: usize,
        /// The job, to be read before the next call.
        job: &'a Job,
        /// When the processor was chosen: before now if its queue was full then.
        chosen: Time,
        /// When the processor is expected to begin and end it.
        prediction: Prediction,
    },
    /// The queue chosen for the job at the head is full: it waits for that very queue, and
    /// everything behind it waits too.
    Blocked {
        /// Whose queue.
        processor: usize,
    },
    /// The window may still fill: nothing leaves before then (or a push, or the end of the input).
    Wait {
        /// When the timeout of the packet at the head passes; [`Time::MAX`] without one.
        until: Time,
    },
    /// No processor that is left has the job's suite: it is the driver's to drop, and forgotten here.
    Nowhere {
        /// The job, to be read before the next call.
        job: &'a Job,
    },
    /// There is nothing to place.
    Idle,
}

impl Scheduler {
    /// A scheduler with nothing in it.
    pub fn new(config: Config) -> Result<Scheduler, ConfigError> {
        let count = config.processors.len();
        if count == 0 {
            return Err(ConfigError::NoProcessors);
        }
        if config.window == 0 {
            return Err(ConfigError::ZeroWindow);
        }
        if config.input < config.window {
            return Err(ConfigError::InputBelowWindow { input: config.input, window: config.window });
        }
        if let Some(processor) = config.policy.names().filter(|&index| index >= count) {
            return Err(ConfigError::UnknownProcessor { processor, count });
        }
        let processors = config.processors.iter().enumerate();
        Ok(Scheduler {
            window: Window::new(&config),
            returned: VecDeque::new(),
            hand: Job::with_capacity(config.window),
            hand_full: false,
            choice: None,
            chooser: Chooser::new(config.policy),
            accounts: processors
                .map(|(index, one)| Account::new(index, one, config.prefetch_aware))
                .collect::<Result<_, _>>()?,
            costs: (0..SUITES).flat_map(|_| config.processors.iter().map(|one| one.cost)).collect(),
        })
    }

    /// Adds a packet to the end of the input; gives it back if [`Config::input`] packets wait there.
    #[inline]
    pub fn push(&mut self, now: Time, item: Item) -> Result<(), Item> {
        assert!(usize::from(item.suite) < SUITES, "a suite is a bit index below {SUITES}");
        self.window.push(now, item)
    }

    /// Says that no more packets will come, so that none waits for the window to fill; a later
    /// push takes it back.
    pub fn end_of_input(&mut self) {
        self.window.end();
    }

    /// Puts a job that a removed processor did not do before all that has no place yet, to be
    /// chosen a new one. It bypasses the window; several keep their order. Allocates.
    pub fn redispatch(&mut self, head: JobHead, items: &[u64]) {
        assert!(usize::from(head.suite) < SUITES, "a suite is a bit index below {SUITES}");
        self.returned.push_back((head, items.into()));
    }

    /// Decides about the job at the head. To be called until it dispatches nothing: after
    /// pushes, when a queue has got room, and when a wait is over.
    #[inline]
    pub fn next(&mut self, now: Time) -> Decision<'_> {
        if !self.hand_full {
            match self.fill_hand(now) {
                State::Ready => self.hand_full = true,
                State::Wait(until) => return Decision::Wait { until },
                State::Empty => return Decision::Idle,
            }
        }
        let Some((processor, chosen)) = self.choice.or_else(|| self.choose(now)) else {
            self.hand_full = false;
            return Decision::Nowhere { job: &self.hand };
        };
        if !self.accounts[processor].has_room() {
            self.choice = Some((processor, chosen));
            return Decision::Blocked { processor };
        }
        let cost = &self.costs[usize::from(self.hand.head.suite) * self.accounts.len() + processor];
        let account = &mut self.accounts[processor];
        let wait = account.wait(now);
        let service = account.service(cost, &self.hand.head.work);
        account.place(now, service);
        self.hand_full = false;
        self.choice = None;
        let prediction = Prediction { at: now, wait, service };
        Decision::Dispatch { processor, job: &self.hand, chosen, prediction }
    }

    #[inline]
    fn fill_hand(&mut self, now: Time) -> State {
        if let Some((head, items)) = self.returned.pop_front() {
            self.hand.copy_from(head, &items);
            return State::Ready;
        }
        let state = self.window.state(now);
        if state == State::Ready {
            self.window.take(&mut self.hand);
        }
        state
    }

    #[inline]
    fn choose(&mut self, now: Time) -> Option<(usize, Time)> {
        let row = usize::from(self.hand.head.suite) * self.accounts.len();
        let offer = Offer {
            now,
            job: &self.hand.head,
            accounts: &self.accounts,
            costs: &self.costs[row..row + self.accounts.len()],
        };
        self.chooser.choose(&offer).map(|processor| (processor, now))
    }
}

/// What processors did. Reports about a removed processor are ignored; reports that cannot be
/// (a job taken from an empty queue) panic.
impl Scheduler {
    /// The processor took the next job out of its queue: from now on its cost counts down.
    #[inline]
    pub fn taken(&mut self, processor: usize, now: Time) {
        let account = &mut self.accounts[processor];
        if account.is_open() {
            account.take(now);
        }
    }

    /// The next of the jobs taken has been fetched completely; needed only where
    /// [`Config::prefetch_aware`] is to see it.
    #[inline]
    pub fn fetched(&mut self, processor: usize) {
        let account = &mut self.accounts[processor];
        if account.is_open() {
            account.fetch();
        }
    }

    /// The next of the jobs taken begins to be computed; needed only after [`Scheduler::fetched`].
    #[inline]
    pub fn started(&mut self, processor: usize) {
        let account = &mut self.accounts[processor];
        if account.is_open() {
            account.start();
        }
    }

    /// One of the jobs taken is done.
    #[inline]
    pub fn finished(&mut self, processor: usize) {
        let account = &mut self.accounts[processor];
        if account.is_open() {
            account.finish_one();
        }
    }

    /// The processor has done `jobs` more jobs and goes on with the next in its queue, if there
    /// is one: all that has to be told of one with [`crate::Progress::InOrder`].
    #[inline]
    pub fn complete(&mut self, processor: usize, jobs: usize, now: Time) {
        let account = &mut self.accounts[processor];
        if account.is_open() {
            account.complete(now, jobs);
        }
    }

    /// The jobs dispatched so far have been handed over: the next one opens a new submission and
    /// bears [`Cost::doorbell`].
    #[inline]
    pub fn submitted(&mut self, processor: usize) {
        self.accounts[processor].submit();
    }

    /// Places no more jobs on a processor and forgets those it has, which the driver gives to
    /// [`Scheduler::redispatch`] or drops. A job that waits for its queue is chosen a new one.
    pub fn remove_processor(&mut self, processor: usize) {
        self.accounts[processor].close();
        self.choice.take_if(|(chosen, _)| *chosen == processor);
    }

    /// Places jobs on a removed processor again; it must not report any that it had before.
    pub fn restore_processor(&mut self, processor: usize) {
        self.accounts[processor].reopen();
    }

    /// Changes what jobs placed from now on cost on a processor, for every suite.
    pub fn set_cost(&mut self, processor: usize, cost: Cost) {
        for suite in 0..SUITES {
            self.set_suite_cost(processor, suite as u8, cost);
        }
    }

    /// Changes what jobs of one suite placed from now on cost on a processor.
    pub fn set_suite_cost(&mut self, processor: usize, suite: u8, cost: Cost) {
        let count = self.accounts.len();
        assert!(processor < count, "there are {count} processors");
        self.costs[usize::from(suite) * count + processor] = cost;
    }

    /// Changes alpha and beta of a processor, e.g. to keep a busy CPU free (\[H\] 4.2).
    pub fn set_bias(&mut self, processor: usize, alpha: f64, beta: Duration) -> Result<(), ConfigError> {
        self.accounts[processor].set_bias(processor, alpha, beta)
    }
}

/// What can be seen from outside.
impl Scheduler {
    /// Packets in the input, a job that waits for its queue not counted.
    pub fn input_len(&self) -> usize {
        self.window.len()
    }

    /// Packets that the input still takes.
    pub fn input_room(&self) -> usize {
        self.window.room()
    }

    /// Jobs in a processor's queue, those taken out not counted.
    pub fn waiting(&self, processor: usize) -> usize {
        self.accounts[processor].waiting()
    }

    /// Jobs placed on a processor and not finished.
    pub fn unfinished(&self, processor: usize) -> usize {
        self.accounts[processor].unfinished()
    }

    /// The waiting time w_i of a processor (\[H\] eq 2).
    pub fn wait(&self, processor: usize, now: Time) -> Duration {
        self.accounts[processor].wait(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProcessorConfig;

    fn capacity(scheduler: &Scheduler) -> usize {
        let queues: usize = scheduler.accounts.iter().map(Account::capacity).sum();
        queues + scheduler.window.capacity() + scheduler.hand.capacity()
    }

    #[test]
    fn a_million_packets_need_no_more_memory_than_the_first() {
        let cost = Cost { init: Duration(1_000), block: Duration(10), ..Cost::default() };
        let card = ProcessorConfig { queue: 16, ..ProcessorConfig::accelerator(cost) };
        let config = Config {
            window: 30,
            input: 64,
            ..Config::new(vec![ProcessorConfig::cpu(cost), card.clone(), card])
        };
        let mut scheduler = Scheduler::new(config).unwrap();
        let before = capacity(&scheduler);
        for id in 0..1_000_000u64 {
            let now = Time(id * 100);
            let item = Item {
                id,
                sa: (id * 7 % 13) as u32,
                class: 0,
                suite: (id % 64) as u8,
                bytes: (id % 1_500) as u32,
            };
            if scheduler.push(now, item).is_err() {
                for processor in 0..3 {
                    let jobs = scheduler.unfinished(processor);
                    scheduler.complete(processor, jobs, now);
                }
            }
            while let Decision::Dispatch { .. } = scheduler.next(now) {}
        }
        assert_eq!(capacity(&scheduler), before);
    }
}
