//! The width of the integer registers: RV32 and RV64 from one text, compiled once for each.

use std::fmt;

use crate::instruction::{Instruction, Op};
use crate::scalar_crypto as crypto;

/// Width of the integer registers in bits, XLEN (RISC-V unprivileged ISA 1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Xlen {
    /// RV32I.
    #[default]
    Rv32,
    /// RV64I.
    Rv64,
}

impl Xlen {
    /// Bits of a register.
    pub fn bits(self) -> u32 {
        match self {
            Xlen::Rv32 => 32,
            Xlen::Rv64 => 64,
        }
    }
}

mod sealed {
    /// Keeps [`super::Word`] to the two widths of the ISA.
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// An integer register: `u32` for RV32, `u64` for RV64.
pub trait Word: sealed::Sealed + Copy + Default + Eq + fmt::Debug + fmt::LowerHex + 'static {
    /// Its width.
    const XLEN: Xlen;

    /// The lower bits of a number.
    fn truncated(value: u64) -> Self;

    /// The value without sign.
    fn wide(self) -> u64;

    /// The sum with a signed offset.
    fn offset(self, by: i32) -> Self;

    /// What an instruction that neither jumps nor asks memory makes of its sources.
    fn computed(one: Instruction, a: Self, b: Self) -> Self;

    /// Whether a conditional branch is taken; `None` if it is none.
    fn branches(op: Op, a: Self, b: Self) -> Option<bool>;

    /// The value as an address, if it is one of the 32 bits that addresses have here.
    #[inline(always)]
    fn address(self) -> Option<u32> {
        let wide = self.wide();
        if Self::XLEN == Xlen::Rv64 && wide >> 32 != 0 { None } else { Some(wide as u32) }
    }

    /// The lower 32 bits.
    #[inline(always)]
    fn low(self) -> u32 {
        self.wide() as u32
    }

    /// A number of 32 bits with its sign.
    #[inline(always)]
    fn signed(value: u32) -> Self {
        Self::truncated(i64::from(value as i32) as u64)
    }
}

