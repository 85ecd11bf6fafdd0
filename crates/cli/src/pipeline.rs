//! `forebay simulate`, `solve` and `size-buffers` of pipelines and inline cards.

use std::path::PathBuf;
use std::sync::Mutex;

use clap::Args;
use forebay_models::{self as models, Solution};
use forebay_pipeline::scenario::{CardScenario, Scenario};
use forebay_pipeline::{Carried, ClosedForm, Replications, Simulated, Solved};
use forebay_terminal::Answer;
use forebay_terminal::progress::{self, Progress};
use forebay_workbench::results;
use forebay_workbench::{Model, NoFigures, Options, Outcome, Ran, Step, Way};
use miette::{IntoDiagnostic, miette};

use crate::request::{decimals, made, report, threads};
use crate::simulate::{SimulateArgs, Timed, Timing, timed};

/// Simulates a pipeline or an inline card.
pub fn simulate(args: &SimulateArgs, model: &Model) -> miette::Result<Answer> {
    // `--replications` is the key `runs`, so that what is kept can be had again from its scenario.toml.
    let sets: Vec<String> =
        args.sets.iter().cloned().chain(args.replications.map(|runs| format!("runs={runs}"))).collect();
    let replicated = args.replications.map(|_| Model::load(&args.scenario, &sets)).transpose()?;
    let model = replicated.as_ref().unwrap_or(model);
    let threads = if args.timing { 1 } else { threads(args.threads) };
    let (ran, took_s) = timed(|| simulated(model, threads));
    let ran = ran?;
    // What is kept is that of a whole run as far as it came, or of the runs that are complete, and says so.
    let shorter = model.as_far_as(&ran);
    let model = shorter.as_ref().unwrap_or(model);
    let (document, outcomes) = match (model, &ran.outcome) {
        (Model::Card(scenario), Outcome::Runs(runs)) => (Simulated::card(scenario, runs), runs),
        (Model::Pipeline(scenario), Outcome::Runs(runs)) => (Simulated::new(scenario, runs), runs),
        _ => return Err(miette!("{}: not of a pipeline or an inline card", args.scenario.display())),
    };
    if let Some(dir) = &args.out {
        let made = made()?;
        results::pipeline::keep(dir, &args.scenario, &sets, model, &ran, &document, &made).map_err(report)?;
    }
    if args.json {
        let packets = outcomes.iter().map(|one| one.generated).sum();
        let timing = args.timing.then(|| Timing::new(took_s, packets));
        println!("{}", serde_json::to_string_pretty(&Timed { document, timing }).into_diagnostic()?);
        return Ok(interrupted(&ran, outcomes));
    }
    if let Model::Card(scenario) = model {
        let mbps = scenario.payload_bps(&outcomes[0]) / 1e6;
        println!("{mbps:.1} Mbit/s of payload carried, {:.1} offered", scenario.offered_bps / 1e6);
    }
    print_simulated(outcomes, &ran.notes);
    Ok(interrupted(&ran, outcomes))
}

/// Says how far runs came that were broken off.
fn interrupted(ran: &Ran<'_>, outcomes: &[forebay_pipeline::Outcome]) -> Answer {
    match outcomes[0].interrupted_after_s {
        _ if !ran.stopped => return Answer::Yes,
        Some(after) => eprintln!("interrupted: the figures cover the first {after:.6} s"),
        None => eprintln!("interrupted: {} runs are complete", outcomes.len()),
    }
    Answer::Interrupted
}

/// Runs a model's simulation with a bar.
fn simulated(model: &Model, threads: usize) -> miette::Result<Ran<'_>> {
    let bar = Mutex::new((0.0, Progress::share("simulating")));
    let watch = |step: Step| {
        if let (Step::Share(share), Ok(mut bar)) = (step, bar.lock()) {
            bar.0 += share;
            let whole = (bar.0 * progress::WHOLE as f64) as u64;
            bar.1.at(whole);
        }
        progress::go_on()
    };
    let options = Options { threads, keep: true, ..Options::default() };
    let ran = model.run(Way::Simulation, &options, &watch);
    if let Ok((_, bar)) = bar.into_inner() {
        bar.finish();
    }
    ran.map_err(|error| match error {
        NoFigures::Cancelled => progress::Interrupted.into(),
        error => miette!("{error}"),
    })
}

