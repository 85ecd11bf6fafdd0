//! Smallest buffers of \[N\]'s network processor and the loads they bear, by the chain and by simulation.
// Measuring is part of it.
#![allow(clippy::disallowed_methods)]

use std::time::Instant;

use forebay_models::Options;
use forebay_pipeline::size::{By, highest_load, smallest_buffers};
use forebay_pipeline::{Discipline, Pipeline};
use forebay_time::Duration;

fn main() {
    let cores = [
        ("busy-waiting", Discipline::busy_waiting()),
        ("interrupt-driven", Discipline::interrupt_driven(Duration::from_micros(100), Duration::ZERO)),
    ];
    let ways =
        [("chain", By::Chain(Options::default())), ("simulation", By::Simulation { runs: 10, threads: 2 })];
    for (name, core) in cores {
        for (way, by) in ways {
            for bound in [0.05, 0.01] {
                let pipeline = Pipeline::ixp425(Duration::from_micros(100), core.clone());
                let began = Instant::now();
                let found = smallest_buffers(&pipeline, bound, 60, by).expect("it can be solved");
                let Some(found) = found else { continue };
                let mut sized = pipeline.clone();
                sized
                    .stages
                    .iter_mut()
                    .zip(&found.buffers)
                    .for_each(|(stage, &buffer)| stage.buffer = buffer);
                let load = highest_load(&sized, bound, 20_000.0, by).expect("it can be solved");
                println!(
                    "{name}, by {way}, 10000 packets/s, loss {bound}: {:?} ({:.4}), {} designs; bears {:.0} packets/s; {:.1?}",
                    found.buffers,
                    found.loss.most,
                    found.tried,
                    load.unwrap_or(0.0),
                    began.elapsed()
                );
            }
        }
    }
}
