//! A program as it is found while it runs: straight-line code decoded once, and the blocks that it makes up.

use std::collections::HashMap;
use std::ops::Range;

use crate::call::{Calls, Function, Node, Way};
use crate::decode::{Extension, Isa, decode};
use crate::expand::expand;
use crate::fault::{Fault, FaultKind};
use crate::instruction::{Instruction, Op};
use crate::memory::Memory;

/// Most instructions of a piece of code.
const LENGTH_MAX: usize = 64;

/// How a piece of code ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At its greatest length, or before something that stands alone.
    Onwards,
    /// With a conditional branch.
    Branch,
    /// With a jump to a known place; `true`: a call.
    Jump(bool),
    /// With a jump to a register's place: a call, or a return, or neither.
    Indirect,
    /// With an instruction that the core treats by itself, alone in its code.
    System,
}

/// Straight-line code from `pc` on: entered at its first instruction, left at its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its first address.
    pub pc: u32,
    /// The address behind it.
    pub next: u32,
    /// How it ends.
    pub end: End,
    first: u32,
    count: u32,
}

impl Code {
    /// How many instructions.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    pub(crate) fn range(&self) -> Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

/// Code within a path of calls, and what followed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) code: u32,
    pub(crate) node: u32,
    /// The block when the branch is taken, or of the last jump; with its address.
    pub(crate) taken: u32,
    pub(crate) target: u32,
    /// The block when it is not.
    pub(crate) onwards: u32,
}

/// No block yet.
pub(crate) const NONE: u32 = u32::MAX;

/// What ran: blocks in order, and in order what the time of their instructions depends on.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// A block's number, doubled; plus one if control did not go on behind it.
    pub blocks: Vec<u32>,
    /// Of a load or store its address; of a custom instruction that of each word that it loads; of a vector load or store its
    /// address and bytes, of any other vector instruction but `vset*` the bytes of its elements.
    pub addresses: Vec<u32>,
}

/// Everything known of a program's code.
#[derive(Clone, Debug)]
pub struct Program {
    isa: Isa,
    instructions: Vec<Instruction>,
    pcs: Vec<u32>,
    codes: Vec<Code>,
    /// Code by its first address, and since which `fence.i` it is known to hold.
    code_at: HashMap<u32, (u32, u32)>,
    fences: u32,
    blocks: Vec<Block>,
    block_of: HashMap<(u32, u32), u32>,
    /// Blocks found lately, by path and address.
    recent: Vec<u32>,
    calls: Calls,
    length_max: usize,
}

const RECENT: usize = 4_096;

impl Program {
    /// A program of which nothing has run; `functions` are its symbols.
    pub fn new(isa: Isa, functions: Vec<Function>) -> Program {
        Program {
            isa,
            instructions: Vec::new(),
            pcs: Vec::new(),
            codes: Vec::new(),
            code_at: HashMap::new(),
            fences: 0,
            blocks: Vec::new(),
            block_of: HashMap::new(),
            recent: vec![NONE; RECENT],
            calls: Calls::new(functions),
            length_max: LENGTH_MAX,
        }
    }

    /// Makes every instruction a block of its own, for runs in step with another core.
    pub fn in_steps(mut self) -> Program {
        self.length_max = 1;
        self
    }

    /// The instruction set.
    pub fn isa(&self) -> &Isa {
        &self.isa
    }

    /// All code found so far.
    pub fn codes(&self) -> &[Code] {
        &self.codes
    }

