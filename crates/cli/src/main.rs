//! `forebay`, the one command.

// For its macros, in the place of the standard library's.
#[macro_use]
extern crate forebay_terminal;

mod ask;
mod bench;
mod check;
mod explore;
mod gateway;
mod import;
mod manual;
mod operation;
mod pass;
mod pipeline;
mod simulate;
mod size;
mod study;
mod top;
mod twin;
#[cfg(test)]
#[allow(dead_code)] // the workbench does not run itself
mod workbench;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use forebay_crypto::Direction;
use forebay_terminal::{Answer, output, progress};

/// IPsec packets through every processor that can do the crypto, by predicted finishing time.
#[derive(Parser)]
#[command(name = "forebay", version, max_term_width = 100, after_help = "Example: forebay demo")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Protect every packet of a capture (outbound processing).
    #[command(after_help = "Example: forebay seal --sas sas.toml plain.pcap -o sealed.pcap")]
    Seal(pass::PassArgs),
    /// Open every protected packet of a capture (inbound processing).
    #[command(after_help = "Example: forebay open --sas sas.toml sealed.pcap -o plain.pcap")]
    Open(pass::PassArgs),
    #[command(flatten)]
    Operation(operation::Operation),
    /// Watch a running gateway: load, queue, predicted against actual time, SAs and drops, as they are now.
    #[command(after_help = "Example: forebay top --config gateway.toml")]
    Top(top::TopArgs),
    /// Run a scenario in virtual time: what a design would do on given traffic.
    #[command(after_help = "Example: forebay simulate host.toml --set processor.card.count=4 --json")]
    Simulate(simulate::SimulateArgs),
    /// Solve a pipeline's Markov chain, or an inline card's limits, instead of simulating it.
    #[command(after_help = "Example: forebay solve pipeline.toml --set stage.receive.buffer=4 --json")]
    Solve(pipeline::SolveArgs),
    /// Find the smallest buffers of a pipeline for a loss, and the load that its own can bear.
    #[command(after_help = "Example: forebay size pipeline.toml --loss 0.01 --json")]
    Size(size::SizeArgs),
    /// Run a study: many simulations, what they show, and whether published claims hold.
    #[command(subcommand)]
    Study(study::StudyCommand),
    /// Run firmware on simulated embedded cores: where its cycles go, and what options of the core pay.
    #[command(subcommand)]
    Explore(explore::Explore),
    /// Run the engine with emulated cards and the simulator on the same packets, and compare.
    #[command(after_help = "Example: forebay twin --rate '400 Mbit/s' --out twin-run")]
    Twin(twin::TwinArgs),
    /// Measure: the data plane, the scheduler, or the processors.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Compare the scheduler with fixed splits, then send a real capture through two gateways and compare what comes out.
    #[command(after_help = "Example: forebay demo --out demo-run")]
    Demo(forebay_demo::DemoArgs),
    /// Write manual pages into a folder.
    #[command(hide = true)]
    Man(manual::ManArgs),
    /// Print completions for a shell.
    #[command(hide = true)]
    Completions(manual::CompletionsArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let answer = match cli.command {
        Command::Seal(args) => pass::run(&args, Direction::Seal),
        Command::Open(args) => pass::run(&args, Direction::Open),
        Command::Operation(command) => command.run(),
        Command::Top(args) => top::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Solve(args) => pipeline::solve(&args),
        Command::Size(args) => size::run(&args),
        Command::Study(study) => study.run(),
        Command::Explore(explore) => explore.run(),
        Command::Twin(args) => twin::run(&args),
        Command::Bench(bench) => bench.run(),
        Command::Demo(args) => forebay_demo::run(&args),
        Command::Man(args) => manual::pages(&args, Cli::command()),
        Command::Completions(args) => manual::completions(&args, &Cli::command()),
    };
    output::flush();
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        // Nobody asked for more.
        Ok(Answer::Interrupted) if output::is_closed() => ExitCode::SUCCESS,
        Ok(Answer::Interrupted) => ExitCode::from(130),
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::Broken) => ExitCode::from(2),
        Err(report) if report.is::<progress::Interrupted>() => {
            eprintln!("{report}");
            ExitCode::from(130)
        }
        Err(report) => {
            eprintln!("{report:?}");
            ExitCode::from(2)
        }
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
        parts.sort();
        assert_eq!(parts, names(Cli::command()));
    }
}
