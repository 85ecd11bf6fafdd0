//! The queues of processors and the choice against slow and obvious ones, and what must hold over any history.

use forebay_scheduler::{
    Config, Cost, Decision, Item, JobHead, Kind, ProcessorConfig, Progress, Scheduler, Work,
};
use forebay_time::{Duration, Time};
use proptest::prelude::*;

fn item(id: u64, suite: u8, bytes: u32) -> Item {
    Item { id, sa: 0, class: 0, suite, bytes }
}

/// One entry of the log that the state of a processor is recomputed from.
#[derive(Clone, Copy, Debug)]
struct Logged {
    cost: u64,
    taken: Option<u64>,
    fetched: bool,
    started: bool,
    finished: bool,
}

/// w by its definition over all jobs there ever were.
fn naive_wait(log: &[Logged], now: u64, prefetch_aware: bool) -> u64 {
    let waiting: u64 = log.iter().filter(|job| job.taken.is_none()).map(|job| job.cost).sum();
    let fetched: u64 =
        log.iter().filter(|job| job.fetched && !job.started && !job.finished).map(|job| job.cost).sum();
    let busy = log.iter().any(|job| job.taken.is_some() && !job.finished);
    let last = log.iter().rev().find_map(|job| job.taken.map(|at| (job.cost, at))).filter(|_| busy);
    let residual = last.map_or(0, |(cost, at)| cost.saturating_sub(now - at));
    waiting + residual + if prefetch_aware { fetched } else { 0 }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Place(u32),
    Take,
    Fetch,
    Start,
    Finish,
    Complete(usize),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0u32..200).prop_map(Event::Place),
        2 => Just(Event::Take),
        2 => Just(Event::Fetch),
        2 => Just(Event::Start),
        2 => Just(Event::Finish),
        1 => (0usize..3).prop_map(Event::Complete),
        4 => (0u64..60).prop_map(Event::Pass),
    ]
}

