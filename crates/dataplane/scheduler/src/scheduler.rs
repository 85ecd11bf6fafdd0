//! The scheduler: service classes, their jobs in hand, and the states of the processors put together.

use std::collections::HashMap;

use forebay_time::{Duration, Time};

use crate::alpha::AlphaControl;
use crate::burst::{Pool, Share, Whole};
use crate::class_queue::ClassQueue;
use crate::deficit_round_robin::DeficitRoundRobin;
use crate::keys::Keys;
use crate::policy::{Fastest, PolicyState};
use crate::processor_state::ProcessorState;
use crate::tardiness::Fading;
use crate::trials::Trials;
use crate::window::State;
use crate::{Config, ConfigError, Cost, Item, Job, JobHead, Kind, Policy, Prediction, Work};

/// Jobs of its share that the host is given at a time: as many as go through its steps together.
const PIECE: usize = 32;

/// Bits of a capability mask.
const SUITES: usize = 64;

/// Places jobs on processors; told the time and all events, asked for decisions.
///
/// Processors are named by their index in [`Config::processors`]; an index beyond panics. No
/// call allocates once the queues have been as long as they get. A choice costs time in proportion to the number of processors, a
/// decision in proportion to the number of service classes, everything else a constant.
///
/// # Service classes
/// Each class of [`Config::classes`] has an input, a window and a job in hand of its own. A job that
/// waits for a full queue holds back its own class and no other. So an urgent job waits behind
/// bulk neither in the input nor in a window, only in a processor's queue, and there for as much as
/// [`crate::ClassConfig::queue`] lets in. Packets of one SA leave in the order in which they came if
/// they are of one class; between classes there is no order.
#[derive(Debug)]
pub struct Scheduler {
    /// By class.
    classes: Box<[ClassQueue]>,
    turns: DeficitRoundRobin,
    /// What is to be said of the classes looked at so far, if none places a job.
    held: Step,
    policy: PolicyState,
    processor_states: Vec<ProcessorState>,
    /// By processor, where alpha adapts itself; none for accelerators.
    alphas: Box<[Option<AlphaControl>]>,
    fading: Fading,
    /// Jobs that are placed together at most.
    batch: usize,
    /// Whether a job that is placed alone passes a full queue by ([`Scheduler::set_pass_full`]).
    pass_full: bool,
    /// Whether any of the next three has an effect, or `keys`.
    is_extended: bool,
    /// Whether a job that finds all processors idle goes to the fastest accelerator.
    idle_to_accelerator: bool,
    /// SAs with numbers below this stay at one processor, and where those are that have one.
    staying: u64,
    homes: HashMap<u32, u32>,
    /// By processor, if any has costs for keys.
    keys: Vec<Option<Keys>>,
    /// What jobs of a burst cost with the keys that they need.
    keyed_costs: Vec<Cost>,
    trials: Option<Trials>,
    host: Option<Host>,
    /// By suite, then processor: one choice reads one row.
    costs: Vec<Cost>,
}

