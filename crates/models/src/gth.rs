//! Direct solution of small chains by the elimination of Grassmann, Taksar and Heyman (1985).

use crate::generator::Generator;

/// The stationary distribution of a chain of `n` states; `rate[i * n + j]` is the rate from i to j,
/// the diagonal is not looked at.
///
/// Nothing is subtracted, so every probability is exact to a few roundings however small it is.
/// States that are never left keep whatever the others give them.
pub(crate) fn stationary(n: usize, rate: &mut [f64]) -> Vec<f64> {
    for k in (1..n).rev() {
        let out: f64 = rate[k * n..k * n + k].iter().sum();
        if out <= 0.0 {
            continue;
        }
        let (above, row) = rate.split_at_mut(k * n);
        for i in 0..k {
            let share = above[i * n + k] / out;
            above[i * n + k] = share;
            if share > 0.0 {
                for (to, &via) in above[i * n..i * n + k].iter_mut().zip(&row[..k]) {
                    *to += share * via;
                }
            }
        }
    }
    let mut x = vec![0.0; n];
    x[0] = 1.0;
    for k in 1..n {
        x[k] = (0..k).map(|i| x[i] * rate[i * n + k]).sum();
    }
    let total: f64 = x.iter().sum();
    x.iter_mut().for_each(|p| *p /= total);
    x
}

/// The same from a sparse generator.
pub(crate) fn solve(generator: &Generator) -> Vec<f64> {
    let n = generator.states();
    let mut rate = vec![0.0; n * n];
    for to in 0..n {
        for (from, r) in generator.incoming(to) {
            rate[from * n + to] += r;
        }
    }
    stationary(n, &mut rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_states() {
        // 0 -> 1 at 2, back at 1: one third, two thirds.
        let x = stationary(2, &mut [0.0, 2.0, 1.0, 0.0]);
        assert_eq!(x, [1.0 / 3.0, 2.0 / 3.0]);
    }

    #[test]
    fn a_ring_with_a_slow_state() {
        // 0 -> 1 -> 2 -> 0 at 1, 2, 1e-9: times in inverse proportion to the rates.
        let x = stationary(3, &mut [0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 1e-9, 0.0, 0.0]);
        let total = 1.0 + 0.5 + 1e9;
        for (x, t) in x.iter().zip([1.0, 0.5, 1e9]) {
            assert!((x - t / total).abs() <= 1e-15 * t / total);
        }
    }
}
