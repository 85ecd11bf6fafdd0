//! `forebay-gateway`: the commands that run a gateway and ask a running one, and nothing else. It is what a service
//! manager starts and what the package `forebay` installs, as `forebay`; scripts, captures, simulations and terminal pages
//! are not in it.

// For its macros, in the place of the standard library's.
#[macro_use]
extern crate forebay_terminal;

mod check;
mod columns;
mod control_client;
mod gateway;
mod guard;
mod import;
mod keygen;
mod manual;
mod operation;
mod state;
mod tunnel;
mod workbench;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use forebay_terminal::exit_code;

/// An IPsec gateway that places each crypto job on the processor with the earliest predicted finish time.
#[derive(Parser)]
#[command(
    name = "forebay",
    version,
    max_term_width = 100,
    after_help = "The package forebay-workbench has the commands for captures, simulations and studies."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Operation(operation::Operation),
    /// Write manual pages to a directory.
    #[command(after_help = "Example: forebay man man1")]
    Man(manual::ManArgs),
    /// Print shell completions.
    #[command(after_help = "Example: forebay completions bash > /etc/bash_completion.d/forebay")]
    Completions(manual::CompletionsArgs),
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let answer = match workbench::run(&words) {
        Some(failed) => Err(failed),
        None => match Cli::parse_from(words).command {
            Command::Operation(command) => command.run(),
            Command::Man(args) => manual::pages(&args, Cli::command()),
            Command::Completions(args) => manual::completions(&args, &Cli::command()),
        },
    };
    exit_code(answer)
}
