//! The simulator against a slow and obvious reading of models.md section 1, on random scenarios.
//!
//! The oracle shares nothing with what it judges: it has its own placement rule, window, queues and bus,
//! keeps one list of jobs, and counts everything out of that list each time it is asked.

use crate::support;

use forebay_scheduler::{Kind, Policy};
use forebay_sim::{Dependent, Scenario};
use proptest::prelude::*;
use support::{Packet, run_columns, scenario};

/// Where a job is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Queue,
    Inward,
    Ahead,
    Computing,
    /// Computed, and still in the unit.
    Stuck,
    WriteBuffer,
    Outward,
    Gone,
}
use Place::*;

struct Job {
    packets: Vec<usize>,
    sa: u32,
    processor: usize,
    bytes: u64,
    time: u64,
    /// What the scheduler thinks it costs there.
    cost: u64,
    chosen: u64,
    place: Place,
    taken_at: u64,
    done_at: u64,
}

enum Event {
    Computed(usize),
    OffBus(usize),
}

struct Oracle<'a> {
    scenario: &'a Scenario,
    packets: &'a [Packet],
    now: u64,
    /// In the order of scheduling; the first of the earliest is next.
    events: Vec<(u64, Event)>,
    /// By bus, in the order of asking; the first has it.
    buses: Vec<Vec<usize>>,
    jobs: Vec<Job>,
    input: Vec<usize>,
    arrived: usize,
    /// The job at the head, and its processor once that is chosen.
    hand: Option<(Vec<usize>, usize, u64)>,
    /// Packets that wait for the one before of their SA, and of each packet how many passes are done.
    held: Vec<usize>,
    passed: Vec<usize>,
    turn: usize,
    compute_time: Vec<u64>,
    bus_time: u64,
}