fn print_simulated(outcomes: &[forebay_pipeline::Outcome], notes: &[String]) {
    let forebay_pipeline::Outcome {
        elapsed_s, generated, processed, lost, in_flight, throughput_pps, ..
    } = outcomes[0];
    println!(
        "{generated} packets in {elapsed_s:.6} s: {processed} processed, {lost} lost, {in_flight} in flight"
    );
    let loss = 100.0 * outcomes[0].loss_probability;
    // Without a packet there is a note, and no share of any.
    if generated > 0 {
        println!("{throughput_pps:.1} packets/s, {loss:.4} % lost");
    }
    if let (Some(joules), Some(watts)) = (outcomes[0].energy_per_packet_j, outcomes[0].average_power_w) {
        println!("{:.4} uJ per packet, {watts:.3} W on average", 1e6 * joules);
    }
    print_stages(&outcomes[0]);
    let delay = outcomes[0].delay;
    let names = ["mean", "50 %", "90 %", "99 %", "99.9 %"];
    let values = [delay.mean_s, delay.p50_s, delay.p90_s, delay.p99_s, delay.p999_s];
    let row = |cells: Vec<String>| cells.iter().map(|cell| format!(" {cell:>12}")).collect::<String>();
    println!("{:16}{}", "delay (us)", row(names.map(str::to_owned).to_vec()));
    println!("{:16}{}", "", row(values.map(|seconds| decimals(1e6 * seconds, 3)).to_vec()));
    print_intervals(outcomes);
    for note in notes {
        println!("note: {note}");
    }
}

fn print_stages(outcome: &forebay_pipeline::Outcome) {
    // A column for what breaks down, where anything does.
    let shown = |any: bool, share: Option<f64>| match (any, share) {
        (false, _) => String::new(),
        (true, Some(share)) => format!(" {:>6.1} %", 100.0 * share),
        (true, None) => format!(" {:>8}", ""),
    };
    let head = |any: bool| if any { format!(" {:>8}", "down") } else { String::new() };
    let any = outcome.stages.iter().any(|one| one.down.is_some());
    let down = head(any);
    println!("{:16} {:>8} {:>10} {:>10} {:>10}{down}", "stage", "busy", "max queue", "mean queue", "lost");
    for one in &outcome.stages {
        let down = shown(any, one.down);
        println!(
            "{:16} {:>6.1} % {:>10} {:>10.3} {:>10}{down}",
            one.name,
            100.0 * one.utilisation,
            one.max_queue,
            one.mean_queue,
            one.lost
        );
    }
    let any = outcome.servers.iter().any(|one| one.down.is_some());
    if !outcome.servers.is_empty() {
        let down = head(any);
        println!(
            "{:16} {:>8} {:>10} {:>10} {:>10}{down}",
            "server", "busy", "switching", "waiting", "switches"
        );
    }
    for one in &outcome.servers {
        let [busy, switching, waiting] = [one.utilisation, one.switching, one.waiting].map(|x| 100.0 * x);
        let (switches, down) = (one.switches, shown(any, one.down));
        println!("{:16} {busy:>6.1} % {switching:>8.1} % {waiting:>8.1} % {switches:>10}{down}", one.name);
    }
}

/// Headline figures with their intervals: from batches of one run, and over several.
fn print_intervals(outcomes: &[forebay_pipeline::Outcome]) {
    if let Some(all) = &outcomes[0].batch_means {
        println!("from {} batches of this run, with 95 % confidence:", all.batches);
        for (name, one, scale, unit) in [
            ("throughput", all.throughput_pps, 1.0, "packets/s"),
            ("loss", all.loss_probability, 100.0, "%"),
            ("delay", all.delay_mean_s, 1e6, "us"),
        ] {
            let [mean, half] = [one.mean, one.half_width].map(|value| decimals(scale * value, 4));
            println!("{name:16} {mean} +- {half} {unit}, neighbours correlated by {:.2}", one.lag_1);
        }
    }
    if let Some(all) = Replications::new(outcomes) {
        println!("over {} runs, with 95 % confidence:", all.runs);
        for (name, one, scale, unit) in [
            ("throughput", all.throughput_pps, 1.0, "packets/s"),
            ("loss", all.loss_probability, 100.0, "%"),
            ("delay", all.delay_mean_s, 1e6, "us"),
        ] {
            let [mean, half] = [one.mean, one.half_width].map(|value| decimals(scale * value, 4));
            println!("{name:16} {mean} +- {half} {unit}");
        }
    }
}

/// Arguments of `forebay solve`.
#[derive(Args)]
pub struct SolveArgs {
    /// The scenario (TOML), model = "pipeline" or "inline-card".
    scenario: PathBuf,
    /// Override a key, or remove it by `KEY=`: `arrivals.mean="80 us"`, `stage.receive.buffer=4`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
    /// Solve in closed form for unlimited buffers (M/M/c queues in series, with branches an open Jackson network;
    /// busy-waiting servers count as one queue).
    #[arg(long, conflicts_with_all = ["cycles", "memory"])]
    unlimited: bool,
    /// For a Markov chain: maximum number of iterations [default: 500].
    #[arg(long, value_name = "N")]
    cycles: Option<u32>,
    /// For a Markov chain: maximum memory, in MiB [default: 4096].
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
}

