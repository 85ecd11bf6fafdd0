//! The folder of a run of the host model.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use forebay_links::output::{self, Output};
use forebay_page::Made;
use forebay_page::document::Block;
use forebay_sim::{Columns, Document, Outcome, Scenario, Source};

use super::request::{Done, Request, field, write_json};
use crate::columnar::{Runs, write_packets};
use crate::{Error, flat, pages};

/// The page shows what single packets did in runs of up to so many, for it takes 32 bytes for each.
const PLOTTED_MAX: u64 = 1 << 21;

/// What is kept of a run besides its page, scenario, figures and manifest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept {
    /// The outcome's time line, if it has one.
    pub timeline: bool,
    /// The outcome's packets, if it has them.
    pub packets: Option<Packets>,
}

/// How packets are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values.
    Csv,
}

/// Whether a run of a scenario has few enough packets for a page that shows what single packets did.
pub fn plots_packets(scenario: &Scenario) -> bool {
    let limit = scenario.traffic.packets.unwrap_or(u64::MAX);
    let packets = match &scenario.traffic.source {
        Source::Trace(trace) => limit.min(trace.len() as u64),
        Source::Drawn(_) => limit,
    };
    packets <= PLOTTED_MAX
}

/// Writes the folder of a run; `blocks` stand on its page after what all runs show.
///
/// # Errors
/// If the folder cannot be written.
pub fn keep(
    dir: &Path,
    request: Request<'_>,
    scenario: &Scenario,
    outcome: &Outcome,
    kept: Kept,
    made: &Made,
    blocks: Vec<Block>,
) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        super::begin(dir, request.scenario)?;
        let page = pages::simulation(&request.name(), scenario, outcome, made, blocks);
        output::write(dir.join("report.html"), page)?;
        let from = request.scenario.parent().filter(|from| !from.as_os_str().is_empty());
        let from = from.unwrap_or(Path::new(".")).display();
        let head = format!("# All defaults are filled in. Paths are relative to {from}");
        output::write(dir.join("scenario.toml"), format!("{head}\n{}", scenario.resolved_toml()))?;
        write_json(&dir.join("figures.json"), &Document::new(scenario, outcome))?;
        let mut table = Runs::new(&[]);
        table.add(&[], outcome.seed, flat(&outcome.figures));
        table.write(&dir.join("figures.parquet")).map_err(io::Error::other)?;
        let done = Done { runs: 1, of: 1, complete: outcome.cut.is_none() };
        request.write_manifest(dir, Some(outcome.seed), made, done)?;
        if let Some(timeline) = outcome.timeline.as_ref().filter(|_| kept.timeline) {
            let mut out = BufWriter::new(Output::create(&dir.join("timeline.json"))?);
            timeline.write(&mut out)?;
            finish(out)?;
        }
        match (kept.packets, &outcome.columns) {
            (Some(Packets::Parquet), Some(columns)) => {
                write_packets(&dir.join("packets.parquet"), scenario, columns).map_err(io::Error::other)
            }
            (Some(Packets::Csv), Some(columns)) => packets_csv(&dir.join("packets.csv"), scenario, columns),
            _ => Ok(()),
        }
    };
    write().map_err(Error::writing(dir))
}

/// Every packet of a run; of a lost one processor and later times are empty.
fn packets_csv(path: &Path, scenario: &Scenario, columns: &Columns) -> io::Result<()> {
    let mut out = BufWriter::new(Output::create(path)?);
    writeln!(out, "packet,bytes,sa,arrived_ps,chosen_ps,completed_ps,processor")?;
    let Columns { bytes, sa, arrived, chosen, completed, processor } = columns;
    for at in 0..bytes.len() {
        write!(out, "{at},{},{},{},", bytes[at], sa[at], arrived[at])?;
        match scenario.processors.get(usize::from(processor[at])) {
            Some(one) => writeln!(out, "{},{},{}", chosen[at], completed[at], field(&one.name))?,
            None => writeln!(out, ",,")?,
        }
    }
    finish(out)
}

fn finish(out: BufWriter<Output>) -> io::Result<()> {
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}
