//! `forebay gateway`: the running gateway.

use std::path::PathBuf;
use std::time::Duration as StdDuration;

use clap::Args;
use forebay_crypto::{Processor, Suite};
use forebay_crypto_card::{Bus, Card};
use forebay_engine::{Clock, Lane, ProcessorSetup};
use forebay_gateway::config::{self, Config, ProcessorKind};
use forebay_gateway::service::Service;
use forebay_scheduler::Kind;
use miette::{IntoDiagnostic, miette};

use crate::Answer;
use crate::backend::Backend;
use crate::pass::{seed, unix_ns};
use crate::processors::{self, Costs};
use crate::progress;

/// Between two looks at whether to stop.
const LOOK_EVERY: StdDuration = StdDuration::from_millis(50);

/// Arguments of `forebay gateway`.
#[derive(Args)]
pub struct GatewayArgs {
    /// The gateway's file (TOML): see docs/gateway.md.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs the command: until SIGINT or SIGTERM.
pub fn run(args: &GatewayArgs) -> miette::Result<Answer> {
    let config = config::load(&args.config)?;
    for warning in &config.warnings {
        eprintln!("{warning}");
    }
    let clock = Clock::start();
    let processors = set_up(&config, clock)?;
    let service = Service::start(config, processors, clock, seed(), unix_ns()?)?;
    while service.is_running() && !progress::is_interrupted() {
        #[allow(clippy::disallowed_methods)] // the command line may wait
        std::thread::sleep(LOOK_EVERY);
    }
    service.stop().into_diagnostic()?;
    Ok(Answer::Yes)
}

/// The processors of the file with the costs that were saved for them, or are measured now.
fn set_up(config: &Config, clock: Clock) -> miette::Result<Vec<ProcessorSetup>> {
    let costs = config.scheduler.costs.as_deref().map(Costs::load).transpose()?.unwrap_or_default();
    let suite = calibration_suite(config)?;
    let buses: Vec<Bus> = config.buses.iter().map(|bus| Bus::new(bus.config)).collect();
    let mut setups = Vec::with_capacity(config.processors.len());
    for (place, one) in config.processors.iter().enumerate() {
        let library = Backend::from(one.backend).open()?;
        let (processor, kind): (Box<dyn Processor>, Kind) = match &one.kind {
            ProcessorKind::Core { .. } if place == 0 => (library, Kind::Cpu),
            ProcessorKind::Core { .. } => {
                (Box::new(Lane::new(library, one.name.clone(), clock).into_diagnostic()?), Kind::Cpu)
            }
            ProcessorKind::Card { card, bus } => {
                let bus = buses.get(*bus).ok_or_else(|| miette!("{}: no such bus", one.name))?;
                let card = Box::new(Card::new(card.clone(), bus, library));
                (card, Kind::Accelerator)
            }
        };
        let mut setup = processors::set_up(processor, kind, suite, &costs, clock)?;
        (setup.alpha, setup.beta) = (one.alpha, one.beta);
        setup.queue = setup.queue.min(one.queue);
        setups.push(setup);
    }
    Ok(setups)
}

/// The suite by which processors are measured: the first SA's, or one that all have.
fn calibration_suite(config: &Config) -> miette::Result<Suite> {
    match config.sas.entries.first() {
        Some(entry) => Ok(entry.config.suite),
        None => "aes128gcm16".parse().map_err(|_| miette!("no suite")),
    }
}

impl From<config::Backend> for Backend {
    fn from(backend: config::Backend) -> Backend {
        match backend {
            config::Backend::Auto => Backend::Auto,
            config::Backend::IpsecMb => Backend::IpsecMb,
            config::Backend::AwsLc => Backend::AwsLc,
        }
    }
}

