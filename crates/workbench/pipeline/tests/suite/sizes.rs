//! Smallest buffers and highest loads against trying everything.

use forebay_models::{Options, closed};
use forebay_pipeline::size::{By, highest_load, loss, smallest_buffers};
use forebay_pipeline::{Arrivals, Discipline, Law, Pipeline, Stage};
use forebay_time::Duration;

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

#[test]
fn a_single_queue() {
    let chain = By::Chain(Options::default());
    let stages = vec![Stage::new("only", Law::Exponential(us(80)), 1)];
    let pipeline = Pipeline { arrivals: Arrivals::Exponential(us(100)), stages, ..Pipeline::default() };
    let found = smallest_buffers(&pipeline, 1e-3, 100, chain).unwrap().unwrap();
    let room = (1..).find(|&room| closed::mm1k(1e4, 12_500.0, room).loss_probability <= 1e-3).unwrap();
    assert_eq!(found.buffers, [room]);
    // A lower bound than 100 places can keep.
    assert_eq!(smallest_buffers(&pipeline, 1e-30, 100, chain).unwrap(), None);
    // The load that the same buffer bears is at least this one, and not much more.
    let mut sized = pipeline;
    sized.stages[0].buffer = room;
    let rate = highest_load(&sized, 1e-3, 12_500.0, chain).unwrap().unwrap();
    assert!(rate >= 1e4 * 0.999, "{rate}");
    assert!(closed::mm1k(rate, 12_500.0, room).loss_probability <= 1e-3);
    assert!(closed::mm1k(rate * 1.002, 12_500.0, room).loss_probability > 1e-3);
}

#[test]
fn no_smaller_sum_keeps_the_bound() {
    let chain = By::Chain(Options::default());
    for (times, bound) in [([30, 60, 20], 0.02), ([50, 50, 50], 0.05), ([20, 70, 65], 0.1)] {
        let stage = |(t, name): (u64, &str)| Stage::new(name, Law::Exponential(us(t)), 1);
        let stages = times.into_iter().zip(["a", "b", "c"]).map(stage).collect();
        let pipeline = Pipeline { arrivals: Arrivals::Exponential(us(100)), stages, ..Pipeline::default() };
        let found = smallest_buffers(&pipeline, bound, 20, chain).unwrap().unwrap();
        let sum: u32 = found.buffers.iter().sum();
        assert!(found.loss <= bound);
        for a in 1..sum - 2 {
            for b in 1..sum - 1 - a {
                let c = sum - 1 - a - b;
                let mut smaller = pipeline.clone();
                smaller.stages.iter_mut().zip([a, b, c]).for_each(|(stage, buffer)| stage.buffer = buffer);
                let lost = loss(&smaller, chain).unwrap();
                assert!(lost > bound, "{found:?}: {a} {b} {c} lose {lost}");
            }
        }
    }
}

#[test]
fn the_network_processor_by_simulation() {
    // Constant times and losses between stages: no chain, so by simulation.
    let by = By::Simulation { runs: 5, threads: 2 };
    let core = Discipline::interrupt_driven(us(100), Duration::ZERO);
    let pipeline = Pipeline::ixp425(us(100), core);
    let found = smallest_buffers(&pipeline, 0.01, 30, by).unwrap().unwrap();
    assert!(found.loss <= 0.01, "{found:?}");
    assert!(found.buffers.iter().sum::<u32>() < 40, "{found:?}");
    // Its buffers of 101 places bear nearly what the core can do: a packet every 81 us.
    let load = highest_load(&pipeline, 0.001, 14_285.0, by).unwrap().unwrap();
    assert!((11_000.0..1e6 / 81.0).contains(&load), "{load}");
}
