//! `--highest-rate`: the most that a design carries within bounds.

use forebay_sim::{Bound, Figures, Scenario};
use forebay_workbench::results;
use forebay_workbench::search::{self, PARTS, RATES, document, highest_rate};
use miette::{IntoDiagnostic, miette};

use super::SimulateArgs;
use crate::request::{made, report};
use forebay_terminal::Answer;
use forebay_terminal::progress::{self, Progress};

/// Searches.
pub fn run(args: &SimulateArgs, scenario: &Scenario) -> miette::Result<Answer> {
    let latency = args.latency.as_deref().map(|text| {
        let wrong =
            || miette!(help = "for example --latency \"500 us\"", "--latency {text}: expected a time");
        search::time(text).ok_or_else(wrong)
    });
    let bound = Bound { loss: args.loss, latency: latency.transpose()? };
    let mut bar = Progress::share("searching");
    let mut watch = |share: f64| {
        bar.at((progress::WHOLE as f64 * share) as u64);
        progress::go_on()
    };
    let found = highest_rate(&args.scenario, scenario, bound, &mut watch);
    bar.finish();
    let Some(found) = found.map_err(report)? else {
        let (least, _) = RATES;
        eprintln!(
            "the bounds are exceeded even at {least} bit/s, or the run has too few packets to show that the host carries it: \
             set a larger `traffic.packets`"
        );
        return Ok(Answer::No);
    };
    if let Some(dir) = &args.out {
        let kept = results::keep_search(dir, args.request(), &found, bound, args.kept(), &made()?);
        kept.map_err(report)?;
        args.say_what_is_left_out(&found.outcome);
    }
    let answer = if found.complete { Answer::Yes } else { Answer::Interrupted };
    if args.json {
        let document = document(scenario, &found, bound);
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
