//! `--highest-rate`: the most that a design carries within bounds.

use forebay_sim::{Bound, Document, Figures, Rate, Scenario, highest_rate};
use forebay_time::Duration;
use miette::{IntoDiagnostic, miette};
use serde_json::{Value, json};

use super::SimulateArgs;
use crate::Answer;

/// Rates that are searched, in bit/s.
const RATES: (u64, u64) = (100_000, 1_000_000_000_000);
/// The rate is found to one part in so many.
const PARTS: u64 = 1_000;

/// Searches.
pub fn run(args: &SimulateArgs) -> miette::Result<Answer> {
    let scenario = Scenario::load(&args.scenario, &args.sets)?;
    let latency = args.latency.as_deref().map(time).transpose()?;
    if scenario.scheduler.input.is_none() && latency.is_none() {
        return Err(miette!(
            help = "give --latency \"1 ms\" (for the 99 % quantile), or the scenario a limit: --set scheduler.input=1000",
            "an input without limit loses nothing at any rate"
        ));
    }
    let bound = Bound { loss: args.loss, latency };
    let found = highest_rate(&scenario, bound, RATES, PARTS).map_err(|error| miette!("{error}"))?;
    let Some(found) = found else {
        let (least, _) = RATES;
        eprintln!("not even {least} bit/s is carried within the bounds");
        return Ok(Answer::No);
    };
    let bounds = json!({ "loss": bound.loss, "latency_p99_s": latency.map(Duration::as_secs) });
    if args.json {
        let at = scenario.with_rate(Rate::per_second(found.rate));
        let mut document = serde_json::to_value(Document::new(&at, &found.outcome)).into_diagnostic()?;
        document["highest_rate_bps"] = found.rate.into();
        document["bounds"] = bounds;
        document["resolved"]["traffic"]["rate"] = Value::from(found.rate);
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
        return Ok(Answer::Yes);
    }
    let Figures { total_latency, lost, packets, .. } = &found.outcome.figures;
    println!("highest rate: {:.3} Mbit/s (to one part in {PARTS})", found.rate as f64 / 1e6);
    println!(
        "at it: {lost} of {} packets lost, total latency 99 % {:.3} us\n",
        packets + lost,
        total_latency.p99_s * 1e6
    );
    super::print(&found.outcome);
    Ok(Answer::Yes)
}

/// A time as scenarios write it: `50 us`.
fn time(text: &str) -> miette::Result<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic() || c.is_whitespace());
    let unit = match text[digits.len()..].trim() {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        _ => f64::NAN,
    };
    let seconds = digits.trim().parse::<f64>().unwrap_or(f64::NAN) * unit;
    match (0.0..=1e6).contains(&seconds) {
        true => Ok(Duration::from_secs(seconds)),
        false => Err(miette!(help = "for example --latency \"500 us\"", "--latency {text}: expected a time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("50 us").unwrap(), Duration::from_micros(50));
        assert_eq!(time("1.5ms").unwrap(), Duration::from_micros(1_500));
        assert!(["50", "us", "-1 s", "5 min", ""].into_iter().all(|text| time(text).is_err()));
    }
}
