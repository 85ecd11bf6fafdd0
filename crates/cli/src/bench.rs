//! `forebay bench`: the data plane, the scheduler, the processors and whole gateways, measured.

mod crossover;
mod esp;
mod gateway;
mod processors;
mod relay;
mod scheduler;

use std::path::Path;

use clap::{Subcommand, ValueEnum};
use forebay_crypto::Direction;
use miette::{IntoDiagnostic, WrapErr};

use forebay_terminal::Answer;

/// What can be measured.
#[derive(Subcommand)]
pub enum Bench {
    /// Measure the throughput of the data plane in memory, beside the bare cipher in the same run.
    Esp(esp::EspArgs),
    /// Measure scheduling policies on the processors of this machine: throughput, shares and latency, beside two limits.
    Scheduler(scheduler::SchedulerArgs),
    /// Measure setup time and time per block of each processor of this machine.
    Processors(processors::ProcessorsArgs),
    /// Find from which packet sizes and numbers on a device is done earlier than the running core, and measure whether that is so.
    Crossover(crossover::CrossoverArgs),
    /// Measure a gateway by every kind of link, between a generator and a sink on this machine, beside relays without IPsec.
    Gateway(gateway::GatewayArgs),
    /// Move packets between the links of a gateway's file without IPsec.
    #[command(hide = true)]
    Relay(relay::RelayArgs),
}

/// Directions to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    Out,
    In,
    Both,
}

impl Which {
    fn directions(self) -> Vec<Direction> {
        match self {
            Which::Out => vec![Direction::Seal],
            Which::In => vec![Direction::Open],
            Which::Both => vec![Direction::Seal, Direction::Open],
        }
    }
}

impl Bench {
    pub fn run(self) -> miette::Result<Answer> {
        match self {
            Bench::Esp(args) => esp::run(&args),
            Bench::Scheduler(args) => scheduler::run(&args),
            Bench::Processors(args) => processors::run(&args),
            Bench::Crossover(args) => crossover::run(&args),
            Bench::Gateway(args) => gateway::run(&args),
            Bench::Relay(args) => relay::run(&args),
        }
    }
}

/// Writes a file, whole or not at all.
fn write(path: &Path, text: &str) -> miette::Result<()> {
    forebay_links::output::write(path, text)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot write {}", path.display()))
}
