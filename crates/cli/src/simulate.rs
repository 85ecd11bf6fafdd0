//! `forebay simulate`: a scenario file into figures.

#[cfg(feature = "parquet")]
pub mod columnar;
mod flat;
mod pool;
mod search;
pub mod sweep;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay_engine::Clock;
use forebay_sim::{Document, Figures, Options, Outcome, RunError, Scenario, run as run_scenario};
use forebay_study::Made;
use forebay_time::Time;
use miette::{Context, IntoDiagnostic, miette};
use serde::Serialize;
use serde_json::json;

use crate::Answer;
use crate::pipeline::Simulate;
use crate::progress::{self, Progress};

/// Arguments of `forebay simulate`.
#[derive(Args)]
pub struct SimulateArgs {
    /// The scenario (TOML).
    scenario: PathBuf,
    /// Another value for a key: `traffic.rate="200 Mbit/s"`, `processor.card.count=4`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Print figures as JSON.
    #[arg(long)]
    json: bool,
    /// Folder for report.html, scenario.toml with all defaults, figures.json and manifest.json.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// With --out: timeline.json for ui.perfetto.dev, of the first so many things that happen.
    #[arg(long, value_name = "ENTRIES", requires = "out")]
    timeline: Option<usize>,
    /// Runs with the seeds s, s + 1, ...; more than one gives means and 95 % confidence intervals.
    #[arg(long, value_name = "N", default_value_t = 1)]
    replications: usize,
    /// Every value of a key, with --sweep several times every combination: the same packets at all points.
    #[arg(long = "sweep", value_name = "KEY=V1,V2,...")]
    sweeps: Vec<String>,
    /// Threads for several runs [default: all cores]. Their number changes no figure.
    #[arg(long)]
    threads: Option<usize>,
    /// Search for the highest rate without loss, or within --loss and --latency.
    #[arg(long, conflicts_with_all = ["sweeps", "replications", "out"])]
    highest_rate: bool,
    /// With --highest-rate: share of packets that may be lost.
    #[arg(long, default_value_t = 0.0, requires = "highest_rate")]
    loss: f64,
    /// With --highest-rate: the most that the 99 % quantile of the total latency may be, "500 us".
    #[arg(long, value_name = "TIME", requires = "highest_rate")]
    latency: Option<String>,
    /// With --json: processor time that the run took on this machine, which is no figure of the model.
    #[arg(long, requires = "json")]
    timing: bool,
}

impl SimulateArgs {
    /// The same for the models that are not simulated here.
    fn of_pipelines(&self) -> Simulate<'_> {
        let SimulateArgs { scenario, sets, json, out, timeline, .. } = self;
        Simulate { path: scenario, sets, json: *json, out: out.as_deref(), timeline: timeline.is_some() }
    }
}

/// Runs the command.
pub fn run(args: &SimulateArgs) -> miette::Result<Answer> {
    if let Some(answer) = crate::pipeline::simulate(&args.of_pipelines())? {
        return Ok(answer);
    }
    if args.replications == 0 {
        return Err(miette!("--replications 0: expected at least 1"));
    }
    if !(0.0..=1.0).contains(&args.loss) {
        return Err(miette!("--loss {}: expected a share, 0 to 1", args.loss));
    }
    if args.highest_rate {
        return search::run(args);
    }
    if args.replications > 1 || !args.sweeps.is_empty() {
        return sweep::run(args);
    }
    let scenario = Scenario::load(&args.scenario, &args.sets)?;
    let mut bar: Option<Progress> = None;
    let mut report = |done, total| {
        bar.get_or_insert_with(|| Progress::packets("simulating", total)).at(done);
        if progress::is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = Options { timeline: args.timeline, progress: Some(&mut report), ..Options::default() };
    let clock = Clock::of_this_thread();
    let outcome = run_scenario(&scenario, options).map_err(|error| match error {
        RunError::Cancelled => miette!("interrupted; nothing was written"),
        error => miette!("{}: {error}", args.scenario.display()),
    })?;
    let took_s = clock.now().since(Time::ZERO).as_secs();
    let timing = args
        .timing
        .then(|| Timing { seconds: took_s, packets_per_s: outcome.figures.packets as f64 / took_s });
    if let Some(bar) = bar {
        bar.finish();
    }
    if let Some(dir) = &args.out {
        let made = crate::study::made()?;
        keep(dir, args, &scenario, &outcome, &made)
            .into_diagnostic()
            .wrap_err_with(|| format!("{} cannot be written", dir.display()))?;
    }
    if args.json {
        let document = Timed { document: Document::new(&scenario, &outcome), timing };
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
    } else {
        print(&outcome);
    }
    Ok(Answer::Yes)
}

/// A run's document, and what processor time it took to have it.
#[derive(Serialize)]
struct Timed<'a> {
    #[serde(flatten)]
    document: Document<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timing: Option<Timing>,
}

