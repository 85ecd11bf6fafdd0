//! \[N\]'s curves: what the network processor does with growing load, busy-waiting and interrupt-driven.
#![allow(clippy::disallowed_methods)]

use std::time::Instant;

use forebay_pipeline::{Discipline, Pipeline, simulate};
use forebay_time::Duration;

fn main() {
    let seconds: u64 = std::env::args().nth(1).map_or(500, |ms| ms.parse().expect("milliseconds"));
    let turns =
        |run: Duration, switch_us| Discipline::interrupt_driven(run, Duration::from_micros(switch_us));
    let cores = [
        ("BW", Discipline::busy_waiting()),
        ("ID run 0.5 s", turns(Duration::from_millis(500), 0)),
        ("ID run 100 us", turns(Duration::from_micros(100), 0)),
        ("ID run 20 us", turns(Duration::from_micros(20), 0)),
        ("ID switch 5 us", turns(Duration::from_micros(100), 5)),
    ];
    for (name, core) in cores {
        for gap_us in [70, 75, 80, 85, 90, 95, 100, 400] {
            let mut pipeline = Pipeline::ixp425(Duration::from_micros(gap_us), core.clone());
            pipeline.duration = Some(Duration::from_millis(seconds));
            let began = Instant::now();
            let o = simulate(&pipeline).expect("[N]'s pipeline");
            let rate = o.generated as f64 / began.elapsed().as_secs_f64() / 1e6;
            let queues: Vec<u32> = o.stages.iter().map(|s| s.max_queue).collect();
            println!(
                "{name:14} {gap_us:3} us: {:5} in, {:5} out, {:4} lost, core {:5.1} %, idle rx {:4.1} % tx {:4.1} %, queues {queues:?}, delay {:7.1} us, {rate:.1} Mpacket/s",
                o.generated,
                o.processed,
                o.lost,
                100.0 * o.servers[0].utilisation,
                100.0 - 100.0 * o.stages[0].utilisation,
                100.0 - 100.0 * o.stages[4].utilisation,
                o.delay.mean_s * 1e6
            );
        }
    }
}
