//! `forebay explore compare`: runs side by side.

use std::path::PathBuf;

use clap::Args;
use forebay_embedded::report;
use forebay_workbench::explore::{comparison, rows};
use forebay_workbench::results::explore::load;
use miette::{IntoDiagnostic, WrapErr};

use crate::request;
use forebay_terminal::Answer;

/// Arguments of `forebay explore compare`.
#[derive(Args)]
pub struct CompareArgs {
    /// Output directories of `explore run --out`; ratios are relative to the first.
    #[arg(required = true, num_args = 2.., value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
    /// Write an HTML page with all runs.
    #[arg(long, value_name = "HTML")]
    page: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &CompareArgs) -> miette::Result<Answer> {
    forebay_terminal::refuse_inputs(&args.page, args.runs.iter().map(|dir| dir.join("figures.json")))?;
    let points =
        args.runs.iter().map(|dir| load(dir)).collect::<Result<Vec<_>, _>>().map_err(request::report)?;
    if let Some(path) = &args.page {
        forebay_links::output::write(path, report::points("comparison", &points, &request::made()?))
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        println!("{:#}", comparison(&points));
        return Ok(Answer::Yes);
    }
    let rows = rows(&points);
    print!("{:24}", "");
    points.iter().for_each(|one| print!(" {:>24}", tail(&one.name)));
    println!();
    for (name, values) in &rows {
        print!("{name:24}");
        for (at, value) in values.iter().enumerate() {
            let value_text = if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") };
            let ratio = match at {
                0 => String::new(),
                _ if *value == 0.0 => "-".to_owned(),
                _ => format!("{:.2}x", values[0] / value),
            };
            print!(" {value_text:>16} {ratio:>7}");
        }
        println!();
    }
    Ok(Answer::Yes)
}

/// The end of a long name.
fn tail(name: &str) -> String {
    let skip = name.chars().count().saturating_sub(24);
    name.chars().skip(skip).collect()
}
