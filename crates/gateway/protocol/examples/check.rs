//! The long form of the check: `cargo run --profile quick -p forebay-protocol --example check -- [STEPS]`.

use std::process::ExitCode;

use forebay_protocol::check::{Bounds, Found, check};
use forebay_protocol::cluster::{self, Cluster};
use forebay_protocol::pair::{self, Pair};

/// Steps of a run, unless others are asked for.
const STEPS: usize = 2_000_000;
/// Steps until a planted error has to be found.
const STEPS_PLANTED: usize = 3_000_000;

fn main() -> ExitCode {
    let steps = match std::env::args().nth(1).map(|text| text.parse()) {
        None => STEPS,
        Some(Ok(steps)) => steps,
        Some(Err(error)) => {
            eprintln!("check: the number of steps: {error}; expected for instance {STEPS}");
            return ExitCode::from(2);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bounds = Bounds { steps_max: steps, threads, is_loud: true };
    let mut sums = (0, 0.0, true);
    let mut say = |name: &str, found: &Found, is_expected: bool| {
        println!("{name}: {found}");
        sums = (sums.0 + found.states, sums.1 + found.took.as_secs_f64(), sums.2 && is_expected);
    };
    for (name, pair) in Pair::runs(true) {
        eprintln!("pair: {name}");
        let found = check(pair, bounds);
        say(&format!("pair, {name}"), &found, found.counterexample.is_none());
    }
    for (name, cluster) in Cluster::runs(true) {
        eprintln!("cluster: {name}");
        let found = check(cluster, bounds);
        say(&format!("cluster, {name}"), &found, found.counterexample.is_none());
    }
    // With one thread counterexamples are as short as there are any.
    let for_planted = Bounds { threads: 1, steps_max: steps.max(STEPS_PLANTED), ..bounds };
    for planted in pair::Planted::ALL {
        let found = check(Pair::with(planted), for_planted);
        say(&format!("pair with {planted:?}"), &found, found.counterexample.is_some());
    }
    for planted in cluster::Planted::ALL {
        let found = check(Cluster::with(planted), for_planted);
        say(&format!("cluster with {planted:?}"), &found, found.counterexample.is_some());
    }
    let (states, seconds, is_as_expected) = sums;
    println!("{states} states in {seconds:.0} s");
    if is_as_expected { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
