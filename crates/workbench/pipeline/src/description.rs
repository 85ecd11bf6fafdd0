//! What is simulated: arrivals, stages, servers. Plain data, to be read from anywhere.

use std::fmt;

use forebay_time::{Duration, Time};
use serde::{Deserialize, Serialize};

use crate::law::{Law, seconds};

/// Stages on servers, and the packets they are offered (models.md 2): a chain, or a network of branches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pipeline {
    /// Seed of all random streams.
    pub seed: u64,
    /// The run takes \[0, duration); absent: until the last packet of a trace has left.
    #[serde(with = "seconds::option", skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// What happens before this is not in the figures.
    #[serde(with = "seconds")]
    pub warm_up: Duration,
    /// Equal parts into which the time that counts is divided for intervals from one run; 0: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub batches: u32,
    /// The length of the intervals of a time series.
    #[serde(with = "seconds::option", skip_serializing_if = "Option::is_none")]
    pub series: Option<Duration>,
    /// When packets come.
    pub arrivals: Arrivals,
    /// Size of the packets that are not from a trace.
    pub packet_bytes: u32,
    /// What happens to a packet for which the next stage has no room.
    pub overflow: Overflow,
    /// What stages share.
    pub servers: Vec<Server>,
    /// The stages, in the order in which a packet passes them unless their `next` say otherwise; packets begin in the first.
    pub stages: Vec<Stage>,
}

/// When packets come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// The first at 0, the others this much apart.
    Constant(#[serde(with = "seconds")] Duration),
    /// A Poisson stream; the mean time between packets.
    Exponential(#[serde(with = "seconds")] Duration),
    /// As listed, in order of time.
    Trace(Vec<Arrival>),
}

/// One packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// When it comes.
    #[serde(with = "seconds::time")]
    pub at: Time,
    /// Its size.
    pub bytes: u32,
}

/// What happens to a packet that has been served and for which the next stage has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// It is lost (\[N\]'s simulation).
    #[default]
    Drop,
    /// It is not served before there is room, and the stage holds it (\[N\]'s Markov chain): blocking before service, or
    /// communication blocking. Only the first stage loses packets.
    Block,
    /// It is served, and then keeps its unit of the stage until there is room: blocking after service, or manufacturing
    /// blocking (Perros, Queueing Networks with Blocking, 1994). Only the first stage loses packets. An interrupt-driven
    /// server works for other stages meanwhile.
    BlockAfterService,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Its name in the results, from which its random stream is derived.
    pub name: String,
    /// Service time of a packet.
    pub time: Law,
    /// Packets it can hold, those in service counted.
    pub buffer: u32,
    /// The shared server that works for it, as an index; absent: units of its own.
    #[serde(default)]
    pub server: Option<usize>,
    /// How many units of its own.
    #[serde(default = "one")]
    pub units: u32,
    /// Packets served together, at most: as many as wait when a service begins. Their times add up.
    #[serde(default = "one")]
    pub batch: u32,
    /// Packets that must wait for a service to begin; 1: any (general bulk service, Neuts 1967).
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub batch_min: u32,
    /// A service begins with fewer than `batch_min` when the first of them has waited for so long; absent: never.
    #[serde(default, with = "seconds::option", skip_serializing_if = "Option::is_none")]
    pub batch_timeout: Option<Duration>,
    /// Time of each service beside its packets'.
    #[serde(default, with = "seconds")]
    pub setup: Duration,
    /// Larger goes first on a server that grants by priority.
    #[serde(default)]
    pub priority: u32,
    /// Where packets go on to, drawn for each; the rest leave the pipeline. Absent: all go to the next stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Vec<Branch>>,
    /// How its own units break down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdowns: Option<Breakdowns>,
    /// The power that each unit or core takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
}

/// Breakdowns of units or cores, each by itself, whether it works or not. What it worked on goes on where it stopped: with the
/// first one that is free, or when it is repaired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breakdowns {
    /// From the beginning, or the end of a repair, to the next breakdown.
    pub up: Law,
    /// From a breakdown to the end of its repair.
    pub repair: Law,
}

impl Breakdowns {
    /// Times between breakdowns and for repair with these means, exponential both.
    pub fn exponential(mtbf: Duration, mttr: Duration) -> Breakdowns {
        Breakdowns { up: Law::Exponential(mtbf), repair: Law::Exponential(mttr) }
    }

