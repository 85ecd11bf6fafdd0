//! What came out against what went in, and the figures of both gateways put together.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::mpsc::Receiver;

use forebay_engine::{Engine, Output, ProcessorStats, RUNNING_CORE};
use forebay_ipsec::DropCounts;
use forebay_time::{Duration, Time};
use hdrhistogram::Histogram;

use super::figures::{DemoFigures, GatewayFigures, Latency, ProcessorFigures, TimePoint};
use super::sealing::LOOK;
use super::traffic::Capture;

/// A sealed packet that is on its way to gateway B.
pub struct Expected {
    /// Which SA.
    pub spi: u32,
    /// Its number among all packets sent.
    pub index: u64,
    /// When gateway A admitted it.
    pub admitted: Time,
}

/// Compares packets as gateway B releases them.
pub struct Comparer {
    /// By SA, in the order sent.
    expected: HashMap<u32, VecDeque<Expected>>,
    /// SPI by session.
    spis: Vec<u32>,
    identical: u64,
    different: u64,
    missing: u64,
    out_of_order: u64,
    latency: Histogram<u64>,
}

impl Comparer {
    /// A comparer for the SAs of gateway B.
    pub fn new(engine: &Engine) -> Comparer {
        Comparer {
            expected: HashMap::new(),
            spis: engine.sad().iter().map(|(_, _, config, _)| config.spi.get()).collect(),
            identical: 0,
            different: 0,
            missing: 0,
            out_of_order: 0,
            // Nanoseconds to a minute at three digits.
            latency: Histogram::new_with_max(60_000_000_000, 3).unwrap_or_else(|_| unreachable_histogram()),
        }
    }

    /// Notes what gateway A has sent.
    pub fn learn(&mut self, expected: &Receiver<Expected>) {
        while let Ok(message) = expected.try_recv() {
            self.expected.entry(message.spi).or_default().push_back(message);
        }
    }

    /// Compares one packet: it must be the next of its SA, byte for byte.
    pub fn compare(&mut self, output: &Output, capture: &Capture) {
        let spi = output.session.and_then(|session| self.spis.get(session.0 as usize)).copied().unwrap_or(0);
        let queue = self.expected.entry(spi).or_default();
        let same = |expected: &Expected| {
            let original = &capture.packets[(expected.index % capture.packets.len() as u64) as usize];
            **original == *output.packet.bytes()
        };
        match queue.front() {
            Some(first) if same(first) => {}
            // A loss lets later packets move up; a packet that is nowhere is another than was sent.
            _ => match queue.iter().position(same) {
                Some(skipped) => {
                    self.missing += skipped as u64;
                    queue.drain(..skipped);
                }
                None => {
                    self.different += 1;
                    return;
                }
            },
        }
        if let Some(first) = queue.pop_front() {
            self.identical += 1;
            let latency = output.released.since(first.admitted).as_nanos();
            self.latency.saturating_record(latency.max(1));
        }
    }
}

fn unreachable_histogram() -> Histogram<u64> {
    unreachable!("the bounds are constants that hdrhistogram accepts")
}

/// What one gateway counted.
pub struct Half {
    processors: Vec<ProcessorFigures>,
    packets_per_job: f64,
    timeline: Vec<TimePoint>,
    drops: DropCounts,
    start: Time,
    end: Time,
}

/// Looks at a gateway's counters every now and then.
pub struct Sampler {
    next: Time,
    start: Time,
    before: Vec<u64>,
    timeline: Vec<TimePoint>,
}

impl Sampler {
    /// A sampler that begins at `now`.
    pub fn new(engine: &Engine, now: Time) -> Sampler {
        let before = engine.processors().map(|one| one.packets).collect();
        Sampler { next: now + LOOK, start: now, before, timeline: Vec::new() }
    }

    /// Takes a look if one is due.
    pub fn look(&mut self, engine: &Engine, now: Time) {
        if now < self.next {
            return;
        }
        self.next = now + LOOK;
        self.take(engine, now);
    }

    fn take(&mut self, engine: &Engine, now: Time) {
        let packets: Vec<u64> = engine.processors().map(|one| one.packets).collect();
        let since = packets.iter().zip(&self.before).map(|(now, before)| now - before).collect();
        self.timeline.push(TimePoint { t_s: now.since(self.start).as_secs(), packets: since });
        self.before = packets;
    }

