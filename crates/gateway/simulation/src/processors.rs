//! The processors of a simulated gateway: its cores, and an emulated card that misbehaves on command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_config::{Config, ProcessorKind, deal};
use forebay_crypto::fault::{FaultControl, Faulty};
use forebay_crypto::{Job, Processor, forward_processor};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::Bus;
use forebay_engine::ProcessorSetup;
use forebay_processors::Surroundings;
use forebay_scheduler::{Cost, Kind};
use forebay_time::{Duration, Time};

use crate::clock::HostClock;
use crate::interleaving::Interleaving;

/// What a submission and each of its jobs cost a core.
const SUBMISSION: Duration = Duration::from_nanos(600);
const JOB: Duration = Duration::from_nanos(900);

/// The processors of each core of `config`, and the controls that switch the faults of devices on, in their order.
pub fn build(
    config: &Config,
    clock: &HostClock,
    seed: u64,
    interleaving: &Arc<Interleaving>,
) -> (Vec<Vec<ProcessorSetup>>, Vec<FaultControl>) {
    let mut controls = Vec::new();
    let buses: Vec<Bus> = config.buses.iter().map(|bus| Bus::new(bus.config)).collect();
    let mut set_up = |place: usize| {
        let one = &config.processors[place];
        let (processor, kind): (Box<dyn Processor>, Kind) = match &one.kind {
            ProcessorKind::Core { .. } => {
                let (inner, cell, interleaving) = (AwsLc::new(), clock.cell(), interleaving.clone());
                (Box::new(Paced { inner, cell, interleaving }), Kind::Cpu)
            }
            ProcessorKind::Device(device) => {
                let control = FaultControl::new(seed ^ place as u64);
                controls.push(control.clone());
                let library = Box::new(Faulty::new(AwsLc::new(), control));
                let opened = device.open(Surroundings { name: &one.name, library, buses: &buses });
                (opened.expect("an emulated card"), Kind::Accelerator)
            }
        };
        let cost =
            Cost { init: Duration::from_micros(1), packet: JOB, submit: SUBMISSION, ..Cost::default() };
        ProcessorSetup { processor, kind, cost, alpha: one.alpha, beta: one.beta, queue: one.queue }
    };
    let cores = deal(config, config.workers(|_| 1));
    let setups = cores.into_iter().map(|places| places.into_iter().map(&mut set_up).collect()).collect();
    (setups, controls)
}

/// A core: its work takes time on the host's clock, and other cores work meanwhile.
struct Paced {
    inner: AwsLc,
    cell: &'static AtomicU64,
    interleaving: Arc<Interleaving>,
}

impl Processor for Paced {
    forward_processor!(inner: name, capabilities, open_session, close_session, poll);

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        self.cell.fetch_add(SUBMISSION.0 + JOB.times(jobs.len() as u64).0, Ordering::Relaxed);
        self.inner.submit(now, jobs);
        self.interleaving.others_go_on(self.cell);
    }
}
