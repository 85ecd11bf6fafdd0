//! What comes out.

use forebay_processors::Costs;
use serde::Serialize;

/// Break-even sizes of a machine.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// Version of the layout.
    pub schema: u32,
    /// Version of the program.
    pub version: &'static str,
    /// The machine in words.
    pub host: String,
    /// Rounds of each measurement.
    pub rounds: usize,
    /// Length of one measurement in seconds.
    pub slice_s: f64,
    /// The processors, the running core first.
    pub processors: Vec<Named>,
    /// The fitted costs, as `forebay bench processors --save` writes them.
    pub costs: Costs,
    /// What is fitted to the time until answers are back.
    pub responses: Vec<Response>,
    /// Break-evens by suite, device, load, and the fixed quantity: a number of packets or a size.
    pub break_evens: Vec<BreakEven>,
    /// What was not measured, and why.
    pub notes: Vec<String>,
}

impl Document {
    /// Whether every break-even holds.
    pub fn holds(&self) -> bool {
        self.break_evens.iter().all(|one| one.verdict == Verdict::Holds)
    }
}

/// A processor.
#[derive(Clone, Debug, Serialize)]
pub struct Named {
    /// As it was asked for.
    pub word: String,
    /// Its name in the costs; the gateway finds its costs by that.
    pub name: String,
}

/// The time from a hand-over to an idle processor until all answers are back, in the terms of a cost, in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Response {
    /// The processor as it was asked for.
    pub processor: String,
    /// The suite.
    pub proposal: String,
    /// Per job, or group of `lanes` jobs.
    pub init_s: f64,
    /// Per 16-byte block of the ESP packet.
    pub block_s: f64,
    /// Per packet, also where packets are computed side by side.
    pub packet_s: f64,
    /// Per hand-over.
    pub submit_s: f64,
    /// Packets that are computed side by side.
    pub lanes: u32,
}

/// From where on a device is done earlier than the running core.
#[derive(Clone, Debug, Serialize)]
pub struct BreakEven {
    /// The suite.
    pub proposal: String,
    /// The device, as it was asked for.
    pub device: String,
    /// Share of its time that the device is busy with others' packets like these.
    pub load: f64,
    /// Packets that are handed over together, where those are given.
    pub packets: Option<usize>,
    /// Length of the cleartext IP packets in bytes, where that is given.
    pub bytes: Option<usize>,
    /// `from`: from the break-even on the device is earlier; `up-to`: up to it; `always` and `never`: in the whole range.
    pub pays: &'static str,
    /// The break-even by the fitted costs, in bytes or in packets.
    pub at: Option<usize>,
    /// The break-even on the line through the times measured on both sides of it; absent where the same one was earlier on both.
    pub measured: Option<f64>,
    /// What the measurements on both sides say of the predictions there.
    pub verdict: Verdict,
    /// The measurements: half and twice the break-even, or the ends of the range.
    pub sides: Vec<Side>,
}

/// A measurement on one side of a break-even.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Length of the cleartext IP packets in bytes.
    pub bytes: usize,
    /// Packets that are handed over together.
    pub packets: usize,
    /// By the fitted costs.
    pub predicted: Times,
    /// Medians over the rounds.
    pub measured: Times,
    /// Rounds in which the one was earlier that should be by the fitted costs.
    pub agreeing: usize,
    /// All rounds agree with the prediction, none does, or some do.
    pub verdict: Verdict,
}

/// Seconds from the hand-over until all packets are back; of a loaded device the mean.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    /// From the running core, which is idle.
    pub core_s: f64,
    /// From the device.
    pub device_s: f64,
}

impl Times {
    /// Whether the device is done earlier.
    pub fn device_first(&self) -> bool {
        self.device_s < self.core_s
    }
}

/// What a measurement says of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is as predicted.
    Holds,
    /// It is not.
    Fails,
    /// Rounds differ.
    NotDecided,
}

impl Verdict {
    /// Its words.
    pub fn in_words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "does not hold",
            Verdict::NotDecided => "not decided",
        }
    }

    /// Of one side, by the rounds that agree with the prediction.
    pub(super) fn of_rounds(agreeing: usize, rounds: usize) -> Verdict {
        match agreeing {
            0 => Verdict::Fails,
            all if all == rounds => Verdict::Holds,
            _ => Verdict::NotDecided,
        }
    }

    /// Of both sides together.
    pub(super) fn of_sides(sides: &[Side]) -> Verdict {
        let has = |verdict| sides.iter().any(|side| side.verdict == verdict);
        if has(Verdict::Fails) {
            Verdict::Fails
        } else if has(Verdict::NotDecided) {
            Verdict::NotDecided
        } else {
            Verdict::Holds
        }
    }
}

/// Where the lines through both sides meet: the difference of device and core is taken as linear in what is not given.
pub(super) fn crossing(at: [usize; 2], sides: &[Side]) -> Option<f64> {
    let [low, high] = sides else { return None };
    let behind = |side: &Side| side.measured.device_s - side.measured.core_s;
    let (first, last) = (behind(low), behind(high));
    if (first < 0.0) == (last < 0.0) {
        return None;
    }
    let [from, to] = at.map(|at| at as f64);
    Some(from + (to - from) * first / (first - last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(core_s: f64, device_s: f64, verdict: Verdict) -> Side {
        let times = Times { core_s, device_s };
        Side { bytes: 64, packets: 1, predicted: times, measured: times, agreeing: 0, verdict }
    }

    #[test]
    fn lines_through_both_sides_meet_at_the_break_even() {
        let sides = [side(1.0, 3.0, Verdict::Holds), side(5.0, 4.0, Verdict::Holds)];
        assert_eq!(crossing([100, 400], &sides), Some(300.0));
        assert_eq!(crossing([100, 400], &[sides[0].clone(), sides[0].clone()]), None);
        assert_eq!(crossing([100, 400], &sides[..1]), None);
    }

    #[test]
    fn one_side_that_fails_decides() {
        assert_eq!([0, 1, 6, 7].map(|n| Verdict::of_rounds(n, 7)), {
            [Verdict::Fails, Verdict::NotDecided, Verdict::NotDecided, Verdict::Holds]
        });
        let all = |verdicts: [Verdict; 2]| Verdict::of_sides(&verdicts.map(|one| side(1.0, 2.0, one)));
        assert_eq!(all([Verdict::Holds, Verdict::Fails]), Verdict::Fails);
        assert_eq!(all([Verdict::NotDecided, Verdict::Fails]), Verdict::Fails);
        assert_eq!(all([Verdict::NotDecided, Verdict::Holds]), Verdict::NotDecided);
        assert_eq!(all([Verdict::Holds, Verdict::Holds]), Verdict::Holds);
    }
}
