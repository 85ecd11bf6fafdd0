//! A run's books: what processors and buses did, and what became of each packet.

use forebay_time::{Duration, Time};

use crate::Scenario;
use crate::energy;
use crate::figures::{
    self, BusFigures, ClassFigures, CoresFigures, Figures, OrderFigures, ProcessorFigures, RunningCoreFigures,
};
use crate::flights::Flights;
use crate::latencies::{self, Latencies, Which};
use crate::order::Order;
use crate::outcome::Columns;
use crate::reorder::Reorder;
use crate::traffic::Arrival;

/// What a job carries through its processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    chosen: Time,
    /// The place of the first of its packets.
    first: u32,
}

#[derive(Debug, Default)]
struct Processor {
    busy: Duration,
    packets: u64,
    bytes: u64,
}

/// A service class.
#[derive(Debug)]
struct Class {
    lost: u64,
    latencies: Latencies,
}

/// What the running core does besides its jobs.
#[derive(Debug)]
struct Polls {
    moving: Duration,
    feeding: Duration,
    /// Polls that took packets, and those packets.
    polls: u64,
    taken: u64,
    reorder: Reorder,
}

/// Only packets from number `first` on count, and only time from `from` on.
#[derive(Debug)]
pub(crate) struct Ledger {
    first: u64,
    from: Time,
    last: Time,
    flights: Flights,
    /// Packets that have come, and when the last of them came.
    arrived: u64,
    last_arrival: Time,
    jobs: u64,
    processors: Vec<Processor>,
    /// By bus: time in transfers inward and outward.
    buses: Vec<[Duration; 2]>,
    /// One at least.
    classes: Vec<Class>,
    order: Order,
    /// Only with `keep_order`.
    kept: Option<Box<Reorder>>,
    /// Only with a running core that polls.
    polls: Option<Box<Polls>>,
    pub(crate) columns: Option<Columns>,
    /// Only with cores that go with their bursts.
    pub(crate) cores: Option<CoresFigures>,
}

impl Tag {
    /// The id of the first of its packets.
    pub(crate) fn id(&self) -> u64 {
        self.first.into()
    }
}

impl Ledger {
    /// `exact`: quantiles are, for which the latencies of about so many packets are kept.
    pub(crate) fn new(
        scenario: &Scenario,
        from: Time,
        exact: Option<usize>,
        columns: Option<Columns>,
    ) -> Ledger {
        let classes = scenario.scheduler.classes.len().max(1);
        debug_assert!(classes <= 256);
        let class = |_| Class { lost: 0, latencies: Latencies::new(exact.map(|packets| packets / classes)) };
        let polls = |_| {
            let reorder = Reorder::new(Latencies::new(exact));
            let (moving, feeding) = (Duration::ZERO, Duration::ZERO);
            Box::new(Polls { moving, feeding, polls: 0, taken: 0, reorder })
        };
        Ledger {
            first: scenario.traffic.warm_up,
            from,
            last: from,
            flights: Flights::new(),
            arrived: 0,
            last_arrival: from,
            jobs: 0,
            processors: scenario.processors.iter().map(|_| Processor::default()).collect(),
            buses: vec![[Duration::ZERO; 2]; scenario.buses.len()],
            classes: (0..classes).map(class).collect(),
            order: Order::default(),
            kept: scenario.scheduler.keep_order.then(|| Box::new(Reorder::new(Latencies::new(exact)))),
            polls: scenario.scheduler.running_core.map(polls),
            columns,
            cores: None,
        }
    }

