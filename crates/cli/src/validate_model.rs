//! `forebay validate-model`: the engine with emulated cards, or on several cores, beside the simulator, on the same packets.

mod table;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use forebay_measure::Error;
use forebay_measure::validate::{Comparison, CoresSettings, EngineClock, Settings, cores, keep, validate};
use forebay_processors::Backend;
use forebay_terminal::progress::{self, Progress};
use forebay_terminal::{Answer, host};
use miette::IntoDiagnostic;

use crate::request::measured;

/// Arguments of `forebay validate-model`.
#[derive(Args)]
pub struct ValidateModelArgs {
    /// Compare equal cores instead of cards: the engine on so many threads with one SA in order, below its throughput and beyond
    /// it. The machine should have nothing else to do.
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "cards", "write_buffer", "prefetch", "queue", "alpha", "window", "sas", "mean", "clock"])]
    cores: Option<usize>,
    /// With --cores: length of the cleartext packets.
    #[arg(long, value_name = "BYTES", default_value_t = 1_408, requires = "cores")]
    size: usize,
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

impl ValidateModelArgs {
    fn settings(&self) -> Settings {
        Settings {
            packets: self.packets,
            rates: self.rate.clone(),
            cards: self.cards,
            write_buffer: self.write_buffer,
            prefetch: self.prefetch,
            queue: self.queue,
            alpha: self.alpha,
            window: self.window,
            sas: self.sas,
            mean: self.mean,
            seed: self.seed,
            proposal: self.proposal.clone(),
            backend: self.backend,
            clock: match self.clock {
                Time::Thread => EngineClock::Thread,
                Time::Wall => EngineClock::Wall,
            },
        }
    }
}

/// Runs the command; the answer is no if the two differ.
pub fn run(args: &ValidateModelArgs) -> miette::Result<Answer> {
    let comparison = match args.cores {
        Some(count) => equal_cores(args, count),
        None => emulated_cards(args),
    };
    let comparison = comparison.map_err(measured)?;
    if let Some(dir) = &args.out {
        keep(dir, &comparison).map_err(measured)?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&comparison).into_diagnostic()?);
    } else {
        print!("{}", table::table(&comparison));
    }
    Ok(if comparison.holds { Answer::Yes } else { Answer::No })
}

fn equal_cores(args: &ValidateModelArgs, count: usize) -> Result<Comparison, Error> {
    let &ValidateModelArgs { packets, size, seed, backend, .. } = args;
    let settings =
        CoresSettings { cores: count, packets, size, seed, proposal: args.proposal.clone(), backend };
    let mut bar = Progress::runs("rounds");
    let watch = |done, all| {
        bar.of(all);
        bar.at(done);
        progress::go_on()
    };
    let comparison = cores(&settings, &host::model(), args.out.as_deref(), watch);
    bar.finish();
    comparison
}

fn emulated_cards(args: &ValidateModelArgs) -> Result<Comparison, Error> {
    let settings = args.settings();
    let mut bar = Progress::packets("engine", settings.packets * settings.rates().len() as u64);
    let watch = |done| {
        bar.at(done);
        progress::go_on()
    };
    let comparison = validate(&settings, &host::model(), args.out.as_deref(), watch);
    bar.finish();
    comparison
}
