//! The command `forebay`, as a library: a program that adds processors or placement policies of its own registers them
//! ([`forebay_processors::register`], [`forebay_scheduler::register`]) and calls [`main`].
#![cfg(feature = "workbench")]

// For its macros, in the place of the standard library's.
#[macro_use]
extern crate forebay_terminal;

mod bench;
mod check;
mod columns;
mod control_client;
mod explore;
mod gateway;
mod guard;
mod import;
mod keygen;
mod manual;
mod operation;
mod pipeline;
mod request;
mod seal_open;
mod simulate;
mod size_buffers;
mod state;
mod study;
mod top;
mod tunnel;
mod validate_model;
#[allow(dead_code)] // the workbench does not run itself
mod workbench;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use forebay_crypto::Direction;
use forebay_terminal::{Answer, exit_number};

/// An IPsec gateway that places each crypto job by predicted finish time, and a simulator with the same scheduler.
#[derive(Parser)]
#[command(name = "forebay", version, max_term_width = 100, after_help = "Example: forebay demo")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Protect every packet of a capture (outbound IPsec processing).
    #[command(after_help = "Example: forebay seal --sas sas.toml plain.pcap -o sealed.pcap")]
    Seal(seal_open::SealOpenArgs),
    /// Decrypt and verify every protected packet of a capture (inbound IPsec processing).
    #[command(after_help = "Example: forebay open --sas sas.toml sealed.pcap -o plain.pcap")]
    Open(seal_open::SealOpenArgs),
    #[command(flatten)]
    Operation(operation::Operation),
    /// Monitor a running gateway: utilization, queues, predicted and actual times, SAs and drops.
    #[command(after_help = "Example: forebay top --config gateway.toml")]
    Top(top::TopArgs),
    /// Simulate a design under given traffic, in virtual time.
    #[command(after_help = "Example: forebay simulate host.toml --set processor.card.count=4 --json")]
    Simulate(simulate::SimulateArgs),
    /// Solve a pipeline's Markov chain or compute an inline card's limits, without simulation.
    #[command(after_help = "Example: forebay solve pipeline.toml --set stage.receive.buffer=4 --json")]
    Solve(pipeline::SolveArgs),
    /// Find the smallest buffers of a pipeline for a loss ratio, and the maximum throughput of its own buffers.
    #[command(after_help = "Example: forebay size-buffers pipeline.toml --loss 0.01 --json")]
    SizeBuffers(size_buffers::SizeBuffersArgs),
    /// Run a study: a set of simulations with figures and a check of published claims.
    #[command(subcommand)]
    Study(study::StudyCommand),
    /// Simulate firmware on embedded cores: its cycles by cause, and the gain of each option of the core.
    #[command(subcommand)]
    Explore(explore::Explore),
    /// Validate the simulation model: run the engine with emulated cards and the simulator on the same packets.
    #[command(after_help = "Example: forebay validate-model --rate '400 Mbit/s' --out model-run")]
    ValidateModel(validate_model::ValidateModelArgs),
    /// Measure the data plane, the scheduler, the processors, or a gateway by every kind of link.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Compare the scheduler with fixed splits, then send a capture through two gateways and verify every packet.
    #[command(after_help = "Example: forebay demo --out demo-run")]
    Demo(forebay_demo::DemoArgs),
    /// Write manual pages to a directory.
    #[command(after_help = "Example: forebay man man1")]
    Man(manual::ManArgs),
    /// Print shell completions.
    #[command(after_help = "Example: forebay completions bash > /etc/bash_completion.d/forebay")]
    Completions(manual::CompletionsArgs),
}

/// Runs the command by the arguments of the process: its exit code.
pub fn main() -> ExitCode {
    ExitCode::from(main_of(std::env::args_os().collect()))
}

/// Runs the command by `words`, of which the first is its own name, inside of another program: its exit code.
pub fn main_of(words: Vec<OsString>) -> u8 {
    if let Some(refused) = workbench::renamed(&words) {
        return exit_number(Err(refused));
    }
    match Cli::try_parse_from(words) {
        Ok(cli) => exit_number(run(cli.command)),
        Err(usage) => {
            // Help, the version, or what is wrong with the words.
            let _ = usage.print();
            u8::try_from(usage.exit_code()).unwrap_or(2)
        }
    }
}

fn run(command: Command) -> miette::Result<Answer> {
    match command {
        Command::Seal(args) => seal_open::run(&args, Direction::Seal),
        Command::Open(args) => seal_open::run(&args, Direction::Open),
        Command::Operation(command) => command.run(),
        Command::Top(args) => top::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Solve(args) => pipeline::solve(&args),
        Command::SizeBuffers(args) => size_buffers::run(&args),
        Command::Study(study) => study.run(),
        Command::Explore(explore) => explore.run(),
        Command::ValidateModel(args) => validate_model::run(&args),
        Command::Bench(bench) => bench.run(),
        Command::Demo(args) => forebay_demo::run(&args),
        Command::Man(args) => manual::pages(&args, Cli::command()),
        Command::Completions(args) => manual::completions(&args, &Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands of an enum of them, in the order of their names.
    fn names(command: clap::Command) -> Vec<String> {
        let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
        let mut names: Vec<String> = shown.map(|below| below.get_name().to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn each_command_is_of_the_gateways_operation_or_of_the_workbench() {
        let operation = operation::Operation::augment_subcommands(clap::Command::new("forebay"));
        let mut parts = names(operation);
        parts.extend(workbench::COMMANDS.iter().map(ToString::to_string));
        parts.extend(["completions", "man"].map(str::to_owned));
        parts.sort();
        assert_eq!(parts, names(Cli::command()));
    }
}
