//! The highest rate that a host still carries.

use std::ops::ControlFlow;

use forebay_time::Duration;

use crate::outcome::{Options, Outcome, RunError};
use crate::run::run;
use crate::scenario::Scenario;
use crate::traffic::Rate;

/// What a rate has to keep to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The largest share of packets lost, 0 for the no-drop rate; counts with `scheduler.input` only, for an
    /// input without limit loses nothing.
    pub loss: f64,
    /// The largest 99 % quantile of the total latency; `None`: any.
    pub latency: Option<Duration>,
}

/// The end of a search.
#[derive(Debug)]
pub struct Highest {
    /// In bit/s.
    pub rate: u64,
    /// The run at this rate.
    pub outcome: Outcome,
    /// The lowest rate that was found not to keep the bound; `None`: none was.
    pub above: Option<u64>,
    /// Whether the search came to its end, or was broken off.
    pub complete: bool,
    /// Every rate that was tried, in order.
    pub tried: Vec<Tried>,
}

/// A rate that was tried.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Tried {
    /// In bit/s.
    pub rate_bps: u64,
    /// Share of the packets that were lost.
    pub loss: f64,
    /// 99 % quantile of the total latency.
    pub latency_p99_s: f64,
    /// What left the host, in bit/s.
    pub throughput_bps: f64,
    /// Whether the host carried it: queues had not absorbed more than a hundredth of the run when the last packet came.
    pub carried: bool,
    /// Whether it keeps to the bound.
    pub keeps: bool,
}

/// Receives the number of runs done, the maximum number of runs, and for the run in progress the packets placed and
/// their total; may stop the search.
pub type Watch<'a> = &'a mut dyn FnMut(u64, u64, (u64, u64)) -> ControlFlow<()>;

/// The highest rate of `least..=most` bit/s that the host carries and that keeps to `bound`, to one part in `parts`;
/// `None` if not even `least` does. In a short run queues can absorb what the host does not carry: what is left in them
/// when the last packet has come has to be gone after a hundredth of the time in which all came. Every rate is tried with the same packets (common random numbers); that what a
/// rate keeps all lower ones keep is taken for granted. A search that is broken off gives what it has found.
pub fn highest_rate(
    scenario: &Scenario,
    bound: Bound,
    (least, most): (u64, u64),
    parts: u64,
    watch: Watch<'_>,
) -> Result<Option<Highest>, RunError> {
    let (least, most) = (least.max(1), most.max(least.max(1)));
    let mut tried: Vec<Tried> = Vec::new();
    // An interval is halved until it is a share 1 / parts of where it begins.
    let halvings = |from: u64, to: u64| {
        let parts = u128::from(to.saturating_sub(from)) * u128::from(parts) / u128::from(from);
        u64::from(parts.max(1).ilog2()) + 1
    };
    let mut attempt = |rate, left: u64, tried: &mut Vec<Tried>| {
        let done = tried.len() as u64;
        let mut progress = |placed, total| watch(done, done + left, (placed, total));
        let options = Options { progress: Some(&mut progress), ..Options::default() };
        let outcome = run(&scenario.with_rate(Rate::per_second(rate)), options)?;
        let (figures, carried) = (&outcome.figures, carried(&outcome));
        let keeps = carried && keeps(&outcome, bound);
        tried.push(Tried {
            rate_bps: rate,
            loss: figures.lost as f64 / (figures.packets + figures.lost) as f64,
            latency_p99_s: figures.total_latency.p99_s,
            throughput_bps: figures.throughput_bps,
            carried,
            keeps,
        });
        Ok(keeps.then_some(outcome))
    };
    let Some(outcome) = attempt(least, 2 + halvings(least, most), &mut tried)? else { return Ok(None) };
    let mut best = Highest { rate: least, outcome, above: None, complete: true, tried: Vec::new() };
    let mut next = most;
    loop {
        let left = halvings(best.rate, best.above.unwrap_or(most));
        match attempt(next, left, &mut tried) {
            Ok(Some(outcome)) => best = Highest { rate: next, outcome, ..best },
            Ok(None) => best.above = Some(next),
            Err(RunError::Cancelled) => best.complete = false,
            Err(error) => return Err(error),
        }
        match best.above {
            Some(above) if best.complete && above - best.rate > (best.rate / parts.max(1)).max(1) => {
                next = best.rate + (above - best.rate) / 2;
            }
            _ => return Ok(Some(Highest { tried, ..best })),
        }
    }
}

/// The share of a run that queues may absorb.
const ABSORBED: f64 = 0.01;

fn carried(outcome: &Outcome) -> bool {
    let drain_s = outcome.drain.as_secs();
    drain_s <= ABSORBED * (outcome.figures.elapsed_s - drain_s)
}

fn keeps(outcome: &Outcome, bound: Bound) -> bool {
    let figures = &outcome.figures;
    let all = figures.packets + figures.lost;
    figures.lost as f64 <= bound.loss * all as f64
        && bound.latency.is_none_or(|most| figures.total_latency.p99_s <= most.as_secs())
}
