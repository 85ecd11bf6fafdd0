//! What a scenario is to the scheduler and to the host.

use forebay_scheduler::{
    Config, ConfigError, Cost, Keys, Kind, Policy, ProcessorConfig, Progress, Scheduler,
};
use forebay_station::{Host, StationConfig};
use forebay_time::{Duration, Time};

use crate::dependents::Dependents;
use crate::scenario::{Dependent, Processor, Scenario};

/// How often CPUs report their load, for policies that ask for it.
const LOAD_EVERY: Duration = Duration::from_millis(1);

/// The scheduler's part of a scenario.
fn config(scenario: &Scenario) -> Config {
    let settings = &scenario.scheduler;
    // A job of a batch may take the whole window, and another one is formed behind it.
    let at_once = settings.window.saturating_mul(settings.burst);
    let polls = settings.running_core.is_some();
    // A running core that polls has the limit before it, and gives the scheduler a burst at most.
    let input = match settings.input {
        _ if polls => settings.window.saturating_add(at_once),
        None if in_time(scenario) => usize::MAX,
        limit => limit.unwrap_or(at_once),
    };
    // Of batches only the answers are told, as in the gateway.
    let progress = if settings.takes_batches() { Progress::InOrder } else { Progress::Told };
    let feed = |one: &Processor| Cost { packet: one.feed.packet, block: one.feed.block, ..Cost::default() };
    let processor = |one: &Processor| ProcessorConfig { progress, feed: feed(one), ..one.config.clone() };
    Config {
        processors: scenario.processors.iter().map(processor).collect(),
        policy: settings.policy,
        window: settings.window,
        windowing: settings.windowing,
        timeout: settings.timeout,
        max_bytes: settings.max_bytes,
        input,
        prefetch_aware: settings.prefetch_aware,
        batch: settings.burst,
        // What processors cost is known here.
        trials: false,
        host: settings.running_core.map(|core| core.processor),
        classes: match settings.by_class {
            true => settings.classes.iter().map(|class| class.config).collect(),
            false => Vec::new(),
        },
    }
}

/// The scheduler of a scenario.
pub(crate) fn scheduler(scenario: &Scenario) -> Result<Scheduler, ConfigError> {
    let settings = &scenario.scheduler;
    let mut scheduler = Scheduler::new(config(scenario))?;
    scheduler.set_pass_full(settings.pass_full);
    scheduler.set_idle_to_accelerator(settings.idle_to_accelerator);
    let dependent = match settings.dependent {
        Dependent::SameProcessor => scenario.traffic.dependent_sas.into(),
        Dependent::WhenReady => 0,
    };
    scheduler.set_staying(if settings.stay { u64::MAX } else { dependent });
    Ok(scheduler)
}

/// The keys that the processors hold, none of most.
pub(crate) fn keys(scenario: &Scenario) -> Vec<Option<Keys>> {
    scenario.processors.iter().map(|one| one.config.keys.map(Keys::new)).collect()
}

/// The processors and buses.
pub(crate) fn host<T: Copy>(scenario: &Scenario) -> Host<T> {
    let mut host = Host::new();
    for bus in &scenario.buses {
        host.add_bus(bus.config);
    }
    for one in &scenario.processors {
        host.add_station(StationConfig {
            bus: one.bus,
            write_buffer: one.write_buffer,
            prefetch: one.prefetch,
            wake: one.config.cost.wake,
            ..StationConfig::default()
        });
    }
    host
}

/// Whether each packet has to come at its time: a limited input turns packets away, a class does not wait for
/// another's, what passes full queues by is looked at whenever any may have room, and a packet that has waited for another job
/// comes behind those that have come meanwhile.
pub(crate) fn in_time(scenario: &Scenario) -> bool {
    let settings = &scenario.scheduler;
    settings.input.is_some()
        || settings.has_classes()
        || settings.pass_full
        || Dependents::of(scenario).is_some()
}

/// Reports of the CPUs' loads, where the policy asks for them.
pub(crate) struct Loads<'a> {
    scenario: &'a Scenario,
    due: Time,
    last: Time,
    /// What the running core has done since the last report besides its jobs.
    moved: Duration,
}

impl<'a> Loads<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Loads<'a> {
        let wanted = matches!(scenario.scheduler.policy, Policy::AdaptiveAlpha(_));
        let due = if wanted { Time::ZERO } else { Time::MAX };
        Loads { scenario, due, last: Time::ZERO, moved: Duration::ZERO }
    }

    /// The running core has moved packets for so long.
    pub(crate) fn add(&mut self, moved: Duration) {
        self.moved += moved;
    }

    /// Reports them if that is due.
    #[inline]
    pub(crate) fn report(&mut self, scheduler: &mut Scheduler, now: Time) {
        if now >= self.due {
            self.report_all(scheduler, now);
        }
    }

    #[inline(never)]
    fn report_all(&mut self, scheduler: &mut Scheduler, now: Time) {
        let moved = crate::figures::share(self.moved, now.since(self.last));
        let running = self.scenario.scheduler.running_core.map(|core| core.processor);
        let processors = self.scenario.processors.iter().enumerate();
        for (index, one) in processors.filter(|(_, one)| one.config.kind == Kind::Cpu) {
            let moved = if running == Some(index) { moved } else { 0.0 };
            scheduler.report_load(index, now, (one.others + moved).min(1.0));
        }
        (self.due, self.last, self.moved) = (now + LOAD_EVERY, now, Duration::ZERO);
    }
}