/// The scheduler's decision.
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
    /// everything of its class behind it waits too. With several classes, that of the first one
    /// that is blocked; others may wait for their windows ([`Scheduler::due`]).
    Blocked {
        /// Whose queue.
        processor: usize,
    },
    /// The window may still fill: nothing leaves before then (or a push, or the end of the input).
    /// With several classes, the one that is due first.
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
        let classes = config.check()?;
        let processors = || config.processors.iter().enumerate();
        let control = |one: &crate::ProcessorConfig| match config.policy {
            Policy::AdaptiveAlpha(with) if one.kind == Kind::Cpu => Some(AlphaControl::new(with, one.alpha)),
            _ => None,
        };
        Ok(Scheduler {
            classes: classes.iter().map(|class| ClassQueue::new(class, config.batch)).collect(),
            turns: DeficitRoundRobin::new(&classes),
            held: Step::Idle,
            policy: PolicyState::new(config.policy),
            processor_states: processors()
                .map(|(index, one)| ProcessorState::new(index, one, config.prefetch_aware))
                .collect::<Result<_, _>>()?,
            alphas: processors().map(|(_, one)| control(one)).collect(),
            fading: Fading::default(),
            batch: config.batch,
            pass_full: false,
            is_extended: processors().any(|(_, one)| one.keys.is_some()),
            idle_to_accelerator: false,
            staying: 0,
            homes: HashMap::new(),
            keys: match processors().any(|(_, one)| one.keys.is_some()) {
                true => processors().map(|(_, one)| one.keys.map(Keys::new)).collect(),
                false => Vec::new(),
            },
            keyed_costs: Vec::new(),
            trials: (config.batch > 1 && config.trials && config.policy.goes_by_time())
                .then(|| Trials::new(SUITES, config.processors.len())),
            host: config.host.map(|processor| Host {
                processor,
                moving: Duration::ZERO,
                until: Time::ZERO,
                alone: false,
            }),
            costs: (0..SUITES).flat_map(|_| config.processors.iter().map(|one| one.cost)).collect(),
        })
    }

    /// Adds a packet to the end of its class's input; gives it back if as many packets wait there as
    /// the class may have ([`Config::input`], [`crate::ClassConfig::input`]).
    #[inline(always)]
    pub fn push(&mut self, now: Time, item: Item) -> Result<(), Item> {
        assert!(usize::from(item.suite) < SUITES, "a suite is a bit index below {SUITES}");
        let class = self.class_of(item.class);
        self.classes[class].push(now, item)
    }

    /// Adds packets in order, as [`Scheduler::push`] does; hands those for which there is no room to `refused`.
    #[inline]
    pub fn push_all(&mut self, now: Time, mut items: &[Item], mut refused: impl FnMut(Item)) {
        while let Some(&first) = items.first() {
            assert!(usize::from(first.suite) < SUITES, "a suite is a bit index below {SUITES}");
            let class = self.class_of(first.class);
            let joining = self.classes[class].push_run(now, items);
            items = &items[joining..];
            let Some(&next) = items.first().filter(|_| joining == 0) else { continue };
            if let Err(item) = self.push(now, next) {
                refused(item);
            }
            items = &items[1..];
        }
    }

    /// Says that no more packets will come, so that none waits for the window to fill; a later
    /// push takes it back.
    pub fn end_of_input(&mut self) {
        self.classes.iter_mut().for_each(ClassQueue::end);
    }

    /// Decides about the job at the head. To be called until it dispatches nothing: after
    /// pushes, when a queue has got room, and when a wait is over.
    #[inline(always)]
    pub fn next(&mut self, now: Time) -> Decision<'_> {
        let (class, step) =
            if self.classes.len() > 1 { self.of_several(now) } else { (0, self.step(0, now)) };
        self.decision(class, step)
    }

    /// What is to be done with several classes, and of which.
    #[inline(never)]
    fn of_several(&mut self, now: Time) -> (usize, Step) {
        let Some(mut class) = self.first_class(now) else { return (0, Step::Idle) };
        loop {
            let step = self.step(class, now);
            match self.after(class, step, now) {
                After::Try(next) => class = next,
                After::Say(said) => return (class, said),
            }
        }
    }

    #[inline(always)]
    fn decision(&self, class: usize, step: Step) -> Decision<'_> {
        match step {
            Step::Placed { processor, chosen, prediction } => {
                Decision::Dispatch { processor, job: &self.classes[class].hand, chosen, prediction }
            }
            Step::Nowhere => Decision::Nowhere { job: &self.classes[class].hand },
            Step::Blocked { processor } => Decision::Blocked { processor },
            Step::Wait { until } => Decision::Wait { until },
            Step::Idle => Decision::Idle,
        }
    }

    /// Where jobs are placed one by one: a job whose chosen queue is full goes to the processor with the smallest finishing
    /// time among those with room, and waits only if there is none; the driver asks again whenever any job is taken.
    /// Without it, it waits for that very queue ([`Decision::Blocked`]), as in \[H\].
    pub fn set_pass_full(&mut self, pass: bool) {
        self.pass_full = pass;
    }

    /// Where jobs are placed one by one by finish time: a job that finds every processor without work goes to the
    /// accelerator that does it fastest, the first of several, even if a core would be done earlier (\[H\] 3.2: "When all
    /// of the queues are empty new tasks are scheduled to the first fastest accelerator").
    pub fn set_idle_to_accelerator(&mut self, is_set: bool) {
        self.idle_to_accelerator = is_set;
        self.is_extended |= is_set;
    }

    /// Where jobs are placed one by one: all packets of an SA whose number is below `sas` go to the processor that was chosen
    /// for the first of them, which works in that order; if it can no longer do them, to another one from then on.
    pub fn set_staying(&mut self, sas: u64) {
        self.staying = sas;
        self.is_extended |= sas > 0;
    }

    /// The class that is looked at first, if any has a packet.
    #[inline]
    fn first_class(&mut self, now: Time) -> Option<usize> {
        self.turns.begin();
        self.held = Step::Idle;
        let classes = &self.classes;
        self.turns.class(|class| classes[class].state(now))
    }

    /// What follows from what became of a class's first job.
    #[inline]
    fn after(&mut self, class: usize, step: Step, now: Time) -> After {
        match step {
            Step::Placed { .. } => {
                self.turns.charge(class, self.classes[class].hand.head.work.bytes);
                return After::Say(step);
            }
            Step::Nowhere => return After::Say(step),
            Step::Blocked { .. } => {}
            Step::Wait { .. } | Step::Idle => self.turns.forfeit(class),
        }
        self.held = self.held.or(step);
        self.turns.pass();
        let classes = &self.classes;
        match self.turns.class(|class| classes[class].state(now)) {
            Some(next) => After::Try(next),
            None => After::Say(self.held),
        }
    }

    /// Places the first job of one class, if there is one and its queue has room.
    #[inline(always)]
    fn step(&mut self, class: usize, now: Time) -> Step {
        if self.batch > 1 {
            return self.step_of_burst(class, now);
        }
        if self.is_extended { self.step_extended(class, now) } else { self.step_of_one::<false>(class, now) }
    }

    // Apart, so that the papers' rule pays nothing for it.
    #[inline(never)]
    fn step_extended(&mut self, class: usize, now: Time) -> Step {
        self.step_of_one::<true>(class, now)
    }

    /// The same where jobs are placed one by one. `EXTENDED`: keys cost time, SAs stay, or the first job goes to an
    /// accelerator.
    #[inline(always)]
    fn step_of_one<const EXTENDED: bool>(&mut self, class: usize, now: Time) -> Step {
        let class_queue = &mut self.classes[class];
        match class_queue.fill_hand(now) {
            State::Ready => {}
            State::Wait(until) => return Step::Wait { until },
            State::Empty => return Step::Idle,
        }
        let head = &class_queue.hand.head;
        let row = usize::from(head.suite) * self.processor_states.len();
        let costs = &self.costs[row..row + self.processor_states.len()];
        let fastest =
            Fastest { now, job: head, processor_states: &self.processor_states, costs, keys: &self.keys };
        let stays = EXTENDED && u64::from(head.sa) < self.staying;
        let home = if stays { self.homes.get(&head.sa).map(|&home| home as usize) } else { None };
        let home = home.filter(|&home| fastest.is_capable(home));
        let (mut processor, chosen) = match class_queue.choice {
            Some(choice) => choice,
            None => {
                let idle = EXTENDED && self.idle_to_accelerator;
                let given = home.or_else(|| idle.then(|| fastest.fastest_of_idle()).flatten());
                match given.or_else(|| self.policy.choose::<EXTENDED>(&fastest, class_queue.queue)) {
                    Some(processor) => (processor, now),
                    None => {
                        class_queue.empty_hand();
                        return Step::Nowhere;
                    }
                }
            }
        };
        if self.pass_full && home.is_none() && !self.processor_states[processor].has_room(class_queue.queue) {
            processor = fastest.with_room(class_queue.queue).unwrap_or(processor);
        }
        let processor_state = &mut self.processor_states[processor];
        if !processor_state.has_room(class_queue.queue) {
            class_queue.choice = Some((processor, chosen));
            return Step::Blocked { processor };
        }
        let cost = &costs[processor];
        let wait = processor_state.wait(now);
        let mut service = processor_state.service(cost, &head.work);
        if EXTENDED && let Some(Some(keys)) = self.keys.get_mut(processor) {
            service += keys.place(head.sa);
        }
        processor_state.place(now, service);
        if stays {
            self.homes.insert(head.sa, processor as u32);
        }
        let prediction = Prediction { at: now, wait, service };
        class_queue.placed(&prediction, cost.init);
        class_queue.empty_hand();
        Step::Placed { processor, chosen, prediction }
    }

    /// Places the next share of one class's burst at hand: see [`crate::burst`].
    #[inline(never)]
    fn step_of_burst(&mut self, class: usize, now: Time) -> Step {
        let class_queue = &mut self.classes[class];
        let (state, taken) = class_queue.fill_burst(now, self.batch);
        match state {
            State::Ready => {}
            State::Wait(until) => return Step::Wait { until },
            State::Empty => return Step::Idle,
        }
        let suite = class_queue.burst.suite();
        if let Some(host) = &mut self.host {
            host.until = host.until.max(now) + host.moving.times(taken as u64);
        }
        let row = usize::from(suite) * self.processor_states.len();
        let costs = &self.costs[row..row + self.processor_states.len()];
        let costs = if self.keys.is_empty() {
            costs
        } else {
            class_queue.burst.costs_with_keys(costs, &self.keys, &mut self.keyed_costs);
            &self.keyed_costs
        };
        let host = self.host.as_ref().map(|host| (host.processor, host.until));
        let pool = Pool {
            now,
            processor_states: &self.processor_states,
            costs,
            keys: &[],
            suite,
            queue: class_queue.queue,
            bound: class_queue.bound,
            host,
        };
        let alone = self.host.filter(|host| host.alone && self.policy.goes_by_time());
        let alone = alone.and_then(|host| pool.whole_for(host.processor, &class_queue.burst));
        let trials = self.trials.as_mut().filter(|_| alone.is_none());
        let share = match trials.map(|trials| trials.next(&class_queue.burst, taken, &pool)) {
            Some(Some(trial)) => trial,
            not_due => {
                let Some(mut share) = alone.or_else(|| self.policy.share(&mut class_queue.burst, &pool))
                else {
                    return Scheduler::without_place(class_queue, &pool);
                };
                if not_due.is_some()
                    && let Some(trials) = &mut self.trials
                {
                    trials.chosen(suite, share.processor);
                }
                // The host takes its share piece by piece: what it has not begun may yet go elsewhere.
                if self.policy.goes_by_time()
                    && self.host.is_some_and(|host| host.processor == share.processor)
                {
                    if self.processor_states[share.processor].unfinished() > 0 {
                        return Step::Blocked { processor: share.processor };
                    }
                    let lanes = costs[share.processor].lanes.max(1) as usize;
                    share.jobs = share.jobs.min(PIECE.next_multiple_of(lanes));
                }
                share
            }
        };
        let Share { processor, jobs } = share;
        let work = class_queue.burst.next_work(jobs);
        let mut time = class_queue.burst.time(&self.costs[row + processor], jobs);
        if let Some(Some(keys)) = self.keys.get_mut(processor) {
            time = class_queue.burst.next_sas(jobs).fold(time, |sum, sa| sum + keys.place(sa));
        }
        let service = pool.service(processor, time, work.bytes);
        let wait = pool.wait(processor);
        let processor_state = &mut self.processor_states[processor];
        if let Some(host) = self.host.as_mut().filter(|host| host.processor != processor) {
            host.until = host.until + processor_state.feed_time(jobs, &work);
        }
        processor_state.place(now, service);
        let prediction = Prediction { at: now, wait, service };
        class_queue.burst.take(jobs, &mut class_queue.hand);
        class_queue.placed(&prediction, costs[processor].init);
        Step::Placed { processor, chosen: now, prediction }
    }

    /// The step if no processor may be given a job of the burst at hand: none supports the suite, or all are full.
    #[cold]
    fn without_place(class_queue: &mut ClassQueue, pool: &Pool<'_>) -> Step {
        match (0..pool.processor_states.len()).find(|&processor| pool.is_capable(processor)) {
            Some(processor) => Step::Blocked { processor },
            None => {
                class_queue.burst.take(class_queue.burst.left(), &mut class_queue.hand);
                Step::Nowhere
            }
        }
    }

    /// Whether the host does best to compute a burst of `jobs` jobs of one suite by itself, at once: no trial is
    /// due, and it would not be done earlier if a part of it went to any other processor. Nothing is placed.
    ///
    /// The rule is that of shares. A driver asks this so that what goes nowhere else need not go through the
    /// scheduler at all.
    #[inline]
    pub fn keeps(&mut self, now: Time, suite: u8, jobs: usize, work: &Work) -> bool {
        let Some(Host { processor: host, moving, until, alone }) = self.host else { return false };
        if self.processor_states[host].open_for & 1 << suite == 0 || !self.policy.may_keep(host) {
            return false;
        }
        if self.policy.is_single() {
            return true;
        }
        if let Some(trials) = &mut self.trials {
            trials.count(suite, jobs);
            if trials.any_due(suite, host) {
                return false;
            }
        }
        let row = usize::from(suite) * self.processor_states.len();
        let costs = &self.costs[row..row + self.processor_states.len()];
        let until = until.max(now) + moving.times(jobs as u64);
        let queue = usize::MAX;
        let pool = Pool {
            now,
            processor_states: &self.processor_states,
            costs,
            keys: &[],
            suite,
            queue,
            bound: Duration(u64::MAX),
            host: Some((host, until)),
        };
        let alone = alone && pool.is_short(host, costs[host].of_jobs(jobs, work), work.bytes);
        let kept = alone || Whole::of(jobs, work).stays(&pool, host);
        if kept && let Some(host) = &mut self.host {
            host.until = until;
        }
        kept
    }

    /// The class by its number; one beyond all counts as the last.
    #[inline]
    fn class_of(&self, class: u8) -> usize {
        usize::from(class).min(self.classes.len() - 1)
    }
}

