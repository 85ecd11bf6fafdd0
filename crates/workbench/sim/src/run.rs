//! A run: arrivals, the scheduler and the host in virtual time.
//!
//! # Ties
//! Events of one instant are served in the order in which they were scheduled, and a job in service leaves before its
//! place in the queue is offered to a waiting job (docs/simulation.md, "Ties"). So of what happens at one instant:
//!
//! 1. Computations and transfers end, in the order in which they began, for then their end was scheduled. After
//!    each its processor does what it can: it begins the next computation, asks for a fetch, asks for a
//!    write-back; then the bus goes to the first that asked.
//! 2. The scheduler places what waits, class by class.
//! 3. Packets arrive, each followed by the decisions that it makes possible.
//!
//! The comparison with SystemC follows the same order on request, and then has the same figures.
//!
//! With batches (`burst` above 1) the third step is another: all packets of the instant arrive, then the scheduler
//! places what waits, then the processors get what was placed on them, each all of it as one submission, in the order
//! in which the scheduler named them first. Of a batch that ends as a whole the jobs are complete in the order in which they were
//! handed over.
//!
//! With a running core that polls (`poll`), a poll comes after everything else of its instant: computations and
//! transfers end, packets arrive, and then the running core collects what has ended, in the order in which it ended,
//! takes packets, and goes on as [`crate::polling`] says. What it does takes its time, at whose end the same order
//! holds: what ends at the instant of a hand-over has ended before it.
//!
//! With `[cores]` there is no scheduler and no host: [`crate::Cores`] takes all packets.
//!
//! # Memory
//! The models' input has no limit, and nothing depends on a packet in it that is not among the first
//! W. So packets are drawn when the window has room for them, with the time at which they arrived: a
//! run takes the same memory however far its processors fall behind. Not so with several classes, each of which
//! may be ahead of the others: what waits is kept, up to the limits of their inputs.

use forebay_scheduler::{Cost, Decision, Item, Scheduler};
use forebay_station::{Watch, Way, Work};
use forebay_time::{Duration, Time};

use crate::bursts::{self, Desk};
use crate::cores;
use crate::dependents::{Dependents, Then};
use crate::input::{Ending, Input};
use crate::ledger::{Ledger, Tag};
use crate::outcome::{Columns, EXACT_MAX, Options, Outcome, REPORT_EVERY, RunError};
use crate::polling;
use crate::probe::Probe;
use crate::scenario::Scenario;
use crate::setup;
use crate::timeline::Timeline;
use crate::traffic::Stream;

/// Runs a scenario: a pure function of it and the seed.
pub fn run(scenario: &Scenario, options: Options<'_>) -> Result<Outcome, RunError> {
    let seed = options.seed.unwrap_or(scenario.seed);
    let stream = Stream::new(&scenario.traffic, seed);
    let first = stream.clone().nth(scenario.traffic.warm_up as usize).ok_or(RunError::NoPackets)?;
    let exact = options.exact.unwrap_or(stream.packets() <= EXACT_MAX);
    // Growing would take twice the memory.
    let packets = stream.packets().min(EXACT_MAX) as usize;
    let columns = options.columns.then(|| Columns::with_capacity(packets));
    let ledger = Ledger::new(scenario, first.at, exact.then_some(packets), columns);
    let mut notes = scenario.notes.clone();
    if !exact {
        notes.push("quantiles are those of a histogram, right to 0.2 %".to_owned());
    }
    let mut ending = Ending { progress: options.progress, keep: options.keep, cut: None };
    let (mut ledger, timeline) = match options.timeline {
        None => (with_probe(scenario, stream, ledger, (), &mut ending)?.0, None),
        Some(entries) => {
            let probe = Timeline::new(scenario, entries);
            let (ledger, timeline) = with_probe(scenario, stream, ledger, probe, &mut ending)?;
            (ledger, Some(timeline))
        }
    };
    // Broken off within the warm-up there is nothing to keep.
    let cut = ending.cut;
    if cut.is_some_and(|packets| packets <= scenario.traffic.warm_up) {
        return Err(RunError::Cancelled);
    }
    Ok(Outcome {
        seed,
        figures: ledger.figures(scenario),
        columns: ledger.columns.take(),
        timeline,
        notes,
        drain: ledger.drain(),
        cut,
    })
}