    /// The instructions of a piece of code, and their addresses.
    pub fn instructions(&self, code: &Code) -> (&[Instruction], &[u32]) {
        (&self.instructions[code.range()], &self.pcs[code.range()])
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// A block's code, by its number in [`Program::codes`].
    #[inline]
    pub fn code_of(&self, block: u32) -> u32 {
        self.blocks[block as usize].code
    }

    /// The path of calls that a block belongs to.
    pub fn node_of(&self, block: u32) -> u32 {
        self.blocks[block as usize].node
    }

    /// All paths of calls.
    pub fn nodes(&self) -> &[Node] {
        self.calls.nodes()
    }

    /// All functions; the first is everything that has no symbol.
    pub fn functions(&self) -> &[Function] {
        self.calls.functions()
    }

    /// The function at an address.
    pub fn function_at(&self, pc: u32) -> &Function {
        &self.calls.functions()[self.calls.function_at(pc) as usize]
    }

    #[inline]
    pub(crate) fn block(&self, block: u32) -> &Block {
        &self.blocks[block as usize]
    }

    #[inline]
    pub(crate) fn code(&self, code: u32) -> Code {
        self.codes[code as usize]
    }

    #[inline]
    pub(crate) fn slice(&self, range: Range<usize>) -> &[Instruction] {
        &self.instructions[range]
    }

    pub(crate) fn pc_of(&self, instruction: usize) -> u32 {
        self.pcs[instruction]
    }

    /// The block where a program begins, or goes on within a path of calls.
    pub(crate) fn entry(&mut self, memory: &Memory, node: u32, pc: u32) -> Result<u32, Fault> {
        let node = self.calls.step(node, Way::Jump, pc);
        self.find(memory, node, pc)
    }

    /// The block at `target` after `block`, and a note of it for the next time.
    #[cold]
    pub(crate) fn follow(
        &mut self,
        memory: &Memory,
        block: u32,
        way: Way,
        target: u32,
        taken: bool,
    ) -> Result<u32, Fault> {
        let node = self.calls.step(self.blocks[block as usize].node, way, target);
        let next = self.find(memory, node, target)?;
        let from = &mut self.blocks[block as usize];
        match taken {
            true => (from.taken, from.target) = (next, target),
            false => from.onwards = next,
        }
        Ok(next)
    }

    fn find(&mut self, memory: &Memory, node: u32, pc: u32) -> Result<u32, Fault> {
        let slot = (pc >> 1).wrapping_add(node.wrapping_mul(0x9e37_79b9) >> 16) as usize % RECENT;
        if let Some(block) = self.blocks.get(self.recent[slot] as usize)
            && block.node == node
            && self.codes[block.code as usize].pc == pc
        {
            return Ok(self.recent[slot]);
        }
        let code = self.code_from(memory, pc)?;
        let block = self.block_for(node, code);
        self.recent[slot] = block;
        Ok(block)
    }

    fn block_for(&mut self, node: u32, code: u32) -> u32 {
        *self.block_of.entry((node, code)).or_insert_with(|| {
            self.blocks.push(Block { code, node, taken: NONE, target: 0, onwards: NONE });
            self.blocks.len() as u32 - 1
        })
    }

    /// A block of the first `count` instructions of another: where a program ended within it.
    pub(crate) fn part(&mut self, block: u32, count: usize) -> u32 {
        let Block { code, node, .. } = self.blocks[block as usize];
        let whole = self.codes[code as usize];
        if count == whole.count() {
            return block;
        }
        let next = self.pcs[whole.first as usize + count];
        self.codes.push(Code { next, end: End::Onwards, count: count as u32, ..whole });
        self.block_for(node, self.codes.len() as u32 - 1)
    }

    /// What was decoded may have been overwritten (`fence.i`).
    pub(crate) fn fence(&mut self) {
        self.fences += 1;
        self.recent.fill(NONE);
        self.blocks.iter_mut().for_each(|one| (one.taken, one.onwards) = (NONE, NONE));
    }

    fn code_from(&mut self, memory: &Memory, pc: u32) -> Result<u32, Fault> {
        let known = self.code_at.get(&pc).copied();
        if let Some((code, since)) = known
            && since == self.fences
        {
            return Ok(code);
        }
        let (instructions, pcs, code) = self.decode_from(memory, pc)?;
        // After a `fence.i` most code is what it was.
        if let Some((before, _)) = known {
            let same = self.codes[before as usize];
            if self.slice(same.range()) == instructions && same.next == code.next {
                self.code_at.insert(pc, (before, self.fences));
                return Ok(before);
            }
        }
        let number = self.codes.len() as u32;
        self.codes.push(Code { first: self.instructions.len() as u32, ..code });
        self.instructions.extend(instructions);
        self.pcs.extend(pcs);
        self.code_at.insert(pc, (number, self.fences));
        Ok(number)
    }

    fn decode_from(&self, memory: &Memory, pc: u32) -> Result<(Vec<Instruction>, Vec<u32>, Code), Fault> {
        let (mut instructions, mut pcs, mut at) = (Vec::new(), Vec::new(), pc);
        let mut end = End::Onwards;
        while instructions.len() < self.length_max {
            let (instruction, length) = match self.fetch(memory, at) {
                Ok(fetched) => fetched,
                Err(fault) if instructions.is_empty() => return Err(fault),
                // It is for the block that begins there.
                Err(_) => break,
            };
            let kind = end_of(instruction);
            if kind == End::System && !instructions.is_empty() {
                break;
            }
            instructions.push(instruction);
            pcs.push(at);
            at = at.wrapping_add(length);
            if kind != End::Onwards {
                end = kind;
                break;
            }
        }
        let code = Code { pc, next: at, end, first: 0, count: instructions.len() as u32 };
        Ok((instructions, pcs, code))
    }

    /// The instruction at `pc` and its length in bytes.
    fn fetch(&self, memory: &Memory, pc: u32) -> Result<(Instruction, u32), Fault> {
        let fault = |kind| Fault { pc, kind };
        if pc & if self.isa.has(Extension::C) { 1 } else { 3 } != 0 {
            return Err(fault(FaultKind::Misaligned { address: pc.into(), size: 4 }));
        }
        let low = memory.half(pc).ok_or(fault(FaultKind::NoCode))?;
        if low & 3 != 3 {
            let full = expand(low, self.isa.xlen()).filter(|_| self.isa.has(Extension::C));
            let decoded = full.and_then(|word| decode(word, pc, &self.isa));
            return decoded.map(|one| (one, 2)).ok_or(fault(FaultKind::Illegal { word: low.into() }));
        }
        let high = memory.half(pc.wrapping_add(2)).ok_or(fault(FaultKind::NoCode))?;
        let word = u32::from(high) << 16 | u32::from(low);
        decode(word, pc, &self.isa).map(|one| (one, 4)).ok_or(fault(FaultKind::Illegal { word }))
    }
}

fn end_of(instruction: Instruction) -> End {
    match instruction.op {
        op if !op.ends_block() => End::Onwards,
        Op::Jal => End::Jump(is_link(instruction.rd)),
        Op::Jalr => End::Indirect,
        Op::Beq | Op::Bne | Op::Blt | Op::Bge | Op::Bltu | Op::Bgeu => End::Branch,
        _ => End::System,
    }
}

/// x1 and x5, which hold return addresses by the ISA's convention for return-address stacks.
fn is_link(register: u8) -> bool {
    register == 1 || register == 5
}

/// Whether an indirect jump calls, returns, or neither (RISC-V unprivileged ISA 2.5.1, table of hints).
pub(crate) fn way_of(instruction: Instruction) -> Way {
    match (is_link(instruction.rd), is_link(instruction.rs1)) {
        (true, _) => Way::Call,
        (false, true) => Way::Return,
        (false, false) => Way::Jump,
    }
}