/// What became of a class's first job: a [`Decision`] without the job.
#[derive(Clone, Copy, Debug)]
enum Step {
    Placed { processor: usize, chosen: Time, prediction: Prediction },
    Nowhere,
    Blocked { processor: usize },
    Wait { until: Time },
    Idle,
}

/// How a decision goes on with several classes.
enum After {
    Try(usize),
    Say(Step),
}

impl Step {
    /// What is to be said of two classes that place nothing, the first one going first: that one is
    /// blocked, else which is due first.
    fn or(self, other: Step) -> Step {
        match (self, other) {
            (Step::Idle, _) => other,
            (Step::Wait { .. }, Step::Blocked { .. }) => other,
            (Step::Wait { until: one }, Step::Wait { until: two }) => Step::Wait { until: one.min(two) },
            _ => self,
        }
    }
}

/// The processor that moves packets besides.
#[derive(Clone, Copy, Debug)]
struct Host {
    processor: usize,
    /// What it does for each packet besides crypto.
    moving: Duration,
    /// Until when it is busy with that.
    until: Time,
    /// Whether it takes all jobs that do not take too long.
    alone: bool,
}

/// What processors did. Reports about a removed processor are ignored; reports that cannot be
/// (a job taken from an empty queue) panic.
impl Scheduler {
    /// The processor took the next job out of its queue: from now on its cost counts down.
    #[inline]
    pub fn taken(&mut self, processor: usize, now: Time) {
        let processor_state = &mut self.processor_states[processor];
        if processor_state.is_open() {
            processor_state.take(now);
        }
    }

