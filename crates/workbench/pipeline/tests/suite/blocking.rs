//! Blocking after service against its Markov chains, which are built here.

use std::collections::BTreeMap;

use forebay_pipeline::{Arrivals, Estimate, Law, Overflow, Pipeline, Stage, interval, replicate};
use forebay_time::Duration;

/// Packets in each stage, and whether that in service has been served and holds its stage.
type State = (Vec<u32>, Vec<bool>);

/// Throughput and loss ratio of single servers in series with these rates and buffers, by the stationary distribution of
/// the chain (uniformized, iterated until it stands).
fn exact(arrivals: f64, rates: &[f64], buffers: &[u32]) -> [f64; 2] {
    let stages = rates.len();
    // What a packet that leaves `stage` sets in motion: the one that is held before it goes on.
    fn pull(state: &mut State, stage: usize) {
        if stage > 0 && state.1[stage - 1] {
            state.1[stage - 1] = false;
            state.0[stage - 1] -= 1;
            state.0[stage] += 1;
            pull(state, stage - 1);
        }
    }
    let steps = |state: &State| {
        let mut next: Vec<(f64, State)> = Vec::new();
        if state.0[0] < buffers[0] {
            let mut came = state.clone();
            came.0[0] += 1;
            next.push((arrivals, came));
        }
        for stage in (0..stages).filter(|&stage| state.0[stage] > 0 && !state.1[stage]) {
            let mut served = state.clone();
            if stage + 1 < stages && served.0[stage + 1] == buffers[stage + 1] {
                served.1[stage] = true;
            } else {
                served.0[stage] -= 1;
                if stage + 1 < stages {
                    served.0[stage + 1] += 1;
                }
                pull(&mut served, stage);
            }
            next.push((rates[stage], served));
        }
        next
    };
    let empty = (vec![0; stages], vec![false; stages]);
    let mut numbers = BTreeMap::from([(empty.clone(), 0)]);
    let (mut states, mut table) = (vec![empty], Vec::new());
    while let Some(state) = states.get(table.len()).cloned() {
        let to: Vec<(f64, usize)> = steps(&state)
            .into_iter()
            .map(|(rate, state)| {
                let number = *numbers.entry(state.clone()).or_insert_with(|| {
                    states.push(state);
                    states.len() - 1
                });
                (rate, number)
            })
            .collect();
        table.push(to);
    }
    let fastest = arrivals + rates.iter().sum::<f64>();
    let mut shares = vec![1.0 / states.len() as f64; states.len()];
    for _ in 0..200_000 {
        let mut next = shares.clone();
        for (from, to) in table.iter().enumerate() {
            for &(rate, to) in to {
                let moved = shares[from] * rate / fastest;
                next[from] -= moved;
                next[to] += moved;
            }
        }
        let change: f64 = next.iter().zip(&shares).map(|(a, b)| (a - b).abs()).sum();
        shares = next;
        if change < 1e-14 {
            break;
        }
    }
    let lost: f64 =
        states.iter().zip(&shares).filter(|(state, _)| state.0[0] == buffers[0]).map(|(_, x)| x).sum();
    [arrivals * (1.0 - lost), lost]
}

fn simulated(gap_us: u64, times_us: &[u64], buffers: &[u32], overflow: Overflow) -> [Estimate; 2] {
    let us = Duration::from_micros;
    let stage =
        |(at, (&time, &buffer))| Stage::new(&format!("stage {at}"), Law::Exponential(us(time)), buffer);
    let pipeline = Pipeline {
        arrivals: Arrivals::Exponential(us(gap_us)),
        stages: times_us.iter().zip(buffers).enumerate().map(stage).collect(),
        overflow,
        duration: Some(Duration::from_secs(1.0)),
        warm_up: us(10_000),
        ..Pipeline::default()
    };
    let outcomes = replicate(&pipeline, 20, 2).unwrap();
    [
        interval(&outcomes, 0.9999, |one| one.throughput_pps),
        interval(&outcomes, 0.9999, |one| one.loss_probability),
    ]
}

#[test]
fn two_stages_of_one_place_carry_four_ninths_after_and_two_fifths_before_service() {
    // The textbook's: all rates 1, no waiting places.
    let [throughput, _] = exact(1.0, &[1.0, 1.0], &[1, 1]);
    assert!((throughput - 4.0 / 9.0).abs() < 1e-9, "{throughput}");
    for (overflow, share) in [(Overflow::BlockAfterService, 4.0 / 9.0), (Overflow::Block, 0.4)] {
        let [found, _] = simulated(10, &[10, 10], &[1, 1], overflow);
        assert!(found.contains(1e5 * share), "{overflow:?}: {found:?}");
        assert!(found.half_width < 0.01 * found.mean, "{found:?}");
    }
}

#[test]
fn blocking_after_service_is_that_of_its_chain() {
    for (gap, times, buffers) in
        [(12, &[10, 14][..], &[3, 2][..]), (10, &[8, 9, 11], &[2, 1, 2]), (9, &[10, 4, 10], &[1, 1, 1])]
    {
        let rates: Vec<f64> = times.iter().map(|&time| 1e6 / time as f64).collect();
        let found = simulated(gap, times, buffers, Overflow::BlockAfterService);
        for (found, exact) in found.into_iter().zip(exact(1e6 / gap as f64, &rates, buffers)) {
            assert!(found.contains(exact), "{times:?} {buffers:?}: {found:?}, exactly {exact}");
        }
        let before = simulated(gap, times, buffers, Overflow::Block);
        assert!(
            before[0].mean + before[0].half_width < found[0].mean,
            "blocking before service carries less"
        );
    }
}