impl Oracle<'_> {
    fn run(&mut self) {
        loop {
            self.happen();
            if self.decide() {
                continue;
            }
            if self.arrived < self.packets.len() && self.packets[self.arrived].0 <= self.now {
                let packet = self.arrived;
                let waits_for = |&before: &usize| {
                    self.packets[before].2 == self.packets[packet].2 && self.passed[before] < self.passes()
                };
                if self.is_dependent(packet) && (0..packet).any(|before| waits_for(&before)) {
                    self.held.push(packet);
                } else {
                    self.input.push(packet);
                }
                self.arrived += 1;
                continue;
            }
            let mut next: Vec<u64> = self.events.iter().map(|event| event.0).collect();
            next.extend(self.packets.get(self.arrived).map(|packet| packet.0));
            if let (None, Some(&head), Some(timeout)) =
                (&self.hand, self.input.first(), self.scenario.scheduler.timeout)
            {
                next.push(self.packets[head].0 + timeout.0);
            }
            match next.into_iter().filter(|&at| at > self.now).min() {
                Some(at) => self.now = at,
                None => break,
            }
        }
        assert!(self.input.is_empty() && self.hand.is_none());
    }

    fn happen(&mut self) {
        while let Some(next) = (0..self.events.len()).min_by_key(|&at| self.events[at].0)
            && self.events[next].0 <= self.now
        {
            match self.events.remove(next).1 {
                Event::Computed(job) if self.is_cpu(self.jobs[job].processor) => {
                    self.leave(job);
                    self.act(self.jobs[job].processor);
                }
                Event::Computed(job) => {
                    self.jobs[job].place = Stuck;
                    self.act(self.jobs[job].processor);
                }
                Event::OffBus(job) => {
                    if self.jobs[job].place == Inward {
                        self.jobs[job].place = Ahead;
                    } else {
                        self.leave(job);
                    }
                    let processor = self.jobs[job].processor;
                    self.act(processor);
                    let bus = self.bus_of(processor);
                    self.buses[bus].remove(0);
                    self.first_on_bus(bus);
                }
            }
        }
    }

    fn is_cpu(&self, processor: usize) -> bool {
        self.scenario.processors[processor].config.kind == Kind::Cpu
    }

    fn bus_of(&self, processor: usize) -> usize {
        self.scenario.processors[processor].bus.unwrap()
    }

    fn leave(&mut self, job: usize) {
        self.jobs[job].place = Gone;
        self.jobs[job].done_at = self.now;
        for packet in self.jobs[job].packets.clone() {
            self.passed[packet] += 1;
            if self.passed[packet] < self.passes() {
                self.input.push(packet);
            } else if self.is_dependent(packet) {
                let sa = self.packets[packet].2;
                if let Some(at) = self.held.iter().position(|&next| self.packets[next].2 == sa) {
                    let next = self.held.remove(at);
                    self.input.push(next);
                }
            }
        }
    }

    /// Passes of a packet that are jobs of their own.
    fn passes(&self) -> usize {
        self.scenario.traffic.passes.len().max(1)
    }

    /// Whether a packet has to wait for others of its SA.
    fn is_dependent(&self, packet: usize) -> bool {
        self.packets[packet].2 < self.scenario.traffic.dependent_sas
            && self.scenario.scheduler.dependent == Dependent::WhenReady
    }

    fn suite(&self, packet: usize) -> u8 {
        let traffic = &self.scenario.traffic;
        match traffic.passes.get(self.passed[packet]) {
            Some(&suite) => suite,
            None => traffic.suites[self.packets[packet].2 as usize % traffic.suites.len()],
        }
    }

    /// What a job takes for its keys, by all jobs that were placed there.
    fn keys(&self, sa: u32, processor: usize) -> u64 {
        let Some(keys) = self.scenario.processors[processor].config.keys else { return 0 };
        let placed: Vec<u32> =
            self.jobs.iter().filter(|job| job.processor == processor).map(|job| job.sa).collect();
        let Some(last) = placed.iter().rposition(|&one| one == sa) else {
            return keys.load.0 + keys.session.0;
        };
        let mut since: Vec<u32> = placed[last + 1..].to_vec();
        since.sort_unstable();
        since.dedup();
        if keys.slots == 0 || since.len() < keys.slots as usize { 0 } else { keys.load.0 }
    }

    fn count(&self, processor: usize, places: &[Place]) -> usize {
        self.jobs.iter().filter(|job| job.processor == processor && places.contains(&job.place)).count()
    }

    fn first(&self, processor: usize, place: Place) -> Option<usize> {
        self.jobs.iter().position(|job| job.processor == processor && job.place == place)
    }

    fn compute(&mut self, job: usize) {
        let processor = self.jobs[job].processor;
        self.jobs[job].place = Computing;
        self.compute_time[processor] += self.jobs[job].time;
        self.events.push((self.now + self.jobs[job].time, Event::Computed(job)));
    }

    fn act(&mut self, processor: usize) {
        if self.is_cpu(processor) {
            if self.count(processor, &[Computing]) == 0
                && let Some(job) = self.first(processor, Queue)
            {
                self.jobs[job].taken_at = self.now;
                self.compute(job);
            }
            return;
        }
        let places = self.scenario.processors[processor].write_buffer;
        if places > 0
            && self.count(processor, &[WriteBuffer, Outward]) < places
            && let Some(job) = self.first(processor, Stuck)
        {
            self.jobs[job].place = WriteBuffer;
        }
        if self.unit_free(processor)
            && let Some(job) = self.first(processor, Ahead)
        {
            self.compute(job);
        }
        let ahead = self.count(processor, &[Ahead]);
        if self.count(processor, &[Inward]) == 0
            && (self.unit_free(processor) || ahead < self.scenario.processors[processor].prefetch)
            && let Some(job) = self.first(processor, Queue)
        {
            self.jobs[job].place = Inward;
            self.jobs[job].taken_at = self.now;
            self.ask(job);
        }
        if self.count(processor, &[Outward]) == 0
            && let Some(job) = self.first(processor, if places > 0 { WriteBuffer } else { Stuck })
        {
            self.jobs[job].place = Outward;
            self.ask(job);
        }
    }

    /// Without a write buffer the job that is written back still blocks the unit.
    fn unit_free(&self, processor: usize) -> bool {
        let unbuffered = self.scenario.processors[processor].write_buffer == 0;
        self.count(processor, &[Computing, Stuck, if unbuffered { Outward } else { Stuck }]) == 0
    }

    fn ask(&mut self, job: usize) {
        let bus = self.bus_of(self.jobs[job].processor);
        self.buses[bus].push(job);
        if self.buses[bus].len() == 1 {
            self.first_on_bus(bus);
        }
    }

    fn first_on_bus(&mut self, bus: usize) {
        if let Some(&job) = self.buses[bus].first() {
            let length = transfer(self.jobs[job].bytes);
            self.bus_time += if bus == 0 { length } else { 0 };
            self.events.push((self.now + length, Event::OffBus(job)));
        }
    }

    /// Whether something was placed.
    fn decide(&mut self) -> bool {
        if self.hand.is_none() {
            let Some(packets) = self.bundle() else { return false };
            let processor = self.choose(&packets);
            self.hand = Some((packets, processor, self.now));
        }
        let (packets, processor, chosen) = self.hand.take().unwrap();
        if self.count(processor, &[Queue]) >= self.scenario.processors[processor].config.queue {
            self.hand = Some((packets, processor, chosen));
            return false;
        }
        let (bytes, time, cost) = self.sums(&packets, processor);
        let place = Queue;
        let sa = self.packets[packets[0]].2;
        self.jobs.push(Job {
            packets,
            sa,
            processor,
            bytes,
            time,
            cost,
            chosen,
            place,
            taken_at: 0,
            done_at: 0,
        });
        self.act(processor);
        true
    }

    fn bundle(&mut self) -> Option<Vec<usize>> {
        let settings = &self.scenario.scheduler;
        let (reference, sa) = (*self.input.first()?, self.packets[self.input[0]].2);
        let most = settings.max_bytes.unwrap_or(u64::MAX);
        let window = &self.input[..settings.window.min(self.input.len())];
        let same: Vec<usize> =
            window.iter().copied().filter(|&packet| self.packets[packet].2 == sa).collect();
        let bytes =
            |packets: &[usize]| packets.iter().map(|&packet| u64::from(self.packets[packet].1)).sum::<u64>();
        let ready = window.len() == settings.window
            || self.arrived == self.packets.len()
            || bytes(&same) >= most
            || settings.timeout.is_some_and(|timeout| self.now >= self.packets[reference].0 + timeout.0);
        if !ready {
            return None;
        }
        let fitting = (1..=same.len()).rev().find(|&n| n == 1 || bytes(&same[..n]) <= most).unwrap();
        let chosen = same[..fitting].to_vec();
        self.input.retain(|packet| !chosen.contains(packet));
        Some(chosen)
    }

    /// Bytes, t_enc, and p_i.
    fn sums(&self, packets: &[usize], processor: usize) -> (u64, u64, u64) {
        let config = &self.scenario.processors[processor].config;
        let bytes: u64 = packets.iter().map(|&packet| u64::from(self.packets[packet].1)).sum();
        let blocks: u64 = packets.iter().map(|&packet| u64::from(self.packets[packet].1).div_ceil(16)).sum();
        let keys = self.keys(self.packets[packets[0]].2, processor);
        let time = config.cost.init.0 + blocks * config.cost.block.0 + keys;
        let cost = time + if config.transfer.is_some() { 2 * transfer(bytes) } else { 0 };
        (bytes, time, cost)
    }

    fn choose(&mut self, packets: &[usize]) -> usize {
        let (suite, sa) = (self.suite(packets[0]), self.packets[packets[0]].2);
        let settings = &self.scenario.scheduler;
        let processors = &self.scenario.processors;
        let can = |&processor: &usize| processors[processor].config.suites & 1 << suite != 0;
        let same = settings.dependent == Dependent::SameProcessor;
        if settings.stay || same && sa < self.scenario.traffic.dependent_sas {
            let before = self.jobs.iter().rfind(|job| job.sa == sa);
            if let Some(home) = before.map(|job| job.processor).filter(can) {
                return home;
            }
        }
        if settings.idle_to_accelerator && self.jobs.iter().all(|job| job.place == Gone) {
            let cards = (0..processors.len()).filter(can).filter(|&one| !self.is_cpu(one));
            if let Some(first) = cards.min_by_key(|&one| self.sums(packets, one).2) {
                return first;
            }
        }
        match self.scenario.scheduler.policy {
            Policy::Single { processor } if can(&processor) => return processor,
            Policy::RoundRobin => {
                let turns = (self.turn..self.turn + processors.len()).map(|at| at % processors.len());
                let chosen = turns.clone().find(can).unwrap();
                self.turn = chosen + 1;
                return chosen;
            }
            _ => {}
        }
        let rank = |processor: usize| {
            let config = &processors[processor].config;
            let of =
                |place| self.jobs.iter().filter(move |job| job.processor == processor && job.place == place);
            let mut wait: u64 = of(Queue).map(|job| job.cost).sum();
            let mut taken = self.jobs.iter().filter(|job| job.processor == processor && job.place != Queue);
            if let Some(last) = taken.next_back() {
                wait += last.cost.saturating_sub(self.now - last.taken_at);
            }
            if self.scenario.scheduler.prefetch_aware {
                wait += of(Ahead).map(|job| job.cost).sum::<u64>();
            }
            let cost = self.sums(packets, processor).2;
            // alpha is a whole number of halves in these scenarios.
            let halves = (config.alpha * 2.0) as u64;
            let finish = (halves * (wait + cost + config.beta.0)).div_ceil(2);
            (finish, self.is_cpu(processor), cost, processor)
        };
        (0..processors.len()).filter(can).min_by_key(|&processor| rank(processor)).unwrap()
    }
}

