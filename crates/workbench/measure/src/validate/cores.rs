//! The engine on several cores beside the simulator's machine of equal cores, on the same packets.
//!
//! ```text
//!               +--> engine: one on each core, one SA, one input, a clock that runs --+
//! drawn packets-+                                                                     +--> compared
//!               +--> simulator: [cores] with the times of one core's steps -----------+
//! ```
//!
//! The times are measured in the same round: to take and to complete, by cores that do it in turn, so that each finds what they
//! share in another's cache but waits for nobody; of the crypto, by all cores at once. Who then waits for whom is what the model
//! has to foresee. It knows nothing of moments without a CPU, nor of what it costs that two cores write to one place at once.

mod bench;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path as FilePath;

use forebay_crypto::Suite;
use forebay_links::output;
use forebay_loadgen::median::median;
use forebay_processors::Backend;
use forebay_sim::{Options, Scenario, Stream};
use forebay_time::Duration;
use miette::{IntoDiagnostic, WrapErr, miette};

use super::compare::{Comparison, Figures, Line, Run};
use super::emulated::percentiles;
use crate::Error;
use crate::esp::BURST;
use bench::Bench;

/// Throughput may differ by this share.
const THROUGHPUT: f64 = 0.05;
/// The mean latency may differ by this share, where the load leaves one.
const LATENCY: f64 = 0.10;
/// Rounds, of whose figures the medians count; odd.
const ROUNDS: usize = 15;
/// Offered traffic as a share of what the model carries, by name; the last one is more than that.
const LOADS: [(&str, f64); 3] = [("50 % load", 0.5), ("80 % load", 0.8), ("saturated", 1000.0)];

/// What is compared.
#[derive(Clone, Debug)]
pub struct CoresSettings {
    /// Cores, a thread each.
    pub cores: usize,
    /// Packets of a run.
    pub packets: u64,
    /// Length of the cleartext packets, in bytes.
    pub size: usize,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Cipher suite, in swanctl notation.
    pub proposal: String,
    /// Crypto library of the cores.
    pub backend: Backend,
}

impl CoresSettings {
    fn check(&self) -> Result<(), Error> {
        let limits = [
            ("cores", self.cores as u64, 1, 64),
            ("packets", self.packets, 1_000, 1_000_000),
            ("size", self.size as u64, 28, 9_000),
        ];
        for (name, value, least, most) in limits {
            if !(least..=most).contains(&value) {
                return Err(Error::range(name, value, format_args!("{least} to {most}")));
            }
        }
        Ok(())
    }
}

