//! The workbench's simulator in a browser: the text of a scenario into the document that `forebay simulate --json` prints,
//! or into the findings that the command shows.
//!
//! [`run`] is what the playground's worker calls, once for each run; it holds nothing between two calls, reads no file
//! and asks no clock. Whoever wants to stop a run ends its worker.

mod answer;
mod figures;
mod plot;
#[cfg(target_arch = "wasm32")]
mod web;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use forebay_scenario::model_of;
use forebay_sim::Source;
use forebay_workbench::pages::{pipeline_parts, simulation_parts};
use forebay_workbench::{Error, Model, NoFigures, Options, Outcome, Ran, Step, Way};
use serde::Deserialize;

pub use answer::{Answer, Fault, Figure, Finding, Packet, Results, Shown, Span};
pub use plot::plot_json;

/// A run of the host model has plots of its packets up to so many: they take 32 bytes each.
const PLOTTED_MAX: u64 = 1 << 21;

/// Entries of the time line for each packet of the beginning: it comes, is carried there and back, and is computed.
const ENTRIES: usize = 6;

/// How a scenario is run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// What it is called in findings.
    pub name: String,
    /// Keys with other values, `key=value`, as `--set` takes them.
    pub sets: Vec<String>,
    /// Whether the plots of the report are made too.
    pub plots: bool,
    /// How many packets of the beginning of the run are given, with the time line of what was done for them.
    pub beginning: usize,
    /// Whether a pipeline or card is solved in place of being simulated.
    pub solve: bool,
    /// Whether the text is only read, and not run.
    pub check: bool,
}

/// Runs the scenario `text`; `progress` is told from time to time which share is done.
pub fn run(text: &str, request: &Request, progress: &(dyn Fn(f64) + Sync)) -> Answer {
    match figures_of(text, request, progress) {
        Ok(Some(results)) => Answer::Results(Box::new(results)),
        Ok(None) => Answer::Right,
        Err(fault) => Answer::Fault(fault),
    }
}

/// The same from and to JSON.
pub fn run_json(text: &str, request: &str, progress: &(dyn Fn(f64) + Sync)) -> String {
    let answer = match serde_json::from_str(request) {
        Ok(request) => run(text, &request, progress),
        Err(error) => Answer::Fault(Fault::of(format!("request: {error}"), String::new())),
    };
    // Only keys that are no text could fail, and every key is a field's name.
    serde_json::to_string(&answer).unwrap_or_default()
}

fn figures_of(
    text: &str,
    request: &Request,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Option<Results>, Fault> {
    let Request { name, sets, .. } = request;
    if model_of(text, sets).as_deref() == Some("embedded") {
        let message = format!("{name}: `simulate` does not run firmware (model = \"embedded\")");
        return Err(Fault::of(message, format!("run `forebay explore run {name}`")));
    }
    let model = Model::parse(text, name, sets, Path::new(".")).map_err(|errors| Fault::of_file(&errors))?;
    if request.check {
        return Ok(None);
    }
    let options = Options {
        timeline: (request.beginning > 0).then(|| request.beginning.saturating_mul(ENTRIES)),
        columns: (request.plots || request.beginning > 0) && plots_packets(&model),
        ..Options::default()
    };
    let way = if request.solve { Way::Solution } else { Way::Simulation };
    let share = Mutex::new(0.0);
    let watch = |step: Step| {
        match (step, share.lock()) {
            (Step::Packets(done, all), _) => progress(done as f64 / all.max(1) as f64),
            (Step::Share(more), Ok(mut share)) => {
                *share += more;
                progress(*share);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    };
    let ran = model.run(way, &options, &watch).map_err(|error| no_figures(&model, name, error))?;
    Ok(Some(results(&model, &ran, request)))
}

/// Why there are no figures, in the words of the command.
fn no_figures(model: &Model, name: &str, error: NoFigures) -> Fault {
    let error = match model {
        Model::Host(_) => Error::of_run(Path::new(name), error),
        _ => return Fault::of(error.to_string(), String::new()),
    };
    let help = miette::Diagnostic::help(&error).map(|help| help.to_string());
    Fault::of(error.to_string(), help.unwrap_or_default())
}

fn results(model: &Model, ran: &Ran<'_>, request: &Request) -> Results {
    // Only keys that are no text could fail, and every key is a field's name.
    let document = serde_json::to_string_pretty(&model.written(&ran.outcome)).unwrap_or_default();
    let shown = request.plots.then(|| shown(model, ran, &request.name)).flatten();
    let (mut spans, mut beginning, mut processors) = Default::default();
    if let (Model::Host(scenario), Outcome::Host(outcome), 1..) = (model, &ran.outcome, request.beginning) {
        spans = outcome.timeline.iter().flat_map(answer::spans).collect();
        let (columns, timeline) = (outcome.columns.as_ref(), outcome.timeline.as_ref());
        let keeps = scenario.scheduler.keep_order || scenario.scheduler.running_core.is_some();
        let packets = |columns| answer::packets(columns, timeline, keeps, request.beginning);
        beginning = columns.map(packets).unwrap_or_default();
        processors = scenario.processors.iter().map(|one| one.name.clone()).collect();
    }
    Results {
        document,
        packets: match &ran.outcome {
            Outcome::Host(outcome) => outcome.figures.packets,
            Outcome::Runs(runs) => runs.iter().map(|one| one.generated).sum(),
            _ => 0,
        },
        figures: figures::of(&model.row(ran).named),
        notes: ran.notes.clone(),
        resolved: model.resolved_toml(),
        shown,
        spans,
        beginning,
        processors,
    }
}

/// What the report of such a run shows.
fn shown(model: &Model, ran: &Ran<'_>, name: &str) -> Option<Shown> {
    let parts = match (model, &ran.outcome) {
        (Model::Host(scenario), Outcome::Host(outcome)) => simulation_parts(name, scenario, outcome),
        (_, Outcome::Runs(runs)) => pipeline_parts(name, runs, &ran.notes)?,
        _ => return None,
    };
    Some(Shown::new(&parts))
}

/// Whether a run has few enough packets for plots of single packets.
fn plots_packets(model: &Model) -> bool {
    let Model::Host(scenario) = model else { return false };
    let limit = scenario.traffic.packets.unwrap_or(u64::MAX);
    let packets = match &scenario.traffic.source {
        Source::Trace(trace) => limit.min(trace.len() as u64),
        Source::Drawn(_) => limit,
    };
    packets <= PLOTTED_MAX
}
