//! The JSON documents of pipelines and inline cards (docs/reference/pipeline.md and inline-card.md).

use forebay_models::{Error, Solution, card, closed};
use forebay_random::{CONFIDENCE, Estimate};
use serde::Serialize;
use serde_json::Value;

use crate::description::{Pipeline, Stage};
use crate::figures::Outcome;
use crate::replicate::interval;
use crate::scenario::{CardScenario, Rules, Scenario};
use crate::solved::{queue_by_law, unlimited};

/// `forebay simulate --json`: the figures of the first run with all that they depend on.
#[derive(Clone, Debug, Serialize)]
pub struct Simulated<'a> {
    schema: u32,
    model: &'static str,
    seed: u64,
    rules: Rules,
    /// Payload carried by an inline card, in bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_bps: Option<f64>,
    #[serde(flatten)]
    outcome: &'a Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    replications: Option<Replications>,
    notes: Vec<String>,
    resolved: &'a Value,
}

/// Means over several runs, each with the half width of its 95 % confidence interval.
#[derive(Clone, Debug, Serialize)]
pub struct Replications {
    /// How many.
    pub runs: usize,
    /// Share of such intervals that hold the true mean.
    pub confidence: f64,
    /// Packets that came.
    pub generated: Estimate,
    /// Packets that left the last stage.
    pub processed: Estimate,
    /// Packets lost in all stages.
    pub lost: Estimate,
    /// Packets processed a second.
    pub throughput_pps: Estimate,
    /// Lost over generated.
    pub loss_probability: Estimate,
    /// Mean delay in seconds.
    pub delay_mean_s: Estimate,
    /// Energy per packet in joules, if any power is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_packet_j: Option<Estimate>,
    /// Mean power in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_power_w: Option<Estimate>,
    /// Each stage, in order.
    pub stages: Vec<StageMeans>,
    /// Each server, in order.
    pub servers: Vec<ServerMeans>,
}

/// A stage over several runs (see [`StageOutcome`](crate::StageOutcome)).
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "as in the outcome of one run")]
pub struct StageMeans {
    pub name: String,
    pub utilisation: Estimate,
    pub max_queue: Estimate,
    pub mean_queue: Estimate,
    pub mean_occupancy: Estimate,
    pub lost: Estimate,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub services: Option<Estimate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<Estimate>,
}

/// A server over several runs (see [`ServerOutcome`](crate::ServerOutcome)).
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "as in the outcome of one run")]
pub struct ServerMeans {
    pub name: String,
    pub utilisation: Estimate,
    pub switching: Estimate,
    pub waiting: Estimate,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<Estimate>,
}

impl Replications {
    /// Of the outcomes of one design with several seeds; `None` of one, which says nothing of chance.
    pub fn new(outcomes: &[Outcome]) -> Option<Replications> {
        let first = outcomes.first().filter(|_| outcomes.len() > 1)?;
        let of = |figure: &dyn Fn(&Outcome) -> f64| interval(outcomes, CONFIDENCE, figure);
        let stage = |at: usize| StageMeans {
            name: first.stages[at].name.clone(),
            utilisation: of(&|one| one.stages[at].utilisation),
            max_queue: of(&|one| one.stages[at].max_queue.into()),
            mean_queue: of(&|one| one.stages[at].mean_queue),
            mean_occupancy: of(&|one| one.stages[at].mean_occupancy),
            lost: of(&|one| one.stages[at].lost as f64),
            services: first.stages[at]
                .services
                .map(|_| of(&|one| one.stages[at].services.unwrap_or_default() as f64)),
            down: first.stages[at].down.map(|_| of(&|one| one.stages[at].down.unwrap_or_default())),
        };
        let server = |at: usize| ServerMeans {
            name: first.servers[at].name.clone(),
            utilisation: of(&|one| one.servers[at].utilisation),
            switching: of(&|one| one.servers[at].switching),
            waiting: of(&|one| one.servers[at].waiting),
            down: first.servers[at].down.map(|_| of(&|one| one.servers[at].down.unwrap_or_default())),
        };
        Some(Replications {
            runs: outcomes.len(),
            confidence: CONFIDENCE,
            generated: of(&|one| one.generated as f64),
            processed: of(&|one| one.processed as f64),
            lost: of(&|one| one.lost as f64),
            throughput_pps: of(&|one| one.throughput_pps),
            loss_probability: of(&|one| one.loss_probability),
            delay_mean_s: of(&|one| one.delay.mean_s),
            // A run that processed nothing has no energy per packet, and its absence says that the mean has none.
            energy_per_packet_j: (outcomes.iter().all(|one| one.energy_per_packet_j.is_some()))
                .then(|| of(&|one| one.energy_per_packet_j.unwrap_or_default())),
            average_power_w: (first.average_power_w)
                .map(|_| of(&|one| one.average_power_w.unwrap_or_default())),
            stages: (0..first.stages.len()).map(stage).collect(),
            servers: (0..first.servers.len()).map(server).collect(),
        })
    }
}

