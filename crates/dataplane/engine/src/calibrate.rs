//! Measures what a processor takes for batches of different sizes, of packets of different sizes, and fits its
//! cost.

use std::collections::BTreeMap;

use forebay_crypto::{
    Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionId, Span, Suite, Verdict,
};
use forebay_scheduler::fit::{Sample, shape};
use forebay_scheduler::{Cost, Work};
use forebay_time::Duration;

use crate::clock::Clock;

/// Packet sizes measured, in bytes: small ones show what each packet costs, large ones the blocks.
pub const SIZES: [u32; 4] = [64, 256, 1024, 1440];
/// Batch sizes measured, in packets; those that the processor's queue does not hold are left out.
pub const BATCHES: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Rounds through all sizes and batches, where there is time. Round by round, not point by point: what disturbs
/// the machine for a while then spoils one measurement of many points, whose medians do not mind.
const ROUNDS: usize = 25;
/// After this long fewer rounds must do, [`ROUNDS_MIN`] at least.
const TIME_MAX: Duration = Duration::from_millis(50);
const ROUNDS_MIN: usize = 5;
/// Longest wait for an answer: a processor that takes this long for one batch is not usable. On a busy machine the
/// thread of a lane may wait for a CPU for tenths of a second.
const ANSWER_MAX: Duration = Duration::from_millis(1_000);
/// How often an idle processor is woken; the median counts.
const WAKES: usize = 15;
/// How long it is left alone before: longer than a lane looks for work before it goes to sleep.
const IDLE: Duration = Duration::from_micros(300);
/// The session used for measuring: out of the way of real ones, opened and closed here.
const SESSION: SessionId = SessionId(60_000);

/// A processor's measured times and the cost that explains them.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The measured points.
    pub points: Vec<Point>,
    /// The cost, `wake` included.
    pub cost: Cost,
    /// Median distance of a measured batch from what the cost says.
    pub residual: Duration,
    /// How much of the variation of the time per packet the cost explains, 0 to 1.
    pub r_squared: f64,
}

/// The median time of batches of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Bytes to encipher in each packet, before padding.
    pub size: u32,
    /// The work of each packet.
    pub work: Work,
    /// Packets handed over together.
    pub batch: usize,
    /// Time from the begin of the batch to its end.
    pub time: Duration,
}

/// Measures `processor` with `suite`; `None` if it does not have the suite or does not answer. Takes about a tenth
/// of a second at most.
pub fn calibrate(processor: &mut dyn Processor, suite: Suite, clock: Clock) -> Option<Calibration> {
    calibrate_within(processor, suite, clock, TIME_MAX)
}

/// The same in about `time` where that suffices for the least there must be: good enough to begin with, where
/// costs are learnt from then on.
pub fn calibrate_within(
    processor: &mut dyn Processor,
    suite: Suite,
    clock: Clock,
    time: Duration,
) -> Option<Calibration> {
    let filler = |n: usize| SecretBytes::new((0..n).map(|i| i as u8).collect());
    let key = filler(suite.cipher_key_len() + suite.salt_len());
    let keys = SaKeys::new(suite, &key, &filler(suite.integrity_key_len())).ok()?;
    processor.open_session(SESSION, &keys, Direction::Seal).ok()?;
    let mut bench = Bench {
        processor,
        suite,
        clock,
        spare: BTreeMap::new(),
        size: 0,
        jobs: Vec::new(),
        done: Vec::new(),
    };
    let measured = bench.points(time).and_then(|points| Some((points, bench.wake()?)));
    processor.close_session(SESSION);
    let (measured, wake) = measured?;

    let jobs: Vec<Vec<Work>> = measured.iter().map(|one| vec![one.point.work; one.point.batch]).collect();
    let samples = measured
        .iter()
        .zip(&jobs)
        .flat_map(|(one, jobs)| one.times.iter().map(|&time| Sample { jobs, time }));
    let fitted = shape(&samples.collect::<Vec<_>>())?;
    Some(Calibration {
        points: measured.iter().map(|one| one.point).collect(),
        cost: Cost { wake, ..fitted.cost },
        residual: fitted.residual,
        r_squared: fitted.r_squared,
    })
}

/// All times of a point.
struct Measured {
    point: Point,
    times: Vec<Duration>,
}

/// The processor on the bench.
struct Bench<'a> {
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
struct Times {
    /// From the hand-over until all of it was back.
    elapsed: Duration,
    /// What the processor says that it worked; zero if it does not say.
    said: Duration,
}

impl Bench<'_> {
    fn points(&mut self, within: Duration) -> Option<Vec<Measured>> {
        let holds = self.processor.capabilities().queue.max(1);
        let point = |size, batch| Point { size, work: Work::default(), batch, time: Duration::ZERO };
        let sizes = SIZES.into_iter().flat_map(|size| BATCHES.map(|batch| point(size, batch)));
        let mut measured: Vec<Measured> = sizes
            .filter(|point| point.batch <= holds)
            .map(|point| Measured { point, times: Vec::with_capacity(ROUNDS) })
            .collect();
        let began = self.clock.now();
        // The first round warms caches and the lane up.
        for round in 0..=ROUNDS {
            if round > ROUNDS_MIN && self.clock.now().since(began) > within {
                break;
            }
            for Measured { point, times } in &mut measured {
                let Times { elapsed, said } = self.batch(point.size, point.batch)?;
                point.work = Work::packet(self.done.first()?.packet.len() as u32);
                if round > 0 {
                    // A processor that says how long it worked leaves out the way there and back.
                    times.push(if said > Duration::ZERO { said } else { elapsed });
                }
            }
        }
        for Measured { point, times } in &mut measured {
            times.sort();
            point.time = times[times.len() / 2];
        }
        Some(measured)
    }

    /// What it takes from the hand-over until an idle processor begins, the way back counted as well; nothing for
    /// one that does its jobs in place.
    fn wake(&mut self) -> Option<Duration> {
        let mut wakes = Vec::with_capacity(WAKES);
        for _ in 0..WAKES {
            let since = self.clock.now();
            while self.clock.now().since(since) < IDLE {
                std::hint::spin_loop();
            }
            let Times { elapsed, said } = self.batch(SIZES[0], 1)?;
            if said == Duration::ZERO {
                return Some(Duration::ZERO);
            }
            wakes.push(elapsed - said);
        }
        wakes.sort();
        Some(wakes[WAKES / 2])
    }

    /// Has one batch done, which lies in `done` then; `None` if the processor does not do it.
    fn batch(&mut self, size: u32, batch: usize) -> Option<Times> {
        self.jobs.clear();
        let used = self.done.drain(..).map(|job| Job::new(job.packet, job.spec, 0));
        self.spare.entry(self.size).or_default().extend(used);
        self.size = size;
        let spare = self.spare.entry(size).or_default();
        while spare.len() < batch {
            spare.push(esp_job(SESSION, self.suite, size));
        }
        self.jobs.extend(spare.drain(spare.len() - batch..));
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
