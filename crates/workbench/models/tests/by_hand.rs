//! Chains of a few states worked by hand, closed forms, and what must hold of every chain.

use forebay_models::{Discipline, Error, Network, Options, Server, Solution, Stage, closed, solve};
use proptest::prelude::*;

fn chain(arrival_rate: f64, stages: Vec<Stage>, core: Option<Discipline>) -> Network {
    let servers = core.into_iter().map(|discipline| Server { name: "core".into(), discipline }).collect();
    Network { arrival_rate, stages, servers }
}

fn solved(network: &Network) -> Solution {
    solve(network, &Options::default()).unwrap()
}

/// Solved by cycles however small it is.
fn cycled(network: &Network) -> Solution {
    let mut options = Options::default();
    (options.direct, options.band) = (0, 0);
    solve(network, &options).unwrap()
}

fn near(ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() <= 1e-10 * theirs.abs().max(1e-6), "{ours} is not {theirs}");
}

#[test]
fn two_states() {
    // Busy or not: half the packets at equal rates.
    let solution = solved(&chain(1.0, vec![Stage::new("only", 1.0, 1)], None));
    assert_eq!(solution.states, 2);
    near(solution.throughput_pps, 0.5);
    near(solution.loss_probability, 0.5);
    near(solution.mean_delay_s, 1.0);
}

#[test]
fn four_states() {
    // All rates 1. p00 = p01, p10 = 2 p01, p11 = p01: a fifth, a fifth, two fifths, a fifth.
    let stages = vec![Stage::new("first", 1.0, 1), Stage::new("second", 1.0, 1)];
    let solution = solved(&chain(1.0, stages, None));
    near(solution.loss_probability, 0.6);
    near(solution.throughput_pps, 0.4);
    near(solution.stages[0].utilisation, 0.4);
    near(solution.stages[0].blocked, 0.2);
    near(solution.stages[1].mean_occupancy, 0.4);
}

#[test]
fn seven_states_with_a_switch() {
    // Two stages of one place on one server, all rates 1, runs without end. States (A, B, place):
    // e (0,0,B), a1 (1,0,to A), a2 (1,0,A), b1 (0,1,to B), c1 (1,1,to B), b2 (0,1,B), c2 (1,1,B).
    // a1 = e + c2, a2 = a1, 2 b1 = a2, 2 b2 = b1, c1 = b1, c2 = b2 + c1, e = b2: weights 1, 4, 4, 2, 2, 1, 3.
    let core = Discipline::InterruptDriven { run_length_s: f64::INFINITY, switch_delay_s: 1.0 };
    let stages = vec![Stage::new("a", 1.0, 1).on(0), Stage::new("b", 1.0, 1).on(0)];
    let solution = solved(&chain(1.0, stages, Some(core)));
    assert_eq!((solution.states, solution.tangible_states), (16, 7));
    near(solution.throughput_pps, 4.0 / 17.0);
    near(solution.loss_probability, 13.0 / 17.0);
    near(solution.servers[0].utilisation, 8.0 / 17.0);
    near(solution.servers[0].switching, 8.0 / 17.0);
}

#[test]
fn one_queue_is_mm1k_down_to_the_rarest_state() {
    for (arrivals, room) in
        [(0.5, 4), (1.0, 700), (2.0, 50), (0.2, 100), (0.9, 1_000), (22.0, 3_000), (0.01, 3_000)]
    {
        let closed = closed::mm1k(arrivals, 1.0, room);
        let network = chain(arrivals, vec![Stage::new("only", 1.0, room)], None);
        for ours in [solved(&network), cycled(&network)] {
            near(ours.throughput_pps, closed.throughput_pps);
            near(ours.stages[0].mean_occupancy, closed.mean_occupancy);
            near(ours.stages[0].mean_queue, closed.mean_queue);
            near(ours.mean_delay_s, closed.mean_delay_s);
            let ratio = (ours.loss_probability + 1e-200) / (closed.loss_probability + 1e-200);
            assert!((ratio - 1.0).abs() < 1e-7, "{ratio}: {closed:?}"); // 0.2^100 is 1e-70
        }
    }
}

#[test]
fn several_units_are_mmc() {
    // Room enough for the limit not to show.
    let network = chain(2.5, vec![Stage { units: 3, ..Stage::new("units", 1.0, 400) }], None);
    let closed = closed::mmc(2.5, 1.0, 3).unwrap();
    let ours = solved(&network);
    near(ours.stages[0].mean_occupancy, closed.mean_occupancy);
    near(ours.stages[0].utilisation, closed.utilisation);
    near(ours.stages[0].mean_queue, closed.mean_queue);
}