impl<'a> Simulated<'a> {
    /// The document of the outcomes of a pipeline, at least one.
    pub fn new(scenario: &'a Scenario, outcomes: &'a [Outcome]) -> Simulated<'a> {
        Simulated {
            schema: 1,
            model: "pipeline",
            seed: scenario.pipeline.seed,
            rules: scenario.rules,
            payload_bps: None,
            outcome: &outcomes[0],
            replications: Replications::new(outcomes),
            notes: scenario.notes.iter().cloned().chain(outcomes[0].warning()).collect(),
            resolved: &scenario.resolved,
        }
    }

    /// The document of the outcomes of an inline card, at least one.
    pub fn card(scenario: &'a CardScenario, outcomes: &'a [Outcome]) -> Simulated<'a> {
        Simulated {
            schema: 1,
            model: "inline-card",
            seed: scenario.pipeline.seed,
            rules: Rules::Described,
            payload_bps: Some(scenario.payload_bps(&outcomes[0])),
            outcome: &outcomes[0],
            replications: Replications::new(outcomes),
            notes: scenario.notes.iter().cloned().chain(outcomes[0].warning()).collect(),
            resolved: &scenario.resolved,
        }
    }
}

/// `forebay solve --json` of a pipeline.
#[derive(Clone, Debug, Serialize)]
pub struct Solved<'a> {
    schema: u32,
    model: &'static str,
    #[serde(flatten)]
    solution: &'a Solution,
    /// As of a run ([`Outcome`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    energy_per_packet_j: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    average_power_w: Option<f64>,
    /// What the chain takes otherwise than the file says.
    warnings: Vec<String>,
    resolved: &'a Value,
}

impl<'a> Solved<'a> {
    /// The document of a solution.
    pub fn new(scenario: &'a Scenario, solution: &'a Solution) -> Solved<'a> {
        let warnings = scenario.approximations();
        let cores = solution.servers.iter().map(|one| one.utilisation + one.switching + one.waiting);
        let power = scenario.pipeline.power(solution.stages.iter().map(|one| one.utilisation), cores);
        Solved {
            schema: 1,
            model: "pipeline",
            solution,
            energy_per_packet_j: power.map(|watts| watts / solution.throughput_pps),
            average_power_w: power,
            warnings,
            resolved: &scenario.resolved,
        }
    }
}

/// `forebay solve --unlimited --json`: as though buffers had no limit (\[N\] equations 1 to 3).
#[derive(Clone, Debug, Serialize)]
pub struct ClosedForm<'a> {
    schema: u32,
    model: &'static str,
    method: &'static str,
    states: Option<u64>,
    /// Packets a second: all that come.
    pub throughput_pps: f64,
    loss_probability: f64,
    /// From arrival to departure.
    pub mean_delay_s: f64,
    /// The same with the stations' `general`; `None` if one of them has none.
    pub general_delay_s: Option<f64>,
    /// Each queue: a stage, or the span that busy-waiting holds a packet for.
    pub stages: Vec<Station>,
    servers: [(); 0],
    residual: f64,
    converged: bool,
    /// What the closed form takes otherwise than the file says.
    pub warnings: Vec<String>,
    resolved: &'a Value,
}

