//! The demonstration by itself: what `make demo` builds, because the whole command takes several times as long to build.

use std::process::ExitCode;

use clap::Parser;
use forebay_demo::DemoArgs;

/// Compare the scheduler with fixed splits, then send a capture through two gateways and verify every packet.
#[derive(Parser)]
#[command(
    name = "forebay-demo",
    version,
    max_term_width = 100,
    after_help = "Example: forebay-demo --out demo-run"
)]
struct Command {
    #[command(flatten)]
    demo: DemoArgs,
}

fn main() -> ExitCode {
    forebay_terminal::exit_code(forebay_demo::run(&Command::parse().demo))
}