/// 10 ps for the address and for each 4 bytes.
fn transfer(bytes: u64) -> u64 {
    10 * (1 + bytes.div_ceil(4))
}

/// Round figures, so that many things fall on one instant.
fn tens(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![3 => (0..=most / 10).prop_map(|n| 10 * n), 1 => 0..=most]
}

fn queue() -> impl Strategy<Value = usize> {
    prop_oneof![1..4usize, Just(1000usize)]
}

fn processor() -> impl Strategy<Value = String> {
    let suites = prop_oneof![3 => Just("\"a\", \"b\""), 1 => Just("\"b\""), 1 => Just("\"a\"")];
    let cpu = (tens(200), tens(100), 2..9u32, tens(300), queue(), suites.clone()).prop_map(
        |(init, block, halves, beta, queue, suites)| {
            format!(
                "kind = \"cpu\"\ninit = \"{init} ps\"\nblock = \"{block} ps\"\nalpha = {}\nbeta = \"{beta} ps\"\n\
                 queue = {queue}\nsuites = [{suites}]\n",
                f64::from(halves) / 2.0
            )
        },
    );
    let card = (tens(100), tens(100), queue(), 0..3u32, 0..3u32, 0..2u32, suites).prop_map(
        |(init, block, queue, write_buffer, prefetch, bus, suites)| {
            format!(
                "kind = \"accelerator\"\ninit = \"{init} ps\"\nblock = \"{block} ps\"\nqueue = {queue}\n\
                 write_buffer = {write_buffer}\nprefetch = {prefetch}\nbus = \"b{bus}\"\nsuites = [{suites}]\n"
            )
        },
    );
    prop_oneof![1 => cpu, 2 => card]
}