    /// All that the gateway counted between `start` and `end`.
    pub fn finish(mut self, engine: &Engine, start: Time, end: Time) -> Half {
        self.take(engine, end);
        let elapsed = end.since(start);
        let stats: Vec<&ProcessorStats> = engine.processors().collect();
        let (packets, jobs) = stats.iter().fold((0, 0), |sum, one| (sum.0 + one.packets, sum.1 + one.jobs));
        let processors =
            stats.iter().enumerate().map(|(index, one)| processor(engine, index, one, elapsed)).collect();
        Half {
            processors,
            packets_per_job: packets as f64 / jobs.max(1) as f64,
            timeline: self.timeline,
            drops: engine.drops(),
            start,
            end,
        }
    }
}

fn processor(engine: &Engine, index: usize, one: &ProcessorStats, elapsed: Duration) -> ProcessorFigures {
    let per_job = |sum: Duration| sum.as_secs() / one.jobs.max(1) as f64;
    let cost = engine.cost(index, forebay_crypto::SessionId(0)).unwrap_or_default();
    ProcessorFigures {
        name: if index == RUNNING_CORE { format!("core ({})", one.name) } else { one.name.clone() },
        packets: one.packets,
        bytes: one.bytes,
        mean_size: one.bytes as f64 / one.packets.max(1) as f64,
        load: one.busy.as_secs() / elapsed.as_secs().max(1e-9),
        predicted_service_s: per_job(one.predicted),
        actual_service_s: per_job(one.busy),
        predicted_response_s: per_job(one.predicted_response),
        actual_response_s: per_job(one.response),
        response_error_s: per_job(one.response_error),
        fitted_init_s: cost.init.as_secs(),
        fitted_block_s: cost.block.as_secs(),
        samples: one.samples.iter().map(|&(p, a)| (p.as_secs(), a.as_secs())).collect(),
        sizes: one.sizes,
    }
}

/// Puts the halves together.
pub fn combine(
    mut figures: DemoFigures,
    sealed: Half,
    opened: (Half, Comparer),
    total: u64,
    capture: &Capture,
) -> DemoFigures {
    let (opened, comparer) = opened;
    let left: u64 = comparer.expected.values().map(|queue| queue.len() as u64).sum();
    let elapsed = opened.end.since(sealed.start).as_secs().max(1e-9);
    let bytes = capture.figures().bytes as f64 * total as f64 / capture.packets.len() as f64;
    figures.elapsed_s = elapsed;
    figures.throughput_bps = bytes * 8.0 / elapsed;
    figures.packets_per_s = total as f64 / elapsed;
    figures.latency = latency(&comparer.latency);
    let mut drops = BTreeMap::<String, u64>::new();
    for (reason, n) in sealed.drops.iter().chain(opened.drops.iter()) {
        *drops.entry(reason.name().to_owned()).or_default() += n;
    }
    let accounted = comparer.identical + comparer.missing + left;
    figures.comparison.sent = total;
    figures.comparison.identical = comparer.identical;
    figures.comparison.different = comparer.different;
    figures.comparison.missing = comparer.missing + left + total.saturating_sub(accounted);
    figures.comparison.out_of_order = comparer.out_of_order;
    figures.comparison.duplicated = accounted.saturating_sub(total);
    figures.comparison.drops = drops.into_iter().collect();
    figures.sealing = gateway(sealed);
    figures.opening = gateway(opened);
    figures
}

fn gateway(half: Half) -> GatewayFigures {
    GatewayFigures {
        processors: half.processors,
        packets_per_job: half.packets_per_job,
        timeline: half.timeline,
    }
}

fn latency(histogram: &Histogram<u64>) -> Latency {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let at = |quantile| seconds(histogram.value_at_quantile(quantile));
    // Eight bars to a factor of two.
    let bars = histogram.iter_log(1_000, 2f64.powf(0.125));
    Latency {
        mean_s: histogram.mean() / 1e9,
        p50_s: at(0.5),
        p90_s: at(0.9),
        p99_s: at(0.99),
        p999_s: at(0.999),
        histogram: bars
            .map(|bar| (seconds(bar.value_iterated_to()), bar.count_since_last_iteration()))
            .filter(|&(_, count)| count > 0)
            .collect(),
    }
}
