//! How large buffers must be, and how much load they bear.

use std::ops::ControlFlow;

use forebay_models as models;
use forebay_random::{CONFIDENCE, Estimate};

use crate::description::{Arrivals, Pipeline, Stage};
use crate::figures::Outcome;
use crate::replicate::{Replicated, interval, replicate_with};
use crate::solved::network;

/// How loss is found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum By {
    /// Exactly, from the Markov chain of [`Pipeline::markov`].
    Chain(models::Options),
    /// By simulation, as described: what the loss is at most with 95 % confidence, see [`Loss::most`].
    Simulation {
        /// Runs of each design; all designs have the same seeds.
        runs: usize,
        /// Threads to use.
        threads: usize,
    },
}

/// Share of the offered packets that are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// What it is at most: exactly, or with 95 % confidence.
    pub most: f64,
    /// What was seen, if it is by simulation.
    pub seen: Option<Seen>,
}

/// What was seen of losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Packets offered in all runs.
    pub packets: u64,
    /// Packets lost in all runs.
    pub lost: u64,
    /// The loss ratio of the runs with its 95 % confidence interval.
    pub estimate: Estimate,
}

impl Loss {
    /// From runs. Without any loss there is no variance to make an interval of, and the loss ratio is below 3 / packets
    /// with 95 % confidence, since (1 - 3/n)^n is 0.05 (Jovanovic and Levy, "A look at the rule of three", The American
    /// Statistician 51, 1997). No smaller number is concluded from a few losses either.
    ///
    /// Buffers can hold what a pipeline cannot serve until a run ends. If the packets inside have become more in the second half
    /// of the time that counts, and not by chance, that is taken as lost. It is known only of runs with a time series of two
    /// halves.
    pub fn of(pipeline: &Pipeline, outcomes: &[Outcome]) -> Loss {
        let packets = outcomes.iter().map(|one| one.generated).sum::<u64>();
        let lost = outcomes.iter().map(|one| one.lost).sum();
        let estimate = interval(outcomes, CONFIDENCE, |outcome| outcome.loss_probability);
        let seen = estimate.mean + estimate.half_width + absorbed(pipeline, outcomes);
        let most = seen.max(3.0 / packets.max(1) as f64).min(1.0);
        Loss { most, seen: Some(Seen { packets, lost, estimate }) }
    }

    /// Whether a bound is kept as far as was seen, though there were too few packets to show it.
    fn is_unseen(&self) -> bool {
        self.seen.is_some_and(|seen| seen.lost == 0 && self.most <= 3.0 / seen.packets.max(1) as f64)
    }
}

/// The same with a time series of two halves, by which [`Loss::of`] sees whether buffers are still filling.
fn halves(pipeline: &Pipeline) -> Pipeline {
    // A trace ends: what is inside then has not come from more than can be served for ever.
    let series = match (&pipeline.arrivals, pipeline.duration) {
        (Arrivals::Trace(_), _) | (_, None) => None,
        (_, Some(duration)) => {
            let counted = duration.0.saturating_sub(pipeline.warm_up.0);
            Some(forebay_time::Duration(counted.div_ceil(2).max(1)))
        }
    };
    Pipeline { series, ..pipeline.clone() }
}

/// What buffers have taken up in the second half of runs, as a share of the packets that came in it; 0 if it may be chance.
fn absorbed(pipeline: &Pipeline, outcomes: &[Outcome]) -> f64 {
    let at_once = |stage: &Stage| f64::from(stage.units.max(1)) * f64::from(stage.batch.max(1));
    let in_service: f64 = pipeline.stages.iter().map(at_once).sum();
    let grown = |one: &Outcome| {
        let series = one.series.as_ref().filter(|series| series.generated.len() == 2)?;
        let inside =
            |half: usize| series.stages.iter().map(|stage| f64::from(stage.inside[half])).sum::<f64>();
        Some((inside(1) - inside(0), series.generated[1].max(1) as f64))
    };
    let Some(all) = outcomes.iter().map(grown).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
    else {
        return 0.0;
    };
    let share: Vec<f64> = all.iter().map(|(grown, came)| grown / came).collect();
    // Many designs and loads are looked at, so that one in forty by chance would be too many.
    let Estimate { mean, half_width, .. } = Estimate::with_confidence(&share, 0.99);
    // So many packets more or less are on their way at any instant, as when batches are waited for.
    let packets = all.iter().map(|(grown, _)| grown).sum::<f64>() / all.len() as f64;
    if mean > half_width && packets > 2.0 * in_service { mean + half_width } else { 0.0 }
}

