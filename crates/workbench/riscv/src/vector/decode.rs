//! Encodings of vector instructions (RISC-V unprivileged ISA 31.5; Cryptography Extensions volume II, 3).

use crate::decode::{Extension, Isa};
use crate::instruction::{Instruction, Op};

/// What an instruction of OP-V computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub(super) enum Integer {
    Add, Sub, Rsub, And, Or, Xor, Sll, Srl, Sra, Move, Merge, Equal, SlideUp, SlideDown, Index, ToScalar, FromScalar,
    // Zvkb
    Andn, Rol, Ror, Rev8, Brev8,
}

/// Where the second operand of an instruction of OP-V is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// In vs1.
    Vector,
    /// In `x[rs1]`.
    Scalar,
    /// In the word, with its sign.
    Immediate,
}

/// What an instruction of OP-VE computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub(super) enum Crypto {
    // Zvkned; whether the round key is one for all groups (`.vs`)
    EncryptFinal(bool), EncryptMiddle(bool), DecryptFinal(bool), DecryptMiddle(bool), RoundZero,
    KeyForward1, KeyForward2,
    // Zvkg
    Ghash, Multiply,
    // Zvknha, Zvknhb
    Schedule, CompressHigh, CompressLow,
}

/// The part of a vector unit that an instruction of OP-VE passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Zvkned.
    Aes,
    /// Zvkg.
    Ghash,
    /// Zvknha, Zvknhb.
    Sha2,
}

impl Unit {
    /// The unit of a word that [`decode`] has taken.
    pub(crate) fn of(word: u32) -> Unit {
        match crypto(word) {
            Some((Crypto::Ghash | Crypto::Multiply, _)) => Unit::Ghash,
            Some((Crypto::Schedule | Crypto::CompressHigh | Crypto::CompressLow, _)) => Unit::Sha2,
            _ => Unit::Aes,
        }
    }
}

fn field(word: u32, from: u32, bits: u32) -> u32 {
    word >> from & ((1 << bits) - 1)
}

/// log2 of the bytes of the elements of a load or store.
pub(super) fn width(word: u32) -> u32 {
    match field(word, 12, 3) {
        0 => 0,
        width => width - 4,
    }
}

/// The instruction in a word of LOAD-FP, STORE-FP, OP-V or OP-VE; `None` if it is none of this core.
pub(crate) fn decode(word: u32, isa: &Isa) -> Option<Instruction> {
    let (rs1, funct3) = (field(word, 15, 5) as u8, field(word, 12, 3));
    let rd = match field(word, 7, 5) as u8 {
        0 => Instruction::NOWHERE,
        rd => rd,
    };
    let made = |op, rd, rs1, rs2| Some(Instruction { op, rd, rs1, rs2, imm: word as i32 });
    let nowhere = Instruction::NOWHERE;
    if !isa.has(Extension::Zve64x) {
        return None;
    }
    match (word & 0x7f, funct3) {
        // nf, mew, mop and lumop or sumop: one field, unit stride.
        (0x07 | 0x27, 0 | 5 | 6 | 7) if word & 0xfdf0_0000 == 0 => {
            made(if word & 0x20 == 0 { Op::Vload } else { Op::Vstore }, nowhere, rs1, 0)
        }
        (0x57, 7) => match (word >> 30, field(word, 25, 6)) {
            (0 | 1, _) => made(Op::Vset, rd, rs1, 0),
            (2, 0) => made(Op::Vset, rd, rs1, field(word, 20, 5) as u8),
            (3, _) => made(Op::Vset, rd, 0, 0),
            _ => None,
        },
        (0x57, _) => {
            let (operation, source, needs) = integer(word)?;
            let rd = if operation == Integer::ToScalar { rd } else { nowhere };
            let rs1 = if source == Source::Scalar { rs1 } else { 0 };
            isa.has(needs).then(|| made(Op::Vcompute, rd, rs1, 0))?
        }
        (0x77, 2) => isa.any(crypto(word)?.1).then(|| made(Op::Vcrypto, nowhere, 0, 0))?,
        _ => None,
    }
}

