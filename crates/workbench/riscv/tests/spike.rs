//! Instructions of RV64, of vectors and of vector cryptography with random operands, against what Spike, the RISC-V
//! reference simulator, has made of them: registers, memory, `vl`, `vtype`, `vstart`, or the exception.
//! `tests/data/README.md` says how the answers are made anew.

#[path = "support/cases.rs"]
mod cases;

use std::collections::HashSet;
use std::path::Path;

use cases::{Case, Kind, SETS, Set};
use forebay_riscv::{Class, Instruction, Op, decode};

/// Every scalar instruction of RV64 that computes, loads, stores, branches or jumps.
#[rustfmt::skip]
const SCALAR: [Op; 108] = {
    use Op::*;
    [
        Lui, Addi, Slti, Sltiu, Xori, Ori, Andi, Slli, Srli, Srai, Add, Sub, Sll, Slt, Sltu, Xor, Srl, Sra, Or, And,
        Mul, Mulh, Mulhsu, Mulhu, Div, Divu, Rem, Remu, Lb, Lh, Lw, Lbu, Lhu, Sb, Sh, Sw, Andn, Orn, Xnor, Rol, Ror,
        Rori, Clz, Ctz, Cpop, Max, Maxu, Min, Minu, Sextb, Sexth, Orcb, Rev8, Brev8, Pack, Packh, Clmul, Clmulh, Xperm4,
        Xperm8, Sha256sig0, Sha256sig1, Sha256sum0, Sha256sum1, Addiw, Slliw, Srliw, Sraiw, Addw, Subw, Sllw, Srlw,
        Sraw, Mulw, Divw, Divuw, Remw, Remuw, Lwu, Ld, Sd, Rolw, Rorw, Roriw, Clzw, Ctzw, Cpopw, Packw, Aes64es,
        Aes64esm, Aes64ds, Aes64dsm, Aes64im, Aes64ks1i, Aes64ks2, Sha512sig0, Sha512sig1, Sha512sum0, Sha512sum1,
        Auipc, Beq, Bne, Blt, Bge, Bltu, Bgeu, Jal, Jalr,
    ]
};

/// Cases and answers of a set, once each answer is found to be Spike's.
fn compared(set: &Set) -> Vec<(Case, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/spike/{}.fnv", set.name));
    let kept = std::fs::read(path).unwrap();
    let kept: Vec<u32> =
        kept.chunks_exact(4).map(|one| u32::from_le_bytes(one.try_into().unwrap())).collect();
    let (cases, answers) = cases::answers(set);
    assert_eq!(kept.len(), cases.len(), "{}", set.name);
    for ((case, answer), kept) in cases.iter().zip(&answers).zip(kept) {
        assert_eq!(cases::digest(answer), kept, "{}: {case:x?}, cause {}", set.name, cause(answer));
    }
    cases.into_iter().zip(answers).collect()
}

/// The exception; 64: none; 0: the instruction has jumped over what writes this down.
fn cause(answer: &[u8]) -> u64 {
    u64::from_le_bytes(answer[..8].try_into().unwrap())
}

/// The cases that ran without an exception.
fn executed(kind: Kind) -> Vec<Case> {
    let mut all = Vec::new();
    for set in SETS.iter().filter(|set| set.kind == kind) {
        let compared = compared(set);
        let count = compared.len();
        let ran: Vec<Case> = compared
            .into_iter()
            .filter(|(_, answer)| matches!(cause(answer), 0 | 64))
            .map(|(case, _)| case)
            .collect();
        // Neither all legal nor all illegal.
        let share = ran.len() as f64 / count as f64;
        assert!((0.2..0.95).contains(&share), "{}: {share}", set.name);
        all.extend(ran);
    }
    all
}

#[test]
fn scalar_instructions_leave_what_spike_leaves() {
    let decoded = executed(Kind::Scalar)
        .into_iter()
        .filter_map(|case| decode(case.word, cases::BASE, &cases::isa(128)));
    let seen: HashSet<Op> = decoded
        .filter(|one: &Instruction| one.rd == 12 || matches!(one.op.class(), Class::Store | Class::Branch))
        .map(|one| one.op)
        .collect();
    let missed: Vec<Op> = SCALAR.into_iter().filter(|op| !seen.contains(op)).collect();
    assert!(missed.is_empty(), "never drawn: {missed:?}");
}

/// What tells instructions apart: opcode, funct6 and funct3, and the fields of registers that are part of the opcode.
fn encodings(kind: Kind) -> HashSet<(u32, u32, u32, u32)> {
    let key = |case: Case| {
        let (opcode, funct3, vs1) = (case.word & 0x7f, case.word >> 12 & 7, case.word >> 15 & 31);
        let funct6 = case.word >> 26;
        match (opcode, funct3) {
            (0x57, 7) => (opcode, case.word >> 30, funct3, 0),
            (0x57, 2) | (0x77, _) if matches!(funct6, 0x10 | 0x12 | 0x14 | 0x28 | 0x29) => {
                (opcode, funct6, funct3, vs1)
            }
            (0x07 | 0x27, _) => (opcode, 0, funct3, 0),
            _ => (opcode, funct6, funct3, 0),
        }
    };
    executed(kind).into_iter().map(key).collect()
}

#[test]
fn vector_instructions_leave_what_spike_leaves() {
    // Four loads, four stores, `vset*` in four encodings, and 48 of OP-V: `vror.vi` has two, `vmv.v` is a `vmerge`.
    let found = encodings(Kind::Vector);
    assert_eq!(found.len(), 60, "{found:x?}");
}

#[test]
fn vector_cryptography_leaves_what_spike_leaves() {
    // Eleven of Zvkned, two of Zvkg, three of Zvknh.
    let found = encodings(Kind::Crypto);
    assert_eq!(found.len(), 16, "{found:x?}");
}
