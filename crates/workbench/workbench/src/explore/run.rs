//! Many runs of embedded cores.

use std::ops::ControlFlow;

use forebay_embedded::{Done, Figures, Prepared, RunError, Setup};
use forebay_riscv::Config;

use crate::Error;
use crate::pool::{GoOn, in_order};

/// Clocks that read one execution's trace, at most: their caches' lines share the host's cache.
const CLOCKS_MAX: usize = 24;

/// Runs all on up to `threads` threads, whose number affects only the time taken, and passes the results to `each` in
/// the order of `setups`. `look` is called with the number done, and returns whether to go on. Returns how many
/// results were passed: fewer than all if the run was stopped.
///
/// # Errors
/// The first that a run or `each` has.
pub fn run_all(
    setups: &[Setup],
    threads: usize,
    look: impl FnMut(usize) -> ControlFlow<()>,
    mut each: impl FnMut(usize, Figures, Done) -> Result<(), Error>,
) -> Result<usize, Error> {
    let mut prepared: Vec<(Prepared, Vec<usize>)> = Vec::new();
    for (number, setup) in setups.iter().enumerate() {
        let known = prepared.iter_mut().find(|(_, members)| {
            let first = &setups[members[0]];
            first.computes_as(setup) && first.functions == setup.functions
        });
        match known {
            Some((_, members)) => members.push(number),
            None => prepared.push((Prepared::new(setup).map_err(Error::Firmware)?, vec![number])),
        }
    }
    let clocks = setups.len().div_ceil(threads.max(1)).clamp(1, CLOCKS_MAX);
    let tasks: Vec<(&Prepared, &[usize])> = prepared
        .iter()
        .flat_map(|(one, members)| members.chunks(clocks).map(move |some| (one, some)))
        .collect();
    let work = |&(one, members): &(&Prepared, &[usize]), go_on: GoOn<'_>| {
        let configs: Vec<Config> = members.iter().map(|&at| setups[at].config).collect();
        match forebay_embedded::run(&one.job, &configs, &mut |_| go_on().is_continue()) {
            Ok((done, accounts)) => {
                let timed = members.iter().zip(&accounts);
                let figures = |number: usize, account| one.figures(&setups[number], &done, account);
                Ok(timed.map(|(&at, account)| (at, (figures(at, account), done.clone()))).collect())
            }
            Err(RunError::Cancelled) => Ok(Vec::new()),
            Err(error) => Err(Error::Firmware(one.report(&error))),
        }
    };
    in_order(&tasks, threads, work, look, |number, (figures, done)| each(number, figures, done))
}
