//! What is kept of packets while they are under way, and of those that are done.

use std::collections::VecDeque;

use forebay_scheduler::Job;
use forebay_time::{Duration, Time};

use crate::Scenario;
use crate::figures::{self, BusFigures, Figures, Latency, ProcessorFigures, QUANTILES};
use crate::histogram::{self, Histogram};
use crate::run::Columns;

/// What a job carries through its processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    pub(crate) packets: u32,
    pub(crate) chosen: Time,
}

/// A packet between arrival and completion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) arrived: Time,
    pub(crate) number: u64,
    pub(crate) bytes: u32,
}

#[derive(Debug, Default)]
struct Processor {
    /// Packets placed and not completed, in the order of completion.
    flights: VecDeque<Flight>,
    busy: Duration,
    packets: u64,
    bytes: u64,
}

/// A run's books. Only packets from number `first` on count, and only time from `from` on.
#[derive(Debug)]
pub(crate) struct Ledger {
    first: u64,
    from: Time,
    last: Time,
    processors: Vec<Processor>,
    /// By bus: time in transfers inward and outward.
    buses: Vec<[Duration; 2]>,
    jobs: u64,
    packets: u64,
    pub(crate) lost: u64,
    processing: Latencies,
    total: Latencies,
    pub(crate) columns: Option<Columns>,
}

impl Ledger {
    pub(crate) fn new(scenario: &Scenario, from: Time, exact: bool, columns: Option<Columns>) -> Ledger {
        Ledger {
            first: scenario.traffic.warm_up,
            from,
            last: from,
            processors: scenario.processors.iter().map(|_| Processor::default()).collect(),
            buses: vec![[Duration::ZERO; 2]; scenario.buses.len()],
            jobs: 0,
            packets: 0,
            lost: 0,
            processing: Latencies::new(exact),
            total: Latencies::new(exact),
            columns,
        }
    }

    /// A job is placed: its packets go with it.
    #[inline]
    pub(crate) fn place(&mut self, processor: usize, job: &Job, waiting: &mut Waiting, chosen: Time) {
        let flights = &mut self.processors[processor].flights;
        let mut counts = false;
        for &slot in job.items() {
            let flight = waiting.take(slot);
            flights.push_back(flight);
            counts |= flight.number >= self.first;
            if let Some(columns) = &mut self.columns {
                columns.chosen[flight.number as usize] = chosen.0;
                columns.processor[flight.number as usize] = processor as u16;
            }
        }
        self.jobs += u64::from(counts);
    }

    /// A processor computes.
    #[inline]
    pub(crate) fn computes(&mut self, processor: usize, now: Time, until: Time) {
        self.processors[processor].busy += until.since(now.max(self.from));
    }

    /// A bus carries something.
    #[inline]
    pub(crate) fn carries(&mut self, bus: usize, way: usize, now: Time, until: Time) {
        self.buses[bus][way] += until.since(now.max(self.from));
    }

    /// The oldest job of a processor is done.
    #[inline]
    pub(crate) fn complete(&mut self, processor: usize, now: Time, tag: Tag) {
        self.last = self.last.max(now);
        let processing = now.since(tag.chosen).0;
        let processor = &mut self.processors[processor];
        for _ in 0..tag.packets {
            let flight = processor.flights.pop_front().expect("a job has its packets");
            if flight.number >= self.first {
                processor.packets += 1;
                processor.bytes += u64::from(flight.bytes);
                self.packets += 1;
                self.processing.add(processing);
                self.total.add(now.since(flight.arrived).0);
            }
            if let Some(columns) = &mut self.columns {
                columns.completed[flight.number as usize] = now.0;
            }
        }
    }

    /// The last completion.
    pub(crate) fn last(&self) -> Time {
        self.last
    }

