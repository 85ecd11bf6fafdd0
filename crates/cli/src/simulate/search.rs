//! `--highest-rate`: the most that a design carries within bounds.

use forebay_sim::{Bound, Document, Figures, Rate, Scenario, highest_rate};
use forebay_time::Duration;
use forebay_workbench::pages;
use miette::{IntoDiagnostic, WrapErr, miette};
use serde_json::{Value, json};

use super::SimulateArgs;
use forebay_terminal::Answer;
use forebay_terminal::progress::{self, Progress};

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
            help = "set `--latency \"1 ms\"` (for the 99 % quantile), or limit the input queue with `--set scheduler.input=1000`",
            "an unlimited input queue loses nothing at any rate"
        ));
    }
    let bound = Bound { loss: args.loss, latency };
    let mut bar = Progress::share("searching");
    let mut watch = |done: u64, all: u64, (placed, total): (u64, u64)| {
        let part = placed as f64 / total.max(1) as f64;
        bar.at((progress::WHOLE as f64 * (done as f64 + part) / all.max(1) as f64) as u64);
        progress::go_on()
    };
    let found = highest_rate(&scenario, bound, RATES, PARTS, &mut watch);
    bar.finish();
    let found = found.map_err(|error| super::failed(args, error))?;
    let Some(found) = found else {
        let (least, _) = RATES;
        eprintln!("the bounds are exceeded even at {least} bit/s");
        return Ok(Answer::No);
    };
    let bounds = json!({ "loss": bound.loss, "latency_p99_s": latency.map(Duration::as_secs) });
    if let Some(dir) = &args.out {
        // The run at the rate found, as a run of its own would be kept.
        let mut sets = args.sets.clone();
        sets.push(format!("traffic.rate={}", found.rate));
        let at = Scenario::load(&args.scenario, &sets)?;
        super::folder::keep(
            dir,
            args,
            &at,
            &found.outcome,
            &crate::study::made()?,
            pages::search(&found, bound),
        )?;
        let document = json!({ "schema": 1, "highest_rate_bps": found.rate, "above_bps": found.above,
            "bounds": bounds, "complete": found.complete, "tried": found.tried });
        let written = std::fs::write(dir.join("search.json"), format!("{document:#}\n"));
        written.into_diagnostic().wrap_err_with(|| format!("cannot write {}", dir.display()))?;
    }
    let answer = if found.complete { Answer::Yes } else { Answer::Interrupted };
    if args.json {
        let at = scenario.with_rate(Rate::per_second(found.rate));
        let mut document = serde_json::to_value(Document::new(&at, &found.outcome)).into_diagnostic()?;
        document["highest_rate_bps"] = found.rate.into();
        document["above_bps"] = found.above.into();
        document["complete"] = found.complete.into();
        document["bounds"] = bounds;
        document["resolved"]["traffic"]["rate"] = Value::from(found.rate);
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
        return Ok(answer);
    }
    let Figures { total_latency, lost, packets, .. } = &found.outcome.figures;
    match (found.complete, found.above) {
        (true, _) => {
            println!("highest rate: {:.3} Mbit/s (to one part in {PARTS})", found.rate as f64 / 1e6);
        }
        (false, above) => {
            let above = above.map_or(String::new(), |above| format!(" and below {:.3}", above as f64 / 1e6));
            println!(
                "interrupted: the highest rate is at least {:.3}{above} Mbit/s",
                found.rate as f64 / 1e6
            );
        }
    }
    println!(
        "at this rate: {lost} of {} packets lost, 99 % quantile of the total latency {:.3} us\n",
        packets + lost,
        total_latency.p99_s * 1e6
    );
    super::print(&found.outcome);
    Ok(answer)
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
