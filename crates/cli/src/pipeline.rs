//! `forebay simulate`, `solve` and `size-buffers` of pipelines and inline cards.

mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::Args;
use forebay_models as models;
use forebay_pipeline::scenario::{CardScenario, Scenario};
use forebay_pipeline::{
    Arrivals, Carried, ClosedForm, Outcome, Pipeline, Replications, Simulated, Solved, network,
    replicate_with,
};
use forebay_time::Duration;
use miette::{Context, IntoDiagnostic, miette};
use serde::Serialize;
use serde_json::json;

use crate::Answer;
use crate::progress::{self, Progress};

/// What `forebay simulate` was given.
pub struct Simulate<'a> {
    /// The scenario.
    pub path: &'a Path,
    /// `--set`.
    pub sets: &'a [String],
    /// Whether to print JSON.
    pub json: bool,
    /// Folder for what is kept of the run.
    pub out: Option<&'a Path>,
    /// Whether a timeline is asked for.
    pub timeline: bool,
}

enum Model {
    Pipeline(Scenario),
    Card(CardScenario),
}

impl Model {
    /// `None`: it is for the host model's reader to read, or to say what is wrong.
    fn load(path: &Path, sets: &[String]) -> miette::Result<Option<Model>> {
        let text = forebay_scenario::load(path)?;
        let name = path.display().to_string();
        let directory = path.parent().unwrap_or(Path::new("."));
        Ok(match forebay_scenario::model_of(&text, sets).as_deref() {
            Some("pipeline") => Some(Model::Pipeline(Scenario::parse(&text, &name, sets, directory)?)),
            Some("inline-card") => Some(Model::Card(CardScenario::parse(&text, &name, sets)?)),
            _ => None,
        })
    }

    fn loaded(path: &Path, sets: &[String]) -> miette::Result<Model> {
        match Model::load(path, sets)? {
            Some(model) => Ok(model),
            // Whatever else it is: the pipelines' reader says what it should be.
            None => Ok(Model::Pipeline(Scenario::load(path, sets)?)),
        }
    }
}

/// Simulates, if the scenario is of a pipeline or an inline card.
pub fn simulate(args: &Simulate<'_>) -> miette::Result<Option<Answer>> {
    let Some(model) = Model::load(args.path, args.sets)? else { return Ok(None) };
    if args.timeline {
        return Err(miette!("--timeline requires a scenario of the host model"));
    }
    match &model {
        Model::Pipeline(scenario) => {
            let outcomes = outcomes(&scenario.simulated(), scenario.runs)?;
            let document = Simulated::new(scenario, &outcomes);
            finish(
                args,
                &document,
                &outcomes,
                &scenario.notes,
                scenario.resolved_toml(),
                scenario.pipeline.seed,
            )?;
            if !args.json {
                print_simulated(&outcomes, &scenario.notes);
            }
        }
        Model::Card(scenario) => {
            let outcomes = outcomes(&scenario.pipeline, scenario.runs)?;
            let document = Simulated::card(scenario, &outcomes);
            finish(
                args,
                &document,
                &outcomes,
                &scenario.notes,
                scenario.resolved_toml(),
                scenario.pipeline.seed,
            )?;
            if !args.json {
                let mbps = outcomes[0].throughput_pps * 8.0 * f64::from(scenario.payload) / 1e6;
                println!("{mbps:.1} Mbit/s of payload carried, {:.1} offered", scenario.offered_bps / 1e6);
                print_simulated(&outcomes, &scenario.notes);
            }
        }
    }
    Ok(Some(Answer::Yes))
}

