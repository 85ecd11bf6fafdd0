//! What is counted between marks of time: batches of one run, and time series.

use forebay_random::{CONFIDENCE, student_t};
use forebay_time::{Duration, PS_PER_S, Time};
use serde::Serialize;

use crate::description::Pipeline;
use crate::figures::Counts;

/// Above this share of the normal law a correlation is no chance.
const SIGNIFICANT: f64 = 2.326;

/// The most intervals of a time series; what comes later is in the last.
pub(crate) const INTERVALS_MAX: u64 = 100_000;

/// What has been counted since the figures began.
#[derive(Clone, Debug, Default)]
struct Tally {
    at: Time,
    generated: u64,
    processed: u64,
    lost: u64,
    delays: u128,
    /// Of each stage the packets in it, times time; those in it now; and the lost ones.
    stages: Vec<(u128, u32, u64)>,
}

/// Marks at equal distances.
#[derive(Clone, Debug)]
struct Ruler {
    begin: Time,
    /// So many marks divide this length.
    length: Duration,
    marks: u64,
    tallies: Vec<Tally>,
}

impl Ruler {
    fn next(&self) -> Time {
        let mark = self.tallies.len() as u64 + 1;
        if mark > self.marks {
            return Time::MAX;
        }
        let since = u128::from(self.length.0) * u128::from(mark) / u128::from(self.marks);
        self.begin + Duration(since as u64)
    }
}

/// The marks of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    batches: Option<Ruler>,
    series: Option<(Duration, Ruler)>,
    /// The next one of all.
    pub next: Option<Time>,
}

impl Marks {
    /// Those of a run whose figures begin now.
    pub fn begin(pipeline: &Pipeline, begin: Time) -> Marks {
        let ruler = |length, marks| Ruler { begin, length, marks, tallies: Vec::new() };
        let length = pipeline.duration.map(|duration| duration - pipeline.warm_up);
        let batches = length.filter(|_| pipeline.batches > 0);
        let series = pipeline.series.map(|step| {
            // Without an end there may be as many as are kept.
            let marks =
                length.map_or(INTERVALS_MAX, |length| length.0.div_ceil(step.0)).clamp(1, INTERVALS_MAX);
            (step, ruler(Duration(step.0.saturating_mul(marks)), marks))
        });
        let mut marks = Marks {
            batches: batches.map(|length| ruler(length, pipeline.batches.into())),
            series,
            next: None,
        };
        marks.find();
        marks
    }

    fn find(&mut self) {
        let rulers = self.batches.iter().chain(self.series.iter().map(|(_, ruler)| ruler));
        self.next = rulers.map(Ruler::next).filter(|next| *next < Time::MAX).min();
    }

    /// Reads the counts at the next mark.
    pub fn pass(&mut self, counts: &Counts) {
        let Some(at) = self.next else { return };
        if let Some(ruler) = self.batches.as_mut().filter(|ruler| ruler.next() == at) {
            ruler.tallies.push(tally(counts, at, false));
        }
        if let Some((_, ruler)) = self.series.as_mut().filter(|(_, ruler)| ruler.next() == at) {
            ruler.tallies.push(tally(counts, at, true));
        }
        self.find();
    }

    /// What came of the run, which ends now.
    pub fn end(
        mut self,
        pipeline: &Pipeline,
        counts: &Counts,
        now: Time,
    ) -> (Option<BatchMeans>, Option<TimeSeries>) {
        if let Some((_, ruler)) = &mut self.series
            && ruler.tallies.last().is_none_or(|last| last.at < now)
            && now > ruler.begin
        {
            ruler.tallies.push(tally(counts, now, true));
        }
        let batches = self.batches.filter(|ruler| ruler.tallies.len() as u64 == ruler.marks);
        let series = self.series.map(|(step, ruler)| TimeSeries::new(pipeline, step, &ruler));
        (batches.map(|ruler| BatchMeans::new(&ruler)), series)
    }
}

fn tally(counts: &Counts, at: Time, stages: bool) -> Tally {
    let each =
        |stage: &crate::figures::StageCounts| (stage.packets.area(at), stage.packets.value(), stage.lost);
    Tally {
        at,
        generated: counts.generated,
        processed: counts.processed,
        lost: counts.stages.iter().map(|stage| stage.lost).sum(),
        delays: counts.delay_sum,
        stages: if stages { counts.stages.iter().map(each).collect() } else { Vec::new() },
    }
}

