//! All measurements of a plan, and what they come to.
//!
//! ```text
//!                                     +--> cores, each with its bursts
//! packets in memory --> engines ------+--> cards               --> order checked, counted
//!   closed loop: as fast as they go   (policy, window)
//!   open loop: at drawn times, 50 % and 90 % of that
//! ```
//!
//! Each policy is held against two limits: the sum of what each processor does alone through the same engine, and
//! the best fixed split of the packets that a search finds. Rounds go through all configurations before the next
//! round begins, so that a machine that changes its speed changes it for all; medians are reported.

mod figures;
mod limits;
mod page;
mod plan;
mod twin;

use std::ops::ControlFlow;

use forebay_engine::{Clock, ProcessorStats};
use forebay_scheduler::{AlphaLoop, Policy};
use forebay_time::Duration;

use crate::Error;
use forebay_loadgen::median::median;
use forebay_loadgen::mix::Mix;
use forebay_loadgen::processors::Bank;
use forebay_loadgen::rig::{Rig, Setting};
use forebay_loadgen::search::{self, best_share};

pub use figures::{Alone, Document, Latency, Limits, Outcome, Share, Size, SizeLimits};
pub use limits::limits_in_words;
pub use page::keep;
use plan::Rule;
pub use plan::{Plan, Settings};
use twin::Learnt;
pub use twin::Twin;

/// From which size on a packet is large for `size-threshold`: DPDK's default for its packet-size mode.
const THRESHOLD: u64 = 128;
/// Shares of the throughput at which latency is measured.
const LOADS: [f64; 2] = [0.5, 0.9];

/// Measures everything that is planned. `host` is the machine in words. `watch` is called with the number of measurements
/// that are done and the number that is planned, and returns whether to go on.
///
/// # Errors
/// If a processor cannot be used, or what comes out is not what went in; [`Error::Cancelled`] if `watch` stops the work.
pub fn measure(
    plan: &Plan,
    host: &str,
    mut watch: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Document, Error> {
    let clock = Clock::start();
    let all = [&plan.processors[..], &plan.rivals].concat();
    let bank = Bank::new(&all, plan.suite, clock)?;
    let mut lab = Lab { plan, bank, clock, watch: &mut watch, done: 0 };
    let (mut results, mut rivals) = (Vec::new(), Vec::new());
    let (mut alone, mut by_size) = (Vec::new(), Vec::new());
    for mix in &plan.mixes {
        let (of_mix, alone_of_mix) = lab.mix(mix)?;
        let (mut of_mix, limits) = held_against(of_mix, &alone_of_mix, Size::new(&mix.name));
        rivals.extend(of_mix.extract_if(.., |one| one.policy == figures::RIVAL));
        results.extend(of_mix);
        alone.extend(alone_of_mix);
        by_size.push(limits);
    }
    let names = (0..plan.processors.len()).map(|place| lab.bank.name(place).to_owned()).collect();
    Ok(Document {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        host: host.to_owned(),
        proposal: plan.suite.to_string(),
        sas: plan.sas,
        rounds: plan.rounds,
        slice_s: plan.slice.as_secs(),
        processors: names,
        limits: Limits {
            sum_packets_per_s: by_size[0].sum_packets_per_s,
            best_static_packets_per_s: by_size[0].best_static_packets_per_s,
            by_size,
        },
        results,
        rivals,
        alone,
    })
}

/// The limits of one size, and its outcomes as shares of them.
fn held_against(mut outcomes: Vec<Outcome>, alone: &[Alone], size: Size) -> (Vec<Outcome>, SizeLimits) {
    let sum: f64 = alone.iter().map(|one| one.packets_per_s).sum();
    let fixed = |one: &&Outcome| ["split", "single", "round-robin"].contains(&one.policy);
    let splits = outcomes.iter().filter(fixed).map(|one| one.packets_per_s);
    let best = splits.chain(alone.iter().map(|one| one.packets_per_s)).fold(0.0, f64::max);
    for one in &mut outcomes {
        one.of_sum = one.packets_per_s / sum;
        one.of_best_static = one.packets_per_s / best;
    }
    (outcomes, SizeLimits { size, sum_packets_per_s: sum, best_static_packets_per_s: best })
}

struct Lab<'a> {
    plan: &'a Plan,
    bank: Bank,
    clock: Clock,
    watch: &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    done: u64,
}