    /// The next of the jobs taken has been fetched completely; needed only where
    /// [`Config::prefetch_aware`] is to see it.
    #[inline]
    pub fn fetched(&mut self, processor: usize) {
        let processor_state = &mut self.processor_states[processor];
        if processor_state.is_open() {
            processor_state.fetch();
        }
    }

    /// The next of the jobs taken begins to be computed; needed only after [`Scheduler::fetched`].
    #[inline]
    pub fn started(&mut self, processor: usize) {
        let processor_state = &mut self.processor_states[processor];
        if processor_state.is_open() {
            processor_state.start();
        }
    }

    /// One of the jobs taken is done.
    #[inline]
    pub fn finished(&mut self, processor: usize) {
        let processor_state = &mut self.processor_states[processor];
        if processor_state.is_open() {
            processor_state.finish_one();
            self.policy.finished(processor, 1);
        }
    }

    /// Records that the processor has completed `jobs` more jobs and continues with the next in its queue, if there
    /// is one. A processor with [`crate::Progress::InOrder`] needs no other report.
    #[inline]
    pub fn complete(&mut self, processor: usize, jobs: usize, now: Time) {
        self.complete_since(processor, jobs, now, now);
    }

    /// The same of a processor that was asked only now and at `asked`, when these jobs were not done: the next one
    /// began when they should have been done, if that was in between.
    #[inline]
    pub fn complete_since(&mut self, processor: usize, jobs: usize, asked: Time, now: Time) {
        let processor_state = &mut self.processor_states[processor];
        if processor_state.is_open() {
            processor_state.complete(asked, now, jobs);
            self.policy.finished(processor, jobs);
        }
    }

