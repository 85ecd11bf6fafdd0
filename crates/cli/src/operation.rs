//! The commands that run a gateway and ask a running one: those of `forebay-gateway`, and of `forebay` as well.

use clap::Subcommand;
use forebay_terminal::Answer;

use crate::{check, control_client, gateway, guard, import, keygen, state, tunnel};

/// A command of a gateway's operation.
#[derive(Subcommand)]
pub enum Operation {
    /// Validate a gateway configuration without applying it.
    #[command(after_help = "Example: forebay check --config gateway.toml")]
    Check(check::CheckArgs),
    /// Run the gateway in the foreground until it is stopped by a signal.
    #[command(after_help = "Example: forebay gateway --config gateway.toml")]
    Gateway(gateway::GatewayArgs),
    /// Keep the host closed while no gateway runs.
    #[command(subcommand)]
    Guard(guard::GuardCommand),
    /// Import SAs and policies of another system into a gateway configuration.
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Make new keys, each in a file of its own.
    #[command(
        after_help = "Example: forebay keygen --proposal aes128gcm16 keys/east-out.key keys/east-in.key"
    )]
    Keygen(keygen::KeygenArgs),
    /// Write the configurations and keys of a new tunnel, or the next keys of one in use.
    #[command(subcommand)]
    Tunnel(tunnel::TunnelCommand),
    /// Show the state of a running gateway: processors, links, drops.
    #[command(after_help = "Example: forebay status --json")]
    Status(control_client::AskArgs),
    /// Show SAs, policies, processors or drops of a running gateway.
    #[command(subcommand)]
    Show(control_client::ShowCommand),
    /// Make a running gateway reload its configuration; unchanged SAs keep their state.
    #[command(after_help = "Example: forebay reload --config gateway.toml")]
    Reload(control_client::AskArgs),
    /// Show to which gateway the records of a state directory belong and which are missing, or accept them.
    #[command(after_help = "Example: forebay state accept --config gateway.toml")]
    State(state::StateArgs),
}

impl Operation {
    /// Runs the command.
    pub fn run(self) -> miette::Result<Answer> {
        match self {
            Operation::Check(args) => check::run(&args),
            Operation::Gateway(args) => gateway::run(&args),
            Operation::Guard(command) => command.run(),
            Operation::Import(command) => command.run(),
            Operation::Keygen(args) => keygen::run(&args),
            Operation::Tunnel(command) => command.run(),
            Operation::Status(args) => control_client::status(&args),
            Operation::Show(command) => command.run(),
            Operation::Reload(args) => control_client::reload(&args),
            Operation::State(args) => state::run(&args),
        }
    }
}