/// Share of the offered packets that are lost.
///
/// # Errors
/// Those of [`crate::solve`] and [`crate::simulate`].
pub fn loss(pipeline: &Pipeline, by: By) -> Result<Loss, models::Error> {
    loss_with(pipeline, by, &|| ControlFlow::Continue(()))
}

/// Called now and then, by any thread that looks for a loss; says whether to go on.
type GoOn<'a> = &'a (dyn Fn() -> ControlFlow<()> + Sync);

/// [`loss`], or [`models::Error::Cancelled`].
fn loss_with(pipeline: &Pipeline, by: By, go_on: GoOn<'_>) -> Result<Loss, models::Error> {
    match by {
        By::Chain(options) => {
            let solution = models::solve_with(&network(pipeline)?, &options, &mut |_| go_on())?;
            Ok(Loss { most: solution.loss_probability, seen: None })
        }
        By::Simulation { runs, threads } => {
            let ran = replicate_with(&halves(pipeline), runs, threads, &|_| go_on());
            match ran.map_err(|what| models::Error::Invalid(what.0))? {
                Replicated { stopped: true, .. } => Err(models::Error::Cancelled),
                Replicated { outcomes, .. } => Ok(Loss::of(pipeline, &outcomes)),
            }
        }
    }
}

/// [`loss`], unless no runs of so many packets can show that `bound` is kept.
fn showable(pipeline: &Pipeline, by: By, bound: f64, go_on: GoOn<'_>) -> Result<Loss, models::Error> {
    let found = loss_with(pipeline, by, go_on)?;
    match found.seen {
        Some(Seen { packets, .. }) if found.is_unseen() && found.most > bound => {
            Err(models::Error::Unshowable { bound, packets })
        }
        _ => Ok(found),
    }
}

/// Buffers that keep loss at or below a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Sized {
    /// Packets that each stage can hold.
    pub buffers: Vec<u32>,
    /// Loss with these.
    pub loss: Loss,
    /// Designs tried.
    pub tried: usize,
    /// Whether all was tried; otherwise the search was stopped, and there may be smaller ones.
    pub complete: bool,
}

/// Told how many designs or loads were tried, several times for each and by any thread; says whether to go on.
pub type Watch<'a> = &'a (dyn Fn(usize) -> ControlFlow<()> + Sync);

/// Small buffers that keep loss at or below `bound`; none of them more than `most`. `None` if even
/// those lose more.
///
/// Places are added one at a time where each helps most, then moved and taken away as long as that
/// helps: no single place of the answer can be dropped, and no single move makes a smaller one
/// possible. That finds the smallest sum in the cases tried all through, and is not proved to.
///
/// # Errors
/// Those of [`loss`]; [`models::Error::Unshowable`] if the runs have too few packets to show that the bound is kept;
/// [`models::Error::BatchAboveBuffers`] if `most` is below the `batch_min` of a stage.
pub fn smallest_buffers(
    pipeline: &Pipeline,
    bound: f64,
    most: u32,
    by: By,
) -> Result<Option<Sized>, models::Error> {
    smallest_buffers_with(pipeline, bound, most, by, &|_| ControlFlow::Continue(()))
}

/// [`smallest_buffers`] with progress reports. A search that `watch` stops has the smallest buffers until then, which
/// [`Sized::complete`] says.
///
/// # Errors
/// Those of [`loss`], and [`models::Error::Cancelled`] if `watch` stops the search before any buffers keep the bound.
pub fn smallest_buffers_with(
    pipeline: &Pipeline,
    bound: f64,
    most: u32,
    by: By,
    watch: Watch<'_>,
) -> Result<Option<Sized>, models::Error> {
    if let Some(stage) = pipeline.stages.iter().find(|stage| stage.batch_min > most) {
        let (stage, batch_min) = (stage.name.clone(), stage.batch_min);
        return Err(models::Error::BatchAboveBuffers { stage, batch_min, most });
    }
    let mut tried = 0;
    let mut of = |buffers: &[u32]| {
        if watch(tried).is_break() {
            return Err(models::Error::Cancelled);
        }
        tried += 1;
        showable(&with(pipeline, buffers), by, bound, &|| watch(tried))
    };
    // What no buffers keep is seen at once; a chain of the largest ones may be too large to look at.
    if matches!(by, By::Simulation { .. }) && of(&vec![most; pipeline.stages.len()])?.most > bound {
        return Ok(None);
    }
    // A service that waits for several packets has room for them.
    let fewest: Vec<u32> = pipeline.stages.iter().map(|stage| stage.batch_min).collect();
    let mut buffers = fewest.clone();
    let mut loss = of(&buffers)?;
    while loss.most > bound {
        let mut better: Option<(usize, Loss)> = None;
        for stage in 0..buffers.len() {
            if buffers[stage] < most {
                buffers[stage] += 1;
                let found = of(&buffers)?;
                buffers[stage] -= 1;
                if better.is_none_or(|(_, least)| found.most < least.most) {
                    better = Some((stage, found));
                }
            }
        }
        let Some((stage, found)) = better else { return Ok(None) };
        buffers[stage] += 1;
        loss = found;
    }
    let complete = match shrink(&mut buffers, &mut loss, &fewest, most, bound, &mut of) {
        Ok(()) => true,
        Err(models::Error::Cancelled) => false,
        Err(error) => return Err(error),
    };
    Ok(Some(Sized { buffers, loss, tried, complete }))
}

