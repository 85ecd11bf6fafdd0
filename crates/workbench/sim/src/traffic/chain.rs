//! First-order Markov chains: what is drawn depends on what was drawn last.

use crate::random::Random;

/// Squarings of the transition matrix for the long run: 2^40 steps.
const SQUARINGS: u32 = 40;

/// Numbers 0 to n - 1 in an order: weights of the first one, and weights of those that follow each.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// Weights, each added to those before it.
    first: Vec<u64>,
    /// The same by the number drawn last; empty: what was drawn last does not matter.
    next: Vec<Vec<u64>>,
}

impl Chain {
    /// A chain by its weights, every list with a sum above 0; with no `transitions` the draws are independent.
    pub fn new(weights: &[u64], transitions: &[Vec<u64>]) -> Chain {
        Chain { first: summed(weights), next: transitions.iter().map(|row| summed(row)).collect() }
    }

    /// The next number.
    #[inline]
    pub(crate) fn draw(&self, last: Option<u16>, random: &mut Random) -> u16 {
        let borders = last.and_then(|last| self.next.get(usize::from(last))).unwrap_or(&self.first);
        let total = borders.last().copied().unwrap_or(1);
        let at = random.below(total);
        borders.partition_point(|&border| border <= at) as u16
    }

    /// How often each number is drawn in the long run, as shares of 1.
    pub fn shares(&self) -> Vec<f64> {
        let first = shares(&self.first);
        if self.next.is_empty() {
            return first;
        }
        // Half of every step stays: the limit is the long-run mean, of chains with a period too.
        let mut matrix: Vec<Vec<f64>> = self.next.iter().map(|row| shares(row)).collect();
        for (at, row) in matrix.iter_mut().enumerate() {
            row.iter_mut().for_each(|share| *share /= 2.0);
            row[at] += 0.5;
        }
        for _ in 0..SQUARINGS {
            matrix = matrix.iter().map(|row| normal(times(row, &matrix))).collect();
        }
        times(&first, &matrix)
    }
}

fn summed(weights: &[u64]) -> Vec<u64> {
    let sums = weights.iter().scan(0, |sum, weight| {
        *sum += weight;
        Some(*sum)
    });
    sums.collect()
}

fn shares(borders: &[u64]) -> Vec<f64> {
    let total = borders.last().copied().unwrap_or(1) as f64;
    let mut before = 0;
    borders.iter().map(|&border| (border - std::mem::replace(&mut before, border)) as f64 / total).collect()
}

/// A row by a matrix.
fn times(row: &[f64], matrix: &[Vec<f64>]) -> Vec<f64> {
    let mut product = vec![0.0; row.len()];
    for (factor, line) in row.iter().zip(matrix) {
        product.iter_mut().zip(line).for_each(|(sum, one)| *sum += factor * one);
    }
    product
}

/// Rounding must not grow from squaring to squaring.
fn normal(row: Vec<f64>) -> Vec<f64> {
    let sum: f64 = row.iter().sum();
    row.into_iter().map(|one| one / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    #[test]
    fn draws_follow_the_transitions_and_their_long_run() {
        // Mean stay in 0: 10 draws, in 1: 4; so 5/7 and 2/7.
        let chain = Chain::new(&[1, 1], &[vec![9, 1], vec![1, 3]]);
        let shares = chain.shares();
        assert!((shares[0] - 5.0 / 7.0).abs() < 1e-12 && (shares[1] - 2.0 / 7.0).abs() < 1e-12);
        let mut random = random::stream(1, "chain");
        let (mut last, mut zeros, mut changes) = (None, 0, 0);
        for _ in 0..200_000 {
            let next = chain.draw(last, &mut random);
            zeros += u32::from(next == 0);
            changes += u32::from(last.is_some_and(|last| last != next));
            last = Some(next);
        }
        assert!((f64::from(zeros) / 200_000.0 - 5.0 / 7.0).abs() < 0.01, "{zeros}");
        assert!((f64::from(changes) / 200_000.0 - 1.0 / 7.0).abs() < 0.005, "{changes}");
    }

    #[test]
    fn a_chain_with_a_period_and_one_without_transitions_have_shares() {
        assert_eq!(Chain::new(&[3, 1], &[]).shares(), [0.75, 0.25]);
        let ring = Chain::new(&[1, 0, 0], &[vec![0, 1, 0], vec![0, 0, 1], vec![1, 0, 0]]);
        assert!(ring.shares().iter().all(|share| (share - 1.0 / 3.0).abs() < 1e-12));
        // Two chains without a way between them: the first draw decides.
        assert_eq!(Chain::new(&[1, 3], &[vec![1, 0], vec![0, 1]]).shares(), [0.25, 0.75]);
    }
}