    /// The jobs dispatched so far have been handed over: the next one opens a new submission and
    /// bears [`Cost::submit`].
    #[inline]
    pub fn submitted(&mut self, processor: usize) {
        self.processor_states[processor].submit();
    }

    /// Places no more jobs on a processor and forgets those it has, whose packets the driver pushes again or drops. A job that
    /// waits for its queue is chosen a new one.
    pub fn remove_processor(&mut self, processor: usize) {
        self.processor_states[processor].close();
        self.keys.get_mut(processor).into_iter().flatten().for_each(Keys::clear);
        for class_queue in &mut self.classes {
            class_queue.choice.take_if(|(chosen, _)| *chosen == processor);
        }
    }

    /// Places jobs on a removed processor again; it must not report any that it had before.
    pub fn restore_processor(&mut self, processor: usize) {
        self.processor_states[processor].reopen();
    }

    /// Changes what jobs placed from now on cost on a processor, for every suite.
    pub fn set_cost(&mut self, processor: usize, cost: Cost) {
        for suite in 0..SUITES {
            self.set_suite_cost(processor, suite as u8, cost);
        }
    }

    /// Changes what jobs of one suite placed from now on cost on a processor.
    pub fn set_suite_cost(&mut self, processor: usize, suite: u8, cost: Cost) {
        let count = self.processor_states.len();
        assert!(processor < count, "there are {count} processors");
        self.costs[usize::from(suite) * count + processor] = cost;
    }

