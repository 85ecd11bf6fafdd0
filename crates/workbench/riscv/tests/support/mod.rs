//! An assembler of a few lines, and runs of what it makes.
#![allow(dead_code, reason = "each test takes what it needs")]

use forebay_riscv::{
    Account, Config, Core, Instruction, Isa, Memory, Op, PortAnswer, Ports, Program, Sink, Stop, Timing,
    Trace, Width,
};

pub const BASE: u32 = 0x8000_0000;
pub const SIZE: u32 = 1 << 20;
/// A store here ends a program.
pub const EXIT: u32 = 0x1000_0000;

pub fn r(funct7: u32, funct3: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33
}

pub fn i(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    (imm as u32) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

pub fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x13, 0, rd, rs1, imm)
}

pub fn add(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(0, 0, rd, rs1, rs2)
}

pub fn mul(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(1, 0, rd, rs1, rs2)
}

pub fn divu(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(1, 5, rd, rs1, rs2)
}

pub fn lw(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x03, 2, rd, rs1, imm)
}

pub fn sw(rs2: u32, rs1: u32, imm: i32) -> u32 {
    let imm = imm as u32;
    (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | 2 << 12 | (imm & 31) << 7 | 0x23
}

pub fn lui(rd: u32, upper: u32) -> u32 {
    (upper & 0xffff_f000) | rd << 7 | 0x37
}

pub fn branch(funct3: u32, rs1: u32, rs2: u32, offset: i32) -> u32 {
    let imm = offset as u32;
    (imm >> 12 & 1) << 31
        | (imm >> 5 & 63) << 25
        | rs2 << 20
        | rs1 << 15
        | funct3 << 12
        | (imm >> 1 & 15) << 8
        | (imm >> 11 & 1) << 7
        | 0x63
}

pub fn jal(rd: u32, offset: i32) -> u32 {
    let imm = offset as u32;
    (imm >> 20 & 1) << 31
        | (imm >> 1 & 0x3ff) << 21
        | (imm >> 11 & 1) << 20
        | (imm >> 12 & 0xff) << 12
        | rd << 7
        | 0x6f
}

pub fn jalr(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x67, 0, rd, rs1, imm)
}

pub struct Exit;

impl Ports for Exit {
    fn store(&mut self, address: u32, value: u32, _: Width) -> PortAnswer {
        if address == EXIT { PortAnswer::Exit(value) } else { PortAnswer::Nothing }
    }
}

pub fn memory(words: &[u32]) -> Memory {
    let mut memory = Memory::new(BASE, SIZE as usize);
    let code = memory.slice_mut(BASE, 4 * words.len()).unwrap();
    for (place, word) in code.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    memory
}

/// Runs words to the store that ends them (x31 has its address) and accounts for the cycles.
pub fn timed(words: &[u32], config: Config) -> (Core, Account) {
    let mut core = Core::new(Program::new(Isa::full(), Vec::new()), memory(words), BASE);
    core.set_register(31, EXIT);
    core.set_register(30, BASE + SIZE / 2);
    let mut clock = Timing::new(config, BASE..BASE + SIZE);
    let stop = core.run(&mut Exit, &mut clock, 1_000_000).unwrap();
    assert!(matches!(stop, Stop::Exit(_)), "{stop:?}");
    let account = clock.account(core.program());
    assert_eq!(account.cells.iter().map(|cell| cell.cycles).sum::<u64>(), account.cycles);
    assert_eq!(account.events.iter().map(|event| event.cycles).sum::<u64>(), account.cycles);
    assert_eq!(account.instructions, core.instructions());
    (core, account)
}

/// The same on RV64.
pub fn timed64(words: &[u32], config: Config) -> Account {
    let mut core = Core::rv64(Program::new(Isa::full64(), Vec::new()), memory(words), BASE);
    core.set_register(31, EXIT.into());
    core.set_register(30, (BASE + SIZE / 2).into());
    let mut clock = Timing::new(config, BASE..BASE + SIZE);
    let stop = core.run(&mut Exit, &mut clock, 1_000_000).unwrap();
    assert!(matches!(stop, Stop::Exit(_)), "{stop:?}");
    let account = clock.account(core.program());
    assert_eq!(account.cells.iter().map(|cell| cell.cycles).sum::<u64>(), account.cycles);
    account
}

/// An instruction that ran.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    pub pc: u32,
    pub length: u32,
    pub one: Instruction,
    pub taken: bool,
    pub address: u32,
}

/// Writes down every instruction of a program that runs in steps.
#[derive(Default)]
pub struct Record(pub Vec<Ran>);

impl Sink for Record {
    fn consume(&mut self, program: &Program, trace: &Trace) {
        let mut addresses = trace.addresses.iter();
        for &entry in &trace.blocks {
            let code = program.codes()[program.code_of(entry >> 1) as usize];
            let (instructions, pcs) = program.instructions(&code);
            let ([one], [pc]) = (instructions, pcs) else { panic!("in steps") };
            let asks =
                matches!(one.op, Op::Lb | Op::Lh | Op::Lw | Op::Lbu | Op::Lhu | Op::Sb | Op::Sh | Op::Sw);
            let address = if asks { *addresses.next().unwrap() } else { 0 };
            self.0.push(Ran { pc: *pc, length: code.next - pc, one: *one, taken: entry & 1 != 0, address });
        }
    }

    fn cycles(&self, instructions: u64) -> Option<u64> {
        Some(instructions)
    }
}

/// The instructions of a program, one by one.
pub fn recorded(words: &[u32]) -> Vec<Ran> {
    let mut core = Core::new(Program::new(Isa::full(), Vec::new()).in_steps(), memory(words), BASE);
    core.set_register(31, EXIT);
    core.set_register(30, BASE + SIZE / 2);
    let mut record = Record::default();
    let stop = core.run(&mut Exit, &mut record, 1_000_000).unwrap();
    assert!(matches!(stop, Stop::Exit(_)), "{stop:?}");
    record.0
}
