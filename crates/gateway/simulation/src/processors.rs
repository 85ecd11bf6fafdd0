//! The processors of a simulated gateway: the running core, a lane without a thread, an emulated card. The last two
//! misbehave on command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_config::{Config, ProcessorKind};
use forebay_crypto::fault::{FaultControl, Faulty};
use forebay_crypto::{Job, Packet, Processor, SessionId, forward_processor};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::Bus;
use forebay_engine::{Lane, LaneSteps, ProcessorSetup};
use forebay_processors::Surroundings;
use forebay_scheduler::{Cost, Kind};
use forebay_time::{Duration, Time};

use crate::clock::HostClock;

/// What a submission and each of its jobs cost the running core and the lane.
const SUBMISSION: Duration = Duration::from_nanos(600);
const JOB: Duration = Duration::from_nanos(900);
/// From a submission to a lane until it begins.
const WAKE: Duration = Duration::from_micros(15);

/// The processors of `config`, whose faults the controls switch on: of all but the first, in their order.
pub fn build(config: &Config, clock: &HostClock, seed: u64) -> (Vec<ProcessorSetup>, Vec<FaultControl>) {
    let mut controls = Vec::new();
    let buses: Vec<Bus> = config.buses.iter().map(|bus| Bus::new(bus.config)).collect();
    let setups = config.processors.iter().enumerate().map(|(place, one)| {
        let mut faulty = || {
            let control = FaultControl::new(seed ^ place as u64);
            controls.push(control.clone());
            Faulty::new(AwsLc::new(), control)
        };
        let (processor, kind): (Box<dyn Processor>, Kind) = match &one.kind {
            ProcessorKind::Core { .. } if place == 0 => {
                (Box::new(Paced { inner: AwsLc::new(), cell: clock.cell() }), Kind::Cpu)
            }
            ProcessorKind::Core { .. } => {
                let (lane, steps) = Lane::stepped(Box::new(faulty()), one.name.clone(), clock.clock());
                (Box::new(SteppedLane { lane, steps, due: None }), Kind::Cpu)
            }
            ProcessorKind::Device(device) => {
                let library = Box::new(faulty());
                let opened = device.open(Surroundings { name: &one.name, library, buses: &buses });
                (opened.expect("an emulated card"), Kind::Accelerator)
            }
        };
        let cost =
            Cost { init: Duration::from_micros(1), packet: JOB, submit: SUBMISSION, ..Cost::default() };
        ProcessorSetup { processor, kind, cost, alpha: one.alpha, beta: one.beta, queue: one.queue }
    });
    (setups.collect(), controls)
}

/// The running core: its work takes time on the host's clock.
struct Paced {
    inner: AwsLc,
    cell: &'static AtomicU64,
}

impl Processor for Paced {
    forward_processor!(inner: name, capabilities, open_session, close_session, poll);

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        self.cell.fetch_add(SUBMISSION.0 + JOB.times(jobs.len() as u64).0, Ordering::Relaxed);
        self.inner.submit(now, jobs);
    }
}

/// A lane whose other side runs a little after it was handed something.
struct SteppedLane {
    lane: Lane,
    steps: LaneSteps,
    /// When the other side runs next.
    due: Option<Time>,
}

impl Processor for SteppedLane {
    forward_processor!(lane: name, capabilities, open_session);

    fn close_session(&mut self, id: SessionId) {
        self.lane.close_session(id);
        while self.steps.step() {}
    }

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        self.due = self.due.or(Some(now + WAKE));
        self.lane.submit(now, jobs);
    }

    fn submit_copies(&mut self, now: Time, sources: &Arc<Vec<Packet>>, jobs: &mut Vec<Job>) {
        self.due = self.due.or(Some(now + WAKE));
        self.lane.submit_copies(now, sources, jobs);
    }

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        if self.due.is_some_and(|due| due <= now) {
            while self.steps.step() {}
            // What its processor keeps back is asked for again.
            self.due = Some(now + WAKE);
        }
        self.lane.poll(now, done);
    }
}