/// A run that is looked at, in the way of the scenario.
fn with_probe<P: Probe>(
    scenario: &Scenario,
    mut stream: Stream,
    ledger: Ledger,
    probe: P,
    ending: &mut Ending<'_>,
) -> Result<(Ledger, P), RunError> {
    if let Some(serial) = scenario.cores {
        let next = stream.next();
        return cores::run::drive(scenario, serial, Input { stream, next }, ledger, probe, ending);
    }
    let scheduler = setup::scheduler(scenario).map_err(|error| RunError::Scheduler(error.to_string()))?;
    let next = stream.next();
    let input = Input { stream, next };
    if let Some(core) = scenario.scheduler.running_core {
        let desk = Desk::new(scenario, scheduler, ledger, probe, true);
        return polling::drive(scenario, core, input, desk, ending);
    }
    if scenario.scheduler.burst > 1 {
        let desk = Desk::new(scenario, scheduler, ledger, probe, false);
        return bursts::drive(scenario, input, desk, ending);
    }
    let prefetch_aware = scenario.scheduler.prefetch_aware;
    let dependents = Dependents::of(scenario);
    let observed = Observed { scheduler, prefetch_aware, ledger, dependents, probe };
    let Observed { ledger, probe, .. } = drive(scenario, input, observed, ending)?;
    Ok((ledger, probe))
}

/// All observers of the host's events.
struct Observed<P> {
    scheduler: Scheduler,
    prefetch_aware: bool,
    ledger: Ledger,
    dependents: Option<Box<Dependents>>,
    probe: P,
}

impl<P> Observed<P> {
    /// The next packet comes.
    fn push(&mut self, input: &mut Input) {
        match &mut self.dependents {
            None => input.push(&mut self.scheduler, &mut self.ledger),
            Some(dependents) => {
                if let Some((at, item)) = input.take(&mut self.ledger)
                    && let Some(item) = dependents.arrive(item)
                {
                    enter(&mut self.scheduler, at, item);
                }
            }
        }
    }

    /// Whether a packet may wait for the result of another job.
    fn waits(&self) -> bool {
        self.dependents.as_ref().is_some_and(|dependents| dependents.any())
    }

    /// A job is done of packets others may wait for.
    #[inline(never)]
    fn finish_needed(&mut self, processor: usize, now: Time, tag: Tag) {
        let Some(dependents) = &mut self.dependents else { return };
        let next = match dependents.finish(tag.id()) {
            Then::Again(item) => {
                self.ledger.pass(tag);
                Some(item)
            }
            Then::Complete(next) => {
                self.ledger.complete(processor, now, tag);
                next
            }
        };
        if let Some(item) = next {
            enter(&mut self.scheduler, now, item);
        }
    }
}

/// A packet comes into an input without limit.
fn enter(scheduler: &mut Scheduler, now: Time, item: Item) {
    let refused = scheduler.push(now, item).is_err();
    debug_assert!(!refused, "an input without limit is full");
}

impl<P: Probe> Watch<Tag> for Observed<P> {
    #[inline]
    fn taken(&mut self, processor: usize, now: Time) {
        self.scheduler.taken(processor, now);
        self.probe.waiting(processor, now, self.scheduler.waiting(processor));
    }

    #[inline]
    fn fetched(&mut self, processor: usize, _: Time) {
        if self.prefetch_aware {
            self.scheduler.fetched(processor);
        }
    }

    #[inline(always)]
    fn started(&mut self, processor: usize, now: Time, until: Time) {
        if self.prefetch_aware {
            self.scheduler.started(processor);
        }
        self.ledger.computes(processor, now, until);
        self.probe.computes(processor, now, until);
    }

    #[inline]
    fn finished(&mut self, processor: usize, now: Time, work: Work<Tag>) {
        self.scheduler.finished(processor);
        if self.dependents.is_some() {
            return self.finish_needed(processor, now, work.tag);
        }
        self.ledger.complete(processor, now, work.tag);
    }

