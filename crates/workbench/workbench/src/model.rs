//! A scenario of any model, and the ways to its figures.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use forebay_models::Error;
use forebay_pipeline::scenario::{CardScenario, Scenario as PipelineScenario};
use forebay_pipeline::{self as pipeline, Carried, Simulated, Solved};
use forebay_scenario::{Finding, ScenarioErrors, model_of};
use forebay_sim::{RunError, Scenario};
use serde::Serialize;
use serde_json::Value;

/// With `quick`, one packet in so many is run, but [`QUICK_LEAST`] at least.
const QUICK_SHARE: u64 = 50;
const QUICK_LEAST: u64 = 1_000;
/// With `quick`, pipelines are run for such a part of their time, so often.
const QUICK_TIME: f64 = 0.1;
const QUICK_RUNS: usize = 2;

/// A scenario file with settings, and what to do with it.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) file: Rc<str>,
    pub(crate) sets: Vec<(String, String)>,
    pub(crate) way: Way,
}

/// How figures are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// By simulation.
    Simulation,
    /// Of a pipeline by its Markov chain, of an inline card by its limits.
    Solution,
    /// Of a pipeline by closed forms, as though buffers had no limit.
    ClosedForm,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Simulation => "simulated",
            Way::Solution => "solved",
            Way::ClosedForm => "in closed form",
        })
    }
}

/// What a run came to.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Figures {
    /// Of the host model.
    Host(Box<forebay_sim::Figures>),
    /// Of pipelines and inline cards: their document, less what every run has.
    Other(Value),
}

/// Figures with what goes with them.
pub(crate) struct Ran {
    pub(crate) seed: u64,
    pub(crate) figures: Figures,
    pub(crate) notes: Vec<String>,
}

/// Why there are no figures.
pub(crate) enum NoFigures {
    Cancelled,
    Wrong(String),
}

/// Asked while something runs.
pub(crate) type Go<'a> = &'a (dyn Fn() -> ControlFlow<()> + Sync);

/// A scenario that can be run.
pub(crate) enum Model {
    Host(Box<Scenario>),
    Pipeline(Box<PipelineScenario>, Way),
    Card(Box<CardScenario>, Way),
    Embedded(Box<forebay_embedded::Setup>),
}

impl Model {
    /// Reads a setup's file, `text`, whose traces are in `directory`; `quick`: cut down.
    pub(crate) fn read(setup: &Setup, text: &str, directory: &Path, quick: bool) -> Result<Model, String> {
        let mut sets: Vec<String> = setup.sets.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let model = Model::parse(setup, text, directory, &sets)?;
        let Some(shorter) = model.shorter().filter(|_| quick) else { return Ok(model) };
        sets.extend(shorter);
        Model::parse(setup, text, directory, &sets)
    }

    fn parse(setup: &Setup, text: &str, directory: &Path, sets: &[String]) -> Result<Model, String> {
        let (file, way) = (&*setup.file, setup.way);
        let read = match model_of(text, sets).as_deref() {
            Some("pipeline") => PipelineScenario::parse(text, file, sets, directory)
                .map(|one| Model::Pipeline(Box::new(one), way)),
            Some("inline-card") => {
                CardScenario::parse(text, file, sets).map(|one| Model::Card(Box::new(one), way))
            }
            Some("embedded") => forebay_embedded::Setup::parse(text, file, directory, sets)
                .map(|one| Model::Embedded(Box::new(one))),
            _ => Scenario::parse(text, file, sets, directory).map(|one| Model::Host(Box::new(one))),
        };
        let model = read.map_err(|errors| said(file, sets, &errors))?;
        match (&model, way) {
            (Model::Host(_) | Model::Embedded(_), Way::Solution | Way::ClosedForm) => {
                Err(format!("{file}: the model is simulated, there is no solution of it"))
            }
            (Model::Card(..), Way::ClosedForm) => {
                Err(format!("{file}: `solved` gives an inline card's limits"))
            }
            _ => Ok(model),
        }
    }

    /// What to set for a quick run; `None` if it is quick as it is.
    fn shorter(&self) -> Option<Vec<String>> {
        let timed =
            |duration: Option<forebay_time::Duration>, warm_up: forebay_time::Duration, runs: usize| {
                let short = (duration?.as_secs() * QUICK_TIME).max(2.0 * warm_up.as_secs());
                Some(vec![format!("duration={short}"), format!("runs={}", runs.min(QUICK_RUNS))])
            };
        match self {
            Model::Host(scenario) => {
                let packets = scenario.traffic.packets.filter(|packets| *packets > QUICK_LEAST)?;
                Some(vec![format!("traffic.packets={}", (packets / QUICK_SHARE).max(QUICK_LEAST))])
            }
            Model::Embedded(_) => Some(vec!["input.packets=20".to_owned()]),
            Model::Pipeline(one, Way::Simulation) => {
                timed(one.pipeline.duration, one.pipeline.warm_up, one.runs)
            }
            Model::Card(one, Way::Simulation) => timed(one.pipeline.duration, one.pipeline.warm_up, one.runs),
            Model::Pipeline(..) | Model::Card(..) => None,
        }
    }

    /// The scenario of the host model, if it is one.
    pub(crate) fn host(&self) -> Result<&Scenario, String> {
        match self {
            Model::Host(scenario) => Ok(scenario),
            _ => Err("bounds are of the host model".to_owned()),
        }
    }

