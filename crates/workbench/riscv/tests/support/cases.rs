//! Instructions of RV64 with random operands, as records for `tests/data/spike/driver.S`: the same program runs them on
//! the simulated core and in Spike, the RISC-V reference simulator, whose answers `tests/data/spike` keeps.

use forebay_riscv::{Core, FaultKind, Isa, Memory, Program, Silent, Stop, decode};

pub const BASE: u32 = 0x8000_0000;
pub const CASES: u32 = BASE + 0x1_0000;
pub const POOL: u32 = BASE + 0x20_0000;
pub const SCRATCH: u32 = BASE + 0x30_0000;
pub const OUTPUT: u32 = BASE + 0x40_0000;
pub const SIZE: u32 = 32 << 20;
const POOL_SIZE: u32 = 0x1_0000;
const DRIVER: &[u8] = include_bytes!("../data/spike/driver.bin");

/// A set of cases, by the name of its file of answers.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    pub name: &'static str,
    pub vlen: u32,
    pub count: usize,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Scalar,
    Vector,
    Crypto,
}

pub const SETS: [Set; 7] = [
    Set { name: "scalar", vlen: 128, count: 9_000, kind: Kind::Scalar },
    Set { name: "vector-128", vlen: 128, count: 4_000, kind: Kind::Vector },
    Set { name: "vector-256", vlen: 256, count: 3_000, kind: Kind::Vector },
    Set { name: "vector-512", vlen: 512, count: 2_000, kind: Kind::Vector },
    Set { name: "crypto-128", vlen: 128, count: 4_000, kind: Kind::Crypto },
    Set { name: "crypto-256", vlen: 256, count: 3_000, kind: Kind::Crypto },
    Set { name: "crypto-512", vlen: 512, count: 2_000, kind: Kind::Crypto },
];

#[derive(Clone, Copy, Debug, Default)]
pub struct Case {
    pub vtype: u64,
    pub avl: u64,
    pub vstart: u64,
    pub word: u32,
    pub pool: u32,
    /// a0, a1, a2.
    pub scalars: [u64; 3],
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
pub struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: u32) -> u32 {
        (self.next() >> 32) as u32 % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    /// A quarter are extremes, or of 32 bits.
    fn operand(&mut self) -> u64 {
        let any = self.next();
        match self.below(16) {
            0 => self.of(&[0, u64::MAX, 1 << 63, i64::MAX as u64, 1, 1 << 31, 0x7fff_ffff, 0xffff_ffff]),
            1 => 1 << (any & 63),
            2 => any >> 32,
            3 => i64::from(any as i32) as u64,
            _ => any,
        }
    }
}

pub fn isa(vlen: u32) -> Isa {
    let mut isa = Isa::full64();
    isa.vlen = vlen;
    isa
}

/// The cases of a set, and the pool that their registers and memory begin with.
pub fn cases(set: &Set) -> (Vec<Case>, Vec<u8>) {
    let mut draws = Draws(u64::from(set.vlen) * 3 + set.kind as u64);
    let pool = (0..POOL_SIZE / 8).flat_map(|_| draws.next().to_le_bytes()).collect();
    let made = (0..set.count).map(|_| {
        loop {
            let case = match set.kind {
                Kind::Scalar => scalar(&mut draws),
                Kind::Vector => vector(&mut draws, set.vlen),
                Kind::Crypto => crypto(&mut draws, set.vlen),
            };
            // What the subset leaves out Spike has: there is nothing to compare. OP-VE has nothing else.
            let is_crypto = case.word & 0x7f == 0x77;
            if set.kind == Kind::Scalar || is_crypto || decode(case.word, BASE, &isa(set.vlen)).is_some() {
                break case;
            }
        }
    });
    (made.collect(), pool)
}

/// Where the driver executes the instruction of a record: before what it names at its begin.
fn slot() -> u32 {
    u32::from_le_bytes([4, 5, 6, 7].map(|at| DRIVER[at])) - 4
}

/// Registers of scalar instructions: what they read, what they write.
const SOURCES: [u32; 3] = [0, 10, 11];
const DESTINATIONS: [u32; 4] = [12, 12, 12, 0];

