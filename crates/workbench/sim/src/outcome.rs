//! What is wanted of a run, what it comes to, and why it may not.

use std::fmt;
use std::ops::ControlFlow;

use forebay_time::{Duration, Time};

use crate::figures::Figures;
use crate::timeline::Timeline;
use crate::traffic::Arrival;

/// Runs of up to this many packets keep every latency, 16 bytes a packet, for exact quantiles; a longer run
/// takes no more memory than a short one.
pub const EXACT_MAX: u64 = 1 << 21;

/// Decisions between two reports of progress.
pub(crate) const REPORT_EVERY: u64 = 1 << 16;

/// What is wanted of a run besides its figures.
#[derive(Default)]
pub struct Options<'a> {
    /// A seed in place of the scenario's.
    pub seed: Option<u64>,
    /// Every packet's times and processor: 34 bytes a packet.
    pub columns: bool,
    /// Whether quantiles are exact: 16 bytes a packet. `None`: in runs of up to [`EXACT_MAX`] packets;
    /// else they are those of a histogram, right to 0.2 %.
    pub exact: Option<bool>,
    /// A time line of the run's begin, with at most so many entries.
    pub timeline: Option<usize>,
    /// Is told now and then how many packets of how many have been placed; may break off the run.
    pub progress: Option<Progress<'a>>,
    /// Whether a run that is broken off is kept: its traffic ends there, as though `traffic.packets` had
    /// said so. Else there is no outcome.
    pub keep: bool,
}

/// Is told packets placed and packets in all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// What a run comes to.
#[derive(Debug)]
pub struct Outcome {
    /// The seed it ran with.
    pub seed: u64,
    /// The figures.
    pub figures: Figures,
    /// Packets, if they were asked for.
    pub columns: Option<Columns>,
    /// The time line, if it was asked for.
    pub timeline: Option<Timeline>,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
    /// From the last arrival to the last completion.
    pub drain: Duration,
    /// Packets there were, where the run was broken off and kept.
    pub cut: Option<u64>,
}

/// Packets in the order of arrival; times in picoseconds. A packet that was lost has no processor and
/// times of [`u64::MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// b in bytes.
    pub bytes: Vec<u32>,
    /// Security association.
    pub sa: Vec<u32>,
    /// When it arrived.
    pub arrived: Vec<u64>,
    /// When its processor was chosen.
    pub chosen: Vec<u64>,
    /// When it was complete.
    pub completed: Vec<u64>,
    /// Its processor; [`u16::MAX`]: none.
    pub processor: Vec<u16>,
}

impl Columns {
    pub(crate) fn with_capacity(packets: usize) -> Columns {
        Columns {
            bytes: Vec::with_capacity(packets),
            sa: Vec::with_capacity(packets),
            arrived: Vec::with_capacity(packets),
            chosen: Vec::with_capacity(packets),
            completed: Vec::with_capacity(packets),
            processor: Vec::with_capacity(packets),
        }
    }

    pub(crate) fn arrive(&mut self, arrival: &Arrival) {
        self.bytes.push(arrival.bytes);
        self.sa.push(arrival.sa);
        self.arrived.push(arrival.at.0);
        self.chosen.push(u64::MAX);
        self.completed.push(u64::MAX);
        self.processor.push(u16::MAX);
    }

    pub(crate) fn complete(&mut self, packet: usize, processor: usize, chosen: Time, now: Time) {
        self.chosen[packet] = chosen.0;
        self.completed[packet] = now.0;
        self.processor[packet] = processor as u16;
    }
}

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// Progress was answered with a break.
    Cancelled,
    /// The traffic has no packet, or none beyond the warm-up.
    NoPackets,
    /// The run is longer than the 213 days that a time in picoseconds lasts.
    TooLong,
    /// The scheduler does not take the scenario, which was not made by the reader.
    Scheduler(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Cancelled => f.write_str("the run was broken off"),
            RunError::NoPackets => f.write_str("the traffic has no packet beyond the warm-up"),
            RunError::TooLong => f.write_str("the run takes more than 213 days: is a rate or a time wrong?"),
            RunError::Scheduler(error) => f.write_str(error),
        }
    }
}

impl std::error::Error for RunError {}
