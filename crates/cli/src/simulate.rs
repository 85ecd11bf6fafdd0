//! `forebay simulate`: a scenario file into figures.

mod search;
mod sweep;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use forebay_engine::Clock;
use forebay_sim::{CoresFigures, Document, Figures, Options, Outcome, Scenario, run as run_scenario};
use forebay_terminal::Answer;
use forebay_terminal::progress::{self, Progress};
use forebay_time::Time;
use forebay_workbench::results::{self, Kept, Packets};
use forebay_workbench::{Error, Model};
use miette::{IntoDiagnostic, miette};
use serde::Serialize;

use crate::request::{decimals, made, report};

/// Arguments of `forebay simulate`.
#[derive(Args)]
pub struct SimulateArgs {
    /// The scenario (TOML).
    pub scenario: PathBuf,
    /// Override a key, or remove it by `KEY=`: `traffic.rate="200 Mbit/s"`, `processor.card.count=4`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Print the figures as JSON.
    #[arg(long)]
    pub json: bool,
    /// Output directory for report.html, scenario.toml with all defaults, figures, manifest.json and timeline.json.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// With --out: maximum number of entries in timeline.json (for ui.perfetto.dev), from the start of the run
    /// [default: 10000].
    #[arg(long, value_name = "ENTRIES", requires = "out")]
    timeline: Option<usize>,
    /// With --out: write every packet with its times and processor to packets.parquet or packets.csv.
    #[arg(long, value_enum, value_name = "FORMAT", requires = "out", num_args = 0..=1, require_equals = true, default_missing_value = "parquet")]
    columns: Option<Format>,
    /// Number of runs, with the seeds s, s + 1, ...; several give means and 95 % confidence intervals
    /// [default: 1, or `runs` of a pipeline or inline card].
    #[arg(long, value_name = "N")]
    pub replications: Option<usize>,
    /// Values of a key; if repeated, every combination is run. All points see the same packets.
    #[arg(long = "sweep", value_name = "KEY=V1,V2,...")]
    sweeps: Vec<String>,
    /// Number of threads for several runs [default: number of cores]. It does not change the figures.
    #[arg(long)]
    pub threads: Option<usize>,
    /// Search for the throughput (RFC 2544): the highest rate that the host carries without loss, or within --loss and
    /// --latency. Queues may absorb 1 % of a run at most.
    #[arg(long)]
    highest_rate: bool,
    /// With --highest-rate: maximum loss ratio.
    #[arg(long, default_value_t = 0.0, requires = "highest_rate")]
    loss: f64,
    /// With --highest-rate: maximum 99 % quantile of the total latency, such as "500 us".
    #[arg(long, value_name = "TIME", requires = "highest_rate")]
    latency: Option<String>,
    /// With --json: add the CPU time of the run on this machine, which is not a figure of the model.
    #[arg(long, requires = "json")]
    pub timing: bool,
}

/// How packets are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values.
    Csv,
}

/// Default number of entries of a time line.
const TIMELINE: usize = 10_000;

impl SimulateArgs {
    /// Whether a table of runs is asked for.
    fn is_sweep(&self) -> bool {
        !self.sweeps.is_empty()
    }

    /// Refuses the options that would have no effect on what is asked for.
    fn check(&self, model: &Model) -> miette::Result<()> {
        let several = self.is_sweep() || self.replications.is_some_and(|runs| runs > 1);
        let is_host = matches!(model, Model::Host(_));
        if matches!(model, Model::Embedded(_)) {
            return Err(miette!(
                help = format!("run `forebay explore run {}`", self.scenario.display()),
                "{}: `simulate` does not run firmware (model = \"embedded\")",
                self.scenario.display()
            ));
        }
        const ONE: &str = "it keeps single runs, and several are asked for";
        const SEARCH: &str = "--highest-rate keeps figures only; run the scenario at the rate found";
        let rate = "only the host model has a rate to search; `forebay size-buffers` finds the load that a pipeline bears";
        let refusals = [
            ("--highest-rate", self.highest_rate, !is_host, rate),
            (
                "--highest-rate",
                self.highest_rate,
                several,
                "a search makes runs of its own; leave out --sweep and --replications",
            ),
            ("--timeline", self.timeline.is_some(), !is_host, "only runs of the host model have a time line"),
            ("--timeline", self.timeline.is_some(), several, ONE),
            ("--timeline", self.timeline.is_some(), self.highest_rate, SEARCH),
            ("--columns", self.columns.is_some(), !is_host, "only runs of the host model keep their packets"),
            ("--columns", self.columns.is_some(), several, ONE),
            ("--columns", self.columns.is_some(), self.highest_rate, SEARCH),
            ("--timing", self.timing, several || self.highest_rate, "it is the time of a single run"),
            ("--threads", self.threads == Some(0), true, "expected at least 1"),
        ];
        match refusals.into_iter().find(|&(_, given, in_vain, _)| given && in_vain) {
            Some((option, .., why)) => Err(miette!(help = format!("leave out {option}"), "{option}: {why}")),
            None => Ok(()),
        }
    }