    /// Says that jobs of one suite may be placed on a processor from now on.
    pub fn add_suite(&mut self, processor: usize, suite: u8) {
        self.processor_states[processor].add_suite(suite);
    }

    /// Changes alpha and beta of a processor, e.g. to keep a busy CPU free (\[H\] 4.2). Where alpha
    /// adapts itself, it goes on from here and never below.
    pub fn set_bias(&mut self, processor: usize, alpha: f64, beta: Duration) -> Result<(), ConfigError> {
        self.processor_states[processor].set_bias(processor, alpha, beta)?;
        if let Some(control) = &mut self.alphas[processor] {
            control.restart(alpha);
        }
        Ok(())
    }

    /// Says that a job was done `late` after the finish time predicted for it, zero if it was done by then.
    /// What is usual for a processor is added to its finish times as beta is, late jobs counting for more
    /// than others.
    #[inline]
    pub fn report_late(&mut self, processor: usize, late: Duration) {
        self.processor_states[processor].learn_late(late);
        self.policy.late(processor, late);
    }

    /// Says that the oldest job of a processor should have been done `overdue` ago and is not. Until the next
    /// report of the processor it is expected to be as late again.
    #[inline]
    pub fn report_overdue(&mut self, processor: usize, overdue: Duration) {
        self.processor_states[processor].see_overdue(overdue);
    }

