//! A run: arrivals, the scheduler and the host in virtual time.
//!
//! At each instant, first everything happens that processors and buses do by themselves, then the
//! scheduler decides, and only then do packets of that instant arrive, each followed by the
//! decisions that it makes possible.
//!
//! The models' input has no limit, and nothing depends on a packet in it that is not among the first
//! W. So packets are drawn when the window has room for them, with the time at which they arrived: a
//! run takes the same memory however far its processors fall behind.

use std::fmt;
use std::ops::ControlFlow;

use forebay_scheduler::{Config, Cost, Decision, Item, Kind, Policy, Scheduler};
use forebay_station::{Host, StationConfig, Watch, Way, Work};
use forebay_time::{Duration, Time};

use crate::figures::Figures;
use crate::ledger::{Ledger, Tag};
use crate::scenario::Scenario;
use crate::timeline::Timeline;
use crate::traffic::{Arrival, Stream};

/// Runs of up to this many packets keep every latency, 16 bytes a packet, for exact quantiles.
pub const EXACT_MAX: u64 = 1 << 24;

/// How often CPUs report their load, for policies that ask for it.
const LOAD_EVERY: Duration = Duration::from_millis(1);

/// Decisions between two reports of progress.
const REPORT_EVERY: u64 = 1 << 16;

/// What is wanted of a run besides its figures.
#[derive(Default)]
pub struct Options<'a> {
    /// A seed in place of the scenario's.
    pub seed: Option<u64>,
    /// Every packet's times and processor: 32 bytes a packet.
    pub columns: bool,
    /// Whether quantiles are exact: 16 bytes a packet. `None`: in runs of up to [`EXACT_MAX`] packets;
    /// else they are those of a histogram, right to 0.2 %.
    pub exact: Option<bool>,
    /// A time line of the run's begin, with at most so many entries.
    pub timeline: Option<usize>,
    /// Is told now and then how many packets of how many have been placed; may break off the run.
    pub progress: Option<Progress<'a>>,
    /// Whether a run that is broken off is kept: its traffic ends there, as though `traffic.packets` had
    /// said so. Else there is no outcome.
    pub keep: bool,
}

/// Is told packets placed and packets in all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// What a run comes to.
#[derive(Debug)]
pub struct Outcome {
    /// The seed it ran with.
    pub seed: u64,
    /// The figures.
    pub figures: Figures,
    /// Packets, if they were asked for.
    pub columns: Option<Columns>,
    /// The time line, if it was asked for.
    pub timeline: Option<Timeline>,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
    /// Packets there were, where the run was broken off and kept.
    pub cut: Option<u64>,
}

/// Packets in the order of arrival; times in picoseconds. A packet that was lost has no processor and
/// times of [`u64::MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// b in bytes.
    pub bytes: Vec<u32>,
    /// Security association.
    pub sa: Vec<u32>,
    /// When it arrived.
    pub arrived: Vec<u64>,
    /// When its processor was chosen.
    pub chosen: Vec<u64>,
    /// When it was complete.
    pub completed: Vec<u64>,
    /// Its processor; [`u16::MAX`]: none.
    pub processor: Vec<u16>,
}

impl Columns {
    pub(crate) fn arrive(&mut self, arrival: &Arrival) {
        self.bytes.push(arrival.bytes);
        self.sa.push(arrival.sa);
        self.arrived.push(arrival.at.0);
        self.chosen.push(u64::MAX);
        self.completed.push(u64::MAX);
        self.processor.push(u16::MAX);
    }

