//! The folder of a run: with it, and the version that it names, the run can be had again.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use forebay_page::Made;
use forebay_page::document::Block;
use forebay_sim::{Columns, Document, Outcome, Scenario};
use forebay_workbench::columnar::{Runs, write_packets};
use forebay_workbench::results::Done;
use forebay_workbench::{flat, pages};
use miette::{IntoDiagnostic, WrapErr};
use serde_json::json;

use super::{Format, SimulateArgs};

/// Writes all of a run: page, scenario, figures, manifest, time line, packets; `blocks` go on the page.
pub fn keep(
    dir: &Path,
    args: &SimulateArgs,
    scenario: &Scenario,
    outcome: &Outcome,
    made: &Made,
    blocks: Vec<Block>,
) -> miette::Result<()> {
    let kept = || -> io::Result<()> {
        fs::create_dir_all(dir)?;
        let name = args.scenario.file_name().unwrap_or_default().to_string_lossy();
        let page = pages::simulation(&name, scenario, outcome, made, blocks);
        fs::write(dir.join("report.html"), page)?;
        let from = args.scenario.parent().filter(|from| !from.as_os_str().is_empty());
        let from = from.unwrap_or(Path::new(".")).display();
        let head = format!("# All defaults are filled in. Paths are relative to {from}");
        fs::write(dir.join("scenario.toml"), format!("{head}\n{}", scenario.resolved_toml()))?;
        let figures = serde_json::to_string_pretty(&Document::new(scenario, outcome))?;
        fs::write(dir.join("figures.json"), figures + "\n")?;
        let mut table = Runs::new(&[]);
        table.add(&[], outcome.seed, flat(&outcome.figures));
        table.write(&dir.join("figures.parquet")).map_err(io::Error::other)?;
        let done = Done { runs: 1, of: 1, complete: outcome.cut.is_none() };
        write_manifest(dir, args, Some(outcome.seed), made, done)?;
        if let Some(timeline) = outcome.timeline.as_ref().filter(|_| args.timeline != Some(0)) {
            let mut out = BufWriter::new(File::create(dir.join("timeline.json"))?);
            timeline.write(&mut out)?;
            out.flush()?;
            if timeline.left_out() > 0 && args.timeline.is_some() {
                let later = timeline.left_out();
                eprintln!("timeline.json covers the start of the run; {later} later entries are omitted");
            }
        }
        match (args.columns, &outcome.columns) {
            (Some(Format::Parquet), Some(columns)) => {
                write_packets(&dir.join("packets.parquet"), scenario, columns).map_err(io::Error::other)
            }
            (Some(Format::Csv), Some(columns)) => packets_csv(&dir.join("packets.csv"), scenario, columns),
            _ => Ok(()),
        }
    };
    kept().into_diagnostic().wrap_err_with(|| format!("cannot write {}", dir.display()))
}

/// Writes what the runs in a folder were.
pub fn write_manifest(
    dir: &Path,
    args: &SimulateArgs,
    seed: Option<u64>,
    made: &Made,
    done: Done,
) -> io::Result<()> {
    let manifest = json!({
        "schema": 1,
        "version": made.version,
        "scenario": args.scenario.display().to_string(),
        "set": args.sets,
        "sweep": args.sweeps,
        "replications": args.replications,
        "seed": seed,
        "host": made.host,
        "at": made.at,
        "runs": done.runs,
        "runs_wanted": done.of,
        "complete": done.complete,
    });
    fs::write(dir.join("manifest.json"), serde_json::to_string_pretty(&manifest)? + "\n")
}

/// Every packet of a run; of a lost one processor and later times are empty.
fn packets_csv(path: &Path, scenario: &Scenario, columns: &Columns) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "packet,bytes,sa,arrived_ps,chosen_ps,completed_ps,processor")?;
    let Columns { bytes, sa, arrived, chosen, completed, processor } = columns;
    for at in 0..bytes.len() {
        write!(out, "{at},{},{},{},", bytes[at], sa[at], arrived[at])?;
        match scenario.processors.get(usize::from(processor[at])) {
            Some(one) => {
                writeln!(out, "{},{},{}", chosen[at], completed[at], super::sweep::field(&one.name))?;
            }
            None => writeln!(out, ",,")?,
        }
    }
    out.flush()
}
