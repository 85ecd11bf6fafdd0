//! Solves network processors and tandems of growing buffers and says what each took:
//! `cargo run --release --package forebay-models --example solve`.
// Measuring is the point of it.
#![allow(clippy::disallowed_methods)]

use std::time::Instant;

use forebay_models::{Discipline, Network, Options, Stage, solve};

fn main() {
    let turns = |switch_delay_s| Discipline::InterruptDriven { run_length_s: 100e-6, switch_delay_s };
    let tandem = |arrival_rate: f64, buffer: u32| Network {
        arrival_rate,
        stages: ["a", "b", "c"].map(|name| Stage::new(name, 1.0, buffer)).to_vec(),
        servers: vec![],
    };
    for buffer in [4, 9, 15, 20] {
        for rate in [10_000.0, 14_285.0] {
            report("interrupt-driven", &Network::ixp425(rate, buffer, turns(0.0)));
        }
        report("with a switch of 5 us", &Network::ixp425(10_000.0, buffer, turns(5e-6)));
    }
    for rate in [10_000.0, 14_285.0] {
        report("busy-waiting", &Network::ixp425(rate, 101, Discipline::BusyWaiting));
    }
    for buffer in [30, 60, 99] {
        report("three queues", &tandem(0.9, buffer));
        report("three queues", &tandem(1.0, buffer));
    }
}

fn report(name: &str, network: &Network) {
    let began = Instant::now();
    let solution = solve(network, &Options::default());
    let seconds = began.elapsed().as_secs_f64();
    match solution {
        Ok(s) => println!(
            "{name}, rate {}, buffers {}: {} states, {} solved in {seconds:.3} s, {} cycles, residual {:.1e}, \
             imbalance {:.1e}: throughput {:.6}, loss {:.3e}",
            network.arrival_rate,
            network.stages[0].buffer,
            s.states,
            s.tangible_states,
            s.accuracy.cycles,
            s.accuracy.residual,
            s.accuracy.imbalance,
            s.throughput_pps,
            s.loss_probability
        ),
        Err(error) => println!("{name}, buffers {}: {error} ({seconds:.3} s)", network.stages[0].buffer),
    }
}
