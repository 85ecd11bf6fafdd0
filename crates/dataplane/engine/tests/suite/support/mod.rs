//! What the tests of the whole path share: every backend there is, with a clock, and a gateway of
//! one SA database on it.

use std::net::IpAddr;

use forebay_crypto::{Direction, Job, JobSpec, Packet, Processor, SaKeys, SessionId, Suite, Verdict};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_ipsec::{DropReason, Ipsec, IvRange, Mode, Prepared, SaConfig, Spi};
use forebay_time::{Duration, Time};

/// How often in a row a processor is polled without anything finished, before it counts as stuck.
const PATIENCE: usize = 1_000_000;

/// A processor under test, and how to make it.
#[derive(Clone, Copy)]
pub struct Backend {
    pub name: &'static str,
    pub make: fn() -> Box<dyn Processor>,
}

/// Every processor that there is on this machine, the portable one first.
pub fn backends() -> Vec<Backend> {
    let mut all = vec![Backend { name: "aws-lc", make: || Box::new(AwsLc::new()) }];
    match forebay_crypto_ipsec_mb::new() {
        Ok(_) => all.push(Backend {
            name: "ipsec-mb",
            make: || forebay_crypto_ipsec_mb::new().expect("it was there a moment ago"),
        }),
        Err(reason) => eprintln!("not run on ipsec-mb: {reason}"),
    }
    all.push(Backend { name: "card", make: card });
    all
}

/// The emulated card with AWS-LC inside: the same bytes, finished later.
fn card() -> Box<dyn Processor> {
    Box::new(Card::new(CardConfig::paper_230_mbit(), &Bus::new(BusConfig::pci_66()), Box::new(AwsLc::new())))
}

/// A processor and its time, which moves when it is waited for.
pub struct Rig {
    /// The backend's.
    name: &'static str,
    processor: Box<dyn Processor>,
    now: Time,
}

impl Rig {
    pub fn new(backend: Backend) -> Rig {
        Rig { name: backend.name, processor: (backend.make)(), now: Time::ZERO }
    }

    pub fn open(&mut self, id: SessionId, keys: &SaKeys, direction: Direction) {
        self.processor.open_session(id, keys, direction).expect("a session of a suite that it has");
    }

    /// Does all `jobs`, in whatever order they come back; each is back when this returns, once.
    pub fn run(&mut self, mut jobs: Vec<Job>) -> Vec<Job> {
        let (given, mut done, mut idle) = (jobs.len(), Vec::new(), 0);
        for (token, job) in jobs.iter_mut().enumerate() {
            (job.token, job.verdict) = (token as u64, Verdict::Pending);
        }
        while done.len() < given {
            let before = (jobs.len(), done.len());
            self.processor.submit(self.now, &mut jobs);
            self.processor.poll(self.now, &mut done);
            idle = if before == (jobs.len(), done.len()) { idle + 1 } else { 0 };
            assert!(idle < PATIENCE, "{} is stuck", self.name);
            if idle > 0 {
                let later = self.now + Duration::from_micros(1);
                self.now = self.processor.next_due().map_or(later, |due| due.max(self.now + Duration(1)));
            }
        }
        done.sort_by_key(|job| job.token);
        assert!(done.iter().map(|job| job.token).eq(0..given as u64), "a job was lost or came twice");
        done
    }
}

/// Security associations and the one processor that does their jobs.
pub struct Gateway {
    pub sad: Ipsec,
    pub rig: Rig,
}

impl Gateway {
    pub fn new(backend: Backend) -> Gateway {
        Gateway { sad: Ipsec::default(), rig: Rig::new(backend) }
    }

    pub fn add_inbound(&mut self, config: SaConfig, keys: &SaKeys) -> SessionId {
        let session = self.sad.add_inbound(config).expect("settings without fault");
        self.rig.open(session, keys, Direction::Open);
        session
    }

    pub fn add_outbound(&mut self, config: SaConfig, keys: &SaKeys, iv: IvRange) -> SessionId {
        let session = self.sad.add_outbound(config, iv).expect("settings without fault");
        self.rig.open(session, keys, Direction::Seal);
        session
    }

    /// Takes one packet all the way.
    pub fn pass(&mut self, direction: Direction, bytes: &[u8]) -> Result<Vec<u8>, DropReason> {
        self.pass_all(direction, &[bytes]).remove(0)
    }

    /// Takes a burst of packets all the way, and says of each what became of it.
    pub fn pass_all(
        &mut self,
        direction: Direction,
        packets: &[impl AsRef<[u8]>],
    ) -> Vec<Result<Vec<u8>, DropReason>> {
        let mut jobs = Vec::new();
        let prepared: Vec<Result<(), DropReason>> = packets
            .iter()
            .map(|bytes| {
                let mut packet = Packet::with_capacity(bytes.as_ref().len());
                assert!(packet.fill(bytes.as_ref()));
                let mut spec = JobSpec::default();
                let prepared = self.sad.prepare(direction, &mut packet, &mut spec)?;
                assert_eq!(prepared, Prepared::Job, "there are no policies");
                jobs.push(Job::new(packet, spec, 0));
                Ok(())
            })
            .collect();
        let mut done = self.rig.run(jobs).into_iter();
        prepared
            .into_iter()
            .map(|prepared| {
                prepared?;
                let mut job = done.next().expect("as many jobs as given");
                let name = self.rig.name;
                assert_ne!(job.verdict, Verdict::Failed, "{name} refuses {:?}", job.spec);
                self.sad.complete(&mut job.packet, &job.spec, job.verdict)?;
                Ok(job.packet.bytes().to_vec())
            })
            .collect()
    }
}

/// Settings that name no selectors, with a replay window.
pub fn config(suite: Suite, mode: Mode, spi: u32, [local, remote]: [IpAddr; 2]) -> SaConfig {
    let spi = Spi::new(spi).expect("not zero");
    SaConfig { mode, ..SaConfig::new("under test", spi, suite, local, remote) }
}
