//! What a piece of code costs by itself, worked out once: its cycles without waits for memory, and where in
//! it memory is asked.

use crate::call::Way;
use crate::instruction::{Class, Instruction, Op};
use crate::program::{Code, End, Program, way_of};

use super::config::{Branches, Cause, Config, VectorConfig};
use crate::vector::decode::Unit;

/// What an event asks of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The line of this number, of code.
    Fetch(u32),
    /// The next address of the trace.
    Load,
    /// The next address of the trace.
    Store,
    /// The same, of a doubleword.
    StoreDouble,
    /// The next address and bytes of the trace, which stay there.
    VectorLoad,
    /// The same.
    VectorStore,
    /// Passes of a load or store, of the next address and bytes of the trace.
    VectorMove,
    /// Passes of so many cycles each, of the next bytes of the trace.
    VectorPass(u32),
}

/// Something that may have to wait for memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) ask: Ask,
    /// Cycles since the code began, without waits.
    pub(crate) offset: u32,
    /// Which instruction of the code.
    pub(crate) instruction: u32,
}

/// A piece of code in this configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Its steps.
    pub(crate) first: u32,
    pub(crate) steps: u32,
    /// Cycles without waits.
    pub(crate) cycles: u32,
    /// Lost behind it if its last instruction goes elsewhere, or does not.
    pub(crate) taken: u32,
    pub(crate) onwards: u32,
    /// Registers that its first instruction needs, and that its last one loads.
    pub(crate) needs: u32,
    pub(crate) loads: u32,
    /// What its end does to the stack of calls.
    pub(crate) way: Way,
}

/// Cycles of an instruction besides the first, and their cause.
pub(crate) fn further(config: &Config, program: &Program, one: Instruction) -> (u32, Cause) {
    let cause = if one.op == Op::Custom { Cause::Custom } else { Cause::MultiCycle };
    let cycles = match one.op.class() {
        Class::Multiply => config.multiply,
        Class::Divide => config.divide,
        Class::Custom => program.isa().custom.definitions()[(one.imm & 0xffff) as usize].latency,
        _ => 1,
    };
    (cycles.saturating_sub(1), cause)
}

/// Cycles of a pass of an instruction of vector cryptography.
fn pass(config: &VectorConfig, one: Instruction) -> u32 {
    match Unit::of(one.imm as u32) {
        Unit::Aes => config.aes,
        Unit::Ghash => config.ghash,
        Unit::Sha2 => config.sha2,
    }
}

/// Works a piece of code out and appends its steps.
pub(crate) fn cost(config: &Config, program: &Program, code: &Code, steps: &mut Vec<Step>) -> Cost {
    let first = steps.len();
    let (instructions, pcs) = program.instructions(code);
    let shift = config.icache.line.trailing_zeros();
    let (mut cycles, mut line, mut loaded) = (0, None, 0);
    for (at, (&one, &pc)) in instructions.iter().zip(pcs).enumerate() {
        let end = pcs.get(at + 1).copied().unwrap_or(code.next);
        let mut step = |ask, offset| steps.push(Step { ask, offset, instruction: at as u32 });
        for needed in pc >> shift..=end.wrapping_sub(1) >> shift {
            if line != Some(needed) {
                step(Ask::Fetch(needed), cycles);
                line = Some(needed);
            }
        }
        if one.needs() & loaded != 0 {
            cycles += config.load_use;
        }
        let (more, _) = further(config, program, one);
        match one.op {
            Op::Lb | Op::Lh | Op::Lw | Op::Lbu | Op::Lhu | Op::Lwu | Op::Ld => step(Ask::Load, cycles),
            Op::Sd => step(Ask::StoreDouble, cycles),
            Op::Vload | Op::Vstore => {
                step(if one.op == Op::Vload { Ask::VectorLoad } else { Ask::VectorStore }, cycles);
                step(Ask::VectorMove, cycles);
            }
            Op::Vcompute => step(Ask::VectorPass(1), cycles),
            Op::Vcrypto => step(Ask::VectorPass(pass(&config.vector, one)), cycles),
            Op::Sb | Op::Sh | Op::Sw => step(Ask::Store, cycles),
            Op::Custom => {
                let words = program.isa().custom.definitions()[(one.imm & 0xffff) as usize].words;
                // A word a cycle, as long as it runs.
                (0..words).for_each(|word| step(Ask::Load, cycles + word.min(more)));
            }
            _ => {}
        }
        cycles += 1 + more;
        loaded = one.loads_into();
    }
    let (taken, onwards) = lost(config, code, instructions);
    Cost {
        first: first as u32,
        steps: (steps.len() - first) as u32,
        cycles,
        taken,
        onwards,
        needs: instructions.first().map_or(0, |one| one.needs()),
        loads: instructions.last().map_or(0, |one| one.loads_into()),
        way: match code.end {
            End::Jump(true) => Way::Call,
            End::Indirect => instructions.last().map_or(Way::Jump, |&one| way_of(one)),
            _ => Way::Jump,
        },
    }
}

/// Cycles lost if control goes elsewhere, and if it does not.
fn lost(config: &Config, code: &Code, instructions: &[Instruction]) -> (u32, u32) {
    match code.end {
        End::Onwards => (0, 0),
        // The instructions fetched behind it may have changed, or may not be code at all.
        End::System => (0, 0),
        End::Jump(_) => (config.jump, 0),
        End::Indirect => (config.branch, 0),
        End::Branch => {
            let backward = instructions.last().is_some_and(|one| (one.imm as u32) < code.next);
            match config.branches == Branches::Backward && backward {
                true => (config.jump, config.branch),
                false => (config.branch, 0),
            }
        }
    }
}
