//! How large buffers must be, and how much load they bear.

use std::ops::ControlFlow;

use forebay_models as models;

use crate::description::{Arrivals, Pipeline};
use crate::replicate::{interval, replicate};
use crate::solved::solve;

/// How loss is found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum By {
    /// Exactly, from the Markov chain of [`Pipeline::markov`].
    Chain(models::Options),
    /// By simulation, as described: the upper end of the 95 % confidence interval over so many runs.
    Simulation {
        /// Runs of each design; all designs have the same seeds.
        runs: usize,
        /// Threads to use.
        threads: usize,
    },
}

/// Share of the offered packets that are lost.
///
/// # Errors
/// Those of [`crate::solve`] and [`crate::simulate`].
pub fn loss(pipeline: &Pipeline, by: By) -> Result<f64, models::Error> {
    match by {
        By::Chain(options) => Ok(solve(pipeline, &options)?.loss_probability),
        By::Simulation { runs, threads } => {
            let outcomes =
                replicate(pipeline, runs, threads).map_err(|what| models::Error::Invalid(what.0))?;
            let found = interval(&outcomes, 0.95, |outcome| outcome.loss_probability);
            Ok(found.mean + found.half_width)
        }
    }
}

/// Buffers that keep loss at or below a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Sized {
    /// Packets that each stage can hold.
    pub buffers: Vec<u32>,
    /// Loss with these.
    pub loss: f64,
    /// Designs tried.
    pub tried: usize,
}

/// Small buffers that keep loss at or below `bound`; none of them more than `most`. `None` if even
/// those lose more.
///
/// Places are added one at a time where each helps most, then moved and taken away as long as that
/// helps: no single place of the answer can be dropped, and no single move makes a smaller one
/// possible. That finds the smallest sum in the cases tried all through, and is not proved to.
///
/// # Errors
/// Those of [`loss`].
pub fn smallest_buffers(
    pipeline: &Pipeline,
    bound: f64,
    most: u32,
    by: By,
) -> Result<Option<Sized>, models::Error> {
    smallest_buffers_with(pipeline, bound, most, by, &mut |_| ControlFlow::Continue(()))
}

/// [`smallest_buffers`] with progress reports: before each design it calls `watch` with the number of designs tried.
///
/// # Errors
/// Those of [`loss`], and [`models::Error::Cancelled`] if `watch` stops the search.
pub fn smallest_buffers_with(
    pipeline: &Pipeline,
    bound: f64,
    most: u32,
    by: By,
    watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Option<Sized>, models::Error> {
    let mut tried = 0;
    let mut of = |buffers: &[u32]| {
        if watch(tried).is_break() {
            return Err(models::Error::Cancelled);
        }
        tried += 1;
        let mut design = pipeline.clone();
        design.stages.iter_mut().zip(buffers).for_each(|(stage, &buffer)| stage.buffer = buffer);
        loss(&design, by)
    };
    // What no buffers keep is seen at once; a chain of the largest ones may be too large to look at.
    if matches!(by, By::Simulation { .. }) && of(&vec![most; pipeline.stages.len()])? > bound {
        return Ok(None);
    }
    let mut buffers = vec![1; pipeline.stages.len()];
    let mut best = of(&buffers)?;
    while best > bound {
        let mut better: Option<(usize, f64)> = None;
        for stage in 0..buffers.len() {
            if buffers[stage] < most {
                buffers[stage] += 1;
                let found = of(&buffers)?;
                buffers[stage] -= 1;
                if better.is_none_or(|(_, least)| found < least) {
                    better = Some((stage, found));
                }
            }
        }
        let Some((stage, found)) = better else { return Ok(None) };
        buffers[stage] += 1;
        best = found;
    }
    // One place less, and the others moved about until loss is small enough again or no move helps.
    'smaller: loop {
        for stage in 0..buffers.len() {
            let mut fewer = buffers.clone();
            if fewer[stage] == 1 {
                continue;
            }
            fewer[stage] -= 1;
            let mut least = of(&fewer)?;
            while least > bound {
                let Some((moved, found)) = best_move(&fewer, most, least, &mut of)? else { break };
                (fewer, least) = (moved, found);
            }
            if least <= bound {
                (buffers, best) = (fewer, least);
                continue 'smaller;
            }
        }
        return Ok(Some(Sized { buffers, loss: best, tried }));
    }
}

type Design = (Vec<u32>, f64);

fn best_move(
    buffers: &[u32],
    most: u32,
    mut least: f64,
    of: &mut impl FnMut(&[u32]) -> Result<f64, models::Error>,
) -> Result<Option<Design>, models::Error> {
    let mut better = None;
    for from in 0..buffers.len() {
        for to in 0..buffers.len() {
            if from == to || buffers[from] == 1 || buffers[to] == most {
                continue;
            }
            let mut moved = buffers.to_vec();
            moved[from] -= 1;
            moved[to] += 1;
            let found = of(&moved)?;
            if found < least {
                least = found;
                better = Some((moved, found));
            }
        }
    }
    Ok(better)
}

/// The most packets a second, to one part in a thousand, of which no more than `bound` are lost; no
/// more than `most` is tried. `None` if a thousandth of that loses more.
///
/// # Errors
/// Those of [`loss`], and [`models::Error::Invalid`] for arrivals from a trace.
pub fn highest_load(
    pipeline: &Pipeline,
    bound: f64,
    most: f64,
    by: By,
) -> Result<Option<f64>, models::Error> {
    highest_load_with(pipeline, bound, most, by, &mut |_| ControlFlow::Continue(()))
}

/// [`highest_load`] with progress reports: before each load it calls `watch` with the number of loads tried.
///
/// # Errors
/// Those of [`highest_load`], and [`models::Error::Cancelled`] if `watch` stops the search.
pub fn highest_load_with(
    pipeline: &Pipeline,
    bound: f64,
    most: f64,
    by: By,
    watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Option<f64>, models::Error> {
    let mut tried = 0;
    let mut of = |rate: f64| {
        if watch(tried).is_break() {
            return Err(models::Error::Cancelled);
        }
        tried += 1;
        let gap = forebay_time::Duration::from_secs(1.0 / rate);
        let arrivals = match pipeline.arrivals {
            Arrivals::Constant(_) => Arrivals::Constant(gap),
            Arrivals::Exponential(_) => Arrivals::Exponential(gap),
            Arrivals::Trace(_) => {
                return Err(models::Error::Invalid("a trace has the load that it has".into()));
            }
        };
        loss(&Pipeline { arrivals, ..pipeline.clone() }, by)
    };
    let (mut low, mut high) = (most / 1000.0, most);
    if of(high)? <= bound {
        return Ok(Some(high));
    }
    if of(low)? > bound {
        return Ok(None);
    }
    while high / low > 1.001 {
        let middle = 0.5 * (low + high);
        if of(middle)? <= bound { low = middle } else { high = middle }
    }
    Ok(Some(low))
}