/// Runs engine and simulator at each load and compares them. `host` is the machine in words. The scenarios of the last round are
/// kept in `dir`, if it is given. `watch` is called with the rounds that are done and rounds in all, and returns whether to go on.
///
/// # Errors
/// If a setting is out of range, the engine or the simulator fails, `dir` cannot be written, or `watch` stops the work.
pub fn cores(
    settings: &CoresSettings,
    host: &str,
    dir: Option<&FilePath>,
    mut watch: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Comparison, Error> {
    settings.check()?;
    let suite: Suite = settings.proposal.parse()?;
    let mut bench = Bench::new(settings, suite)?;
    let mut sides: [Vec<[Figures; 2]>; LOADS.len()] = Default::default();
    for round in 0..ROUNDS {
        if watch(round as u64, ROUNDS as u64).is_break() {
            return Err(Error::Cancelled);
        }
        let times = bench.times()?;
        for (number, ((_, load), sides)) in LOADS.iter().zip(&mut sides).enumerate() {
            let rate = load * times.carries(settings.cores);
            let text = times.scenario(settings, round, rate);
            let scenario = Scenario::parse(&text, "the cores", &[], FilePath::new("."))?;
            if let Some(dir) = dir {
                keep(&dir.join(format!("load-{}", number + 1)), &text)?;
            }
            let arrivals = Stream::new(&scenario.traffic, scenario.seed).map(|one| one.at.0).collect();
            sides.push([bench.run(arrivals)?, simulated(&scenario, settings.size)?]);
        }
    }
    let runs: Vec<Run> =
        LOADS.iter().zip(sides).map(|((name, load), sides)| compared(name, *load, sides)).collect();
    Ok(Comparison {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        host: host.to_owned(),
        packets: settings.packets,
        clock: "wall clock",
        setup: format!(
            "{}, {} bytes, {} equal cores, one SA in order, bursts of {BURST}; medians of {ROUNDS} rounds",
            settings.proposal, settings.size, settings.cores
        ),
        holds: runs.iter().all(|run| run.holds),
        runs,
    })
}

fn keep(dir: &FilePath, text: &str) -> Result<(), Error> {
    let written = fs::create_dir_all(dir).and_then(|()| output::write(dir.join("scenario.toml"), text));
    Ok(written.into_diagnostic().wrap_err_with(|| format!("cannot write {}", dir.display()))?)
}

/// The medians of both over the rounds.
fn compared(name: &str, load: f64, sides: Vec<[Figures; 2]>) -> Run {
    let (engine, simulator): (Vec<Figures>, Vec<Figures>) =
        sides.into_iter().map(|[one, two]| (one, two)).unzip();
    let [engine, simulator] = [engine, simulator].map(middle);
    let latency = (load < 1.0).then_some(LATENCY);
    let line = |figure: &str, unit, of: fn(&Figures) -> f64, limit| {
        Line::new(figure.to_owned(), unit, (of(&engine), of(&simulator)), limit)
    };
    let lines = vec![
        line("throughput", "bit/s", |f| f.throughput_bps, Some(THROUGHPUT)),
        line("total latency, mean", "s", |f| f.total_mean_s, latency),
        line("total latency, median", "s", |f| f.total_s.get(49).copied().unwrap_or(f64::NAN), None),
        line("processing latency, mean", "s", |f| f.processing_mean_s, None),
        line("packets per burst", "", |f| f.packets_per_job, None),
    ];
    let holds = lines.iter().all(|line| line.holds) && engine.packets == simulator.packets;
    Run { rate: name.to_owned(), holds, lines, engine, simulator }
}

fn middle(all: Vec<Figures>) -> Figures {
    let of = |figure: &dyn Fn(&Figures) -> f64| median(all.iter().map(figure).collect());
    let quantiles = all.iter().map(|one| one.total_s.len()).min().unwrap_or(0);
    Figures {
        elapsed_s: of(&|f| f.elapsed_s),
        packets: all.first().map_or(0, |one| one.packets),
        throughput_bps: of(&|f| f.throughput_bps),
        processors: Vec::new(),
        processing_mean_s: of(&|f| f.processing_mean_s),
        total_mean_s: of(&|f| f.total_mean_s),
        total_s: (0..quantiles).map(|at| of(&|f| f.total_s[at])).collect(),
        packets_per_job: of(&|f| f.packets_per_job),
        real: None,
    }
}

fn simulated(scenario: &Scenario, size: usize) -> miette::Result<Figures> {
    let options = Options { columns: true, ..Options::default() };
    let outcome = forebay_sim::run(scenario, options).map_err(|error| miette!("the simulator: {error}"))?;
    let columns = outcome.columns.unwrap_or_default();
    let spans = |from: &[u64]| -> Vec<Duration> {
        from.iter().zip(&columns.completed).map(|(from, until)| Duration(until - from)).collect()
    };
    Ok(figures(
        size,
        outcome.figures.elapsed_s,
        spans(&columns.arrived),
        spans(&columns.chosen),
        outcome.figures.packets_per_job,
    ))
}

fn figures(
    size: usize,
    elapsed_s: f64,
    mut total: Vec<Duration>,
    processing: Vec<Duration>,
    per_job: f64,
) -> Figures {
    let mean = |all: &[Duration]| all.iter().map(|one| one.as_secs()).sum::<f64>() / all.len().max(1) as f64;
    Figures {
        elapsed_s,
        packets: total.len() as u64,
        throughput_bps: (total.len() * size * 8) as f64 / elapsed_s,
        processors: Vec::new(),
        processing_mean_s: mean(&processing),
        total_mean_s: mean(&total),
        total_s: percentiles(&mut total),
        packets_per_job: per_job,
        real: None,
    }
}

/// A time of a burst of n packets: `burst` + n x `packet`, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    burst: f64,
    packet: f64,
}

