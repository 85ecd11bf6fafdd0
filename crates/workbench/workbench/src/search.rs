//! The highest rate that a design carries within bounds (RFC 2544 26.1 for a loss of 0).

use std::ops::ControlFlow;
use std::path::Path;

use forebay_scenario::{Decimal, Unit};
use forebay_sim::{Bound, Document, Highest, Rate, Scenario, Settings};
use forebay_time::Duration;
use serde_json::{Value, json};

use crate::Error;

/// Rates that are searched, in bit/s.
pub const RATES: (u64, u64) = (100_000, 1_000_000_000_000);
/// The rate is found to one part in so many.
pub const PARTS: u64 = 1_000;

/// Searches for the highest rate of the scenario of the file `path` that keeps to `bound`; `None` if not even the lowest
/// of [`RATES`] does. `watch` is called with the share of the search that is done at least, and returns whether to go on:
/// a search that is stopped returns what it has found.
///
/// # Errors
/// [`Error::Unbounded`] if every rate keeps to the bound, or to its loss; [`Error::Cancelled`] if the search is stopped before any rate is
/// known; why a run has no figures.
pub fn highest_rate(
    path: &Path,
    scenario: &Scenario,
    bound: Bound,
    watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<Option<Highest>, Error> {
    let Settings { input, by_class, classes, .. } = &scenario.scheduler;
    let is_limited = input.is_some() || *by_class && classes.iter().any(|one| one.config.input < usize::MAX);
    if !is_limited && (bound.latency.is_none() || bound.loss > 0.0) {
        return Err(Error::Unbounded);
    }
    let mut share = |done: u64, all: u64, (placed, total): (u64, u64)| {
        let part = placed as f64 / total.max(1) as f64;
        watch((done as f64 + part) / all.max(1) as f64)
    };
    forebay_sim::highest_rate(scenario, bound, RATES, PARTS, &mut share)
        .map_err(|error| Error::of_run(path, error))
}

/// A time as scenarios write it: `50 us`.
pub fn time(text: &str) -> Option<Duration> {
    Decimal::parse_quantity(text, Unit::Time).ok()?.scaled(12).map(Duration)
}

/// The search as JSON, with every rate that was tried: `search.json`.
pub fn summary(found: &Highest, bound: Bound) -> Value {
    json!({ "schema": 1, "highest_rate_bps": found.rate, "above_bps": found.above,
        "bounds": bounds(bound), "complete": found.complete, "tried": found.tried })
}

/// The run at the rate that was found as JSON, with that rate: what `forebay simulate --highest-rate --json` prints.
pub fn document(scenario: &Scenario, found: &Highest, bound: Bound) -> Value {
    let at = scenario.with_rate(Rate::per_second(found.rate));
    // Only keys that are no text could fail, and every key is a field's name.
    let mut document = serde_json::to_value(Document::new(&at, &found.outcome)).unwrap_or_default();
    document["highest_rate_bps"] = found.rate.into();
    document["above_bps"] = found.above.into();
    document["complete"] = found.complete.into();
    document["bounds"] = bounds(bound);
    document["resolved"]["traffic"]["rate"] = Value::from(found.rate);
    document
}

fn bounds(bound: Bound) -> Value {
    json!({ "loss": bound.loss, "latency_p99_s": bound.latency.map(Duration::as_secs) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_read_by_the_grammar_of_scenarios() {
        assert_eq!(time("50 us"), Some(Duration::from_micros(50)));
        assert_eq!(time("1.5ms"), Some(Duration::from_micros(1_500)));
        assert_eq!(time("1 min"), Some(Duration::from_secs(60.0)));
        assert_eq!(time("0.5"), Some(Duration::from_micros(500_000)));
        assert!(["us", "-1 s", "5 parsec", ""].into_iter().all(|text| time(text).is_none()));
    }
}
