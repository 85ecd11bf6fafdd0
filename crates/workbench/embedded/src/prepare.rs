//! A setup with all that its files hold, ready to run.

use std::path::{Path, PathBuf};

use forebay_diagnostics::FileErrors;
use forebay_riscv::{Account, Cause, Class, Xlen};
use miette::{Report, miette};

use crate::area::{self, Clock, parts};
use crate::builtin;
use crate::elf::Executable;
use crate::energy;
use crate::figures::Figures;
use crate::groups::Groups;
use crate::image;
use crate::instructions::Instructions;
use crate::machine::{Done, Job, RunError};
use crate::packets;
use crate::setup::{Input, LongPaths, Setup};

/// What setups run that differ in nothing but what cycles depend on ([`Setup::computes_as`]).
#[derive(Clone, Debug)]
pub struct Prepared {
    /// For the machine.
    pub job: Job,
    firmware: PathBuf,
    groups: Groups,
    instructions: Instructions,
    clock: Clock,
    /// Packets, and their bytes.
    size: (u64, u64),
}

impl Prepared {
    /// Reads what a setup names.
    ///
    /// # Errors
    /// What is wrong with a file, and what to do.
    pub fn new(setup: &Setup) -> Result<Prepared, Report> {
        let path = &setup.firmware;
        let own = path.to_str().and_then(builtin::firmware);
        let file = own.map_or_else(|| read(path), |bytes| Ok(bytes.to_vec()))?;
        let executable = Executable::read(&file).map_err(|error| {
            let help = "give a firmware for the core: ipsec-plain, ipsec-custom, ipsec-zk, ipsec-reference, \
                        ipsec-reference-custom, ipsec-rv64, ipsec-rv64-zk, ipsec-rv64-vector, or your own";
            miette!(help = help, "{}: {error}", path.display())
        })?;
        let bits = [executable.xlen, setup.xlen].map(Xlen::bits);
        if bits[0] != bits[1] {
            let help = format!("set `xlen = {}` of `[core]`, or give another firmware", bits[0]);
            let path = path.display();
            return Err(miette!(
                help = help,
                "{path}: built for RV{}, and the core is RV{}",
                bits[0],
                bits[1]
            ));
        }
        let groups = match &setup.functions {
            Some(path) => Groups::load(path)?,
            None => Groups::ours(),
        };
        let instructions: Result<Instructions, FileErrors> = setup.custom();
        let mut instructions = instructions?;
        if setup.long_paths == LongPaths::Latency {
            instructions = instructions.fitted(area::cycle(setup));
        }
        let clock = area::clock(setup, &instructions)?;
        let input = match &setup.input {
            Input::Nothing => Vec::new(),
            Input::Image(path) => read(path)?,
            Input::Packets { .. } => {
                packets::image(&setup.input).map_err(|error| miette!(help = error.help.clone(), "{error}"))?
            }
        };
        let size = image::size_of_input(&input).unwrap_or((0, 0));
        let isa = setup.isa(instructions.custom.clone());
        let job = Job { executable, isa, input, limit: setup.limit };
        Ok(Prepared { job, firmware: path.clone(), groups, instructions, clock, size })
    }

    /// The figures of a run.
    pub fn figures(&self, setup: &Setup, done: &Done, account: &Account) -> Figures {
        let classes = Class::ALL.map(|class| {
            let begun = account.cells.iter().filter(|cell| cell.class == class && cell.cause == Cause::Issue);
            begun.map(|cell| cell.cycles).sum()
        });
        let seconds = account.cycles as f64 / self.clock.mhz / 1e6;
        let spent = energy::Done {
            cycles: account.cycles,
            further: energy::further(account),
            classes: &classes,
            misses: account.misses,
            seconds,
        };
        Figures::new(
            done,
            account,
            &self.groups,
            parts(setup, &self.instructions),
            self.clock.clone(),
            setup.energy.parts(&setup.config, &spent),
            self.size,
        )
    }

    /// An error of a run, for people.
    pub fn report(&self, error: &RunError) -> Report {
        let printed = match error {
            RunError::Fault { printed, .. } if !printed.is_empty() => {
                format!("; it printed: {}", printed.trim_end())
            }
            _ => String::new(),
        };
        miette!(help = error.help(), "{}: {error}{printed}", self.firmware.display())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Report> {
    std::fs::read(path).map_err(|error| {
        miette!(help = "paths begin at the folder of the configuration", "{}: {error}", path.display())
    })
}
