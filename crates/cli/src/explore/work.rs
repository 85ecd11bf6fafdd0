//! Runs on all cores. Configurations of which one execution is the other's are timed by one execution.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use forebay_embedded::elf::Executable;
use forebay_embedded::instructions::Instructions;
use forebay_embedded::{Done, Figures, Groups, Input, Job, RunError, Setup, image, parts};
use forebay_riscv::Config;
use miette::miette;

use super::packets;
use crate::progress::{Progress, is_interrupted};

/// Clocks that read one execution's trace, at most: their caches' lines share the host's cache.
const CLOCKS_MAX: usize = 24;

/// What a set of configurations runs.
struct Prepared {
    job: Job,
    firmware: PathBuf,
    groups: Groups,
    instructions: Instructions,
    /// Packets, and their bytes.
    size: (u64, u64),
}

fn prepare(setup: &Setup) -> miette::Result<Prepared> {
    let path = &setup.firmware;
    let file = read(path)?;
    let executable = Executable::read(&file).map_err(|error| {
        miette!(help = "give the firmware for the core, firmware/build/*.elf", "{}: {error}", path.display())
    })?;
    let groups = match &setup.functions {
        Some(path) => Groups::load(path)?,
        None => Groups::ours(),
    };
    let instructions = setup.custom()?;
    let input = match &setup.input {
        Input::Nothing => Vec::new(),
        Input::Image(path) => read(path)?,
        Input::Packets { .. } => packets::image(&setup.input)?,
    };
    let size = image::size_of_input(&input).unwrap_or((0, 0));
    let isa = setup.isa(instructions.custom.clone());
    let job = Job { executable, isa, input, limit: setup.limit };
    Ok(Prepared { job, firmware: path.clone(), groups, instructions, size })
}

fn read(path: &std::path::Path) -> miette::Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        miette!(help = "paths begin at the folder of the configuration", "{}: {error}", path.display())
    })
}

fn run_error(prepared: &Prepared, error: &RunError) -> miette::Report {
    if let RunError::Fault { printed, .. } = error {
        if !printed.is_empty() {
            eprintln!("{}", printed.trim_end());
        }
    }
    miette!(help = error.help(), "{}: {error}", prepared.firmware.display())
}

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
            None => prepared.push((prepare(setup)?, vec![number])),
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
                        let area = parts(&setups[number], &one.instructions);
                        let figures = Figures::new(&done, account, &one.groups, area, one.size);
                        early.insert(number, (figures, done.clone()));
                    }
                    finished += members.len() as u64;
                }
                Ok((_, _, Err(RunError::Cancelled))) => {}
                Ok((one, _, Err(error))) => break Err(run_error(one, &error)),
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
