//! What was measured, as it is written to JSON.

use serde::Serialize;

use super::twin::Twin;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Version of this layout.
    pub schema: u32,
    /// Version of Forebay.
    pub version: &'static str,
    /// Processor model and number of cores.
    pub host: String,
    /// The suite.
    pub proposal: String,
    /// SAs, equiprobable.
    pub sas: usize,
    /// Rounds, of which medians are reported.
    pub rounds: usize,
    /// Seconds of one measurement.
    pub slice_s: f64,
    /// The names of the processors, the running core first.
    pub processors: Vec<String>,
    /// What nothing that uses these processors should exceed, and what it has to.
    pub limits: Limits,
    /// By size, window and policy.
    pub results: Vec<Outcome>,
    /// By size, window and rival.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<Outcome>,
    /// By size and processor.
    pub alone: Vec<Alone>,
}

/// The limits of the first size, and those of all.
#[derive(Debug, Serialize)]
pub struct Limits {
    /// See [`SizeLimits`].
    pub sum_packets_per_s: f64,
    /// See [`SizeLimits`].
    pub best_static_packets_per_s: f64,
    /// One for each size.
    pub by_size: Vec<SizeLimits>,
}

/// What the figures of one size are held against.
#[derive(Clone, Debug, Serialize)]
pub struct SizeLimits {
    /// The size.
    pub size: Size,
    /// The sum of what each processor does alone through the same engine, with the window that suits it best.
    pub sum_packets_per_s: f64,
    /// The best of all fixed splits that were measured, whatever the window: those of the search, equal shares
    /// (round robin), and everything on one processor.
    pub best_static_packets_per_s: f64,
}

/// A length in bytes, or the name of a mix of lengths.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// `imix`, or the path of a capture.
    Name(String),
}

impl Size {
    /// From the word on the command line.
    pub fn new(word: &str) -> Size {
        word.parse().map_or_else(|_| Size::Name(word.to_owned()), Size::Bytes)
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Size::Bytes(bytes) => write!(f, "{bytes} bytes"),
            Size::Name(name) => f.write_str(name),
        }
    }
}

/// One policy with one window on packets of one size.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Its word.
    pub policy: &'static str,
    /// Which processor `single` takes, or which rival it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// The weights of `split`, by processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<u16>>,
    /// The window in packets, 1 for no bundling.
    pub window: usize,
    /// The size.
    pub size: Size,
    /// Packets released per second under saturation, the median of the rounds.
    pub packets_per_s: f64,
    /// The same in bits of plain packets.
    pub bits_per_s: f64,
    /// Of each round.
    pub rounds_packets_per_s: Vec<f64>,
    /// `packets_per_s` over the sum of what each processor does alone.
    pub of_sum: f64,
    /// `packets_per_s` over the best fixed split.
    pub of_best_static: f64,
    /// Packets by scheduler jobs, under saturation.
    pub packets_per_job: f64,
    /// Mean time that a packet whose crypto was done was held for packets of its SA before it.
    pub reorder_hold_s: f64,
    /// Jobs that the running core had to do again.
    pub redone: u64,
    /// Times that a processor was taken out.
    pub removals: u64,
    /// With packets offered at half of the throughput.
    pub latency_50: Latency,
    /// With packets offered at nine tenths of the throughput.
    pub latency_90: Latency,
    /// What the simulator makes of the same, with the costs that the engine has learnt: of finish time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin: Option<Twin>,
    /// The running core first.
    pub processors: Vec<Share>,
}

impl Outcome {
    /// What tells it from the others of its size: the policy, or the rival.
    pub fn label(&self) -> &str {
        self.processor.as_deref().filter(|_| self.policy == RIVAL).unwrap_or(self.policy)
    }
}

/// The policy of what is measured of a rival.
pub(super) const RIVAL: &str = "rival";

/// From the time when a packet was due to its release.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Latency {
    /// Packets offered per second, at drawn (Poisson) times.
    pub offered_packets_per_s: f64,
    /// Packets measured, all rounds together.
    pub packets: u64,
    /// Median over the rounds of their medians.
    pub p50_s: f64,
    /// Median over the rounds of their 99th percentiles.
    pub p99_s: f64,
    /// Median over the rounds of their means.
    pub mean_s: f64,
}

/// What one processor did under saturation.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// Its name.
    pub name: String,
    /// Share of the packets.
    pub share: f64,
    /// Share of the time that it spent in crypto.
    pub load: f64,
    /// Mean time of a job from dispatch to answer, waiting included: predicted.
    pub predicted_s: f64,
    /// The same as it was.
    pub actual_s: f64,
    /// Mean service time of a job: predicted.
    pub predicted_service_s: f64,
    /// The same as it was.
    pub actual_service_s: f64,
}

/// One processor as the only one that does crypto.
#[derive(Clone, Debug, Serialize)]
pub struct Alone {
    /// Its name.
    pub name: String,
    /// The size.
    pub size: Size,
    /// The window with which it does the most.
    pub window: usize,
    /// Packets released per second.
    pub packets_per_s: f64,
}
