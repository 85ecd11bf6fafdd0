//! How good a placement could be at best, whatever the rule.
//!
//! [`optimum`] tries everything, for few packets; [`bound`] relaxes, for any number. Both know all packets
//! beforehand, which no scheduler does, and leave out waiting for a bus that others use.

use forebay_scheduler::{Cost, Kind, Work};
use forebay_station::{BusConfig, Speed};
use forebay_time::{Duration, PS_PER_S};

use crate::scenario::{Processor, Scenario};
use crate::traffic::{Arrival, Stream};

/// Most packets that [`optimum`] takes.
pub const OPTIMUM_PACKETS: usize = 8;
/// Most processors that [`optimum`] takes.
pub const OPTIMUM_PROCESSORS: usize = 3;
/// Steps towards the best weights in [`bound`]; every step's value is a bound.
const STEPS: u32 = 200;
/// Packets whose costs [`bound`] looks at in one step.
const SAMPLE: usize = 20_000;

/// What no placement can beat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// First arrival to last completion: not less than this.
    pub elapsed_s: f64,
    /// 8 * bytes / elapsed: not more than this.
    pub throughput_bps: f64,
    /// Mean of arrival to completion: not less than this.
    pub total_latency_mean_s: f64,
}

/// The smallest elapsed time and, by another placement perhaps, the smallest mean latency, by trying every
/// order of every set of packets on every processor.
///
/// `None` with more than [`OPTIMUM_PACKETS`] packets or [`OPTIMUM_PROCESSORS`] processors, with a window, or
/// with buffers in a card, or with the terms of real processors (`submit`, `wake`,
/// keys, batches), or with jobs that need the result of another one. It is what can be reached where no two cards share a bus; else a bound.
pub fn optimum(scenario: &Scenario, seed: u64) -> Option<Limits> {
    let packets: Vec<Arrival> = Stream::new(&scenario.traffic, seed).take(OPTIMUM_PACKETS + 1).collect();
    let fits = (1..=OPTIMUM_PACKETS).contains(&packets.len())
        && scenario.processors.len() <= OPTIMUM_PROCESSORS
        && scenario.cores.is_none()
        && scenario.scheduler.window == 1
        && !scenario.scheduler.takes_batches()
        && (scenario.traffic.dependent_sas, scenario.traffic.passes.len()) == (0, 0)
        && scenario.processors.iter().all(has_papers_cost)
        && scenario.processors.iter().all(|one| one.write_buffer == 0 && one.prefetch == 0);
    if !fits {
        return None;
    }
    let all = 1usize << packets.len();
    // best[set]: of the processors looked at so far, for this set of packets: last completion, sum of completions.
    let mut best = vec![(u64::MAX, u64::MAX); all];
    best[0] = (0, 0);
    for processor in &scenario.processors {
        let times: Vec<Option<u64>> =
            packets.iter().map(|packet| alone(scenario, processor, packet)).collect();
        let single: Vec<(u64, u64)> = (0..all).map(|set| orders(&packets, &times, set)).collect();
        best = (0..all)
            .map(|set| {
                let mut least = (u64::MAX, u64::MAX);
                for part in subsets(set) {
                    let (last, sum) = best[set & !part];
                    least.0 = least.0.min(last.max(single[part].0));
                    least.1 = least.1.min(sum.saturating_add(single[part].1));
                }
                least
            })
            .collect();
    }
    let (last, sum) = best[all - 1];
    let arrived: u64 = packets.iter().map(|packet| packet.at.0).sum();
    (last != u64::MAX).then(|| limits(&packets, (last - packets[0].at.0) as f64, (sum - arrived) as f64))
}

/// Whether jobs that come one by one cost t_init and t_block and nothing else.
fn has_papers_cost(processor: &Processor) -> bool {
    let Cost { submit, wake, .. } = processor.config.cost;
    (submit, wake) == (Duration::ZERO, Duration::ZERO) && processor.config.keys.is_none()
}

/// The sets within a set, itself and the empty one too.
fn subsets(set: usize) -> impl Iterator<Item = usize> {
    (0..=set).filter(move |part| part & !set == 0)
}

