//! Both fits on samples of known costs.

use forebay_time::Duration;

use super::samples::{agree, batch, numbers, time};
use super::{Fit, Sample, Shape, shape};
use crate::{Cost, Work};

const BATCHES: [usize; 6] = [1, 2, 4, 8, 16, 32];
const SIZES: [u32; 4] = [4, 16, 64, 90];

/// A processor with `lanes` lanes, as ipsec-mb's are for some suites.
fn processor(lanes: u32) -> Cost {
    Cost {
        submit: Duration(1_200_000),
        init: Duration(1_000_000),
        block: Duration(440_000),
        packet: if lanes > 1 { Duration(150_000) } else { Duration::ZERO },
        lanes,
        ..Cost::default()
    }
}

/// One batch in ten took up to a hundred times as long, all are off by up to 2 %.
fn disturbed(number: &mut impl FnMut(u64) -> u64) -> f64 {
    let factor = 0.98 + number(41) as f64 / 1_000.0;
    if number(10) == 0 { 10.0 + number(90) as f64 } else { factor }
}

/// A calibration of sizes by batches, each measured `repetitions` times.
fn calibration(cost: &Cost, repetitions: usize, mut factor: impl FnMut() -> f64) -> Option<Shape> {
    let points = SIZES.iter().flat_map(|&size| BATCHES.map(|jobs| batch(&vec![size; jobs])));
    let jobs: Vec<Vec<Work>> = points.collect();
    let samples = jobs.iter().flat_map(|jobs| (0..repetitions).map(move |_| jobs));
    let samples: Vec<Sample> =
        samples.map(|jobs| Sample { jobs, time: time(cost, jobs, factor()) }).collect();
    shape(&samples)
}

/// Batches of 1 to 64 packets of 1 to 94 blocks.
fn random_batch(number: &mut impl FnMut(u64) -> u64) -> Vec<Work> {
    let jobs = 1 << number(7);
    let blocks: Vec<u32> = (0..1 + number(jobs)).map(|_| 1 + number(94) as u32).collect();
    batch(&blocks)
}

fn near(found: Duration, expected: Duration, share: f64) -> bool {
    (found.0 as f64 - expected.0 as f64).abs() <= share * expected.0 as f64
}

#[test]
fn a_shape_without_noise_is_found_exactly() {
    for lanes in [1, 2, 8, 16] {
        let expected = processor(lanes);
        let found = calibration(&expected, 1, || 1.0).unwrap();
        let Cost { submit, init, block, packet, .. } = found.cost;
        assert_eq!(found.cost.lanes, lanes, "{found:?}");
        for (found, expected) in [
            (submit, expected.submit),
            (init, expected.init),
            (block, expected.block),
            (packet, expected.packet),
        ] {
            assert!(near(found, expected, 1e-3), "{lanes} lanes: {found}, not {expected}");
        }
        assert!(found.residual < Duration(10_000) && found.r_squared > 0.999_999, "{found:?}");
        assert!(found.error < 1e-4, "{found:?}");
    }
}

#[test]
fn a_shape_is_found_among_preempted_samples() {
    for lanes in [1, 8, 16] {
        let mut number = numbers();
        let expected = processor(lanes);
        let found = calibration(&expected, 15, || disturbed(&mut number)).unwrap();
        assert_eq!(found.cost.lanes, lanes, "{found:?}");
        for (jobs, size) in BATCHES.into_iter().flat_map(|jobs| SIZES.map(|size| (jobs, size))) {
            assert!(agree(&found.cost, &expected, jobs, size, 0.03), "{jobs} of {size}: {found:?}");
        }
    }
}

#[test]
fn one_batch_makes_no_shape() {
    let jobs = batch(&[4, 4]);
    let sample = |ns| Sample { jobs: &jobs, time: Duration::from_nanos(ns) };
    assert_eq!(shape(&[sample(100), sample(110)]), None);
    assert_eq!(shape(&[]), None);
    assert_eq!(shape(&[Sample { jobs: &[], time: Duration(5) }]), None);
}

#[test]
fn one_batch_size_is_all_init_and_block() {
    let expected = Cost { submit: Duration::ZERO, ..processor(1) };
    let jobs: Vec<Vec<Work>> = SIZES.iter().map(|&size| batch(&[size])).collect();
    let samples: Vec<Sample> =
        jobs.iter().map(|jobs| Sample { jobs, time: time(&expected, jobs, 1.0) }).collect();
    let found = shape(&samples).unwrap().cost;
    assert_eq!((found.submit, found.packet, found.lanes), (Duration::ZERO, Duration::ZERO, 1));
    assert!(near(found.init, expected.init, 1e-3) && near(found.block, expected.block, 1e-3), "{found:?}");
}