    /// How much longer work takes in the mean: 1 + mean time to repair / mean time between failures.
    pub fn stretch(&self) -> f64 {
        1.0 + self.repair.mean(0).as_secs() / self.up.mean(0).as_secs()
    }

    fn check(&self) -> Result<(), &'static str> {
        self.up.check()?;
        self.repair.check()?;
        let both = self.up.is_positive() && self.repair.is_positive();
        both.then_some(()).ok_or("the times between breakdowns and for repair must be above zero")
    }
}

/// A way from a stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// The stage that it leads to, as an index.
    pub stage: usize,
    /// Probability that a packet takes it, above 0 and up to 1.
    pub share: f64,
}

/// A server shared by stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Its name in the results.
    pub name: String,
    /// How many cores it has. Each stage can run on all of them at once.
    #[serde(default = "one")]
    pub cores: u32,
    /// How its stages share it.
    pub discipline: Discipline,
    /// How its cores break down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdowns: Option<Breakdowns>,
    /// The power that each unit or core takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
}

/// The power of a unit or core, in watts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// While it works; of a core also while it changes to another stage or context, or is held by a packet for which another
    /// unit works or the next stage has no room.
    pub active_w: f64,
    /// At any other time.
    pub idle_w: f64,
}

impl Power {
    /// Mean power of so many, of which a share of the time is active.
    fn mean(self, count: u32, share: f64) -> f64 {
        let share = share.min(1.0);
        f64::from(count) * (self.active_w * share + self.idle_w * (1.0 - share))
    }
}

/// How the stages of a server share it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Discipline {
    /// A packet holds a context from the first of the server's stages to the last, also while another
    /// unit works for it in between. A core works for one context until that has to wait for such a
    /// unit, then for the next. \[N\]'s core has one context; more are hardware threads.
    BusyWaiting {
        /// Packets that can be in the span at once.
        contexts: u32,
        /// Time a core takes to change from one context to another.
        switch_delay: Law,
    },
    /// Stages take turns.
    InterruptDriven {
        /// Longest run while another stage asks.
        run_length: Law,
        /// Time a core takes to change from one stage to another.
        switch_delay: Law,
        /// When a run ends.
        run_ends: RunEnds,
        /// The rule that chooses the next one.
        grant: Grant,
    },
}

/// When a run of an interrupt-driven server ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnds {
    /// With the packet in service, or at the run length if another stage asks (\[N\] 4.3).
    #[default]
    Packet,
    /// When the stage has nothing to do, or at the run length if another stage asks (\[N\] Table I).
    Slice,
}

/// Which of the stages that ask has the next run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// The first that asked.
    #[default]
    FirstAsked,
    /// The next in the chain's cyclic order.
    RoundRobin,
    /// The one of the largest priority; of equals the first that asked.
    Priority,
    /// As `Priority`, and a running stage of smaller priority is cut off.
    PreemptivePriority,
}

fn one() -> u32 {
    1
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

impl Default for Pipeline {
    fn default() -> Pipeline {
        Pipeline {
            seed: 1,
            duration: Some(Duration::from_millis(500)),
            warm_up: Duration::ZERO,
            batches: 0,
            series: None,
            arrivals: Arrivals::Exponential(Duration::from_micros(70)),
            packet_bytes: 0,
            overflow: Overflow::Drop,
            servers: Vec::new(),
            stages: Vec::new(),
        }
    }
}

impl Stage {
    /// A stage with one unit of its own.
    pub fn new(name: &str, time: Law, buffer: u32) -> Stage {
        let setup = Duration::ZERO;
        let name = name.into();
        Stage {
            name,
            time,
            buffer,
            server: None,
            units: 1,
            batch: 1,
            batch_min: 1,
            batch_timeout: None,
            setup,
            priority: 0,
            next: None,
            breakdowns: None,
            power: None,
        }
    }

    /// Whether a service waits for more packets than one.
    pub(crate) fn gathers(&self) -> bool {
        self.batch_min > 1
    }

    fn check_batches(&self, duration: Option<Duration>) -> Result<(), &'static str> {
        if self.batch_min == 0 || self.batch_min > self.batch || self.batch_min > self.buffer {
            return Err("`batch_min` must be 1 at least, and at most `batch` and `buffer`");
        }
        if self.gathers() && self.batch_timeout.is_none() && duration.is_none() {
            return Err("the last packets of a trace would wait for ever without `batch_timeout`");
        }
        Ok(())
    }

    /// The same stage on a shared server.
    pub fn on(self, server: usize) -> Stage {
        Stage { server: Some(server), ..self }
    }
}

