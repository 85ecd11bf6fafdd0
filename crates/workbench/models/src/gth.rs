//! Direct solution of small chains by the elimination of Grassmann, Taksar and Heyman (1985).

use crate::generator::Generator;

/// What is likelier than this is made the measure of the others.
pub(crate) const LARGE: f64 = 1e200;

/// The stationary distribution of a chain of `n` states; `rate[i * n + j]` is the rate from i to j,
/// the diagonal is not looked at.
///
/// Nothing is subtracted, so every probability is exact to a few roundings however small it is.
/// States that are never left, as lumps of no weight have it, get none.
pub(crate) fn stationary(n: usize, rate: &mut [f64]) -> Vec<f64> {
    for k in (1..n).rev() {
        let out: f64 = rate[k * n..k * n + k].iter().sum();
        let (above, row) = rate.split_at_mut(k * n);
        for i in 0..k {
            let share = if out > 0.0 { above[i * n + k] / out } else { 0.0 };
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
        // States may be likelier than the first by more than a number can say: then that one is not.
        if x[k] > LARGE {
            let scale = if x[k].is_finite() { x[k] } else { f64::MAX };
            x[..k].iter_mut().for_each(|p| *p /= scale);
            x[k] = 1.0;
        }
    }
    let total: f64 = x.iter().sum();
    x.iter_mut().for_each(|p| *p /= total);
    x
}

/// The same from a sparse generator. States that nothing flows out of, which are lumps of no weight,
/// are left out.
pub(crate) fn solve(generator: &Generator) -> Vec<f64> {
    let kept: Vec<usize> = (0..generator.states()).filter(|&state| generator.out[state] > 0.0).collect();
    let n = kept.len();
    if n == 0 {
        return vec![1.0 / generator.states() as f64; generator.states()];
    }
    let mut row = vec![None; generator.states()];
    kept.iter().enumerate().for_each(|(k, &state)| row[state] = Some(k));
    let mut rate = vec![0.0; n * n];
    for (to, &state) in kept.iter().enumerate() {
        for (source, r) in generator.incoming(state) {
            if let Some(from) = row[source] {
                rate[from * n + to] += r;
            }
        }
    }
    let solved = stationary(n, &mut rate);
    let mut x = vec![0.0; generator.states()];
    kept.iter().zip(solved).for_each(|(&state, p)| x[state] = p);
    x
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
