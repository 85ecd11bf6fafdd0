//! `forebay guard`: what keeps a host closed while no gateway runs.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use forebay_gateway::service::{Closed, SavedRules};
use forebay_terminal::Answer;

/// `forebay guard` and what stands behind it.
#[derive(Subcommand)]
pub enum GuardCommand {
    /// Install the guard's rules and blackhole routes that the last start with a configuration file saved. The file itself is
    /// not read. The unit forebay-guard.service does this before the network comes up. Requires CAP_NET_ADMIN.
    #[command(after_help = "Example: forebay guard load --config /etc/forebay/gateway.toml")]
    Load(LoadArgs),
}

/// Arguments of `forebay guard load`.
#[derive(Args)]
pub struct LoadArgs {
    /// The gateway's configuration file, by whose name the rules are saved in $FOREBAY_STATE, else /var/lib/forebay.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl GuardCommand {
    /// Runs the command.
    pub fn run(&self) -> miette::Result<Answer> {
        let GuardCommand::Load(args) = self;
        let closed = SavedRules::of(&args.config).install();
        if let Closed::Failed { .. } = closed {
            return Err(miette::miette!("{closed}"));
        }
        println!("{closed}");
        Ok(Answer::Yes)
    }
}
