//! Many runs on all cores, their outcomes in the order in which they were asked for.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use forebay_sim::{Options, Outcome, RunError, Scenario, run};

use crate::progress::{Progress, is_interrupted};

/// A run that is wanted.
pub struct Wanted<'a> {
    /// What.
    pub scenario: &'a Scenario,
    /// With this seed.
    pub seed: u64,
}

/// Runs all on up to `threads` threads, whose number changes nothing but the time taken, and gives each
/// outcome to `each` in the order wanted. Returns how many: fewer than all if the user has interrupted, and
/// then some before the last may be missing.
///
/// # Errors
/// The first that a run or `each` has.
pub fn run_all(
    wanted: &[Wanted<'_>],
    threads: usize,
    mut each: impl FnMut(usize, Outcome) -> miette::Result<()>,
) -> miette::Result<usize> {
    let next = AtomicUsize::new(0);
    let stop = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let mut bar = Progress::runs("simulating");
    bar.of(wanted.len() as u64);
    let mut delivered = 0;
    let result = std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, wanted.len().max(1)) {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            scope.spawn(move || {
                let mut report = |_, _| match is_interrupted() || stop.load(Ordering::Relaxed) > 0 {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = wanted.get(number) else { return };
                    if is_interrupted() {
                        return;
                    }
                    let seed = Some(one.seed);
                    let options = Options { seed, progress: Some(&mut report), ..Options::default() };
                    if sender.send((number, run(one.scenario, options))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early: BTreeMap<usize, Outcome> = BTreeMap::new();
        let mut done = 0;
        let result = loop {
            match receiver.recv_timeout(Duration::from_millis(100)) {
                Ok((number, Ok(outcome))) => {
                    early.insert(number, outcome);
                    done += 1;
                }
                Ok((_, Err(RunError::Cancelled))) => {}
                Ok((_, Err(error))) => break Err(miette::miette!("{error}")),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(()),
            }
            bar.at(done);
            let mut failed = None;
            while let Some(outcome) = early.remove(&delivered) {
                if let Err(error) = each(delivered, outcome) {
                    failed = Some(error);
                    break;
                }
                delivered += 1;
            }
            if let Some(error) = failed {
                break Err(error);
            }
        };
        // What was done while a run before it was broken off.
        let result = result.and_then(|()| {
            early.into_iter().try_for_each(|(number, outcome)| {
                delivered += 1;
                each(number, outcome)
            })
        });
        stop.store(1, Ordering::Relaxed);
        result
    });
    bar.finish();
    result.map(|()| delivered)
}
