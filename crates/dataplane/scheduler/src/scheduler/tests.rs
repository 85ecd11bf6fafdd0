use super::*;
use crate::{ClassConfig, ProcessorConfig, Service, Windowing};

fn capacity(scheduler: &Scheduler) -> usize {
    let queues: usize = scheduler.processor_states.iter().map(ProcessorState::capacity).sum();
    queues + scheduler.classes.iter().map(ClassQueue::capacity).sum::<usize>()
}

#[test]
fn a_million_packets_need_no_more_memory_than_the_first() {
    let cost = Cost { init: Duration(1_000), block: Duration(10), ..Cost::default() };
    let card = ProcessorConfig { queue: 16, ..ProcessorConfig::accelerator(cost) };
    let config =
        Config { window: 30, input: 64, ..Config::new(vec![ProcessorConfig::cpu(cost), card.clone(), card]) };
    let mut scheduler = Scheduler::new(config).unwrap();
    let before = capacity(&scheduler);
    for id in 0..1_000_000u64 {
        let now = Time(id * 100);
        let item = Item {
            id,
            sa: (id * 7 % 13) as u32,
            class: 0,
            suite: (id % 64) as u8,
            bytes: (id % 1_500) as u32,
        };
        if scheduler.push(now, item).is_err() {
            for processor in 0..3 {
                let jobs = scheduler.unfinished(processor);
                scheduler.complete(processor, jobs, now);
            }
        }
        while let Decision::Dispatch { .. } = scheduler.next(now) {}
    }
    assert_eq!(capacity(&scheduler), before);
}

#[test]
fn a_job_goes_where_its_finishing_time_is_least() {
    let cost = |init, block| Cost { init: Duration(init), block: Duration(block), ..Cost::default() };
    let with = |queue, one| ProcessorConfig { queue, ..one };
    let config = Config::new(vec![
        ProcessorConfig { alpha: 2.5, ..with(4, ProcessorConfig::cpu(cost(300, 90))) },
        with(4, ProcessorConfig::accelerator(cost(1_000, 10))),
        with(2, ProcessorConfig::accelerator(cost(2_000, 5))),
    ]);
    let mut scheduler = Scheduler::new(Config { input: 64, ..config }).unwrap();
    let least = |times: Vec<Option<Duration>>| {
        (0..times.len()).min_by_key(|&at| (times[at], at == 0)).filter(|&at| times[at].is_some())
    };
    let (mut placed, mut held, mut waits) = ([0; 3], 0, false);
    for id in 0..200u64 {
        let now = Time(id * 400);
        let bytes = (id * 389 % 1_500) as u32;
        scheduler.push(now, Item { id, sa: 0, class: 0, suite: 0, bytes }).unwrap();
        loop {
            match scheduler.next(now) {
                Decision::Dispatch { processor, job, chosen, prediction } => {
                    let head = job.head;
                    // What has waited was chosen before queues got room.
                    if !std::mem::take(&mut waits) {
                        assert_eq!(chosen, now);
                        let times = scheduler.finishing_times(now, &head, Some((processor, prediction)));
                        assert_eq!(least(times.collect()), Some(processor), "job {id}");
                    }
                    placed[processor] += 1;
                }
                Decision::Blocked { processor } => {
                    let (job, chosen_for, chosen) = scheduler.held_up(0).unwrap();
                    assert_eq!(chosen_for, processor);
                    assert_eq!(chosen, now);
                    let times = scheduler.finishing_times(now, &job.head, None);
                    assert_eq!(least(times.collect()), Some(processor), "job {id}");
                    (held, waits) = (held + 1, true);
                    for processor in 0..3 {
                        scheduler.complete(processor, scheduler.unfinished(processor), now);
                    }
                }
                _ => break,
            }
        }
    }
    assert!(placed.iter().all(|&jobs| jobs > 10) && held > 5, "{placed:?}, {held} held up");
    assert_eq!(scheduler.held_up(0), None);
}

#[test]
fn nor_do_classes_with_adaptive_windows() {
    let cost = Cost { init: Duration(1_000), block: Duration(10), ..Cost::default() };
    let card = ProcessorConfig { queue: 16, ..ProcessorConfig::accelerator(cost) };
    let services = [Service::Strict, Service::Weighted { weight: 1 }, Service::Weighted { weight: 3 }];
    let windowing = Windowing::Adaptive;
    let class = |service| ClassConfig { window: 16, input: 64, windowing, ..ClassConfig::new(service) };
    let classes = services.map(class).to_vec();
    let mut scheduler = Scheduler::new(Config { classes, ..Config::new(vec![card; 2]) }).unwrap();
    let before = capacity(&scheduler);
    for id in 0..200_000u64 {
        let now = Time(id * 100);
        let (sa, class) = ((id * 7 % 13) as u32, (id % 3) as u8);
        if scheduler.push(now, Item { id, sa, class, suite: 0, bytes: (id % 1_500) as u32 }).is_err() {
            for processor in 0..2 {
                let jobs = scheduler.unfinished(processor);
                scheduler.complete(processor, jobs, now);
            }
        }
        while let Decision::Dispatch { .. } = scheduler.next(now) {}
    }
    assert_eq!(capacity(&scheduler), before);
}
