//! The chain against scipy's sparse LU (`golden.py` wrote `golden.csv`): 12,500 states and others.

use forebay_models::{Discipline, Method, Network, Options, Solution, solve};

fn near(what: &str, ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs(), "{what}: {ours} is not {theirs}");
}

fn compare(line: &str, options: &Options) -> Solution {
    let (discipline, numbers) = line.split_once(',').unwrap();
    let n: Vec<f64> = numbers.split(',').map(|cell| cell.parse().unwrap()).collect();
    let core = match discipline {
        "interrupt-driven" => Discipline::InterruptDriven { run_length_s: n[6], switch_delay_s: n[8] },
        _ => Discipline::BusyWaiting,
    };
    let mut network = Network::ixp425(n[0], 1, core);
    network.stages.iter_mut().zip(&n[1..6]).for_each(|(stage, &buffer)| stage.buffer = buffer as u32);
    network.stages[3].run_length_s = (n[7] > 0.0).then_some(n[7]);
    let solution = solve(&network, options).unwrap();
    assert_eq!(solution.tangible_states, n[9] as u64, "{line}");
    near("throughput", solution.throughput_pps, n[10]);
    near("loss", solution.loss_probability, n[11]);
    for (stage, &occupancy) in solution.stages.iter().zip(&n[12..17]) {
        near(&stage.name, stage.mean_occupancy, occupancy);
    }
    near("core", solution.servers[0].utilisation, n[17]);
    solution
}

#[test]
fn agrees_with_scipy() {
    let mut largest = 0;
    for line in include_str!("golden.csv").lines().skip(1) {
        let solution = compare(line, &Options::default());
        assert_eq!(solution.accuracy.method, Method::Multilevel);
        assert!(solution.accuracy.imbalance < 1e-10);
        largest = largest.max(solution.states);
    }
    assert_eq!(largest, 12_500);
}

#[test]
fn elimination_within_a_band_agrees_with_scipy() {
    let mut options = Options::default();
    options.band = 3_000_000_000;
    for line in
        include_str!("golden.csv").lines().skip(1).filter(|line| line.contains("busy-waiting")).take(1)
    {
        assert_eq!(compare(line, &options).accuracy.method, Method::Band);
    }
}