/// The least last completion and the least sum of completions of a set on one processor, over all orders.
fn orders(packets: &[Arrival], times: &[Option<u64>], set: usize) -> (u64, u64) {
    fn go(
        packets: &[Arrival],
        times: &[Option<u64>],
        left: usize,
        now: u64,
        sum: u64,
        best: &mut (u64, u64),
    ) {
        if left == 0 {
            *best = (best.0.min(now), best.1.min(sum));
            return;
        }
        for (at, packet) in packets.iter().enumerate().filter(|(at, _)| left >> at & 1 == 1) {
            if let Some(time) = times[at] {
                let done = now.max(packet.at.0) + time;
                go(packets, times, left & !(1 << at), done, sum + done, best);
            }
        }
    }
    let mut best = (u64::MAX, u64::MAX);
    go(packets, times, set, 0, 0, &mut best);
    best
}

/// Picoseconds a packet takes on a processor that has nothing else to do, both transfers included.
fn alone(scenario: &Scenario, processor: &Processor, packet: &Arrival) -> Option<u64> {
    can(processor, packet).then(|| {
        let transfer = processor.bus.map_or(0, |bus| carry(&scenario.buses[bus].config, packet.bytes));
        processor.config.cost.of(&Work::packet(packet.bytes)).0 + 2 * transfer
    })
}

fn can(processor: &Processor, packet: &Arrival) -> bool {
    processor.config.suites >> packet.suite & 1 == 1
}

/// Picoseconds of one transfer, as the station has them.
fn carry(bus: &BusConfig, bytes: u32) -> u64 {
    let (units, rate, overhead) = match bus.speed {
        Speed::Cycles { clock, width, address_cycles } => {
            (u64::from(bytes.div_ceil(width.get())) + u64::from(address_cycles), clock.get(), 0)
        }
        Speed::Rate { rate, overhead } => (8 * u64::from(bytes), rate.get(), overhead.0),
    };
    let (units, rate) = (u128::from(units) * u128::from(PS_PER_S), u128::from(rate));
    ((units + rate / 2) / rate) as u64 + overhead
}

/// A bound for any number of packets, by total work over total speed and by each packet's own best way.
///
/// Let a packet take the time a_r of resource r (processors and buses) if it goes a certain way. Then for any
/// weights y_r that sum up to 1, the elapsed time is at least the sum over packets of the smallest
/// y . a over its ways: so much weighted work there is, however it is placed, and all resources together do one
/// second of it in a second. The weights are sought by raising those of resources that would be
/// overloaded; the best bound met counts. Packets of a bundle share one t_init at best among W, those of a batch
/// have one transfer in common, and a group of a batch takes no less than its jobs' time by its lanes. What the running core does
/// besides its jobs, `submit` and `wake` are left out.
pub fn bound(scenario: &Scenario, seed: u64) -> Limits {
    let packets: Vec<Arrival> = Stream::new(&scenario.traffic, seed).collect();
    let ways: Vec<Way> = scenario.processors.iter().map(|one| Way::new(scenario, one)).collect();
    let resources = scenario.processors.len() + scenario.buses.len();
    let mut weights = vec![1.0 / resources as f64; resources];
    let (mut work, mut chosen) = (0.0f64, weights.clone());
    // The weights are found on a sample, their bound is taken over all packets.
    let step = packets.len().div_ceil(SAMPLE);
    for round in 1..=STEPS {
        let mut loads = vec![0.0; resources];
        let weighted = placed(&ways, packets.iter().step_by(step), &weights, &mut loads);
        if weighted > work {
            (work, chosen) = (weighted, weights.clone());
        }
        let most = loads.iter().copied().fold(0.0, f64::max);
        if most == 0.0 {
            break;
        }
        let rate = 2.0 / f64::from(round).sqrt();
        for (weight, load) in weights.iter_mut().zip(&loads) {
            *weight *= (rate * load / most).exp();
        }
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
    }
    let work = placed(&ways, packets.iter(), &chosen, &mut vec![0.0; resources]);
    let first = packets.first().map_or(0, |packet| packet.at.0);
    let best = |packet: &Arrival| {
        let lengths = ways.iter().filter(|way| can(way.processor, packet)).map(|way| way.length(packet));
        lengths.fold(f64::INFINITY, f64::min)
    };
    let last = packets.iter().map(|packet| (packet.at.0 - first) as f64 + best(packet)).fold(0.0, f64::max);
    limits(&packets, work.max(last), packets.iter().map(best).sum())
}