    /// The same as a manifest says it.
    fn request(&self) -> results::Request<'_> {
        let SimulateArgs { scenario, sets, sweeps, replications, .. } = self;
        results::Request { scenario, sets, sweeps, replications: replications.unwrap_or(1) }
    }

    /// What is kept of a run.
    fn kept(&self) -> Kept {
        let packets = self.columns.map(|format| match format {
            Format::Parquet => Packets::Parquet,
            Format::Csv => Packets::Csv,
        });
        Kept { timeline: self.timeline != Some(0), packets }
    }

    /// Says how much of a run its kept time line lacks, if one was asked for.
    fn say_what_is_left_out(&self, outcome: &Outcome) {
        let later = outcome.timeline.as_ref().map_or(0, |timeline| timeline.left_out());
        if later > 0 && self.timeline.is_some_and(|entries| entries > 0) {
            eprintln!("timeline.json covers the start of the run; {later} later entries are omitted");
        }
    }
}

/// Runs the command.
pub fn run(args: &SimulateArgs) -> miette::Result<Answer> {
    if args.replications == Some(0) {
        return Err(miette!("--replications 0: expected at least 1"));
    }
    if !(0.0..=1.0).contains(&args.loss) {
        return Err(miette!("--loss {}: expected a ratio from 0 to 1", args.loss));
    }
    if let Some(dir) = &args.out {
        let named = forebay_scenario::files_named(&args.scenario, &args.sets);
        forebay_terminal::refuse_inputs(results::files(dir), named)?;
    }
    // A sweep may give what the file lacks.
    if args.is_sweep() {
        return sweep::run(args);
    }
    let model = Model::load(&args.scenario, &args.sets)?;
    args.check(&model)?;
    match model {
        Model::Host(scenario) if args.highest_rate => search::run(args, &scenario),
        Model::Host(scenario) if args.replications.unwrap_or(1) == 1 => host(args, *scenario),
        Model::Host(_) => sweep::run(args),
        model => crate::pipeline::simulate(args, &model),
    }
}

/// A single run of the host model.
fn host(args: &SimulateArgs, mut scenario: Scenario) -> miette::Result<Answer> {
    let mut bar: Option<Progress> = None;
    let mut watch = |done, total| {
        bar.get_or_insert_with(|| Progress::packets("simulating", total)).at(done);
        progress::go_on()
    };
    let kept = args.out.is_some();
    let options = Options {
        timeline: kept.then(|| args.timeline.unwrap_or(TIMELINE)),
        columns: kept && (args.columns.is_some() || results::plots_packets(&scenario)),
        progress: Some(&mut watch),
        keep: true,
        ..Options::default()
    };
    let (outcome, took_s) = timed(|| run_scenario(&scenario, options));
    let outcome = outcome.map_err(|error| report(Error::of_run(&args.scenario, error)))?;
    let timing = args.timing.then(|| Timing::new(took_s, outcome.figures.packets));
    if let Some(bar) = bar {
        bar.finish();
    }
    if let Some(packets) = outcome.cut {
        // What is kept is the whole run of as many packets, and says so.
        let mut sets = args.sets.clone();
        sets.push(format!("traffic.packets={packets}"));
        scenario = Scenario::load(&args.scenario, &sets)?;
    }
    if let Some(dir) = &args.out {
        let kept = results::keep(dir, args.request(), &scenario, &outcome, args.kept(), &made()?, Vec::new());
        kept.map_err(report)?;
        args.say_what_is_left_out(&outcome);
    }
    if args.json {
        let document = Timed { document: Document::new(&scenario, &outcome), timing };
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
    } else {
        print(&outcome);
    }
    if let Some(packets) = outcome.cut {
        eprintln!("interrupted: the figures cover the first {packets} packets");
        return Ok(Answer::Interrupted);
    }
    Ok(Answer::Yes)
}