/// One queue of a closed form.
#[derive(Clone, Debug, Serialize)]
pub struct Station {
    /// Its stages' names, with a plus between them.
    pub name: String,
    /// How often a packet passes it in the mean.
    pub visits: f64,
    /// Its figures, of one passing, with exponential times.
    #[serde(flatten)]
    pub queue: closed::Queue,
    /// Its figures with times of the law that the file says (Pollaczek and Khinchine); `None` for several units whose times
    /// are not exponential, and for times without a variance.
    pub general: Option<closed::Queue>,
}

impl<'a> ClosedForm<'a> {
    /// The closed form of a pipeline.
    ///
    /// # Errors
    /// Those of [`closed::stations`] and [`crate::unlimited`].
    pub fn new(scenario: &'a Scenario) -> Result<ClosedForm<'a>, Error> {
        let network = unlimited(&scenario.pipeline)?;
        let queues = closed::stations(&network)?;
        let title = |(first, last): (usize, usize)| {
            let names = network.stages[first..=last].iter().map(|stage| stage.name.as_str());
            names.collect::<Vec<_>>().join("+")
        };
        let spans = network.stations();
        let stations = spans.iter().zip(network.visits()?).zip(queues);
        let stages = stations.map(|((&span, visits), queue)| {
            let general = general(&scenario.pipeline, span, &queue)?;
            Ok(Station { name: title(span), visits, queue, general })
        });
        let stages = stages.collect::<Result<Vec<Station>, Error>>()?;
        let all = |delay: &dyn Fn(&Station) -> Option<f64>| -> Option<f64> {
            stages.iter().map(|one| Some(one.visits * delay(one)?)).sum()
        };
        let mut warnings = scenario.approximations();
        warnings.extend(taken_as_poisson(&scenario.pipeline, &spans));
        let constant = |stage: &&Stage| stage.breakdowns.as_ref().is_some_and(|one| !one.up.is_memoryless());
        let constant = scenario.pipeline.stages.iter().filter(constant);
        warnings.extend(constant.map(|stage| {
            format!("the times between breakdowns of `{}` are taken as exponential", stage.name)
        }));
        Ok(ClosedForm {
            schema: 1,
            model: "pipeline",
            method: "closed-form",
            states: None,
            throughput_pps: network.arrival_rate,
            loss_probability: 0.0,
            mean_delay_s: stages.iter().map(|one| one.visits * one.queue.mean_delay_s).sum(),
            general_delay_s: all(&|one| Some(one.general?.mean_delay_s)),
            stages,
            servers: [],
            residual: 0.0,
            converged: true,
            warnings,
            resolved: &scenario.resolved,
        })
    }
}

/// A station by the laws of its stages, the first and last of which are given; `queue` is what it is with exponential times.
fn general(
    pipeline: &Pipeline,
    (first, last): (usize, usize),
    queue: &closed::Queue,
) -> Result<Option<closed::Queue>, Error> {
    let stages = &pipeline.stages[first..=last];
    if first == last && stages[0].time.is_memoryless() {
        return Ok(Some(*queue));
    }
    let bytes = pipeline.packet_bytes;
    let mean: f64 = stages.iter().map(|stage| stage.time.mean(bytes).as_secs()).sum();
    let variance: f64 = stages.iter().map(|stage| stage.time.variance(bytes)).sum();
    if stages[0].units > 1 || !variance.is_finite() {
        return Ok(None);
    }
    queue_by_law(&stages[0], queue.throughput_pps, mean, variance).map(Some)
}

/// Says where `general` takes packets for a Poisson stream that are none: behind stations whose times are not exponential.
fn taken_as_poisson(pipeline: &Pipeline, stations: &[(usize, usize)]) -> Option<String> {
    let of = |stage: usize| stations.iter().position(|&(first, last)| (first..=last).contains(&stage));
    let is_odd =
        |&(first, last): &(usize, usize)| first < last || !pipeline.stages[first].time.is_memoryless();
    let mut found = vec![false; stations.len()];
    let mut open: Vec<usize> = (0..stations.len()).filter(|&at| is_odd(&stations[at])).collect();
    while let Some(at) = open.pop() {
        for to in pipeline.ways(stations[at].1).into_iter().filter_map(|way| of(way.stage)) {
            if !std::mem::replace(&mut found[to], true) {
                open.push(to);
            }
        }
    }
    let odd = stations.iter().zip(found).filter(|(_, found)| *found);
    let names: Vec<String> = odd.map(|(span, _)| format!("`{}`", pipeline.stages[span.0].name)).collect();
    let breaks = if pipeline.has_breakdowns() { "" } else { "in `general`, " };
    (!names.is_empty()).then(|| {
        format!("{breaks}the packets that come to {} are taken as a Poisson stream", names.join(", "))
    })
}

/// `forebay solve --json` of an inline card: its limit, and what it does with what it is offered.
#[derive(Clone, Debug, Serialize)]
pub struct Carried<'a> {
    schema: u32,
    model: &'static str,
    /// Payload carried of what is offered, in bit/s.
    pub payload_bps: f64,
    /// The most payload it can carry, in bit/s.
    pub limit_bps: f64,
    /// The resource that sets the limit.
    pub bottleneck: Option<String>,
    /// Each resource, in order.
    pub resources: Vec<Used>,
    resolved: &'a Value,
}

