//! `forebay bench processors`: what a job costs on each processor of this machine.

use std::path::PathBuf;

use clap::Args;
use forebay_crypto::{Processor, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_engine::{Clock, Lane, calibrate};
use miette::{IntoDiagnostic, WrapErr, miette};

use crate::Answer;
use crate::backend::Backend;
use crate::processors::{Costs, MeasuredCost};

/// Packets in a burst to a core: a core under load is given several at once.
const CORE_BURST: usize = 8;

/// Arguments of `forebay bench processors`.
#[derive(Args)]
#[command(after_help = "Example: forebay bench processors --proposal aes128gcm16 --save costs.json")]
pub struct ProcessorsArgs {
    /// Suites, in swanctl's words.
    #[arg(long, value_delimiter = ',', default_value = "aes128gcm16,aes128-sha256,chacha20poly1305")]
    proposal: Vec<String>,
    /// Write the result where seal, open and demo can read it (--costs).
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &ProcessorsArgs) -> miette::Result<Answer> {
    let suites = args.proposal.iter().map(|word| {
        word.parse::<Suite>()
            .map_err(|error| miette!(help = format!("did you mean `{}`?", error.nearest), "{error}"))
    });
    let suites: Vec<Suite> = suites.collect::<miette::Result<_>>()?;
    let clock = Clock::start();
    let mut costs = Costs { schema: 1, processors: Vec::new() };
    for (mut processor, _) in processors(clock)? {
        for &suite in &suites {
            let Some(calibration) = calibrate(&mut *processor, suite, clock) else {
                eprintln!("{} does not do {suite}", processor.name());
                continue;
            };
            costs.processors.push(MeasuredCost::new(processor.name(), suite, &calibration));
        }
    }
    let json = serde_json::to_string_pretty(&costs).into_diagnostic()?;
    if let Some(path) = &args.save {
        std::fs::write(path, &json)
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        println!("{json}");
    } else {
        print(&costs);
    }
    Ok(Answer::Yes)
}

/// Every kind of processor this build has: cores in place, a core behind a lane, an emulated card.
fn processors(clock: Clock) -> miette::Result<Vec<(Box<dyn Processor>, usize)>> {
    let mut all: Vec<(Box<dyn Processor>, usize)> = Vec::new();
    match forebay_crypto_ipsec_mb::new() {
        Ok(processor) => all.push((processor, CORE_BURST)),
        Err(why) => eprintln!("no ipsec-mb: {why}"),
    }
    all.push((Box::new(AwsLc::new()), CORE_BURST));
    let lane = Lane::new(Backend::Auto.open()?, "worker.1", clock).into_diagnostic()?;
    all.push((Box::new(lane), CORE_BURST));
    let card =
        Card::new(CardConfig::paper_230_mbit(), &Bus::new(BusConfig::pci_66()), Box::new(AwsLc::new()));
    all.push((Box::new(card), 1));
    Ok(all)
}

fn print(costs: &Costs) {
    println!(
        "{:<12} {:<18} {:>10} {:>10} {:>7} {:>22}",
        "processor", "proposal", "t_init", "t_block", "R2", "Mbit/s at 64 / 1440"
    );
    for one in &costs.processors {
        let rate = |size: u32| {
            let near = one.points.iter().min_by_key(|(bytes, _)| bytes.abs_diff(size));
            near.map_or(0.0, |&(bytes, seconds)| f64::from(bytes) * 8.0 / seconds / 1e6)
        };
        println!(
            "{:<12} {:<18} {:>7.1} ns {:>7.2} ns {:>7.4} {:>11.0} / {:<8.0}",
            one.name,
            one.proposal,
            one.init_s * 1e9,
            one.block_s * 1e9,
            one.r_squared,
            rate(64),
            rate(1440),
        );
    }
}