/// What is between neighbouring marks; the first begins from nothing.
fn differences(ruler: &Ruler) -> Vec<Tally> {
    let first = Tally { at: ruler.begin, ..Tally::default() };
    let before = std::iter::once(&first).chain(&ruler.tallies);
    let of = |(before, after): (&Tally, &Tally)| Tally {
        at: after.at,
        generated: after.generated - before.generated,
        processed: after.processed - before.processed,
        lost: after.lost - before.lost,
        delays: after.delays - before.delays,
        stages: (after.stages.iter().enumerate())
            .map(|(at, &(area, inside, lost))| {
                let &(area_before, _, lost_before) = before.stages.get(at).unwrap_or(&(0, 0, 0));
                (area - area_before, inside, lost - lost_before)
            })
            .collect(),
    };
    before.zip(&ruler.tallies).map(of).collect()
}

/// Means of one run with confidence intervals, from batches of equal time (Law, Simulation Modeling and Analysis, 5th
/// edition, section 9.5.3).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BatchMeans {
    /// How many batches.
    pub batches: usize,
    /// The time of each.
    pub length_s: f64,
    /// Share of such intervals that hold the true mean, if batches are independent.
    pub confidence: f64,
    /// Whether no correlation of neighbouring batches is larger than chance makes it (1 % at most).
    pub independent: bool,
    /// Packets processed a second.
    pub throughput_pps: BatchMean,
    /// Lost over generated.
    pub loss_probability: BatchMean,
    /// Mean delay in seconds.
    pub delay_mean_s: BatchMean,
}

/// A figure of a run, how sure it is, and how much neighbouring batches have in common.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BatchMean {
    /// That of the whole run; not a number, `null` in JSON, if there is nothing that it could be of.
    pub mean: f64,
    /// Half the width of its interval. Without any loss a loss ratio is up to 3 / packets (95 %), whatever the batches.
    pub half_width: f64,
    /// Correlation of each batch with the next.
    pub lag_1: f64,
}

impl BatchMean {
    /// The ratio of two sums over batches.
    fn of(pairs: &[(f64, f64)]) -> BatchMean {
        let count = pairs.len() as f64;
        let (above, below) = pairs.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
        if below == 0.0 {
            return BatchMean { mean: f64::NAN, half_width: f64::NAN, lag_1: 0.0 };
        }
        let mean = above / below;
        let off: Vec<f64> = pairs.iter().map(|(above, below)| above - mean * below).collect();
        let square: f64 = off.iter().map(|off| off * off).sum();
        let both: f64 = off.windows(2).map(|two| two[0] * two[1]).sum();
        let error = (square / (count - 1.0) / count).sqrt() / (below / count);
        let half_width = student_t(CONFIDENCE, pairs.len() as u64 - 1) * error;
        BatchMean { mean, half_width, lag_1: if square > 0.0 { both / square } else { 0.0 } }
    }
}

impl BatchMeans {
    fn new(ruler: &Ruler) -> BatchMeans {
        let all = differences(ruler);
        let length_s = ruler.length.as_secs() / all.len() as f64;
        let of =
            |pair: &dyn Fn(&Tally) -> (f64, f64)| BatchMean::of(&all.iter().map(pair).collect::<Vec<_>>());
        let mut loss = of(&|one| (one.lost as f64, one.generated as f64));
        if loss.mean == 0.0 {
            let packets: u64 = all.iter().map(|one| one.generated).sum();
            loss.half_width = (3.0 / packets.max(1) as f64).min(1.0);
        }
        let delay = of(&|one| (one.delays as f64 / PS_PER_S as f64, one.processed as f64));
        let throughput = of(&|one| (one.processed as f64, length_s));
        let bound = SIGNIFICANT / (all.len() as f64).sqrt();
        BatchMeans {
            batches: all.len(),
            length_s,
            confidence: CONFIDENCE,
            independent: [loss, delay, throughput].iter().all(|one| one.lag_1 <= bound),
            throughput_pps: throughput,
            loss_probability: loss,
            delay_mean_s: delay,
        }
    }