/// What a resource does with what is offered.
#[derive(Clone, Debug, Serialize)]
pub struct Used {
    /// Its name.
    pub name: String,
    /// Share of the time that it is busy.
    pub utilisation: f64,
    /// The most payload it alone would let through, in bit/s; `None`: it takes no time.
    pub limit_bps: Option<f64>,
    /// Interrupts per second at what is carried; `None` of a resource without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupts_per_s: Option<f64>,
    /// Mean time that a packet waits until its interrupt is raised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_wait_s: Option<f64>,
}

impl<'a> Carried<'a> {
    /// The document of an inline card.
    pub fn new(scenario: &'a CardScenario) -> Carried<'a> {
        let payload = f64::from(scenario.payload);
        let limit = scenario.card.limit(payload);
        let card::Carried { payload_bps, bottleneck, utilisation } =
            scenario.card.carried(payload, scenario.offered_bps);
        let resources = scenario.card.resources.iter().zip(utilisation).map(|(one, utilisation)| {
            let busy = scenario.card.busy_s(one, payload);
            let limit_bps = (busy > 0.0).then(|| 8.0 * payload / busy);
            let moderated = scenario.card.moderated(one, payload, payload_bps);
            let packets_per_s = payload_bps / (8.0 * payload);
            Used {
                name: one.name.clone(),
                utilisation,
                limit_bps,
                interrupts_per_s: moderated.map(|all| packets_per_s / all.packets),
                interrupt_wait_s: moderated.map(|all| all.wait_s),
            }
        });
        Carried {
            schema: 1,
            model: "inline-card",
            payload_bps,
            limit_bps: limit.payload_bps,
            bottleneck,
            resources: resources.collect(),
            resolved: &scenario.resolved,
        }
    }
}

/// `forebay size-buffers --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Sizes<'a> {
    /// 1.
    pub schema: u32,
    /// How loss was found: `chain` or `simulation`.
    pub by: &'static str,
    /// The bound on the share of packets lost.
    pub loss: f64,
    /// The smallest buffers that keep it, by stage; `None` if none within the limit do.
    pub smallest: Option<SmallestBuffers>,
    /// The highest load that the file's own buffers bear; `None` if they lose more at any load.
    pub highest_load_pps: Option<f64>,
    /// The same as payload of an inline card, in bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highest_load_bps: Option<f64>,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
    /// The scenario with every default filled in.
    pub resolved: &'a Value,
}

/// Buffers that keep loss at or below a bound.
#[derive(Clone, Debug, Serialize)]
pub struct SmallestBuffers {
    /// Each stage, in order.
    pub stages: Vec<Buffer>,
    /// Sum of all buffers, in packets.
    pub total: u64,
    /// Loss with them: exactly, or what it is at most with 95 % confidence.
    pub loss_probability: f64,
    /// Packets offered to them, if they were simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Packets of these that were lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// The loss ratio of these runs, with its 95 % confidence interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Estimate>,
    /// Designs tried.
    pub tried: usize,
    /// `false` if the search was stopped, so that there may be smaller ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
}

/// The buffer of one stage.
#[derive(Clone, Debug, Serialize)]
pub struct Buffer {
    /// The stage.
    pub name: String,
    /// Packets it can hold, the one in service counted.
    pub buffer: u32,
}
