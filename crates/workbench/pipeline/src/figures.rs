//! What is counted during a run, and the outcome made of it.

use forebay_time::{Duration, PS_PER_S, Time};
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::description::{Pipeline, Server, Stage};
use crate::marks::{BatchMeans, Marks, TimeSeries};

/// A number over time: its mean and its largest value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    value: u32,
    most: u32,
    since: Time,
    area: u128,
}

impl Level {
    #[inline]
    pub fn set(&mut self, now: Time, value: u32) {
        self.area += u128::from(now.since(self.since).0) * u128::from(self.value);
        self.since = now;
        self.value = value;
        self.most = self.most.max(value);
    }

    #[inline]
    pub fn add(&mut self, now: Time, more: u32) {
        self.set(now, self.value + more);
    }

    #[inline]
    pub fn take(&mut self, now: Time, less: u32) {
        self.set(now, self.value - less);
    }

    pub fn value(&self) -> u32 {
        self.value
    }

    /// Its value times time until now.
    pub fn area(&self, now: Time) -> u128 {
        self.area + u128::from(now.since(self.since).0) * u128::from(self.value)
    }

    /// Forgets what was before now.
    pub fn restart(&mut self, now: Time) {
        *self = Level { value: self.value, most: self.value, since: now, area: 0 };
    }

    fn mean(&mut self, now: Time, elapsed: Duration) -> f64 {
        self.set(now, self.value);
        self.area as f64 / elapsed.0.max(1) as f64
    }
}

/// Counts of one stage.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageCounts {
    pub waiting: Level,
    pub packets: Level,
    pub blocked: Level,
    pub busy: Duration,
    pub processed: u64,
    pub services: u64,
    pub lost: u64,
}

/// Counts of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerCounts {
    pub busy: Duration,
    pub switching: Duration,
    pub switches: u64,
    /// Cores kept by a packet that another unit works for.
    pub kept: Level,
    pub down: Duration,
    pub breakdowns: u64,
}

/// Breakdowns of a stage's own units.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnCounts {
    pub down: Duration,
    pub breakdowns: u64,
}

/// Everything counted.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub generated: u64,
    pub processed: u64,
    pub in_flight_before: u64,
    pub in_flight: u64,
    pub stages: Vec<StageCounts>,
    pub servers: Vec<ServerCounts>,
    /// Of the stages that have units of their own, in order.
    pub own: Vec<OwnCounts>,
    delays: Histogram<u64>,
    pub delay_sum: u128,
    delay_max: u64,
    pub fingerprint: u64,
}