impl Step {
    /// Of the times of one packet and of a full burst.
    fn through(one: f64, full: f64) -> Step {
        let packet = ((full - one) / (BURST - 1) as f64).max(0.0);
        Step { burst: (one - packet).max(0.0), packet }
    }

    fn of_a_burst(self) -> f64 {
        self.burst + BURST as f64 * self.packet
    }
}

/// The steps of one core.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    take: Step,
    crypto: Step,
    complete: Step,
}

impl Times {
    /// Packets a second of so many cores by the formula of docs/simulation.md.
    fn carries(&self, cores: usize) -> f64 {
        let [take, crypto, complete] = [self.take, self.crypto, self.complete].map(Step::of_a_burst);
        BURST as f64 * (cores as f64 / (take + crypto + complete)).min(1.0 / (take + complete))
    }

    fn scenario(&self, settings: &CoresSettings, round: usize, rate: f64) -> String {
        let ps = |seconds: f64| format!("\"{:.0} ps\"", seconds * 1e12);
        format!(
            "# Made by validate-model: the steps of one core.\n\
             model = \"host\"\nseed = {}\n\n[traffic]\nsource = \"fixed\"\nvalue = {}\noverhead = 0\npackets = {}\n\
             packet_rate = {rate:.0}\n\n[cores]\nburst = {BURST}\nshared = true\ntake = {}\ntake_packet = {}\ncomplete = {}\n\
             complete_packet = {}\n\n[[processor]]\nname = \"core\"\nkind = \"cpu\"\ncount = {}\nsubmit = {}\ninit = {}\n\
             block = 0\n",
            settings.seed + round as u64,
            settings.size,
            settings.packets,
            ps(self.take.burst),
            ps(self.take.packet),
            ps(self.complete.burst),
            ps(self.complete.packet),
            settings.cores,
            ps(self.crypto.burst),
            ps(self.crypto.packet),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_goes_through_what_was_measured() {
        let full = 4e-7 + BURST as f64 * 1e-7;
        let step = Step::through(5e-7, full);
        assert!((step.packet - 1e-7).abs() < 1e-12 && (step.burst - 4e-7).abs() < 1e-12);
        assert!((step.of_a_burst() - full).abs() < 1e-12);
        // A burst that takes no longer than a packet has no time for each.
        assert_eq!(Step::through(5e-7, 4e-7).packet, 0.0);
    }

    /// How far both are apart is this machine's matter; that each packet went through both is not.
    #[test]
    fn each_packet_goes_through_both() {
        let settings = CoresSettings {
            cores: 2,
            packets: 1_000,
            size: 200,
            seed: 1,
            proposal: "aes128gcm16".to_owned(),
            backend: Backend::Auto,
        };
        let dir = tempfile::tempdir().unwrap();
        let mut rounds = 0;
        let watch = |done, all| {
            rounds += 1;
            assert!(done < all);
            ControlFlow::Continue(())
        };
        let comparison = cores(&settings, "here", Some(dir.path()), watch).unwrap();
        assert_eq!((comparison.runs.len(), rounds), (LOADS.len(), ROUNDS));
        for run in &comparison.runs {
            assert_eq!((run.engine.packets, run.simulator.packets), (1_000, 1_000));
            assert!(run.engine.total_mean_s > 0.0 && run.simulator.total_mean_s > 0.0, "{run:?}");
        }
        let kept = Scenario::load(&dir.path().join("load-3/scenario.toml"), &[]).unwrap();
        assert_eq!((kept.processors.len(), kept.cores.unwrap().burst), (2, BURST));
        let wrong = CoresSettings { cores: 0, ..settings };
        assert!(
            cores(&wrong, "here", None, |_, _| ControlFlow::Continue(()))
                .unwrap_err()
                .to_string()
                .contains("cores")
        );
    }
}