/// Immediate and funct3 of instructions of one source, a few of them reserved.
#[rustfmt::skip]
const UNARY: [(u32, u32); 24] = [
    (0x600, 1), (0x601, 1), (0x602, 1), (0x603, 1), (0x604, 1), (0x605, 1), (0x287, 5), (0x6b8, 5), (0x698, 5),
    (0x687, 5), (0x100, 1), (0x101, 1), (0x102, 1), (0x103, 1), (0x104, 1), (0x105, 1), (0x106, 1), (0x107, 1),
    (0x300, 1), (0x310, 1), (0x315, 1), (0x31a, 1), (0x31b, 1), (0x08f, 1),
];

fn scalar(draws: &mut Draws) -> Case {
    // Those of several instructions more often.
    const FUNCT7: [u32; 34] = [
        0, 0, 1, 1, 1, 0x20, 0x20, 0x20, 0x30, 0x30, 0, 1, 0x20, 0x30, 5, 4, 0x14, 0x34, 0x35, 8, 0x18, 0x19,
        0x1b, 0x1d, 0x1f, 0x3f, 0x28, 0x2a, 0x2e, 0x11, 0x21, 0x31, 0x09, 0x15,
    ];
    let any = draws.next() as u32;
    let opcode = draws.of(&[
        0x13, 0x1b, 0x33, 0x3b, 0x33, 0x3b, 0x13, 0x1b, 0x03, 0x23, 0x37, 0x17, 0x63, 0x63, 0x6f, 0x67,
    ]);
    let (rd, rs1, rs2) = (draws.of(&DESTINATIONS), draws.of(&SOURCES), draws.of(&SOURCES));
    let funct7 = draws.of(&FUNCT7);
    let mut scalars = [0; 3].map(|_: u64| draws.operand());
    let funct3 = any >> 12 & 7;
    // Over the next instruction, if anywhere; half of the branches compare what is alike.
    let next = u64::from(slot()) + 8;
    match opcode {
        0x63 if any & 0x80 != 0 => scalars[1] = scalars[0],
        0x67 => scalars[0] = next.wrapping_sub((any >> 20 & 0x7ff).into()),
        _ => {}
    }
    let word = match opcode {
        0x63 => rs2 << 20 | rs1 << 15,
        0x6f => 8 << 20,
        0x67 => (any >> 20 & 0x7ff) << 20 | 10 << 15,
        // Half are of one source, whose rs2 is part of the opcode.
        0x13 | 0x1b if draws.below(2) == 0 => {
            let (imm, funct3) = draws.of(&UNARY);
            let word = imm << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode;
            return Case { word, pool: pool_offset(draws), scalars, ..Case::default() };
        }
        0x13 | 0x1b if matches!(funct3, 1 | 5) => funct7 << 25 | (any >> 20 & 31) << 20 | rs1 << 15,
        0x33 | 0x3b => funct7 << 25 | rs2 << 20 | rs1 << 15,
        0x03 | 0x23 => {
            scalars[0] = u64::from(SCRATCH) + 128;
            let aligned = if draws.below(4) == 0 { 7 } else { 0 };
            let offset = (any >> 20 & 0x78 | any >> 8 & aligned).wrapping_sub(64) & 0xfff;
            match opcode {
                0x03 => offset << 20 | 10 << 15,
                _ => (offset >> 5) << 25 | rs2 << 20 | 10 << 15,
            }
        }
        _ => any & 0xfff8_0000 | rs1 << 15,
    };
    // The lower part of a store's offset: of a multiple of 8 mostly.
    let low = match opcode {
        0x23 if any >> 5 & 3 == 0 => any & 31,
        0x23 => any & 24,
        0x63 => 8,
        _ => rd,
    };
    let funct3 = match opcode {
        // Of jumps and of immediates of 20 bits these are no code.
        0x6f | 0x67 => 0,
        // AES of RV64 is of one funct3.
        0x33 if matches!(funct7, 0x19 | 0x1b | 0x1d | 0x1f | 0x3f) && any & 0x300 != 0 => 0,
        _ => funct3,
    };
    Case {
        word: word | funct3 << 12 | low << 7 | opcode,
        pool: pool_offset(draws),
        scalars,
        ..Case::default()
    }
}

fn pool_offset(draws: &mut Draws) -> u32 {
    // 4 KiB of registers at most.
    draws.below((POOL_SIZE - 4_096) / 8) * 8
}