/// The weighted work of packets that all go their lightest way, and the loads that this gives.
fn placed<'a>(
    ways: &[Way<'_>],
    packets: impl Iterator<Item = &'a Arrival>,
    weights: &[f64],
    loads: &mut [f64],
) -> f64 {
    let mut work = 0.0;
    for packet in packets {
        let capable = ways.iter().enumerate().filter(|(_, way)| can(way.processor, packet));
        let weighed = capable.map(|(index, way)| (index, way.weigh(packet, index, weights)));
        let Some((index, weight)) = weighed.min_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        work += weight;
        let (own, bus) = ways[index].times(packet);
        loads[index] += own;
        if let Some(at) = ways[index].bus {
            loads[at] += bus;
        }
    }
    work
}

/// What a packet asks of a processor and its bus at least.
struct Way<'a> {
    processor: &'a Processor,
    cost: Cost,
    /// 1 / W.
    share: f64,
    /// The same for a transfer; 0 with batches, of which any number shares one.
    shared_transfer: f64,
    /// Jobs computed side by side.
    lanes: f64,
    /// The bus among the resources, picoseconds a byte over it, and once a transfer.
    bus: Option<usize>,
    byte: f64,
    transfer: f64,
    /// Transfers of a packet for which the card stands still, and those over the busier line of its bus.
    blocking: f64,
    crossings: f64,
}

impl<'a> Way<'a> {
    fn new(scenario: &'a Scenario, processor: &'a Processor) -> Way<'a> {
        let share = 1.0 / scenario.scheduler.window as f64;
        let batches = scenario.scheduler.takes_batches();
        let config = processor.bus.map(|bus| &scenario.buses[bus].config);
        let ps = PS_PER_S as f64;
        let (byte, transfer) = match config.map(|config| config.speed) {
            None => (0.0, 0.0),
            Some(Speed::Cycles { clock, width, address_cycles }) => {
                let cycle = ps / clock.get() as f64;
                (cycle / f64::from(width.get()), cycle * f64::from(address_cycles))
            }
            Some(Speed::Rate { rate, overhead }) => (8.0 * ps / rate.get() as f64, overhead.0 as f64),
        };
        let hidden = usize::from(processor.write_buffer > 0) + usize::from(processor.prefetch > 0);
        Way {
            processor,
            cost: processor.config.cost,
            share,
            shared_transfer: if batches { 0.0 } else { share },
            lanes: if batches { processor.config.cost.lanes.max(1).into() } else { 1.0 },
            bus: processor.bus.map(|bus| scenario.processors.len() + bus),
            byte,
            transfer,
            blocking: if processor.config.kind == Kind::Cpu { 0.0 } else { 2.0 - hidden as f64 },
            crossings: if config.is_some_and(|config| config.full_duplex) { 1.0 } else { 2.0 },
        }
    }

    fn compute(&self, packet: &Arrival) -> f64 {
        let init = self.cost.init.0 as f64 * self.share;
        let side_by_side = self.cost.of(&Work::packet(packet.bytes)) - self.cost.init - self.cost.packet;
        (init + side_by_side.0 as f64) / self.lanes + self.cost.packet.0 as f64
    }

    fn carry(&self, packet: &Arrival) -> f64 {
        self.byte * f64::from(packet.bytes) + self.transfer * self.shared_transfer
    }

    /// Picoseconds of the processor and of its bus.
    fn times(&self, packet: &Arrival) -> (f64, f64) {
        let carry = self.carry(packet);
        (self.compute(packet) + self.blocking * carry, self.crossings * carry)
    }

    fn weigh(&self, packet: &Arrival, index: usize, weights: &[f64]) -> f64 {
        let (own, bus) = self.times(packet);
        own * weights[index] + self.bus.map_or(0.0, |at| bus * weights[at])
    }

    /// Picoseconds from arrival to completion, were there nothing else.
    fn length(&self, packet: &Arrival) -> f64 {
        // A job's own path takes its whole t_init and both transfers, which it shares with no other job.
        let work = Work::packet(packet.bytes);
        let transfers = 2.0 * (self.byte * f64::from(packet.bytes) + self.transfer);
        self.cost.of(&work).0 as f64 + if self.bus.is_some() { transfers } else { 0.0 }
    }
}

fn limits(packets: &[Arrival], elapsed: f64, latencies: f64) -> Limits {
    let second = PS_PER_S as f64;
    let bits: f64 = packets.iter().map(|packet| 8.0 * f64::from(packet.bytes)).sum();
    Limits {
        elapsed_s: elapsed / second,
        throughput_bps: crate::figures::ratio(bits * second, elapsed),
        total_latency_mean_s: crate::figures::ratio(latencies / second, packets.len() as f64),
    }
}
