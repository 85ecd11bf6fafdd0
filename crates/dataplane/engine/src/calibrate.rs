//! Measures what a processor takes for batches of different sizes, of packets of different sizes, and fits its
//! cost.

use forebay_crypto::{Processor, Suite};
use forebay_scheduler::fit::{Sample, shape};
use forebay_scheduler::{Cost, Work};
use forebay_time::Duration;

use crate::bench::{Bench, Times};
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
/// How often an idle processor is woken; the median counts.
const WAKES: usize = 15;
/// How long it is left alone before: longer than a lane looks for work before it goes to sleep.
const IDLE: Duration = Duration::from_micros(300);

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
    /// Time from the hand-over until all of it was back; the same for a processor that works in place.
    pub response: Duration,
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
    let mut bench = Bench::open(processor, suite, clock)?;
    let measured = bench.points(time, clock)?;
    let wake = bench.wake(clock)?;
    drop(bench);

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

/// All times of a point: those that the processor says, or they took, and those until all was back.
struct Measured {
    point: Point,
    times: Vec<Duration>,
    responses: Vec<Duration>,
}

impl Bench<'_> {
    fn points(&mut self, within: Duration, clock: Clock) -> Option<Vec<Measured>> {
        let (holds, zero) = (self.holds(), Duration::ZERO);
        let point = |size, batch| Point { size, work: Work::default(), batch, time: zero, response: zero };
        let sizes = SIZES.into_iter().flat_map(|size| BATCHES.map(|batch| point(size, batch)));
        let mut measured: Vec<Measured> = sizes
            .filter(|point| point.batch <= holds)
            .map(|point| Measured {
                point,
                times: Vec::with_capacity(ROUNDS),
                responses: Vec::with_capacity(ROUNDS),
            })
            .collect();
        let began = clock.now();
        // The first round warms caches and the lane up.
        for round in 0..=ROUNDS {
            if round > ROUNDS_MIN && clock.now().since(began) > within {
                break;
            }
            for Measured { point, times, responses } in &mut measured {
                let Times { elapsed, said } = self.batch(point.size, point.batch)?;
                point.work = Work::packet(self.packet()?.len() as u32);
                if round > 0 {
                    // A processor that says how long it worked leaves out the way there and back.
                    times.push(if said > Duration::ZERO { said } else { elapsed });
                    responses.push(elapsed);
                }
            }
        }
        for Measured { point, times, responses } in &mut measured {
            times.sort();
            responses.sort();
            point.time = times[times.len() / 2];
            point.response = responses[responses.len() / 2];
        }
        Some(measured)
    }

    /// What it takes from the hand-over until an idle processor begins, the way back counted as well; nothing for
    /// one that does its jobs in place.
    fn wake(&mut self, clock: Clock) -> Option<Duration> {
        let mut wakes = Vec::with_capacity(WAKES);
        for _ in 0..WAKES {
            let since = clock.now();
            while clock.now().since(since) < IDLE {
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
}
