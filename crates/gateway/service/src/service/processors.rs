//! The processors of the gateway's file.

use forebay_config::{Config, Processor as Described, ProcessorKind, deal};
use forebay_crypto::{Processor, Suite};
use forebay_crypto_card::Bus;
use forebay_engine::{Clock, ProcessorSetup};
use forebay_processors::{Absent, Costs, Surroundings};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;
use miette::{Report, miette};

use super::start::workers;

/// What the file names, with the costs that were saved, or are measured now: for each of the cores that move packets,
/// as they are dealt out to them. The place of a device that cannot be opened, or does not respond, is taken by one that
/// does nothing, and the reason is logged: traffic goes on without it.
///
/// # Errors
/// If a library is lacking, a core does not do the first SA's suite, or the costs cannot be read.
pub fn open_processors(config: &Config, clock: Clock) -> miette::Result<Vec<Vec<ProcessorSetup>>> {
    let costs = config.scheduler.costs.as_deref().map(Costs::load).transpose()?.unwrap_or_default();
    let suite = calibration_suite(config)?;
    let buses: Vec<Bus> = config.buses.iter().map(|bus| Bus::new(bus.config)).collect();
    let mut remarks = Remarks::default();
    let mut set_up = |place: usize| {
        let one = config.processors.get(place).ok_or_else(|| miette!("no processor {place}"))?;
        let library = one.backend.open()?;
        let (processor, kind): (Box<dyn Processor>, Kind) = match &one.kind {
            ProcessorKind::Core { .. } => (library, Kind::Cpu),
            ProcessorKind::Device(device) => {
                remarks.warn(&one.name, device.slowed());
                let surroundings = Surroundings { name: &one.name, library, buses: &buses };
                let set_up = device.open(surroundings).and_then(|processor| {
                    // Measured by a suite that it has; those of the others are predicted from that, and corrected.
                    let suites = &processor.capabilities().suites;
                    let mut of_sas = config.sas.entries.iter().map(|sa| sa.config.suite).peekable();
                    if of_sas.peek().is_some() && !of_sas.any(|suite| suites.contains(&suite)) {
                        tracing::warn!(
                            processor = one.name,
                            "processor supports the proposal of no SA; it gets no jobs: remove its [[processor]], or give SAs a proposal that it supports (`forebay bench processors`)"
                        );
                    }
                    let suite = if suites.contains(&suite) { Some(suite) } else { suites.first().copied() };
                    let suite = suite.ok_or_else(|| miette!("{} supports no suite", one.name))?;
                    forebay_processors::set_up(processor, Kind::Accelerator, suite, &costs, clock)
                });
                return Ok(with_keys(set_up.unwrap_or_else(|why| absent(&one.name, &why)), one));
            }
        };
        let setup = forebay_processors::set_up(processor, kind, suite, &costs, clock)?;
        Ok(with_keys(setup, one))
    };
    let dealt = deal(config, workers(config)?);
    dealt.into_iter().map(|places| places.into_iter().map(&mut set_up).collect()).collect()
}

/// With what the file says of it.
fn with_keys(mut setup: ProcessorSetup, one: &Described) -> ProcessorSetup {
    (setup.alpha, setup.beta) = (one.alpha, one.beta);
    setup.queue = setup.queue.min(one.queue);
    setup
}

/// In the place of a device that cannot be opened.
fn absent(name: &str, why: &Report) -> ProcessorSetup {
    let hint = why.help().map(|help| help.to_string()).unwrap_or_default();
    tracing::error!(processor = name, error = %why, hint, "processor unavailable; traffic continues without it");
    let processor = Box::new(Absent::new(name));
    let (cost, beta) = (Cost::default(), Duration::ZERO);
    ProcessorSetup { processor, kind: Kind::Accelerator, cost, alpha: 1.0, beta, queue: 1 }
}

/// What slows devices down here, each remark logged once.
#[derive(Default)]
struct Remarks(Vec<String>);

impl Remarks {
    fn warn(&mut self, processor: &str, remark: Option<Report>) {
        let Some(remark) = remark else { return };
        let text = remark.to_string();
        if !self.0.contains(&text) {
            let hint = remark.help().map(|help| help.to_string()).unwrap_or_default();
            tracing::warn!(processor, reason = text, hint, "processor slowed down");
            self.0.push(text);
        }
    }
}

/// The suite by which processors are measured at first: the first SA's, or one that all have.
fn calibration_suite(config: &Config) -> miette::Result<Suite> {
    match config.sas.entries.first() {
        Some(entry) => Ok(entry.config.suite),
        None => "aes128gcm16".parse().map_err(|_| miette!("no suite")),
    }
}
