//! From bits to [`Instruction`]s.

use crate::custom::Custom;
use crate::instruction::{Instruction, Op};
use crate::vector::decode as vector;
use crate::word::Xlen;

/// A part of the instruction set that a core may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// Compressed instructions.
    C,
    /// Multiplication and division.
    M,
    /// Bit manipulation.
    Zbb,
    /// Bit manipulation for cryptography.
    Zbkb,
    /// Carry-less multiplication.
    Zbkc,
    /// Crossbar permutations.
    Zbkx,
    /// AES encryption.
    Zkne,
    /// AES decryption.
    Zknd,
    /// SHA-2.
    Zknh,
    /// Integer vectors of elements of up to 64 bits: the part of Zve64x that docs/explore.md lists.
    Zve64x,
    /// Bit manipulation of vectors for cryptography.
    Zvkb,
    /// AES in vectors.
    Zvkned,
    /// GHASH in vectors.
    Zvkg,
    /// SHA-256 in vectors.
    Zvknha,
    /// SHA-256 and SHA-512 in vectors.
    Zvknhb,
}

impl Extension {
    /// All, as they are written.
    pub const NAMES: [(&'static str, Extension); 15] = [
        ("m", Extension::M),
        ("c", Extension::C),
        ("zbb", Extension::Zbb),
        ("zbkb", Extension::Zbkb),
        ("zbkc", Extension::Zbkc),
        ("zbkx", Extension::Zbkx),
        ("zkne", Extension::Zkne),
        ("zknd", Extension::Zknd),
        ("zknh", Extension::Zknh),
        ("zve64x", Extension::Zve64x),
        ("zvkb", Extension::Zvkb),
        ("zvkned", Extension::Zvkned),
        ("zvkg", Extension::Zvkg),
        ("zvknha", Extension::Zvknha),
        ("zvknhb", Extension::Zvknhb),
    ];

    /// Whether its instructions are of vectors: RV64 alone has them here.
    pub fn is_vector(self) -> bool {
        self as u32 >= Extension::Zve64x as u32
    }
}

/// Bits of a vector register (VLEN) that a core may have.
pub const VLEN: [u32; 4] = [128, 256, 512, 1_024];

/// The instruction set of a core: RV32I or RV64I and what is added.
#[derive(Clone, Debug)]
pub struct Isa {
    xlen: Xlen,
    extensions: u32,
    /// Bits of a vector register, one of [`VLEN`]; without vector extensions it has no effect.
    pub vlen: u32,
    /// Custom instructions.
    pub custom: Custom,
}

impl Default for Isa {
    fn default() -> Isa {
        Isa { xlen: Xlen::Rv32, extensions: 0, vlen: VLEN[0], custom: Custom::default() }
    }
}

impl Isa {
    /// RV32I alone.
    pub fn base() -> Isa {
        Isa::default()
    }

    /// RV64I alone.
    pub fn base64() -> Isa {
        Isa { xlen: Xlen::Rv64, ..Isa::default() }
    }

    /// Width of the integer registers.
    pub fn xlen(&self) -> Xlen {
        self.xlen
    }

    /// RV32IMC.
    pub fn imc() -> Isa {
        Isa::base().with(Extension::M).with(Extension::C)
    }

    /// All instructions of RV32 that this crate supports, without custom ones.
    pub fn full() -> Isa {
        let scalar = Extension::NAMES.into_iter().filter(|(_, one)| !one.is_vector());
        scalar.fold(Isa::base(), |isa, (_, one)| isa.with(one))
    }

    /// All instructions of RV64 that this crate supports.
    pub fn full64() -> Isa {
        Extension::NAMES.iter().fold(Isa::base64(), |isa, &(_, one)| isa.with(one))
    }

    /// With an extension.
    pub fn with(mut self, extension: Extension) -> Isa {
        self.extensions |= 1 << extension as u32;
        self
    }

    /// Whether it has an extension.
    pub fn has(&self, extension: Extension) -> bool {
        self.extensions & (1 << extension as u32) != 0
    }

