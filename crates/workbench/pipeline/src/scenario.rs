//! Scenario files of pipelines and inline cards (docs/reference/pipeline.md and inline-card.md).
//!
//! [`PARTS`] and [`CARD_PARTS`] say every key; `docs/reference/pipeline.md` and `inline-card.md` are made from them.

mod arrivals;
mod branches;
mod breakdowns;
mod card;
mod idle;
mod laws;
mod objection;
mod order;
mod power;
mod schema;
mod servers;
mod stages;

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use forebay_diagnostics::{FileErrors, Findings, Place};
use forebay_scenario::schema::known;
use forebay_scenario::{MODELS, Section, Table, Unit};
use forebay_time::Duration;
use serde_json::{Map, Value as Json};

pub use card::CardScenario;
pub use schema::{CARD_PARTS, PARTS};

use crate::description::{Arrivals, Discipline, Overflow, Pipeline, RunEnds};
use crate::law::Law;
use crate::marks::INTERVALS_MAX;
use crate::shape::Shape;

/// The most runs of a scenario.
const RUNS_MAX: u64 = 100_000;
/// Batches of a run: of fewer nothing can be said, more are too short.
const BATCHES: (u64, u64) = (10, 1_000);
/// The largest packet of a stage with a rate.
const PACKET_MAX: u64 = 1 << 30;

/// A pipeline with all that a run depends on.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// As the file describes it.
    pub pipeline: Pipeline,
    /// By whose rules it is simulated.
    pub rules: Rules,
    /// Simulations to make.
    pub runs: usize,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
    /// The scenario with every default filled in, in the form of the file.
    pub resolved: Json,
    source: Arc<objection::Source>,
}

/// The rules of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rules {
    /// As described.
    Described,
    /// Those of the Markov chain ([`Pipeline::markov`]): what is simulated is what is solved. For
    /// files with `overflow = "block"` and `service = "exponential"`.
    Markov,
}

impl Scenario {
    /// Reads a scenario file. `sets` are what `--set` was given, `key=value`; the later of two counts.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn load(path: &Path, sets: &[String]) -> Result<Scenario, FileErrors> {
        let directory = path.parent().unwrap_or(Path::new("."));
        Scenario::parse(&forebay_scenario::load(path)?, &path.display().to_string(), sets, directory)
    }

    /// Reads a scenario from `text`, calling it `name` in errors; traces are sought in `directory`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(text: &str, name: &str, sets: &[String], directory: &Path) -> Result<Scenario, FileErrors> {
        let source = Arc::new(objection::Source::new(text, name, sets));
        forebay_scenario::read(text, name, sets, |root, findings| read(root, findings, directory, source))
    }

    /// What is simulated: the pipeline under its rules.
    pub fn simulated(&self) -> Pipeline {
        match self.rules {
            Rules::Described => self.pipeline.clone(),
            Rules::Markov => self.pipeline.markov(),
        }
    }

    /// What the Markov chain takes otherwise than the file says; empty if the solution is that of what
    /// is simulated.
    pub fn approximations(&self) -> Vec<String> {
        if self.rules == Rules::Markov {
            return Vec::new();
        }
        let mut found = Vec::new();
        let pipeline = &self.pipeline;
        if !matches!(pipeline.arrivals, Arrivals::Exponential(_)) {
            found.push("the times between packets are taken as exponential".to_owned());
        }
        let others = pipeline.stages.iter().filter(|stage| !stage.time.is_memoryless());
        let names: Vec<String> = others.map(|stage| format!("`{}`", stage.name)).collect();
        if !names.is_empty() {
            found.push(format!("the times of {} are taken as exponential", names.join(", ")));
        }
        for server in &pipeline.servers {
            if let Discipline::InterruptDriven { run_length, switch_delay, run_ends, .. } = &server.discipline
            {
                let name = &server.name;
                if [run_length, switch_delay]
                    .iter()
                    .any(|law| !law.is_memoryless() && law.mean(0) > Duration::ZERO)
                {
                    found.push(format!(
                        "the run length and switch delay of `{name}` are taken as exponential"
                    ));
                }
                if *run_ends == RunEnds::Packet {
                    found.push(format!("a run of `{name}` ends at its length, not with its packet"));
                }
            }
        }
        match pipeline.overflow {
            _ if pipeline.stages.len() == 1 || pipeline.has_branches() => {}
            Overflow::Drop => {
                found.push("nothing is lost between stages: a stage waits for room in the next".to_owned());
            }
            Overflow::BlockAfterService => {
                found.push(
                    "a stage waits for room in the next before it serves a packet, not after".to_owned(),
                );
            }
            Overflow::Block => {}
        }
        found
    }

    /// [`Scenario::resolved`] as a scenario file.
    pub fn resolved_toml(&self) -> String {
        toml::to_string(&self.resolved).expect("a tree of plain values")
    }
}

