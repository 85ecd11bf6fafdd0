//! Runs on all cores. Configurations of which one execution is the other's are timed by one execution.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use forebay_embedded::{Done, Figures, Prepared, RunError, Setup};
use forebay_riscv::Config;

use crate::progress::{Progress, is_interrupted};

/// Clocks that read one execution's trace, at most: their caches' lines share the host's cache.
const CLOCKS_MAX: usize = 24;

/// Runs all on up to `threads` threads, whose number changes nothing but the time taken, and gives what comes to
/// `each` in the order of `setups`. Returns how many: fewer than all if the user has interrupted.
///
/// # Errors
/// The first that a run or `each` has.
pub fn run_all(
    setups: &[Setup],
    threads: usize,
    mut each: impl FnMut(usize, Figures, Done) -> miette::Result<()>,
) -> miette::Result<usize> {
    let mut prepared: Vec<(Prepared, Vec<usize>)> = Vec::new();
    for (number, setup) in setups.iter().enumerate() {
        let known = prepared.iter_mut().find(|(_, members)| {
            let first = &setups[members[0]];
            first.computes_as(setup) && first.functions == setup.functions
        });
        match known {
            Some((_, members)) => members.push(number),
            None => prepared.push((Prepared::new(setup)?, vec![number])),
        }
    }
    let clocks = setups.len().div_ceil(threads.max(1)).clamp(1, CLOCKS_MAX);
    let tasks: Vec<(&Prepared, &[usize])> = prepared
        .iter()
        .flat_map(|(one, members)| members.chunks(clocks).map(move |some| (one, some)))
        .collect();
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    let mut bar = Progress::runs("exploring");
    bar.of(setups.len() as u64);
    let mut delivered = 0;
    let result = std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, tasks.len().max(1)) {
            let (sender, next, stop, tasks) = (sender.clone(), &next, &stop, &tasks);
            scope.spawn(move || {
                let mut go_on = |_| !is_interrupted() && !stop.load(Ordering::Relaxed);
                while let Some(&(one, members)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let configs: Vec<Config> = members.iter().map(|&at| setups[at].config).collect();
                    let result = forebay_embedded::run(&one.job, &configs, &mut go_on);
                    if sender.send((one, members, result)).is_err() || is_interrupted() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early: BTreeMap<usize, (Figures, Done)> = BTreeMap::new();
        let mut finished = 0;
        let result = loop {
            match receiver.recv_timeout(Duration::from_millis(100)) {
                Ok((one, members, Ok((done, accounts)))) => {
                    for (&number, account) in members.iter().zip(&accounts) {
                        let figures = one.figures(&setups[number], &done, account);
                        early.insert(number, (figures, done.clone()));
                    }
                    finished += members.len() as u64;
                }
                Ok((_, _, Err(RunError::Cancelled))) => {}
                Ok((one, _, Err(error))) => break Err(one.report(&error)),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(()),
            }
            bar.at(finished);
            let mut failed = None;
            while let Some((figures, done)) = early.remove(&delivered) {
                if let Err(error) = each(delivered, figures, done) {
                    failed = Some(error);
                    break;
                }
                delivered += 1;
            }
            if let Some(error) = failed {
                break Err(error);
            }
        };
        stop.store(true, Ordering::Relaxed);
        result
    });
    bar.finish();
    result.map(|()| delivered)
}