    /// Says how long the host is busy with a packet besides crypto: receiving, preparing, completing, sending it.
    pub fn set_moving(&mut self, time: Duration) {
        if let Some(host) = &mut self.host {
            host.moving = time;
        }
    }

    /// Says whether the host is to compute everything itself for the moment, so that its own cost can be measured. It
    /// heeds this where places are chosen by finish time, for jobs that it can do in a short time.
    #[inline]
    pub fn set_host_alone(&mut self, alone: bool) {
        if let Some(host) = &mut self.host {
            host.alone = alone;
        }
    }

    /// Says that the host has moved what it had, so that nothing of that is before its next jobs.
    #[inline]
    pub fn moved(&mut self, now: Time) {
        if let Some(host) = &mut self.host {
            host.until = now;
        }
    }

    /// Says what handing jobs to a processor and taking them back costs the host:
    /// [`crate::ProcessorConfig::feed`].
    pub fn set_feed(&mut self, processor: usize, feed: Cost) {
        self.processor_states[processor].set_feed(feed);
    }

    /// Lets what was learnt of late jobs fade to that of the most punctual processor, so that a processor that
    /// was late is tried again. To be called every few milliseconds by a driver that reports them.
    #[inline]
    pub fn fade_lateness(&mut self, now: Time) {
        let steps = self.fading.steps(now);
        if steps > 0 {
            let open = self.processor_states.iter().filter(|processor_state| processor_state.is_open());
            let least = open.map(ProcessorState::lateness).min().unwrap_or_default();
            self.processor_states
                .iter_mut()
                .for_each(|processor_state| processor_state.fade_lateness(steps, least));
        }
    }

    /// Whether [`Policy::AdaptiveAlpha`] wants to hear of the load of CPUs.
    #[inline]
    pub fn follows_load(&self) -> bool {
        self.alphas.iter().any(Option::is_some)
    }

    /// Says for which share of the time a CPU was busy since the last report for it, 0 to 1, with this scheduler's jobs and all
    /// else; in the place of [`Scheduler::report_load`] where it is the whole that is known.
    pub fn report_whole_load(&mut self, processor: usize, now: Time, load: f64) {
        if let Some(control) = &mut self.alphas[processor]
            && let Some(alpha) = control.report(now, load, Duration::ZERO)
        {
            self.processor_states[processor].set_alpha(alpha);
        }
    }

    /// Says that since the last report for it a CPU was busy with other things than this scheduler's jobs
    /// for the share `others` of the time, 0 to 1; what the jobs took is known here. To be called
    /// every few milliseconds for each CPU; only [`Policy::AdaptiveAlpha`] heeds it.
    pub fn report_load(&mut self, processor: usize, now: Time, others: f64) {
        let processor_state = &mut self.processor_states[processor];
        if let Some(control) = &mut self.alphas[processor]
            && let Some(alpha) = control.report(now, others, processor_state.crypto_time(now))
        {
            processor_state.set_alpha(alpha);
        }
    }
}

