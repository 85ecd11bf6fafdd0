//! The processors of the gateway's file.

use forebay_config::{self as config, Config, ProcessorKind};
use forebay_crypto::{Processor, Suite};
use forebay_crypto_card::{Bus, Card};
use forebay_engine::{Clock, Lane, ProcessorSetup};
use forebay_gateway::service;
use forebay_scheduler::Kind;
use miette::{IntoDiagnostic, miette};

use crate::backend::Backend;
use crate::processors::{self, Costs};

/// What the file names, with the costs that were saved, or are measured now: for each of the cores that move packets,
/// as they are dealt out to them.
pub fn set_up(config: &Config, clock: Clock) -> miette::Result<Vec<Vec<ProcessorSetup>>> {
    let costs = config.scheduler.costs.as_deref().map(Costs::load).transpose()?.unwrap_or_default();
    let suite = calibration_suite(config)?;
    let buses: Vec<Bus> = config.buses.iter().map(|bus| Bus::new(bus.config)).collect();
    let set_up = |place: usize| {
        let one = config.processors.get(place).ok_or_else(|| miette!("no processor {place}"))?;
        let library = Backend::from(one.backend).open()?;
        let (processor, kind): (Box<dyn Processor>, Kind) = match &one.kind {
            ProcessorKind::Core { .. } if place == 0 => (library, Kind::Cpu),
            ProcessorKind::Core { cpus } => {
                let cpu = cpus.first().copied();
                let lane = Lane::on_thread(library, one.name.clone(), clock, move || service::pin(cpu));
                (Box::new(lane.into_diagnostic()?), Kind::Cpu)
            }
            ProcessorKind::Card { card, bus } => {
                let bus = buses.get(*bus).ok_or_else(|| miette!("{}: no such bus", one.name))?;
                (Box::new(Card::new(card.clone(), bus, library)), Kind::Accelerator)
            }
        };
        let mut setup = processors::set_up(processor, kind, suite, &costs, clock)?;
        (setup.alpha, setup.beta) = (one.alpha, one.beta);
        setup.queue = setup.queue.min(one.queue);
        Ok(setup)
    };
    let workers = service::workers(config)?;
    let dealt = config::deal(config.processors.len(), workers);
    dealt.into_iter().map(|places| places.into_iter().map(set_up).collect()).collect()
}

/// The suite by which processors are measured at first: the first SA's, or one that all have.
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