/// `$unsigned` and `$signed` are a register, `$double` and `$signed_double` the product of two; `$own` computes what
/// only this width has.
macro_rules! word {
    ($unsigned:ident, $signed:ident, $double:ident, $signed_double:ident, $xlen:expr, $own:path) => {
        impl Word for $unsigned {
            const XLEN: Xlen = $xlen;

            #[inline(always)]
            fn truncated(value: u64) -> Self {
                value as $unsigned
            }

            #[inline(always)]
            #[allow(clippy::unnecessary_cast, reason = "of one of the two widths")]
            fn wide(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn offset(self, by: i32) -> Self {
                self.wrapping_add(by as $unsigned)
            }

            // Long because there is one arm for each instruction.
            #[inline(always)]
            fn computed(one: Instruction, a: Self, b: Self) -> Self {
                const BITS: u32 = <$unsigned>::BITS;
                const HIGH: u32 = BITS / 2;
                // With its sign.
                let imm = one.imm as $unsigned;
                let product = |a: $signed_double, b: $signed_double| (a.wrapping_mul(b) >> BITS) as $unsigned;
                let signed = |value: u32| value as i32 as $unsigned;
                match one.op {
                    Op::Lui => imm,
                    Op::Addi => a.wrapping_add(imm),
                    Op::Slti => <$unsigned>::from((a as $signed) < imm as $signed),
                    Op::Sltiu => <$unsigned>::from(a < imm),
                    Op::Xori => a ^ imm,
                    Op::Ori => a | imm,
                    Op::Andi => a & imm,
                    Op::Slli => a << (imm & (BITS - 1) as $unsigned),
                    Op::Srli => a >> (imm & (BITS - 1) as $unsigned),
                    Op::Srai => (a as $signed >> (imm & (BITS - 1) as $unsigned)) as $unsigned,
                    Op::Add => a.wrapping_add(b),
                    Op::Sub => a.wrapping_sub(b),
                    Op::Sll => a << (b & (BITS - 1) as $unsigned),
                    Op::Slt => <$unsigned>::from((a as $signed) < b as $signed),
                    Op::Sltu => <$unsigned>::from(a < b),
                    Op::Xor => a ^ b,
                    Op::Srl => a >> (b & (BITS - 1) as $unsigned),
                    Op::Sra => (a as $signed >> (b & (BITS - 1) as $unsigned)) as $unsigned,
                    Op::Or => a | b,
                    Op::And => a & b,
                    Op::Mul => a.wrapping_mul(b),
                    Op::Mulh => product((a as $signed).into(), (b as $signed).into()),
                    Op::Mulhsu => product((a as $signed).into(), b.into()),
                    Op::Mulhu => ((a as $double * b as $double) >> BITS) as $unsigned,
                    Op::Div if b == 0 => <$unsigned>::MAX,
                    Op::Div => (a as $signed).wrapping_div(b as $signed) as $unsigned,
                    Op::Divu => a.checked_div(b).unwrap_or(<$unsigned>::MAX),
                    Op::Rem if b == 0 => a,
                    Op::Rem => (a as $signed).wrapping_rem(b as $signed) as $unsigned,
                    Op::Remu => a.checked_rem(b).unwrap_or(a),
                    Op::Andn => a & !b,
                    Op::Orn => a | !b,
                    Op::Xnor => !(a ^ b),
                    Op::Rol => a.rotate_left(b as u32 & (BITS - 1)),
                    Op::Ror => a.rotate_right(b as u32 & (BITS - 1)),
                    Op::Rori => a.rotate_right(imm as u32 & (BITS - 1)),
                    Op::Clz => a.leading_zeros().into(),
                    Op::Ctz => a.trailing_zeros().into(),
                    Op::Cpop => a.count_ones().into(),
                    Op::Max => (a as $signed).max(b as $signed) as $unsigned,
                    Op::Maxu => a.max(b),
                    Op::Min => (a as $signed).min(b as $signed) as $unsigned,
                    Op::Minu => a.min(b),
                    Op::Sextb => a as i8 as $unsigned,
                    Op::Sexth => a as i16 as $unsigned,
                    Op::Orcb => <$unsigned>::from_le_bytes(
                        a.to_le_bytes().map(|byte| if byte == 0 { 0 } else { 0xff }),
                    ),
                    Op::Rev8 => a.swap_bytes(),
                    Op::Brev8 => <$unsigned>::from_le_bytes(a.to_le_bytes().map(u8::reverse_bits)),
                    Op::Pack => a << HIGH >> HIGH | b << HIGH,
                    Op::Packh => (a & 0xff) | (b & 0xff) << 8,
                    Op::Xperm4 => crypto::xperm(a.into(), b.into(), 4, BITS) as $unsigned,
                    Op::Xperm8 => crypto::xperm(a.into(), b.into(), 8, BITS) as $unsigned,
                    Op::Sha256sig0 => signed(crypto::sha256sig0(a as u32)),
                    Op::Sha256sig1 => signed(crypto::sha256sig1(a as u32)),
                    Op::Sha256sum0 => signed(crypto::sha256sum0(a as u32)),
                    Op::Sha256sum1 => signed(crypto::sha256sum1(a as u32)),
                    _ => $own(one, a, b),
                }
            }

            #[inline(always)]
            fn branches(op: Op, a: Self, b: Self) -> Option<bool> {
                Some(match op {
                    Op::Beq => a == b,
                    Op::Bne => a != b,
                    Op::Blt => (a as $signed) < b as $signed,
                    Op::Bge => a as $signed >= b as $signed,
                    Op::Bltu => a < b,
                    Op::Bgeu => a >= b,
                    _ => return None,
                })
            }
        }
    };
}

word!(u32, i32, u64, i64, Xlen::Rv32, rv32);
word!(u64, i64, u128, i128, Xlen::Rv64, rv64);

/// What only RV32 has: halves of doublewords, one byte of AES at a time.
#[inline]
fn rv32(one: Instruction, a: u32, b: u32) -> u32 {
    let imm = one.imm;
    match one.op {
        Op::Zip => crypto::zip(a),
        Op::Unzip => crypto::unzip(a),
        Op::Clmul => crypto::clmul(a, b) as u32,
        Op::Clmulh => (crypto::clmul(a, b) >> 32) as u32,
        // funct7's two upper bits are the byte: `decode` leaves them in `imm`.
        Op::Aes32esi => crypto::aes32esi(a, b, imm),
        Op::Aes32esmi => crypto::aes32esmi(a, b, imm),
        Op::Aes32dsi => crypto::aes32dsi(a, b, imm),
        Op::Aes32dsmi => crypto::aes32dsmi(a, b, imm),
        Op::Sha512sig0h => crypto::sha512sig0h(a, b),
        Op::Sha512sig0l => crypto::sha512sig0l(a, b),
        Op::Sha512sig1h => crypto::sha512sig1h(a, b),
        Op::Sha512sig1l => crypto::sha512sig1l(a, b),
        Op::Sha512sum0r => crypto::sha512sum0r(a, b),
        Op::Sha512sum1r => crypto::sha512sum1r(a, b),
        // `fence` orders what is in order already; its rd is never written by what it computes.
        _ => 0,
    }
}

/// What only RV64 has: words of 32 bits with their sign (RISC-V unprivileged ISA, chapters "RV64I" and "M"; Zbb,
/// Zbkb), and half of an AES state at a time (Cryptography Extensions volume I 1.0.1, 3).
#[inline]
fn rv64(one: Instruction, a: u64, b: u64) -> u64 {
    let (wa, wb, imm) = (a as u32, b as u32, one.imm);
    let word = |value: u32| value as i32 as u64;
    match one.op {
        // The address is of 32 bits without sign, and what goes beyond them stands in rs2.
        Op::Auipc => u64::from(imm as u32) | (one.rs2 as i8 as u64) << 32,
        Op::Addiw => word(wa.wrapping_add(imm as u32)),
        Op::Slliw => word(wa << (imm & 31)),
        Op::Srliw => word(wa >> (imm & 31)),
        Op::Sraiw => word((wa as i32 >> (imm & 31)) as u32),
        Op::Addw => word(wa.wrapping_add(wb)),
        Op::Subw => word(wa.wrapping_sub(wb)),
        Op::Sllw => word(wa << (wb & 31)),
        Op::Srlw => word(wa >> (wb & 31)),
        Op::Sraw => word((wa as i32 >> (wb & 31)) as u32),
        Op::Mulw | Op::Divw | Op::Divuw | Op::Remw | Op::Remuw => {
            let op = match one.op {
                Op::Mulw => Op::Mul,
                Op::Divw => Op::Div,
                Op::Divuw => Op::Divu,
                Op::Remw => Op::Rem,
                _ => Op::Remu,
            };
            word(u32::computed(Instruction { op, ..one }, wa, wb))
        }
        Op::Rolw => word(wa.rotate_left(wb & 31)),
        Op::Rorw => word(wa.rotate_right(wb & 31)),
        Op::Roriw => word(wa.rotate_right(imm as u32 & 31)),
        Op::Clzw => wa.leading_zeros().into(),
        Op::Ctzw => wa.trailing_zeros().into(),
        Op::Cpopw => wa.count_ones().into(),
        Op::Packw => word((wa & 0xffff) | wb << 16),
        Op::Clmul => crypto::clmul_double(a, b) as u64,
        Op::Clmulh => (crypto::clmul_double(a, b) >> 64) as u64,
        Op::Aes64es => crypto::aes64es(a, b),
        Op::Aes64esm => crypto::aes64esm(a, b),
        Op::Aes64ds => crypto::aes64ds(a, b),
        Op::Aes64dsm => crypto::aes64dsm(a, b),
        Op::Aes64im => crypto::aes64im(a),
        Op::Aes64ks1i => crypto::aes64ks1i(a, imm as u32),
        Op::Aes64ks2 => crypto::aes64ks2(a, b),
        Op::Sha512sig0 => crypto::sha512sig0(a),
        Op::Sha512sig1 => crypto::sha512sig1(a),
        Op::Sha512sum0 => crypto::sha512sum0(a),
        Op::Sha512sum1 => crypto::sha512sum1(a),
        _ => 0,
    }
}
