//! The processors of the gateway's file.

use forebay_config::{Config, ProcessorKind, deal};
use forebay_crypto::{Processor, Suite};
use forebay_crypto_card::Bus;
use forebay_engine::{Clock, Lane, ProcessorSetup};
use forebay_processors::{Costs, Surroundings};
use forebay_scheduler::Kind;
use miette::{IntoDiagnostic, miette};

use super::pin::pin;
use super::start::workers;

/// What the file names, with the costs that were saved, or are measured now: for each of the cores that move packets,
/// as they are dealt out to them.
///
/// # Errors
/// If a library or a device is lacking, one does not do the first SA's suite, or the costs cannot be read.
pub fn open_processors(config: &Config, clock: Clock) -> miette::Result<Vec<Vec<ProcessorSetup>>> {
    let costs = config.scheduler.costs.as_deref().map(Costs::load).transpose()?.unwrap_or_default();
    let suite = calibration_suite(config)?;
    let buses: Vec<Bus> = config.buses.iter().map(|bus| Bus::new(bus.config)).collect();
    let set_up = |place: usize| {
        let one = config.processors.get(place).ok_or_else(|| miette!("no processor {place}"))?;
        let library = one.backend.open()?;
        let (processor, kind): (Box<dyn Processor>, Kind) = match &one.kind {
            ProcessorKind::Core { .. } if place == 0 => (library, Kind::Cpu),
            ProcessorKind::Core { cpus } => {
                let cpu = cpus.first().copied();
                let lane = Lane::on_thread(library, one.name.clone(), clock, move || pin(cpu));
                (Box::new(lane.into_diagnostic()?), Kind::Cpu)
            }
            ProcessorKind::Device(device) => {
                let surroundings = Surroundings { name: &one.name, library, buses: &buses };
                (device.open(surroundings)?, Kind::Accelerator)
            }
        };
        let mut setup = forebay_processors::set_up(processor, kind, suite, &costs, clock)?;
        (setup.alpha, setup.beta) = (one.alpha, one.beta);
        setup.queue = setup.queue.min(one.queue);
        Ok(setup)
    };
    let dealt = deal(config.processors.len(), workers(config)?);
    dealt.into_iter().map(|places| places.into_iter().map(set_up).collect()).collect()
}

/// The suite by which processors are measured at first: the first SA's, or one that all have.
fn calibration_suite(config: &Config) -> miette::Result<Suite> {
    match config.sas.entries.first() {
        Some(entry) => Ok(entry.config.suite),
        None => "aes128gcm16".parse().map_err(|_| miette!("no suite")),
    }
}
