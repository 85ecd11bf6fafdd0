//! The sparse generator of a chain.

use crate::Error;
use crate::space::{Space, State};

/// Not a state that can be reached and takes time.
const NONE: u32 = u32::MAX;

/// Transition rates of a Markov chain, listed by target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generator {
    /// Where the incoming transitions of each state begin in the two lists below; one more than states.
    pub start: Vec<usize>,
    /// The states they come from.
    pub source: Vec<u32>,
    /// Their rates.
    pub rate: Vec<f64>,
    /// The total rate out of each state.
    pub out: Vec<f64>,
}

impl Generator {
    /// Number of states.
    pub fn states(&self) -> usize {
        self.out.len()
    }

    /// The incoming transitions of a state: sources and rates.
    #[inline]
    pub fn incoming(&self, state: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.start[state]..self.start[state + 1];
        self.source[range.clone()].iter().zip(&self.rate[range]).map(|(&s, &r)| (s as usize, r))
    }

    /// The net flow into each state that is left over, summed, as a share of all flow. Zero for the
    /// stationary distribution.
    pub fn residual(&self, x: &[f64]) -> f64 {
        let (mut wrong, mut all) = (0.0, 0.0);
        for (state, &out) in self.out.iter().enumerate() {
            let inward: f64 = self.incoming(state).map(|(source, rate)| x[source] * rate).sum();
            wrong += (inward - x[state] * out).abs();
            all += x[state] * out;
        }
        wrong / all
    }

    /// Whether every state leads to state `home`.
    fn returns_to(&self, home: usize) -> bool {
        let mut seen = vec![false; self.states()];
        let mut stack = vec![home];
        seen[home] = true;
        let mut count = 1;
        while let Some(state) = stack.pop() {
            for (source, _) in self.incoming(state) {
                if !seen[source] {
                    seen[source] = true;
                    count += 1;
                    stack.push(source);
                }
            }
        }
        count == self.states()
    }
}

/// Bytes that generating and solving a space needs at most.
pub(crate) fn bytes(space: &Space) -> u128 {
    // The map over the whole space; per state its number, probability, outflow, parent and list
    // head; per transition source, rate and place in the coarser matrix. Coarser levels are at
    // most a half in all where digits are halved one or more at a time.
    let transitions = 1 + space.stations.len() + space.place.iter().flatten().count();
    let fine = 4 + 8 + 8 + 4 + 8 + 16 * transitions;
    space.states() * (4 + fine as u128 * 3 / 2)
}

/// The generator over the recurrent settled states, and their numbers in the whole space, ascending.
pub(crate) fn generate(space: &Space) -> Result<(Generator, Vec<u32>), Error> {
    let home = space.home()?;
    let mut number = reach(space, &home)?;
    let mut raw = Vec::new();
    for (index, entry) in number.iter_mut().enumerate() {
        if *entry != NONE {
            *entry = raw.len() as u32;
            raw.push(index as u32);
        }
    }
    let mut generator = Generator { start: vec![0; raw.len() + 1], ..Generator::default() };
    generator.out = vec![0.0; raw.len()];
    for (from, &index) in raw.iter().enumerate() {
        let (start, out) = (&mut generator.start, &mut generator.out[from]);
        each(space, index, &number, |to, rate| {
            if to != from as u32 {
                start[to as usize + 1] += 1;
                *out += rate;
            }
        })?;
    }
    for state in 0..raw.len() {
        generator.start[state + 1] += generator.start[state];
    }
    let transitions = generator.start[raw.len()];
    generator.source = vec![0; transitions];
    generator.rate = vec![0.0; transitions];
    let mut free = generator.start.clone();
    for (from, &index) in raw.iter().enumerate() {
        each(space, index, &number, |to, rate| {
            if to != from as u32 {
                let place = &mut free[to as usize];
                generator.source[*place] = from as u32;
                generator.rate[*place] = rate;
                *place += 1;
            }
        })?;
    }
    if raw.len() > 1 && !generator.returns_to(number[space.index(&home)] as usize) {
        return Err(Error::Reducible);
    }
    Ok((generator, raw))
}

fn each(space: &Space, index: u32, number: &[u32], mut f: impl FnMut(u32, f64)) -> Result<(), Error> {
    space.transitions(&space.state(index as usize), |to, rate| f(number[space.index(&to)], rate))
}

/// Marks with 0 what can be reached from `home`, over the whole space.
fn reach(space: &Space, home: &State) -> Result<Vec<u32>, Error> {
    let mut mark = vec![NONE; space.states() as usize];
    let mut stack = vec![space.index(home) as u32];
    mark[stack[0] as usize] = 0;
    while let Some(index) = stack.pop() {
        space.transitions(&space.state(index as usize), |to, _| {
            let to = space.index(&to);
            if mark[to] == NONE {
                mark[to] = 0;
                stack.push(to as u32);
            }
        })?;
    }
    Ok(mark)
}
