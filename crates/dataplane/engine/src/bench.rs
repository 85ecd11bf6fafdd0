//! A processor by itself, given batches of made-up packets and timed.

use std::collections::BTreeMap;

use forebay_crypto::{
    Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionId, Span, Suite, Verdict,
};
use forebay_time::Duration;

use crate::clock::Clock;

/// Longest wait for an answer: a processor that takes this long for one batch is not usable. On a busy machine the
/// thread of a device may wait for a CPU for tenths of a second.
const ANSWER_MAX: Duration = Duration::from_millis(1_000);
/// The session used for measuring: out of the way of real ones, opened and closed here.
const SESSION: SessionId = SessionId(60_000);

/// A processor on the bench, with a session of one suite.
pub struct Bench<'a> {
    processor: &'a mut dyn Processor,
    suite: Suite,
    clock: Clock,
    /// Jobs by their size, to be used again, and the size of those done last.
    spare: BTreeMap<u32, Vec<Job>>,
    size: u32,
    jobs: Vec<Job>,
    done: Vec<Job>,
}

/// How long a batch took.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// From the hand-over until all of it was back.
    pub elapsed: Duration,
    /// What the processor says that it worked; zero if it does not say.
    pub said: Duration,
}

impl<'a> Bench<'a> {
    /// Opens a session; `None` if the processor lacks the suite.
    pub fn open(processor: &'a mut dyn Processor, suite: Suite, clock: Clock) -> Option<Bench<'a>> {
        let filler = |n: usize| SecretBytes::new((0..n).map(|i| i as u8).collect());
        let key = filler(suite.cipher_key_len() + suite.salt_len());
        let keys = SaKeys::new(suite, &key, &filler(suite.integrity_key_len())).ok()?;
        processor.open_session(SESSION, &keys, Direction::Seal).ok()?;
        let (spare, jobs, done) = (BTreeMap::new(), Vec::new(), Vec::new());
        Some(Bench { processor, suite, clock, spare, size: 0, jobs, done })
    }

    /// Jobs that the processor's queue holds, one at least.
    pub(crate) fn holds(&self) -> usize {
        self.processor.capabilities().queue.max(1)
    }

    /// Has one batch of `batch` packets with `size` bytes to encipher done; `None` if the processor does not do it.
    pub fn batch(&mut self, size: u32, batch: usize) -> Option<Times> {
        self.load(size, batch, 0);
        let start = self.clock.now();
        self.processor.submit(start, &mut self.jobs);
        while self.done.len() < batch {
            self.processor.poll(self.clock.now(), &mut self.done);
            if self.clock.now().since(start) > ANSWER_MAX || !self.jobs.is_empty() {
                return None;
            }
        }
        let elapsed = self.clock.now().since(start);
        let is_done = self.done.iter().all(|job| job.verdict == Verdict::Done);
        let said = self.done.iter().fold(Duration::ZERO, |sum, job| sum + job.took);
        is_done.then_some(Times { elapsed, said })
    }

    /// Hands over a batch at each of the times `due`, counted from now and in order, whether the batches before are done or
    /// not; how long each took from the time when it was due until all of it was back. `None` if the processor does not
    /// do them.
    ///
    /// Where this thread does nothing for `stall`, other programs had its CPU: what would have been due meanwhile is due later, and
    /// the batches that were at work then are `None`.
    pub fn offered(
        &mut self,
        size: u32,
        batch: usize,
        due: &[Duration],
        stall: Duration,
    ) -> Option<Vec<Option<Duration>>> {
        let (mut next, mut back, mut times) = (0, vec![0; due.len()], vec![None; due.len()]);
        let (mut left, mut spoilt) = (due.len(), 0..0);
        let mut start = self.clock.now();
        let (mut moved, mut before) = (start, start);
        self.jobs.clear();
        while left > 0 {
            let now = self.clock.now();
            if now.since(before) > stall {
                start = start + now.since(before);
                spoilt = 0..next;
            }
            before = now;
            if self.jobs.is_empty() && due.get(next).is_some_and(|&due| start + due <= now) {
                self.load(size, batch, next as u64);
                next += 1;
                moved = now;
            }
            if !self.jobs.is_empty() {
                self.processor.submit(now, &mut self.jobs);
            }
            self.processor.poll(self.clock.now(), &mut self.done);
            let now = self.clock.now();
            for job in &self.done {
                if job.verdict != Verdict::Done {
                    return None;
                }
                let of = job.token as usize;
                back[of] += 1;
                moved = now;
                if back[of] == batch {
                    left -= 1;
                    times[of] = (!spoilt.contains(&of)).then(|| now.since(start + due[of]));
                }
            }
            self.reuse();
            if next > due.len() - left && now.since(moved) > ANSWER_MAX {
                return None;
            }
        }
        Some(times)
    }

    /// The packet of the batch that was done last.
    pub(crate) fn packet(&self) -> Option<&Packet> {
        Some(&self.done.first()?.packet)
    }

    /// Makes a batch ready.
    fn load(&mut self, size: u32, batch: usize, tag: u64) {
        self.jobs.clear();
        self.reuse();
        self.size = size;
        let spare = self.spare.entry(size).or_default();
        while spare.len() < batch {
            spare.push(esp_job(SESSION, self.suite, size));
        }
        self.jobs.extend(spare.drain(spare.len() - batch..).map(|job| Job { token: tag, ..job }));
    }

    /// Keeps the packets of what is done for the next batches of their size.
    fn reuse(&mut self) {
        let used = self.done.drain(..).map(|job| Job::new(job.packet, job.spec, 0));
        self.spare.entry(self.size).or_default().extend(used);
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        self.processor.close_session(SESSION);
    }
}

/// Bytes of an ESP packet without its outer IP header, with `text_len` bytes to encipher, rounded up to the cipher's block.
pub fn esp_len(suite: Suite, text_len: u32) -> u32 {
    8 + suite.iv_len() as u32 + text_len.next_multiple_of(suite.align() as u32) + suite.icv_len() as u32
}

/// A job as an SA of `suite` would leave it, on a made-up ESP packet with `text_len` bytes to
/// encipher, rounded up to the cipher's block.
pub fn esp_job(session: SessionId, suite: Suite, text_len: u32) -> Job {
    let (iv_len, icv_len) = (suite.iv_len() as u32, suite.icv_len() as u32);
    let size = esp_len(suite, text_len);
    let text_len = size - 8 - iv_len - icv_len;
    let mut packet = Packet::with_capacity(size as usize);
    packet.fill(&vec![0x5a; size as usize]);
    let at = packet.offset() as u32;
    let iv = at + 8;
    let text = iv + iv_len;
    let icv = text + text_len;
    let from = if suite.is_chained() { iv } else { text };
    let cipher = Span { start: from, len: icv - from };
    let auth = Span { start: at, len: if suite.covers_text() { icv - at } else { 8 } };
    Job::new(packet, JobSpec { session, cipher, iv, auth, icv, seq_hi: None }, 0)
}
