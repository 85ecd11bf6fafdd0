//! Runs the checker on a model and returns its result.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use stateright::{Checker, HasDiscoveries, Model, Path};

/// The bounds of a run.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum number of computed steps, including those to known states.
    pub steps_max: usize,
    /// With one thread the counterexample is a shortest one, and the same in each run.
    pub threads: usize,
    /// Whether progress is printed on stderr.
    pub is_loud: bool,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Found {
    /// The states that were visited, each counted once.
    pub states: usize,
    /// The largest number of steps between the first state and another one.
    pub depth: usize,
    /// Whether every state within the bounds of the model was visited.
    pub is_whole: bool,
    /// The time that the run took.
    pub took: Duration,
    /// The invariant that does not hold, and the steps that lead to a state in which it does not.
    pub counterexample: Option<(&'static str, Vec<String>)>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extent = if self.is_whole { "all" } else { "not all" };
        write!(f, "{} states ({extent}), depth {}, {:.1?}", self.states, self.depth, self.took)?;
        let Some((name, steps)) = &self.counterexample else { return f.write_str(": every invariant holds") };
        write!(f, ": not \"{name}\" after {} steps", steps.len())?;
        steps.iter().enumerate().try_for_each(|(place, step)| write!(f, "\n  {:2}. {step}", place + 1))
    }
}

/// Visits the states of a model breadth first.
#[allow(clippy::disallowed_methods)] // for people: nothing depends on the time
pub fn check<M>(model: M, bounds: Bounds) -> Found
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + fmt::Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + fmt::Debug + PartialEq + Send + Sync + 'static,
{
    let began = std::time::Instant::now();
    let mut checker = model
        .checker()
        .threads(bounds.threads)
        .finish_when(HasDiscoveries::AnyFailures)
        .target_state_count(bounds.steps_max)
        .spawn_bfs();
    let handles = checker.handles();
    let mut said = began;
    while handles.iter().any(|handle| !handle.is_finished()) {
        std::thread::sleep(Duration::from_millis(20));
        if bounds.is_loud && said.elapsed() > Duration::from_secs(5) {
            said = std::time::Instant::now();
            eprintln!("  {} states, depth {}", checker.unique_state_count(), checker.max_depth());
        }
    }
    for handle in handles {
        // A panic of the model is passed on.
        if let Err(panic) = handle.join() {
            std::panic::resume_unwind(panic);
        }
    }
    let shortest =
        checker.discoveries().into_iter().min_by_key(|(_, path)| path.clone().into_actions().len());
    let steps = |path: Path<M::State, M::Action>| {
        path.into_actions().iter().map(|action| format!("{action:?}")).collect()
    };
    let counterexample = shortest.map(|(name, path)| (name, steps(path)));
    Found {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        is_whole: counterexample.is_none() && checker.state_count() < bounds.steps_max,
        took: began.elapsed(),
        counterexample,
    }
}
