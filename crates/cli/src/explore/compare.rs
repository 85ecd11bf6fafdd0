//! `forebay explore compare`: runs side by side.

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_embedded::Figures;
use forebay_embedded::report::{self, Point};
use miette::{IntoDiagnostic, WrapErr, miette};
use serde_json::{Value, json};

use crate::study::made;
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
    let points = args.runs.iter().map(|dir| load(dir)).collect::<miette::Result<Vec<_>>>()?;
    if let Some(path) = &args.page {
        std::fs::write(path, report::points("comparison", &points, &made()?))
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write {}", path.display()))?;
    }
    let rows = rows(&points);
    if args.json {
        let row = |(name, values): &(String, Vec<f64>)| json!({ "figure": name, "values": values });
        let document = json!({
            "schema": 1,
            "runs": points.iter().map(|one| &one.name).collect::<Vec<_>>(),
            "figures": rows.iter().map(row).collect::<Vec<_>>(),
        });
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
        return Ok(Answer::Yes);
    }
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

fn load(dir: &Path) -> miette::Result<Point> {
    let path = dir.join("figures.json");
    let help = "give directories written by `forebay explore run --out DIR`";
    let text = std::fs::read_to_string(&path)
        .map_err(|error| miette!(help = help, "{}: {error}", path.display()))?;
    let wrong = |error: serde_json::Error| miette!(help = help, "{}: {error}", path.display());
    let mut document: Value = serde_json::from_str(&text).map_err(wrong)?;
    let figures: Figures = serde_json::from_value(document["figures"].take()).map_err(wrong)?;
    Ok(Point { name: dir.display().to_string(), values: Vec::new(), figures })
}

/// Every figure that any of the runs has, and its values; zero where a run lacks it.
fn rows(points: &[Point]) -> Vec<(String, Vec<f64>)> {
    let all: Vec<Vec<(String, f64)>> = points.iter().map(|one| one.figures.row()).collect();
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    for (at, row) in all.iter().enumerate() {
        for (name, value) in row {
            let known = rows.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                rows.push((name.clone(), vec![0.0; all.len()]));
                rows.len() - 1
            });
            rows[known].1[at] = *value;
        }
    }
    rows
}