fn read(
    root: &Table,
    findings: &RefCell<Findings>,
    directory: &Path,
    source: Arc<objection::Source>,
) -> Option<Scenario> {
    let whole = Place { source: 0, span: 0..0 };
    let top = Section::new(root, "the scenario".to_owned(), whole, &known(PARTS, ""), findings);
    is_of(&top, "pipeline", "model = \"pipeline\"")?;
    let mut resolved = Map::new();
    resolved.insert("model".to_owned(), "pipeline".into());
    let mut notes = Vec::new();
    let arrivals = arrivals::read(&top, directory, &mut notes, &mut resolved);
    // A trace has an end of its own.
    let whole = matches!(arrivals, Some(Arrivals::Trace(_))).then_some(None);
    let Timing { seed, duration, warm_up, runs } = timing(&top, whole, &mut resolved);
    let batches = batches(&top, duration, &mut resolved);
    let series = series(&top, duration.map(|duration| duration - warm_up), &mut resolved);
    let word = top.word("overflow", &["drop", "block", "block-after-service"]).unwrap_or("drop");
    let overflow = match word {
        "block" => Overflow::Block,
        "block-after-service" => Overflow::BlockAfterService,
        _ => Overflow::Drop,
    };
    let service = top.word("service", &["constant", "exponential"]).unwrap_or("constant");
    let packet_bytes = top.whole("packet_bytes", Unit::Bytes, 0, PACKET_MAX).unwrap_or(0);
    let is_trace = matches!(arrivals, Some(Arrivals::Trace(_)));
    if top.has("packet_bytes") && is_trace {
        top.conflict(
            "packet_bytes",
            "`packet_bytes` means nothing beside a trace, whose packets have sizes of their own",
            "take it away, or take another distribution of [arrivals]",
        );
    }
    resolved.insert("overflow".to_owned(), word.into());
    resolved.insert("service".to_owned(), service.into());
    if !is_trace {
        resolved.insert("packet_bytes".to_owned(), packet_bytes.into());
    }
    let servers = servers::read(&top, &mut notes, &mut resolved);
    let has_sizes = packet_bytes > 0 || is_trace;
    let stages = stages::read(&top, &servers, service, has_sizes, overflow, &mut resolved);
    if !findings.borrow().is_empty() {
        return None;
    }
    let pipeline = Pipeline {
        seed,
        duration,
        warm_up,
        batches,
        series,
        arrivals: arrivals?,
        packet_bytes: packet_bytes as u32,
        overflow,
        servers: servers.into_iter().map(|(server, _)| server).collect(),
        stages,
    };
    if let Some(flaw) = pipeline.flaw() {
        stages::report(&top, flaw);
        return None;
    }
    // What is said here has no line of its own; all that is common has been found above.
    if let Err(what) = pipeline.check() {
        top.conflict("stage", what.0, "see docs/models.md, section Pipelines of stages");
        return None;
    }
    let memoryless = matches!(pipeline.arrivals, Arrivals::Exponential(_))
        && pipeline.stages.iter().all(|stage| stage.time.is_memoryless());
    let chain = overflow == Overflow::Block
        && service == "exponential"
        && memoryless
        && !(pipeline.has_branches() || pipeline.has_breakdowns());
    let rules = if chain { Rules::Markov } else { Rules::Described };
    notes.extend(rule_notes(&pipeline, rules));
    let alone = pipeline.stages.iter().filter(|stage| stage.batch_min == 1 && stage.batch_timeout.is_some());
    notes.extend(
        alone.map(|stage| format!("`batch_timeout` of `{}` has no effect with `batch_min = 1`", stage.name)),
    );
    notes.extend(power::note(&pipeline));
    idle::note(root, &top, &pipeline, &mut notes);
    Some(Scenario { pipeline, rules, runs, notes, resolved: resolved.into(), source })
}

/// Says by which rules an interrupt-driven server is simulated.
fn rule_notes(pipeline: &Pipeline, rules: Rules) -> Option<String> {
    let mut turns = pipeline.servers.iter().filter_map(|server| match server.discipline {
        Discipline::InterruptDriven { run_ends, .. } => Some(run_ends),
        _ => None,
    });
    let rule = match (rules, turns.next()?) {
        (Rules::Markov, _) => {
            "simulated by the rules of the Markov chain: every time exponential, run lengths and switch \
             delays too; runs end at their length or for want of work"
        }
        (Rules::Described, RunEnds::Packet) => {
            "interrupt-driven: a run ends with the packet in service, or at its length if another stage asks"
        }
        (Rules::Described, RunEnds::Slice) => {
            "interrupt-driven: a run ends for want of work, or at its length if another stage asks"
        }
    };
    Some(rule.to_owned())
}

