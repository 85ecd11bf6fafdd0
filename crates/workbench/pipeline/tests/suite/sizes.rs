//! Smallest buffers and highest loads against trying everything.

use forebay_models::{Error, Options, closed};
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
        assert!(found.loss.most <= bound);
        for a in 1..sum - 2 {
            for b in 1..sum - 1 - a {
                let c = sum - 1 - a - b;
                let mut smaller = pipeline.clone();
                smaller.stages.iter_mut().zip([a, b, c]).for_each(|(stage, buffer)| stage.buffer = buffer);
                let lost = loss(&smaller, chain).unwrap().most;
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
    assert!(found.loss.most <= 0.01, "{found:?}");
    assert!(found.buffers.iter().sum::<u32>() < 40, "{found:?}");
    // Its buffers of 101 places bear nearly what the core can do: a packet every 81 us.
    let load = highest_load(&pipeline, 0.001, 14_285.0, by).unwrap().unwrap();
    assert!((11_000.0..1e6 / 81.0).contains(&load), "{load}");
}

#[test]
fn buffers_below_what_a_service_waits_for_are_refused_with_both_numbers() {
    let only = Stage {
        batch: 8,
        batch_min: 8,
        batch_timeout: Some(us(500)),
        ..Stage::new("only", Law::Exponential(us(10)), 8)
    };
    let duration = Some(Duration::from_secs(2.0));
    let arrivals = Arrivals::Exponential(us(100));
    let pipeline = Pipeline { arrivals, stages: vec![only], duration, ..Pipeline::default() };
    let by = By::Simulation { runs: 2, threads: 2 };
    let refused = smallest_buffers(&pipeline, 0.01, 7, by).unwrap_err().to_string();
    assert!(refused.contains("`only` waits for 8 packets") && refused.contains("room for 7"), "{refused}");
    assert!(smallest_buffers(&pipeline, 0.01, 40, by).unwrap().unwrap().buffers[0] >= 8);
}

#[test]
fn runs_without_a_loss_prove_no_more_than_three_over_their_packets() {
    // M/M/1/K by simulation; exactly (1 - rho) rho^K / (1 - rho^(K + 1)) are lost.
    let stages = vec![Stage::new("only", Law::Exponential(us(70)), 1)];
    let pipeline = Pipeline {
        arrivals: Arrivals::Exponential(us(100)),
        duration: Some(Duration::from_secs(0.2)),
        stages,
        ..Pipeline::default()
    };
    let by = By::Simulation { runs: 5, threads: 2 };
    let refused = smallest_buffers(&pipeline, 1e-9, 128, by).unwrap_err();
    let Error::Unshowable { bound, packets } = refused else { panic!("{refused}") };
    assert!(bound == 1e-9 && (9_000..11_000).contains(&packets), "{packets}");
    let refused = highest_load(&pipeline, 1e-9, 14_285.0, by).unwrap_err();
    assert!(matches!(refused, Error::Unshowable { .. }), "{refused}");
    // A bound that so many packets can show is kept by the exact loss of what is found.
    let bound = 2e-3;
    let found = smallest_buffers(&pipeline, bound, 128, by).unwrap().unwrap();
    let exact = closed::mm1k(1e4, 1e6 / 70.0, found.buffers[0]).loss_probability;
    assert!(exact <= bound, "{found:?}, exactly {exact}");
    let seen = found.loss.seen.unwrap();
    assert!(found.loss.most >= 3.0 / seen.packets as f64 && found.loss.most <= bound, "{found:?}");
    // Loads that bring too few packets to show anything do not end the search.
    let longer = Pipeline { duration: Some(Duration::from_secs(4.0)), ..with_buffer(&pipeline, 20) };
    let load = highest_load(&longer, bound, 14_285.0, by).unwrap().unwrap();
    assert!(closed::mm1k(load, 1e6 / 70.0, 20).loss_probability <= bound, "{load}");
    assert!(closed::mm1k(1.1 * load, 1e6 / 70.0, 20).loss_probability > bound, "{load}");
}

fn with_buffer(pipeline: &Pipeline, buffer: u32) -> Pipeline {
    let mut pipeline = pipeline.clone();
    pipeline.stages[0].buffer = buffer;
    pipeline
}

#[test]
fn what_long_buffers_hold_at_the_end_of_a_run_is_not_carried() {
    // 20,000 packets a second are served; a buffer without a limit loses none of more in a short run.
    let stages = vec![Stage::new("only", Law::Exponential(us(50)), 1_000_000)];
    let arrivals = Arrivals::Exponential(us(100));
    let pipeline =
        Pipeline { arrivals, duration: Some(Duration::from_secs(2.0)), stages, ..Pipeline::default() };
    let by = By::Simulation { runs: 5, threads: 2 };
    let load = highest_load(&pipeline, 1e-3, 40_000.0, by).unwrap().unwrap();
    assert!((18_000.0..20_400.0).contains(&load), "{load}");
    // Nor do any buffers keep a bound under overload.
    let overloaded = Pipeline { arrivals: Arrivals::Exponential(us(45)), ..pipeline.clone() };
    assert_eq!(smallest_buffers(&overloaded, 0.01, 1_000_000, by).unwrap(), None);
    assert!(loss(&overloaded, by).unwrap().most > 0.09);
    // What a pipeline carries is as it was: packets on their way are none that it holds back.
    assert!(loss(&pipeline, by).unwrap().most < 1e-4);
    let even = Pipeline { arrivals: Arrivals::Constant(us(100)), ..pipeline };
    assert!(loss(&even, by).unwrap().most < 1e-4);
    // Nor are those that wait until a batch is whole, wherever the middle and the end of a run fall.
    for gap in 97..=104 {
        let gathers = Stage {
            setup: us(20),
            batch: 32,
            batch_min: 32,
            ..Stage::new("only", Law::Constant(us(1)), 100)
        };
        let duration = Some(Duration::from_millis(500));
        let batches = Pipeline {
            arrivals: Arrivals::Constant(us(gap)),
            duration,
            stages: vec![gathers],
            ..Pipeline::default()
        };
        let found = loss(&batches, By::Simulation { runs: 2, threads: 1 }).unwrap();
        assert!(found.most < 1e-3, "{gap} us: {found:?}");
    }
}
