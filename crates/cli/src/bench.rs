//! `forebay bench`: the data plane, the scheduler and the processors, measured.

mod esp;
mod processors;
mod scheduler;

use clap::Subcommand;

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