fn outcomes(pipeline: &Pipeline, runs: usize) -> miette::Result<Vec<Outcome>> {
    let length = match &pipeline.arrivals {
        Arrivals::Trace(trace) => trace.last().map_or(1, |last| last.at.0),
        _ => pipeline.duration.unwrap_or(Duration(1)).0,
    };
    let total = u128::from(length) * runs as u128;
    let bar = Mutex::new((0u128, Progress::share("simulating")));
    let watch = |passed: Duration| {
        if let Ok(mut bar) = bar.lock() {
            bar.0 += u128::from(passed.0);
            let share = bar.0 * u128::from(progress::WHOLE) / total.max(1);
            bar.1.at(share as u64);
        }
        progress::go_on()
    };
    let outcomes = replicate_with(pipeline, runs, threads(), &watch).map_err(|what| miette!("{what}"))?;
    if let Ok((_, bar)) = bar.into_inner() {
        bar.finish();
    }
    outcomes.ok_or_else(|| progress::Interrupted.into())
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Prints the document if asked for, and keeps the folder of the run: with it, and this version, the
/// run can be had again.
fn finish(
    args: &Simulate<'_>,
    document: &impl Serialize,
    outcomes: &[Outcome],
    notes: &[String],
    resolved: String,
    seed: u64,
) -> miette::Result<()> {
    let text = serde_json::to_string_pretty(document).into_diagnostic()?;
    if let Some(dir) = args.out {
        let manifest = json!({
            "schema": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "scenario": args.path.display().to_string(),
            "set": args.sets,
            "seed": seed,
            "host": crate::demo::traffic::host(),
        });
        let name = args.path.file_name().unwrap_or_default().to_string_lossy();
        let page = page::render(&name, outcomes, notes, &resolved, &crate::study::made()?);
        let keep = || -> std::io::Result<()> {
            fs::create_dir_all(dir)?;
            fs::write(dir.join("report.html"), page)?;
            fs::write(dir.join("scenario.toml"), format!("# All defaults filled in.\n{resolved}"))?;
            fs::write(dir.join("figures.json"), format!("{text}\n"))?;
            fs::write(dir.join("manifest.json"), serde_json::to_string_pretty(&manifest)? + "\n")
        };
        keep().into_diagnostic().wrap_err_with(|| format!("cannot write {}", dir.display()))?;
    }
    if args.json {
        println!("{text}");
    }
    Ok(())
}

fn print_simulated(outcomes: &[Outcome], notes: &[String]) {
    let Outcome { elapsed_s, generated, processed, lost, in_flight, throughput_pps, .. } = outcomes[0];
    println!(
        "{generated} packets in {elapsed_s:.6} s: {processed} processed, {lost} lost, {in_flight} in flight"
    );
    let loss = 100.0 * outcomes[0].loss_probability;
    println!("{throughput_pps:.1} packets/s, {loss:.4} % lost");
    println!("{:16} {:>8} {:>10} {:>10} {:>10}", "stage", "busy", "max queue", "mean queue", "lost");
    for one in &outcomes[0].stages {
        println!(
            "{:16} {:>6.1} % {:>10} {:>10.3} {:>10}",
            one.name,
            100.0 * one.utilisation,
            one.max_queue,
            one.mean_queue,
            one.lost
        );
    }
    if !outcomes[0].servers.is_empty() {
        println!("{:16} {:>8} {:>10} {:>10} {:>10}", "server", "busy", "switching", "waiting", "switches");
    }
    for one in &outcomes[0].servers {
        let [busy, switching, waiting] = [one.utilisation, one.switching, one.waiting].map(|x| 100.0 * x);
        println!("{:16} {busy:>6.1} % {switching:>8.1} % {waiting:>8.1} % {:>10}", one.name, one.switches);
    }
    let delay = outcomes[0].delay;
    let names = ["mean", "50 %", "90 %", "99 %", "99.9 %"];
    let values = [delay.mean_s, delay.p50_s, delay.p90_s, delay.p99_s, delay.p999_s];
    let row = |cells: Vec<String>| cells.iter().map(|cell| format!(" {cell:>12}")).collect::<String>();
    println!("{:16}{}", "delay (us)", row(names.map(str::to_owned).to_vec()));
    println!("{:16}{}", "", row(values.map(|seconds| format!("{:.3}", 1e6 * seconds)).to_vec()));
    if let Some(all) = Replications::new(outcomes) {
        println!("over {} runs, with 95 % confidence:", all.runs);
        for (name, one, scale, unit) in [
            ("throughput", all.throughput_pps, 1.0, "packets/s"),
            ("loss", all.loss_probability, 100.0, "%"),
            ("delay", all.delay_mean_s, 1e6, "us"),
        ] {
            println!("{name:16} {:.4} +- {:.4} {unit}", scale * one.mean, scale * one.half_width);
        }
    }
    for note in notes {
        println!("note: {note}");
    }
}

/// Arguments of `forebay solve`.
#[derive(Args)]
pub struct SolveArgs {
    /// The scenario (TOML), model = "pipeline" or "inline-card".
    scenario: PathBuf,
    /// Override a key: `arrivals.mean="80 us"`, `stage.receive.buffer=4`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
    /// Solve in closed form for unlimited buffers (M/M/1 queues in series; busy-waiting servers count as one queue).
    #[arg(long)]
    unlimited: bool,
    /// Maximum number of iterations.
    #[arg(long, value_name = "N", default_value_t = 500)]
    cycles: u32,
    /// Maximum memory, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 4_096)]
    memory: u64,
}

/// Solves.
pub fn solve(args: &SolveArgs) -> miette::Result<Answer> {
    let scenario = match Model::loaded(&args.scenario, &args.sets)? {
        Model::Card(card) => return solve_card(&card, args.json),
        Model::Pipeline(scenario) => scenario,
    };
    if args.unlimited {
        return closed_form(&scenario, args);
    }
    let network = network(&scenario.pipeline).map_err(|error| scenario.objection(&error))?;
    let mut bar = Progress::share("solving");
    let mut options = models::Options::default();
    options.cycles = args.cycles;
    options.memory = args.memory.saturating_mul(1 << 20);
    let mut watch = |residual: f64| {
        // A residual falls by about the same factor in every cycle.
        let done = residual.max(options.tolerance).log10() / options.tolerance.log10();
        bar.at((done.clamp(0.0, 1.0) * progress::WHOLE as f64) as u64);
        progress::go_on()
    };
    let solved = models::solve_with(&network, &options, &mut watch);
    bar.finish();
    let solution = match solved {
        Ok(solution) => solution,
        Err(models::Error::Cancelled) => return Err(progress::Interrupted.into()),
        Err(error @ models::Error::NotConverged { .. }) => {
            eprintln!("warning: {error}; the figures are not reliable");
            let models::Error::NotConverged { solution, .. } = error else { unreachable!("just seen") };
            *solution
        }
        Err(error) => return Err(scenario.objection(&error).into()),
    };
    warn(&scenario);
    let answer = if solution.accuracy.converged { Answer::Yes } else { Answer::No };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&Solved::new(&scenario, &solution)).into_diagnostic()?);
        return Ok(answer);
    }
    println!(
        "{:.1} packets/s, {:.4} % lost, {:.3} us from arrival to departure",
        solution.throughput_pps,
        100.0 * solution.loss_probability,
        1e6 * solution.mean_delay_s
    );
    println!("{:16} {:>8} {:>10} {:>8} {:>8}", "stage", "busy", "inside", "blocked", "full");
    for one in &solution.stages {
        let [busy, blocked, full] = [one.utilisation, one.blocked, one.full].map(|x| 100.0 * x);
        println!("{:16} {busy:>6.1} % {:>10.4} {blocked:>6.2} % {full:>6.2} %", one.name, one.mean_occupancy);
    }
    if !solution.servers.is_empty() {
        println!("{:16} {:>8} {:>10} {:>8}", "server", "busy", "switching", "waiting");
    }
    for one in &solution.servers {
        let [busy, switching, waiting] = [one.utilisation, one.switching, one.waiting].map(|x| 100.0 * x);
        println!("{:16} {busy:>6.1} % {switching:>8.2} % {waiting:>6.2} %", one.name);
    }
    let not = if solution.accuracy.converged { "" } else { ": NOT CONVERGED" };
    println!("{} states, residual {:.1e}{not}", solution.states, solution.accuracy.residual);
    Ok(answer)
}

