//! `forebay bench scheduler`: real processors of this machine behind the engine, by every policy.
//!
//! ```text
//!                                     +--> running core
//! packets in memory --> engine -------+--> lanes, cards        --> order checked, counted
//!   closed loop: as fast as they go   (policy, window)
//!   open loop: at drawn times, 50 % and 90 % of that
//! ```
//!
//! Each policy is held against two limits: the sum of what each processor does alone through the same engine, and
//! the best fixed split of the packets that a search finds. Rounds go through all configurations before the next
//! round begins, so that a machine that changes its speed changes it for all; medians are reported.

mod args;
mod figures;
mod measure;
mod report;
mod table;

use miette::{IntoDiagnostic, WrapErr};

pub use args::SchedulerArgs;
use forebay_terminal::{Answer, progress};

/// Runs the command.
pub fn run(args: &SchedulerArgs) -> miette::Result<Answer> {
    let plan = args.plan()?;
    if let Some(dir) = &args.out {
        let made = std::fs::create_dir_all(dir).into_diagnostic();
        made.wrap_err_with(|| format!("cannot make {}", dir.display()))?;
    }
    let document = measure::measure(&plan)?;
    let json = serde_json::to_string_pretty(&document).into_diagnostic()?;
    if let Some(dir) = &args.out {
        for (name, text) in
            [("report.html", report::render(&document)), ("figures.json", json.clone() + "\n")]
        {
            let path = dir.join(name);
            let written = std::fs::write(&path, text).into_diagnostic();
            written.wrap_err_with(|| format!("cannot write {}", path.display()))?;
        }
    }
    if args.json {
        println!("{json}");
    } else {
        print!("{}", table::table(&document, progress::is_coloured()));
    }
    Ok(Answer::Yes)
}
