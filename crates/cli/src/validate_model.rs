//! `forebay validate-model`: the engine with emulated cards beside the simulator, on the same packets.
//!
//! ```text
//!                 +--> engine: real crypto, real bytes, a clock that runs --+
//! drawn packets --+    running core, emulated cards on one bus              +--> compared
//!                 +--> simulator: the same cards, bus, scheduler, costs ----+
//! ```
//!
//! The engine goes first. What it tells the simulator is only what no scenario can know: how long the
//! packets are once they are sealed, and what the running core takes for them.

mod compare;
mod emulated;
mod packets;
mod report;
mod simulated;
mod table;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use miette::{IntoDiagnostic, WrapErr, miette};

use compare::{Comparison, Pair};
use forebay_processors::Backend;
use forebay_terminal::{Answer, progress};

/// Arguments of `forebay validate-model`.
#[derive(Args)]
pub struct ValidateModelArgs {
    /// Number of packets at each rate.
    #[arg(long, default_value_t = 100_000)]
    packets: u64,
    /// Offered cleartext traffic; repeat it for several runs [default: rates below and above the cards' throughput].
    #[arg(long, value_name = "RATE")]
    rate: Vec<String>,
    /// Number of emulated cards of 230 Mbit/s on a 66 MHz bus.
    #[arg(long, default_value_t = 2)]
    cards: usize,
    /// Completed jobs that a card can hold for the bus while it computes the next.
    #[arg(long, default_value_t = 0)]
    write_buffer: usize,
    /// Jobs that a card prefetches.
    #[arg(long, default_value_t = 0)]
    prefetch: usize,
    /// Maximum queue length of each processor, in jobs.
    #[arg(long, default_value_t = 1_000)]
    queue: usize,
    /// Factor on the predicted finish time of the running core; higher values give more packets to the cards.
    #[arg(long, default_value_t = 400.0)]
    alpha: f64,
    /// Sliding window in packets; 1 disables bundling.
    #[arg(long, default_value_t = 1)]
    window: usize,
    /// Number of SAs, which are equally likely.
    #[arg(long, default_value_t = 4)]
    sas: usize,
    /// Mean length of the cleartext packets; lengths are exponential, limited to 40 to 1400 bytes.
    #[arg(long, default_value_t = 471)]
    mean: u32,
    /// Seed of the random packets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cipher suite, in swanctl notation.
    #[arg(long, default_value = "aes128gcm16")]
    proposal: String,
    /// Crypto library of the running core.
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// Clock of the engine.
    #[arg(long, value_enum, default_value_t = Time::Thread)]
    clock: Time,
    /// Output directory for report.html, figures.json, and for each rate the scenario and packets of the simulator.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// What the engine takes for time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Time {
    /// CPU time of the engine's thread, so that other load on the machine does not affect the comparison.
    Thread,
    /// Wall-clock time; requires a dedicated core.
    Wall,
}

/// Below what two cards do, near it, and beyond it.
const RATES: [&str; 3] = ["200 Mbit/s", "400 Mbit/s", "1 Gbit/s"];

/// Runs the command.
pub fn run(args: &ValidateModelArgs) -> miette::Result<Answer> {
    check(args)?;
    let folder = match &args.out {
        Some(dir) => Folder::Kept(dir.clone()),
        None => Folder::Passing(
            tempfile::tempdir().into_diagnostic().wrap_err("cannot create a temporary directory")?,
        ),
    };
    let rates: Vec<&str> = match args.rate.is_empty() {
        true => RATES.to_vec(),
        false => args.rate.iter().map(String::as_str).collect(),
    };
    let mut bar = progress::Progress::packets("engine", args.packets * rates.len() as u64);
    let mut pairs: Vec<Pair> = Vec::new();
    for (number, rate) in rates.iter().enumerate() {
        let packets = packets::draw(args, rate)?;
        let begun = number as u64 * args.packets;
        let engine = emulated::run(args, &packets, |done| bar.at(begun + done))?;
        let dir = folder.path().join(format!("rate-{}", number + 1));
        let simulator = simulated::run(args, &dir, &packets, &engine)?;
        pairs.push(Pair { rate: (*rate).to_owned(), engine: engine.figures, simulator });
    }
    bar.finish();
    let comparison = Comparison::new(args, pairs);
    let json = serde_json::to_string_pretty(&comparison).into_diagnostic()?;
    if let Some(dir) = &args.out {
        for (name, text) in
            [("report.html", report::render(&comparison)), ("figures.json", json.clone() + "\n")]
        {
            let path = dir.join(name);
            let written = std::fs::write(&path, text).into_diagnostic();
            written.wrap_err_with(|| format!("cannot write {}", path.display()))?;
        }
    }
    if args.json {
        println!("{json}");
    } else {
        print!("{}", table::table(&comparison));
    }
    Ok(if comparison.holds { Answer::Yes } else { Answer::No })
}

/// Where the simulator's packets lie.
enum Folder {
    Kept(PathBuf),
    Passing(tempfile::TempDir),
}

impl Folder {
    fn path(&self) -> &std::path::Path {
        match self {
            Folder::Kept(dir) => dir,
            Folder::Passing(dir) => dir.path(),
        }
    }
}

fn check(args: &ValidateModelArgs) -> miette::Result<()> {
    let limits: [(&str, u64, u64, u64); 7] = [
        ("packets", args.packets, 1, 10_000_000),
        ("cards", args.cards as u64, 1, 64),
        ("queue", args.queue as u64, 1, 100_000),
        ("window", args.window as u64, 1, 64),
        ("sas", args.sas as u64, 1, 250),
        ("mean", args.mean.into(), 41, 1_400),
        ("prefetch", args.prefetch.max(args.write_buffer) as u64, 0, 1_000),
    ];
    for (name, value, least, most) in limits {
        if !(least..=most).contains(&value) {
            return Err(miette!("--{name} {value}: expected {least} to {most}"));
        }
    }
    if !(1.0..=1e9).contains(&args.alpha) {
        return Err(miette!("--alpha {}: expected 1 to 1e9", args.alpha));
    }
    Ok(())
}
