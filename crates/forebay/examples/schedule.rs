//! Jobs on two processors of unlike speed: the scheduler sends each to the one that will have it done first. Here they
//! are threads that wait as long as a job costs; in your program, a pool of threads, a card, or another machine.
#![allow(clippy::disallowed_methods)] // the program gives the scheduler its time

use std::sync::mpsc;
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use forebay::scheduler::{Config, Cost, Decision, Item, ProcessorConfig, Progress, Scheduler, Work};
use forebay::{Duration, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The core begins at once and takes 20 us for each 16 bytes. The card takes 5 ms to begin and then 1 us.
    let cost = |init_us, block_us| Cost {
        init: Duration::from_micros(init_us),
        block: Duration::from_micros(block_us),
        ..Cost::default()
    };
    let costs = [cost(0, 20), cost(5_000, 1)];
    let in_order = |cost| ProcessorConfig { progress: Progress::InOrder, ..ProcessorConfig::cpu(cost) };
    let mut scheduler = Scheduler::new(Config::new(costs.map(in_order).to_vec()))?;

    let (done, completions) = mpsc::channel();
    let queues = [0, 1].map(|processor| {
        let (queue, jobs) = mpsc::channel::<u32>();
        let done = done.clone();
        thread::spawn(move || {
            for bytes in jobs {
                let time = costs[processor].of(&Work::packet(bytes));
                thread::sleep(StdDuration::from_nanos(time.as_nanos()));
                let _ = done.send((processor, bytes));
            }
        });
        queue
    });

    let start = Instant::now();
    let now = || Time::ZERO + Duration::from_nanos(start.elapsed().as_nanos() as u64);
    let sizes: Vec<u32> = (0..60).map(|number| if number % 3 == 0 { 16_000 } else { 1_000 }).collect();
    for (id, &bytes) in sizes.iter().enumerate() {
        let item = Item { id: id as u64, sa: 0, class: 0, suite: 0, bytes };
        scheduler.push(now(), item).expect("the input has no limit");
    }
    let mut figures = [(0, 0); 2];
    for _ in 0..sizes.len() {
        while let Decision::Dispatch { processor, job, .. } = scheduler.next(now()) {
            queues[processor].send(sizes[job.items()[0] as usize])?;
        }
        let (processor, bytes) = completions.recv()?;
        scheduler.complete(processor, 1, now());
        figures[processor] = (figures[processor].0 + 1, figures[processor].1 + bytes);
    }
    for (name, (jobs, bytes)) in ["core", "card"].iter().zip(figures) {
        println!("{name}: {jobs} jobs of {} bytes on average", bytes / jobs.max(1));
    }
    println!("done after {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
