//! `forebay`, the one command.

use std::process::ExitCode;

fn main() -> ExitCode {
    forebay_cli::main()
}
