//! A CPU and two accelerators in virtual time, without a bus: what [H] 4.2 says of their load.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use forebay_scheduler::{Config, Cost, Decision, Item, Policy, ProcessorConfig, Scheduler};
use forebay_time::{Duration, PS_PER_S, Time};

const PACKETS: u64 = 40_000;

/// [H]'s t_block, and a t_init that makes 230 Mbit/s of packets of 296 bytes, the mean here.
const CARD: Cost = Cost {
    init: Duration::from_nanos(1_936),
    packet: Duration::ZERO,
    block: Duration::from_nanos(440),
    submit: Duration::ZERO,
    wake: Duration::ZERO,
    lanes: 1,
};

struct Figures {
    throughput: f64,
    load: Vec<f64>,
    packets_per_job: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    Done { processor: usize },
}

/// A driver of twenty lines: arrivals back to back at `rate` bit/s, each processor works its queue.
fn run(config: Config, rate: u64) -> Figures {
    let costs: Vec<Cost> = config.processors.iter().map(|one| one.cost).collect();
    let mut scheduler = Scheduler::new(config).unwrap();
    let mut queues: Vec<VecDeque<Duration>> = vec![VecDeque::new(); costs.len()];
    let mut busy = vec![false; costs.len()];
    let mut worked = vec![0u64; costs.len()];
    let mut events = BinaryHeap::from([Reverse((Time::ZERO, 0u64, Event::Arrival))]);
    let (mut scheduled, mut arrived, mut jobs, mut bytes, mut random) = (1u64, 0, 0u64, 0u64, 1u64);
    let mut end = Time::ZERO;
    while let Some(Reverse((now, _, event))) = events.pop() {
        end = now;
        match event {
            Event::Arrival => {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let size = 40 + (random >> 33) as u32 % 513;
                let sa = (random >> 50) as u32 % 100;
                scheduler.push(now, Item { id: arrived, sa, class: 0, suite: 0, bytes: size }).unwrap();
                bytes += u64::from(size);
                arrived += 1;
                if arrived < PACKETS {
                    let next = Time((u128::from(8 * bytes) * u128::from(PS_PER_S) / u128::from(rate)) as u64);
                    events.push(Reverse((next, scheduled, Event::Arrival)));
                    scheduled += 1;
                } else {
                    scheduler.end_of_input();
                }
            }
            Event::Done { processor } => {
                scheduler.finished(processor);
                busy[processor] = false;
            }
        }
        loop {
            for processor in 0..costs.len() {
                if !busy[processor]
                    && let Some(time) = queues[processor].pop_front()
                {
                    scheduler.taken(processor, now);
                    busy[processor] = true;
                    worked[processor] += time.0;
                    events.push(Reverse((now + time, scheduled, Event::Done { processor })));
                    scheduled += 1;
                }
            }
            let Decision::Dispatch { processor, job, prediction, .. } = scheduler.next(now) else { break };
            let time = costs[processor].of(&job.head.work);
            assert_eq!(prediction.service, time);
            queues[processor].push_back(time);
            jobs += 1;
        }
    }
    let seconds = end.since(Time::ZERO).as_secs();
    Figures {
        throughput: 8.0 * bytes as f64 / seconds,
        load: worked.iter().map(|&time| Duration(time).as_secs() / seconds).collect(),
        packets_per_job: PACKETS as f64 / jobs as f64,
    }
}

/// [H]'s host: the CPU does 110 Mbit/s where a card does 230.
fn host(cards: usize) -> Vec<ProcessorConfig> {
    let slower = |length: Duration| Duration(length.0 * 230 / 110);
    let cpu = Cost { init: slower(CARD.init), block: slower(CARD.block), ..CARD };
    let mut processors = vec![ProcessorConfig::cpu(cpu)];
    processors.extend(vec![ProcessorConfig::accelerator(CARD); cards]);
    processors
}

fn biased(alpha: f64, beta_ns: u64) -> Config {
    let mut processors = host(2);
    (processors[0].alpha, processors[0].beta) = (alpha, Duration::from_nanos(beta_ns));
    Config::new(processors)
}

#[test]
fn two_cards_and_the_cpu_reach_slightly_more_than_500_mbit_s() {
    let figures = run(biased(1.0, 0), 1_000_000_000);
    println!("{:.1} Mbit/s, loads {:.3?}", figures.throughput / 1e6, figures.load);
    assert!((500e6..600e6).contains(&figures.throughput), "{}", figures.throughput);
    assert!(figures.load.iter().all(|load| (0.95..=1.0).contains(load)), "{:?}", figures.load);
}

#[test]
fn the_cpu_s_load_and_the_throughput_fall_as_alpha_and_beta_rise() {
    let by_alpha = [1.0, 2.5, 5.0, 7.5, 10.0, 50.0, 100.0, 500.0].map(|alpha| biased(alpha, 0));
    let by_beta = [0, 17_600, 660_000, 6_600_000].map(|beta| biased(2.5, beta));
    for configs in [by_alpha.to_vec(), by_beta.to_vec()] {
        let figures: Vec<Figures> = configs.into_iter().map(|config| run(config, 1_000_000_000)).collect();
        let loads: Vec<f64> = figures.iter().map(|one| one.load[0]).collect();
        println!("CPU loads {loads:.3?}");
        assert!(loads.windows(2).all(|pair| pair[1] <= pair[0] + 0.005), "{loads:?}");
        assert!(loads[loads.len() - 1] < loads[0] - 0.1, "{loads:?}");
        assert!(figures[figures.len() - 1].throughput < figures[0].throughput - 10e6);
    }
}

#[test]
fn at_200_mbit_s_the_cpu_is_hardly_used() {
    assert!(run(biased(1.0, 0), 200_000_000).load[0] < 0.05);
    assert!(run(biased(10.0, 17_600), 200_000_000).load[0] < 0.01);
}

#[test]
fn scheduling_beats_sending_everything_to_one_card() {
    let single = Config { policy: Policy::Single { processor: 1 }, ..Config::new(host(1)) };
    let alone = run(single, 1_000_000_000);
    let together = run(Config::new(host(1)), 1_000_000_000);
    assert_eq!(alone.load[0], 0.0);
    assert!(together.throughput > 1.4 * alone.throughput);
}

#[test]
fn queues_of_50_give_the_same_throughput() {
    let mut short = biased(1.0, 0);
    short.processors.iter_mut().for_each(|one| one.queue = 50);
    let (short, long) = (run(short, 1_000_000_000), run(biased(1.0, 0), 1_000_000_000));
    assert!((short.throughput / long.throughput - 1.0).abs() < 0.02);
}

#[test]
fn a_window_of_30_over_100_sas_bundles_1_3_packets_and_raises_throughput() {
    let bundling = run(Config { window: 30, ..biased(1.0, 0) }, 1_000_000_000);
    println!("{:.3} packets a job", bundling.packets_per_job);
    assert!((1.25..1.40).contains(&bundling.packets_per_job), "{}", bundling.packets_per_job);
    assert!(bundling.throughput > run(biased(1.0, 0), 1_000_000_000).throughput);
}
