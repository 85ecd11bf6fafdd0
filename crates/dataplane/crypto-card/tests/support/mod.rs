//! What the tests share: an inner processor that does next to nothing, packets, and a bench of cards.

#![allow(dead_code, reason = "each test uses its part")]

use forebay_crypto::{
    Capabilities, Direction, Job, JobSpec, Packet, Processor, SaKeys, SessionError, SessionId, Span, Suite,
    Verdict,
};
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_time::{Duration, Time};

/// Flips every bit of a packet and calls that crypto. Gives at most `per_poll` jobs back per poll.
pub struct Xor {
    capabilities: Capabilities,
    finished: Vec<Job>,
    per_poll: usize,
}

impl Xor {
    pub fn new() -> Xor {
        Xor::slow(usize::MAX)
    }

    pub fn slow(per_poll: usize) -> Xor {
        let capabilities = Capabilities { suites: Suite::all().collect(), best_burst: 1, queue: 64 };
        Xor { capabilities, finished: Vec::new(), per_poll }
    }
}

impl Processor for Xor {
    fn name(&self) -> &str {
        "xor"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open_session(&mut self, _: SessionId, _: &SaKeys, _: Direction) -> Result<(), SessionError> {
        Ok(())
    }

    fn close_session(&mut self, _: SessionId) {}

    fn submit(&mut self, _: Time, jobs: &mut Vec<Job>) {
        let room = self.capabilities.queue - self.finished.len();
        for mut job in jobs.drain(..room.min(jobs.len())) {
            job.packet.bytes_mut().iter_mut().for_each(|byte| *byte ^= 0xff);
            job.verdict = Verdict::Done;
            self.finished.push(job);
        }
    }

    fn poll(&mut self, _: Time, done: &mut Vec<Job>) {
        done.extend(self.finished.drain(..self.per_poll.min(self.finished.len())));
    }
}

/// A job for `Xor` on `len` zero bytes.
pub fn job(len: usize, token: u64) -> Job {
    let mut packet = Packet::with_capacity(len);
    assert!(packet.fill(&vec![0; len]));
    let none = Span::default();
    let spec = JobSpec { session: SessionId(0), cipher: none, iv: 0, auth: none, icv: 0, seq_hi: None };
    Job::new(packet, spec, token)
}

/// A bus where 4 bytes take 10 ps and so does the address phase: figures to do by hand.
pub fn toy_bus() -> BusConfig {
    let clock_hz = 100_000_000_000.try_into().unwrap();
    BusConfig { clock_hz, width: 4.try_into().unwrap(), address_cycles: 1 }
}

/// A card for which t_init is 50 ps and a block takes 100 ps.
pub fn toy_card() -> CardConfig {
    CardConfig { init: Duration(50), block: Duration(100), ..CardConfig::paper_230_mbit() }
}

/// Some cards on one bus, and what they have delivered: by card, (token, when) in order.
pub struct Bench {
    pub cards: Vec<Card>,
    pub delivered: Vec<Vec<(u64, u64)>>,
}

impl Bench {
    pub fn new(bus: BusConfig, configs: &[CardConfig]) -> Bench {
        let bus = Bus::new(bus);
        let card = |config: &CardConfig| Card::new(config.clone(), &bus, Box::new(Xor::new()));
        Bench { cards: configs.iter().map(card).collect(), delivered: vec![Vec::new(); configs.len()] }
    }

    /// Submits packets of these lengths as one submission, with tokens from `token` on; whether it was taken.
    pub fn submit(&mut self, at: u64, card: usize, lens: &[usize], token: u64) -> bool {
        let mut jobs = lens.iter().zip(token..).map(|(&len, token)| job(len, token)).collect();
        self.cards[card].submit(Time(at), &mut jobs);
        assert!(jobs.is_empty() || jobs.len() == lens.len(), "a submission is taken whole or not at all");
        jobs.is_empty()
    }

    /// Collects from one card at `now`.
    pub fn collect(&mut self, now: u64, card: usize) {
        let list = &mut self.delivered[card];
        self.cards[card].collect(Time(now), |at, job| list.push((job.token, at.0)));
    }

    /// Collects from all cards at the end of time; what each has delivered.
    pub fn finish(mut self) -> Vec<Vec<(u64, u64)>> {
        (0..self.cards.len()).for_each(|card| self.collect(u64::MAX, card));
        self.delivered
    }
}