    pub(crate) fn any(&self, extensions: &[Extension]) -> bool {
        extensions.is_empty() || extensions.iter().any(|&one| self.has(one))
    }
}

/// The instruction in a word at `pc`, of which [`expand`](crate::expand()) has made 32 bits if it was compressed;
/// `None` if it is none of this core.
pub fn decode(word: u32, pc: u32, isa: &Isa) -> Option<Instruction> {
    let field = |from: u32, count: u32| (word >> from) & ((1 << count) - 1);
    let rd = match field(7, 5) as u8 {
        0 => Instruction::NOWHERE,
        rd => rd,
    };
    let (rs1, rs2) = (field(15, 5) as u8, field(20, 5) as u8);
    let (funct3, funct7) = (field(12, 3), field(25, 7));
    let upper = (word & 0xffff_f000) as i32;
    let immediate = (word as i32) >> 20;
    let store = ((word as i32) >> 25) << 5 | field(7, 5) as i32;
    let made = |op, imm| Some(Instruction { op, rd, rs1, rs2, imm });
    let wide = isa.xlen == Xlen::Rv64;
    match word & 0x7f {
        0x37 => made(Op::Lui, upper),
        0x17 if wide => {
            let sum = i64::from(pc) + i64::from(upper);
            Some(Instruction { op: Op::Auipc, rd, rs1, rs2: (sum >> 32) as u8, imm: sum as i32 })
        }
        0x17 => made(Op::Lui, upper.wrapping_add(pc as i32)),
        0x6f => {
            let offset = ((word as i32) >> 31) << 20
                | (field(12, 8) << 12) as i32
                | (field(20, 1) << 11) as i32
                | (field(21, 10) << 1) as i32;
            made(Op::Jal, offset.wrapping_add(pc as i32))
        }
        0x67 if funct3 == 0 => made(Op::Jalr, immediate),
        0x63 => {
            let op =
                [Op::Beq, Op::Bne, Op::Lui, Op::Lui, Op::Blt, Op::Bge, Op::Bltu, Op::Bgeu][funct3 as usize];
            let offset = ((word as i32) >> 31) << 12
                | (field(7, 1) << 11) as i32
                | (field(25, 6) << 5) as i32
                | (field(8, 4) << 1) as i32;
            if op == Op::Lui { None } else { made(op, offset.wrapping_add(pc as i32)) }
        }
        0x03 => {
            const LOADS: [Op; 7] = [Op::Lb, Op::Lh, Op::Lw, Op::Ld, Op::Lbu, Op::Lhu, Op::Lwu];
            let op = *LOADS.get(funct3 as usize)?;
            (wide || !matches!(op, Op::Ld | Op::Lwu)).then(|| made(op, immediate))?
        }
        0x23 => {
            let op = *[Op::Sb, Op::Sh, Op::Sw, Op::Sd].get(funct3 as usize)?;
            (wide || op != Op::Sd).then(|| made(op, store))?
        }
        0x13 => {
            let (op, imm, needs) = op_imm(funct3, funct7, rs2, immediate, isa.xlen)?;
            isa.any(needs).then_some(Instruction { op, rd, rs1, rs2: 0, imm })
        }
        0x1b if wide => {
            let (op, imm, needs) = op_imm_32(funct3, funct7, rs2, immediate)?;
            isa.any(needs).then_some(Instruction { op, rd, rs1, rs2: 0, imm })
        }
        0x33 => {
            let (op, needs) = match wide {
                true => op_op_64(funct3, funct7),
                false => op_op_32(funct3, funct7, rs2),
            }
            .or_else(|| op_op(funct3, funct7))?;
            isa.any(needs).then_some(Instruction { op, rd, rs1, rs2, imm: (funct7 >> 5) as i32 })
        }
        0x3b if wide => {
            let (op, needs) = op_32(funct3, funct7, rs2)?;
            isa.any(needs).then_some(Instruction { op, rd, rs1, rs2, imm: 0 })
        }
        0x07 | 0x27 | 0x57 | 0x77 if wide => vector::decode(word, isa),
        0x0f if funct3 < 2 => {
            let op = if funct3 == 1 { Op::Fencei } else { Op::Fence };
            Some(Instruction { op, rd: Instruction::NOWHERE, rs1: 0, rs2: 0, imm: 0 })
        }
        0x73 => system(word, funct3).and_then(|op| made(op, field(20, 12) as i32)),
        // What custom instructions compute is defined for registers of 32 bits.
        _ if wide => None,
        _ => {
            let number = isa.custom.find(word)?;
            made(Op::Custom, (number as i32) | ((funct7 as i32) << 16))
        }
    }
}

fn system(word: u32, funct3: u32) -> Option<Op> {
    Some(match funct3 {
        0 => match word {
            0x0000_0073 => Op::Ecall,
            0x0010_0073 => Op::Ebreak,
            0x1050_0073 => Op::Wfi,
            _ => return None,
        },
        1 => Op::Csrrw,
        2 => Op::Csrrs,
        3 => Op::Csrrc,
        5 => Op::Csrrwi,
        6 => Op::Csrrsi,
        7 => Op::Csrrci,
        _ => return None,
    })
}

type Needs = &'static [Extension];
const BASE: Needs = &[];
const M: Needs = &[Extension::M];
const ZBB: Needs = &[Extension::Zbb];
const ZBKB: Needs = &[Extension::Zbkb];
/// What both have.
const ZBB_ZBKB: Needs = &[Extension::Zbb, Extension::Zbkb];
const ZBKC: Needs = &[Extension::Zbkc];
const ZBKX: Needs = &[Extension::Zbkx];
const ZKNE: Needs = &[Extension::Zkne];
const ZKND: Needs = &[Extension::Zknd];
const ZKNH: Needs = &[Extension::Zknh];
/// The key expansion of RV64.
const ZKNE_ZKND: Needs = &[Extension::Zkne, Extension::Zknd];

fn op_imm(funct3: u32, funct7: u32, low: u8, imm: i32, xlen: Xlen) -> Option<(Op, i32, Needs)> {
    if xlen == Xlen::Rv64
        && let Some(found) = op_imm_64(funct3, funct7, low)
    {
        return Some(found);
    }
    let amount = i32::from(low);
    Some(match (funct3, funct7, low) {
        (0, ..) => (Op::Addi, imm, BASE),
        (2, ..) => (Op::Slti, imm, BASE),
        (3, ..) => (Op::Sltiu, imm, BASE),
        (4, ..) => (Op::Xori, imm, BASE),
        (6, ..) => (Op::Ori, imm, BASE),
        (7, ..) => (Op::Andi, imm, BASE),
        (1, 0x00, _) => (Op::Slli, amount, BASE),
        (5, 0x00, _) => (Op::Srli, amount, BASE),
        (5, 0x20, _) => (Op::Srai, amount, BASE),
        (5, 0x30, _) => (Op::Rori, amount, ZBB_ZBKB),
        (1, 0x30, 0) => (Op::Clz, 0, ZBB),
        (1, 0x30, 1) => (Op::Ctz, 0, ZBB),
        (1, 0x30, 2) => (Op::Cpop, 0, ZBB),
        (1, 0x30, 4) => (Op::Sextb, 0, ZBB),
        (1, 0x30, 5) => (Op::Sexth, 0, ZBB),
        (5, 0x14, 7) => (Op::Orcb, 0, ZBB),
        (5, 0x34, 7) => (Op::Brev8, 0, ZBKB),
        _ if xlen == Xlen::Rv64 && matches!((funct7, low), (0x34, 0x18) | (0x04, 15)) => return None,
        (5, 0x34, 0x18) => (Op::Rev8, 0, ZBB_ZBKB),
        (1, 0x04, 15) => (Op::Zip, 0, ZBKB),
        (5, 0x04, 15) => (Op::Unzip, 0, ZBKB),
        (1, 0x08, 0) => (Op::Sha256sum0, 0, ZKNH),
        (1, 0x08, 1) => (Op::Sha256sum1, 0, ZKNH),
        (1, 0x08, 2) => (Op::Sha256sig0, 0, ZKNH),
        (1, 0x08, 3) => (Op::Sha256sig1, 0, ZKNH),
        _ => return None,
    })
}

/// What RV64 has besides, or with shifts of six bits.
fn op_imm_64(funct3: u32, funct7: u32, low: u8) -> Option<(Op, i32, Needs)> {
    let amount = i32::from(low) | ((funct7 & 1) as i32) << 5;
    Some(match (funct3, funct7 & !1) {
        (1, 0x00) => (Op::Slli, amount, BASE),
        (5, 0x00) => (Op::Srli, amount, BASE),
        (5, 0x20) => (Op::Srai, amount, BASE),
        (5, 0x30) => (Op::Rori, amount, ZBB_ZBKB),
        (5, 0x34) if amount == 0x38 => (Op::Rev8, 0, ZBB_ZBKB),
        (1, 0x08) if amount == 4 => (Op::Sha512sum0, 0, ZKNH),
        (1, 0x08) if amount == 5 => (Op::Sha512sum1, 0, ZKNH),
        (1, 0x08) if amount == 6 => (Op::Sha512sig0, 0, ZKNH),
        (1, 0x08) if amount == 7 => (Op::Sha512sig1, 0, ZKNH),
        (1, 0x18) if amount == 0 => (Op::Aes64im, 0, ZKND),
        // Rounds above 10 are reserved.
        (1, 0x18) if (0x10..=0x1a).contains(&amount) => (Op::Aes64ks1i, amount & 15, ZKNE_ZKND),
        _ => return None,
    })
}

/// OP-IMM-32.
fn op_imm_32(funct3: u32, funct7: u32, low: u8, imm: i32) -> Option<(Op, i32, Needs)> {
    let amount = i32::from(low);
    Some(match (funct3, funct7, low) {
        (0, ..) => (Op::Addiw, imm, BASE),
        (1, 0x00, _) => (Op::Slliw, amount, BASE),
        (5, 0x00, _) => (Op::Srliw, amount, BASE),
        (5, 0x20, _) => (Op::Sraiw, amount, BASE),
        (5, 0x30, _) => (Op::Roriw, amount, ZBB_ZBKB),
        (1, 0x30, 0) => (Op::Clzw, 0, ZBB),
        (1, 0x30, 1) => (Op::Ctzw, 0, ZBB),
        (1, 0x30, 2) => (Op::Cpopw, 0, ZBB),
        _ => return None,
    })
}

/// OP-32.
fn op_32(funct3: u32, funct7: u32, rs2: u8) -> Option<(Op, Needs)> {
    use Op::*;
    Some(match (funct7, funct3) {
        (0x00, 0) => (Addw, BASE),
        (0x20, 0) => (Subw, BASE),
        (0x00, 1) => (Sllw, BASE),
        (0x00, 5) => (Srlw, BASE),
        (0x20, 5) => (Sraw, BASE),
        (0x01, 0) => (Mulw, M),
        (0x01, 4) => (Divw, M),
        (0x01, 5) => (Divuw, M),
        (0x01, 6) => (Remw, M),
        (0x01, 7) => (Remuw, M),
        (0x30, 1) => (Rolw, ZBB_ZBKB),
        (0x30, 5) => (Rorw, ZBB_ZBKB),
        // Zbb has it only as zext.h, with x0 for the upper half.
        (0x04, 4) if rs2 == 0 => (Packw, ZBB_ZBKB),
        (0x04, 4) => (Packw, ZBKB),
        _ => return None,
    })
}

/// OP that only RV64 has.
fn op_op_64(funct3: u32, funct7: u32) -> Option<(Op, Needs)> {
    Some(match (funct7, funct3) {
        (0x04, 4) => (Op::Pack, ZBKB),
        (0x19, 0) => (Op::Aes64es, ZKNE),
        (0x1b, 0) => (Op::Aes64esm, ZKNE),
        (0x1d, 0) => (Op::Aes64ds, ZKND),
        (0x1f, 0) => (Op::Aes64dsm, ZKND),
        (0x3f, 0) => (Op::Aes64ks2, ZKNE_ZKND),
        _ => return None,
    })
}

/// OP that only RV32 has.
fn op_op_32(funct3: u32, funct7: u32, rs2: u8) -> Option<(Op, Needs)> {
    use Op::*;
    Some(match (funct7, funct3) {
        // Zbb has it only as zext.h, with x0 for the upper half.
        (0x04, 4) if rs2 == 0 => (Pack, ZBB_ZBKB),
        (0x04, 4) => (Pack, ZBKB),
        (0x28, 0) => (Sha512sum0r, ZKNH),
        (0x29, 0) => (Sha512sum1r, ZKNH),
        (0x2a, 0) => (Sha512sig0l, ZKNH),
        (0x2b, 0) => (Sha512sig1l, ZKNH),
        (0x2e, 0) => (Sha512sig0h, ZKNH),
        (0x2f, 0) => (Sha512sig1h, ZKNH),
        // The two upper bits choose the byte.
        (_, 0) => match funct7 & 0x1f {
            0x11 => (Aes32esi, ZKNE),
            0x13 => (Aes32esmi, ZKNE),
            0x15 => (Aes32dsi, ZKND),
            0x17 => (Aes32dsmi, ZKND),
            _ => return None,
        },
        _ => return None,
    })
}

/// OP of both widths.
fn op_op(funct3: u32, funct7: u32) -> Option<(Op, Needs)> {
    use Op::*;
    const PLAIN: [Op; 8] = [Add, Sll, Slt, Sltu, Xor, Srl, Or, And];
    const MULTIPLY: [Op; 8] = [Mul, Mulh, Mulhsu, Mulhu, Div, Divu, Rem, Remu];
    Some(match (funct7, funct3) {
        (0x00, _) => (PLAIN[funct3 as usize], BASE),
        (0x01, _) => (MULTIPLY[funct3 as usize], M),
        (0x20, 0) => (Sub, BASE),
        (0x20, 5) => (Sra, BASE),
        (0x20, 4) => (Xnor, ZBB_ZBKB),
        (0x20, 6) => (Orn, ZBB_ZBKB),
        (0x20, 7) => (Andn, ZBB_ZBKB),
        (0x30, 1) => (Rol, ZBB_ZBKB),
        (0x30, 5) => (Ror, ZBB_ZBKB),
        (0x05, 1) => (Clmul, ZBKC),
        (0x05, 3) => (Clmulh, ZBKC),
        (0x05, 4) => (Min, ZBB),
        (0x05, 5) => (Minu, ZBB),
        (0x05, 6) => (Max, ZBB),
        (0x05, 7) => (Maxu, ZBB),
        (0x04, 7) => (Packh, ZBKB),
        (0x14, 2) => (Xperm4, ZBKX),
        (0x14, 4) => (Xperm8, ZBKX),
        _ => return None,
    })
}