/// One policy with one window while it is measured.
struct Case {
    rule: Rule,
    policy: Policy,
    /// The processors of its engines, the running core first.
    places: Vec<usize>,
    rates: Vec<f64>,
    work: Vec<Work>,
    redone: u64,
    removals: u64,
    /// Packets that went through a slot of the engine, and the time that they were held for others, in seconds.
    released: u64,
    held: f64,
    latencies: [Rounds; 2],
    /// What the engine knew of its processors after the last round, where the simulator is to do the same.
    learnt: Option<Learnt>,
}

/// The quantiles of each round.
#[derive(Default)]
struct Rounds {
    offered: Vec<f64>,
    packets: u64,
    p50: Vec<f64>,
    p99: Vec<f64>,
    mean: Vec<f64>,
}

/// What one processor did while it was measured, in seconds.
#[derive(Clone, Copy, Default)]
struct Work {
    elapsed: f64,
    jobs: u64,
    packets: u64,
    busy: f64,
    predicted: f64,
    predicted_response: f64,
    response: f64,
}

impl Lab<'_> {
    /// How many measurements there will be, about.
    fn planned(&self) -> u64 {
        let (processors, cases) =
            (self.plan.processors.len(), self.plan.rules.len() + 1 + self.plan.rivals.len());
        let rounds = self.plan.rounds * (processors + cases + LOADS.len() * cases);
        let search = if processors > 1 { search::MEASUREMENTS } else { 0 };
        (self.plan.mixes.len() * self.plan.windows.len() * (processors + search + rounds)) as u64
    }

    /// Everything about packets of one mix.
    fn mix(&mut self, mix: &Mix) -> Result<(Vec<Outcome>, Vec<Alone>), Error> {
        let packets = mix.packets(self.plan.sas);
        let everybody: Vec<usize> = (0..self.plan.processors.len()).collect();
        let computing: Vec<usize> =
            everybody.iter().copied().filter(|&place| !self.plan.processors[place].is_io()).collect();
        let mut outcomes = Vec::new();
        let mut alone: Vec<Option<Alone>> = vec![None; everybody.len()];
        for &window in &self.plan.windows {
            let mut first = vec![0.0; everybody.len()];
            for &place in &computing {
                first[place] = self.alone(&packets, place, window)?;
            }
            let weights = self.split(&packets, &everybody, window, &first)?;
            let mut cases = self.cases(&first, weights);
            let mut rates = vec![Vec::new(); everybody.len()];
            for _ in 0..self.plan.rounds {
                for &place in &computing {
                    rates[place].push(self.alone(&packets, place, window)?);
                }
                for case in &mut cases {
                    self.throughput(&packets, window, case)?;
                }
            }
            for round in 0..self.plan.rounds {
                for case in &mut cases {
                    self.latency(&packets, window, case, round as u64)?;
                }
            }
            for &place in &computing {
                let packets_per_s = median(std::mem::take(&mut rates[place]));
                let best = &mut alone[place];
                if best.as_ref().is_none_or(|best| best.packets_per_s < packets_per_s) {
                    let (name, size) = (self.bank.name(place).to_owned(), Size::new(&mix.name));
                    *best = Some(Alone { name, size, window, packets_per_s });
                }
            }
            for case in cases {
                let learnt = case.learnt.as_ref().map(|learnt| {
                    let plain: Vec<(usize, u8)> = packets.iter().map(|one| (one.len(), one[17])).collect();
                    let offered = [0, 1].map(|load| median(case.latencies[load].offered.clone()));
                    learnt.twin(&plain, self.plan.suite, window, offered)
                });
                let twin = learnt.transpose()?;
                outcomes.push(Outcome { twin, ..self.outcome(case, mix, window) });
            }
        }
        Ok((outcomes, alone.into_iter().flatten().collect()))
    }

    /// The policies with what their processors have been found to do, and the rivals.
    fn cases(&self, alone: &[f64], weights: [u16; 8]) -> Vec<Case> {
        let fastest = (0..alone.len()).max_by(|&one, &two| alone[one].total_cmp(&alone[two])).unwrap_or(0);
        let small = search::first(alone);
        let count = self.plan.processors.len();
        let case = |rule, places: Vec<usize>| Case {
            rule,
            policy: match rule {
                Rule::FinishTime => Policy::FinishTime,
                Rule::AdaptiveAlpha => Policy::AdaptiveAlpha(AlphaLoop::DEFAULT),
                Rule::Single => Policy::Single { processor: fastest },
                Rule::Rival => Policy::Single { processor: 1 },
                Rule::RoundRobin => Policy::RoundRobin,
                Rule::ShortestQueue => Policy::ShortestQueue,
                Rule::SizeThreshold => Policy::SizeThreshold { bytes: THRESHOLD, small, large: small + 1 },
                Rule::Split => Policy::Split { weights },
                Rule::Registered(registered) => Policy::Registered(registered),
            },
            rates: Vec::new(),
            work: vec![Work::default(); places.len()],
            places,
            redone: 0,
            removals: 0,
            released: 0,
            held: 0.0,
            latencies: Default::default(),
            learnt: None,
        };
        let rules = self.plan.rules.iter().copied().chain([Rule::Split]);
        let ours = rules.map(|rule| case(rule, (0..count).collect()));
        let rivals = (count..self.bank.count()).map(|rival| case(Rule::Rival, vec![0, rival]));
        ours.chain(rivals).collect()
    }

    /// Packets per second with `place` as the only processor that does crypto.
    fn alone(&mut self, packets: &[Vec<u8>], place: usize, window: usize) -> Result<f64, Error> {
        let (places, policy): (&[usize], _) = match place {
            0 => (&[0], Policy::FinishTime),
            _ => (&[0, place], Policy::Single { processor: 1 }),
        };
        let setting = self.setting(packets, policy, window);
        let mut rig = self.warm(&setting, places)?;
        let rate = rig.saturate(self.plan.slice)?;
        rig.drain()?;
        Ok(rate)
    }

    /// The weights of the best fixed split that a search finds.
    fn split(
        &mut self,
        packets: &[Vec<u8>],
        everybody: &[usize],
        window: usize,
        alone: &[f64],
    ) -> Result<[u16; 8], Error> {
        let first = search::first(alone);
        let others: f64 = alone[first + 1..].iter().sum();
        if others == 0.0 {
            return Ok(search::weights(0.0, alone));
        }
        let share = best_share(others / (alone[first] + others), |share| {
            let policy = Policy::Split { weights: search::weights(share, alone) };
            let setting = self.setting(packets, policy, window);
            let mut rig = self.warm(&setting, everybody)?;
            let rate = rig.saturate(self.plan.slice)?;
            rig.drain()?;
            Ok::<f64, Error>(rate)
        })?;
        Ok(search::weights(share, alone))
    }

    /// One round of a case under saturation.
    fn throughput(&mut self, packets: &[Vec<u8>], window: usize, case: &mut Case) -> Result<(), Error> {
        let setting = self.setting(packets, case.policy, window);
        let mut rig = self.warm(&setting, &case.places)?;
        let before: Vec<ProcessorStats> = rig.processors().cloned().collect();
        let counts = Counts::of(&rig);
        let start = self.clock.now();
        case.rates.push(rig.saturate(self.plan.slice)?);
        let elapsed = self.clock.now().since(start).as_secs();
        for ((work, after), before) in case.work.iter_mut().zip(rig.processors()).zip(&before) {
            work.add(elapsed, before, after);
        }
        // An engine of one processor does not learn what moving packets costs.
        let learns = case.places.len() > 1 && rig.cores() == 1 && !self.plan.processors[0].is_io();
        if case.rule == Rule::FinishTime && learns {
            let kinds: Vec<_> = case.places.iter().map(|&place| self.bank.kind(place)).collect();
            case.learnt = Some(Learnt::of(&rig, &kinds));
        }
        let after = Counts::of(&rig);
        case.redone += after.redone - counts.redone;
        case.removals += after.removals - counts.removals;
        case.released += after.released - counts.released;
        case.held += (after.held - counts.held).as_secs();
        rig.drain()?;
        Ok(rig.verify()?)
    }

    /// One round of a case at half and at nine tenths of its throughput, or of what it carries beside the measurement of latencies
    /// if that is less.
    fn latency(
        &mut self,
        packets: &[Vec<u8>],
        window: usize,
        case: &mut Case,
        round: u64,
    ) -> Result<(), Error> {
        let rate = median(case.rates.clone());
        for (load, rounds) in LOADS.into_iter().zip(&mut case.latencies) {
            let setting = self.setting(packets, case.policy, window);
            let mut rig = self.warm(&setting, &case.places)?;
            rig.drain()?;
            let carried = rig.carries(4.0 * rate, Duration(self.plan.slice.0 / 2))?;
            let offered = load * rate.min(carried);
            rounds.offered.push(offered);
            let latencies = rig.offer(offered, self.plan.slice, round)?;
            rig.drain()?;
            rounds.packets += latencies.count();
            rounds.p50.push(latencies.quantile(0.5));
            rounds.p99.push(latencies.quantile(0.99));
            rounds.mean.push(latencies.mean());
        }
        Ok(())
    }

    fn setting<'a>(&self, packets: &'a [Vec<u8>], policy: Policy, window: usize) -> Setting<'a> {
        let Plan { suite, sas, .. } = *self.plan;
        Setting { suite, sas, packets, policy, window, clock: self.clock }
    }

    /// An engine of new processors that has run for a while. Every measurement begins here.
    fn warm<'a>(&mut self, setting: &'a Setting<'a>, places: &[usize]) -> Result<Rig<'a>, Error> {
        let planned = self.planned();
        if (self.watch)(self.done, planned).is_break() {
            return Err(Error::Cancelled);
        }
        self.done += 1;
        Ok(Rig::warm(setting, self.bank.open(places)?, self.plan.slice)?)
    }

    fn outcome(&self, case: Case, mix: &Mix, window: usize) -> Outcome {
        let all: u64 = case.work.iter().map(|work| work.packets).sum();
        let jobs: u64 = case.work.iter().map(|work| work.jobs).sum();
        let share = |(&place, work): (&usize, &Work)| work.share(self.bank.name(place), all);
        let packets_per_s = median(case.rates.clone());
        let [latency_50, latency_90] = case.latencies.map(|rounds| Latency {
            offered_packets_per_s: median(rounds.offered.clone()),
            packets: rounds.packets,
            p50_s: median(rounds.p50),
            p99_s: median(rounds.p99),
            mean_s: median(rounds.mean),
        });
        Outcome {
            policy: case.rule.word(),
            processor: match case.policy {
                Policy::Single { processor } => Some(self.bank.name(case.places[processor]).to_owned()),
                _ => None,
            },
            weights: match case.policy {
                Policy::Split { weights } => Some(weights[..case.places.len()].to_vec()),
                _ => None,
            },
            window,
            size: Size::new(&mix.name),
            packets_per_s,
            bits_per_s: packets_per_s * mix.mean() * 8.0,
            rounds_packets_per_s: case.rates,
            of_sum: f64::NAN,
            of_best_static: f64::NAN,
            packets_per_job: all as f64 / jobs.max(1) as f64,
            reorder_hold_s: case.held / case.released.max(1) as f64,
            redone: case.redone,
            removals: case.removals,
            latency_50,
            latency_90,
            twin: None,
            processors: case.places.iter().zip(&case.work).map(share).collect(),
        }
    }
}

