//! From a network to its figures.

use std::ops::ControlFlow;

use crate::generator::{Generator, bytes, generate};
use crate::measures::{Accuracy, Method, Solution, figures};
use crate::multilevel::Hierarchy;
use crate::space::Space;
use crate::{Error, Network, coarsen, gth};

/// How exactly, how long and in how much memory a chain is solved.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Residual to come to (see [`Accuracy::residual`]).
    pub tolerance: f64,
    /// Multilevel cycles to try at most.
    pub cycles: u32,
    /// Bytes to use at most; checked before starting.
    pub memory: u64,
    /// States up to which the chain is solved directly.
    pub direct: usize,
}

impl Default for Options {
    /// A residual of 1e-15, a few roundings, in at most 500 cycles and 4 GiB, directly up to 600 states.
    fn default() -> Options {
        Options { tolerance: 1e-15, cycles: 500, memory: 4 << 30, direct: 600 }
    }
}

/// Packets into and out of all stages must agree this well, or the solution is not one: a chain
/// that mixes slowly has small residuals long before it has come to rest.
const IMBALANCE: f64 = 1e-8;

/// Loss is often a sum of rare states, which the residual says little about: it must have stopped
/// changing by more than this share of itself.
const LOSS_STEP: f64 = 1e-10;

/// A chain of up to so many states that the cycles have failed on, as they may where rates are
/// millions of times apart, is solved directly after all: in half a minute at most.
const STUBBORN: usize = 3_000;

/// The coarsest level of the multilevel method has at most this many states.
const COARSEST: usize = 200;

/// Solves the Markov chain of a network for its stationary distribution.
///
/// # Errors
/// [`Error::Invalid`] for a description that makes no sense, [`Error::TooLarge`] before starting if
/// the memory would not do, [`Error::ImmediateLoop`], [`Error::Reducible`], and
/// [`Error::NotConverged`] instead of figures that are not exact.
///
/// ```
/// use forebay_models::{Discipline, Network, Options, solve};
///
/// let core = Discipline::InterruptDriven { run_length_s: 100e-6, switch_delay_s: 0.0 };
/// let solution = solve(&Network::ixp425(10_000.0, 3, core), &Options::default())?;
/// assert_eq!(solution.states, 4 * 4u64.pow(5));
/// assert!(solution.throughput_pps < 10_000.0 && solution.accuracy.residual < 1e-12);
/// # Ok::<(), forebay_models::Error>(())
/// ```
pub fn solve(network: &Network, options: &Options) -> Result<Solution, Error> {
    solve_with(network, options, &mut |_| ControlFlow::Continue(()))
}

/// [`solve`] for those who watch: after each multilevel cycle `watch` is told the residual so far.
///
/// # Errors
/// Those of [`solve`], and [`Error::Cancelled`] if `watch` says to break off.
pub fn solve_with(
    network: &Network,
    options: &Options,
    watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<Solution, Error> {
    let space = Space::new(network)?;
    let bytes = bytes(&space);
    if bytes > options.memory.into() {
        return Err(Error::TooLarge { states: space.states(), bytes, limit: options.memory });
    }
    let (generator, raw) = generate(&space)?;
    if raw.len() <= options.direct {
        return directly(&space, &generator, &raw, options);
    }
    let parents = coarsen::hierarchy(&space.digits, &raw, COARSEST);
    let mut chain = Hierarchy::new(generator, parents);
    // The states in which the first stage is full are the last: its count is the leading digit.
    let full = raw.partition_point(|&index| space.state(index as usize)[0] < network.stages[0].buffer as u16);
    let (mut residual, mut steps, mut loss, mut cycles) = (f64::INFINITY, f64::INFINITY, 0.0, 0);
    while residual.is_nan() || residual > options.tolerance || steps > LOSS_STEP {
        if cycles == options.cycles && raw.len() <= STUBBORN {
            return directly(&space, chain.finest(), &raw, options);
        }
        if cycles == options.cycles {
            break;
        }
        chain.cycle();
        cycles += 1;
        residual = chain.residual();
        if watch(residual).is_break() {
            return Err(Error::Cancelled);
        }
        let before = std::mem::replace(&mut loss, chain.weight(full));
        steps = (loss - before).abs() / loss.max(f64::MIN_POSITIVE);
    }
    let converged = residual <= options.tolerance && steps <= LOSS_STEP;
    let accuracy = Accuracy { residual, imbalance: 0.0, converged, method: Method::Multilevel, cycles };
    checked(figures(&space, &raw, &chain.into_solution(), accuracy), options)
}

fn directly(space: &Space, chain: &Generator, raw: &[u32], options: &Options) -> Result<Solution, Error> {
    let x = gth::solve(chain);
    let residual = chain.residual(&x);
    let accuracy = Accuracy { residual, imbalance: 0.0, converged: true, method: Method::Direct, cycles: 0 };
    checked(figures(space, raw, &x, accuracy), options)
}

fn checked(mut solution: Solution, options: &Options) -> Result<Solution, Error> {
    let accuracy = &mut solution.accuracy;
    accuracy.converged &=
        accuracy.imbalance <= IMBALANCE && accuracy.residual <= options.tolerance.max(1e-12);
    if accuracy.converged {
        return Ok(solution);
    }
    let (residual, cycles) = (accuracy.residual.max(accuracy.imbalance), accuracy.cycles);
    let tolerance = options.tolerance;
    Err(Error::NotConverged { residual, tolerance, cycles, solution: Box::new(solution) })
}
