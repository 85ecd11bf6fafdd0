//! A scenario of any model, and the ways to its figures.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use forebay_diagnostics::FileErrors;
#[cfg(not(feature = "embedded"))]
use forebay_diagnostics::Problem;
#[cfg(feature = "embedded")]
use forebay_embedded::Setup;
use forebay_models::{self as models, Solution};
use forebay_pipeline::scenario::{CardScenario, Scenario as PipelineScenario};
use forebay_pipeline::{
    self as pipeline, Arrivals, Carried, ClosedForm, Pipeline, Replicated, Simulated, Solved,
};
use forebay_scenario::model_of;
use forebay_sim::{Document, RunError, Scenario};
use forebay_time::Duration;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::flat;

/// Why a model has no solution.
const SIMULATED: &str = "the model is simulated, there is no solution of it";

/// A scenario that can be run.
#[derive(Clone, Debug)]
pub enum Model {
    /// Jobs on processors behind a bus, by the gateway's scheduler.
    Host(Box<Scenario>),
    /// A pipeline of stages.
    Pipeline(Box<PipelineScenario>),
    /// A card through which every packet goes.
    Card(Box<CardScenario>),
    /// Firmware on a simulated core.
    #[cfg(feature = "embedded")]
    Embedded(Box<Setup>),
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

/// What a run may use, and what is kept of it.
#[derive(Debug)]
pub struct Options {
    /// The seed of the first run; `None`: the scenario's.
    pub seed: Option<u64>,
    /// Of pipelines and cards: the number of runs; `None`: the scenario's.
    pub runs: Option<usize>,
    /// Threads for the runs of a pipeline; their number changes no figure.
    pub threads: usize,
    /// Of the host model: entries of its time line.
    pub timeline: Option<usize>,
    /// Of the host model: whether every packet is kept.
    pub columns: bool,
    /// Whether a run that is broken off has the figures of its packets until then, and several runs those of the complete
    /// ones. Not of firmware, nor of what is solved.
    pub keep: bool,
    /// Of the Markov chain: its limits.
    pub solver: models::Options,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: None,
            runs: None,
            threads: 1,
            timeline: None,
            columns: false,
            keep: false,
            solver: models::Options::default(),
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Packets done and packets in all.
    Packets(u64, u64),
    /// Share of the simulated time that has passed since the last step, of all runs together.
    Share(f64),
    /// The residual of the equations.
    Residual(f64),
    /// Somewhere.
    Unknown,
}

/// Told how far a run is, by any of its threads; says whether it goes on.
pub type Watch<'a> = &'a (dyn Fn(Step) -> ControlFlow<()> + Sync);

/// What came of a scenario.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// Of the host model.
    Host(Box<forebay_sim::Outcome>),
    /// The runs of a pipeline or a card, with one seed each.
    Runs(Vec<pipeline::Outcome>),
    /// A pipeline's Markov chain.
    Solution(Box<Solution>),
    /// A pipeline in closed form.
    ClosedForm(Box<ClosedForm<'a>>),
    /// The limits of a card.
    Limits(Box<Carried<'a>>),
    /// Firmware on a core.
    #[cfg(feature = "embedded")]
    Embedded(Box<forebay_embedded::Figures>),
}

/// An outcome with what goes with it.
#[derive(Debug)]
pub struct Ran<'a> {
    /// The seed of the first run; 0 where nothing is drawn.
    pub seed: u64,
    /// What came.
    pub outcome: Outcome<'a>,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
    /// Whether it was broken off: see [`Options::keep`].
    pub stopped: bool,
}

/// A run as a row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its seed.
    pub seed: u64,
    /// Its figures as its document has them.
    pub figures: Value,
    /// The same by name, as [`flat()`](crate::flat()) makes them.
    pub named: Vec<(String, f64)>,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
}

