//! Two gateways and a processor, kept for all inputs of a thread: what an input adds to them it takes out again,
//! so that a run costs microseconds and what one input leaves behind is looked at by the next.

use std::cell::RefCell;

use forebay_crypto::{Direction, Job, JobSpec, Packet, SessionId, Suite, Verdict};
use forebay_ipsec::{DropCounts, DropReason, Ipsec, IvRange, Next, Path, Prepared, SaConfig};
use forebay_time::{Duration, Time};
use forebay_wire::Ip;

use crate::crypto::Crypto;

/// Gateways with SAs that last one input.
pub struct Bench {
    pub near: Gateway,
    pub far: Gateway,
    pub crypto: Crypto,
    now: Time,
}

/// A database.
pub struct Gateway {
    pub sad: Ipsec,
    sas: Vec<(SessionId, Suite)>,
}

/// What became of a packet.
pub struct Outcome {
    /// What was delivered, or why not.
    pub result: Result<Vec<u8>, DropReason>,
    /// Jobs that were done for it.
    pub jobs: usize,
    /// SAs that were through with it.
    pub through: usize,
    /// Whether it was to go through one more than that.
    pub again: bool,
    /// The SA whose inner packets can be taken now.
    pub unpack: Option<SessionId>,
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::new(Bench::new());
    static TALLY: RefCell<Tally> = RefCell::default();
}

/// Runs `body` on this thread's bench, and clears it up.
pub fn on_bench<R>(body: impl FnOnce(&mut Bench) -> R) -> R {
    BENCH.with_borrow_mut(|bench| {
        // Messages that are limited by the second may be sent again.
        bench.now = bench.now + Duration::from_millis(1_000);
        let Bench { near, far, now, .. } = bench;
        [&mut *near, far].into_iter().for_each(|gateway| gateway.sad.advance(*now));
        let result = body(bench);
        let Bench { near, far, .. } = bench;
        [near, far].into_iter().for_each(Gateway::clear);
        result
    })
}

/// Counts a drop, whose reason must be one of the list and of the packet's direction.
pub fn dropped(direction: Direction, reason: DropReason) {
    assert!(DropReason::ALL.contains(&reason));
    let other = if direction == Direction::Seal { "in_" } else { "out_" };
    assert!(!reason.name().starts_with(other), "{reason} in direction {direction:?}");
    TALLY.with_borrow_mut(|tally| tally.drops.count(reason));
}

/// What became of this thread's packets so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Packets that were sealed, opened, or let pass.
    pub delivered: u64,
    /// Packets that were not.
    pub drops: DropCounts,
}

/// What became of this thread's packets so far.
pub fn tally() -> Tally {
    TALLY.with_borrow(Tally::clone)
}

impl Bench {
    fn new() -> Bench {
        let gateway = || Gateway { sad: Ipsec::default(), sas: vec![] };
        Bench { near: gateway(), far: gateway(), crypto: Crypto::new(), now: Time::ZERO }
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn seal(&mut self, bytes: &[u8]) -> Outcome {
        self.near.pass(&mut self.crypto, Direction::Seal, bytes, false)
    }

    pub fn open(&mut self, bytes: &[u8]) -> Outcome {
        self.far.pass(&mut self.crypto, Direction::Open, bytes, false)
    }

    /// Opens a packet that has, in every SA that it goes through, the ICV that the keys' owner would have given it.
    pub fn open_forged(&mut self, bytes: &[u8]) -> Outcome {
        self.far.pass(&mut self.crypto, Direction::Open, bytes, true)
    }
}

impl Gateway {
    pub fn add(&mut self, direction: Direction, config: SaConfig, start: u64) -> SessionId {
        let suite = config.suite;
        let session = match direction {
            Direction::Seal => self.sad.add_outbound(config, IvRange::for_throwaway_key()),
            Direction::Open => self.sad.add_inbound(config),
        };
        let session = session.expect("settings without fault");
        if start > 0 {
            self.sad.continue_after(session, start);
        }
        self.sas.push((session, suite));
        session
    }