    /// The sums. Which bus is full duplex only the scenario knows.
    pub(crate) fn figures(&mut self, scenario: &Scenario) -> Figures {
        let elapsed = self.last.since(self.from);
        let bytes: u64 = self.processors.iter().map(|one| one.bytes).sum();
        let processors = scenario.processors.iter().zip(&self.processors);
        let several = self.buses.len() > 1;
        let buses: Vec<BusFigures> = scenario
            .buses
            .iter()
            .zip(&self.buses)
            .map(|(bus, &[inward, outward])| {
                let time = if bus.config.full_duplex { inward.max(outward) } else { inward + outward };
                BusFigures { name: several.then(|| bus.name.clone()), load: figures::share(time, elapsed) }
            })
            .collect();
        Figures {
            elapsed_s: elapsed.as_secs(),
            packets: self.packets,
            throughput_bps: figures::ratio(8.0 * bytes as f64, elapsed.as_secs()),
            bus: BusFigures { name: None, load: buses.first().map_or(0.0, |bus| bus.load) },
            buses: if several { buses } else { Vec::new() },
            processors: processors
                .map(|(config, books)| ProcessorFigures {
                    name: config.name.clone(),
                    load: figures::share(books.busy, elapsed),
                    packets: books.packets,
                    bytes: books.bytes,
                    mean_size: figures::ratio(books.bytes as f64, books.packets as f64),
                })
                .collect(),
            processing_latency: self.processing.latency(),
            total_latency: self.total.latency(),
            packets_per_job: figures::ratio(self.packets as f64, self.jobs as f64),
            lost: self.lost,
        }
    }
}

/// Latencies of packets: their sum, a histogram, and if quantiles are to be exact each one.
#[derive(Debug)]
struct Latencies {
    sum: u128,
    count: u64,
    histogram: Histogram,
    all: Option<Vec<u64>>,
}

impl Latencies {
    fn new(exact: bool) -> Latencies {
        Latencies { sum: 0, count: 0, histogram: Histogram::new(), all: exact.then(Vec::new) }
    }

    #[inline]
    fn add(&mut self, latency: u64) {
        self.sum += u128::from(latency);
        self.count += 1;
        self.histogram.add(latency);
        if let Some(all) = &mut self.all {
            all.push(latency);
        }
    }

    fn latency(&self) -> Latency {
        let [p50_s, p90_s, p99_s, p999_s] = self.quantiles().map(|value| Duration(value).as_secs());
        Latency { mean_s: figures::mean_s(self.sum, self.count), p50_s, p90_s, p99_s, p999_s }
    }

    /// The values of nearest rank. The histogram says in which bucket each is; of the kept values
    /// only those in such a bucket have to be put in order.
    fn quantiles(&self) -> [u64; 4] {
        if self.count == 0 {
            return [0; 4];
        }
        let ranks = QUANTILES.map(|q| (u128::from(q) * u128::from(self.count)).div_ceil(1_000) as u64);
        let places = ranks.map(|rank| self.histogram.find(rank));
        let Some(all) = &self.all else { return places.map(|(bucket, _)| histogram::middle(bucket)) };
        let mut members: [Vec<u64>; 4] = Default::default();
        let mut wanted = vec![false; histogram::BUCKETS];
        places.iter().for_each(|&(bucket, _)| wanted[bucket] = true);
        for &value in all {
            let bucket = histogram::bucket(value);
            if wanted[bucket] {
                let lists = members.iter_mut().zip(&places).filter(|(_, place)| place.0 == bucket);
                lists.for_each(|(list, _)| list.push(value));
            }
        }
        let mut values = [0; 4];
        for (at, list) in members.iter_mut().enumerate() {
            let rank = ranks[at] - places[at].1 - 1;
            values[at] = *list.select_nth_unstable(rank as usize).1;
        }
        values
    }
}

/// Packets that are in the scheduler's input, by the id they have there.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    slots: Vec<Flight>,
    free: Vec<u32>,
}

impl Waiting {
    #[inline]
    pub(crate) fn put(&mut self, flight: Flight) -> u64 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = flight;
                u64::from(slot)
            }
            None => {
                self.slots.push(flight);
                self.slots.len() as u64 - 1
            }
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, slot: u64) -> Flight {
        self.free.push(slot as u32);
        self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_nearest_rank() {
        for count in [1u64, 2, 3, 9, 10, 11, 100, 1_000, 1_001, 54_321] {
            let mut latencies = Latencies::new(true);
            let mut sorted: Vec<u64> =
                (0..count).map(|k| k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (k % 40)).collect();
            sorted.iter().for_each(|&value| latencies.add(value));
            sorted.sort_unstable();
            let expected = [0.5, 0.9, 0.99, 0.999]
                .map(|q| sorted[((q * count as f64 - 1e-9).ceil() as usize).max(1) - 1]);
            assert_eq!(latencies.quantiles(), expected, "of {count}");
            let mut rough = Latencies::new(false);
            sorted.iter().for_each(|&value| rough.add(value));
            for (rough, exact) in rough.quantiles().into_iter().zip(expected) {
                assert!(rough.abs_diff(exact) as f64 <= exact as f64 / 500.0);
            }
        }
    }
}