impl Discipline {
    /// \[N\]'s busy-waiting: one context.
    pub fn busy_waiting() -> Discipline {
        Discipline::BusyWaiting { contexts: 1, switch_delay: Law::Constant(Duration::ZERO) }
    }

    /// \[N\]'s interrupt-driven core with constant run length and switch delay.
    pub fn interrupt_driven(run_length: Duration, switch_delay: Duration) -> Discipline {
        Discipline::InterruptDriven {
            run_length: Law::Constant(run_length),
            switch_delay: Law::Constant(switch_delay),
            run_ends: RunEnds::Packet,
            grant: Grant::FirstAsked,
        }
    }
}

impl Pipeline {
    /// Mean power in watts of all units and cores of which it is given; `None` if it is of none. `units` and `cores` are the
    /// shares of the time that those of each stage and of each server are active, in order.
    pub(crate) fn power(
        &self,
        units: impl Iterator<Item = f64>,
        cores: impl Iterator<Item = f64>,
    ) -> Option<f64> {
        let own = self.stages.iter().zip(units).filter(|(stage, _)| stage.server.is_none());
        let own = own.filter_map(|(stage, share)| Some(stage.power?.mean(stage.units, share)));
        let shared = self.servers.iter().zip(cores);
        let shared = shared.filter_map(|(server, share)| Some(server.power?.mean(server.cores, share)));
        own.chain(shared).reduce(|sum, one| sum + one)
    }

    /// \[N\]'s network processor: receive, preprocess, crypto, IP, transmit, of which preprocess and
    /// IP share the core. Times from \[N\] Table II, constant; 100 waiting places a stage, 0.5 s.
    pub fn ixp425(mean_gap: Duration, core: Discipline) -> Pipeline {
        let stage = |name, tenths_us: u64| {
            Stage::new(name, Law::Constant(Duration::from_nanos(100 * tenths_us)), 101)
        };
        Pipeline {
            arrivals: Arrivals::Exponential(mean_gap),
            servers: vec![Server {
                name: "core".into(),
                cores: 1,
                discipline: core,
                breakdowns: None,
                power: None,
            }],
            stages: vec![
                stage("receive", 273),
                stage("preprocess", 320).on(0),
                stage("crypto", 126),
                stage("ip", 490).on(0),
                stage("transmit", 273),
            ],
            ..Pipeline::default()
        }
    }

    /// The same pipeline under the assumptions of the Markov chain: every time exponential with the
    /// mean it has, nothing lost between stages, runs that end at their length, and, of several that
    /// ask, the next in cyclic order (models.md 2, "solved, not simulated"; of two stages that is the
    /// first that asked). What is simulated of it is what [`crate::solve`] solves.
    pub fn markov(&self) -> Pipeline {
        let mut markov = self.clone();
        markov.overflow = Overflow::Block;
        if let Arrivals::Constant(gap) = markov.arrivals {
            markov.arrivals = Arrivals::Exponential(gap);
        }
        for stage in &mut markov.stages {
            stage.time = Law::Exponential(stage.time.mean(self.packet_bytes));
        }
        for server in &mut markov.servers {
            if let Discipline::InterruptDriven { run_length, switch_delay, run_ends, grant } =
                &mut server.discipline
            {
                *run_ends = RunEnds::Slice;
                if *grant == Grant::FirstAsked {
                    *grant = Grant::RoundRobin;
                }
                for law in [run_length, switch_delay] {
                    *law = Law::Exponential(law.mean(0));
                }
            }
        }
        markov
    }

    /// Whether anything breaks down.
    pub fn has_breakdowns(&self) -> bool {
        let own = self.stages.iter().map(|stage| &stage.breakdowns);
        own.chain(self.servers.iter().map(|server| &server.breakdowns)).any(Option::is_some)
    }

