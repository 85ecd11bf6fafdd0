//! Instructions as they are executed: decoded once.

/// What an instruction does. On RV32 `auipc` is decoded to [`Op::Lui`] with its sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[rustfmt::skip]
#[allow(missing_docs, reason = "the ISA's own names")]
pub enum Op {
    Lui, Addi, Slti, Sltiu, Xori, Ori, Andi, Slli, Srli, Srai,
    Add, Sub, Sll, Slt, Sltu, Xor, Srl, Sra, Or, And, Fence,
    Mul, Mulh, Mulhsu, Mulhu, Div, Divu, Rem, Remu,
    Lb, Lh, Lw, Lbu, Lhu, Sb, Sh, Sw,
    // Zbb, Zbkb
    Andn, Orn, Xnor, Rol, Ror, Rori, Clz, Ctz, Cpop, Max, Maxu, Min, Minu, Sextb, Sexth, Orcb, Rev8,
    Brev8, Pack, Packh, Zip, Unzip,
    // Zbkc, Zbkx
    Clmul, Clmulh, Xperm4, Xperm8,
    // Zkne, Zknd: `imm` is the byte
    Aes32esi, Aes32esmi, Aes32dsi, Aes32dsmi,
    // Zknh
    Sha256sig0, Sha256sig1, Sha256sum0, Sha256sum1,
    Sha512sig0h, Sha512sig0l, Sha512sig1h, Sha512sig1l, Sha512sum0r, Sha512sum1r,
    /// `imm`: the definition's number, and the selector (funct7) from bit 16 on.
    Custom,
    // RV64I, M
    /// `imm`: the sum's lower 32 bits; `rs2`: what stands above them.
    Auipc,
    Addiw, Slliw, Srliw, Sraiw, Addw, Subw, Sllw, Srlw, Sraw, Mulw, Divw, Divuw, Remw, Remuw, Lwu, Ld, Sd,
    // Zbb, Zbkb of RV64
    Rolw, Rorw, Roriw, Clzw, Ctzw, Cpopw, Packw,
    // Zkne, Zknd, Zknh of RV64
    Aes64es, Aes64esm, Aes64ds, Aes64dsm, Aes64im, Aes64ks1i, Aes64ks2,
    Sha512sig0, Sha512sig1, Sha512sum0, Sha512sum1,
    // The vector subset; `imm`: the word itself.
    Vset, Vload, Vstore, Vcompute, Vcrypto,
    // What ends a block.
    Beq, Bne, Blt, Bge, Bltu, Bgeu, Jal, Jalr,
    Fencei, Ecall, Ebreak, Wfi, Csrrw, Csrrs, Csrrc, Csrrwi, Csrrsi, Csrrci,
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub op: Op,
    /// Destination; [`Instruction::NOWHERE`] stands for x0.
    pub rd: u8,
    /// First source; the number itself for `csrr?i`.
    pub rs1: u8,
    /// Second source.
    pub rs2: u8,
    /// Immediate; a jump's or branch's target, absolute; a CSR's number.
    pub imm: i32,
}

/// What kind of work an instruction is, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Arithmetic and logic of the base set.
    Alu,
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Conditional branches.
    Branch,
    /// Jumps, calls and returns.
    Jump,
    /// Multiplications.
    Multiply,
    /// Divisions and remainders.
    Divide,
    /// Bit manipulation (Zbb, Zbkb, Zbkc, Zbkx).
    Bits,
    /// Scalar cryptography (Zkne, Zknd, Zknh).
    Crypto,
    /// Custom instructions.
    Custom,
    /// Vector instructions: configuration, loads and stores, integers, bits (Zve64x's subset, Zvkb).
    Vector,
    /// Vector cryptography (Zvkned, Zvkg, Zvknha, Zvknhb).
    VectorCrypto,
    /// Counters, fences, calls of the environment.
    System,
}

impl Class {
    /// All, in the order of reports.
    pub const ALL: [Class; 13] = [
        Class::Alu,
        Class::Load,
        Class::Store,
        Class::Branch,
        Class::Jump,
        Class::Multiply,
        Class::Divide,
        Class::Bits,
        Class::Crypto,
        Class::Custom,
        Class::Vector,
        Class::VectorCrypto,
        Class::System,
    ];

