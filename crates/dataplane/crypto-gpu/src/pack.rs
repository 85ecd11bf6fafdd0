//! Jobs as a device has them: packed into a slot's input, and taken out of its output.

use std::ops::Range;

use forebay_crypto::{Cipher, Direction, Integrity, Job, JobSpec, Layout, Suite, Verdict};

use crate::runtime::{Launch, Sizes};

/// Longest part of a packet that goes to a device, in bytes: jumbo frames, and what ESP adds.
pub const LONGEST: usize = 10_240;
/// Bytes of input that a slot has for each packet of its batch.
const USUAL: usize = 2_048;
const JOB_WORDS: usize = 16;
const CHUNK_WORDS: usize = 2;
const CHUNK: usize = 256;
const BLOCK: usize = 16;
const TAG: usize = 16;

const GCM: u32 = 1;
const CTR: u32 = 2;
const CBC: u32 = 3;
const CHACHA: u32 = 4;
const SEAL: u32 = 16;
const HMAC: u32 = 32;
const HIGH: u32 = 64;

/// The suites that the kernels do.
pub fn has(suite: Suite) -> bool {
    match suite.cipher() {
        Cipher::AesGcm(_) | Cipher::ChaCha20Poly1305 => true,
        Cipher::AesCbc(_) | Cipher::AesCtr(_) | Cipher::Null => {
            matches!(suite.integrity(), Integrity::HmacSha256 | Integrity::None)
        }
        _ => false,
    }
}

/// Sizes of buffers for batches of so many packets.
pub fn sizes(batch: usize, slots: usize, records: usize) -> Sizes {
    // The longest job there is fits into any slot, however small its batch.
    let data = (batch * USUAL).max(4 * LONGEST);
    let chunks = data / CHUNK + 2 * batch;
    let words = JOB_WORDS * batch + CHUNK_WORDS * chunks;
    Sizes { slots, input: data + 4 * words, output: data + TAG * batch, chunks, records }
}

/// One direction of an SA.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    pub suite: Suite,
    pub direction: Direction,
    /// Where its keys are.
    pub record: u32,
}

/// What is copied of a packet, and what of it changes: positions in the packet's buffer.
struct Plan {
    at: Layout,
    /// AAD with the number's high half in it (AEAD), or none.
    aad: usize,
    /// What is copied in one piece: the text (AEAD), or all from the first byte of text and cover to the last.
    region: Range<usize>,
    /// Bytes in front of the region, so that the text is aligned.
    shift: usize,
    kind: u32,
    chunks: usize,
    high: Option<[u8; 4]>,
}

impl Plan {
    /// A verdict if the device is not needed: there is nothing to do, or it is a bad job.
    fn new(session: &Session, job: &Job) -> Result<Plan, Verdict> {
        let (spec, size) = (&job.spec, job.packet.buffer().len());
        let Session { suite, direction, .. } = *session;
        let at = Layout::check(spec, suite, direction, size).ok_or(Verdict::Failed)?;
        let (mut kind, high) = (0, spec.seq_hi.map(u32::to_be_bytes));
        let is_covered = suite.integrity() == Integrity::HmacSha256;
        // Without encryption nothing but the ICV changes.
        let text = if suite.cipher() == Cipher::Null { 0..0 } else { at.cipher.clone() };
        let at = Layout { cipher: text.clone(), ..at };
        if text.is_empty() && suite.icv_len() == 0 {
            return Err(Verdict::Done);
        }
        let seals = direction == Direction::Seal;
        let (chunk, first) = match suite.cipher() {
            Cipher::AesGcm(_) => (GCM, BLOCK),
            Cipher::AesCtr(_) => (CTR, 0),
            Cipher::AesCbc(_) => (CBC, 0),
            Cipher::ChaCha20Poly1305 => (CHACHA, 0),
            _ => (0, 0),
        };
        kind |= chunk;
        kind |= if seals { SEAL } else { 0 };
        kind |= if is_covered { HMAC } else { 0 };
        kind |= if is_covered && high.is_some() { HIGH } else { 0 };
        let chunks = match kind & (SEAL | 15) {
            // A chain is sealed one block after the other.
            of if of == SEAL | CBC => usize::from(!text.is_empty()),
            _ => (first + text.len().next_multiple_of(BLOCK)).div_ceil(CHUNK),
        };
        let region = match (is_covered, text.is_empty()) {
            (true, false) => text.start.min(at.auth.start)..text.end.max(at.auth.end),
            (true, true) => at.auth.clone(),
            (false, _) => text.clone(),
        };
        let aad = if suite.is_aead() { at.auth.len() + high.map_or(0, |high| high.len()) } else { 0 };
        let shift = if text.is_empty() { 0 } else { (text.start - region.start).wrapping_neg() % BLOCK };
        let plan = Plan { at, aad, region, shift, kind, chunks, high };
        if plan.input() > LONGEST + 2 * BLOCK { Err(Verdict::Failed) } else { Ok(plan) }
    }

