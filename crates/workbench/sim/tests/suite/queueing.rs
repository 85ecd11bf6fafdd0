//! Limits with closed forms, within the 95 % confidence intervals of independent runs.
//!
//! CPUs under the finish-time rule, which knows every service time, are the queue G/G/c with one FIFO: a
//! packet goes where the least work is before it.

use std::path::Path;

use forebay_sim::{Figures, Replications, Scenario, replicate};

/// Packets with a mean of 16000 bytes are exponential to one part in a thousand; a block takes 1 ns, so
/// the mean service time is 1 us (and half a block more, for the last one counts whole).
fn queue(cpus: usize, load: f64, exponential: bool) -> Replications {
    let sizes = if exponential {
        "source = \"exponential\"\nmean = 15992\nmin = 0\nmax = 1000000\n"
    } else {
        "source = \"fixed\"\nvalue = 16000\n"
    };
    let text = format!(
        "model = \"host\"\n[traffic]\n{sizes}packets = 120_000\noverhead = 0\nwarm_up = 10_000\npacket_rate = {}\n\
         [[processor]]\nkind = \"cpu\"\ncount = {cpus}\ninit = 0\nblock = \"1 ns\"\nqueue = 100_000\n",
        load * cpus as f64 * 1e6
    );
    let scenario = Scenario::parse(&text, "queue", &[], Path::new("")).unwrap_or_else(|errors| {
        panic!("{:?}", errors.findings().iter().map(ToString::to_string).collect::<Vec<_>>())
    });
    replicate(&scenario, 20, 2).unwrap()
}

const MEAN: fn(&Figures) -> f64 = |figures| figures.total_latency.mean_s * 1e6;

fn agrees(runs: &Replications, figure: impl Fn(&Figures) -> f64, expected: f64) {
    let estimate = runs.estimate(figure);
    // Twice the interval: with a dozen comparisons one beyond 95 % has to be expected.
    let off = (estimate.mean - expected).abs();
    assert!(off <= 2.0 * estimate.half_width, "{estimate:?}, expected {expected}");
    assert!(estimate.half_width < 0.05 * expected, "{estimate:?} says nothing about {expected}");
}

#[test]
fn m_m_1() {
    for load in [0.3, 0.7] {
        let runs = queue(1, load, true);
        agrees(&runs, MEAN, 1.0 / (1.0 - load));
        // The time in an M/M/1 is exponential.
        agrees(&runs, |figures| figures.total_latency.p90_s * 1e6, 10f64.ln() / (1.0 - load));
        agrees(&runs, |figures| figures.processors[0].load, load);
    }
}

#[test]
fn m_d_1() {
    for load in [0.3, 0.8] {
        agrees(&queue(1, load, false), MEAN, 1.0 + load / (2.0 * (1.0 - load)));
    }
}

#[test]
fn m_m_c() {
    for (cpus, load) in [(2, 0.6), (4, 0.8)] {
        let offered = load * cpus as f64;
        // Erlang's C by way of his B.
        let blocked = (1..=cpus).fold(1.0, |b, n| offered * b / (n as f64 + offered * b));
        let waits = blocked / (1.0 - load * (1.0 - blocked));
        agrees(&queue(cpus, load, true), MEAN, 1.0 + waits / (cpus as f64 * (1.0 - load)));
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let text = "model = \"host\"\n[traffic]\nsource = \"paper\"\npackets = 2000\nrate = 1e9\nsas = 10\n\
                [[processor]]\nkind = \"accelerator\"\ncount = 2\n[scheduler]\nwindow = 5\n";
    let scenario = Scenario::parse(text, "threads", &[], Path::new("")).unwrap();
    let figures = |threads| -> Vec<Figures> {
        replicate(&scenario, 7, threads).unwrap().outcomes.into_iter().map(|one| one.figures).collect()
    };
    assert_eq!(figures(1), figures(3));
    assert_ne!(figures(1)[0], figures(1)[1]);
}