/// Keys of SAs, of half the processors.
fn keys() -> impl Strategy<Value = String> {
    let some = (0..4u32, tens(100), prop::option::of(tens(200))).prop_map(|(slots, load, session)| {
        let slots = if slots > 0 { format!("key_slots = {slots}\n") } else { String::new() };
        let session = session.map(|ps| format!("session = \"{ps} ps\"\n")).unwrap_or_default();
        format!("{slots}key_load = \"{load} ps\"\n{session}")
    });
    prop_oneof![1 => Just(String::new()), 1 => some]
}

/// Traffic and scheduler of jobs that need others, of some of the scenarios.
fn needs() -> impl Strategy<Value = (String, String)> {
    let dependent = prop_oneof![Just("when-ready"), Just("same-processor")];
    let some = (dependent, 0..4u32, any::<bool>()).prop_map(|(dependent, sas, passes)| {
        let passes = passes || sas == 0;
        let suites = if passes { "passes = [\"b\", \"a\"]\n" } else { "suites = [\"a\", \"b\"]\n" };
        (format!("dependent_sas = {sas}\n{suites}"), format!("dependent = \"{dependent}\"\n"))
    });
    prop_oneof![1 => Just(("suites = [\"a\", \"b\"]\n".to_owned(), String::new())), 1 => some]
}