    /// Whether the description makes sense.
    ///
    /// # Errors
    /// [`Invalid`] says what does not.
    pub fn check(&self) -> Result<(), Invalid> {
        let invalid = |what: String| Err(Invalid(what));
        match &self.arrivals {
            Arrivals::Constant(gap) | Arrivals::Exponential(gap) if *gap == Duration::ZERO => {
                return invalid("packets must not all come at once: the time between them is zero".into());
            }
            Arrivals::Trace(trace) if !trace.is_sorted_by_key(|packet| packet.at) => {
                return invalid("the trace is not in order of time".into());
            }
            Arrivals::Trace(_) => {}
            _ if self.duration.is_none() => return invalid("drawn arrivals need a duration".into()),
            _ => {}
        }
        if self.duration.is_some_and(|duration| duration <= self.warm_up) {
            return invalid("the run ends before it is warm".into());
        }
        if self.batches == 1 || (self.batches > 0 && self.duration.is_none()) {
            return invalid("batches are two at least, of a run that has a duration".into());
        }
        if self.series.is_some_and(|step| step == Duration::ZERO) {
            return invalid("the intervals of a time series must be above zero".into());
        }
        if self.stages.is_empty() {
            return invalid("there are no stages".into());
        }
        for stage in &self.stages {
            let name = &stage.name;
            if stage.buffer == 0 || stage.units == 0 || stage.batch == 0 {
                return invalid(format!("stage {name}: buffer, units and batch must be at least 1"));
            }
            stage.check_batches(self.duration).or_else(|what| invalid(format!("stage {name}: {what}")))?;
            if stage.server.is_some_and(|server| server >= self.servers.len()) {
                return invalid(format!("stage {name}: there is no such server"));
            }
            stage.time.check().or_else(|what| invalid(format!("stage {name}: {what}")))?;
            if let Some(breakdowns) = &stage.breakdowns {
                breakdowns.check().or_else(|what| invalid(format!("stage {name}: {what}")))?;
                if stage.server.is_some() {
                    return invalid(format!("stage {name}: it has no units of its own that break down"));
                }
            }
        }
        for (index, server) in self.servers.iter().enumerate() {
            let name = &server.name;
            let (contexts, switch_delay) = match &server.discipline {
                Discipline::BusyWaiting { contexts, switch_delay } => (*contexts, switch_delay),
                Discipline::InterruptDriven { run_length, switch_delay, .. } => {
                    run_length.check().or_else(|what| invalid(format!("server {name}: {what}")))?;
                    // Of two stages that ask, neither would ever come to work.
                    if !run_length.is_positive() {
                        return invalid(format!("server {name}: a run length must be a time above zero"));
                    }
                    (1, switch_delay)
                }
            };
            switch_delay.check().or_else(|what| invalid(format!("server {name}: {what}")))?;
            let breakdowns = server.breakdowns.as_ref().map_or(Ok(()), Breakdowns::check);
            breakdowns.or_else(|what| invalid(format!("server {name}: {what}")))?;
            if server.cores == 0 || contexts == 0 {
                return invalid(format!("server {name}: cores and contexts must be at least 1"));
            }
            self.check_span(index)?;
        }
        match self.flaw() {
            Some(flaw) => invalid(format!("stage {}: {}", self.stages[flaw.stage].name, flaw.message)),
            None => Ok(()),
        }
    }

    /// The first and last stage of a server.
    pub(crate) fn span(&self, server: usize) -> Option<(usize, usize)> {
        let on = |stage: &Stage| stage.server == Some(server);
        Some((self.stages.iter().position(on)?, self.stages.iter().rposition(on)?))
    }

    /// The first stage for which a packet needs a shared server while it holds a busy-waiting one: engines that wait for memory.
    pub(crate) fn nested(&self) -> Option<usize> {
        let inside = |server: usize| {
            let (first, last) = self.span(server)?;
            let holds = matches!(self.servers[server].discipline, Discipline::BusyWaiting { .. });
            let other = |&at: &usize| self.stages[at].server.is_some_and(|other| other != server);
            (first..=last).find(other).filter(|_| holds)
        };
        (0..self.servers.len()).filter_map(inside).min()
    }

    fn check_span(&self, server: usize) -> Result<(), Invalid> {
        let Discipline::BusyWaiting { .. } = self.servers[server].discipline else { return Ok(()) };
        let Some((first, last)) = self.span(server) else { return Ok(()) };
        for stage in &self.stages[first..=last] {
            let name = &self.servers[server].name;
            if let Some(other) = stage.server.filter(|&other| other != server)
                && matches!(self.servers[other].discipline, Discipline::BusyWaiting { .. })
            {
                let what = "is on another busy-waiting server, inside the span of busy-waiting";
                return Err(Invalid(format!("stage {} {what} {name}", stage.name)));
            }
            if stage.batch > 1 && last > first {
                return Err(Invalid(format!(
                    "stage {}: a context of {name} holds one packet, not a batch",
                    stage.name
                )));
            }
        }
        Ok(())
    }
}

/// A description that makes no sense; the text says where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(pub String);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}
