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

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use forebay_processors::Backend;
use miette::{IntoDiagnostic, WrapErr};

use super::compare::{Comparison, Pair};
use super::{emulated, packets, page, simulated};
use crate::measured::Error;

/// What is compared.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Packets at each rate.
    pub packets: u64,
    /// Offered cleartext traffic of each run, such as `400 Mbit/s`; if there is none, [`RATES`].
    pub rates: Vec<String>,
    /// Emulated cards of 230 Mbit/s on a 66 MHz bus.
    pub cards: usize,
    /// Completed jobs that a card can hold for the bus while it computes the next.
    pub write_buffer: usize,
    /// Jobs that a card prefetches.
    pub prefetch: usize,
    /// Maximum queue length of each processor, in jobs.
    pub queue: usize,
    /// Factor on the predicted finish time of the running core.
    pub alpha: f64,
    /// Sliding window in packets; 1 disables bundling.
    pub window: usize,
    /// Number of SAs, which are equally likely.
    pub sas: usize,
    /// Mean length of the cleartext packets in bytes.
    pub mean: u32,
    /// Seed of the random packets.
    pub seed: u64,
    /// Cipher suite, in swanctl notation.
    pub proposal: String,
    /// Crypto library of the running core.
    pub backend: Backend,
    /// Clock of the engine.
    pub clock: EngineClock,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            packets: 100_000,
            rates: Vec::new(),
            cards: 2,
            write_buffer: 0,
            prefetch: 0,
            queue: 1_000,
            alpha: 400.0,
            window: 1,
            sas: 4,
            mean: 471,
            seed: 1,
            proposal: "aes128gcm16".to_owned(),
            backend: Backend::Auto,
            clock: EngineClock::Thread,
        }
    }
}

/// What the engine takes for time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineClock {
    /// CPU time of the engine's thread, so that other load on the machine does not affect the comparison.
    Thread,
    /// Wall-clock time; requires a dedicated core.
    Wall,
}

/// Below what two cards do, near it, and beyond it.
pub const RATES: [&str; 3] = ["200 Mbit/s", "400 Mbit/s", "1 Gbit/s"];

impl Settings {
    /// The rates that are compared.
    pub fn rates(&self) -> Vec<String> {
        match self.rates.is_empty() {
            true => RATES.map(str::to_owned).to_vec(),
            false => self.rates.clone(),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let limits: [(&str, u64, u64, u64); 7] = [
            ("packets", self.packets, 1, 10_000_000),
            ("cards", self.cards as u64, 1, 64),
            ("queue", self.queue as u64, 1, 100_000),
            ("window", self.window as u64, 1, 64),
            ("sas", self.sas as u64, 1, 250),
            ("mean", self.mean.into(), 41, 1_400),
            ("prefetch", self.prefetch.max(self.write_buffer) as u64, 0, 1_000),
        ];
        for (name, value, least, most) in limits {
            if !(least..=most).contains(&value) {
                return Err(Error::range(name, value, format_args!("{least} to {most}")));
            }
        }
        if !(1.0..=1e9).contains(&self.alpha) {
            return Err(Error::range("alpha", self.alpha, "1 to 1e9"));
        }
        Ok(())
    }
}

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
        let written = fs::write(&path, text).into_diagnostic();
        written.wrap_err_with(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
