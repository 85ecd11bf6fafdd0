//! Measures what a processor takes for jobs of different sizes, and fits its cost.

use forebay_crypto::{
    Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionId, Span, Suite, Verdict,
};
use forebay_scheduler::fit::{Line, Sample, line};
use forebay_scheduler::{Cost, Work};
use forebay_time::Duration;

use crate::clock::Clock;

/// Packet sizes measured, in bytes: small ones show the setup, large ones the blocks.
pub const SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 1440];
/// Submissions measured at each size, where there is time; the median of them counts.
const REPETITIONS: usize = 31;
/// After this long at a size fewer submissions must do, [`REPETITIONS_MIN`] at least: where each waits for a CPU.
const SIZE_TIME: Duration = Duration::from_millis(50);
const REPETITIONS_MIN: usize = 5;
/// Longest wait for an answer: a processor that takes this long for one packet is not usable. On a busy machine the
/// thread of a lane may wait for a CPU for tenths of a second.
const ANSWER_MAX: Duration = Duration::from_millis(1_000);
/// The session used for measuring: out of the way of real ones, opened and closed here.
const SESSION: SessionId = SessionId(60_000);

/// A processor's measured times and the line through them.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Median time by packet size in bytes, for one packet a submission.
    pub points: Vec<(u32, Duration)>,
    /// The fit.
    pub line: Line,
}

/// Measures `processor` with `suite`, one packet a submission; `None` if it does not have the suite or
/// does not answer. In place processors are timed in bursts of `burst`, as the engine uses them.
pub fn calibrate(
    processor: &mut dyn Processor,
    suite: Suite,
    burst: usize,
    clock: Clock,
) -> Option<Calibration> {
    let filler = |n: usize| SecretBytes::new((0..n).map(|i| i as u8).collect());
    let key = filler(suite.cipher_key_len() + suite.salt_len());
    let keys = SaKeys::new(suite, &key, &filler(suite.integrity_key_len())).ok()?;
    processor.open_session(SESSION, &keys, Direction::Seal).ok()?;
    let measured = measure(processor, suite, burst.max(1), clock);
    processor.close_session(SESSION);
    let (samples, points) = measured?;
    Some(Calibration { points, line: line(&samples, &Cost::default())? })
}

/// All samples, and the median by size.
type Measured = (Vec<Sample>, Vec<(u32, Duration)>);

fn measure(processor: &mut dyn Processor, suite: Suite, burst: usize, clock: Clock) -> Option<Measured> {
    let mut samples = Vec::new();
    let mut points = Vec::new();
    let mut jobs: Vec<Job> = (0..burst).map(|_| esp_job(SESSION, suite, SIZES[0])).collect();
    let mut done = Vec::with_capacity(burst);
    for size in SIZES {
        let mut times = Vec::with_capacity(REPETITIONS);
        let began = clock.now();
        // The first round warms caches and the lane up.
        for round in 0..=REPETITIONS {
            if times.len() >= REPETITIONS_MIN && clock.now().since(began) > SIZE_TIME {
                break;
            }
            jobs.iter_mut().for_each(|job| *job = esp_job(SESSION, suite, size));
            let start = clock.now();
            processor.submit(start, &mut jobs);
            while done.len() < burst {
                processor.poll(clock.now(), &mut done);
                if clock.now().since(start) > ANSWER_MAX || !jobs.is_empty() {
                    return None;
                }
            }
            let elapsed = clock.now().since(start);
            if done.iter().any(|job| job.verdict != Verdict::Done) {
                return None;
            }
            // A processor that says how long it worked leaves out the way there and back.
            let said = done.iter().fold(Duration::ZERO, |sum, job| sum + job.took);
            let time = if said > Duration::ZERO { said } else { elapsed };
            std::mem::swap(&mut jobs, &mut done);
            done.clear();
            if round > 0 {
                times.push(Duration(time.0 / burst as u64));
            }
        }
        let work = Work::packet(jobs.first()?.packet.len() as u32);
        samples.extend(times.iter().map(|&time| Sample { jobs: 1, work, time }));
        times.sort();
        points.push((size, times[times.len() / 2]));
    }
    Some((samples, points))
}

/// A job as an SA of `suite` would leave it, on a made-up ESP packet with `text_len` bytes to
/// encipher, rounded up to the cipher's block.
pub fn esp_job(session: SessionId, suite: Suite, text_len: u32) -> Job {
    let (iv_len, icv_len) = (suite.iv_len() as u32, suite.icv_len() as u32);
    let text_len = text_len.next_multiple_of(suite.align() as u32);
    let size = 8 + iv_len + text_len + icv_len;
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