fn settings() -> impl Strategy<Value = (String, String)> {
    let policy = prop_oneof![4 => Just("finish-time"), 1 => Just("single"), 1 => Just("round-robin")];
    let window = prop_oneof![2 => Just(1u32), 2 => 2..8u32];
    let timeout = prop::option::of(tens(400));
    let max_bytes = prop::option::of(1..200u32);
    let stays = prop::bool::weighted(0.25);
    (policy, window, timeout, max_bytes, any::<[bool; 3]>(), stays, needs()).prop_map(
        |(policy, window, timeout, max_bytes, [aware, predict, idle], stays, (traffic, dependent))| {
            let timeout = timeout.map(|ps| format!("timeout = \"{ps} ps\"\n")).unwrap_or_default();
            let bytes = max_bytes.map(|bytes| format!("max_bytes = {bytes}\n")).unwrap_or_default();
            // A window excludes jobs that need others.
            let window = if dependent.is_empty() { window } else { 1 };
            let idle = idle && policy == "finish-time";
            let idle = if idle { "accelerator" } else { "finish-time" };
            let scheduler = format!(
                "[scheduler]\npolicy = \"{policy}\"\nwindow = {window}\nprefetch_aware = {aware}\n\
                 predict_transfer = {predict}\naffinity = {stays}\nall_idle = \"{idle}\"\n{timeout}{bytes}{dependent}"
            );
            (traffic, scheduler)
        },
    )
}

fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let span = prop_oneof![1 => 100..1_000u64, 3 => 1_000..10_000u64];
    let suite_count = 1..6u32;
    (span, suite_count).prop_flat_map(|(span, sas)| {
        prop::collection::vec((tens(span), 0..100u32, 0..sas), 1..60).prop_map(|mut list| {
            list.sort_by_key(|packet| packet.0);
            let first = list[0].0;
            list.iter_mut().for_each(|packet| packet.0 -= first);
            list
        })
    })
}

fn build(
    processors: &[(String, String)],
    (traffic, settings): &(String, String),
    packets: &[Packet],
) -> Scenario {
    // Two buses in place of the one, and a processor that can do everything.
    let bus = |name| format!("[[bus]]\nname = \"{name}\"\nclock = \"100 GHz\"\n");
    let all = "kind = \"accelerator\"\nname = \"all\"\ninit = \"40 ps\"\nblock = \"50 ps\"\nbus = \"b0\"\n";
    let mut text =
        "model = \"host\"\n[traffic]\nsource = \"fixed\"\nvalue = 1\nrate = 1\noverhead = 0\n".to_owned();
    text += traffic;
    text += &format!("{}{}[[processor]]\n{all}", bus("b0"), bus("b1"));
    for (number, (processor, keys)) in processors.iter().enumerate() {
        text += &format!("[[processor]]\nname = \"p{number}\"\n{processor}{keys}");
    }
    text += settings;
    let mut scenario =
        Scenario::parse(&text, "random", &[], std::path::Path::new("")).unwrap_or_else(|errors| {
            panic!("{text}\n{:?}", errors.findings().iter().map(ToString::to_string).collect::<Vec<_>>())
        });
    support::set_packets(&mut scenario, packets);
    scenario
}