    pub(crate) fn complete(&mut self, packet: usize, processor: usize, chosen: Time, now: Time) {
        self.chosen[packet] = chosen.0;
        self.completed[packet] = now.0;
        self.processor[packet] = processor as u16;
    }
}

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// Progress was answered with a break.
    Cancelled,
    /// The traffic has no packet, or none beyond the warm-up.
    NoPackets,
    /// The run is longer than the 213 days that a time in picoseconds lasts.
    TooLong,
    /// The scheduler does not take the scenario, which was not made by the reader.
    Scheduler(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Cancelled => f.write_str("the run was broken off"),
            RunError::NoPackets => f.write_str("the traffic has no packet beyond the warm-up"),
            RunError::TooLong => f.write_str("the run takes more than 213 days: is a rate or a time wrong?"),
            RunError::Scheduler(error) => f.write_str(error),
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a scenario: a pure function of it and the seed.
pub fn run(scenario: &Scenario, options: Options<'_>) -> Result<Outcome, RunError> {
    let seed = options.seed.unwrap_or(scenario.seed);
    let stream = Stream::new(&scenario.traffic, seed);
    let first = stream.clone().nth(scenario.traffic.warm_up as usize).ok_or(RunError::NoPackets)?;
    let exact = options.exact.unwrap_or(stream.packets() <= EXACT_MAX);
    let kept = exact.then(|| stream.packets().min(EXACT_MAX) as usize);
    let ledger = Ledger::new(scenario, first.at, kept, options.columns.then(Columns::default));
    let mut notes = scenario.notes.clone();
    if !exact {
        notes.push("quantiles are those of a histogram, right to 0.2 %".to_owned());
    }
    let observed = Observed {
        scheduler: Scheduler::new(config(scenario))
            .map_err(|error| RunError::Scheduler(error.to_string()))?,
        prefetch_aware: scenario.scheduler.prefetch_aware,
        ledger,
        probe: (),
    };
    let mut ending = Ending { progress: options.progress, keep: options.keep, cut: None };
    let (mut ledger, timeline) = match options.timeline {
        None => (drive(scenario, stream, observed, &mut ending)?.ledger, None),
        Some(entries) => {
            let Observed { scheduler, prefetch_aware, ledger, .. } = observed;
            let probe = Timeline::new(scenario, entries);
            let observed = Observed { scheduler, prefetch_aware, ledger, probe };
            let observed = drive(scenario, stream, observed, &mut ending)?;
            (observed.ledger, Some(observed.probe))
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
        cut,
    })
}

/// The scheduler's part of a scenario.
pub(crate) fn config(scenario: &Scenario) -> Config {
    let settings = &scenario.scheduler;
    Config {
        processors: scenario.processors.iter().map(|one| one.config.clone()).collect(),
        policy: settings.policy,
        window: settings.window,
        windowing: settings.windowing,
        timeout: settings.timeout,
        max_bytes: settings.max_bytes,
        input: settings.input.unwrap_or(settings.window),
        prefetch_aware: settings.prefetch_aware,
        classes: match settings.by_class {
            true => settings.classes.iter().map(|class| class.config).collect(),
            false => Vec::new(),
        },
    }
}

/// Sees what the host does besides what the figures need.
pub(crate) trait Probe {
    fn computes(&mut self, processor: usize, now: Time, until: Time);
    fn carries(&mut self, bus: usize, processor: usize, way: Way, now: Time, until: Time);
    fn waiting(&mut self, processor: usize, now: Time, jobs: usize);
}

impl Probe for () {
    #[inline]
    fn computes(&mut self, _: usize, _: Time, _: Time) {}
    #[inline]
    fn carries(&mut self, _: usize, _: usize, _: Way, _: Time, _: Time) {}
    #[inline]
    fn waiting(&mut self, _: usize, _: Time, _: usize) {}
}

/// All that hears of what the host does.
struct Observed<P> {
    scheduler: Scheduler,
    prefetch_aware: bool,
    ledger: Ledger,
    probe: P,
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

    #[inline]
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
        self.ledger.complete(processor, now, work.tag);
    }

    #[inline]
    fn transfer(&mut self, bus: usize, processor: usize, way: Way, now: Time, until: Time) {
        self.ledger.carries(bus, usize::from(way == Way::WriteBack), now, until);
        self.probe.carries(bus, processor, way, now, until);
    }
}

fn host(scenario: &Scenario) -> Host<Tag> {
    let mut host = Host::new();
    for bus in &scenario.buses {
        host.add_bus(bus.config);
    }
    for one in &scenario.processors {
        host.add_station(StationConfig {
            bus: one.bus,
            write_buffer: one.write_buffer,
            prefetch: one.prefetch,
            ..StationConfig::default()
        });
    }
    host
}

/// Packets that have not been given to the scheduler yet.
struct Input {
    stream: Stream,
    next: Option<Arrival>,
}

impl Input {
    #[inline]
    fn next_at(&self) -> Time {
        self.next.map_or(Time::MAX, |arrival| arrival.at)
    }

