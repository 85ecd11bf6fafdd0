//! Pipelines that are solved instead of simulated, by the chains of `forebay-models`.

use forebay_models as models;
use forebay_models::card::Card;
use forebay_time::{Duration, PS_PER_S};

use crate::description::{
    Arrivals, Branch, Breakdowns, Discipline, Grant, Overflow, Pipeline, Server, Stage,
};
use crate::law::Law;

/// Solves the Markov chain of [`Pipeline::markov`].
///
/// # Errors
/// [`models::Error::Invalid`] for what no chain is known of (several cores or contexts, batches,
/// arrivals from a trace), and whatever [`models::solve`] says.
///
/// ```
/// use forebay_pipeline::{Discipline, Pipeline, solve};
/// use forebay_time::Duration;
///
/// let core = Discipline::interrupt_driven(Duration::from_micros(100), Duration::ZERO);
/// let mut pipeline = Pipeline::ixp425(Duration::from_micros(100), core);
/// pipeline.stages.iter_mut().for_each(|stage| stage.buffer = 4);
/// let solution = solve(&pipeline, &Default::default())?;
/// assert_eq!(solution.states, 12_500);
/// # Ok::<(), forebay_models::Error>(())
/// ```
pub fn solve(pipeline: &Pipeline, options: &models::Options) -> Result<models::Solution, models::Error> {
    models::solve(&network(pipeline)?, options)
}

/// The network whose chain [`solve`] solves.
///
/// # Errors
/// As [`solve`].
pub fn network(pipeline: &Pipeline) -> Result<models::Network, models::Error> {
    pipeline.check().map_err(|what| models::Error::Invalid(what.0))?;
    match obstacle(pipeline, Solves::Chain) {
        Some((_, what, _)) => {
            Err(models::Error::Invalid(format!("{what}: to be simulated, there is no chain of it")))
        }
        None => Ok(described(pipeline)),
    }
}

/// The network of which [`models::closed::stations`] are the closed forms: an open Jackson network.
///
/// # Errors
/// [`models::Error::Invalid`] for what has no closed form.
pub fn unlimited(pipeline: &Pipeline) -> Result<models::Network, models::Error> {
    pipeline.check().map_err(|what| models::Error::Invalid(what.0))?;
    match obstacle(pipeline, Solves::ClosedForm) {
        Some((_, what, _)) => {
            Err(models::Error::Invalid(format!("{what}: to be simulated, there is no closed form of it")))
        }
        None => Ok(described(pipeline)),
    }
}

fn described(pipeline: &Pipeline) -> models::Network {
    let mean = match pipeline.arrivals {
        Arrivals::Constant(gap) | Arrivals::Exponential(gap) => gap.as_secs(),
        Arrivals::Trace(_) => f64::NAN,
    };
    let branch = |way: &Branch| models::Branch { stage: way.stage, share: way.share };
    let stage = |stage: &Stage| models::Stage {
        name: stage.name.clone(),
        time_s: stage.time.mean(pipeline.packet_bytes).as_secs(),
        buffer: stage.buffer,
        units: stage.units,
        server: stage.server,
        run_length_s: None,
        next: stage.next.as_ref().map(|ways| ways.iter().map(branch).collect()),
        breakdowns: stage.breakdowns.as_ref().map(breakdowns),
    };
    let server = |(index, server): (usize, &Server)| {
        let discipline = discipline(pipeline, index)?;
        Some(models::Server { name: server.name.clone(), discipline })
    };
    models::Network {
        arrival_rate: 1.0 / mean,
        stages: pipeline.stages.iter().map(stage).collect(),
        servers: pipeline.servers.iter().enumerate().filter_map(server).collect(),
    }
}

fn breakdowns(one: &Breakdowns) -> models::closed::Breakdowns {
    let [mtbf_s, mttr_s] = [&one.up, &one.repair].map(|law| law.mean(0).as_secs());
    models::closed::Breakdowns { mtbf_s, mttr_s, constant: !one.repair.is_memoryless() }
}

/// A queue of one unit by the mean and variance of its times, which breaks down if the stage does.
pub(crate) fn queue_by_law(
    stage: &Stage,
    arrivals: f64,
    mean_s: f64,
    variance: f64,
) -> Result<models::closed::Queue, models::Error> {
    match &stage.breakdowns {
        Some(one) => models::closed::mg1_with_breakdowns(arrivals, mean_s, variance, breakdowns(one)),
        None => models::closed::mg1(arrivals, mean_s, variance),
    }
}

/// What is to be solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Solves {
    Chain,
    ClosedForm,
}

/// A part of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Arrivals,
    Stage(usize),
    Server(usize),
}