/// A configuration: one in sixteen is of any bits.
fn configured(draws: &mut Draws, vlen: u32, sew: u32, lmul: u32) -> Case {
    let mut vtype = u64::from(draws.below(4) << 6 | sew << 3 | lmul);
    if draws.below(16) == 0 {
        vtype = draws.next() >> draws.of(&[0, 48, 55, 56, 56, 56]);
    }
    let avl = match draws.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => u64::from(vlen),
        3 | 4 => u64::from(draws.below(64)),
        _ => u64::from(4 * draws.below(16)),
    };
    let vstart = if draws.below(12) == 0 { u64::from(draws.below(24)) } else { 0 };
    let scalars = [0; 3].map(|_: u64| draws.operand());
    Case { vtype, avl, vstart, pool: pool_offset(draws), scalars, word: 0 }
}

/// A register, mostly one that begins a group.
fn group(draws: &mut Draws) -> u32 {
    let any = draws.below(32);
    any & draws.of(&[31, 30, 28, 24, 24])
}

fn vector(draws: &mut Draws, vlen: u32) -> Case {
    let (sew, lmul) = (draws.below(4), draws.of(&[0, 0, 1, 2, 3, 5, 6, 7]));
    let case = configured(draws, vlen, sew, lmul);
    let any = draws.next() as u32;
    let (vd, vs1, vs2) = (group(draws), group(draws), group(draws));
    let vm = u32::from(draws.below(3) != 0);
    match draws.below(8) {
        0 | 1 => {
            // Unit-stride loads and stores, within the scratch memory.
            let opcode = draws.of(&[0x07, 0x27]);
            let funct3 = draws.of(&[0, 5, 6, 7]);
            // 256 bytes are compared; larger groups go on behind them.
            let mut case = case;
            case.scalars[0] = u64::from(SCRATCH) + u64::from(8 * draws.below(12));
            Case { word: vm << 25 | 10 << 15 | funct3 << 12 | vd << 7 | opcode, ..case }
        }
        2 => {
            // vsetvli, vsetivli, vsetvl.
            let mut case = case;
            case.scalars[1] = draws.next() >> draws.of(&[0, 55, 56, 56, 56]);
            if draws.below(2) == 0 {
                case.scalars[0] = u64::from(draws.below(40));
            }
            let (rd, rs1) = (draws.of(&[12, 12, 0]), draws.of(&[0, 10, 10]));
            let word = match draws.below(3) {
                0 => (any & draws.of(&[0x7ff, 0xff, 0xff])) << 20 | rs1 << 15,
                1 => 3 << 30 | (any & draws.of(&[0x3ff, 0xff, 0xff])) << 20 | (any >> 10 & 31) << 15,
                _ => 0x80 << 24 | 11 << 20 | rs1 << 15,
            };
            Case { word: word | 7 << 12 | rd << 7 | 0x57, ..case }
        }
        kind => {
            let funct3 = draws.of(&[0, 3, 4]);
            let mut funct6 = draws.of(&[
                0, 1, 2, 3, 9, 10, 11, 14, 15, 14, 15, 0x14, 0x15, 0x17, 0x17, 0x18, 0x18, 0x25, 0x28, 0x29,
            ]);
            let (mut vs1, mut vs2, mut vd, mut funct3) = (vs1, vs2, vd, funct3);
            match (kind, funct3) {
                (3, _) => {
                    // Those whose vs1 or vs2 is part of the opcode.
                    funct3 = draws.of(&[2, 2, 2, 6]);
                    funct6 = draws.of(&[0x10, 0x12, 0x14]);
                    vs1 = if funct3 == 6 { 10 } else { draws.of(&[0, 8, 9, 0x11]) };
                    if funct6 == 0x14 || funct3 == 6 {
                        vs2 = 0;
                    }
                    if funct3 == 2 && funct6 == 0x10 {
                        vd = draws.of(&[12, 0]);
                    }
                }
                (_, 3) => vs1 = any & 31,
                (_, 4) => vs1 = draws.of(&SOURCES),
                _ => {}
            }
            if funct6 == 0x17 && vm == 1 {
                vs2 = 0;
            }
            let mut case = case;
            if matches!(funct6, 14 | 15) && draws.below(4) != 0 {
                case.scalars[0] = u64::from(draws.below(40));
            }
            let word = funct6 << 26 | vm << 25 | vs2 << 20 | vs1 << 15 | funct3 << 12 | vd << 7 | 0x57;
            Case { word, ..case }
        }
    }
}

