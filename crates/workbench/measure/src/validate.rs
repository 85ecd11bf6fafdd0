//! The engine with emulated cards beside the simulator, on the same packets.
//!
//! ```text
//!                 +--> engine: real crypto, real bytes, a clock that runs --+
//! drawn packets --+    running core, emulated cards on one bus              +--> compared
//!                 +--> simulator: the same cards, bus, scheduler, costs ----+
//! ```
//!
//! The engine goes first. What it tells the simulator is only what no scenario can know: how long the
//! packets are once they are sealed, and what the running core takes for them.

mod compare;
mod cores;
mod emulated;
mod packets;
mod page;
mod settings;
mod simulated;
mod words;

use std::ops::ControlFlow;
use std::path::Path;

use forebay_links::output;
use miette::{IntoDiagnostic, WrapErr};

use crate::Error;
use compare::Pair;

pub use compare::{Comparison, Figures, Line, Processor, Real, Run};
pub use cores::{CoresSettings, cores};
pub use settings::{EngineClock, RATES, Settings};
pub use words::{value, verdict, why};

/// Runs engine and simulator at each rate and compares them. `host` is the machine in words. The scenario and the packets
/// of the simulator are kept in `dir`, if it is given. `watch` is called with the packets that have passed the engine, of
/// all rates together, and returns whether to go on.
///
/// # Errors
/// If a setting is out of range, the engine or the simulator fails, `dir` cannot be written, or `watch` stops the work.
pub fn validate(
    settings: &Settings,
    host: &str,
    dir: Option<&Path>,
    mut watch: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Comparison, Error> {
    settings.check()?;
    let passing = match dir {
        Some(_) => None,
        None => Some(tempfile::tempdir().into_diagnostic().wrap_err("cannot create a temporary directory")?),
    };
    let mut pairs: Vec<Pair> = Vec::new();
    for (number, rate) in settings.rates().into_iter().enumerate() {
        let packets = packets::draw(settings, &rate)?;
        let begun = number as u64 * settings.packets;
        let engine = emulated::run(settings, &packets, |done| watch(begun + done))?;
        let dir = dir.or(passing.as_ref().map(tempfile::TempDir::path)).unwrap_or(Path::new("."));
        let dir = dir.join(format!("rate-{}", number + 1));
        let simulator = simulated::run(settings, &dir, &packets, &engine)?;
        pairs.push(Pair { rate, engine: engine.figures, simulator });
    }
    Ok(Comparison::new(settings, host, pairs))
}

/// Writes `report.html` and `figures.json`.
///
/// # Errors
/// If `dir` cannot be written.
pub fn keep(dir: &Path, comparison: &Comparison) -> Result<(), Error> {
    let json = serde_json::to_string_pretty(comparison).into_diagnostic()?;
    for (name, text) in [("report.html", page::render(comparison)), ("figures.json", json + "\n")] {
        let path = dir.join(name);
        let written = output::write(&path, text).into_diagnostic();
        written.wrap_err_with(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
