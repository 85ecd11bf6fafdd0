//! `forebay bench processors`: what a job costs on each processor of this machine.

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_processors::Costs;
use forebay_terminal::Answer;
use forebay_time::Duration;
use miette::IntoDiagnostic;

use super::write;
use crate::request::measured;
use forebay_measure::processors::measure;

/// Arguments of `forebay bench processors`.
#[derive(Args)]
#[command(after_help = "Example: forebay bench processors --proposal aes128gcm16 --save costs.json")]
pub struct ProcessorsArgs {
    /// Cipher suites, in swanctl notation.
    #[arg(long, value_delimiter = ',', default_value = "aes128gcm16,aes128-sha256,chacha20poly1305")]
    proposal: Vec<String>,
    /// Write the costs to a file that `--costs` of `forebay-demo` reads.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write a scenario for `forebay simulate` with the costs of core and card measured for the first
    /// proposal.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &ProcessorsArgs) -> miette::Result<Answer> {
    forebay_terminal::refuse_inputs(args.save.iter().chain(&args.scenario), [] as [&Path; 0])?;
    let found = measure(&args.proposal).map_err(measured)?;
    for note in &found.notes {
        eprintln!("{note}");
    }
    let json = serde_json::to_string_pretty(&found.costs).into_diagnostic()?;
    if let Some(path) = &args.save {
        write(path, &json)?;
    }
    if let (Some(path), Some(scenario)) = (&args.scenario, found.scenario()) {
        write(path, &scenario)?;
    }
    if args.json {
        println!("{json}");
    } else {
        print(&found.costs);
    }
    Ok(Answer::Yes)
}

fn print(costs: &Costs) {
    println!(
        "{:<10} {:<18} {:>9} {:>9} {:>9} {:>9} {:>9} {:>5} {:>6} {:>10}",
        "processor", "proposal", "submit", "t_init", "t_block", "t_packet", "wake", "lanes", "R2", "residual"
    );
    for one in &costs.processors {
        let cost = one.cost();
        println!(
            "{:<10} {:<18} {:>9} {:>9} {:>9} {:>9} {:>9} {:>5} {:>6.4} {:>10}",
            one.name,
            one.proposal,
            cost.submit.to_string(),
            cost.init.to_string(),
            cost.block.to_string(),
            cost.packet.to_string(),
            cost.wake.to_string(),
            cost.lanes,
            one.r_squared,
            Duration::from_secs(one.residual_s).to_string(),
        );
    }
    println!(
        "\n{:<10} {:<18} {:>32} {:>32}",
        "packets/s", "in batches of", "64 bytes: 1 / 8 / 32", "1440 bytes: 1 / 8 / 32"
    );
    for one in &costs.processors {
        let rates = |size| {
            let rate = |batch| one.rate(size, batch).map_or("-".to_owned(), |rate| format!("{rate:.0}"));
            [1, 8, 32].map(rate).join(" / ")
        };
        println!("{:<10} {:<18} {:>32} {:>32}", one.name, one.proposal, rates(64), rates(1440));
    }
}