/// Solves.
pub fn solve(args: &SolveArgs) -> miette::Result<Answer> {
    let model = Model::load_solvable(&args.scenario, &args.sets)?;
    if args.unlimited && !matches!(model, Model::Pipeline(_)) {
        return Err(miette!(
            help = "leave out --unlimited",
            "--unlimited: only a model of stages is solved in closed form; an inline card is solved for its limits"
        ));
    }
    let limits = [("--cycles", args.cycles.is_some()), ("--memory", args.memory.is_some())];
    if let (Model::Card(_), Some((option, _))) = (&model, limits.into_iter().find(|(_, given)| *given)) {
        return Err(miette!(
            help = format!("leave out {option}"),
            "{option}: an inline card is solved for its limits, without a Markov chain"
        ));
    }
    let way = match &model {
        Model::Pipeline(_) if args.unlimited => Way::ClosedForm,
        _ => Way::Solution,
    };
    let bar = Mutex::new(Progress::share("solving"));
    let mut options = Options::default();
    options.solver.cycles = args.cycles.unwrap_or(options.solver.cycles);
    options.solver.memory = args.memory.map_or(options.solver.memory, |mib| mib.saturating_mul(1 << 20));
    let tolerance = options.solver.tolerance.log10();
    let watch = |step: Step| {
        if let (Step::Residual(residual), Ok(mut bar)) = (step, bar.lock()) {
            // A residual falls by about the same factor in every cycle.
            let done = residual.log10().max(tolerance) / tolerance;
            bar.at((done.clamp(0.0, 1.0) * progress::WHOLE as f64) as u64);
        }
        progress::go_on()
    };
    let ran = model.run(way, &options, &watch);
    if let Ok(bar) = bar.into_inner() {
        bar.finish();
    }
    match (&model, ran) {
        (Model::Pipeline(scenario), Ok(Ran { outcome: Outcome::Solution(solution), .. })) => {
            solved(scenario, &solution, args)
        }
        (Model::Pipeline(scenario), Ok(Ran { outcome: Outcome::ClosedForm(closed), .. })) => {
            closed_form(scenario, &closed, args)
        }
        (Model::Card(scenario), Ok(Ran { outcome: Outcome::Limits(limits), .. })) => {
            card(scenario, &limits, args.json)
        }
        (_, Err(NoFigures::Cancelled)) => Err(progress::Interrupted.into()),
        (Model::Pipeline(scenario), Err(NoFigures::Chain(error))) => match error {
            models::Error::NotConverged { .. } => {
                eprintln!("warning: {error}; the figures are not reliable");
                let models::Error::NotConverged { solution, .. } = error else { unreachable!("just seen") };
                solved(scenario, &solution, args)
            }
            error => Err(scenario.objection(&error).into()),
        },
        (_, Err(error)) => Err(miette!("{}: {error}", args.scenario.display())),
        (_, Ok(_)) => Err(miette!("{}: this model cannot be solved", args.scenario.display())),
    }
}

fn solved(scenario: &Scenario, solution: &Solution, args: &SolveArgs) -> miette::Result<Answer> {
    warn(scenario);
    let answer = if solution.accuracy.converged { Answer::Yes } else { Answer::No };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&Solved::new(scenario, solution)).into_diagnostic()?);
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

fn closed_form(scenario: &Scenario, closed: &ClosedForm<'_>, args: &SolveArgs) -> miette::Result<Answer> {
    closed.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    if args.json {
        println!("{}", serde_json::to_string_pretty(closed).into_diagnostic()?);
        return Ok(Answer::Yes);
    }
    let branches = scenario.pipeline.has_branches();
    let visits = |text: &str| if branches { format!(" {text:>8}") } else { String::new() };
    // Where all times are exponential both delays are the same.
    let by_law = scenario.pipeline.stages.iter().any(|stage| !stage.time.is_memoryless());
    let law = |text: &str| if by_law { format!(" {text:>14}") } else { String::new() };
    let delay =
        |delay: Option<f64>| delay.map_or("none".to_owned(), |seconds| format!("{:.3}", 1e6 * seconds));
    let (head, last) = (visits("visits"), law("by its law"));
    println!(
        "{:32}{head} {:>8} {:>10} {:>12}{last}",
        "station, unlimited room", "busy", "inside", "delay (us)"
    );
    for station in &closed.stages {
        let (name, one, visits) = (&station.name, &station.queue, visits(&format!("{:.4}", station.visits)));
        let last = law(&delay(station.general.map(|general| general.mean_delay_s)));
        let (busy, mean) = (100.0 * one.utilisation, 1e6 * one.mean_delay_s);
        println!("{name:32}{visits} {busy:>6.1} % {:>10.4} {mean:>12.3}{last}", one.mean_occupancy);
    }
    if branches || by_law {
        let by_law = if by_law {
            format!(", {} by the laws of the times", delay(closed.general_delay_s))
        } else {
            String::new()
        };
        println!("{:.3} us from arrival to departure{by_law}", 1e6 * closed.mean_delay_s);
    }
    Ok(Answer::Yes)
}

fn card(scenario: &CardScenario, carried: &Carried<'_>, json: bool) -> miette::Result<Answer> {
    if json {
        println!("{}", serde_json::to_string_pretty(carried).into_diagnostic()?);
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
    for one in &carried.resources {
        if let (Some(rate), Some(wait)) = (one.interrupts_per_s, one.interrupt_wait_s) {
            let wait = 1e6 * wait;
            println!("{}: {rate:.1} interrupts/s, for which packets wait {wait:.3} us in the mean", one.name);
        }
    }
    Ok(Answer::Yes)
}