/// Why there are no figures.
#[derive(Debug)]
#[non_exhaustive]
pub enum NoFigures {
    /// The watch has broken it off.
    Cancelled,
    /// The model has no figures by that way.
    Way(&'static str),
    /// The host model's run.
    Host(RunError),
    /// A pipeline that cannot be simulated.
    Pipeline(String),
    /// The chain, or the closed form.
    Chain(models::Error),
    /// Firmware on a core.
    Embedded(miette::Report),
}

impl fmt::Display for NoFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoFigures::Cancelled => f.write_str("interrupted"),
            NoFigures::Way(what) => f.write_str(what),
            NoFigures::Host(error) => error.fmt(f),
            NoFigures::Pipeline(what) => f.write_str(what),
            NoFigures::Chain(error) => error.fmt(f),
            NoFigures::Embedded(report) => {
                let help = report.help().map(|help| format!(" ({help})"));
                write!(f, "{report}{}", help.unwrap_or_default())
            }
        }
    }
}

impl std::error::Error for NoFigures {}

impl From<RunError> for NoFigures {
    fn from(error: RunError) -> NoFigures {
        match error {
            RunError::Cancelled => NoFigures::Cancelled,
            error => NoFigures::Host(error),
        }
    }
}

impl Model {
    /// Reads the file at `path`, with what `sets` (`key=value`) say instead.
    ///
    /// # Errors
    /// All that is wrong with it, in the words of its model's reader; of a model that is not known, in those of the host
    /// model's.
    pub fn load(path: &Path, sets: &[String]) -> Result<Model, FileErrors> {
        let text = forebay_scenario::load(path)?;
        let directory = path.parent().unwrap_or(Path::new("."));
        Model::parse(&text, &path.display().to_string(), sets, directory)
    }

    /// The same of a model that has a solution.
    ///
    /// # Errors
    /// As [`Model::load`]; for any other model, the message of the pipelines' reader, which names the models that it
    /// supports.
    pub fn load_solvable(path: &Path, sets: &[String]) -> Result<Model, FileErrors> {
        let text = forebay_scenario::load(path)?;
        match model_of(&text, sets).as_deref() {
            Some("inline-card") => Model::load(path, sets),
            _ => PipelineScenario::load(path, sets).map(|scenario| Model::Pipeline(Box::new(scenario))),
        }
    }

