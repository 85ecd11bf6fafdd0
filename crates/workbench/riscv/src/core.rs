//! The core: registers, memory, and the loop that goes from block to block.

use crate::call::{ROOT, Way};
use crate::csr::{self, Counter, Csr};
use crate::execute::{Halt, Registers, execute};
use crate::fault::{Fault, FaultKind};
use crate::instruction::{Instruction, Op};
use crate::memory::{Memory, Ports};
use crate::program::{End, NONE, Program, Trace, way_of};
use crate::vector::Vector;
use crate::word::{Word, Xlen};

/// Blocks of a trace before it is given away: it stays in the host's cache.
const TRACE_BLOCKS: usize = 8_192;
/// Room for addresses; a block has 64 instructions of up to 16 words at most, hardly ever.
const TRACE_ADDRESSES: usize = 8 * TRACE_BLOCKS;

/// A reader of the trace.
pub trait Sink {
    /// Reads the next piece of a trace.
    fn consume(&mut self, program: &Program, trace: &Trace);

    /// Cycles up to the end of all that was consumed, which is `instructions` long; `None` if there is no
    /// one answer, because several configurations read the same trace.
    fn cycles(&self, instructions: u64) -> Option<u64>;
}

/// No reader: each instruction counts as one cycle.
impl Sink for () {
    fn consume(&mut self, _: &Program, _: &Trace) {}

    fn cycles(&self, instructions: u64) -> Option<u64> {
        Some(instructions)
    }
}

/// Why a run ended without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A device ended the program, with this code.
    Exit(u32),
    /// `ecall`; the next run goes on behind it.
    Call,
    /// As many instructions as were allowed have run, or a few more: a block is not cut.
    Limit,
    /// The program reads `cycle`, and its reader counts for several configurations at once.
    NeedsClock,
}

/// A core with its memory and its program: of RV32 with registers of `u32`, of RV64 with `u64`.
#[derive(Clone, Debug)]
pub struct Core<W = u32> {
    /// Memory.
    pub memory: Memory,
    program: Program,
    registers: Registers<W>,
    custom_registers: Vec<u64>,
    vector: Vector,
    csr: Csr,
    pc: u32,
    /// The path of calls that a run was left in.
    node: u32,
    instructions: u64,
    trace: Trace,
}

impl Core<u32> {
    /// A core of RV32 at its reset: registers zero, about to execute at `pc`.
    ///
    /// # Panics
    /// If the program's instruction set is of RV64.
    pub fn new(program: Program, memory: Memory, pc: u32) -> Core<u32> {
        Core::reset(program, memory, pc)
    }
}

impl Core<u64> {
    /// A core of RV64 at its reset: registers zero, about to execute at `pc`.
    ///
    /// # Panics
    /// If the program's instruction set is of RV32.
    pub fn rv64(program: Program, memory: Memory, pc: u32) -> Core<u64> {
        Core::reset(program, memory, pc)
    }
}

impl<W: Word> Core<W> {
    /// A core at its reset: registers zero, about to execute at `pc`.
    ///
    /// # Panics
    /// If the program's instruction set is of another width than `W`, or its `vlen` is none of [`VLEN`](crate::VLEN).
    pub fn reset(program: Program, memory: Memory, pc: u32) -> Core<W> {
        assert_eq!(program.isa().xlen(), W::XLEN, "registers are as wide as the instruction set says");
        let custom_registers = vec![0; program.isa().custom.registers()];
        let trace = Trace {
            blocks: Vec::with_capacity(TRACE_BLOCKS + 1),
            addresses: Vec::with_capacity(TRACE_ADDRESSES + 1_024),
        };
        let csr = Csr::default();
        let vector = Vector::new(program.isa());
        Core {
            memory,
            program,
            registers: [W::default(); 64],
            custom_registers,
            vector,
            csr,
            pc,
            node: ROOT,
            instructions: 0,
            trace,
        }
    }

    /// The program as far as it is known.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Where it is.
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Goes on elsewhere at the next run, as a trap handler outside of the core would have it.
    pub fn set_pc(&mut self, pc: u32) {
        self.pc = pc;
    }