/// What an engine as a whole has counted.
struct Counts {
    redone: u64,
    removals: u64,
    released: u64,
    held: Duration,
}

impl Counts {
    fn of(rig: &Rig<'_>) -> Counts {
        let removals = rig.processors().map(|one| one.removals).sum();
        let mut counts = Counts { redone: 0, removals, released: 0, held: Duration::ZERO };
        for stats in rig.stats() {
            counts.redone += stats.redone;
            counts.released += stats.released;
            counts.held += stats.held;
        }
        counts
    }
}

impl Work {
    fn add(&mut self, elapsed: f64, before: &ProcessorStats, after: &ProcessorStats) {
        let since = |of: fn(&ProcessorStats) -> Duration| (of(after) - of(before)).as_secs();
        self.elapsed += elapsed;
        self.jobs += after.jobs - before.jobs;
        self.packets += after.packets - before.packets;
        self.busy += since(|one| one.busy);
        self.predicted += since(|one| one.predicted);
        self.predicted_response += since(|one| one.predicted_response);
        self.response += since(|one| one.response);
    }

    fn share(&self, name: &str, all: u64) -> Share {
        let per_job = |sum: f64| sum / self.jobs.max(1) as f64;
        Share {
            name: name.to_owned(),
            share: self.packets as f64 / all.max(1) as f64,
            load: self.busy / self.elapsed,
            predicted_s: per_job(self.predicted_response),
            actual_s: per_job(self.response),
            predicted_service_s: per_job(self.predicted),
            actual_service_s: per_job(self.busy),
        }
    }
}