    /// Reads `text`, which is called `name` in errors; files that it names are relative to `directory`.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn parse(text: &str, name: &str, sets: &[String], directory: &Path) -> Result<Model, FileErrors> {
        match model_of(text, sets).as_deref() {
            Some("pipeline") => PipelineScenario::parse(text, name, sets, directory)
                .map(|scenario| Model::Pipeline(Box::new(scenario))),
            Some("inline-card") => {
                CardScenario::parse(text, name, sets).map(|scenario| Model::Card(Box::new(scenario)))
            }
            #[cfg(feature = "embedded")]
            Some("embedded") => {
                Setup::parse(text, name, directory, sets).map(|setup| Model::Embedded(Box::new(setup)))
            }
            #[cfg(not(feature = "embedded"))]
            Some("embedded") => Err(without_firmware(name)),
            _ => Scenario::parse(text, name, sets, directory).map(|scenario| Model::Host(Box::new(scenario))),
        }
    }

    /// Whether there are figures by this way, or why not.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, way: Way) -> Result<(), &'static str> {
        match (self, way) {
            (Model::Host(_), Way::Solution | Way::ClosedForm) => Err(SIMULATED),
            #[cfg(feature = "embedded")]
            (Model::Embedded(_), Way::Solution | Way::ClosedForm) => Err(SIMULATED),
            (Model::Card(_), Way::ClosedForm) => {
                Err("an inline card is solved for its limits, not in closed form")
            }
            _ => Ok(()),
        }
    }

    /// The scenario with every default filled in, as TOML.
    pub fn resolved_toml(&self) -> String {
        match self {
            Model::Host(scenario) => scenario.resolved_toml(),
            Model::Pipeline(scenario) => scenario.resolved_toml(),
            Model::Card(scenario) => scenario.resolved_toml(),
            #[cfg(feature = "embedded")]
            Model::Embedded(setup) => setup.resolved_toml(),
        }
    }

    /// Its figures by a way.
    ///
    /// # Errors
    /// Why there are none.
    pub fn run(&self, way: Way, options: &Options, watch: Watch<'_>) -> Result<Ran<'_>, NoFigures> {
        self.check(way).map_err(NoFigures::Way)?;
        match self {
            Model::Host(scenario) => host(scenario, options, watch),
            Model::Pipeline(scenario) => pipeline(scenario, way, options, watch),
            Model::Card(scenario) => {
                if way == Way::Simulation {
                    let (runs, notes) = (scenario.runs, scenario.notes.clone());
                    return simulated(scenario.pipeline.clone(), runs, notes, options, watch);
                }
                let outcome = Outcome::Limits(Box::new(Carried::new(scenario)));
                Ok(Ran { seed: scenario.pipeline.seed, outcome, notes: Vec::new(), stopped: false })
            }
            #[cfg(feature = "embedded")]
            Model::Embedded(setup) => embedded(setup, watch),
        }
    }

    /// The first run of an outcome as a row of a table.
    pub fn row(&self, ran: &Ran<'_>) -> Row {
        let mut figures = match &ran.outcome {
            Outcome::Host(outcome) => serde_json::to_value(&outcome.figures),
            Outcome::Runs(runs) => serde_json::to_value(&runs[0]),
            other => serde_json::to_value(self.written(other)),
        }
        // Only keys that are no text could fail, and every key is a field's name.
        .unwrap_or_default();
        // A time series is no figure of a table.
        figures.as_object_mut().map(|figures| figures.remove("series"));
        if let (Model::Card(scenario), Outcome::Runs(runs)) = (self, &ran.outcome) {
            figures["payload_bps"] = scenario.payload_bps(&runs[0]).into();
        }
        Row { seed: ran.seed, named: flat(&figures), figures, notes: ran.notes.clone() }
    }

    /// How many runs its file asks for.
    pub fn runs(&self) -> usize {
        match self {
            Model::Pipeline(scenario) => scenario.runs,
            Model::Card(scenario) => scenario.runs,
            Model::Host(_) => 1,
            #[cfg(feature = "embedded")]
            Model::Embedded(_) => 1,
        }
    }

    /// The figures of a run of this model as JSON: the document that `forebay simulate --json` or `forebay solve --json`
    /// prints; of firmware on a core, its row of figures. `Null` for the outcome of another model.
    pub fn document(&self, outcome: &Outcome<'_>) -> Value {
        // Only keys that are no text could fail, and every key is a field's name.
        serde_json::to_value(self.written(outcome)).unwrap_or_default()
    }

    /// The same to be written, with the keys in the order in which the commands print them.
    pub fn written<'a>(&'a self, outcome: &'a Outcome<'a>) -> Written<'a> {
        Written { model: self, outcome }
    }

    /// The word of the key `model`.
    pub fn kind(&self) -> &'static str {
        match self {
            Model::Host(_) => "host",
            Model::Pipeline(_) => "pipeline",
            Model::Card(_) => "inline-card",
            #[cfg(feature = "embedded")]
            Model::Embedded(_) => "embedded",
        }
    }

    /// The seed of its first run; 0 where nothing is drawn.
    pub fn seed(&self) -> u64 {
        match self {
            Model::Host(scenario) => scenario.seed,
            Model::Pipeline(scenario) => scenario.pipeline.seed,
            Model::Card(scenario) => scenario.pipeline.seed,
            #[cfg(feature = "embedded")]
            Model::Embedded(_) => 0,
        }
    }

    /// The same with another seed; where nothing is drawn it is as it was.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Model {
        let mut model = self.clone();
        let resolved = match &mut model {
            Model::Host(scenario) => {
                scenario.seed = seed;
                &mut scenario.resolved
            }
            Model::Pipeline(scenario) => {
                scenario.pipeline.seed = seed;
                &mut scenario.resolved
            }
            Model::Card(scenario) => {
                scenario.pipeline.seed = seed;
                &mut scenario.resolved
            }
            #[cfg(feature = "embedded")]
            Model::Embedded(_) => return model,
        };
        resolved["seed"] = seed.into();
        model
    }

    /// The same with so many packets, as a run of the host model was that was broken off; other models are as they were.
    #[must_use]
    pub fn with_packets(&self, packets: u64) -> Model {
        let mut model = self.clone();
        if let Model::Host(scenario) = &mut model {
            scenario.traffic.packets = Some(packets);
            scenario.resolved["traffic"]["packets"] = packets.into();
        }
        model
    }

    /// The same as far as an outcome came that was broken off: with so many packets, so long, or with so many runs. What was
    /// not broken off is of the model as it is.
    #[must_use]
    pub fn as_far_as(&self, ran: &Ran<'_>) -> Option<Model> {
        if !ran.stopped {
            return None;
        }
        let mut model = self.clone();
        match (&mut model, &ran.outcome) {
            (Model::Host(_), Outcome::Host(outcome)) => {
                return outcome.cut.map(|packets| self.with_packets(packets));
            }
            (Model::Pipeline(scenario), Outcome::Runs(runs)) => {
                cut(runs, &mut scenario.runs, &mut scenario.pipeline, &mut scenario.resolved);
            }
            (Model::Card(scenario), Outcome::Runs(runs)) => {
                cut(runs, &mut scenario.runs, &mut scenario.pipeline, &mut scenario.resolved);
            }
            _ => {}
        }
        Some(model)
    }

    /// The scenario with every default filled in, in the form of the file.
    pub fn resolved(&self) -> &Value {
        match self {
            Model::Host(scenario) => &scenario.resolved,
            Model::Pipeline(scenario) => &scenario.resolved,
            Model::Card(scenario) => &scenario.resolved,
            #[cfg(feature = "embedded")]
            Model::Embedded(setup) => &setup.resolved,
        }
    }
}