    /// x0 to x31.
    pub fn registers(&self) -> &[W] {
        &self.registers[..32]
    }

    /// Sets a register other than x0.
    pub fn set_register(&mut self, register: usize, value: W) {
        if (1..32).contains(&register) {
            self.registers[register] = value;
        }
    }

    /// The custom registers.
    pub fn custom_registers(&self) -> &[u64] {
        &self.custom_registers
    }

    /// Instructions executed.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Runs up to `limit` more instructions.
    ///
    /// # Errors
    /// What is wrong with the program, and where.
    pub fn run(&mut self, ports: &mut impl Ports, sink: &mut impl Sink, limit: u64) -> Result<Stop, Fault> {
        let end = self.instructions.saturating_add(limit);
        let result = self.go(ports, sink, end);
        self.flush(sink);
        result
    }

    fn go(&mut self, ports: &mut impl Ports, sink: &mut impl Sink, end: u64) -> Result<Stop, Fault> {
        let mut block = self.program.entry(&self.memory, self.node, self.pc)?;
        loop {
            if self.instructions >= end {
                self.node = self.program.node_of(block);
                return Ok(Stop::Limit);
            }
            if self.trace.blocks.len() >= TRACE_BLOCKS || self.trace.addresses.len() >= TRACE_ADDRESSES {
                self.flush(sink);
            }
            let code = self.program.code(self.program.block(block).code);
            if code.end == End::System {
                let stop = self.system(block, sink)?;
                if let Some(stop) = stop {
                    self.node = self.program.node_of(block);
                    return Ok(stop);
                }
                self.pc = code.next;
                let known = self.program.block(block).onwards;
                block = match known {
                    NONE => self.program.follow(&self.memory, block, Way::Jump, code.next, false)?,
                    known => known,
                };
                continue;
            }
            let jumps = code.end != End::Onwards;
            let mut range = code.range();
            let last = range.end - 1;
            if jumps {
                range.end -= 1;
            }
            let first = range.start;
            // The program is only read while a block runs.
            for (at, &one) in self.program.slice(range).iter().enumerate() {
                let custom = (&self.program.isa().custom, &mut self.custom_registers[..]);
                let x = &mut self.registers;
                let (memory, vector) = (&mut self.memory, &mut self.vector);
                let done = execute(one, x, memory, ports, &mut self.trace.addresses, custom, vector);
                if let Err(halt) = done {
                    return self.halted(halt, block, first, at);
                }
            }
            let mut taken = false;
            let mut target = code.next;
            let mut way = Way::Jump;
            if jumps {
                let one = self.program.slice(last..last + 1)[0];
                let Some(found) = self.jump(one, code.end, code.next) else {
                    return self.halted(self.lost(one), block, first, last - first);
                };
                (taken, target, way) = found;
            }
            self.instructions += code.count() as u64;
            self.trace.blocks.push(block << 1 | u32::from(taken));
            self.pc = target;
            let from = self.program.block(block);
            let known = match taken {
                true if from.target == target => from.taken,
                true => NONE,
                false => from.onwards,
            };
            block = match known {
                NONE => self.program.follow(&self.memory, block, way, target, taken)?,
                known => known,
            };
        }
    }

    /// Whether the last instruction of a block goes elsewhere, where to, and how; `None` if that is no address.
    #[inline(always)]
    fn jump(&mut self, one: Instruction, end: End, next: u32) -> Option<(bool, u32, Way)> {
        let a = self.registers[usize::from(one.rs1 & 63)];
        let b = self.registers[usize::from(one.rs2 & 63)];
        let Some(taken) = W::branches(one.op, a, b) else {
            let to = match end {
                End::Indirect => (true, a.offset(one.imm).address()? & !1, way_of(one)),
                End::Jump(true) => (true, one.imm as u32, Way::Call),
                _ => (true, one.imm as u32, Way::Jump),
            };
            self.registers[usize::from(one.rd & 63)] = W::truncated(next.into());
            return Some(to);
        };
        Some((taken, if taken { one.imm as u32 } else { next }, Way::Jump))
    }

