//! What a demo run measured: the one source of its table, its JSON and its report.

use serde::Serialize;

/// All figures of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DemoFigures {
    /// Version of this document's layout.
    pub schema: u32,
    /// Version of Forebay.
    pub version: String,
    /// Processor model and number of cores.
    pub host: String,
    /// When the run began, RFC 3339 in UTC.
    pub started: String,
    /// Suite of the tunnel.
    pub proposal: String,
    /// Scheduler's policy and window, in a line.
    pub scheduler: String,
    /// The capture that was sent.
    pub capture: CaptureFigures,
    /// From the first packet into gateway A to the last out of gateway B, in seconds.
    pub elapsed_s: f64,
    /// Plain bits a second over that time.
    pub throughput_bps: f64,
    /// Plain packets a second over that time.
    pub packets_per_s: f64,
    /// From admission in A to release in B.
    pub latency: Latency,
    /// Comparison with the original, packet by packet.
    pub comparison: Comparison,
    /// What the scheduler gains on processors of this machine, by suite, if that was measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<Gain>,
    /// The sealing gateway.
    pub sealing: GatewayFigures,
    /// The opening gateway.
    pub opening: GatewayFigures,
}

/// The same packets over the core alone, over fixed splits, and by finish time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Gain {
    /// Suite of the comparison.
    pub proposal: String,
    /// Names of the processors, the running core first.
    pub processors: Vec<String>,
    /// The core alone first, finish time last.
    pub runs: Vec<GainRun>,
    /// Fixed splits that were tried: the share of the packets that the other processors were given, and plain bits
    /// per second.
    pub splits: Vec<(f64, f64)>,
    /// Rounds in which the ways were measured in turn.
    pub rounds: u64,
    /// Share of the machine's CPU time that other programs used meanwhile.
    pub others: f64,
}

/// One way to place packets, under saturation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GainRun {
    /// Its name.
    pub name: String,
    /// Packets per second, the median of the rounds.
    pub packets_per_s: f64,
    /// Plain bits per second.
    pub throughput_bps: f64,
    /// How many times the throughput of the core alone: the mean of the rounds.
    pub of_core_alone: f64,
    /// Half of its 95 % confidence interval.
    pub half_width: f64,
    /// Share of the packets that each processor did, in the last round.
    pub shares: Vec<f64>,
}

/// The capture that was sent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CaptureFigures {
    /// Its file name.
    pub name: String,
    /// IP packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Mean packet length in bytes.
    pub mean_size: f64,
    /// Median packet length in bytes.
    pub median_size: u64,
    /// Packets by protocol, largest first: name, packets, bytes.
    pub protocols: Vec<(String, u64, u64)>,
}

/// A distribution of times in seconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Latency {
    /// Mean.
    pub mean_s: f64,
    /// Median.
    pub p50_s: f64,
    /// 90th percentile.
    pub p90_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// 99.9th percentile.
    pub p999_s: f64,
    /// Upper bounds in seconds and counts, for a histogram on a logarithmic axis.
    pub histogram: Vec<(f64, u64)>,
}

/// What came out against what went in.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// Packets sent: those of the capture, as many times over as it was sent.
    pub sent: u64,
    /// Packets that came out byte for byte as they went in.
    pub identical: u64,
    /// Packets that came out different.
    pub different: u64,
    /// Packets that did not come out.
    pub missing: u64,
    /// Packets that came out of order within their SA.
    pub out_of_order: u64,
    /// Packets that came out twice.
    pub duplicated: u64,
    /// Drops of both gateways: reason, packets.
    pub drops: Vec<(String, u64)>,
}

/// One gateway.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GatewayFigures {
    /// Processors, the running core first.
    pub processors: Vec<ProcessorFigures>,
    /// Scheduler jobs; a bundle of packets is one.
    pub packets_per_job: f64,
    /// Packets by processor over time: one entry a tenth of a second or so.
    pub timeline: Vec<TimePoint>,
}

/// One processor of a gateway.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProcessorFigures {
    /// Its name.
    pub name: String,
    /// Packets done.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Mean packet length in bytes.
    pub mean_size: f64,
    /// Share of the run's time it worked.
    pub load: f64,
    /// Mean service time of a job: predicted, in seconds.
    pub predicted_service_s: f64,
    /// Mean service time of a job: measured, in seconds.
    pub actual_service_s: f64,
    /// Mean time from dispatch to answer: predicted, in seconds.
    pub predicted_response_s: f64,
    /// Mean time from dispatch to answer: measured, in seconds.
    pub actual_response_s: f64,
    /// Mean distance between the two, in seconds.
    pub response_error_s: f64,
    /// Setup per job as fitted at the end, in seconds.
    pub fitted_init_s: f64,
    /// Time per 16-byte block as fitted at the end, in seconds.
    pub fitted_block_s: f64,
    /// Sample of jobs: predicted and actual response in seconds.
    pub samples: Vec<(f64, f64)>,
    /// Packets by size, for the sizes at the top of this list: up to 64, 128, 256, 512, 1024, larger.
    pub sizes: [u64; 6],
}

/// One interval of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TimePoint {
    /// End of the interval in seconds from the start.
    pub t_s: f64,
    /// Packets done in it, by processor.
    pub packets: Vec<u64>,
}