    /// The scenario with every default filled in, as TOML.
    pub(crate) fn resolved_toml(&self) -> String {
        match self {
            Model::Host(scenario) => scenario.resolved_toml(),
            Model::Pipeline(scenario, _) => scenario.resolved_toml(),
            Model::Card(scenario, _) => scenario.resolved_toml(),
            Model::Embedded(setup) => setup.resolved_toml(),
        }
    }

    /// Its figures; `go` is asked now and then whether to go on.
    pub(crate) fn run(&self, go: Go<'_>) -> Result<Ran, NoFigures> {
        match self {
            Model::Host(scenario) => host(scenario, go),
            Model::Pipeline(scenario, way) => pipeline(scenario, *way, go),
            Model::Card(scenario, way) => card(scenario, *way, go),
            Model::Embedded(setup) => embedded(setup, go),
        }
    }
}

fn said(file: &str, sets: &[String], errors: &ScenarioErrors) -> String {
    let one = |finding: &Finding| format!("{finding} ({})", finding.problem().help());
    let all: Vec<String> = errors.findings().iter().map(one).collect();
    let with = if sets.is_empty() { String::new() } else { format!(" with {}", sets.join(", ")) };
    format!("{file}{with}: {}", all.join("; "))
}

fn host(scenario: &Scenario, go: Go<'_>) -> Result<Ran, NoFigures> {
    let mut progress = |_, _| go();
    let options = forebay_sim::Options { progress: Some(&mut progress), ..Default::default() };
    let outcome = forebay_sim::run(scenario, options).map_err(|error| match error {
        RunError::Cancelled => NoFigures::Cancelled,
        error => NoFigures::Wrong(error.to_string()),
    })?;
    let figures = Figures::Host(Box::new(outcome.figures));
    Ok(Ran { seed: outcome.seed, figures, notes: outcome.notes })
}

fn pipeline(scenario: &PipelineScenario, way: Way, go: Go<'_>) -> Result<Ran, NoFigures> {
    let ran = |document, notes| Ran { seed: scenario.pipeline.seed, figures: figures(document), notes };
    match way {
        Way::Simulation => {
            let outcomes = simulated(&scenario.simulated(), scenario.runs, go)?;
            Ok(ran(value(&Simulated::new(scenario, &outcomes)), scenario.notes.clone()))
        }
        Way::Solution => {
            let network = pipeline::network(&scenario.pipeline).map_err(wrong)?;
            let solution =
                forebay_models::solve_with(&network, &Default::default(), &mut |_| go()).map_err(wrong)?;
            Ok(ran(value(&Solved::new(scenario, &solution)), scenario.approximations()))
        }
        Way::ClosedForm => {
            let closed = pipeline::ClosedForm::new(scenario).map_err(wrong)?;
            Ok(ran(value(&closed), scenario.approximations()))
        }
    }
}

fn card(scenario: &CardScenario, way: Way, go: Go<'_>) -> Result<Ran, NoFigures> {
    let document = match way {
        Way::Simulation => {
            let outcomes = simulated(&scenario.pipeline, scenario.runs, go)?;
            value(&Simulated::card(scenario, &outcomes))
        }
        _ => value(&Carried::new(scenario)),
    };
    let notes = if way == Way::Simulation { scenario.notes.clone() } else { Vec::new() };
    Ok(Ran { seed: scenario.pipeline.seed, figures: figures(document), notes })
}

fn embedded(setup: &forebay_embedded::Setup, go: Go<'_>) -> Result<Ran, NoFigures> {
    let said = |report: miette::Report| {
        let help = report.help().map(|help| format!(" ({help})"));
        NoFigures::Wrong(format!("{report}{}", help.unwrap_or_default()))
    };
    let prepared = forebay_embedded::Prepared::new(setup).map_err(said)?;
    let mut go_on = |_| go().is_continue();
    let ran = forebay_embedded::run(&prepared.job, &[setup.config], &mut go_on);
    let (done, accounts) = ran.map_err(|error| match error {
        forebay_embedded::RunError::Cancelled => NoFigures::Cancelled,
        error => said(prepared.report(&error)),
    })?;
    let figures = prepared.figures(setup, &done, &accounts[0]);
    if figures.code != 0 || figures.dropped > 0 {
        let (code, dropped) = (figures.code, figures.dropped);
        return Err(NoFigures::Wrong(format!(
            "the firmware ended with {code}, {dropped} packets did not pass"
        )));
    }
    let row = figures.row().into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(Ran { seed: 0, figures: Figures::Other(Value::Object(row)), notes: Vec::new() })
}

fn simulated(
    pipeline: &pipeline::Pipeline,
    runs: usize,
    go: Go<'_>,
) -> Result<Vec<pipeline::Outcome>, NoFigures> {
    let outcomes = pipeline::replicate_with(pipeline, runs, 1, &|_| go());
    outcomes.map_err(|what| NoFigures::Wrong(what.0))?.ok_or(NoFigures::Cancelled)
}

fn wrong(error: Error) -> NoFigures {
    match error {
        Error::Cancelled => NoFigures::Cancelled,
        error => NoFigures::Wrong(error.to_string()),
    }
}

fn value(document: &impl Serialize) -> Value {
    serde_json::to_value(document).expect("documents have text for keys")
}

/// A document without what stands elsewhere in a record.
fn figures(mut document: Value) -> Figures {
    if let Some(map) = document.as_object_mut() {
        for key in ["schema", "seed", "notes", "warnings", "resolved"] {
            map.remove(key);
        }
    }
    Figures::Other(document)
}