    /// The next packet goes into the scheduler's input.
    #[inline(never)] // one place of two that call it, for all that it calls
    fn push<P>(&mut self, observed: &mut Observed<P>) {
        let Some(arrival) = self.next else { return };
        self.next = self.stream.next();
        let Observed { scheduler, ledger, .. } = observed;
        let Arrival { at, bytes, sa, class, suite } = arrival;
        let id = ledger.arrive(&arrival);
        if scheduler.push(at, Item { id, sa, class, suite, bytes }).is_err() {
            ledger.lose(id);
        }
        if self.next.is_none() {
            scheduler.end_of_input();
        }
    }
}

/// Who may break a run off, and whether that was done.
struct Ending<'a> {
    progress: Option<Progress<'a>>,
    keep: bool,
    cut: Option<u64>,
}

impl Ending<'_> {
    /// Tells of progress, and ends the traffic if that is wanted now.
    fn report<P>(
        &mut self,
        input: &mut Input,
        total: u64,
        observed: &mut Observed<P>,
    ) -> Result<(), RunError> {
        let Some(report) = self.progress.as_mut().filter(|_| self.cut.is_none()) else { return Ok(()) };
        if report(observed.ledger.arrived(), total).is_continue() {
            return Ok(());
        }
        if !self.keep {
            return Err(RunError::Cancelled);
        }
        if input.next.take().is_some() {
            self.cut = Some(observed.ledger.arrived());
            observed.scheduler.end_of_input();
        }
        Ok(())
    }
}

fn report_loads(scenario: &Scenario, scheduler: &mut Scheduler, now: Time) {
    let processors = scenario.processors.iter().enumerate();
    for (index, one) in processors.filter(|(_, one)| one.config.kind == Kind::Cpu) {
        scheduler.report_load(index, now, one.others);
    }
}

fn drive<P: Probe>(
    scenario: &Scenario,
    mut stream: Stream,
    mut observed: Observed<P>,
    ending: &mut Ending<'_>,
) -> Result<Observed<P>, RunError> {
    let mut host = host(scenario);
    let costs: Vec<Cost> = scenario.processors.iter().map(|one| one.config.cost).collect();
    let total = stream.packets();
    let next = stream.next();
    let mut input = Input { stream, next };
    // A limited input turns packets away, and a class does not wait for another's, so each has to come at
    // its time.
    let settings = &scenario.scheduler;
    let in_time = settings.input.is_some() || settings.by_class && !settings.classes.is_empty();
    let mut now = Time::ZERO;
    let mut decisions = 0u64;
    let follows_load = matches!(scenario.scheduler.policy, Policy::AdaptiveAlpha(_));
    let mut load_due = if follows_load { Time::ZERO } else { Time::MAX };
    loop {
        let mut event = host.advance(now, &mut observed);
        if now >= load_due {
            report_loads(scenario, &mut observed.scheduler, now);
            load_due = now + LOAD_EVERY;
        }
        if !in_time {
            while input.next_at() < now && observed.scheduler.input_room() > 0 {
                input.push(&mut observed);
            }
        }
        let wake = match observed.scheduler.next(now) {
            Decision::Dispatch { processor, job, chosen, .. } => {
                let head = &job.head;
                let tag = observed.ledger.place(job.items(), chosen);
                let work = Work { bytes: head.work.bytes, time: costs[processor].of(&head.work), tag };
                observed.probe.waiting(processor, now, observed.scheduler.waiting(processor));
                host.submit(now, processor, work, &mut observed);
                decisions += 1;
                if decisions.is_multiple_of(REPORT_EVERY) {
                    ending.report(&mut input, total, &mut observed)?;
                }
                continue;
            }
            Decision::Nowhere { .. } => {
                return Err(RunError::Scheduler("a packet's suite has no processor".to_owned()));
            }
            Decision::Blocked { .. } if in_time => input.next_at().min(event).min(observed.scheduler.due()),
            Decision::Blocked { processor } => {
                // Nothing matters to the scheduler until that queue has room.
                let full = observed.scheduler.waiting(processor);
                while observed.scheduler.waiting(processor) == full {
                    if event == Time::MAX {
                        return Err(RunError::TooLong);
                    }
                    now = event;
                    event = host.advance(now, &mut observed);
                }
                continue;
            }
            // What processors do until then changes nothing for a scheduler that waits for packets.
            Decision::Wait { until } => until.min(input.next_at()),
            Decision::Idle => input.next_at(),
        };
        if wake <= now {
            input.push(&mut observed);
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