    /// Bytes of input.
    fn input(&self) -> usize {
        self.aad.next_multiple_of(BLOCK) + (self.shift + self.region.len()).next_multiple_of(BLOCK)
    }

    /// Bytes of output, less the tag.
    fn output(&self) -> usize {
        self.at.cipher.len().next_multiple_of(BLOCK)
    }

    /// Copies everything to `start`, a multiple of 16; where text and cover are.
    fn put(&self, job: &Job, input: &mut [u8], start: usize) -> (usize, usize) {
        let buffer = job.packet.buffer();
        let body = start + self.aad.next_multiple_of(BLOCK);
        if self.aad > 0 {
            let given = &buffer[self.at.auth.clone()];
            // Between the SPI and the low half (RFC 4106 5).
            let (front, behind) = given.split_at(if self.high.is_some() { 4 } else { given.len() });
            let mut at = start;
            for part in [front, self.high.as_ref().map_or(&[], |high| &high[..]), behind] {
                input[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
            input[at..body].fill(0);
        }
        let (from, end) = (body + self.shift, start + self.input());
        let to = from + self.region.len();
        input[from..to].copy_from_slice(&buffer[self.region.clone()]);
        input[to..end].fill(0);
        let place =
            |part: &Range<usize>| if part.is_empty() { from } else { from + part.start - self.region.start };
        let auth = if self.kind & HMAC != 0 { place(&self.at.auth) } else { start };
        (place(&self.at.cipher), auth)
    }
}

/// A job that is with a device.
struct Held {
    job: Job,
    /// Where its text is in the output.
    text: usize,
    cipher: Range<usize>,
    icv: Range<usize>,
    seals: bool,
}

/// The jobs of a slot.
#[derive(Default)]
pub struct Batch {
    held: Vec<Held>,
    jobs: Vec<u32>,
    chunks: Vec<u32>,
    input: usize,
    output: usize,
    kernels: u32,
}

/// What became of a job that was to be added.
pub enum Added {
    /// It is in the batch.
    Taken,
    /// It needs no device: it has its verdict.
    Settled(Job),
    /// There is no room for it.
    Full(Job),
}

impl Batch {
    /// How many jobs it has.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Adds a job, copied into the slot's input.
    pub fn add(&mut self, session: &Session, mut job: Job, input: &mut [u8], sizes: &Sizes) -> Added {
        let plan = match Plan::new(session, &job) {
            Ok(plan) => plan,
            Err(verdict) => {
                job.verdict = verdict;
                return Added::Settled(job);
            }
        };
        let words = self.jobs.len() + JOB_WORDS + self.chunks.len() + CHUNK_WORDS * plan.chunks;
        let fits = self.input + plan.input() + 4 * words <= sizes.input
            && self.output + plan.output() + TAG * (self.held.len() + 1) <= sizes.output
            && self.chunks.len() / CHUNK_WORDS + plan.chunks <= sizes.chunks;
        if !fits {
            return Added::Full(job);
        }
        let (text, auth) = plan.put(&job, input, self.input);
        self.describe(session, &job, &plan, text, auth);
        self.input += plan.input();
        let text = self.output;
        self.output += plan.output();
        let Layout { cipher, icv, .. } = plan.at;
        self.held.push(Held { job, text, cipher, icv, seals: plan.kind & SEAL != 0 });
        Added::Taken
    }

    fn describe(&mut self, session: &Session, job: &Job, plan: &Plan, text: usize, auth: usize) {
        let (number, first) = (self.held.len() as u32, self.chunks.len() / CHUNK_WORDS);
        let mut words = [0; JOB_WORDS];
        words[0] = session.record;
        words[1] = plan.kind;
        words[2] = text as u32;
        words[3] = plan.at.cipher.len() as u32;
        words[4] = auth as u32;
        words[5] = if plan.kind & HMAC != 0 { plan.at.auth.len() } else { plan.aad } as u32;
        let iv = &job.packet.buffer()[plan.at.iv.clone()];
        for (word, bytes) in words[6..10].iter_mut().zip(iv.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        words[10] = plan.high.map_or(0, u32::from_le_bytes);
        words[11] = first as u32;
        words[12] = plan.chunks as u32;
        words[13] = self.output as u32;
        self.jobs.extend(words);
        self.chunks.extend((0..plan.chunks as u32).flat_map(|chunk| [number, chunk]));
        self.kernels |= match plan.kind & 15 {
            GCM => 0b001_001,
            CTR => 0b000_001,
            CBC => 0b000_010,
            CHACHA => 0b010_100,
            _ => 0,
        };
        self.kernels |= if plan.kind & HMAC != 0 { 0b100_000 } else { 0 };
    }

    /// Writes what the kernels have to know behind the packets.
    pub fn close(&self, input: &mut [u8]) -> Launch {
        let words = self.jobs.iter().chain(&self.chunks);
        for (to, word) in input[self.input..].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        Launch {
            input: self.input + 4 * (self.jobs.len() + self.chunks.len()),
            jobs_at: (self.input / 4) as u32,
            chunks_at: (self.input / 4 + self.jobs.len()) as u32,
            tags_at: (self.output / 4) as u32,
            jobs: self.held.len() as u32,
            chunks: (self.chunks.len() / CHUNK_WORDS) as u32,
            output: self.output + TAG * self.held.len(),
            kernels: self.kernels,
        }
    }

    /// Takes all jobs out with what the device made of them.
    pub fn finish(&mut self, output: &[u8], done: &mut Vec<Job>) {
        let tags = &output[self.output..];
        for (held, tag) in self.held.drain(..).zip(tags.chunks_exact(TAG)) {
            done.push(held.finish(output, tag));
        }
        self.clear();
    }

    /// Takes all jobs out, none of them done.
    pub fn fail(&mut self, done: &mut Vec<Job>) {
        done.extend(self.held.drain(..).map(|held| Job { verdict: Verdict::Failed, ..held.job }));
        self.clear();
    }

    fn clear(&mut self) {
        self.jobs.clear();
        self.chunks.clear();
        (self.input, self.output, self.kernels) = (0, 0, 0);
    }
}

impl Held {
    fn finish(self, output: &[u8], tag: &[u8]) -> Job {
        let Held { mut job, text, cipher, icv, seals } = self;
        let (text, buffer) = (&output[text..text + cipher.len()], job.packet.buffer_mut());
        let tag = &tag[..icv.len()];
        if seals {
            buffer[icv].copy_from_slice(tag);
        } else if !equal(tag, &buffer[icv]) {
            job.verdict = Verdict::AuthFailed;
            return job;
        }
        buffer[cipher].copy_from_slice(text);
        job.verdict = Verdict::Done;
        job
    }
}

/// Compares in a time that does not tell how much is equal.
fn equal(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | a ^ b);
    a.len() == b.len() && std::hint::black_box(difference) == 0
}

/// Bytes of the high half of a number, which an ESP packet does not have.
const _: () = assert!(JobSpec::SEQ_HI_LEN == 4);
