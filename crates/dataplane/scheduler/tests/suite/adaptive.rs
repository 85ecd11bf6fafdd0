//! Alpha and the window finding their own values, in virtual time with the papers' host.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use forebay_scheduler::{
    AlphaLoop, Config, Cost, Decision, Item, Policy, ProcessorConfig, Progress, Scheduler, Windowing,
};
use forebay_time::{Duration, PS_PER_S, Time};
use proptest::prelude::*;

/// 230 Mbit/s at the mean size of 296 bytes, and a CPU of 110 Mbit/s.
const CARD: Cost = Cost {
    init: Duration::from_nanos(1_936),
    packet: Duration::ZERO,
    block: Duration::from_nanos(440),
    submit: Duration::ZERO,
    wake: Duration::ZERO,
    lanes: 1,
};
const CPU: Cost = Cost { init: Duration::from_nanos(4_048), block: Duration::from_nanos(920), ..CARD };

fn host() -> Vec<ProcessorConfig> {
    let card = ProcessorConfig::accelerator(CARD);
    let mut host = vec![ProcessorConfig::cpu(CPU), card.clone(), card];
    host.iter_mut().for_each(|one| (one.progress, one.queue) = (Progress::InOrder, 50));
    host
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    Done { processor: usize },
    Due,
    Report,
}

/// A driver in virtual time: what arrives when, and what else the CPU does.
struct Run {
    scheduler: Scheduler,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    scheduled: u64,
    queues: Vec<VecDeque<(Duration, Vec<Time>)>>,
    bytes: u64,
    random: u64,
    /// What was measured since the last [`Run::figures`].
    jobs: u64,
    packets: u64,
    latency: Duration,
    latency_max: Duration,
    worked: Vec<Duration>,
    since: Time,
    done: Time,
    due: Time,
    now: Time,
    others: f64,
}

struct Figures {
    packets_per_job: f64,
    packets_per_s: f64,
    latency: f64,
    latency_max: f64,
    load: Vec<f64>,
}

impl Run {
    fn new(config: Config) -> Run {
        let count = config.processors.len();
        Run {
            scheduler: Scheduler::new(config).unwrap(),
            events: BinaryHeap::new(),
            scheduled: 0,
            queues: vec![VecDeque::new(); count],
            bytes: 0,
            random: 1,
            jobs: 0,
            packets: 0,
            latency: Duration::ZERO,
            latency_max: Duration::ZERO,
            worked: vec![Duration::ZERO; count],
            since: Time::ZERO,
            done: Time::ZERO,
            due: Time::ZERO,
            now: Time::ZERO,
            others: 0.0,
        }
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.events.push(Reverse((at, self.scheduled, event)));
        self.scheduled += 1;
    }

    fn draw(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// `packets` packets of 40 to 552 bytes back to back at `rate` bit/s, of `sas` equiprobable SAs; a
    /// load report every millisecond. Until all are done. A packet's id is when it came.
    fn offer(&mut self, packets: u64, rate: u64, sas: u64) -> Figures {
        let (began, mut sent, mut bits) = (self.now, 0, 0u128);
        self.schedule(began, Event::Arrival);
        self.schedule(began, Event::Report);
        let mut left = packets;
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            self.now = now;
            match event {
                Event::Arrival => {
                    let bytes = 40 + self.draw() as u32 % 513;
                    let sa = (self.draw() % sas) as u32;
                    self.scheduler.push(now, Item { id: now.0, sa, class: 0, suite: 0, bytes }).unwrap();
                    self.bytes += u64::from(bytes);
                    (sent, bits) = (sent + 1, bits + 8 * u128::from(bytes));
                    let next = bits * u128::from(PS_PER_S) / u128::from(rate);
                    match sent < packets {
                        true => self.schedule(Time(began.0 + next as u64), Event::Arrival),
                        false => self.scheduler.end_of_input(),
                    }
                }
                Event::Done { processor } => {
                    let (time, arrivals) = self.queues[processor].pop_front().unwrap();
                    self.worked[processor] += time;
                    for arrived in &arrivals {
                        let latency = now.since(*arrived);
                        self.latency += latency;
                        self.latency_max = self.latency_max.max(latency);
                    }
                    (self.jobs, self.packets) = (self.jobs + 1, self.packets + arrivals.len() as u64);
                    left -= arrivals.len() as u64;
                    self.done = now;
                    self.scheduler.complete(processor, 1, now);
                    if let Some(&(time, _)) = self.queues[processor].front() {
                        self.schedule(now + time, Event::Done { processor });
                    }
                }
                Event::Report => {
                    let others = self.others;
                    self.scheduler.report_load(0, now, others);
                    if left > 0 {
                        self.schedule(now + Duration::from_millis(1), Event::Report);
                    }
                }
                Event::Due => {}
            }
            loop {
                match self.scheduler.next(now) {
                    Decision::Dispatch { processor, job, prediction, .. } => {
                        let arrivals = job.items().iter().map(|&id| Time(id)).collect();
                        let idle = self.queues[processor].is_empty();
                        self.queues[processor].push_back((prediction.service, arrivals));
                        if idle {
                            self.schedule(now + prediction.service, Event::Done { processor });
                        }
                    }
                    Decision::Wait { until } if until < Time::MAX && until != self.due => {
                        self.due = until;
                        break self.schedule(until, Event::Due);
                    }
                    _ => break,
                }
            }
        }
        assert_eq!(left, 0, "every packet is done");
        let seconds = self.done.since(self.since).as_secs();
        let figures = Figures {
            packets_per_job: self.packets as f64 / self.jobs as f64,
            packets_per_s: self.packets as f64 / seconds,
            latency: self.latency.as_secs() / self.packets as f64,
            latency_max: self.latency_max.as_secs(),
            load: self.worked.iter().map(|time| time.as_secs() / seconds).collect(),
        };
        (self.jobs, self.packets, self.latency, self.latency_max) = (0, 0, Duration::ZERO, Duration::ZERO);
        self.worked.fill(Duration::ZERO);
        self.since = self.now;
        figures
    }
}

