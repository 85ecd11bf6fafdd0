//! Direct solution of chains that are narrow, or that no iteration comes to an end with: states in an
//! order in which transitions are short (Cuthill and McKee 1969), then the elimination of [`crate::gth`]
//! within the band that they make.

use crate::generator::Generator;
use crate::gth::LARGE;

/// An order of states, and how far apart in it the ends of a transition are at most.
pub(crate) struct Band {
    order: Vec<u32>,
    width: usize,
}

impl Band {
    /// Finds an order. Takes time and memory in proportion to the transitions.
    pub fn new(chain: &Generator) -> Band {
        let neighbours = Neighbours::new(chain);
        // From the far end of the chain: the last that a walk from anywhere comes to.
        let far = neighbours.walk(*neighbours.walk(0).last().expect("a chain has states"));
        let order = neighbours.walk(*far.last().expect("a chain has states"));
        let mut place = vec![0u32; order.len()];
        order.iter().zip(0..).for_each(|(&state, at)| place[state as usize] = at);
        let mut width = 0;
        for state in 0..chain.states() {
            for (source, _) in chain.incoming(state) {
                width = width.max(place[state].abs_diff(place[source]) as usize);
            }
        }
        Band { order, width }
    }

    /// Multiplications that the elimination takes, about.
    pub fn work(&self) -> u128 {
        self.order.len() as u128 * (self.width as u128).pow(2)
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> u128 {
        self.order.len() as u128 * (16 * self.width as u128 + 24)
    }

    /// The stationary distribution; nothing is subtracted, as in [`crate::gth::stationary`].
    ///
    /// `rate[i]` holds the rates from the i-th state to those up to `width` before and behind it.
    pub fn solve(&self, chain: &Generator) -> Vec<f64> {
        let (n, width) = (self.order.len(), self.width);
        let span = 2 * width + 1;
        let mut place = vec![0; n];
        self.order.iter().enumerate().for_each(|(at, &state)| place[state as usize] = at);
        let mut rate = vec![0.0; n * span];
        let of = |from: usize, to: usize| from * span + to + width - from;
        for (to, &state) in self.order.iter().enumerate() {
            for (source, r) in chain.incoming(state as usize) {
                rate[of(place[source], to)] += r;
            }
        }
        for k in (1..n).rev() {
            let first = k.saturating_sub(width);
            let (above, below) = rate.split_at_mut(k * span);
            let row = &below[of(k, first) - k * span..of(k, k) - k * span];
            let out: f64 = row.iter().sum();
            for i in first..k {
                let share = if out > 0.0 { above[of(i, k)] / out } else { 0.0 };
                above[of(i, k)] = share;
                if share > 0.0 {
                    let begin = of(i, first);
                    for (to, &via) in above[begin..begin + k - first].iter_mut().zip(row) {
                        *to += share * via;
                    }
                }
            }
        }
        let mut x = vec![0.0; n];
        x[0] = 1.0;
        for k in 1..n {
            x[k] = (k.saturating_sub(width)..k).map(|i| x[i] * rate[of(i, k)]).sum();
            if x[k] > LARGE {
                let scale = if x[k].is_finite() { x[k] } else { f64::MAX };
                x[..k].iter_mut().for_each(|p| *p /= scale);
                x[k] = 1.0;
            }
        }
        let total: f64 = x.iter().sum();
        place.iter().map(|&at| x[at] / total).collect()
    }
}

/// States that a transition joins, whichever way it goes.
struct Neighbours {
    start: Vec<usize>,
    of: Vec<u32>,
}

impl Neighbours {
    fn new(chain: &Generator) -> Neighbours {
        let states = chain.states();
        let mut start = vec![0; states + 1];
        let pairs = |state: usize| chain.incoming(state).map(move |(source, _)| (source, state));
        for (a, b) in (0..states).flat_map(pairs) {
            start[a + 1] += 1;
            start[b + 1] += 1;
        }
        (0..states).for_each(|state| start[state + 1] += start[state]);
        let (mut of, mut free) = (vec![0; start[states]], start.clone());
        for (a, b) in (0..states).flat_map(pairs) {
            for (one, other) in [(a, b), (b, a)] {
                of[free[one]] = other as u32;
                free[one] += 1;
            }
        }
        Neighbours { start, of }
    }

    /// All states, nearest to `from` first; of those as near, behind the same one, those with fewer
    /// neighbours first.
    fn walk(&self, from: u32) -> Vec<u32> {
        let states = self.start.len() - 1;
        let degree = |state: u32| self.start[state as usize + 1] - self.start[state as usize];
        let mut seen = vec![false; states];
        let mut order = Vec::with_capacity(states);
        seen[from as usize] = true;
        order.push(from);
        let mut at = 0;
        while let Some(&state) = order.get(at) {
            at += 1;
            let begin = order.len();
            for &next in &self.of[self.start[state as usize]..self.start[state as usize + 1]] {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    order.push(next);
                }
            }
            order[begin..].sort_by_key(|&next| degree(next));
        }
        order
    }
}