    /// Its word in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Alu => "alu",
            Class::Load => "load",
            Class::Store => "store",
            Class::Branch => "branch",
            Class::Jump => "jump",
            Class::Multiply => "multiply",
            Class::Divide => "divide",
            Class::Bits => "bits",
            Class::Crypto => "crypto",
            Class::Custom => "custom",
            Class::Vector => "vector",
            Class::VectorCrypto => "vector-crypto",
            Class::System => "system",
        }
    }
}

impl Op {
    /// The kind of work.
    pub fn class(self) -> Class {
        use Op::*;
        match self {
            Lb | Lh | Lw | Lbu | Lhu | Lwu | Ld => Class::Load,
            Sb | Sh | Sw | Sd => Class::Store,
            Beq | Bne | Blt | Bge | Bltu | Bgeu => Class::Branch,
            Jal | Jalr => Class::Jump,
            Mul | Mulh | Mulhsu | Mulhu | Mulw => Class::Multiply,
            Div | Divu | Rem | Remu | Divw | Divuw | Remw | Remuw => Class::Divide,
            Andn | Orn | Xnor | Rol | Ror | Rori | Clz | Ctz | Cpop | Max | Maxu | Min | Minu | Sextb
            | Sexth | Orcb | Rev8 | Brev8 | Pack | Packh | Zip | Unzip | Clmul | Clmulh | Xperm4 | Xperm8
            | Rolw | Rorw | Roriw | Clzw | Ctzw | Cpopw | Packw => Class::Bits,
            Aes32esi | Aes32esmi | Aes32dsi | Aes32dsmi | Sha256sig0 | Sha256sig1 | Sha256sum0
            | Sha256sum1 | Sha512sig0h | Sha512sig0l | Sha512sig1h | Sha512sig1l | Sha512sum0r
            | Sha512sum1r | Aes64es | Aes64esm | Aes64ds | Aes64dsm | Aes64im | Aes64ks1i | Aes64ks2
            | Sha512sig0 | Sha512sig1 | Sha512sum0 | Sha512sum1 => Class::Crypto,
            Vset | Vload | Vstore | Vcompute => Class::Vector,
            Vcrypto => Class::VectorCrypto,
            Custom => Class::Custom,
            Fence | Fencei | Ecall | Ebreak | Wfi | Csrrw | Csrrs | Csrrc | Csrrwi | Csrrsi | Csrrci => {
                Class::System
            }
            _ => Class::Alu,
        }
    }

    /// Whether nothing after it in memory may be taken for its successor.
    pub(crate) fn ends_block(self) -> bool {
        (self as u8) >= (Op::Beq as u8)
    }

    /// Which registers it reads: the first source, the second.
    fn sources(self) -> (bool, bool) {
        use Op::*;
        match self {
            Lui | Auipc | Fence | Jal | Fencei | Ecall | Ebreak | Wfi | Csrrwi | Csrrsi | Csrrci => {
                (false, false)
            }
            Addi | Slti | Sltiu | Xori | Ori | Andi | Slli | Srli | Srai | Rori | Clz | Ctz | Cpop
            | Sextb | Sexth | Orcb | Rev8 | Brev8 | Zip | Unzip | Sha256sig0 | Sha256sig1 | Sha256sum0
            | Sha256sum1 | Lb | Lh | Lw | Lbu | Lhu | Jalr | Csrrw | Csrrs | Csrrc | Addiw | Slliw
            | Srliw | Sraiw | Lwu | Ld | Roriw | Clzw | Ctzw | Cpopw | Aes64im | Aes64ks1i | Sha512sig0
            | Sha512sig1 | Sha512sum0 | Sha512sum1 => (true, false),
            _ => (true, true),
        }
    }
}

impl Instruction {
    /// The destination of results for x0: a register that is never read.
    pub const NOWHERE: u8 = 32;

    /// The registers that it needs when it is about to execute, one bit each. A store needs its data one
    /// stage later, when even a load just before it has them.
    pub fn needs(self) -> u32 {
        let (first, second) = self.op.sources();
        let second = second && self.op.class() != Class::Store;
        let bit = |used: bool, register: u8| if used { 1_u32 << (register & 31) } else { 0 };
        (bit(first, self.rs1) | bit(second, self.rs2)) & !1
    }

    /// The register that a load fills, as a bit; nothing for other instructions.
    pub fn loads_into(self) -> u32 {
        if self.op.class() == Class::Load && self.rd < 32 { 1 << self.rd } else { 0 }
    }
}