/// What an instruction of OP-V does, and what a core needs to have it.
pub(super) fn integer(word: u32) -> Option<(Integer, Source, Extension)> {
    use Source::{Immediate, Scalar, Vector};
    let (funct6, vm) = (word >> 26, word >> 25 & 1 != 0);
    let (vs2, vs1) = (field(word, 20, 5), field(word, 15, 5));
    let source = match field(word, 12, 3) {
        0 => Vector,
        3 => Immediate,
        4 => Scalar,
        // OPMVV
        2 => {
            let (operation, needs) = match (funct6, vs1) {
                (0x10, 0) if vm => (Integer::ToScalar, Extension::Zve64x),
                (0x12, 8) => (Integer::Brev8, Extension::Zvkb),
                (0x12, 9) => (Integer::Rev8, Extension::Zvkb),
                (0x14, 0x11) if vs2 == 0 => (Integer::Index, Extension::Zve64x),
                _ => return None,
            };
            return Some((operation, Vector, needs));
        }
        // OPMVX
        6 if funct6 == 0x10 && vm && vs2 == 0 => {
            return Some((Integer::FromScalar, Scalar, Extension::Zve64x));
        }
        _ => return None,
    };
    let operation = match (funct6, source) {
        (0x01, Vector | Scalar) => Integer::Andn,
        (0x14, _) | (0x15, Immediate) => Integer::Ror,
        (0x15, _) => Integer::Rol,
        _ => return Some((base(funct6, source, vm, vs2)?, source, Extension::Zve64x)),
    };
    Some((operation, source, Extension::Zvkb))
}

fn base(funct6: u32, source: Source, vm: bool, vs2: u32) -> Option<Integer> {
    use Source::{Immediate, Vector};
    Some(match (funct6, source) {
        (0x00, _) => Integer::Add,
        (0x02, _) if source != Immediate => Integer::Sub,
        (0x03, _) if source != Vector => Integer::Rsub,
        (0x09, _) => Integer::And,
        (0x0a, _) => Integer::Or,
        (0x0b, _) => Integer::Xor,
        (0x0e, _) if source != Vector => Integer::SlideUp,
        (0x0f, _) if source != Vector => Integer::SlideDown,
        (0x17, _) if !vm => Integer::Merge,
        (0x17, _) if vs2 == 0 => Integer::Move,
        (0x18, _) => Integer::Equal,
        (0x25, _) => Integer::Sll,
        (0x28, _) => Integer::Srl,
        (0x29, _) => Integer::Sra,
        _ => return None,
    })
}

/// What an instruction of OP-VE does, and which extensions have it. None of them is masked.
pub(super) fn crypto(word: u32) -> Option<(Crypto, &'static [Extension])> {
    const ZVKNED: &[Extension] = &[Extension::Zvkned];
    const ZVKG: &[Extension] = &[Extension::Zvkg];
    const ZVKNH: &[Extension] = &[Extension::Zvknha, Extension::Zvknhb];
    let (funct6, vm, vs1) = (word >> 26, word >> 25 & 1 != 0, field(word, 15, 5));
    let scalar = funct6 == 0x29;
    Some(match (funct6, vs1) {
        _ if !vm => return None,
        (0x28 | 0x29, 0) => (Crypto::DecryptMiddle(scalar), ZVKNED),
        (0x28 | 0x29, 1) => (Crypto::DecryptFinal(scalar), ZVKNED),
        (0x28 | 0x29, 2) => (Crypto::EncryptMiddle(scalar), ZVKNED),
        (0x28 | 0x29, 3) => (Crypto::EncryptFinal(scalar), ZVKNED),
        (0x29, 7) => (Crypto::RoundZero, ZVKNED),
        (0x22, _) => (Crypto::KeyForward1, ZVKNED),
        (0x2a, _) => (Crypto::KeyForward2, ZVKNED),
        (0x28, 0x11) => (Crypto::Multiply, ZVKG),
        (0x2c, _) => (Crypto::Ghash, ZVKG),
        (0x2d, _) => (Crypto::Schedule, ZVKNH),
        (0x2e, _) => (Crypto::CompressHigh, ZVKNH),
        (0x2f, _) => (Crypto::CompressLow, ZVKNH),
        _ => return None,
    })
}