/// An outcome of a model as the document of its command: see [`Model::written`].
#[derive(Debug)]
pub struct Written<'a> {
    model: &'a Model,
    outcome: &'a Outcome<'a>,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match (self.model, self.outcome) {
            (Model::Host(scenario), Outcome::Host(outcome)) => Document::new(scenario, outcome).serialize(to),
            (Model::Pipeline(scenario), Outcome::Runs(runs)) => Simulated::new(scenario, runs).serialize(to),
            (Model::Card(scenario), Outcome::Runs(runs)) => Simulated::card(scenario, runs).serialize(to),
            (Model::Pipeline(scenario), Outcome::Solution(solution)) => {
                Solved::new(scenario, solution).serialize(to)
            }
            (Model::Pipeline(_), Outcome::ClosedForm(closed)) => closed.serialize(to),
            (Model::Card(_), Outcome::Limits(limits)) => limits.serialize(to),
            #[cfg(feature = "embedded")]
            (Model::Embedded(_), Outcome::Embedded(figures)) => to.collect_map(figures.by_name()),
            _ => to.serialize_unit(),
        }
    }
}

/// A pipeline with as many runs, or as long, as came.
fn cut(outcomes: &[pipeline::Outcome], runs: &mut usize, pipeline: &mut Pipeline, resolved: &mut Value) {
    *runs = outcomes.len();
    resolved["runs"] = outcomes.len().into();
    if let Some(after) = outcomes.first().and_then(|one| one.interrupted_after_s) {
        pipeline.duration = Some(Duration::from_secs(after));
        resolved["duration"] = after.into();
        // The run was not divided as far as it came, and the one of that duration is not either.
        pipeline.batches = 0;
        if let Some(keys) = resolved.as_object_mut() {
            keys.remove("batches");
        }
    }
}

