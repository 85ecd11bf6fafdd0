//! The data path on one core: a burst goes through each step before the next.

use forebay_crypto::{Direction, Job, Processor, Verdict};
use forebay_ipsec::{DropCounts, DropReason, Ipsec, Next, Path, Stop};
use forebay_time::Time;

/// Packets that go through the steps together: enough to spread the cost of each step's code and of
/// the call to the processor, few enough for the packets to stay in the first-level cache.
pub const BURST: usize = 32;

/// The path of a core that has only itself: prepare, crypto in place, complete, with nothing to
/// choose, no lock, no allocation and no copy; not even the jobs move.
pub struct BurstPath {
    sad: Ipsec,
    processor: Box<dyn Processor>,
    drops: DropCounts,
    /// Holds the job of a packet on its way through more than one SA.
    nested: Vec<Job>,
    /// Packets of the burst at hand that policies let pass as they are.
    bypassed: Vec<Job>,
}

impl BurstPath {
    /// A path over `sad` with all crypto on `processor`, which must do its jobs inside submit and
    /// have the SAs' sessions open.
    pub fn new(sad: Ipsec, processor: Box<dyn Processor>) -> BurstPath {
        let (nested, bypassed) = (Vec::with_capacity(1), Vec::new());
        BurstPath { sad, processor, drops: DropCounts::default(), nested, bypassed }
    }

    /// Takes the packets of `burst`, whatever else their jobs say, through all steps; those that did
    /// not pass are counted and moved to `dropped`, the others stay in order. Those that a policy lets pass
    /// as they are come behind them, in order too, with the verdict pending.
    #[inline]
    pub fn run(&mut self, direction: Direction, burst: &mut Vec<Job>, dropped: &mut Vec<Job>) {
        let mut from = 0;
        while let Err((place, stop)) = self.sad.prepare_burst(direction, &mut burst[from..]) {
            from += place;
            let job = burst.remove(from);
            match stop {
                Stop::Bypass => self.bypassed.push(Job { verdict: Verdict::Pending, ..job }),
                Stop::Drop(reason) => {
                    self.drops.count(reason);
                    dropped.push(job);
                }
                // Prepare has nothing complete, and a core by itself no others.
                Stop::Again | Stop::Remote(_) => dropped.push(job),
            }
        }
        // A core does its jobs in place and has no use for the time.
        self.processor.submit(Time::ZERO, burst);
        self.processor.poll(Time::ZERO, burst);
        let mut from = 0;
        while let Err((place, stop)) = self.sad.complete_burst(&mut burst[from..]) {
            from += place;
            self.nested.push(burst.remove(from));
            let passed = match stop {
                Stop::Drop(reason) => Err(reason),
                Stop::Again => self.pass_again(),
                Stop::Bypass | Stop::Remote(_) => Ok(()),
            };
            if let Err(reason) = passed {
                self.drops.count(reason);
                dropped.append(&mut self.nested);
                continue;
            }
            for job in self.nested.drain(..) {
                burst.insert(from, job);
                from += 1;
            }
        }
        burst.append(&mut self.bypassed);
    }

    /// Takes the packet in `nested` through all SAs that are still before it. By itself: what came in a
    /// burst had the burst's gain in the first of them.
    #[cold]
    fn pass_again(&mut self) -> Result<(), DropReason> {
        let mut path = Path::default();
        loop {
            for job in &mut self.nested {
                self.sad.again(&mut path, &mut job.packet, &mut job.spec)?;
                job.verdict = Verdict::Pending;
            }
            self.processor.submit(Time::ZERO, &mut self.nested);
            self.processor.poll(Time::ZERO, &mut self.nested);
            let job = self.nested.first_mut().ok_or(DropReason::InError)?;
            if self.sad.complete_on(&path, &mut job.packet, &job.spec, job.verdict)? != Next::Again {
                return Ok(());
            }
        }
    }

    /// Packets dropped so far.
    pub fn drops(&self) -> &DropCounts {
        &self.drops
    }

    /// The SAs.
    pub fn sad(&self) -> &Ipsec {
        &self.sad
    }

    /// The SAs, to change.
    pub fn sad_mut(&mut self) -> &mut Ipsec {
        &mut self.sad
    }
}