/// Applies an event to the log as far as it can happen; whether it did.
fn log_event(log: &mut Vec<Logged>, event: Event, cost: u64, now: u64, in_order: bool) -> bool {
    let first = |log: &[Logged], which: &dyn Fn(&Logged) -> bool| log.iter().position(which);
    let found = match event {
        Event::Place(_) => {
            let idle = log.iter().all(|job| job.finished);
            let taken = (idle && in_order).then_some(now);
            log.push(Logged { cost, taken, fetched: false, started: false, finished: false });
            return true;
        }
        Event::Pass(_) => return true,
        Event::Complete(count) => {
            if log.iter().filter(|job| !job.finished).count() < count {
                return false;
            }
            for _ in 0..count {
                let at = first(log, &|job| !job.finished).unwrap();
                log[at].taken.get_or_insert(now);
                (log[at].started, log[at].finished) = (true, true);
            }
            if log.iter().all(|job| job.finished || job.taken.is_none())
                && let Some(at) = first(log, &|job| !job.finished)
            {
                log[at].taken = Some(now);
            }
            return true;
        }
        Event::Take => first(log, &|job| job.taken.is_none()),
        Event::Fetch => first(log, &|job| job.taken.is_some() && !job.fetched && !job.started),
        Event::Start => first(log, &|job| job.taken.is_some() && !job.started),
        Event::Finish => first(log, &|job| job.taken.is_some() && !job.finished),
    };
    let Some(job) = found.map(|at| &mut log[at]) else { return false };
    match event {
        Event::Take => job.taken = Some(now),
        Event::Fetch => job.fetched = true,
        Event::Start => job.started = true,
        _ => (job.started, job.finished) = (true, true),
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_waiting_time_is_what_the_log_says(
        events in prop::collection::vec(event(), 0..300),
        prefetch_aware: bool,
        in_order: bool,
    ) {
        let cost = Cost { init: Duration(5), block: Duration(3), ..Cost::default() };
        let progress = if in_order { Progress::InOrder } else { Progress::Told };
        let card = ProcessorConfig { progress, ..ProcessorConfig::accelerator(cost) };
        let mut s = Scheduler::new(Config { prefetch_aware, ..Config::new(vec![card]) }).unwrap();
        let mut log = vec![];
        let mut now = 0;
        for event in events {
            let work = if let Event::Place(bytes) = event { Work::packet(bytes) } else { Work::default() };
            if !log_event(&mut log, event, cost.of(&work).0, now, in_order) {
                continue;
            }
            match event {
                Event::Place(bytes) => {
                    s.push(Time(now), item(0, 0, bytes)).unwrap();
                    let placed = matches!(s.next(Time(now)), Decision::Dispatch { .. });
                    prop_assert!(placed);
                }
                Event::Take => s.taken(0, Time(now)),
                Event::Fetch => s.fetched(0),
                Event::Start => s.started(0),
                Event::Finish => s.finished(0),
                Event::Complete(count) => s.complete(0, count, Time(now)),
                Event::Pass(time) => now += time,
            }
            prop_assert_eq!(s.wait(0, Time(now)).0, naive_wait(&log, now, prefetch_aware));
            prop_assert_eq!(s.waiting(0), log.iter().filter(|job| job.taken.is_none()).count());
            prop_assert_eq!(s.unfinished(0), log.iter().filter(|job| !job.finished).count());
        }
    }
}

/// A processor whose times are so small that ties are common; alpha in quarters.
#[derive(Clone, Debug)]
struct Drawn {
    cpu: bool,
    init: u64,
    block: u64,
    quarters: u64,
    beta: u64,
    suites: u64,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    (any::<bool>(), 0u64..4, 0u64..3, prop_oneof![3 => Just(4u64), 1 => 4u64..12], 0u64..3, 1u64..4).prop_map(
        |(cpu, init, block, quarters, beta, suites)| Drawn { cpu, init, block, quarters, beta, suites },
    )
}

impl Drawn {
    fn cost(&self) -> Cost {
        Cost { init: Duration(self.init), block: Duration(self.block), ..Cost::default() }
    }

    fn config(&self) -> ProcessorConfig {
        let kind = if self.cpu { Kind::Cpu } else { Kind::Accelerator };
        let (alpha, beta) = (self.quarters as f64 / 4.0, Duration(self.beta));
        let progress = Progress::InOrder;
        ProcessorConfig {
            kind,
            alpha,
            beta,
            suites: self.suites,
            progress,
            ..ProcessorConfig::cpu(self.cost())
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_choice_is_the_least_of_all_in_a_total_order(
        processors in prop::collection::vec(drawn(), 1..6),
        packets in prop::collection::vec((0u8..2, 0u32..64, 0u64..3, 0usize..6), 1..100),
    ) {
        let mut s = Scheduler::new(Config::new(processors.iter().map(Drawn::config).collect())).unwrap();
        let mut now = 0;
        for (suite, bytes, pass, completes) in packets {
            now += pass;
            if completes < processors.len() && s.unfinished(completes) > 0 {
                s.complete(completes, 1, Time(now));
            }
            let expected = processors.iter().enumerate()
                .filter(|(_, p)| p.suites & 1 << suite != 0)
                .map(|(index, p)| {
                    let (w, p_i) = (s.wait(index, Time(now)).0, p.cost().of(&Work::packet(bytes)).0);
                    // A quarter of an integer, rounded to the nearest, halves up.
                    let f = (p.quarters * (w + p_i + p.beta) + 2) / 4;
                    (f, p.cpu, p_i, index, w)
                })
                .min();
            s.push(Time(now), item(0, suite, bytes)).unwrap();
            match (s.next(Time(now)), expected) {
                (Decision::Nowhere { .. }, None) => {}
                (Decision::Dispatch { processor, prediction, .. }, Some((_, _, p_i, index, w))) => {
                    prop_assert_eq!((processor, prediction.wait.0, prediction.service.0), (index, w, p_i));
                }
                (found, expected) => prop_assert!(false, "{:?} instead of {:?}", found, expected),
            }
        }
    }

    #[test]
    fn every_packet_leaves_once_whatever_happens(
        steps in prop::collection::vec((0u8..8, 0usize..3, 0u32..4), 0..300),
    ) {
        let cost = Cost { init: Duration(5), block: Duration(3), ..Cost::default() };
        let one = ProcessorConfig { queue: 2, progress: Progress::InOrder, ..ProcessorConfig::accelerator(cost) };
        let config = Config { window: 3, input: 8, ..Config::new(vec![one; 3]) };
        let mut s = Scheduler::new(config).unwrap();
        // What a driver keeps: the jobs in each processor's queue, and which processors are there.
        let mut lanes: [Vec<(JobHead, Vec<u64>)>; 3] = Default::default();
        let mut present = [true; 3];
        let (mut pushed, mut left) = (0u64, vec![]);
        for (now, (what, processor, sa)) in (0u64..).zip(steps) {
            match what {
                0..4 => pushed += u64::from(s.push(Time(now), Item { sa, ..item(pushed, 0, 50) }).is_ok()),
                4..6 if !lanes[processor].is_empty() => {
                    left.extend(lanes[processor].remove(0).1);
                    s.complete(processor, 1, Time(now));
                }
                6 => {
                    s.remove_processor(processor);
                    present[processor] = false;
                    // The driver's again.
                    left.extend(lanes[processor].drain(..).flat_map(|(_, ids)| ids));
                }
                7 => {
                    s.restore_processor(processor);
                    present[processor] = true;
                }
                _ => {}
            }
            loop {
                match s.next(Time(now)) {
                    Decision::Dispatch { processor, job, .. } => {
                        prop_assert!(present[processor]);
                        lanes[processor].push((job.head, job.items().to_vec()));
                        prop_assert!(lanes[processor].len() <= 3);
                    }
                    Decision::Nowhere { job } => {
                        prop_assert_eq!(present, [false; 3]);
                        left.extend(job.items());
                    }
                    Decision::Blocked { processor } => {
                        prop_assert!(present[processor] && s.waiting(processor) == 2);
                        break;
                    }
                    Decision::Wait { .. } | Decision::Idle => break,
                }
            }
        }
        s.end_of_input();
        (0..3).for_each(|processor| s.restore_processor(processor));
        loop {
            match s.next(Time(1_000)) {
                Decision::Dispatch { processor, job, .. } => {
                    left.extend(job.items());
                    s.complete(processor, s.unfinished(processor), Time(1_000));
                    lanes[processor].drain(..).for_each(|job| left.extend(job.1));
                }
                Decision::Blocked { processor } => {
                    lanes[processor].drain(..).for_each(|job| left.extend(job.1));
                    s.complete(processor, s.unfinished(processor), Time(1_000));
                }
                _ => break,
            }
        }
        lanes.into_iter().flatten().for_each(|job| left.extend(job.1));
        left.sort_unstable();
        prop_assert_eq!(left, (0..pushed).collect::<Vec<_>>());
    }
}
