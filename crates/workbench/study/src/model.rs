//! A scenario of a study with settings, and what its figures are in a record.

use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use forebay_diagnostics::{FileErrors, Finding};
use forebay_pipeline::{Simulated, Solved};
use forebay_sim::Scenario;
use forebay_time::Duration;
use forebay_workbench::{Model, NoFigures, Options, Outcome, Way};
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

/// Asked while something runs.
pub(crate) type Go<'a> = &'a (dyn Fn() -> ControlFlow<()> + Sync);

/// Reads a setup's file, `text`, whose traces are in `directory`; `quick`: cut down.
pub(crate) fn read(setup: &Setup, text: &str, directory: &Path, quick: bool) -> Result<Model, String> {
    let mut sets: Vec<String> = setup.sets.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let model = parse(setup, text, directory, &sets)?;
    let Some(shorter) = shorter(&model, setup.way).filter(|_| quick) else { return Ok(model) };
    sets.extend(shorter);
    parse(setup, text, directory, &sets)
}

fn parse(setup: &Setup, text: &str, directory: &Path, sets: &[String]) -> Result<Model, String> {
    let file = &*setup.file;
    let model = Model::parse(text, file, sets, directory).map_err(|errors| said(file, sets, &errors))?;
    model.check(setup.way).map_err(|why| format!("{file}: {why}"))?;
    Ok(model)
}

/// What to set for a quick run; `None` if it is quick as it is.
fn shorter(model: &Model, way: Way) -> Option<Vec<String>> {
    let timed = |duration: Option<Duration>, warm_up: Duration, runs: usize| {
        let short = (duration?.as_secs() * QUICK_TIME).max(2.0 * warm_up.as_secs());
        Some(vec![format!("duration={short}"), format!("runs={}", runs.min(QUICK_RUNS))])
    };
    match (model, way) {
        (Model::Host(scenario), _) => {
            let packets = scenario.traffic.packets.filter(|packets| *packets > QUICK_LEAST)?;
            Some(vec![format!("traffic.packets={}", (packets / QUICK_SHARE).max(QUICK_LEAST))])
        }
        (Model::Embedded(_), _) => Some(vec!["input.packets=20".to_owned()]),
        (Model::Pipeline(one), Way::Simulation) => {
            timed(one.pipeline.duration, one.pipeline.warm_up, one.runs)
        }
        (Model::Card(one), Way::Simulation) => timed(one.pipeline.duration, one.pipeline.warm_up, one.runs),
        (Model::Pipeline(_) | Model::Card(_), Way::Solution | Way::ClosedForm) => None,
    }
}

/// The scenario of the host model, if it is one.
pub(crate) fn host(model: &Model) -> Result<&Scenario, String> {
    match model {
        Model::Host(scenario) => Ok(scenario),
        _ => Err("bounds are of the host model".to_owned()),
    }
}

/// The figures of a scenario; `go` is asked now and then whether to go on.
pub(crate) fn run(model: &Model, way: Way, go: Go<'_>) -> Result<Ran, NoFigures> {
    let ran = model.run(way, &Options::default(), &|_| go())?;
    let figures = match (model, ran.outcome) {
        (_, Outcome::Host(outcome)) => Figures::Host(Box::new(outcome.figures)),
        (Model::Pipeline(scenario), Outcome::Runs(runs)) => document(&Simulated::new(scenario, &runs)),
        (Model::Card(scenario), Outcome::Runs(runs)) => document(&Simulated::card(scenario, &runs)),
        (Model::Pipeline(scenario), Outcome::Solution(solution)) => {
            document(&Solved::new(scenario, &solution))
        }
        (_, Outcome::ClosedForm(closed)) => document(&closed),
        (_, Outcome::Limits(limits)) => document(&limits),
        (_, Outcome::Embedded(figures)) => core(&figures)?,
        (model, outcome) => unreachable!("{outcome:?} of {model:?}"),
    };
    Ok(Ran { seed: ran.seed, figures, notes: ran.notes })
}

/// Figures of a core whose firmware did what it should.
fn core(figures: &forebay_embedded::Figures) -> Result<Figures, NoFigures> {
    let (code, dropped) = (figures.code, figures.dropped);
    if code != 0 || dropped > 0 {
        let what = miette::miette!("the firmware ended with {code}, {dropped} packets did not pass");
        return Err(NoFigures::Embedded(what));
    }
    let row = figures.row().into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(Figures::Other(Value::Object(row)))
}

/// A document without what stands elsewhere in a record.
fn document(document: &impl Serialize) -> Figures {
    let mut document = serde_json::to_value(document).expect("documents have text for keys");
    if let Some(map) = document.as_object_mut() {
        for key in ["schema", "seed", "notes", "warnings", "resolved"] {
            map.remove(key);
        }
    }
    Figures::Other(document)
}

fn said(file: &str, sets: &[String], errors: &FileErrors) -> String {
    let one = |finding: &Finding| format!("{finding} ({})", finding.problem().help());
    let all: Vec<String> = errors.findings().iter().map(one).collect();
    let with = if sets.is_empty() { String::new() } else { format!(" with {}", sets.join(", ")) };
    format!("{file}{with}: {}", all.join("; "))
}
