//! Iterative solution of large chains: Gauss-Seidel, corrected by lumped chains.
//!
//! Gauss-Seidel sweeps even out what is wrong between neighbouring states quickly, and what is
//! wrong between far ones hardly at all. So neighbours are lumped, with the present probabilities
//! as weights, into a chain of fewer states; that one is solved the same way, and its answer
//! scales each lump (the multilevel method of Horton and Leutenegger, SIGMETRICS 1994). At the
//! solution the scales are all one, so what the lumping leaves out never shows in the answer.
//!
//! Every step adds, multiplies and divides positive numbers only.

use crate::generator::Generator;
use crate::gth;

/// Gauss-Seidel sweeps before and after each correction.
const SWEEPS: u32 = 2;

/// Corrections by the next coarser level, at most: fewer where it is not so many times smaller, so
/// that all levels together cost little more than the finest.
const VISITS: usize = 3;

/// No scale of a lump is larger, so that no product of scales leaves the range of numbers before the
/// iteration has found its way. At the solution all scales are one, and all probabilities below it.
const MOST: f64 = 1e30;

/// A chain and the coarser ones below it.
pub(crate) struct Hierarchy {
    levels: Vec<Level>,
}

struct Level {
    chain: Generator,
    x: Vec<f64>,
    /// The lump of each state on the next level, and the place of each transition's flow there.
    /// Empty on the coarsest.
    parent: Vec<u32>,
    place: Vec<u32>,
}

/// A transition within one lump.
const INSIDE: u32 = u32::MAX;

impl Hierarchy {
    /// Lays the levels out; `parents` as from [`crate::coarsen::hierarchy`].
    pub fn new(chain: Generator, parents: Vec<Vec<u32>>) -> Hierarchy {
        let states = chain.states();
        let mut levels = vec![Level {
            x: vec![1.0 / states as f64; states],
            chain,
            parent: Vec::new(),
            place: Vec::new(),
        }];
        for parent in parents {
            let fine = levels.last_mut().expect("there is a finest");
            let (chain, place) = lumped(&fine.chain, &parent);
            (fine.parent, fine.place) = (parent, place);
            let x = vec![1.0; chain.states()];
            levels.push(Level { chain, x, parent: Vec::new(), place: Vec::new() });
        }
        Hierarchy { levels }
    }

    /// One cycle from the finest level down and back.
    pub fn cycle(&mut self) {
        descend(&mut self.levels, 1);
        let finest = &mut self.levels[0];
        let total: f64 = finest.x.iter().sum();
        // What is this rare is nowhere to be seen, and numbers too small to be normal cost time.
        finest.x.iter_mut().for_each(|p| *p = if *p < 1e-280 * total { 0.0 } else { *p / total });
    }

    /// The chain itself.
    pub fn finest(&self) -> &Generator {
        &self.levels[0].chain
    }

    /// The residual of the finest level.
    pub fn residual(&self) -> f64 {
        self.levels[0].chain.residual(&self.levels[0].x)
    }

    /// The probability of all states from `first` on.
    pub fn weight(&self, first: usize) -> f64 {
        self.levels[0].x[first..].iter().sum()
    }

    /// The probabilities.
    pub fn into_solution(mut self) -> Vec<f64> {
        std::mem::take(&mut self.levels[0].x)
    }
}

fn descend(levels: &mut [Level], visits: usize) {
    let Some((fine, coarser)) = levels.split_first_mut() else { return };
    if coarser.is_empty() {
        fine.x = gth::solve(&fine.chain);
        return;
    }
    for _ in 0..visits {
        for _ in 0..SWEEPS {
            fine.sweep(false);
        }
        fine.lump_into(&mut coarser[0].chain);
        coarser[0].x.fill(1.0);
        let shrinks = fine.x.len() / coarser[0].x.len();
        descend(coarser, shrinks.clamp(1, VISITS));
        let scales = &coarser[0].x;
        for (x, &parent) in fine.x.iter_mut().zip(&fine.parent) {
            *x *= scales[parent as usize];
        }
        for _ in 0..SWEEPS {
            fine.sweep(true);
        }
    }
}

impl Level {
    /// One Gauss-Seidel sweep.
    fn sweep(&mut self, backwards: bool) {
        let (chain, x) = (&self.chain, &mut self.x);
        let states = x.len();
        let mut visit = |state: usize| {
            let out = chain.out[state];
            if out > 0.0 {
                let inward: f64 = chain.incoming(state).map(|(source, rate)| x[source] * rate).sum();
                x[state] = (inward / out).min(MOST);
            }
        };
        if backwards { (0..states).rev().for_each(&mut visit) } else { (0..states).for_each(&mut visit) }
    }

    /// Sums this level's flows into the next level's transitions.
    fn lump_into(&self, next: &mut Generator) {
        next.rate.fill(0.0);
        next.out.fill(0.0);
        for state in 0..self.x.len() {
            for k in self.chain.start[state]..self.chain.start[state + 1] {
                if self.place[k] != INSIDE {
                    let source = self.chain.source[k] as usize;
                    let flow = self.x[source] * self.chain.rate[k];
                    next.rate[self.place[k] as usize] += flow;
                    next.out[self.parent[source] as usize] += flow;
                }
            }
        }
    }
}

/// The pattern of the lumped chain, and the place in it of each transition.
fn lumped(fine: &Generator, parent: &[u32]) -> (Generator, Vec<u32>) {
    let states = parent.iter().max().map_or(0, |&most| most as usize + 1);
    let children = grouped(parent, states);
    let mut chain = Generator { start: vec![0], out: vec![0.0; states], ..Generator::default() };
    let mut place = vec![INSIDE; fine.source.len()];
    // Where the transition from each lump stands, if it is in the list of the present one.
    let mut stands = vec![u32::MAX; states];
    for lump in 0..states {
        let begin = chain.source.len() as u32;
        for &state in &children.1[children.0[lump]..children.0[lump + 1]] {
            for k in fine.start[state as usize]..fine.start[state as usize + 1] {
                let from = parent[fine.source[k] as usize] as usize;
                if from == lump {
                    continue;
                }
                if stands[from] == u32::MAX || stands[from] < begin {
                    stands[from] = chain.source.len() as u32;
                    chain.source.push(from as u32);
                }
                place[k] = stands[from];
            }
        }
        chain.start.push(chain.source.len());
    }
    chain.rate = vec![0.0; chain.source.len()];
    (chain, place)
}

/// The states of each lump: where each begins, and all in that order.
fn grouped(parent: &[u32], lumps: usize) -> (Vec<usize>, Vec<u32>) {
    let mut start = vec![0; lumps + 1];
    parent.iter().for_each(|&p| start[p as usize + 1] += 1);
    for lump in 0..lumps {
        start[lump + 1] += start[lump];
    }
    let mut free = start.clone();
    let mut states = vec![0; parent.len()];
    for (state, &p) in parent.iter().enumerate() {
        states[free[p as usize]] = state as u32;
        free[p as usize] += 1;
    }
    (start, states)
}