/// What comes of work, and the processor time of this thread that it took, in seconds.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let clock = Clock::of_this_thread();
    let came = work();
    (came, clock.now().since(Time::ZERO).as_secs())
}

/// A run's document, and what processor time it took to have it.
#[derive(Serialize)]
pub(crate) struct Timed<T> {
    #[serde(flatten)]
    pub document: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

#[derive(Serialize)]
pub(crate) struct Timing {
    seconds: f64,
    packets_per_s: f64,
}

impl Timing {
    pub(crate) fn new(seconds: f64, packets: u64) -> Timing {
        Timing { seconds, packets_per_s: packets as f64 / seconds }
    }
}

fn print(outcome: &Outcome) {
    let Figures { packets, elapsed_s, throughput_bps, bus, processors, lost, .. } = &outcome.figures;
    println!("{packets} packets in {elapsed_s:.6} s: {:.1} Mbit/s", throughput_bps / 1e6);
    if *lost > 0 {
        println!("{lost} packets lost because the input queue was full");
    }
    match outcome.figures.cores {
        Some(_) => println!("{:.3} packets per burst", outcome.figures.packets_per_job),
        None => println!(
            "{:.3} packets per job; bus utilization {:.1} %",
            outcome.figures.packets_per_job,
            100.0 * bus.load
        ),
    }
    if let (Some(joules), Some(watts)) =
        (outcome.figures.energy_per_packet_j, outcome.figures.average_power_w)
    {
        println!("{:.4} uJ per packet, {watts:.4} W in the mean", 1e6 * joules);
    }
    let order = &outcome.figures.order;
    if order.late > 0 {
        println!(
            "{:.1} % of the packets leave after a later one of their SA, up to {} behind; {:.1} % are 64 or more behind",
            100.0 * order.late_share,
            order.distance_max,
            100.0 * order.beyond_64_share
        );
    }
    println!("{:16} {:>8} {:>12} {:>12}", "processor", "busy", "packets", "mean size");
    for one in processors {
        println!("{:16} {:>6.1} % {:>12} {:>10.1} B", one.name, 100.0 * one.load, one.packets, one.mean_size);
    }
    if let Some(core) = &outcome.figures.running_core {
        let [load, moving, feeding] = [core.load, core.moving, core.feeding].map(|share| 100.0 * share);
        println!(
            "{} polls: {load:.1} % busy, {moving:.1} % moving, {feeding:.1} % handing over; {:.1} packets per poll",
            core.name, core.packets_per_poll
        );
    }
    if let Some(CoresFigures { take, complete }) = &outcome.figures.cores {
        let [taking, waiting] = [take.load, take.waiting].map(|share| 100.0 * share);
        let [completing, behind] = [complete.load, complete.waiting].map(|share| 100.0 * share);
        println!(
            "serial stages: taking {taking:.1} %, completing {completing:.1} %; cores wait {waiting:.1} % and {behind:.1} %"
        );
    }
    println!(
        "{:16} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "latency (us)", "mean", "50 %", "90 %", "99 %", "99.9 %"
    );
    let all = [("processing", outcome.figures.processing_latency), ("total", outcome.figures.total_latency)];
    let classes = outcome.figures.classes.iter().map(|class| (class.name.as_str(), class.total_latency));
    let polling = outcome.figures.running_core.as_ref();
    let polling =
        polling.map(|core| [("reorder hold", core.reorder_hold), ("to release", core.release_latency)]);
    let kept = order.hold.zip(order.release_latency);
    let kept = kept.map(|(hold, release)| [("reorder hold", hold), ("to release", release)]);
    let release = polling.or(kept).into_iter().flatten();
    for (name, one) in all.into_iter().chain(classes).chain(release) {
        let [mean, p50, p90, p99, p999] = [one.mean_s, one.p50_s, one.p90_s, one.p99_s, one.p999_s]
            .map(|seconds| decimals(seconds * 1e6, 3));
        println!("{name:16} {mean:>12} {p50:>12} {p90:>12} {p99:>12} {p999:>12}");
    }
    for note in &outcome.notes {
        println!("note: {note}");
    }
}
