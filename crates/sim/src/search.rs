//! The highest rate that a host still carries.

use forebay_time::Duration;

use crate::run::{Options, Outcome, RunError, run};
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
}

/// The highest rate of `least..=most` bit/s that keeps to `bound`, to one part in `parts`; `None` if not
/// even `least` does. Every rate is tried with the same packets (common random numbers); that what a
/// rate keeps all lower ones keep is taken for granted.
pub fn highest_rate(
    scenario: &Scenario,
    bound: Bound,
    (least, most): (u64, u64),
    parts: u64,
) -> Result<Option<Highest>, RunError> {
    let attempt = |rate| -> Result<Option<Highest>, RunError> {
        let outcome = run(&scenario.with_rate(Rate::per_second(rate)), Options::default())?;
        Ok(keeps(&outcome, bound).then_some(Highest { rate, outcome }))
    };
    let least = least.max(1);
    let Some(mut best) = attempt(least)? else { return Ok(None) };
    if let Some(highest) = attempt(most.max(least))? {
        return Ok(Some(highest));
    }
    let mut above = most.max(least);
    while above - best.rate > (best.rate / parts.max(1)).max(1) {
        let middle = best.rate + (above - best.rate) / 2;
        match attempt(middle)? {
            Some(better) => best = better,
            None => above = middle,
        }
    }
    Ok(Some(best))
}

fn keeps(outcome: &Outcome, bound: Bound) -> bool {
    let figures = &outcome.figures;
    let all = figures.packets + figures.lost;
    figures.lost as f64 <= bound.loss * all as f64
        && bound.latency.is_none_or(|most| figures.total_latency.p99_s <= most.as_secs())
}
