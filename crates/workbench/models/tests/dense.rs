//! Small chains against plain Gaussian elimination over the whole space of models.md section 2,
//! vanishing states included, written without a look at the crate's own code.

use forebay_models::{Discipline, Network, Options, solve};
use proptest::prelude::*;

const MU: [f64; 5] = [1.0 / 27.3e-6, 1.0 / 32e-6, 1.0 / 12.6e-6, 1.0 / 49e-6, 1.0 / 27.3e-6];

/// Solves a x = b by elimination with partial pivoting.
fn gauss(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        b.swap(k, pivot);
        let row = a[k].clone();
        for i in k + 1..n {
            let factor = a[i][k] / row[k];
            if factor != 0.0 {
                for j in k..n {
                    a[i][j] -= factor * row[j];
                }
                b[i] -= factor * b[k];
            }
        }
    }
    for k in (0..n).rev() {
        let sum: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - sum) / a[k][k];
    }
    b
}

struct Oracle {
    throughput: f64,
    loss: f64,
    occupancy: [f64; 5],
    core: f64,
}

/// The unknowns are probabilities of states in which time passes, and flows through vanishing ones.
fn interrupt_driven(lambda: f64, buf: [usize; 5], ts: [f64; 2], td: f64) -> Oracle {
    let states: usize = buf.iter().map(|b| b + 1).product::<usize>() * 4;
    let number = |s: [usize; 5], pcs: usize| s.iter().zip(buf).fold(pcs, |n, (v, b)| n * (b + 1) + v);
    let mut of = vec![([0; 5], 0); states];
    let mut all = vec![[0; 5]];
    for k in 0..5 {
        all = all
            .iter()
            .flat_map(|s| {
                (0..=buf[k]).map(move |v| {
                    let mut s = *s;
                    s[k] = v;
                    s
                })
            })
            .collect();
    }
    for pcs in 0..4 {
        for &s in &all {
            of[number(s, pcs)] = (s, pcs);
        }
    }
    let mut a = vec![vec![0.0; states]; states];
    let mut timed = vec![true; states];
    let mut flow = |from: usize, to: usize, rate: f64| {
        a[to][from] += rate;
        a[from][from] -= rate;
    };
    for from in 0..states {
        let (s, pcs) = of[from];
        let [r, qa, c, qb, t] = s;
        let at = |pcs| number(s, pcs);
        let full = |k: usize| s[k] == buf[k];
        // "never" wins over "at once", and that over the run length.
        let to_b = if qb == 0 || full(4) {
            0
        } else if qa == 0 || full(2) {
            2
        } else {
            1
        };
        let to_a = if qa == 0 || full(2) {
            0
        } else if qb == 0 || full(4) {
            2
        } else {
            1
        };
        let vanish = match pcs {
            0 if to_b == 2 => Some(2),
            1 if to_a == 2 => Some(3),
            2 if td == 0.0 => Some(1),
            3 if td == 0.0 => Some(0),
            _ => None,
        };
        if let Some(next) = vanish {
            timed[from] = false;
            flow(from, at(next), 1.0);
            continue;
        }
        let moved = |out: Option<usize>, into: Option<usize>| {
            let mut s = s;
            out.inspect(|&k| s[k] -= 1);
            into.inspect(|&k| s[k] += 1);
            number(s, pcs)
        };
        if !full(0) {
            flow(from, moved(None, Some(0)), lambda)
        }
        if r > 0 && !full(1) {
            flow(from, moved(Some(0), Some(1)), MU[0])
        }
        if qa > 0 && pcs == 0 && !full(2) {
            flow(from, moved(Some(1), Some(2)), MU[1])
        }
        if c > 0 && !full(3) {
            flow(from, moved(Some(2), Some(3)), MU[2])
        }
        if qb > 0 && pcs == 1 && !full(4) {
            flow(from, moved(Some(3), Some(4)), MU[3])
        }
        if t > 0 {
            flow(from, moved(Some(4), None), MU[4])
        }
        if pcs == 0 && to_b == 1 {
            flow(from, at(2), 1.0 / ts[0])
        }
        if pcs == 1 && to_a == 1 {
            flow(from, at(3), 1.0 / ts[1])
        }
        if pcs == 2 {
            flow(from, at(1), 1.0 / td)
        }
        if pcs == 3 {
            flow(from, at(0), 1.0 / td)
        }
    }
    let last = states - 1;
    a[last] = timed.iter().map(|&t| f64::from(u8::from(t))).collect();
    let mut b = vec![0.0; states];
    b[last] = 1.0;
    let x = gauss(a, b);
    let sum = |f: &dyn Fn([usize; 5], usize) -> f64| -> f64 {
        (0..states).filter(|&k| timed[k]).map(|k| x[k] * f(of[k].0, of[k].1)).sum()
    };
    let is = |b: bool| f64::from(u8::from(b));
    Oracle {
        throughput: MU[4] * sum(&|s, _| is(s[4] > 0)),
        loss: sum(&|s, _| is(s[0] == buf[0])),
        occupancy: [0, 1, 2, 3, 4].map(|k| sum(&|s, _| s[k] as f64)),
        core: sum(&|s, pcs| {
            is((pcs == 0 && s[1] > 0 && s[2] < buf[2]) || (pcs == 1 && s[3] > 0 && s[4] < buf[4]))
        }),
    }
}

fn near(what: &str, ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() <= 1e-10 * theirs.abs().max(1e-3), "{what}: {ours} is not {theirs}");
}

/// Ours in every way against the oracle.
fn compare(lambda: f64, buf: [usize; 5], ts: [f64; 2], td: f64) {
    let core = Discipline::InterruptDriven { run_length_s: ts[0], switch_delay_s: td };
    let mut network = Network::ixp425(lambda, 1, core);
    network.stages.iter_mut().zip(buf).for_each(|(stage, buffer)| stage.buffer = buffer as u32);
    network.stages[3].run_length_s = Some(ts[1]);
    let oracle = interrupt_driven(lambda, buf, ts, td);
    // By cycles, within a band, by elimination.
    for (direct, band) in [(0, 0), (0, u64::MAX), (1000, 0)] {
        let mut options = Options::default();
        (options.direct, options.band) = (direct, band);
        let ours = solve(&network, &options).unwrap();
        near("throughput", ours.throughput_pps, oracle.throughput);
        near("loss", ours.loss_probability, oracle.loss);
        near("core", ours.servers[0].utilisation, oracle.core);
        ours.stages
            .iter()
            .zip(oracle.occupancy)
            .for_each(|(s, theirs)| near(&s.name, s.mean_occupancy, theirs));
    }
}

#[test]
fn buffers_of_one_two_and_three() {
    compare(10_000.0, [1; 5], [100e-6; 2], 0.0);
    compare(14_285.0, [1; 5], [100e-6, 30e-6], 7e-6);
    compare(12_000.0, [2, 1, 2, 1, 2], [50e-6, 200e-6], 0.0);
    compare(12_000.0, [3, 2, 1, 2, 1], [50e-6, 200e-6], 2e-6);
    compare(3_000.0, [1, 3, 1, 3, 1], [f64::INFINITY; 2], 20e-6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_small_buffers(
        buf in prop::array::uniform5(1..=2usize),
        lambda in 1_000.0..40_000.0f64,
        ts in prop::array::uniform2(1e-6..1e-3f64),
        td in prop_oneof![Just(0.0), 1e-7..1e-4f64],
    ) {
        compare(lambda, buf, ts, td);
    }
}
