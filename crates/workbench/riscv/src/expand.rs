//! Compressed instructions (RISC-V unprivileged ISA, chapter "C") as the full ones that they stand for.

use crate::word::Xlen;

/// The 32-bit instruction that a compressed one stands for; `None` if it is reserved, or of floating point.
pub fn expand(half: u16, xlen: Xlen) -> Option<u32> {
    let wide = xlen == Xlen::Rv64;
    let c = u32::from(half);
    let bit = |from: u32, to: u32| ((c >> from) & 1) << to;
    let bits = |from: u32, count: u32, to: u32| ((c >> from) & ((1 << count) - 1)) << to;
    let sign = |from: u32, to: u32| 0_u32.wrapping_sub((c >> from) & 1) << to;
    let full = (c >> 7) & 31; // rd, rs1
    let second = (c >> 2) & 31; // rs2
    let upper = 8 + ((c >> 7) & 7); // rd', rs1' in bits 9..7
    let lower = 8 + ((c >> 2) & 7); // rd', rs2' in bits 4..2
    let imm6 = sign(12, 5) | bits(2, 5, 0);
    let shift = bit(12, 5) | bits(2, 5, 0);
    let jump = sign(12, 11)
        | bit(11, 4)
        | bits(9, 2, 8)
        | bit(8, 10)
        | bit(7, 6)
        | bit(6, 7)
        | bits(3, 3, 1)
        | bit(2, 5);
    let branch = sign(12, 8) | bits(10, 2, 3) | bits(5, 2, 6) | bits(3, 2, 1) | bit(2, 5);
    Some(match (c & 3, c >> 13) {
        (0, 0) => {
            let imm = bits(11, 2, 4) | bits(7, 4, 6) | bit(6, 2) | bit(5, 3);
            // All zeros is illegal by definition, and so is every other immediate of zero.
            (imm != 0).then(|| i(0x13, 0, lower, 2, imm))?
        }
        (0, 2) => i(0x03, 2, lower, upper, bits(10, 3, 3) | bit(6, 2) | bit(5, 6)),
        (0, 3) if wide => i(0x03, 3, lower, upper, bits(10, 3, 3) | bits(5, 2, 6)),
        (0, 7) if wide => s(3, upper, lower, bits(10, 3, 3) | bits(5, 2, 6)),
        (0, 6) => s(2, upper, lower, bits(10, 3, 3) | bit(6, 2) | bit(5, 6)),
        (1, 0) => i(0x13, 0, full, full, imm6),
        (1, 1) if wide => (full != 0).then(|| i(0x1b, 0, full, full, imm6))?,
        (1, 1) => jal(1, jump),
        (1, 2) => i(0x13, 0, full, 0, imm6),
        (1, 3) if full == 2 => {
            let imm = sign(12, 9) | bit(6, 4) | bit(5, 6) | bits(3, 2, 7) | bit(2, 5);
            (imm != 0).then(|| i(0x13, 0, 2, 2, imm))?
        }
        (1, 3) => (imm6 != 0).then_some((imm6 << 12) | (full << 7) | 0x37)?,
        (1, 4) => match (c >> 10) & 3 {
            0 => (shift < xlen.bits()).then(|| i(0x13, 5, upper, upper, shift))?,
            1 => (shift < xlen.bits()).then(|| i(0x13, 5, upper, upper, 0x400 | shift))?,
            2 => i(0x13, 7, upper, upper, imm6),
            _ => match (c >> 12 & 1, c >> 5 & 3) {
                (0, 0) => r(0x20, 0, upper, upper, lower),
                (0, 1) => r(0, 4, upper, upper, lower),
                (0, 2) => r(0, 6, upper, upper, lower),
                (0, _) => r(0, 7, upper, upper, lower),
                (_, 0) if wide => r(0x20, 0, upper, upper, lower) | 8,
                (_, 1) if wide => r(0, 0, upper, upper, lower) | 8,
                _ => return None,
            },
        },
        (1, 5) => jal(0, jump),
        (1, 6) => b(0, upper, branch),
        (1, 7) => b(1, upper, branch),
        (2, 0) => (shift < xlen.bits()).then(|| i(0x13, 1, full, full, shift))?,
        (2, 2) => (full != 0).then(|| i(0x03, 2, full, 2, bit(12, 5) | bits(4, 3, 2) | bits(2, 2, 6)))?,
        (2, 3) if wide => {
            (full != 0).then(|| i(0x03, 3, full, 2, bit(12, 5) | bits(5, 2, 3) | bits(2, 3, 6)))?
        }
        (2, 7) if wide => s(3, 2, second, bits(10, 3, 3) | bits(7, 3, 6)),
        (2, 4) => match (c >> 12 & 1, full, second) {
            (0, 0, 0) => return None,
            (0, _, 0) => i(0x67, 0, 0, full, 0),
            (0, ..) => r(0, 0, full, 0, second),
            (_, 0, 0) => 0x0010_0073,
            (_, _, 0) => i(0x67, 0, 1, full, 0),
            _ => r(0, 0, full, full, second),
        },
        (2, 6) => s(2, 2, second, bits(9, 4, 2) | bits(7, 2, 6)),
        _ => return None,
    })
}

fn r(funct7: u32, funct3: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    (funct7 << 25) | (rs2 << 20) | (rs1 << 15) | (funct3 << 12) | (rd << 7) | 0x33
}

fn i(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: u32) -> u32 {
    (imm << 20) | (rs1 << 15) | (funct3 << 12) | (rd << 7) | opcode
}

fn s(funct3: u32, rs1: u32, rs2: u32, imm: u32) -> u32 {
    ((imm >> 5) << 25) | (rs2 << 20) | (rs1 << 15) | (funct3 << 12) | ((imm & 31) << 7) | 0x23
}

fn b(funct3: u32, rs1: u32, imm: u32) -> u32 {
    let upper = ((imm >> 12) & 1) << 31 | ((imm >> 5) & 63) << 25;
    upper | (rs1 << 15) | (funct3 << 12) | ((imm >> 1) & 15) << 8 | ((imm >> 11) & 1) << 7 | 0x63
}

fn jal(rd: u32, imm: u32) -> u32 {
    let upper = ((imm >> 20) & 1) << 31 | ((imm >> 1) & 0x3ff) << 21;
    upper | ((imm >> 11) & 1) << 20 | ((imm >> 12) & 0xff) << 12 | (rd << 7) | 0x6f
}