/// Takes one place away and moves the others about until loss is small enough again or no move helps, as long as that
/// makes smaller buffers.
fn shrink(
    buffers: &mut Vec<u32>,
    loss: &mut Loss,
    fewest: &[u32],
    most: u32,
    bound: f64,
    of: &mut impl FnMut(&[u32]) -> Result<Loss, models::Error>,
) -> Result<(), models::Error> {
    'smaller: loop {
        for stage in 0..buffers.len() {
            let mut fewer = buffers.clone();
            if fewer[stage] == fewest[stage] {
                continue;
            }
            fewer[stage] -= 1;
            let mut least = of(&fewer)?;
            while least.most > bound {
                let Some((moved, found)) = best_move(&fewer, fewest, most, least, of)? else { break };
                (fewer, least) = (moved, found);
            }
            if least.most <= bound {
                (*buffers, *loss) = (fewer, least);
                continue 'smaller;
            }
        }
        return Ok(());
    }
}

/// The same with other buffers.
fn with(pipeline: &Pipeline, buffers: &[u32]) -> Pipeline {
    let mut design = pipeline.clone();
    design.stages.iter_mut().zip(buffers).for_each(|(stage, &buffer)| stage.buffer = buffer);
    design
}

type Design = (Vec<u32>, Loss);

fn best_move(
    buffers: &[u32],
    fewest: &[u32],
    most: u32,
    mut least: Loss,
    of: &mut impl FnMut(&[u32]) -> Result<Loss, models::Error>,
) -> Result<Option<Design>, models::Error> {
    let mut better = None;
    for from in 0..buffers.len() {
        for to in 0..buffers.len() {
            if from == to || buffers[from] == fewest[from] || buffers[to] == most {
                continue;
            }
            let mut moved = buffers.to_vec();
            moved[from] -= 1;
            moved[to] += 1;
            let found = of(&moved)?;
            if found.most < least.most {
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
/// Those of [`loss`], [`models::Error::Invalid`] for arrivals from a trace, and [`models::Error::Unshowable`] if runs at
/// the highest load have too few packets to show that the bound is kept.
pub fn highest_load(
    pipeline: &Pipeline,
    bound: f64,
    most: f64,
    by: By,
) -> Result<Option<f64>, models::Error> {
    highest_load_with(pipeline, bound, most, by, &|_| ControlFlow::Continue(()))
}

/// [`highest_load`] with progress reports.
///
/// # Errors
/// Those of [`highest_load`], and [`models::Error::Cancelled`] if `watch` stops the search.
pub fn highest_load_with(
    pipeline: &Pipeline,
    bound: f64,
    most: f64,
    by: By,
    watch: Watch<'_>,
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
        loss_with(&Pipeline { arrivals, ..pipeline.clone() }, by, &|| watch(tried))
    };
    let (mut low, mut high) = (most / 1000.0, most);
    let mut shown = None;
    let at_most = of(high)?;
    if at_most.most <= bound {
        return Ok(Some(high));
    }
    // The fewer packets a load brings, the less it shows: without a loss it is a load to go up from, no answer.
    let mut keeps = |rate: f64, found: Loss| {
        if found.most <= bound {
            shown = Some(rate);
        }
        found.most <= bound || found.is_unseen()
    };
    if !keeps(low, of(low)?) {
        return Ok(None);
    }
    while high / low > 1.001 {
        let middle = 0.5 * (low + high);
        if keeps(middle, of(middle)?) { low = middle } else { high = middle }
    }
    match (shown, at_most.seen) {
        (None, Some(Seen { packets, .. })) if 3.0 / packets.max(1) as f64 > bound => {
            Err(models::Error::Unshowable { bound, packets })
        }
        _ => Ok(shown),
    }
}
