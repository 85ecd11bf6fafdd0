//! The commands that run a gateway and ask a running one: those of `forebay-gateway`, and of `forebay` as well.

use clap::Subcommand;
use forebay_terminal::Answer;

use crate::{ask, check, gateway, import};

/// A command of a gateway's operation.
#[derive(Subcommand)]
pub enum Operation {
    /// Say what is wrong with a gateway's file; nothing is changed.
    #[command(after_help = "Example: forebay check --config gateway.toml")]
    Check(check::CheckArgs),
    /// Protect traffic between networks, by TUN and UDP or raw IP, until it is told to stop.
    #[command(after_help = "Example: forebay gateway --config gateway.toml")]
    Gateway(gateway::GatewayArgs),
    /// Take SAs and policies of another system over into a gateway's file.
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// What a running gateway has done: processors, links, drops.
    #[command(after_help = "Example: forebay status --json")]
    Status(ask::AskArgs),
    /// SAs, policies, processors or drops of a running gateway.
    #[command(subcommand)]
    Show(ask::ShowCommand),
    /// Make a running gateway read its file again; SAs of which nothing changed go on.
    #[command(after_help = "Example: forebay reload --config gateway.toml")]
    Reload(ask::AskArgs),
}

impl Operation {
    /// Runs the command.
    pub fn run(self) -> miette::Result<Answer> {
        match self {
            Operation::Check(args) => check::run(&args),
            Operation::Gateway(args) => gateway::run(&args),
            Operation::Import(command) => command.run(),
            Operation::Status(args) => ask::status(&args),
            Operation::Show(command) => command.run(),
            Operation::Reload(args) => ask::reload(&args),
        }
    }
}