impl Counts {
    pub fn new(pipeline: &Pipeline) -> Counts {
        let own = pipeline.stages.iter().filter(|stage| stage.server.is_none()).count();
        Counts {
            generated: 0,
            processed: 0,
            in_flight_before: 0,
            in_flight: 0,
            stages: vec![StageCounts::default(); pipeline.stages.len()],
            servers: vec![ServerCounts::default(); pipeline.servers.len()],
            own: vec![OwnCounts::default(); own],
            delays: Histogram::new(3).expect("three digits are a valid precision"),
            delay_sum: 0,
            delay_max: 0,
            fingerprint: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Begins anew when the run is warm.
    pub fn restart(&mut self, now: Time) {
        (self.generated, self.processed, self.delay_sum, self.delay_max) = (0, 0, 0, 0);
        self.in_flight_before = self.in_flight;
        self.delays.reset();
        for stage in &mut self.stages {
            stage.waiting.restart(now);
            stage.packets.restart(now);
            stage.blocked.restart(now);
            (stage.busy, stage.processed, stage.services, stage.lost) = (Duration::ZERO, 0, 0, 0);
        }
        for server in &mut self.servers {
            server.kept.restart(now);
            (server.busy, server.switching, server.switches) = (Duration::ZERO, Duration::ZERO, 0);
            (server.down, server.breakdowns) = (Duration::ZERO, 0);
        }
        self.own.fill(OwnCounts::default());
    }

    #[inline]
    pub fn delay(&mut self, delay: Duration) {
        self.delay_sum += u128::from(delay.0);
        self.delay_max = self.delay_max.max(delay.0);
        // Grows to hold any time; `saturating_record` would cut at what it holds now.
        let _ = self.delays.record(delay.0);
    }

    /// The sum of all delays, for exact means over several runs.
    fn delays(&self) -> Delay {
        if self.delays.is_empty() {
            return Delay::NONE;
        }
        let seconds = |ps: u64| ps as f64 / PS_PER_S as f64;
        // A value of the histogram is the upper end of its bin.
        let quantile = |q| seconds(self.delays.value_at_quantile(q).min(self.delay_max));
        Delay {
            mean_s: self.delay_sum as f64 / self.delays.len() as f64 / PS_PER_S as f64,
            p50_s: quantile(0.5),
            p90_s: quantile(0.9),
            p99_s: quantile(0.99),
            p999_s: quantile(0.999),
            max_s: seconds(self.delay_max),
        }
    }
}

/// What came of a run (`forebay simulate --json`, `model = "pipeline"`).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Simulated time at which the run was broken off; `None` of a whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted_after_s: Option<f64>,
    /// Time that the figures are of: the run without its warm-up.
    pub elapsed_s: f64,
    /// Packets that came.
    pub generated: u64,
    /// Packets that left the last stage.
    pub processed: u64,
    /// Packets lost in all stages.
    pub lost: u64,
    /// Packets inside when the figures began. generated + this = processed + lost + in_flight.
    pub in_flight_before: u64,
    /// Packets inside at the end.
    pub in_flight: u64,
    /// Packets processed a second.
    pub throughput_pps: f64,
    /// Lost over generated; not a number, `null` in JSON, if none was generated.
    pub loss_probability: f64,
    /// Energy of the units and cores whose power is given, in joules over packets processed; `None` if that of none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_packet_j: Option<f64>,
    /// The same energy over the time that the figures are of, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_power_w: Option<f64>,
    /// Each stage, in order.
    pub stages: Vec<StageOutcome>,
    /// Each shared server, in order.
    pub servers: Vec<ServerOutcome>,
    /// From a packet's arrival to its leaving the last stage.
    pub delay: Delay,
    /// Intervals from this run alone, if it was divided into batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_means: Option<BatchMeans>,
    /// What happened in each interval, if these were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<TimeSeries>,
    /// A hash of all events: two runs that have the same did the same.
    pub fingerprint: String,
}

impl Outcome {
    /// What the reader of the figures should know of this run.
    pub fn warning(&self) -> Option<String> {
        if self.generated == 0 {
            let note = "no packet came in the time that counts, so loss and delays say nothing: lower `warm_up`, or raise `duration`";
            return Some(note.to_owned());
        }
        if self.processed == 0 {
            let note = "no packet left in the time that counts, so there are no delays: raise `duration`";
            return Some(note.to_owned());
        }
        self.batch_means.as_ref().and_then(BatchMeans::warning)
    }
}

/// What came of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageOutcome {
    /// Its name.
    pub name: String,
    /// Share of the time that it was worked for (of its units' time).
    pub utilisation: f64,
    /// Most packets that waited at once.
    pub max_queue: u32,
    /// Mean number of packets that waited.
    pub mean_queue: f64,
    /// Mean number of packets in it.
    pub mean_occupancy: f64,
    /// Mean number of packets in it that could not be served, or could not leave after their service, because the next one
    /// had no room.
    pub blocked: f64,
    /// Packets that it has served.
    pub processed: u64,
    /// Services begun, each of several packets; `None` if a service does not wait for several (`batch_min`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub services: Option<u64>,
    /// Packets that found it full.
    pub lost: u64,
    /// Share of its units' time that they were broken down; `None` if they do not break down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<f64>,
    /// How often one of its units broke down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdowns: Option<u64>,
}

/// What came of a shared server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerOutcome {
    /// Its name.
    pub name: String,
    /// Share of its cores' time that they worked themselves.
    pub utilisation: f64,
    /// Share that they changed from one stage or context to another.
    pub switching: f64,
    /// Share of time that packets held them while other units worked, or because there was no room.
    pub waiting: f64,
    /// Changes from one stage or context to another.
    pub switches: u64,
    /// Share of its cores' time that they were broken down; `None` if they do not break down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<f64>,
    /// How often one of its cores broke down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdowns: Option<u64>,
}

