//! `forebay bench`: the data plane, the scheduler and the processors, measured.

mod esp;
mod processors;
mod scheduler;

use clap::Subcommand;

use forebay_terminal::Answer;

/// What can be measured.
#[derive(Subcommand)]
pub enum Bench {
    /// Throughput of the data plane in memory, against the bare cipher in the same run.
    Esp(esp::EspArgs),
    /// Policies on the real processors of this machine: throughput, shares, latency, against two limits.
    Scheduler(scheduler::SchedulerArgs),
    /// Setup and time per block of each processor on this machine.
    Processors(processors::ProcessorsArgs),
}

impl Bench {
    pub fn run(self) -> miette::Result<Answer> {
        match self {
            Bench::Esp(args) => esp::run(&args),
            Bench::Scheduler(args) => scheduler::run(&args),
            Bench::Processors(args) => processors::run(&args),
        }
    }
}
