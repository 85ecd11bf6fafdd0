//! Chains that iterations have a hard time with, and what is said of those that do not converge.

use forebay_models::{Discipline, Error, Method, Network, Options, Server, Stage, closed, solve};
use proptest::prelude::*;

#[test]
fn a_long_queue_under_overload_is_solved_within_its_band() {
    // All the weight is at the far end of 20,000 states, whose first has a probability of 1e-9000.
    for (rate, time_s) in [(40.0, 0.07), (10.0, 0.1), (5.0, 0.1)] {
        let network =
            Network { arrival_rate: rate, stages: vec![Stage::new("only", time_s, 20_000)], servers: vec![] };
        let solution = solve(&network, &Options::default()).unwrap();
        let exact = closed::mm1k(rate, 1.0 / time_s, 20_000);
        assert_eq!((solution.accuracy.method, solution.accuracy.converged), (Method::Band, true));
        for (ours, theirs) in [
            (solution.throughput_pps, exact.throughput_pps),
            (solution.loss_probability, exact.loss_probability),
            (solution.stages[0].mean_occupancy, exact.mean_occupancy),
        ] {
            assert!((ours - theirs).abs() <= 1e-9 * theirs, "{ours} is not {theirs}");
        }
    }
}

#[test]
fn what_does_not_converge_is_said_to() {
    let core = Discipline::InterruptDriven { run_length_s: 100e-6, switch_delay_s: 5e-6 };
    let network = Network::ixp425(12_000.0, 4, core);
    let mut options = Options::default();
    (options.cycles, options.band) = (3, 0);
    let error = solve(&network, &options).unwrap_err();
    assert!(error.to_string().contains("not converged: residual"), "{error}");
    let Error::NotConverged { solution, cycles, residual, tolerance } = error else { panic!("{error}") };
    assert!(!solution.accuracy.converged && cycles == 3 && residual > tolerance);
    // The result carries the figures reached so far.
    let exact = solve(&network, &Options::default()).unwrap();
    assert!((solution.throughput_pps / exact.throughput_pps - 1.0).abs() < 0.05);
}

fn network() -> impl Strategy<Value = Network> {
    // Times and rates up to a hundred thousand times apart.
    let time = (0.0..5.0f64).prop_map(|exponent| 10f64.powf(-exponent));
    let discipline = prop_oneof![
        Just(Discipline::BusyWaiting),
        Just(Discipline::LastFirst),
        Just(Discipline::ProcessorSharing),
        (time.clone(), prop_oneof![Just(0.0), time.clone()]).prop_map(|(run_length_s, switch_delay_s)| {
            Discipline::InterruptDriven { run_length_s, switch_delay_s }
        }),
    ];
    let stage = (time.clone(), 1..6u32, any::<bool>());
    (time, discipline, prop::collection::vec(stage, 1..5)).prop_map(|(gap, discipline, stages)| Network {
        arrival_rate: 1.0 / gap,
        stages: (stages.into_iter().enumerate())
            .map(|(at, (time, buffer, shared))| {
                let stage = Stage::new(&format!("stage {at}"), time, buffer);
                if shared { stage.on(0) } else { stage }
            })
            .collect(),
        servers: vec![Server { name: "core".into(), discipline }],
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// However far apart rates are: elimination over all states and within a band agree to nearly the
    /// last digit, and cycles, where they converge, with both.
    #[test]
    fn all_ways_agree(network in network()) {
        let by = |direct, band| {
            let mut options = Options::default();
            (options.direct, options.band) = (direct, band);
            solve(&network, &options)
        };
        let exact = by(10_000, 0);
        // A span that is interrupted by another is refused by every method.
        prop_assume!(!matches!(exact, Err(Error::Invalid(_))));
        let exact = exact.unwrap();
        let banded = by(0, u64::MAX).unwrap();
        let near = |a: f64, b: f64, share: f64| (a - b).abs() <= share * b.abs() + 1e-300;
        prop_assert!(near(banded.throughput_pps, exact.throughput_pps, 1e-12));
        prop_assert!(near(banded.loss_probability, exact.loss_probability, 1e-10));
        if let Ok(cycled) = by(0, 0) {
            prop_assert!(cycled.accuracy.converged);
            prop_assert!(near(cycled.throughput_pps, exact.throughput_pps, 1e-9), "{:?} {:?}", cycled, exact);
            prop_assert!(near(cycled.loss_probability, exact.loss_probability, 1e-7), "{:?} {:?}", cycled, exact);
        }
    }
}
