//! Integers, moves, permutations and bits (RISC-V unprivileged ISA 31.11, 31.15, 31.16; Zvkb: Cryptography Extensions
//! volume II, 2.6).

use super::decode::{Integer, Source, integer};
use super::{Shape, Vector, aligned};

impl Vector {
    /// An instruction of OP-V: what its rd gets, or `None` if it is illegal with this `vtype` and `vstart`.
    pub(super) fn integer(&mut self, word: u32, shape: Shape, scalar: u64) -> Option<u64> {
        let (operation, source, _) = integer(word)?;
        let (vd, vs1, vs2) =
            ((word >> 7 & 31) as usize, (word >> 15 & 31) as usize, (word >> 20 & 31) as usize);
        let masked = word >> 25 & 1 == 0;
        let Shape { sew, lmul, vlmax } = shape;
        if self.vstart != 0 {
            return None;
        }
        match operation {
            Integer::ToScalar => {
                let unused = 64 - (8 << sew);
                return Some(((self.element(vs2, 0, sew) << unused) as i64 >> unused) as u64);
            }
            Integer::FromScalar => {
                if self.vl > 0 {
                    self.set_element(vd, 0, sew, scalar);
                }
                return Some(0);
            }
            _ => {}
        }
        let has_vs1 = source == Source::Vector && !one_source(operation);
        let apart =
            |register: usize| vd == register || !(register..register + (1 << lmul.max(0))).contains(&vd);
        let legal = match operation {
            // Its destination is a mask, of one register.
            Integer::Equal => apart(vs2) && (!has_vs1 || apart(vs1)),
            Integer::SlideUp => vd != vs2 && aligned(vd, lmul) && !(masked && vd == 0),
            _ => aligned(vd, lmul) && !(masked && vd == 0),
        };
        if !legal || !aligned(vs2, lmul) || (has_vs1 && !aligned(vs1, lmul)) {
            return None;
        }
        let fixed = match source {
            Source::Scalar => scalar,
            // The sixth bit of a rotation is the lowest of funct6.
            Source::Immediate if operation == Integer::Ror => vs1 as u64 | u64::from(word >> 26 & 1) << 5,
            Source::Immediate if takes_unsigned(operation) => vs1 as u64,
            _ => (((vs1 as i64) << 59) >> 59) as u64,
        };
        for at in 0..self.vl {
            let chosen = self.mask(at);
            if masked && !chosen && operation != Integer::Merge {
                continue;
            }
            let b = if has_vs1 { self.element(vs1, at, sew) } else { fixed };
            let value = match operation {
                Integer::SlideUp => match (at as u64).checked_sub(fixed) {
                    Some(from) => self.element(vs2, from as usize, sew),
                    None => continue,
                },
                Integer::SlideDown => match fixed.checked_add(at as u64) {
                    Some(from) if from < vlmax as u64 => self.element(vs2, from as usize, sew),
                    _ => 0,
                },
                Integer::Index => at as u64,
                Integer::Move => b,
                Integer::Merge if chosen => b,
                Integer::Merge => self.element(vs2, at, sew),
                Integer::Equal => {
                    let equal = self.element(vs2, at, sew) == truncated(b, sew);
                    let byte = &mut self.registers[vd * self.vlenb + at / 8];
                    *byte = *byte & !(1 << (at % 8)) | u8::from(equal) << (at % 8);
                    continue;
                }
                _ => computed(operation, self.element(vs2, at, sew), b, sew),
            };
            self.set_element(vd, at, sew, value);
        }
        Some(0)
    }
}

/// Instructions whose field of vs1 is part of the opcode.
fn one_source(operation: Integer) -> bool {
    matches!(operation, Integer::Rev8 | Integer::Brev8 | Integer::Index)
}

/// Immediates without sign: amounts of shifts and slides.
fn takes_unsigned(operation: Integer) -> bool {
    use Integer::*;
    matches!(operation, Sll | Srl | Sra | SlideUp | SlideDown)
}

fn truncated(value: u64, sew: u32) -> u64 {
    value & (u64::MAX >> (64 - (8 << sew)))
}

/// One element from those of vs2 and of the second operand; bits above the element are not looked at afterwards.
fn computed(operation: Integer, a: u64, b: u64, sew: u32) -> u64 {
    let bits = 8 << sew;
    let by = b as u32 & (bits - 1);
    let rotated = |left: u32| if left == 0 { a } else { a << left | a >> (bits - left) };
    match operation {
        Integer::Add => a.wrapping_add(b),
        Integer::Sub => a.wrapping_sub(b),
        Integer::Rsub => b.wrapping_sub(a),
        Integer::And => a & b,
        Integer::Or => a | b,
        Integer::Xor => a ^ b,
        Integer::Andn => a & !b,
        Integer::Sll => a << by,
        Integer::Srl => a >> by,
        Integer::Sra => ((a << (64 - bits)) as i64 >> (64 - bits) >> by) as u64,
        Integer::Rol => rotated(by),
        Integer::Ror => rotated((bits - by) & (bits - 1)),
        Integer::Rev8 => a.swap_bytes() >> (64 - bits),
        _ => u64::from_le_bytes(a.to_le_bytes().map(u8::reverse_bits)),
    }
}