#[test]
fn no_term_is_negative() {
    let falling = [(1, 900_000), (10, 500_000), (20, 100_000)];
    let concave = [(1, 1_000), (10, 20_000), (20, 41_000)];
    for points in [falling, concave] {
        let points = points.map(|(blocks, time)| (batch(&[blocks]), Duration(time)));
        let samples = points.each_ref().map(|(jobs, time)| Sample { jobs, time: *time });
        let found = shape(&samples).unwrap().cost;
        assert!(found.init == Duration::ZERO || found.block == Duration::ZERO, "{found:?}");
        assert!(found.init < Duration::from_micros(1) && found.block < Duration::from_micros(1));

        let mut fit = Fit::new(processor(1), 100);
        for (jobs, time) in points.iter().cycle().take(3_000) {
            fit.add(jobs.iter().copied(), *time);
            let cost = fit.cost();
            assert!(cost.of_batch(jobs.iter().copied()) < Duration::from_micros(100), "{cost:?}");
        }
    }
}

#[test]
fn a_running_fit_finds_lanes_and_terms_from_a_wrong_prior() {
    for lanes in [1, 8, 16] {
        for prior in
            [Cost { init: Duration(10_000_000), block: Duration(40_000), ..Cost::default() }, processor(16)]
        {
            let mut number = numbers();
            let expected = processor(lanes);
            let mut fit = Fit::new(prior, 4_096);
            for _ in 0..2_000 {
                let jobs = random_batch(&mut number);
                fit.add(jobs.iter().copied(), time(&expected, &jobs, disturbed(&mut number)));
            }
            let found = fit.cost();
            assert_eq!(found.lanes, lanes, "{found:?}");
            for (jobs, size) in BATCHES.into_iter().flat_map(|jobs| SIZES.map(|size| (jobs, size))) {
                // A disturbance only ever lengthens: what is clipped still pulls a little upwards.
                assert!(agree(&found, &expected, jobs, size, 0.15), "{jobs} of {size}: {found:?}");
            }
        }
    }
}

#[test]
fn a_running_fit_follows_a_slower_and_a_faster_clock() {
    for (factor, lanes) in [(2.0, 1), (0.5, 1), (2.0, 16), (0.4, 16)] {
        let mut number = numbers();
        let expected = processor(lanes);
        let mut fit = Fit::new(expected, 4_096);
        let mut feed = |fit: &mut Fit, count: usize, factor: f64| {
            for _ in 0..count {
                let jobs = random_batch(&mut number);
                fit.add(jobs.iter().copied(), time(&expected, &jobs, factor * disturbed(&mut number)));
            }
        };
        feed(&mut fit, 1_000, 1.0);
        feed(&mut fit, 50, factor);
        let found = fit.cost();
        for (jobs, size) in BATCHES.into_iter().flat_map(|jobs| SIZES.map(|size| (jobs, size))) {
            let time = |cost: &Cost| time(cost, &batch(&vec![size; jobs]), 1.0).0 as f64;
            let ratio = time(&found) / (factor * time(&expected));
            assert!((0.85..1.15).contains(&ratio), "{factor}, {jobs} of {size}: {ratio}, {found:?}");
        }
    }
}

#[test]
fn one_batch_size_is_still_predicted_right_and_the_rest_is_kept() {
    for lanes in [1, 16] {
        for jobs in [1, 5, 16, 32] {
            let prior = processor(lanes);
            let slower = Cost { init: Duration(1_500_000), ..prior };
            let mut fit = Fit::new(prior, 1_000);
            let jobs = batch(&vec![10; jobs]);
            (0..2_000).for_each(|_| fit.add(jobs.iter().copied(), time(&slower, &jobs, 1.0)));
            let found = fit.cost();
            assert_eq!(found.lanes, lanes);
            assert!(agree(&found, &slower, jobs.len(), 10, 0.01), "{} jobs: {found:?}", jobs.len());
            for other in [1, 8, 32] {
                assert!(agree(&found, &slower, other, 10, 0.25), "{} jobs, {other}: {found:?}", jobs.len());
            }
        }
    }
}

#[test]
fn what_was_learnt_is_kept_while_nothing_else_is_seen() {
    let mut number = numbers();
    let expected = processor(16);
    let mut fit = Fit::new(Cost { block: Duration(1_000_000), ..Cost::default() }, 1_000);
    for _ in 0..2_000 {
        let jobs = random_batch(&mut number);
        fit.add(jobs.iter().copied(), time(&expected, &jobs, 1.0));
    }
    let jobs = batch(&[90; 32]);
    (0..20_000).for_each(|_| fit.add(jobs.iter().copied(), time(&expected, &jobs, disturbed(&mut number))));
    for (jobs, size) in BATCHES.into_iter().flat_map(|jobs| SIZES.map(|size| (jobs, size))) {
        assert!(agree(&fit.cost(), &expected, jobs, size, 0.15), "{jobs} of {size}: {:?}", fit.cost());
    }
}

#[test]
fn one_preempted_batch_moves_a_prediction_by_less_than_a_percent() {
    let mut number = numbers();
    let expected = processor(8);
    let mut fit = Fit::new(expected, 4_096);
    for _ in 0..2_000 {
        let jobs = random_batch(&mut number);
        fit.add(jobs.iter().copied(), time(&expected, &jobs, 1.0));
    }
    let jobs = batch(&[94; 8]);
    fit.add(jobs.iter().copied(), time(&expected, &jobs, 100.0));
    fit.add([].into_iter(), Duration(u64::MAX));
    assert!(agree(&fit.cost(), &expected, 8, 94, 0.01), "{:?}", fit.cost());
}
