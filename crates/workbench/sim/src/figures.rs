//! What a run comes to: docs/models.md, "Figures".

use forebay_time::{Duration, PS_PER_S};
use serde::Serialize;

/// The figures of a run of the host model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// From the first arrival to the last completion.
    pub elapsed_s: f64,
    /// Packets completed.
    pub packets: u64,
    /// 8 * bytes of all packets / elapsed.
    pub throughput_bps: f64,
    /// Energy of processors and buses / packets, if the scenario says what power any of them takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_packet_j: Option<f64>,
    /// The same energy / elapsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_power_w: Option<f64>,
    /// The bus; the first one if there are several.
    pub bus: BusFigures,
    /// All buses, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buses: Vec<BusFigures>,
    /// One entry for each processor.
    pub processors: Vec<ProcessorFigures>,
    /// From the scheduler's choice to completion.
    pub processing_latency: Latency,
    /// From arrival to completion.
    pub total_latency: Latency,
    /// Packets by jobs.
    pub packets_per_job: f64,
    /// Packets turned away by a full input (only where it has a limit).
    pub lost: u64,
    /// The order in which the packets of each SA leave.
    pub order: OrderFigures,
    /// One entry for each service class of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassFigures>,
    /// The core that moves the packets, where it is a polling loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_core: Option<RunningCoreFigures>,
    /// The turnstiles, where the processors are cores that go with their bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<CoresFigures>,
}

/// The order in which packets leave, beside the order in which those of each SA came. They leave when their job is done;
/// with `keep_order` or `poll` when all before them of their SA are done too.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OrderFigures {
    /// Packets that leave after a later one of their SA.
    pub late: u64,
    /// late / packets.
    pub late_share: f64,
    /// The largest number of places that a packet is behind the latest one of its SA that has left.
    pub distance_max: u32,
    /// Share of the packets that are 64 or more behind: a replay window of 64 places rejects them.
    pub beyond_64_share: f64,
    /// From completion until a packet leaves, with `keep_order`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Latency>,
    /// From arrival until a packet leaves, with `keep_order`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_latency: Option<Latency>,
}

/// The turnstiles of a scenario with `[cores]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CoresFigures {
    /// Of taking and preparing.
    pub take: Turnstile,
    /// Of completing and sending.
    pub complete: Turnstile,
}

/// A serial part that one core at a time passes. Its figures are of the whole run, warm-up included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Turnstile {
    /// Time in which a core is in it / elapsed: 1 where it is the limit.
    pub load: f64,
    /// Time for which cores stand before it, of all cores together / elapsed.
    pub waiting: f64,
}

/// The running core of a scenario with `poll`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunningCoreFigures {
    /// Its name among the processors.
    pub name: String,
    /// Time in which it moves, feeds or computes / elapsed: 1 where it is the limit.
    pub load: f64,
    /// Time in `move` / elapsed.
    pub moving: f64,
    /// Time in `feed` and `feed_block` / elapsed.
    pub feeding: f64,
    /// Packets taken by polls that took any.
    pub packets_per_poll: f64,
    /// From completion to release: packets of an SA are released in the order of their arrival.
    pub reorder_hold: Latency,
    /// From arrival to release.
    pub release_latency: Latency,
}

/// A service class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassFigures {
    /// Its name.
    pub name: String,
    /// Packets completed.
    pub packets: u64,
    /// From the scheduler's choice to completion.
    pub processing_latency: Latency,
    /// From arrival to completion.
    pub total_latency: Latency,
    /// Packets turned away by a full input.
    pub lost: u64,
}

/// A bus.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusFigures {
    /// Its name, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Time in transfers / elapsed; of full-duplex buses, by the busier line.
    pub load: f64,
}

/// A processor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessorFigures {
    /// Its name.
    pub name: String,
    /// Time in t_enc / elapsed.
    pub load: f64,
    /// Packets completed.
    pub packets: u64,
    /// Their bytes, overhead included.
    pub bytes: u64,
    /// bytes / packets; 0 without packets.
    pub mean_size: f64,
}

/// Latencies over packets. A quantile is the value of the nearest rank: the ceil(q n)-th of n. Not a number, `null` in JSON,
/// without packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Mean.
    pub mean_s: f64,
    /// Median.
    pub p50_s: f64,
    /// 90 %.
    pub p90_s: f64,
    /// 99 %.
    pub p99_s: f64,
    /// 99.9 %.
    pub p999_s: f64,
}

/// The quantiles of [`Latency`] in thousandths.
pub(crate) const QUANTILES: [u64; 4] = [500, 900, 990, 999];

/// A share of an interval; 0 of an empty one.
pub(crate) fn share(part: Duration, whole: Duration) -> f64 {
    ratio(part.0 as f64, whole.0 as f64)
}

/// part / whole, or 0 where there is nothing to divide by.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// The mean of `count` times that sum up to `sum` picoseconds, in seconds; not a number without any.
pub(crate) fn mean_s(sum: u128, count: u64) -> f64 {
    sum as f64 / PS_PER_S as f64 / count as f64
}
