//! From a network to its figures.

use std::ops::ControlFlow;

use crate::band::Band;
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
    /// Multiplications up to which it is solved directly within a band, without trying to iterate.
    pub band: u64,
}

impl Default for Options {
    /// A residual of 1e-15, a few roundings, in at most 500 cycles and 4 GiB; directly up to 600 states
    /// or some hundredths of a second.
    fn default() -> Options {
        Options { tolerance: 1e-15, cycles: 500, memory: 4 << 30, direct: 600, band: 100_000_000 }
    }
}

/// Packets into and out of all stages must agree this well, or the solution is not one: a chain
/// that mixes slowly has small residuals long before it has come to rest.
const IMBALANCE: f64 = 1e-8;

/// Loss is often a sum of rare states, which the residual says little about: it must have stopped
/// changing by more than this share of itself.
const LOSS_STEP: f64 = 1e-10;

/// Where the iteration came to a stand, residuals and steps of the loss up to these are good figures all
/// the same: what is left are roundings.
const ROUNDED: f64 = 1e-12;
const ROUNDED_LOSS: f64 = 1e-8;

/// A residual that has not halved in so many cycles will not.
const STUCK: u32 = 60;

/// Multiplications that are spent on a chain which the cycles have failed on, as they may where rates
/// are thousands of times apart or all the weight is in a corner: a minute or so.
const STUBBORN: u128 = 100_000_000_000;

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

/// [`solve`] with progress reports: after each multilevel cycle it calls `watch` with the residual so far.
///
/// # Errors
/// Those of [`solve`], and [`Error::Cancelled`] if `watch` stops the computation.
pub fn solve_with(
    network: &Network,
    options: &Options,
    watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<Solution, Error> {
    if let Some(stage) = network.stages.iter().find(|stage| stage.next.is_some()) {
        return Err(Error::Invalid(format!("stage {}: no chain is known of branches", stage.name)));
    }
    if let Some(stage) = network.stages.iter().find(|stage| stage.breakdowns.is_some()) {
        return Err(Error::Invalid(format!("stage {}: no chain is known of breakdowns", stage.name)));
    }
    if let Some(stage) = network.stages.iter().find(|stage| stage.buffer > u16::MAX.into()) {
        let crate::Stage { name, buffer, .. } = stage;
        return Err(Error::Invalid(format!("stage {name}: buffer {buffer} is not in 1..=65535")));
    }
    let space = Space::new(network)?;
    let bytes = bytes(&space);
    if bytes > options.memory.into() {
        return Err(Error::TooLarge { states: space.states(), bytes, limit: options.memory });
    }
    let (generator, raw) = generate(&space)?;
    let room = u128::from(options.memory);
    if raw.len() <= options.direct {
        return checked(&space, &generator, &raw, gth::solve(&generator), Method::Direct, 0);
    }
    let narrow = |chain: &Generator, work: u128, room: u128| {
        // Looking for a band takes time, too.
        let may = at_least(&space, raw.len()) <= work;
        may.then(|| Band::new(chain)).filter(|band| band.work() <= work && band.bytes() <= room)
    };
    if let Some(band) = narrow(&generator, options.band.into(), room) {
        return checked(&space, &generator, &raw, band.solve(&generator), Method::Band, 0);
    }
    let parents = coarsen::hierarchy(&space.digits, &raw, COARSEST);
    let mut chain = Hierarchy::new(generator, parents);
    // The states in which the first stage is full are the last: its count is the leading digit.
    let full = raw.partition_point(|&index| space.state(index as usize)[0] < network.stages[0].buffer as u16);
    let (mut steps, mut loss, mut cycles) = (f64::INFINITY, 0.0, 0);
    let (mut residual, mut best, mut since) = (f64::INFINITY, f64::INFINITY, 0);
    while !(residual <= options.tolerance && steps <= LOSS_STEP) {
        if cycles == options.cycles || since == STUCK {
            let wrong = options.band > 0 && (residual > ROUNDED || residual.is_nan());
            let left = room.saturating_sub(bytes);
            if let Some(band) = wrong.then(|| narrow(chain.finest(), STUBBORN, left)).flatten() {
                let x = band.solve(chain.finest());
                return checked(&space, chain.finest(), &raw, x, Method::Band, cycles);
            }
            break;
        }
        chain.cycle();
        cycles += 1;
        residual = chain.residual();
        since = if residual < 0.5 * best { 0 } else { since + 1 };
        best = best.min(if since == 0 { residual } else { best });
        if watch(residual).is_break() {
            return Err(Error::Cancelled);
        }
        let before = std::mem::replace(&mut loss, chain.weight(full));
        steps = (loss - before).abs() / loss.max(f64::MIN_POSITIVE);
    }
    let tolerance = options.tolerance.max(ROUNDED);
    let converged = residual <= tolerance && steps <= ROUNDED_LOSS;
    let accuracy = Accuracy { residual, imbalance: 0.0, converged, method: Method::Multilevel, cycles };
    verdict(figures(&space, &raw, &chain.into_solution(), accuracy), tolerance)
}

/// Less work than this takes no band: by way of the empty state there are so few transitions from any
/// state to any other that one of the distances has many states.
fn at_least(space: &Space, states: usize) -> u128 {
    let sizes: u128 = space.digits.iter().map(|digit| u128::from(digit.size)).sum();
    let distances = 2 * sizes * space.digits.len() as u128;
    let width = states as u128 / distances;
    states as u128 * width * width
}

/// The figures of a direct solution, if it is one.
fn checked(
    space: &Space,
    chain: &Generator,
    raw: &[u32],
    x: Vec<f64>,
    method: Method,
    cycles: u32,
) -> Result<Solution, Error> {
    let residual = chain.residual(&x);
    let accuracy = Accuracy { residual, imbalance: 0.0, converged: residual <= ROUNDED, method, cycles };
    verdict(figures(space, raw, &x, accuracy), ROUNDED)
}

fn verdict(mut solution: Solution, tolerance: f64) -> Result<Solution, Error> {
    let accuracy = &mut solution.accuracy;
    accuracy.converged &= accuracy.imbalance <= IMBALANCE;
    if accuracy.converged {
        return Ok(solution);
    }
    let (residual, cycles) = (accuracy.residual.max(accuracy.imbalance), accuracy.cycles);
    Err(Error::NotConverged { residual, tolerance, cycles, solution: Box::new(solution) })
}