    /// Why an indirect jump goes nowhere.
    #[cold]
    fn lost(&self, one: Instruction) -> Halt {
        let address = self.registers[usize::from(one.rs1 & 63)].offset(one.imm).wide() & !1;
        Halt::Fault(FaultKind::Target { address })
    }

    /// A block was left at its `at`-th instruction: what ran of it goes into the trace.
    #[cold]
    fn halted(&mut self, halt: Halt, block: u32, first: usize, at: usize) -> Result<Stop, Fault> {
        self.pc = self.program.pc_of(first + at);
        match halt {
            // Addresses of an instruction that was not finished stay behind at the trace's end, unread.
            Halt::Fault(kind) => {
                self.ran(block, at);
                Err(Fault { pc: self.pc, kind })
            }
            Halt::Exit(code) => {
                self.ran(block, at + 1);
                Ok(Stop::Exit(code))
            }
        }
    }

    /// Only the first `count` instructions of a block have run.
    fn ran(&mut self, block: u32, count: usize) {
        if count > 0 {
            let part = self.program.part(block, count);
            self.trace.blocks.push(part << 1);
            self.instructions += count as u64;
        }
    }

    /// Executes what stands alone in its block; says if the run ends.
    fn system(&mut self, block: u32, sink: &mut impl Sink) -> Result<Option<Stop>, Fault> {
        let code = self.program.code(self.program.block(block).code);
        let one = self.program.slice(code.range())[0];
        let fault = |kind| Fault { pc: code.pc, kind };
        match one.op {
            Op::Ebreak => return Err(fault(FaultKind::Breakpoint)),
            Op::Fencei => self.program.fence(),
            // There are no interrupts to wait for.
            Op::Wfi | Op::Ecall => {}
            _ => {
                if let Some(stop) = self.csr(one, code.pc, sink)? {
                    return Ok(Some(stop));
                }
            }
        }
        self.instructions += 1;
        self.trace.blocks.push(block << 1);
        if one.op == Op::Ecall {
            self.pc = code.next;
            return Ok(Some(Stop::Call));
        }
        Ok(None)
    }

    fn csr(&mut self, one: Instruction, pc: u32, sink: &mut impl Sink) -> Result<Option<Stop>, Fault> {
        let number = one.imm as u16;
        let fault = || Fault { pc, kind: FaultKind::Csr { number } };
        let half = |value: u64, upper: bool| match (W::XLEN, upper) {
            (Xlen::Rv64, _) => value,
            (_, true) => value >> 32,
            (_, false) => value & 0xffff_ffff,
        };
        let old = match csr::counter(number, W::XLEN) {
            Some(Counter::Retired(upper)) => half(self.instructions, upper),
            Some(Counter::Cycle(upper)) => {
                self.flush(sink);
                match sink.cycles(self.instructions) {
                    Some(cycles) => half(cycles, upper),
                    None => return Ok(Some(Stop::NeedsClock)),
                }
            }
            None => {
                let known = self.csr.read(number, W::XLEN).or_else(|| self.vector.csr(number));
                known.ok_or_else(fault)?
            }
        };
        let source = match one.op {
            Op::Csrrwi | Op::Csrrsi | Op::Csrrci => u64::from(one.rs1),
            _ => self.registers[usize::from(one.rs1 & 63)].wide(),
        };
        let (new, writes) = match one.op {
            Op::Csrrw | Op::Csrrwi => (source, true),
            Op::Csrrs | Op::Csrrsi => (old | source, one.rs1 != 0),
            _ => (old & !source, one.rs1 != 0),
        };
        if writes && !self.csr.write(number, new, W::XLEN) && !self.vector.set_csr(number, new) {
            return Err(fault());
        }
        self.registers[usize::from(one.rd & 63)] = W::truncated(old);
        Ok(None)
    }

    fn flush(&mut self, sink: &mut impl Sink) {
        if !self.trace.blocks.is_empty() {
            sink.consume(&self.program, &self.trace);
        }
        self.trace.blocks.clear();
        self.trace.addresses.clear();
    }
}