#[derive(Serialize)]
struct Timing {
    seconds: f64,
    packets_per_s: f64,
}

/// Writes the folder of a run: with it, and this version, the run can be had again.
fn keep(
    dir: &Path,
    args: &SimulateArgs,
    scenario: &Scenario,
    outcome: &Outcome,
    made: &Made,
) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    let name = args.scenario.file_name().unwrap_or_default().to_string_lossy();
    fs::write(dir.join("report.html"), forebay_study::simulation(&name, scenario, outcome, made))?;
    let from = args.scenario.parent().filter(|from| !from.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let head = format!("# All defaults filled in. A path in it is relative to {}", from.display());
    fs::write(dir.join("scenario.toml"), format!("{head}\n{}", scenario.resolved_toml()))?;
    let figures = serde_json::to_string_pretty(&Document::new(scenario, outcome))?;
    fs::write(dir.join("figures.json"), figures + "\n")?;
    fs::write(dir.join("manifest.json"), manifest(args, Some(outcome.seed))? + "\n")?;
    if let Some(timeline) = &outcome.timeline {
        let mut out = BufWriter::new(File::create(dir.join("timeline.json"))?);
        timeline.write(&mut out)?;
        out.flush()?;
        if timeline.left_out() > 0 {
            eprintln!(
                "timeline.json has the begin of the run; {} later entries are left out",
                timeline.left_out()
            );
        }
    }
    Ok(())
}

/// What the runs in a folder were.
fn manifest(args: &SimulateArgs, seed: Option<u64>) -> std::io::Result<String> {
    let manifest = json!({
        "schema": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "scenario": args.scenario.display().to_string(),
        "set": args.sets,
        "sweep": args.sweeps,
        "replications": args.replications,
        "seed": seed,
        "host": crate::demo::traffic::host(),
    });
    Ok(serde_json::to_string_pretty(&manifest)?)
}

fn print(outcome: &Outcome) {
    let Figures { packets, elapsed_s, throughput_bps, bus, processors, lost, .. } = &outcome.figures;
    println!("{packets} packets in {elapsed_s:.6} s: {:.1} Mbit/s", throughput_bps / 1e6);
    if *lost > 0 {
        println!("{lost} packets lost: the input was full");
    }
    println!("{:.3} packets a job; bus {:.1} % busy", outcome.figures.packets_per_job, 100.0 * bus.load);
    println!("{:16} {:>8} {:>12} {:>12}", "processor", "busy", "packets", "mean size");
    for one in processors {
        println!("{:16} {:>6.1} % {:>12} {:>10.1} B", one.name, 100.0 * one.load, one.packets, one.mean_size);
    }
    println!(
        "{:16} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "latency (us)", "mean", "50 %", "90 %", "99 %", "99.9 %"
    );
    let all = [("processing", outcome.figures.processing_latency), ("total", outcome.figures.total_latency)];
    let classes = outcome.figures.classes.iter().map(|class| (class.name.as_str(), class.total_latency));
    for (name, one) in all.into_iter().chain(classes) {
        let [mean, p50, p90, p99, p999] =
            [one.mean_s, one.p50_s, one.p90_s, one.p99_s, one.p999_s].map(|seconds| seconds * 1e6);
        println!("{name:16} {mean:>12.3} {p50:>12.3} {p90:>12.3} {p99:>12.3} {p999:>12.3}");
    }
    for note in &outcome.notes {
        println!("note: {note}");
    }
}