/// The value of nearest rank, straight from its definition.
fn quantile(values: &[u64], thousandths: u64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank =
        (1..=sorted.len() as u64).find(|&rank| rank * 1_000 >= thousandths * sorted.len() as u64).unwrap();
    sorted[rank as usize - 1] as f64 / 1e12
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_goes_where_and_when_the_oracle_says(
        processors in prop::collection::vec((processor(), keys()), 0..4),
        settings in settings(),
        packets in packets(),
    ) {
        let scenario = build(&processors, &settings, &packets);
        let mut oracle = Oracle {
            scenario: &scenario,
            packets: &packets,
            now: 0,
            events: Vec::new(),
            buses: vec![Vec::new(); scenario.buses.len()],
            jobs: Vec::new(),
            input: Vec::new(),
            arrived: 0,
            hand: None,
            held: Vec::new(),
            passed: vec![0; packets.len()],
            turn: 0,
            compute_time: vec![0; scenario.processors.len()],
            bus_time: 0,
        };
        oracle.run();
        prop_assert!(oracle.held.is_empty());
        let mut expected = vec![(0, u64::MAX, 0); packets.len()];
        for job in &oracle.jobs {
            prop_assert_eq!(job.place, Gone);
            for &packet in &job.packets {
                // Of several passes the last one's end, and the first one's choice.
                let chosen = job.chosen.min(expected[packet].1);
                expected[packet] = (job.processor as u16, chosen, job.done_at);
            }
        }
        let (outcome, columns) = run_columns(&scenario);
        let actual: Vec<_> = (0..packets.len())
            .map(|at| (columns.processor[at], columns.chosen[at], columns.completed[at]))
            .collect();
        prop_assert_eq!(actual, expected.clone());

        let figures = outcome.figures;
        let elapsed = expected.iter().map(|packet| packet.2).max().unwrap() as f64;
        let bytes: u64 = packets.iter().map(|packet| u64::from(packet.1)).sum();
        let total: Vec<u64> = expected.iter().zip(&packets).map(|(done, packet)| done.2 - packet.0).collect();
        let processing: Vec<u64> = expected.iter().map(|done| done.2 - done.1).collect();
        let near = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-12 * b.abs();
        if elapsed > 0.0 {
            prop_assert!(near(figures.elapsed_s, elapsed / 1e12));
            prop_assert!(near(figures.throughput_bps, 8.0 * bytes as f64 / (elapsed / 1e12)));
            prop_assert!(near(figures.bus.load, oracle.bus_time as f64 / elapsed));
            for (one, time) in figures.processors.iter().zip(&oracle.compute_time) {
                prop_assert!(near(one.load, *time as f64 / elapsed));
            }
        }
        prop_assert!(near(figures.packets_per_job, packets.len() as f64 / oracle.jobs.len() as f64));
        for (latency, values) in [(figures.total_latency, &total), (figures.processing_latency, &processing)] {
            prop_assert!(near(latency.mean_s, values.iter().sum::<u64>() as f64 / 1e12 / values.len() as f64));
            let found = [latency.p50_s, latency.p90_s, latency.p99_s, latency.p999_s];
            for (found, q) in found.into_iter().zip([500, 900, 990, 999]) {
                prop_assert!(near(found, quantile(values, q)), "p{}: {} {}", q, found, quantile(values, q));
            }
        }
    }
}

#[test]
fn the_oracle_is_looked_at() {
    // One packet of 16 bytes: 50 ps in, 40 + 50 computed, 50 out.
    let packets = [(0, 16, 0)];
    let scenario =
        scenario("[[processor]]\nkind = \"accelerator\"\ninit = \"40 ps\"\nblock = \"50 ps\"\n", &packets);
    assert_eq!(run_columns(&scenario).1.completed, [190]);
}