fn host(scenario: &Scenario, options: &Options, watch: Watch<'_>) -> Result<Ran<'static>, NoFigures> {
    let mut progress = |done, all| watch(Step::Packets(done, all));
    let &Options { seed, timeline, columns, keep, .. } = options;
    let progress = Some(&mut progress as _);
    let options = forebay_sim::Options { seed, timeline, columns, keep, progress, exact: None };
    let outcome = forebay_sim::run(scenario, options)?;
    let (seed, notes, stopped) = (outcome.seed, outcome.notes.clone(), outcome.cut.is_some());
    Ok(Ran { seed, notes, outcome: Outcome::Host(Box::new(outcome)), stopped })
}

fn pipeline<'a>(
    scenario: &'a PipelineScenario,
    way: Way,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Ran<'a>, NoFigures> {
    let ran = |outcome, notes| Ran { seed: scenario.pipeline.seed, outcome, notes, stopped: false };
    match way {
        Way::Simulation => {
            simulated(scenario.simulated(), scenario.runs, scenario.notes.clone(), options, watch)
        }
        Way::Solution => {
            let network = pipeline::network(&scenario.pipeline).map_err(chain)?;
            let mut residual = |residual| watch(Step::Residual(residual));
            let solution = models::solve_with(&network, &options.solver, &mut residual).map_err(chain)?;
            Ok(ran(Outcome::Solution(Box::new(solution)), scenario.approximations()))
        }
        Way::ClosedForm => {
            let closed = ClosedForm::new(scenario).map_err(chain)?;
            let notes = closed.warnings.clone();
            Ok(ran(Outcome::ClosedForm(Box::new(closed)), notes))
        }
    }
}

/// Runs with one seed each.
fn simulated(
    mut pipeline: Pipeline,
    runs: usize,
    mut notes: Vec<String>,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Ran<'static>, NoFigures> {
    let (seed, runs) = (options.seed.unwrap_or(pipeline.seed), options.runs.unwrap_or(runs));
    pipeline.seed = seed;
    let length = match &pipeline.arrivals {
        Arrivals::Trace(trace) => trace.last().map_or(1, |last| last.at.0),
        _ => pipeline.duration.unwrap_or(Duration(1)).0,
    };
    let all = (length as f64 * runs as f64).max(1.0);
    let passed = |passed: Duration| watch(Step::Share(passed.0 as f64 / all));
    let outcomes = pipeline::replicate_with(&pipeline, runs, options.threads, &passed);
    let Replicated { outcomes, stopped } = outcomes.map_err(|what| NoFigures::Pipeline(what.0))?;
    if stopped && !options.keep || outcomes.is_empty() {
        return Err(NoFigures::Cancelled);
    }
    notes.extend(outcomes.first().and_then(pipeline::Outcome::warning));
    Ok(Ran { seed, outcome: Outcome::Runs(outcomes), notes, stopped })
}

fn chain(error: models::Error) -> NoFigures {
    match error {
        models::Error::Cancelled => NoFigures::Cancelled,
        error => NoFigures::Chain(error),
    }
}

#[cfg(feature = "embedded")]
fn embedded(setup: &Setup, watch: Watch<'_>) -> Result<Ran<'static>, NoFigures> {
    let prepared = forebay_embedded::Prepared::new(setup).map_err(NoFigures::Embedded)?;
    let mut go_on = |_| watch(Step::Unknown).is_continue();
    let ran = forebay_embedded::run(&prepared.job, &[setup.config], &mut go_on);
    let (done, accounts) = ran.map_err(|error| match error {
        forebay_embedded::RunError::Cancelled => NoFigures::Cancelled,
        error => NoFigures::Embedded(prepared.report(&error)),
    })?;
    let figures = prepared.figures(setup, &done, &accounts[0]);
    Ok(Ran {
        seed: 0,
        outcome: Outcome::Embedded(Box::new(figures)),
        notes: setup.notes.clone(),
        stopped: false,
    })
}

/// That a file is of firmware, in a program that is built without its model.
#[cfg(not(feature = "embedded"))]
fn without_firmware(name: &str) -> FileErrors {
    let message = "this program does not run firmware (model = \"embedded\")".to_owned();
    FileErrors::of_file(
        name,
        Problem::Conflict { message, help: format!("run `forebay explore run {name}`") },
    )
}