    /// Packets that have come so far.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// A packet comes; returns its id.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, arrival: &Arrival) -> u64 {
        if let Some(columns) = &mut self.columns {
            columns.arrive(arrival);
        }
        let class = arrival.class.min(self.last_class());
        let in_sa = self.order.arrive(arrival.sa);
        let id = self.flights.put(arrival, self.arrived, class, in_sa);
        if let Some(kept) = &mut self.kept {
            kept.admit(id as usize, arrival.sa);
        }
        self.arrived += 1;
        self.last_arrival = arrival.at;
        id
    }

    /// The number of a packet in flight in the order of arrival, by its id.
    pub(crate) fn number(&self, id: u64) -> u64 {
        self.flights.number(id)
    }

    /// The class that those of higher numbers count as too.
    #[inline]
    fn last_class(&self) -> u8 {
        (self.classes.len() - 1) as u8
    }

    /// The packet is turned away.
    pub(crate) fn lose(&mut self, id: u64) {
        let flight = self.flights.take(id as u32);
        self.classes[usize::from(flight.class())].lost += 1;
        self.order.turn_away(flight.sa);
        if let Some(kept) = &mut self.kept {
            kept.turn_away(id as usize);
        }
    }

    /// A job of these packets, one at least, is placed.
    #[inline]
    pub(crate) fn place(&mut self, ids: &[u64], chosen: Time) -> Tag {
        Tag { chosen, first: self.flights.tie(ids) }
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

    /// The running core has taken a packet: it leaves behind those of its SA that were taken before.
    pub(crate) fn admit(&mut self, id: u64, sa: u32) {
        if let Some(polls) = &mut self.polls {
            polls.reorder.admit(id as usize, sa);
        }
    }

    /// The running core has polled: it has moved `taken` packets until `moved`, and handed over until `fed`.
    pub(crate) fn polls(&mut self, begin: Time, moved: Time, fed: Time, taken: usize) {
        let Some(polls) = &mut self.polls else { return };
        polls.moving += moved.since(begin.max(self.from));
        polls.feeding += fed.since(moved.max(self.from));
        if taken > 0 && begin >= self.from {
            polls.polls += 1;
            polls.taken += taken as u64;
        }
    }

    /// A job is done whose packet, it has only one, needs another one.
    pub(crate) fn pass(&mut self, tag: Tag) {
        self.jobs += u64::from(self.flights.number(tag.id()) >= self.first);
    }

    /// The SA of a packet in flight.
    pub(crate) fn sa(&self, id: u64) -> u32 {
        self.flights.sa(id)
    }

    /// A job is done.
    #[inline]
    pub(crate) fn complete(&mut self, processor: usize, now: Time, tag: Tag) {
        self.last = self.last.max(now);
        let mut next = Some(tag.first);
        while let Some(place) = next {
            next = self.land(processor, now, &tag, place);
        }
    }

    /// A packet of a job is done; returns the place of the next one.
    #[inline(never)] // most jobs have one, and a loop around all this would be prepared for many
    fn land(&mut self, processor: usize, now: Time, tag: &Tag, place: u32) -> Option<u32> {
        let flight = self.flights.take(place);
        let next = flight.next();
        if flight.number() >= self.first {
            let books = &mut self.processors[processor];
            books.packets += 1;
            books.bytes += u64::from(flight.bytes);
            let latencies = &mut self.classes[usize::from(flight.class())].latencies;
            latencies.add(now.since(tag.chosen).0, now.since(flight.arrived).0);
            // The last one came last: the job counts if it does.
            self.jobs += u64::from(next.is_none());
        }
        if let Some(columns) = &mut self.columns {
            columns.complete(flight.number() as usize, processor, tag.chosen, now);
        }
        let counts = flight.number() >= self.first;
        if let Some(reorder) =
            self.polls.as_mut().map(|polls| &mut polls.reorder).or(self.kept.as_deref_mut())
        {
            reorder.complete(place as usize, flight.arrived, now, counts);
        } else {
            self.order.leave(flight.sa, flight.in_sa, counts);
        }
        next
    }

    /// The last completion.
    pub(crate) fn last(&self) -> Time {
        self.last
    }

    /// From the last arrival to the last completion.
    pub(crate) fn drain(&self) -> Duration {
        self.last.since(self.last_arrival)
    }

    /// The sums. Whether a bus is full duplex is taken from the scenario.
    pub(crate) fn figures(&self, scenario: &Scenario) -> Figures {
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
        let all: Vec<&Latencies> = self.classes.iter().map(|class| &class.latencies).collect();
        let packets = all.iter().map(|part| part.count()).sum();
        let energy = energy::of(scenario, self.active(scenario), elapsed, packets);
        Figures {
            energy_per_packet_j: energy.map(|all| all.per_packet_j),
            average_power_w: energy.map(|all| all.average_power_w),
            elapsed_s: elapsed.as_secs(),
            packets,
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
            processing_latency: latencies::latency(&all, Which::Processing),
            total_latency: latencies::latency(&all, Which::Total),
            packets_per_job: figures::ratio(packets as f64, self.jobs as f64),
            lost: self.classes.iter().map(|class| class.lost).sum(),
            order: self.order(packets),
            classes: self.classes(scenario),
            running_core: self.running_core(scenario, elapsed),
            cores: self.cores,
        }
    }

    /// How long each processor was active, the running core with all that it does, and the bytes that it completed.
    fn active(&self, scenario: &Scenario) -> impl Iterator<Item = (Duration, u64)> {
        let running = scenario.scheduler.running_core.map(|core| core.processor);
        self.processors.iter().enumerate().map(move |(at, books)| {
            let polls = self.polls.as_ref().filter(|_| running == Some(at));
            let moved = polls.map_or(Duration::ZERO, |polls| polls.moving + polls.feeding);
            (books.busy + moved, books.bytes)
        })
    }

    fn order(&self, packets: u64) -> OrderFigures {
        let latency = |which| self.kept.as_ref().map(|kept| latencies::latency(&[&kept.latencies], which));
        OrderFigures {
            hold: latency(Which::Processing),
            release_latency: latency(Which::Total),
            ..self.order.figures(packets)
        }
    }

    fn running_core(&self, scenario: &Scenario, elapsed: Duration) -> Option<RunningCoreFigures> {
        let (core, polls) = (scenario.scheduler.running_core?, self.polls.as_ref()?);
        let [moving, feeding] = [polls.moving, polls.feeding].map(|time| figures::share(time, elapsed));
        let computing = figures::share(self.processors[core.processor].busy, elapsed);
        let latencies = &polls.reorder.latencies;
        Some(RunningCoreFigures {
            name: scenario.processors[core.processor].name.clone(),
            load: moving + feeding + computing,
            moving,
            feeding,
            packets_per_poll: figures::ratio(polls.taken as f64, polls.polls as f64),
            reorder_hold: latencies::latency(&[latencies], Which::Processing),
            release_latency: latencies::latency(&[latencies], Which::Total),
        })
    }

    fn classes(&self, scenario: &Scenario) -> Vec<ClassFigures> {
        let classes = scenario.scheduler.classes.iter().zip(&self.classes);
        classes
            .map(|(class, books)| ClassFigures {
                name: class.name.clone(),
                packets: books.latencies.count(),
                processing_latency: latencies::latency(&[&books.latencies], Which::Processing),
                total_latency: latencies::latency(&[&books.latencies], Which::Total),
                lost: books.lost,
            })
            .collect()
    }
}
