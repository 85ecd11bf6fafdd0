//! Least squares of a few terms, none of them negative.

use super::terms::{TERMS, Terms, dot};

/// A pivot below this share of its column is none: the columns depend on each other.
const SINGULAR: f64 = 1e-9;

/// The sets of terms, a bit each, small ones first; of those of one size first the one of init and block: what
/// one batch size does not tell apart counts as these.
const SETS: [usize; 15] = [2, 4, 8, 1, 6, 10, 12, 3, 5, 9, 14, 7, 11, 13, 15];

/// The sums of the weighted squares and products of the samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    /// Sum of weight * row_i * row_j; only i >= j is kept.
    squares: [Terms; TERMS],
    /// Sum of weight * row_i * time.
    products: Terms,
    /// Sum of weight * time^2: with the weight 1 / time^2 the number of samples.
    pub(super) weight: f64,
}

/// What holds terms where they were: each costs `strength` * (term - `at`)^2.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ridge {
    pub(super) at: Terms,
    pub(super) strength: Terms,
}

impl Moments {
    /// Fades what is there to the share `keep` and adds a sample, in which relative errors count.
    #[inline]
    pub(super) fn add(&mut self, row: &Terms, time: f64, keep: f64) {
        let scaled = row.map(|count| count / time);
        for i in 0..TERMS {
            for j in 0..=i {
                self.squares[i][j] = self.squares[i][j] * keep + scaled[i] * scaled[j];
            }
            self.products[i] = self.products[i] * keep + scaled[i];
        }
        self.weight = self.weight * keep + 1.0;
    }

    /// As if every time had been `factor` times as long.
    pub(super) fn scale(&mut self, factor: f64) {
        self.squares.iter_mut().flatten().for_each(|sum| *sum /= factor * factor);
        self.products.iter_mut().for_each(|sum| *sum /= factor);
    }

    /// The mean of the squares of the relative errors that these terms make.
    pub(super) fn error(&self, terms: &Terms) -> f64 {
        let mut squares = 0.0;
        for i in 0..TERMS {
            for j in 0..=i {
                let twice = if i == j { 1.0 } else { 2.0 };
                squares += twice * self.squares[i][j] * terms[i] * terms[j];
            }
        }
        let sum = self.weight - 2.0 * dot(&self.products, terms) + squares;
        if self.weight > 0.0 { (sum / self.weight).max(0.0) } else { 0.0 }
    }

    /// The terms, none below zero, with the least squares and, where `ridge` is strong, near to it. Only those
    /// that `free` names are looked for, the others are zero. Where samples do not tell terms apart, the fewest
    /// that explain them as well.
    pub(super) fn solve(&self, ridge: &Ridge, free: [bool; TERMS]) -> Terms {
        let mut squares = self.squares;
        let mut products = self.products;
        for i in 0..TERMS {
            squares[i][i] += ridge.strength[i];
            products[i] += ridge.strength[i] * ridge.at[i];
        }
        let all = (0..TERMS).fold(0, |set, i| set | usize::from(free[i]) << i);
        if let Some(terms) = solve_for(&squares, &products, all)
            && terms.iter().all(|&term| term >= 0.0)
        {
            return terms;
        }
        // The best of the sets whose own solution is not negative; it lowers the squares by products * terms.
        let mut best = ([0.0; TERMS], 0.0);
        for set in SETS.into_iter().filter(|set| set & !all == 0) {
            let Some(terms) = solve_for(&squares, &products, set) else { continue };
            let gain = dot(&products, &terms);
            if terms.iter().all(|&term| term >= 0.0) && gain > best.1 * (1.0 + SINGULAR) {
                best = (terms, gain);
            }
        }
        best.0
    }
}

/// Solves the equations of the terms in `set` by Cholesky's method, the others being zero; `None` if they do not
/// determine the terms.
fn solve_for(squares: &[Terms; TERMS], products: &Terms, set: usize) -> Option<Terms> {
    let has = |i: usize| set & 1 << i != 0;
    let mut lower = [[0.0; TERMS]; TERMS];
    let mut terms = [0.0; TERMS];
    for i in (0..TERMS).filter(|&i| has(i)) {
        for j in (0..=i).filter(|&j| has(j)) {
            let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let rest = squares[i][j] - known;
            if i > j {
                lower[i][j] = rest / lower[j][j];
            } else if rest > SINGULAR * squares[i][i] {
                lower[i][i] = rest.sqrt();
            } else {
                return None;
            }
        }
        let known: f64 = (0..i).map(|k| lower[i][k] * terms[k]).sum();
        terms[i] = (products[i] - known) / lower[i][i];
    }
    for i in (0..TERMS).rev().filter(|&i| has(i)) {
        let known: f64 = (i + 1..TERMS).filter(|&k| has(k)).map(|k| lower[k][i] * terms[k]).sum();
        terms[i] = (terms[i] - known) / lower[i][i];
    }
    Some(terms)
}
