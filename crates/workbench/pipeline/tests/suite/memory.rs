//! Engines that wait for a memory that they share: a stage on a shared server inside the span of a busy-waiting one.

use forebay_pipeline::*;
use forebay_time::{Duration, Time};

const SDRAM: usize = 0;

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// A memory that serves accesses in their order, whoever asks.
fn sdram() -> Server {
    let discipline = Discipline::interrupt_driven(us(1_000_000), Duration::ZERO);
    Server { name: "sdram".into(), cores: 1, discipline, breakdowns: None, power: None }
}

fn engine(name: &str, contexts: u32) -> Server {
    let discipline = Discipline::BusyWaiting { contexts, switch_delay: Law::Constant(Duration::ZERO) };
    Server { name: name.into(), cores: 1, discipline, breakdowns: None, power: None }
}

#[test]
fn an_engine_waits_while_another_has_the_memory() {
    let stage = |name: &str, time, server| Stage::new(name, Law::Constant(us(time)), 9).on(server);
    let arrival = |at: u64| Arrival { at: Time::ZERO + us(at), bytes: 0 };
    let pipeline = Pipeline {
        duration: None,
        arrivals: Arrivals::Trace(vec![arrival(0), arrival(3)]),
        servers: vec![sdram(), engine("first", 1), engine("second", 1)],
        stages: vec![
            stage("a", 10, 1),
            stage("m", 6, SDRAM),
            stage("b", 4, 1),
            stage("c", 5, 2),
            stage("n", 6, SDRAM),
            stage("d", 2, 2),
        ],
        ..Pipeline::default()
    };
    let outcome = simulate(&pipeline).unwrap();
    // The first: a 0-10, m 10-16, b -20, c -25, n 25-31, d -33. The second begins when the first has left its engine: a 20-30,
    // finds the memory taken until 31, m 31-37, b -41, c -46, n -52, d -54.
    assert_eq!((outcome.processed, outcome.elapsed_s), (2, 54e-6));
    assert!((outcome.delay.mean_s * 1e6 - (33.0 + 51.0) / 2.0).abs() < 1e-9);
    let shares = |server: usize| {
        let one = &outcome.servers[server];
        [one.utilisation, one.waiting].map(|share| (share * 54.0).round() as u64)
    };
    // Engines work for 28 and 14, and hold their packets for 6 + 7 and 6 + 6 more.
    assert_eq!([shares(SDRAM), shares(1), shares(2)], [[24, 0], [28, 13], [14, 12]]);
    // No chain and no closed form says that.
    for error in [solve(&pipeline, &Default::default()).map(drop), unlimited(&pipeline).map(drop)] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("arrivals from a trace"), "{error}");
    }
    let drawn = Pipeline { duration: Some(us(1)), arrivals: Arrivals::Exponential(us(100)), ..pipeline };
    for error in [solve(&drawn, &Default::default()).map(drop), unlimited(&drawn).map(drop)] {
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("stage m, which needs a shared server while its packet holds another"),
            "{error}"
        );
    }
}

/// Engines with as many contexts, each with work for all of them: half of the computing, the memory, the other half. Packets per
/// second.
fn saturated(engines: u32, contexts: u32, compute_us: u64, memory_us: u64) -> f64 {
    let mut servers = vec![sdram()];
    let mut stages = vec![Stage::new("in", Law::Constant(Duration(1)), 100)];
    for number in 0..engines as usize {
        servers.push(engine(&format!("engine {number}"), contexts));
        let half = || Law::Exponential(us(compute_us / 2));
        let exit = Some(Vec::new());
        stages.push(Stage::new(&format!("a{number}"), half(), contexts + 50).on(number + 1));
        stages.push(Stage::new(&format!("m{number}"), Law::Exponential(us(memory_us)), 1).on(SDRAM));
        stages.push(Stage { next: exit, ..Stage::new(&format!("b{number}"), half(), 1).on(number + 1) });
    }
    let share = 1.0 / f64::from(engines);
    let ways = (0..engines as usize).map(|number| Branch { stage: 1 + 3 * number, share });
    stages[0].next = Some(ways.collect());
    let pipeline = Pipeline {
        seed: 5,
        duration: Some(us(8_000_000)),
        warm_up: us(10_000),
        arrivals: Arrivals::Constant(us(5)),
        servers,
        stages,
        ..Pipeline::default()
    };
    simulate(&pipeline).unwrap().throughput_pps
}

/// Single-threaded engines are machines that need a repairman: M/M/1//N, whatever the law of their computing.
#[test]
fn single_threaded_engines_are_machines_with_a_repairman() {
    for (engines, compute, memory) in [(1, 40, 20), (2, 40, 20), (3, 40, 20), (4, 40, 40)] {
        let ratio = f64::from(memory) / f64::from(compute);
        let terms = (0..=engines)
            .map(|k| (engines - k + 1..=engines).map(f64::from).product::<f64>() * ratio.powi(k as i32));
        let idle = 1.0 / terms.sum::<f64>();
        let exact = (1.0 - idle) / (f64::from(memory) * 1e-6);
        let found = saturated(engines, 1, compute as u64, memory as u64);
        assert!((found / exact - 1.0).abs() < 0.01, "{engines} {memory}: {found} {exact}");
    }
}

/// Hardware threads: a closed network of core and memory with as many packets (Buzen 1973), both halves of the computing
/// exponential with one mean, as queues in order of arrival need for it.
#[test]
fn hardware_threads_are_a_closed_network() {
    for (contexts, compute, memory) in [(1, 40, 20), (2, 40, 20), (4, 40, 20), (3, 40, 60)] {
        let (z, s) = (f64::from(compute) * 1e-6, f64::from(memory) * 1e-6);
        let g = |n: i32| (0..=n).map(|i| z.powi(i) * s.powi(n - i)).sum::<f64>();
        let exact = g(contexts - 1) / g(contexts);
        let found = saturated(1, contexts as u32, compute as u64, memory as u64);
        assert!((found / exact - 1.0).abs() < 0.01, "{contexts} {memory}: {found} {exact}");
    }
}