fn crypto(draws: &mut Draws, vlen: u32) -> Case {
    let (sew, lmul) = (draws.of(&[2, 2, 2, 2, 2, 2, 3, 3, 3, 1]), draws.of(&[0, 0, 0, 1, 1, 2, 3, 7]));
    let case = configured(draws, vlen, sew, lmul);
    let any = draws.next() as u32;
    let (vd, vs1, vs2) = (group(draws), group(draws), group(draws));
    let funct6 = draws.of(&[0x28, 0x29, 0x28, 0x29, 0x22, 0x2a, 0x2c, 0x2d, 0x2e, 0x2f]);
    let vs1 = match funct6 {
        0x28 | 0x29 => draws.of(&[0, 1, 2, 3, 7, 0x11, 0x11, 0x07, any & 31]),
        0x22 | 0x2a => any & 31,
        _ => vs1,
    };
    let word = funct6 << 26 | 1 << 25 | vs2 << 20 | vs1 << 15 | 2 << 12 | vd << 7 | 0x77;
    // One in eight is not masked rightly, or of any bits.
    let word = match draws.below(16) {
        0 => word ^ 1 << 25,
        1 => any & !0x7f | 0x77,
        _ => word,
    };
    Case { word, ..case }
}

/// Memory with the program and its records, as it is loaded.
pub fn image(set: &Set) -> (Vec<Case>, Vec<(u32, Vec<u8>)>) {
    let (cases, pool) = cases(set);
    let mut records = vec![0; 64];
    records[..8].copy_from_slice(&(cases.len() as u64).to_le_bytes());
    for case in &cases {
        let mut record = [0; 64];
        for (at, value) in [(0, case.vtype), (8, case.avl), (16, case.vstart)] {
            record[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        record[24..28].copy_from_slice(&case.word.to_le_bytes());
        record[28..32].copy_from_slice(&case.pool.to_le_bytes());
        for (place, value) in record[32..56].chunks_exact_mut(8).zip(case.scalars) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        records.extend(record);
    }
    (cases, vec![(BASE, DRIVER.to_vec()), (CASES, records), (POOL, pool)])
}

/// Bytes that each case writes down.
pub fn answer_size(vlen: u32) -> usize {
    40 + 32 * vlen as usize / 8 + 256
}

/// What the simulated core writes down, a piece for each case.
pub fn answers(set: &Set) -> (Vec<Case>, Vec<Vec<u8>>) {
    let (cases, parts) = image(set);
    let mut memory = Memory::new(BASE, SIZE as usize);
    for (address, bytes) in parts {
        memory.slice_mut(address, bytes.len()).unwrap().copy_from_slice(&bytes);
    }
    let after = memory.word(BASE + 4).unwrap();
    let mut core = Core::rv64(Program::new(isa(set.vlen), Vec::new()), memory, BASE);
    loop {
        match core.run(&mut Silent, &mut (), 1_000_000_000) {
            Ok(Stop::Call) => break,
            Ok(stop) => panic!("{stop:?}"),
            // The privileged architecture's table of exceptions: what Spike's trap handler finds in mcause.
            Err(fault) => {
                let store = core.memory.word(fault.pc).unwrap_or(0) & 0x20 != 0;
                let cause = match fault.kind {
                    FaultKind::Illegal { .. } => 2,
                    FaultKind::Misaligned { .. } => 4 + 2 * u64::from(store),
                    FaultKind::Unmapped { store, .. } => 5 + 2 * u64::from(store),
                    other => panic!("{other:?} at {:#x}", fault.pc),
                };
                assert!(fault.pc + 4 == after, "{fault}");
                core.set_register(25, cause);
                core.set_pc(after);
            }
        }
    }
    let size = answer_size(set.vlen);
    let all = core.memory.slice(OUTPUT, size * cases.len()).unwrap();
    let pieces = all.chunks_exact(size).map(<[u8]>::to_vec).collect();
    (cases, pieces)
}

/// FNV-1a of 32 bits: what is kept of an answer.
pub fn digest(answer: &[u8]) -> u32 {
    answer.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