#[test]
fn a_roomy_row_is_a_tandem_of_mm1() {
    let stages = [1.0, 0.5, 0.8].map(|t| Stage::new("s", t, 40)).to_vec();
    let ours = cycled(&chain(0.4, stages, None));
    let closed = closed::tandem(0.4, &[1.0, 2.0, 1.25]).unwrap();
    for (ours, closed) in ours.stages.iter().zip(closed) {
        near(ours.mean_occupancy, closed.mean_occupancy);
    }
}

#[test]
fn what_is_finished_first_is_a_single_queue() {
    // Two stages on one server, each packet finished before the next begins: M/G/1 with the sum of
    // two exponentials (Pollaczek and Khinchine). E[S] = 3, E[S^2] = Var + 9 = 5 + 9, rho = 0.6.
    let delay = 0.2 * 14.0 / (2.0 * 0.4) + 3.0;
    for core in [Discipline::BusyWaiting, Discipline::LastFirst] {
        let stages = vec![Stage::new("a", 1.0, 200).on(0), Stage::new("b", 2.0, 200).on(0)];
        let ours = solved(&chain(0.2, stages, Some(core)));
        near(ours.mean_delay_s, delay);
        near(ours.servers[0].utilisation, 0.6);
    }
}

#[test]
fn busy_waiting_counts_the_wait_apart() {
    let ours = solved(&Network::ixp425(14_285.0, 12, Discipline::BusyWaiting));
    let core = &ours.servers[0];
    // [N]: 86.3 % of the core's time is work at saturation, of 93.6 us a packet 81.
    assert!((core.utilisation - 0.863).abs() < 0.015, "{core:?}");
    // Beside the 12.6 us of crypto it waits for room at the transmitter, about never.
    assert!((core.waiting / core.utilisation - 12.6 / 81.0).abs() < 1e-9);
    near(core.utilisation, ours.throughput_pps * 81e-6);
}

#[test]
fn what_cannot_be_solved_is_said() {
    let loops = Discipline::InterruptDriven { run_length_s: 0.0, switch_delay_s: 0.0 };
    let fails = |network: &Network, options: &Options| solve(network, options).unwrap_err();
    let usual = Options::default();
    assert_eq!(fails(&Network::ixp425(1e4, 2, loops), &usual), Error::ImmediateLoop);
    let core = Discipline::InterruptDriven { run_length_s: 1e-4, switch_delay_s: 0.0 };
    assert!(matches!(fails(&Network::ixp425(1e4, 101, core), &usual), Error::TooLarge { .. }));
    assert!(matches!(fails(&Network::ixp425(0.0, 1, core), &usual), Error::Invalid(_)));
    assert!(matches!(fails(&chain(1.0, vec![], None), &usual), Error::Invalid(_)));
    let mut short = usual;
    (short.cycles, short.direct, short.band) = (2, 0, 0);
    assert!(matches!(fails(&Network::ixp425(1e4, 4, core), &short), Error::NotConverged { cycles: 2, .. }));
}

fn discipline() -> impl Strategy<Value = Discipline> {
    prop_oneof![
        Just(Discipline::BusyWaiting),
        Just(Discipline::LastFirst),
        Just(Discipline::FirstFirst),
        Just(Discipline::ProcessorSharing),
        (1e-6..1e-3f64, prop_oneof![Just(0.0), 1e-7..1e-5f64]).prop_map(|(run_length_s, switch_delay_s)| {
            Discipline::InterruptDriven { run_length_s, switch_delay_s }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn flows_balance_and_methods_agree(
        times in prop::collection::vec((1e-6..1e-4f64, 1..5u32, 1..3u32, any::<bool>()), 1..5),
        core in discipline(),
        rate in 1e3..1e5f64,
    ) {
        let stage = |&(time, buffer, units, shared): &(f64, u32, u32, bool)| {
            let stage = Stage::new("s", time, buffer);
            if shared { stage.on(0) } else { Stage { units, ..stage } }
        };
        let network = chain(rate, times.iter().map(stage).collect(), Some(core));
        let (direct, cycles) = (solved(&network), cycled(&network));
        near(direct.throughput_pps, cycles.throughput_pps);
        near(direct.loss_probability, cycles.loss_probability);
        near(direct.mean_delay_s, cycles.mean_delay_s);
        near(direct.throughput_pps, rate * (1.0 - direct.loss_probability));
        for s in &direct.stages {
            prop_assert!(s.utilisation <= 1.0 + 1e-12 && s.mean_queue <= s.mean_occupancy + 1e-12);
        }
        for s in &direct.servers {
            prop_assert!(s.utilisation + s.switching + s.waiting <= 1.0 + 1e-12);
        }
        // One place more anywhere loses no more in a row of queues of their own. Where stages share a
        // server it may: more to choose from can mean a worse choice.
        for k in 0..network.stages.len() {
            let mut larger = network.clone();
            larger.stages[k].buffer += 1;
            if core == Discipline::BusyWaiting {
                prop_assert!(solved(&larger).loss_probability <= direct.loss_probability + 1e-9);
            }
        }
    }
}