/// What can be seen from outside.
impl Scheduler {
    /// Service classes, one at least.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Packets in the inputs of all classes, jobs that wait for their queues not counted.
    pub fn input_len(&self) -> usize {
        self.classes.iter().map(ClassQueue::len).sum()
    }

    /// Packets that the input still takes whatever their class: as many as the fullest one does.
    #[inline]
    pub fn input_room(&self) -> usize {
        self.classes.iter().map(ClassQueue::room).min().unwrap_or(0)
    }

    /// Packets in a class's input, a job that waits for its queue not counted.
    pub fn class_len(&self, class: u8) -> usize {
        self.classes[self.class_of(class)].len()
    }

    /// Packets that a class's input still takes.
    #[inline]
    pub fn class_room(&self, class: u8) -> usize {
        self.classes[self.class_of(class)].room()
    }

    /// A class's window in force, in packets, and its timeout.
    pub fn class_window(&self, class: u8) -> (usize, Option<Duration>) {
        self.classes[self.class_of(class)].window()
    }

    /// When the first window's timeout passes, so that [`Scheduler::next`] has to be called then;
    /// [`Time::MAX`] if none does. It says more than [`Decision::Wait`] only where one class is blocked and
    /// another waits.
    pub fn due(&self) -> Time {
        self.classes.iter().map(ClassQueue::due).min().unwrap_or(Time::MAX)
    }

    /// A processor's alpha in force.
    pub fn alpha(&self, processor: usize) -> f64 {
        self.processor_states[processor].alpha()
    }

    /// Tardiness of a processor's jobs, as it is added to its finish times.
    pub fn lateness(&self, processor: usize) -> Duration {
        self.processor_states[processor].lateness()
    }

    /// Jobs in a processor's queue, those taken out not counted.
    pub fn waiting(&self, processor: usize) -> usize {
        self.processor_states[processor].waiting()
    }

    /// Jobs placed on a processor and not finished.
    pub fn unfinished(&self, processor: usize) -> usize {
        self.processor_states[processor].unfinished()
    }

    /// The waiting time w_i of a processor (\[H\] eq 2).
    pub fn wait(&self, processor: usize, now: Time) -> Duration {
        self.processor_states[processor].wait(now)
    }

    /// The finish times f_i that a choice for a job compares (\[H\] eqs 4 and 5), from now on, by processor; none of one
    /// that cannot do the job. `placed` is where the job has been placed just now and what was predicted for it there.
    pub fn finishing_times<'a>(
        &'a self,
        now: Time,
        job: &'a JobHead,
        placed: Option<(usize, Prediction)>,
    ) -> impl Iterator<Item = Option<Duration>> + 'a {
        let row = usize::from(job.suite) * self.processor_states.len();
        let both = self.processor_states.iter().zip(&self.costs[row..]);
        both.enumerate().map(move |(index, (state, cost))| {
            let finish = match placed {
                Some((processor, predicted)) if processor == index => {
                    state.biased(predicted.wait + predicted.service)
                }
                _ if self.keys.is_empty() => state.finish(now, cost, &job.work),
                _ => {
                    let service = state.service(cost, &job.work) + Keys::time_on(&self.keys, index, job.sa);
                    state.biased(state.wait(now) + service)
                }
            };
            (state.open_for & 1 << job.suite != 0).then_some(finish)
        })
    }

    /// The job of a class that waits for a place in its processor's queue, with that processor and the time of the choice.
    pub fn held_up(&self, class: u8) -> Option<(&Job, usize, Time)> {
        let class_queue = &self.classes[self.class_of(class)];
        class_queue.choice.map(|(processor, chosen)| (&class_queue.hand, processor, chosen))
    }
}

#[cfg(test)]
mod tests;