/// Delays in seconds; quantiles to three digits, mean and maximum exact. Not a number, `null` in JSON, if no packet left in the
/// time that counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delay {
    /// Mean.
    pub mean_s: f64,
    /// Median.
    pub p50_s: f64,
    /// 90 of 100 are at most this.
    pub p90_s: f64,
    /// 99 of 100.
    pub p99_s: f64,
    /// 999 of 1000.
    pub p999_s: f64,
    /// The longest.
    pub max_s: f64,
}

impl Delay {
    const NONE: Delay = Delay {
        mean_s: f64::NAN,
        p50_s: f64::NAN,
        p90_s: f64::NAN,
        p99_s: f64::NAN,
        p999_s: f64::NAN,
        max_s: f64::NAN,
    };
}

impl Counts {
    /// The outcome at time `now`, `elapsed` after the figures began. `units` of each stage are what its shares are of.
    pub fn outcome(
        mut self,
        now: Time,
        elapsed: Duration,
        pipeline: &Pipeline,
        units: &[u32],
        marks: Marks,
    ) -> Outcome {
        let (batch_means, series) = marks.end(pipeline, &self, now);
        let delay = self.delays();
        let share = |time: Duration, of: u32| time.0 as f64 / (elapsed.0.max(1) as f64 * f64::from(of));
        let lost: u64 = self.stages.iter().map(|stage| stage.lost).sum();
        let mut own = std::mem::take(&mut self.own).into_iter();
        let mut broken = |stage: &Stage| {
            let counts = if stage.server.is_none() { own.next() } else { None };
            counts.filter(|_| stage.breakdowns.is_some())
        };
        let stage = |((counts, stage), &units): ((&mut StageCounts, &Stage), &u32)| {
            let broken = broken(stage);
            StageOutcome {
                name: stage.name.clone(),
                utilisation: share(counts.busy, units),
                max_queue: counts.waiting.most,
                mean_queue: counts.waiting.mean(now, elapsed),
                mean_occupancy: counts.packets.mean(now, elapsed),
                blocked: counts.blocked.mean(now, elapsed),
                processed: counts.processed,
                services: stage.gathers().then_some(counts.services),
                lost: counts.lost,
                down: broken.map(|one| share(one.down, units)),
                breakdowns: broken.map(|one| one.breakdowns),
            }
        };
        let server = |(counts, server): (&mut ServerCounts, &Server)| ServerOutcome {
            name: server.name.clone(),
            utilisation: share(counts.busy, server.cores),
            switching: share(counts.switching, server.cores),
            waiting: counts.kept.mean(now, elapsed) / f64::from(server.cores),
            switches: counts.switches,
            down: server.breakdowns.as_ref().map(|_| share(counts.down, server.cores)),
            breakdowns: server.breakdowns.as_ref().map(|_| counts.breakdowns),
        };
        let stages: Vec<StageOutcome> =
            self.stages.iter_mut().zip(&pipeline.stages).zip(units).map(stage).collect();
        let servers: Vec<ServerOutcome> =
            self.servers.iter_mut().zip(&pipeline.servers).map(server).collect();
        let cores = servers.iter().map(|one| one.utilisation + one.switching + one.waiting);
        let power = pipeline.power(stages.iter().map(|one| one.utilisation), cores);
        let energy = |watts: f64| watts * elapsed.as_secs() / self.processed as f64;
        Outcome {
            interrupted_after_s: None,
            elapsed_s: elapsed.as_secs(),
            generated: self.generated,
            processed: self.processed,
            lost,
            in_flight_before: self.in_flight_before,
            in_flight: self.in_flight,
            throughput_pps: self.processed as f64 / elapsed.as_secs(),
            loss_probability: if self.generated == 0 {
                f64::NAN
            } else {
                lost as f64 / self.generated as f64
            },
            energy_per_packet_j: power.filter(|_| self.processed > 0).map(energy),
            average_power_w: power,
            stages,
            servers,
            delay,
            batch_means,
            series,
            fingerprint: format!("{:016x}", self.fingerprint),
        }
    }
}