/// Whether the scenario says it is of this model.
fn is_of(top: &Section<'_>, model: &'static str, example: &'static str) -> Option<()> {
    if !top.has("model") {
        top.missing("model", example);
        return Some(());
    }
    match top.word("model", MODELS) {
        Some(word) if word != model => {
            top.word("model", &[model]);
            None
        }
        word => word.map(|_| ()),
    }
}

struct Timing {
    seed: u64,
    duration: Option<Duration>,
    warm_up: Duration,
    runs: usize,
}

/// When runs begin and end; `default` is the duration where there is no such key, `None` for 500 ms.
fn timing(top: &Section<'_>, default: Option<Option<Duration>>, resolved: &mut Map<String, Json>) -> Timing {
    let seed = top.whole("seed", Unit::None, 0, u64::MAX).unwrap_or(1);
    let given = top.time("duration");
    let duration = given.or(default.unwrap_or(Some(Duration::from_millis(500))));
    let warm_up = top.time("warm_up").unwrap_or(Duration::ZERO);
    if let Some(duration) = duration.filter(|&duration| duration <= warm_up) {
        let key = if top.has("warm_up") { "warm_up" } else { "duration" };
        let message = format!("a run of {duration} ends before it is warm, {warm_up}");
        top.conflict(key, message, "make `duration` longer than `warm_up`, and above zero");
    }
    let runs = top.whole("runs", Unit::None, 1, RUNS_MAX).unwrap_or(1);
    resolved.insert("seed".to_owned(), seed.into());
    duration.map(|duration| resolved.insert("duration".to_owned(), duration.as_secs().into()));
    resolved.insert("warm_up".to_owned(), warm_up.as_secs().into());
    resolved.insert("runs".to_owned(), runs.into());
    Timing { seed, duration, warm_up, runs: runs as usize }
}

/// Into how many batches a run is divided; 0: none.
fn batches(top: &Section<'_>, duration: Option<Duration>, resolved: &mut Map<String, Json>) -> u32 {
    let Some(batches) = top.whole("batches", Unit::None, BATCHES.0, BATCHES.1) else { return 0 };
    if duration.is_none() {
        let help = "give `duration`";
        top.conflict("batches", "how long a run is that ends with its trace is not known before", help);
    }
    resolved.insert("batches".to_owned(), batches.into());
    batches as u32
}

/// The intervals of a time series.
fn series(top: &Section<'_>, length: Option<Duration>, resolved: &mut Map<String, Json>) -> Option<Duration> {
    let step = top.positive("series", Unit::Time).and_then(|_| top.time("series"))?.max(Duration(1));
    let intervals = length.map_or(1, |length| length.0.div_ceil(step.0));
    if intervals > INTERVALS_MAX {
        let message = format!("{intervals} intervals of {step} are too many");
        top.conflict("series", message, format!("at most {INTERVALS_MAX}: take longer ones"));
    }
    resolved.insert("series".to_owned(), step.as_secs().into());
    Some(step)
}

/// The family of a law, and how it is written.
fn describe(law: &Law, map: &mut Map<String, Json>) {
    let word = match law {
        Law::Constant(time) => {
            map.insert("time".to_owned(), time.as_secs().into());
            "constant"
        }
        Law::Exponential(mean) => {
            map.insert("time".to_owned(), mean.as_secs().into());
            "exponential"
        }
        Law::Erlang { mean, phases } => {
            map.insert("time".to_owned(), mean.as_secs().into());
            map.insert("phases".to_owned(), (*phases).into());
            "erlang"
        }
        Law::Empirical(times) => {
            let times: Vec<f64> = times.iter().map(|time| time.as_secs()).collect();
            map.insert("times".to_owned(), times.into());
            "empirical"
        }
        Law::Rate { bits_per_s, overhead_bytes } => {
            map.insert("rate".to_owned(), (*bits_per_s).into());
            map.insert("overhead_bytes".to_owned(), (*overhead_bytes).into());
            "rate"
        }
        Law::Hyperexponential { shares, means } => {
            let times: Vec<f64> = means.iter().map(|time| time.as_secs()).collect();
            map.insert("times".to_owned(), times.into());
            map.insert("shares".to_owned(), shares.clone().into());
            "hyperexponential"
        }
        Law::Shaped { shape, loc, scale } => {
            map.insert("loc".to_owned(), loc.as_secs().into());
            map.insert("scale".to_owned(), scale.as_secs().into());
            let (word, parameter) = match *shape {
                Shape::Uniform => ("uniform", None),
                Shape::Gamma { a } => ("gamma", Some(("a", a))),
                Shape::Lognorm { s } => ("lognorm", Some(("s", s))),
                Shape::WeibullMin { c } => ("weibull_min", Some(("c", c))),
                Shape::Pareto { b } => ("pareto", Some(("b", b))),
                Shape::Triang { c } => ("triang", Some(("c", c))),
            };
            parameter.map(|(key, value)| map.insert(key.to_owned(), value.into()));
            word
        }
    };
    map.insert("distribution".to_owned(), word.into());
}
