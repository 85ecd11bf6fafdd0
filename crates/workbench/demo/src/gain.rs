//! What the demo is for: the same packets over the core alone, over fixed splits, and by finishing time.
//!
//! The packets are as long as those of the capture, in its order, and go through the engine as fast as they go.

use clap::Args;
use forebay_crypto::Suite;
use forebay_engine::Clock;
use forebay_scheduler::Policy;
use forebay_time::Duration;
use miette::miette;

use super::figures::{Gain, GainRun};
use super::traffic::Capture;
use forebay_loadgen::median::median;
use forebay_loadgen::mix::Mix;
use forebay_loadgen::processors::{Bank, Spec};
use forebay_loadgen::rig::{Rig, Setting};
use forebay_loadgen::search::{self, best_share};
use forebay_terminal::progress::{self, Progress};

/// SAs of the comparison.
const SAS: usize = 4;
/// Rounds, of which medians are reported.
const ROUNDS: usize = 3;
/// Ways to place packets that are compared.
const WAYS: usize = 4;

/// Arguments of the comparison.
#[derive(Args)]
pub struct GainArgs {
    /// Duration of the comparison with fixed splits, in seconds; 0 disables it.
    #[arg(long, value_name = "SECONDS", default_value_t = 8.0)]
    comparison: f64,
    /// Cipher suite of the comparison; choose one that is slow on a single core.
    #[arg(long, value_name = "SUITE", default_value = "3des-sha1")]
    comparison_proposal: String,
    /// Processors of the comparison, named as for `forebay bench scheduler`.
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_value = "core,worker")]
    comparison_processor: Vec<String>,
}

/// What is to be compared.
pub struct Comparison {
    suite: Suite,
    specs: Vec<Spec>,
    seconds: f64,
}

impl GainArgs {
    /// The comparison that is asked for, if there is one.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub fn comparison(&self) -> miette::Result<Option<Comparison>> {
        if !(0.0..=600.0).contains(&self.comparison) {
            return Err(miette!("--comparison {}: expected 0 to 600 seconds", self.comparison));
        }
        let suite = self.comparison_proposal.parse().map_err(|error: forebay_crypto::SuiteError| {
            miette!(help = format!("did you mean `{}`?", error.nearest), "{error}")
        })?;
        let specs = Spec::parse_all(&self.comparison_processor)?;
        if !(2..=8).contains(&specs.len()) {
            return Err(miette!(
                help = "such as --comparison-processor core,worker",
                "--comparison-processor: {} processors, expected 2 to 8",
                specs.len()
            ));
        }
        Ok((self.comparison > 0.0).then_some(Comparison { suite, specs, seconds: self.comparison }))
    }
}

/// Measures all ways, in turn.
///
/// # Errors
/// If a processor cannot be used, or what comes out is not what went in; [`progress::Interrupted`] if the user
/// breaks it off.
pub fn measure(comparison: &Comparison, capture: &Capture) -> miette::Result<Gain> {
    let clock = Clock::start();
    let Comparison { suite, ref specs, seconds } = *comparison;
    let mix = Mix::of(&capture.name, capture.packets.iter().map(|packet| packet.len()));
    let measurements = specs.len() + search::MEASUREMENTS + ROUNDS * WAYS;
    let mut lab = Lab {
        bank: Bank::new(specs, suite, clock)?,
        suite,
        clock,
        packets: mix.packets(SAS),
        // Half as long again for an engine to learn what jobs cost.
        slice: Duration::from_secs(seconds / (1.5 * measurements as f64)),
        bar: Progress::runs("comparing"),
        done: 0,
    };
    lab.bar.of(measurements as u64);
    let all: Vec<usize> = (0..specs.len()).collect();
    let alone = all.iter().map(|&place| Ok(lab.alone(place)?.0)).collect::<miette::Result<Vec<f64>>>()?;
    let others: f64 = alone[1..].iter().sum();
    let mut splits = Vec::new();
    let best = best_share(others / (alone[0] + others), |share| {
        let policy = Policy::Split { weights: search::weights(share, &alone) };
        let rate = lab.run(&all, policy)?.0;
        splits.push((share, rate * mix.mean() * 8.0));
        Ok::<f64, miette::Report>(rate)
    })?;
    splits.sort_by(|one, two| one.0.total_cmp(&two.0));
    let ways: [(&str, Option<Policy>); WAYS] = [
        ("core alone", None),
        ("equal shares", Some(Policy::RoundRobin)),
        ("best fixed split", Some(Policy::Split { weights: search::weights(best, &alone) })),
        ("finishing time", Some(Policy::FinishTime)),
    ];
    let mut rates = [const { Vec::new() }; WAYS];
    let mut shares: [Vec<f64>; WAYS] = Default::default();
    for _ in 0..ROUNDS {
        for (way, (_, policy)) in ways.iter().enumerate() {
            let (rate, done) = match policy {
                None => lab.alone(0)?,
                Some(policy) => lab.run(&all, *policy)?,
            };
            rates[way].push(rate);
            shares[way] = done;
        }
    }
    lab.bar.finish();
    let rates = rates.map(median);
    let runs = ways.iter().zip(shares).zip(rates).map(|(((name, _), mut shares), packets_per_s)| {
        shares.resize(specs.len(), 0.0);
        GainRun {
            name: (*name).to_owned(),
            packets_per_s,
            throughput_bps: packets_per_s * mix.mean() * 8.0,
            of_core_alone: packets_per_s / rates[0],
            shares,
        }
    });
    Ok(Gain {
        proposal: suite.to_string(),
        processors: specs.iter().map(|spec| spec.name.clone()).collect(),
        runs: runs.collect(),
        splits,
    })
}

struct Lab {
    bank: Bank,
    suite: Suite,
    clock: Clock,
    packets: Vec<Vec<u8>>,
    slice: Duration,
    bar: Progress,
    done: u64,
}

impl Lab {
    /// With one processor as the only one that does crypto.
    fn alone(&mut self, place: usize) -> miette::Result<(f64, Vec<f64>)> {
        match place {
            0 => self.run(&[0], Policy::FinishTime),
            _ => self.run(&[0, place], Policy::Single { processor: 1 }),
        }
    }

    /// Packets per second, and the share of each processor.
    fn run(&mut self, places: &[usize], policy: Policy) -> miette::Result<(f64, Vec<f64>)> {
        if progress::is_interrupted() {
            return Err(progress::Interrupted.into());
        }
        self.bar.at(self.done);
        self.done += 1;
        let (suite, clock) = (self.suite, self.clock);
        let setting = Setting { suite, sas: SAS, packets: &self.packets, policy, window: 1, clock };
        let mut rig = Rig::warm(&setting, self.bank.open(places)?, self.slice)?;
        let counted = |rig: &Rig<'_>| -> Vec<u64> { rig.processors().map(|one| one.packets).collect() };
        let before = counted(&rig);
        let rate = rig.saturate(self.slice)?;
        let done: Vec<u64> = counted(&rig).iter().zip(before).map(|(after, before)| after - before).collect();
        rig.drain()?;
        rig.verify()?;
        let all = done.iter().sum::<u64>().max(1) as f64;
        Ok((rate, done.iter().map(|&packets| packets as f64 / all).collect()))
    }
}