    /// What makes its intervals too narrow, if anything.
    pub fn warning(&self) -> Option<String> {
        let all = [
            ("delay", self.delay_mean_s),
            ("throughput", self.throughput_pps),
            ("loss", self.loss_probability),
        ];
        let (name, worst) = all.into_iter().max_by(|a, b| a.1.lag_1.total_cmp(&b.1.lag_1))?;
        (!self.independent).then(|| {
            format!(
                "batch means: neighbouring batches are correlated ({name} by {:.2}), so the intervals are too narrow: \
                 raise `duration`, or lower `batches`",
                worst.lag_1
            )
        })
    }
}

/// What happened in each of many intervals, by columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeSeries {
    /// The length of all but the last, which may be shorter.
    pub interval_s: f64,
    /// When each ends.
    pub end_s: Vec<f64>,
    /// Packets that came.
    pub generated: Vec<u64>,
    /// Packets that left.
    pub processed: Vec<u64>,
    /// Packets lost in all stages.
    pub lost: Vec<u64>,
    /// Mean delay of those that left; `None` if none did.
    pub delay_mean_s: Vec<Option<f64>>,
    /// Each stage, in order.
    pub stages: Vec<StageSeries>,
}

/// A stage in each interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageSeries {
    /// Its name.
    pub name: String,
    /// Mean number of packets in it.
    pub mean_occupancy: Vec<f64>,
    /// Packets in it at the end.
    pub inside: Vec<u32>,
    /// Packets that found it full.
    pub lost: Vec<u64>,
}

impl TimeSeries {
    fn new(pipeline: &Pipeline, step: Duration, ruler: &Ruler) -> TimeSeries {
        let all = differences(ruler);
        let ends: Vec<Time> = all.iter().map(|one| one.at).collect();
        let begins = std::iter::once(ruler.begin).chain(ends.iter().copied());
        let lengths: Vec<f64> =
            begins.zip(&ends).map(|(begin, end)| end.since(begin).0.max(1) as f64).collect();
        let delay = |one: &Tally| {
            let sum = one.delays as f64 / PS_PER_S as f64;
            (one.processed > 0).then(|| sum / one.processed as f64)
        };
        let stage = |(at, stage): (usize, &crate::Stage)| StageSeries {
            name: stage.name.clone(),
            mean_occupancy: all
                .iter()
                .zip(&lengths)
                .map(|(one, time)| one.stages[at].0 as f64 / time)
                .collect(),
            inside: all.iter().map(|one| one.stages[at].1).collect(),
            lost: all.iter().map(|one| one.stages[at].2).collect(),
        };
        TimeSeries {
            interval_s: step.as_secs(),
            end_s: ends.iter().map(|end| end.since(Time::ZERO).as_secs()).collect(),
            generated: all.iter().map(|one| one.generated).collect(),
            processed: all.iter().map(|one| one.processed).collect(),
            lost: all.iter().map(|one| one.lost).collect(),
            delay_mean_s: all.iter().map(delay).collect(),
            stages: pipeline.stages.iter().enumerate().map(stage).collect(),
        }
    }

    /// As comma-separated values, a line for each interval; a stage's columns have its name in front.
    pub fn csv(&self) -> String {
        let quoted = |name: String| match name.contains([',', '"', '\n']) {
            true => format!("\"{}\"", name.replace('"', "\"\"")),
            false => name,
        };
        let mut text = "end_s,generated,processed,lost,delay_mean_s".to_owned();
        for stage in &self.stages {
            for column in ["mean_occupancy", "inside", "lost"] {
                text += &format!(",{}", quoted(format!("{}.{column}", stage.name)));
            }
        }
        text.push('\n');
        for at in 0..self.end_s.len() {
            let delay = self.delay_mean_s[at].map_or_else(String::new, |delay| delay.to_string());
            text += &format!(
                "{},{},{},{},{delay}",
                self.end_s[at], self.generated[at], self.processed[at], self.lost[at]
            );
            for stage in &self.stages {
                text += &format!(",{},{},{}", stage.mean_occupancy[at], stage.inside[at], stage.lost[at]);
            }
            text.push('\n');
        }
        text
    }
}