fn windowed(window: usize, windowing: Windowing, timeout: Option<Duration>) -> Run {
    Run::new(Config { window, windowing, timeout, ..Config::new(host()) })
}

const BUSY: u64 = 1_000_000_000;
const QUIET: u64 = 200_000_000;

#[test]
fn under_load_the_window_grows_to_what_a_fixed_one_gives() {
    for (sas, window) in [(100, 30), (8, 30), (100, 120)] {
        let fixed = windowed(window, Windowing::Fixed, None).offer(40_000, BUSY, sas);
        let none = windowed(1, Windowing::Fixed, None).offer(40_000, BUSY, sas);
        let mut run = windowed(window, Windowing::Adaptive, None);
        let found = run.offer(40_000, BUSY, sas);
        println!(
            "{sas} SAs, at most {window}: {:.3} packets a job where {:.3} can be; {:.0} packets/s, {:.0}, {:.0}",
            found.packets_per_job,
            fixed.packets_per_job,
            found.packets_per_s,
            fixed.packets_per_s,
            none.packets_per_s
        );
        let gained = found.packets_per_s - none.packets_per_s;
        assert!(gained > 0.75 * (fixed.packets_per_s - none.packets_per_s));
    }
}

#[test]
fn where_processors_are_idle_no_packet_waits() {
    let timeout = Some(Duration::from_micros(500));
    let fixed = windowed(30, Windowing::Fixed, timeout).offer(20_000, QUIET, 8);
    let none = windowed(1, Windowing::Fixed, None).offer(20_000, QUIET, 8);
    let found = windowed(30, Windowing::Adaptive, timeout).offer(20_000, QUIET, 8);
    println!(
        "mean latency {:.2e} s; without a window {:.2e}, fixed {:.2e}",
        found.latency, none.latency, fixed.latency
    );
    assert!(found.latency < 1.1 * none.latency && found.latency < 0.1 * fixed.latency);
}

#[test]
fn nothing_is_held_back_where_nothing_can_be_bundled() {
    let mut run = windowed(30, Windowing::Adaptive, None);
    let found = run.offer(20_000, BUSY, 1 << 30);
    assert_eq!((found.packets_per_job, run.scheduler.class_window(0).0), (1.0, 1));
}

#[test]
fn the_window_follows_the_traffic_both_ways_and_never_waits_longer_than_its_timeout() {
    let longest = Duration::from_micros(200);
    let mut run = windowed(32, Windowing::Adaptive, Some(longest));
    for _ in 0..2 {
        let busy = run.offer(20_000, BUSY, 8);
        assert!(busy.packets_per_job > 2.5, "{}", busy.packets_per_job);
        let quiet = run.offer(20_000, QUIET, 8);
        println!("{:.2} packets a job, then {:.2}", busy.packets_per_job, quiet.packets_per_job);
        assert_eq!(run.scheduler.class_window(0).0, 1);
        assert!(quiet.packets_per_job < 1.1 && quiet.latency_max < 1e-3, "{:.2e}", quiet.latency_max);
        let (_, timeout) = run.scheduler.class_window(0);
        assert!(timeout.unwrap() <= longest);
    }
}