    fn clear(&mut self) {
        for (session, _) in self.sas.drain(..) {
            self.sad.remove(session).expect("it was there");
        }
        self.sad.events().for_each(drop);
        assert_eq!(self.sad.iter().count(), 0);
    }

    pub fn suite(&self, session: SessionId) -> Suite {
        self.sas.iter().find(|(other, _)| *other == session).expect("an SA that is there").1
    }

    /// Takes a packet through all its SAs.
    pub fn pass(&mut self, crypto: &mut Crypto, direction: Direction, bytes: &[u8], forge: bool) -> Outcome {
        let mut job = Job::new(buffer(bytes), JobSpec::default(), 0);
        let mut outcome = Outcome { result: Ok(vec![]), jobs: 0, through: 0, again: false, unpack: None };
        match self.sad.prepare(direction, &mut job.packet, &mut job.spec) {
            Ok(prepared) => assert_eq!(prepared, Prepared::Job, "there are no policies"),
            Err(reason) => {
                assert!(bytes.starts_with(job.packet.bytes()), "{reason} harms the packet");
                return outcome.end(direction, Err(reason));
            }
        }
        let mut path = Path::default();
        loop {
            let suite = self.suite(job.spec.session);
            if forge {
                job = crypto.forge(suite, job);
            }
            job = crypto.work(suite, direction, job);
            outcome.jobs += 1;
            let (spec, verdict) = (job.spec, job.verdict);
            assert!(!forge || verdict == Verdict::Done, "what one session seals another opens: {suite}");
            match self.sad.complete_on(&path, &mut job.packet, &spec, verdict) {
                Ok(next) => {
                    assert_eq!(verdict, Verdict::Done);
                    outcome.through += 1;
                    outcome.again = false;
                    match next {
                        Next::Deliver => return outcome.end(direction, Ok(sound(&job.packet))),
                        Next::Unpack => {
                            assert!(job.packet.is_empty());
                            outcome.unpack = Some(spec.session);
                            return outcome.end(direction, Ok(vec![]));
                        }
                        Next::Again => {}
                    }
                }
                Err(reason) => return outcome.end(direction, Err(reason)),
            }
            outcome.again = true;
            if let Err(reason) = self.sad.again(&mut path, &mut job.packet, &mut job.spec) {
                return outcome.end(direction, Err(reason));
            }
        }
    }

    /// All inner packets that an SA has by `now`.
    pub fn take_inner(&mut self, now: Time, session: SessionId) -> Vec<Vec<u8>> {
        let (mut packet, mut taken) = (Packet::with_capacity(INNER_MAX), vec![]);
        while let Some(result) = self.sad.take_inner(now, session, &mut packet) {
            match result {
                Ok(()) => taken.push(sound(&packet)),
                Err(reason) => dropped(Direction::Open, reason),
            }
        }
        taken
    }
}

/// Longest inner packet that is taken out of aggregated payloads.
const INNER_MAX: usize = 4_096;

impl Outcome {
    fn end(mut self, direction: Direction, result: Result<Vec<u8>, DropReason>) -> Outcome {
        if let Err(reason) = result {
            dropped(direction, reason);
        }
        self.result = result;
        self
    }
}

/// The bytes of a packet that is delivered, which is an IP packet from its first byte to its last.
pub fn sound(packet: &Packet) -> Vec<u8> {
    let bytes = packet.bytes();
    assert_eq!(Ip::parse(bytes).map(|ip| ip.bytes().len()), Ok(bytes.len()));
    TALLY.with_borrow_mut(|tally| tally.delivered += 1);
    bytes.to_vec()
}

/// A buffer with these bytes, and room for what SAs add.
pub fn buffer(bytes: &[u8]) -> Packet {
    let mut packet = Packet::with_capacity(bytes.len().max(256));
    assert!(packet.fill(bytes));
    packet
}
