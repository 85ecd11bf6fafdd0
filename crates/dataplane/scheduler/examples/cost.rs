//! What the scheduler costs per packet: push, next, taken and finished with four processors.
//!
//!     cargo run --release -p forebay-scheduler --example cost

use std::hint::black_box;
use std::time::Instant;

use forebay_scheduler::{
    ClassConfig, Config, Cost, Decision, Item, Policy, ProcessorConfig, Progress, Scheduler, Service,
    Windowing,
};
use forebay_time::{Duration, Time};

const BURST: u64 = 64;
const BURSTS: u64 = 1_000;
const RUNS: usize = 100;

/// What is measured.
#[derive(Clone, Copy)]
struct Case {
    policy: Policy,
    window: usize,
    windowing: Windowing,
    sas: u32,
    /// Service classes, the first one strict and the others weighted; packets are of all in turn.
    classes: u8,
    progress: Progress,
}

fn main() {
    let base = Case {
        policy: Policy::FinishTime,
        window: 1,
        windowing: Windowing::Fixed,
        sas: 100,
        classes: 1,
        progress: Progress::Told,
    };
    let head = ["policy", "W", "", "SAs", "classes", "driver", "packets/job", "ns/pkt"];
    let [policy, window, windowing, sas, classes, driver, packets, nanos] = head;
    println!(
        "{policy:14} {window:>4} {windowing:8} {sas:>6} {classes:>7} {driver:>9} {packets:>14} {nanos:>8}"
    );
    for policy in Policy::ALL {
        report(Case { policy, ..base });
    }
    for (window, sas) in [(1, 100), (30, 100), (30, 8), (300, 100)] {
        for progress in [Progress::Told, Progress::InOrder] {
            report(Case { window, sas, progress, ..base });
        }
    }
    for (window, sas) in [(30, 100), (30, 8)] {
        report(Case { window, sas, windowing: Windowing::Adaptive, ..base });
    }
    for classes in [2, 3, 8] {
        report(Case { classes, ..base });
    }
}

/// The best of many short runs: what is left is the code's own time, without the machine's other work.
fn report(case: Case) {
    let (nanos, jobs) = (0..RUNS).map(|_| measure(case)).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    let packets_per_job = (BURST * BURSTS) as f64 / jobs as f64;
    let Case { policy, window, windowing, sas, classes, progress } = case;
    let driver = if progress == Progress::Told { "told" } else { "in order" };
    let windowing = if windowing == Windowing::Adaptive { "adaptive" } else { "fixed" };
    println!(
        "{:14} {window:4} {windowing:8} {sas:6} {classes:7} {driver:>9} {packets_per_job:14.2} {nanos:8.1}",
        policy.word()
    );
}

fn measure(case: Case) -> (f64, u64) {
    let Case { policy, window, windowing, sas, classes: count, progress } = case;
    let cost = |init, block| Cost {
        init: Duration::from_nanos(init),
        block: Duration::from_nanos(block),
        ..Cost::default()
    };
    let card = ProcessorConfig::accelerator(cost(1_000, 440));
    let mut processors = vec![ProcessorConfig::cpu(cost(3_000, 920)), card.clone(), card.clone(), card];
    processors.iter_mut().for_each(|one| (one.progress, one.queue) = (progress, 256));
    let mut config = Config { policy, window, windowing, input: 4_096, ..Config::new(processors) };
    if count > 1 {
        let service = |class| if class == 0 { Service::Strict } else { Service::Weighted { weight: class } };
        let class =
            |class| ClassConfig { window, windowing, input: 4_096, ..ClassConfig::new(service(class)) };
        config.classes = (0..u32::from(count)).map(class).collect();
    }
    let mut scheduler = Scheduler::new(config).unwrap();
    // Sizes and SAs are drawn beforehand.
    let mut random = 1u64;
    let mut draw = |id| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (sa, bytes) = ((random >> 50) as u32 % sas, 40 + (random >> 33) as u32 % 1_461);
        Item { id, sa, class: (id % u64::from(count)) as u8, suite: 0, bytes }
    };
    let items: Vec<Item> = (0..4_096).map(&mut draw).collect();

    let mut jobs = 0u64;
    #[allow(clippy::disallowed_methods, reason = "measuring the scheduler is this program's purpose")]
    let begin = Instant::now();
    for burst in 0..BURSTS {
        let at = (burst * BURST) as usize % items.len();
        jobs += turn(&mut scheduler, Time(burst * 100_000_000), &items[at..at + BURST as usize], progress);
    }
    (begin.elapsed().as_nanos() as f64 / (BURST * BURSTS) as f64, jobs)
}

/// One turn of a driver; returns the number of jobs. Behind a reference, as a driver has its scheduler:
/// as a local variable of one large function it would be optimised further than is ever the case.
#[inline(never)]
fn turn(scheduler: &mut Scheduler, now: Time, items: &[Item], progress: Progress) -> u64 {
    let mut jobs = 0;
    for item in items {
        scheduler.push(now, *item).unwrap();
    }
    while let Decision::Dispatch { processor, job, .. } = scheduler.next(now) {
        jobs += 1;
        black_box((processor, job.items()));
    }
    for processor in 0..4 {
        let placed = scheduler.unfinished(processor);
        match progress {
            Progress::Told => (0..placed).for_each(|_| {
                scheduler.taken(processor, now);
                scheduler.finished(processor);
            }),
            Progress::InOrder => scheduler.complete(processor, placed, now),
        }
    }
    jobs
}
