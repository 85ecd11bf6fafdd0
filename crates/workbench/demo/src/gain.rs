//! What the demo is for: the same packets over the core alone, over fixed splits, and by finish time.
//!
//! The packets are as long as those of the capture, in its order, and go through the engine as fast as they go.

use clap::Args;
use forebay_crypto::Suite;
use forebay_engine::Clock;
use forebay_random::Estimate;
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

/// SAs of the comparison: one, whose packets keep their order.
const SAS: usize = 1;
/// Rounds at least, whose medians are reported.
const ROUNDS: usize = 5;
/// And at most: more until the gain over the core alone is known this well, as a share of it.
const ROUNDS_MAX: usize = 15;
const KNOWN: f64 = 0.03;
/// Of the confidence intervals.
const CONFIDENCE: f64 = 0.95;
/// Ways to place packets that are compared.
const WAYS: usize = 4;

/// Arguments of the comparison.
#[derive(Args)]
pub struct GainArgs {
    /// Duration of the comparison with fixed splits, in seconds, longer where the machine is restless; 0 disables it.
    #[arg(long, value_name = "SECONDS", default_value_t = 12.0)]
    comparison: f64,
    /// Cipher suites of the comparison.
    #[arg(long, value_delimiter = ',', value_name = "SUITE", default_value = "aes128gcm16,aes128-sha256")]
    comparison_proposal: Vec<String>,
    /// Processors of the comparison, named as for `forebay bench scheduler`.
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_value = "core,worker")]
    comparison_processor: Vec<String>,
}

/// What is to be compared.
pub struct Comparison {
    suites: Vec<Suite>,
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
        let parse = |word: &String| {
            word.parse().map_err(|error: forebay_crypto::SuiteError| miette!(help = error.hint(), "{error}"))
        };
        let suites = self.comparison_proposal.iter().map(parse).collect::<miette::Result<Vec<Suite>>>()?;
        let specs = Spec::parse_all(&self.comparison_processor)?;
        if !(2..=8).contains(&specs.len()) {
            return Err(miette!(
                help = "such as --comparison-processor core,worker",
                "--comparison-processor: {} processors, expected 2 to 8",
                specs.len()
            ));
        }
        Ok((self.comparison > 0.0).then_some(Comparison { suites, specs, seconds: self.comparison }))
    }
}

/// Measures all ways with each suite, in turn.
///
/// # Errors
/// If a processor cannot be used, or what comes out is not what went in; [`progress::Interrupted`] if the user
/// breaks it off.
pub fn measure(comparison: &Comparison, capture: &Capture) -> miette::Result<Vec<Gain>> {
    comparison.suites.iter().map(|&suite| measure_suite(comparison, suite, capture)).collect()
}

fn measure_suite(comparison: &Comparison, suite: Suite, capture: &Capture) -> miette::Result<Gain> {
    let clock = Clock::start();
    let specs = &comparison.specs;
    let seconds = comparison.seconds / comparison.suites.len() as f64;
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
    let before = CpuTime::now();
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
        ("finish time", Some(Policy::FinishTime)),
    ];
    let mut rates = [const { Vec::new() }; WAYS];
    let mut shares: [Vec<f64>; WAYS] = Default::default();
    let gain = |rates: &[Vec<f64>; WAYS], way: usize| {
        let ratios: Vec<f64> = rates[way].iter().zip(&rates[0]).map(|(rate, alone)| rate / alone).collect();
        Estimate::with_confidence(&ratios, CONFIDENCE)
    };
    for round in 0..ROUNDS_MAX {
        let known = gain(&rates, WAYS - 1);
        if round >= ROUNDS && known.half_width <= KNOWN * known.mean {
            break;
        }
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
    let rounds = rates[0].len() as u64;
    let runs = ways.iter().zip(shares).enumerate().map(|(way, ((name, _), mut shares))| {
        shares.resize(specs.len(), 0.0);
        let (packets_per_s, known) = (median(rates[way].clone()), gain(&rates, way));
        GainRun {
            name: (*name).to_owned(),
            packets_per_s,
            throughput_bps: packets_per_s * mix.mean() * 8.0,
            of_core_alone: known.mean,
            half_width: known.half_width,
            shares,
        }
    });
    Ok(Gain {
        proposal: suite.to_string(),
        processors: specs.iter().map(|spec| spec.name.clone()).collect(),
        runs: runs.collect(),
        splits,
        rounds,
        others: before.zip(CpuTime::now()).map_or(0.0, |(before, now)| now.of_others(&before)),
    })
}

/// CPU time of the machine, in ticks: all of it, what was used or taken away, and what this process used.
struct CpuTime {
    all: u64,
    used: u64,
    own: u64,
}

impl CpuTime {
    /// Up to now; `None` where the system does not say.
    fn now() -> Option<CpuTime> {
        let of_machine = std::fs::read_to_string("/proc/stat").ok()?;
        let of_process = std::fs::read_to_string("/proc/self/stat").ok()?;
        CpuTime::read(&of_machine, &of_process)
    }

    fn read(of_machine: &str, of_process: &str) -> Option<CpuTime> {
        let ticks = of_machine.lines().next()?.strip_prefix("cpu ")?;
        // user nice system idle iowait irq softirq steal; guests are in user.
        let ticks: Vec<u64> = ticks.split_whitespace().take(8).filter_map(|word| word.parse().ok()).collect();
        let (all, idle): (u64, u64) = (ticks.iter().sum(), ticks.get(3..5)?.iter().sum());
        // The name, which may hold anything, is in parentheses; utime and stime are the 12th and 13th behind it.
        let behind = of_process.rsplit_once(')')?.1;
        let own =
            behind.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
        Some(CpuTime { all, used: all - idle, own })
    }

    /// Share that others had since `before`.
    fn of_others(&self, before: &CpuTime) -> f64 {
        let others = (self.used - before.used).saturating_sub(self.own - before.own);
        others as f64 / (self.all - before.all).max(1) as f64
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_others_is_what_this_process_did_not_use() {
        let read = |machine: &str, own: &str| {
            CpuTime::read(machine, &format!("7 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 {own} 0 0 20 0")).unwrap()
        };
        let before = read("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1", "60 10");
        let now = read("cpu  250 0 60 880 50 0 0 10 0 0\n", "200 15");
        // 250 ticks, of which 170 were used or stolen, 145 of them here.
        assert_eq!((now.of_others(&before) * 1000.0).round(), 100.0);
        assert!(CpuTime::read("intr 1", "7 (x) S").is_none());
    }
}