fn warn(scenario: &Scenario) {
    for warning in scenario.approximations() {
        eprintln!("warning: {warning}");
    }
}

fn closed_form(scenario: &Scenario, args: &SolveArgs) -> miette::Result<Answer> {
    let closed = ClosedForm::new(scenario).map_err(|error| scenario.objection(&error))?;
    warn(scenario);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&closed).into_diagnostic()?);
        return Ok(Answer::Yes);
    }
    println!("{:32} {:>8} {:>10} {:>12}", "station, unlimited room", "busy", "inside", "delay (us)");
    for station in &closed.stages {
        let (name, one) = (&station.name, &station.queue);
        let (busy, delay) = (100.0 * one.utilisation, 1e6 * one.mean_delay_s);
        println!("{name:32} {busy:>6.1} % {:>10.4} {delay:>12.3}", one.mean_occupancy);
    }
    Ok(Answer::Yes)
}

fn solve_card(scenario: &CardScenario, json: bool) -> miette::Result<Answer> {
    let carried = Carried::new(scenario);
    if json {
        println!("{}", serde_json::to_string_pretty(&carried).into_diagnostic()?);
        return Ok(Answer::Yes);
    }
    let by = carried.bottleneck.as_deref().unwrap_or("nothing");
    println!(
        "{:.1} Mbit/s of payload carried, {:.1} offered; maximum {:.1}, limited by {by}",
        carried.payload_bps / 1e6,
        scenario.offered_bps / 1e6,
        carried.limit_bps / 1e6
    );
    println!("{:16} {:>8} {:>16}", "resource", "busy", "limit (Mbit/s)");
    for one in &carried.resources {
        let limit = one.limit_bps.map_or("none".to_owned(), |bps| format!("{:.1}", bps / 1e6));
        println!("{:16} {:>6.1} % {limit:>16}", one.name, 100.0 * one.utilisation);
    }
    Ok(Answer::Yes)
}