/// What has no solution, if anything: where, what, and what to do instead.
pub(crate) fn obstacle(pipeline: &Pipeline, by: Solves) -> Option<(Part, String, &'static str)> {
    const SIMULATE: &str = "`forebay simulate` takes it";
    if let Arrivals::Trace(_) = pipeline.arrivals {
        return Some((Part::Arrivals, "arrivals from a trace".to_owned(), SIMULATE));
    }
    for (at, stage) in pipeline.stages.iter().enumerate() {
        let is = |what: &str, help| Some((Part::Stage(at), format!("stage {} {what}", stage.name), help));
        if stage.batch > 1 || stage.setup > Duration::ZERO {
            return is("works in batches or with a setup", SIMULATE);
        }
        if stage.breakdowns.is_some() && (by == Solves::Chain || stage.units > 1) {
            let help = "`--unlimited` solves a single unit that breaks down; `forebay simulate` takes all";
            return is("has units that break down", help);
        }
        if by == Solves::Chain && stage.next.is_some() {
            let help = "`--unlimited` solves it in closed form, an open Jackson network; `forebay simulate` takes it";
            return is("is part of a network with branches", help);
        }
    }
    if let Some(at) = pipeline.nested() {
        let what = format!(
            "stage {}, which needs a shared server while its packet holds another",
            pipeline.stages[at].name
        );
        return Some((Part::Stage(at), what, SIMULATE));
    }
    for (at, server) in pipeline.servers.iter().enumerate() {
        if server.breakdowns.is_some() {
            let what = format!("server {}, whose cores break down", server.name);
            return Some((Part::Server(at), what, SIMULATE));
        }
        if server.cores > 1 || discipline(pipeline, at).is_none() {
            let what = format!("server {} with its cores, contexts or priorities", server.name);
            return Some((Part::Server(at), what, SIMULATE));
        }
    }
    None
}

fn discipline(pipeline: &Pipeline, server: usize) -> Option<models::Discipline> {
    match &pipeline.servers[server].discipline {
        Discipline::BusyWaiting { contexts: 1, .. } => Some(models::Discipline::BusyWaiting),
        Discipline::BusyWaiting { .. } => None,
        Discipline::InterruptDriven { run_length, switch_delay, grant, .. } => {
            let seconds = |law: &Law| law.mean(0).as_secs();
            match grant {
                Grant::FirstAsked | Grant::RoundRobin => Some(models::Discipline::InterruptDriven {
                    run_length_s: seconds(run_length),
                    switch_delay_s: seconds(switch_delay),
                }),
                Grant::PreemptivePriority if seconds(switch_delay) == 0.0 => by_priority(pipeline, server),
                Grant::Priority | Grant::PreemptivePriority => None,
            }
        }
    }
}

/// Priorities that rise or fall along the chain.
fn by_priority(pipeline: &Pipeline, server: usize) -> Option<models::Discipline> {
    let stages = pipeline.stages.iter().filter(|stage| stage.server == Some(server));
    let priorities: Vec<u32> = stages.map(|stage| stage.priority).collect();
    if priorities.is_sorted_by(|a, b| a < b) {
        Some(models::Discipline::LastFirst)
    } else if priorities.is_sorted_by(|a, b| a > b) {
        Some(models::Discipline::FirstFirst)
    } else {
        None
    }
}

impl Pipeline {
    /// How often a packet passes each stage in the mean, if none is lost.
    pub fn visits(&self) -> Vec<f64> {
        self.visits_from(0)
    }

    /// How often a packet that comes to the stage `first` passes each stage from there on in the mean, if it is not lost.
    pub fn visits_from(&self, first: usize) -> Vec<f64> {
        let all = described(self);
        let stages = all.stages.into_iter().map(|stage| models::Stage { server: None, ..stage }).collect();
        models::Network { arrival_rate: 1.0, stages, servers: Vec::new() }.visits_from(first)
    }

    /// An inline card as a pipeline: each of its resources a stage that holds `buffer` packets of
    /// `payload` bytes, which come at `offered_bps` of payload, evenly or as a Poisson stream.
    ///
    /// A resource crossed several times, such as memory, is taken for all crossings at once.
    pub fn card(card: &Card, payload: u32, offered_bps: f64, buffer: u32) -> Pipeline {
        let transfer = card.transfer_packets.max(1);
        let stage = |resource: &models::card::Resource| {
            let rate = resource.rate_bps / resource.crossings;
            let rate = rate / f64::from(resource.interleave.map_or(1, |one| one.depth));
            let overhead_s = resource.overhead_s * resource.crossings;
            let bytes = resource.overhead_bytes.round() as u32;
            let law = |overhead_bytes| Law::Rate { bits_per_s: rate, overhead_bytes };
            let stage = Stage { units: resource.lanes(), ..Stage::new(&resource.name, law(bytes), buffer) };
            if let Some(one) = resource.interrupts {
                // What is paid for each packet beside the interrupt is part of its own time.
                let time = Duration::from_secs(8.0 * f64::from(payload + bytes) / rate + overhead_s);
                let setup = Duration::from_secs(one.cost_s);
                let (batch, batch_timeout) = (one.packets, one.timeout_s.map(Duration::from_secs));
                let time = Law::Constant(time);
                return Stage { time, setup, batch, batch_min: batch, batch_timeout, ..stage };
            }
            if resource.whole && transfer > 1 {
                let setup = Duration::from_secs(8.0 * f64::from(bytes) / rate + overhead_s);
                return Stage { time: law(0), setup, batch: transfer, batch_min: transfer, ..stage };
            }
            Stage { setup: Duration::from_secs(overhead_s), ..stage }
        };
        let gap = f64::from(payload) * 8.0 * PS_PER_S as f64 / offered_bps;
        let gap = Duration((gap + 0.5) as u64);
        Pipeline {
            arrivals: if card.poisson { Arrivals::Exponential(gap) } else { Arrivals::Constant(gap) },
            packet_bytes: payload,
            overflow: Overflow::Drop,
            servers: Vec::<Server>::new(),
            stages: card.resources.iter().filter(|r| r.crossings > 0.0).map(stage).collect(),
            ..Pipeline::default()
        }
    }
}
