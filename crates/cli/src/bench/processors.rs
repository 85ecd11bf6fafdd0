//! `forebay bench processors`: what a job costs on each processor of this machine.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use forebay_crypto::{Processor, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig};
use forebay_engine::{Clock, Lane, calibrate};
use forebay_time::Duration;
use miette::{IntoDiagnostic, WrapErr, miette};

use forebay_processors::{Backend, Costs, Kind, MeasuredCost, Surroundings, kinds};
use forebay_terminal::Answer;

/// The name of the core behind a lane.
const WORKER: &str = "worker.1";

/// Arguments of `forebay bench processors`.
#[derive(Args)]
#[command(after_help = "Example: forebay bench processors --proposal aes128gcm16 --save costs.json")]
pub struct ProcessorsArgs {
    /// Cipher suites, in swanctl notation.
    #[arg(long, value_delimiter = ',', default_value = "aes128gcm16,aes128-sha256,chacha20poly1305")]
    proposal: Vec<String>,
    /// Write the costs to a file that `--costs` of seal, open and demo reads.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write a scenario for `forebay simulate` with the costs of core, worker and card measured for the first
    /// proposal.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Print the figures as JSON.
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
    let mut costs = Costs::default();
    for mut processor in processors(clock)? {
        for &suite in &suites {
            let Some(calibration) = calibrate(&mut *processor, suite, clock) else {
                eprintln!("{} does not support {suite}", processor.name());
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
    if let (Some(path), Some(&suite)) = (&args.scenario, suites.first()) {
        std::fs::write(path, scenario(&costs, suite))
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

/// Every kind of processor this build has: cores in place, a core behind a lane, one device of each kind.
fn processors(clock: Clock) -> miette::Result<Vec<Box<dyn Processor>>> {
    let mut all: Vec<Box<dyn Processor>> = Vec::new();
    match forebay_crypto_ipsec_mb::new() {
        Ok(processor) => all.push(processor),
        Err(why) => eprintln!("no ipsec-mb: {why}"),
    }
    all.push(Box::new(AwsLc::new()));
    let lane = Lane::new(Backend::Auto.open()?, WORKER, clock).into_diagnostic()?;
    all.push(Box::new(lane));
    let buses = [Bus::new(BusConfig::pci_66())];
    for kind in kinds() {
        let surroundings = Surroundings { name: kind.word, library: Box::new(AwsLc::new()), buses: &buses };
        all.push((kind.sample)().open(surroundings)?);
    }
    Ok(all)
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

/// A scenario whose processors take as long as those measured: the first core that works in place, and whatever
/// jobs are handed over to.
fn scenario(costs: &Costs, suite: Suite) -> String {
    let word = suite.to_string();
    let mut text = format!(
        "# The processors of this machine with {word}, as `forebay bench processors` measured them.\n\
         model = \"host\"\nseed = 1\n\n[traffic]\nsource = \"paper\"\npackets = 100_000\nrate = \"1 Gbit/s\"\n\n\
         [scheduler]\npolicy = \"finish-time\"\nburst = 32\n"
    );
    let measured = costs.processors.iter().filter(|one| one.proposal == word);
    let mut has_core = false;
    for one in measured {
        let is_card = Kind::of(&one.name).is_some();
        let in_place = !is_card && one.name != WORKER;
        if in_place && has_core {
            continue;
        }
        has_core |= in_place;
        let kind = if is_card { "accelerator" } else { "cpu" };
        let _ = write!(text, "\n[[processor]]\nname = \"{}\"\nkind = \"{kind}\"\n", one.name);
        let cost = one.cost();
        for (key, time) in [
            ("init", cost.init),
            ("block", cost.block),
            ("packet", cost.packet),
            ("submit", cost.submit),
            ("wake", cost.wake),
        ] {
            let _ = writeln!(text, "{key} = \"{} ps\"", time.0);
        }
        let _ = writeln!(text, "lanes = {}", cost.lanes);
    }
    text
}
