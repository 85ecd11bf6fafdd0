//! Where the cycles went.

use std::collections::BTreeMap;

use crate::instruction::Class;
use crate::program::Program;

use super::block::{Ask, further};
use super::config::Cause;
use super::model::Timing;
use super::windows::Windows;

/// How often memory was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// Lines of code fetched.
    pub fetch: u64,
    /// Reads of the data cache: one for each load, one for each line that a vector load lies in.
    pub loads: u64,
    /// Lines of data fetched for loads.
    pub load: u64,
    /// Writes: one for each store, one for each beat of a store that is wider than the memory interface.
    pub stores: u64,
    /// Writes whose line was not there.
    pub store: u64,
    /// Written lines that made room.
    pub written_back: u64,
}

/// Cycles, and instructions begun, of one kind in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The path of calls.
    pub node: u32,
    /// The kind of instruction that waited or worked.
    pub class: Class,
    /// What for.
    pub cause: Cause,
    /// Cycles.
    pub cycles: u64,
}

/// Cycles at one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its address.
    pub pc: u32,
    /// How often it ran.
    pub runs: u64,
    /// Cycles, of all causes.
    pub cycles: u64,
}

/// Where the cycles went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// All of them.
    pub cycles: u64,
    /// Instructions.
    pub instructions: u64,
    /// Cycles by path of calls, class and cause; their sum is [`Account::cycles`]. An instruction that begins
    /// takes one cycle of [`Cause::Issue`], so those cells count instructions as well.
    pub cells: Vec<Cell>,
    /// Cycles by instruction, in the order of addresses.
    pub events: Vec<Event>,
    /// Cache misses.
    pub misses: Misses,
    /// Register windows in files of 32 and of 64 registers, if the core had them.
    pub windows: [Windows; 2],
}

impl Account {
    pub(super) fn new(timing: &Timing, program: &Program) -> Account {
        let mut cells: BTreeMap<(u32, Class, Cause), u64> = BTreeMap::new();
        let mut events: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (number, counts) in timing.blocks.iter().enumerate().filter(|(_, counts)| counts.runs > 0) {
            let block = number as u32;
            let node = program.node_of(block);
            let code = &program.codes()[program.code_of(block) as usize];
            let cost = timing.costs[program.code_of(block) as usize];
            let (instructions, pcs) = program.instructions(code);
            let mut add = |at: usize, cause: Cause, cycles: u64| {
                if cycles > 0 {
                    *cells.entry((node, instructions[at].op.class(), cause)).or_default() += cycles;
                    events.entry(pcs[at]).or_default().1 += cycles;
                }
            };
            let mut loaded = 0;
            for (at, &one) in instructions.iter().enumerate() {
                add(at, Cause::Issue, counts.runs);
                let (more, cause) = further(&timing.config, program, one);
                add(at, cause, counts.runs * u64::from(more));
                if one.needs() & loaded != 0 {
                    add(at, Cause::LoadUse, counts.runs * u64::from(timing.config.load_use));
                }
                loaded = one.loads_into();
            }
            add(0, Cause::LoadUse, counts.load_use);
            add(instructions.len() - 1, Cause::Branch, counts.branch);
            for at in 0..cost.steps as usize {
                let step = timing.steps[cost.first as usize + at];
                let [fill, write] = timing.waits[counts.waits as usize + at];
                let cause = match step.ask {
                    Ask::Fetch(_) => Cause::Fetch,
                    Ask::Load | Ask::VectorLoad => Cause::Load,
                    Ask::Store | Ask::StoreDouble | Ask::VectorStore => Cause::Store,
                    Ask::VectorMove | Ask::VectorPass(_) => Cause::Vector,
                };
                add(step.instruction as usize, cause, fill);
                add(step.instruction as usize, Cause::WriteBuffer, write);
            }
            for &pc in pcs {
                events.entry(pc).or_default().0 += counts.runs;
            }
        }
        let cells: Vec<Cell> = cells
            .into_iter()
            .map(|((node, class, cause), cycles)| Cell { node, class, cause, cycles })
            .collect();
        let issued = cells.iter().filter(|cell| cell.cause == Cause::Issue);
        Account {
            cycles: timing.now(),
            instructions: issued.map(|cell| cell.cycles).sum(),
            events: events.into_iter().map(|(pc, (runs, cycles))| Event { pc, runs, cycles }).collect(),
            misses: timing.misses,
            windows: timing.windows,
            cells,
        }
    }
}
