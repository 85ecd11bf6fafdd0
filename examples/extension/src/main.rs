//! `forebay` with a policy and a kind of processor of its own: each is one file and one line here. Gateway, simulator,
//! benchmarks and `check` know them by their words.
//!
//! ```sh
//! cargo run -- simulate host.toml --set scheduler.policy=power-of-choices --set scheduler.choices=3
//! cargo run -- bench scheduler --processor core,remote --policy finish-time,power-of-choices
//! ```

mod policy;
mod remote;

use std::process::ExitCode;

fn main() -> ExitCode {
    forebay_scheduler::register(&policy::POWER_OF_CHOICES).expect("its word is new");
    forebay_processors::register(&remote::REMOTE).expect("its word is new");
    forebay_cli::main()
}