#[test]
fn alpha_gives_the_cpu_up_while_it_is_needed_and_takes_it_back() {
    let control = AlphaLoop { period: Duration::from_millis(2), ..AlphaLoop::DEFAULT };
    let policy = Policy::AdaptiveAlpha(control);
    let mut run = Run::new(Config { policy, ..Config::new(host()) });
    // More than all three can do together: crypto alone would take the whole CPU.
    let mut offer = |others| {
        run.others = others;
        run.offer(10_000, 560_000_000, 100);
        let figures = run.offer(20_000, 560_000_000, 100);
        println!("others {others}: alpha {:.2}, CPU {:.3}", run.scheduler.alpha(0), figures.load[0]);
        (run.scheduler.alpha(0), figures.load[0], figures.load[1])
    };
    let (_, alone, _) = offer(0.0);
    let (high, shared, cards) = offer(0.6);
    let (after, again, _) = offer(0.0);
    assert!(alone > 0.6, "{alone}");
    assert!(high > 1.5 && shared + 0.6 < 1.0, "{high} {shared}");
    assert!(cards > 0.95, "what the CPU does not do is theirs: {cards}");
    assert!(after < high && again > shared + 0.2, "{after} {again}");
}

#[test]
fn other_policies_heed_no_load() {
    let mut s = Scheduler::new(Config::new(host())).unwrap();
    for ms in 0..100 {
        s.report_load(0, Time(ms * 1_000_000_000), 1.0);
    }
    assert_eq!(s.alpha(0), 1.0);
    let policy: Policy = "adaptive-alpha".parse().unwrap();
    let mut s = Scheduler::new(Config { policy, ..Config::new(host()) }).unwrap();
    for ms in 0..1_000 {
        (0..3).for_each(|processor| s.report_load(processor, Time(ms * 1_000_000_000), 1.0));
    }
    assert_eq!([0, 1, 2].map(|processor| s.alpha(processor)), [500.0, 1.0, 1.0], "accelerators keep theirs");
    s.set_bias(0, 2.0, Duration::ZERO).unwrap();
    for ms in 1_000..3_000 {
        s.report_load(0, Time(ms * 1_000_000_000), 0.0);
    }
    assert_eq!(s.alpha(0), 2.0, "never below what was set");
    let policy = Policy::AdaptiveAlpha(AlphaLoop { lower: 95, ..AlphaLoop::DEFAULT });
    let error = Scheduler::new(Config { policy, ..Config::new(host()) }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "alpha falls below 95 % and rises above 90 % to 500 every 10.0 ms; the lower mark is at most the \
         upper, that at most 100 %, the others above 0"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn an_adaptive_window_loses_and_reorders_nothing(
        window in 2usize..40,
        timeout in prop::option::of((0u64..5_000).prop_map(Duration)),
        max_bytes in prop::option::of(100u64..3_000),
        // Phases: SAs, pause between packets, packets between completions, packets.
        phases in prop::collection::vec((1u32..40, 0u64..3_000, 1u64..30, 1u64..700), 1..5),
    ) {
        let cost = Cost { init: Duration(1_000), block: Duration(10), ..Cost::default() };
        let card = ProcessorConfig { queue: 20, progress: Progress::InOrder, ..ProcessorConfig::accelerator(cost) };
        let windowing = Windowing::Adaptive;
        let config = Config { window, windowing, timeout, max_bytes, input: 3_000, ..Config::new(vec![card]) };
        let mut s = Scheduler::new(config).unwrap();
        let (mut id, mut now, mut left, mut pushed) = (0u64, 0, vec![], vec![]);
        let drain = |s: &mut Scheduler, now, left: &mut Vec<(u32, u64)>| loop {
            match s.next(Time(now)) {
                Decision::Dispatch { job, .. } => {
                    assert!(job.items().len() <= window);
                    assert!(max_bytes.is_none_or(|max| job.head.work.bytes <= max) || job.items().len() == 1);
                    left.extend(job.items().iter().map(|&id| (job.head.sa, id)));
                }
                // Unlike with a fixed window, there is always an end to waiting.
                Decision::Wait { until } => {
                    assert!(until > Time(now) && until < Time::MAX && s.due() == until);
                    assert!(timeout.is_none_or(|longest| until <= Time(now) + longest));
                    break;
                }
                _ => break,
            }
        };
        for (sas, pause, every, packets) in phases {
            for number in 0..packets {
                let sa = (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u32 % sas;
                if s.push(Time(now), Item { id, sa, class: 0, suite: 0, bytes: sa * 37 % 1_000 }).is_ok() {
                    pushed.push((sa, id));
                }
                id += 1;
                now += pause;
                if number % every == 0 {
                    let jobs = s.unfinished(0).min(3);
                    s.complete(0, jobs, Time(now));
                }
                drain(&mut s, now, &mut left);
                let (size, _) = s.class_window(0);
                prop_assert!((1..=window).contains(&size));
            }
        }
        s.end_of_input();
        while s.input_len() + s.unfinished(0) > 0 {
            s.complete(0, s.unfinished(0), Time(now));
            drain(&mut s, now, &mut left);
        }
        pushed.sort();
        left.sort_by_key(|&(sa, _)| sa);
        prop_assert_eq!(left, pushed);
    }
}