    #[inline]
    fn transfer(&mut self, bus: usize, processor: usize, way: Way, now: Time, until: Time) {
        self.ledger.carries(bus, usize::from(way == Way::WriteBack), now, until);
        self.probe.carries(bus, processor, way, now, until);
    }
}

/// One job at a time: the papers' host.
fn drive<P: Probe>(
    scenario: &Scenario,
    mut input: Input,
    mut observed: Observed<P>,
    ending: &mut Ending<'_>,
) -> Result<Observed<P>, RunError> {
    let mut host = setup::host(scenario);
    let costs: Vec<Cost> = scenario.processors.iter().map(|one| one.config.cost).collect();
    let mut keys = setup::keys(scenario);
    let submits = costs.iter().any(|cost| cost.submit > Duration::ZERO);
    let total = input.stream.packets();
    let in_time = setup::in_time(scenario);
    let mut now = Time::ZERO;
    let mut decisions = 0u64;
    let mut loads = setup::Loads::new(scenario);
    loop {
        let event = host.advance(now, &mut observed);
        loads.report(&mut observed.scheduler, now);
        if !in_time {
            while input.next_at() < now && observed.scheduler.input_room() > 0 {
                observed.push(&mut input);
            }
        }
        let waits = observed.waits();
        let wake = match observed.scheduler.next(now) {
            Decision::Dispatch { processor, job, chosen, prediction } => {
                let head = job.head;
                let first = job.items().first().copied();
                let chosen = match (&mut observed.dependents, first) {
                    (Some(dependents), Some(first)) => dependents.choose(first, chosen),
                    _ => chosen,
                };
                let tag = observed.ledger.place(job.items(), chosen);
                let Observed { scheduler, probe, ledger, .. } = &mut observed;
                let to = (processor, chosen, prediction);
                probe.placed(scheduler, now, (first, head), |id| ledger.number(id), to);
                let cost = &costs[processor];
                let mut time = cost.submit + cost.of(&head.work);
                if let Some(keys) = &mut keys[processor] {
                    time += keys.place(head.sa);
                }
                let work = Work { bytes: head.work.bytes, time, tag };
                if submits {
                    observed.scheduler.submitted(processor);
                }
                observed.probe.waiting(processor, now, observed.scheduler.waiting(processor));
                host.submit(now, processor, work, &mut observed);
                decisions += 1;
                if decisions.is_multiple_of(REPORT_EVERY) {
                    let arrived = observed.ledger.arrived();
                    if ending.report(&mut input, total, arrived)? {
                        observed.scheduler.end_of_input();
                    }
                }
                continue;
            }
            Decision::Nowhere { .. } => {
                return Err(RunError::Scheduler("a packet's suite has no processor".to_owned()));
            }
            Decision::Blocked { processor } => {
                let Observed { scheduler, probe, ledger, .. } = &mut observed;
                probe.held_up(scheduler, now, |id| ledger.number(id));
                if in_time {
                    input.next_at().min(event).min(observed.scheduler.due())
                } else {
                    // Nothing matters to the scheduler until that queue has room.
                    match host.advance_to_taking(processor, &mut observed) {
                        Some(at) if at < Time::MAX => {
                            now = at;
                            continue;
                        }
                        _ => return Err(RunError::TooLong),
                    }
                }
            }
            // A packet that waits for the result of another job comes when that is done.
            Decision::Wait { .. } | Decision::Idle if waits => input.next_at().min(event),
            // What processors do until then changes nothing for a scheduler that waits for packets.
            Decision::Wait { until } => until.min(input.next_at()),
            Decision::Idle => input.next_at(),
        };
        if wake <= now {
            observed.push(&mut input);
            continue;
        }
        if wake == Time::MAX {
            host.advance(wake, &mut observed);
            let overflows = input.next.is_some() || observed.ledger.last() == Time::MAX;
            return if overflows { Err(RunError::TooLong) } else { Ok(observed) };
        }
        now = wake;
    }
}
