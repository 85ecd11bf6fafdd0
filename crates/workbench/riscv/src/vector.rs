//! The vector unit of a core of RV64: the part of "V" 1.0 (RISC-V unprivileged ISA, chapter 31; its Zve64x) that
//! routines of cryptography use, with Zvkb, Zvkned, Zvkg, Zvknha and Zvknhb (Cryptography Extensions volume II 1.0).
//!
//! Of Zve64x there are `vsetvli`, `vsetivli`, `vsetvl`; unit-stride loads and stores of 8 to 64 bits, masked or not;
//! `vadd`, `vsub`, `vrsub`, `vand`, `vor`, `vxor`, `vsll`, `vsrl`, `vsra`, `vmseq`, `vmerge`, `vmv.v.*`, `vmv.x.s`,
//! `vmv.s.x`, `vid`, `vslideup`, `vslidedown`. Everything else of it is an illegal instruction.
//!
//! Where the specification leaves a choice: ELEN is 64; `vl` is the smaller of AVL and VLMAX; tail and masked-off
//! elements are undisturbed whatever `vta` and `vma` say; an instruction of arithmetic with a `vstart` that is not 0
//! is illegal, as no such one ever leaves it so (31.3.7); a reserved `vtype` sets `vill`. Left out: `mstatus.VS` is
//! not looked at, and vector instructions are always on.

mod crypto;
pub(crate) mod decode;
mod integer;

use crate::decode::{Extension, Isa, VLEN};
use crate::fault::FaultKind;
use crate::instruction::{Instruction, Op};
use crate::memory::{Memory, unmapped};
use crate::word::Word;

/// `vtype` while no configuration is valid: `vill`.
const VILL: u64 = 1 << 63;

/// Registers and configuration.
#[derive(Clone, Debug)]
pub(crate) struct Vector {
    /// 32 registers one after the other, so that a group is one stretch.
    registers: Vec<u8>,
    /// Bytes of a register.
    vlenb: usize,
    /// Whether SHA-512 is there too.
    sha512: bool,
    vtype: u64,
    vl: usize,
    vstart: usize,
    shape: Option<Shape>,
}

/// What a valid `vtype` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// log2 of an element's bytes.
    sew: u32,
    /// log2 of the registers of a group.
    lmul: i32,
    /// Elements of a group.
    vlmax: usize,
}

impl Vector {
    pub(crate) fn new(isa: &Isa) -> Vector {
        let there = isa.has(Extension::Zve64x);
        assert!(VLEN.contains(&isa.vlen), "a vector register has {VLEN:?} bits, not {}", isa.vlen);
        let vlenb = if there { isa.vlen as usize / 8 } else { 0 };
        let sha512 = isa.has(Extension::Zvknhb);
        Vector { registers: vec![0; 32 * vlenb], vlenb, sha512, vtype: VILL, vl: 0, vstart: 0, shape: None }
    }

    /// Executes an instruction with these scalar sources; the answer goes into its rd. What its time depends on goes
    /// into `trace`: of a load or store the address and bytes, of others but `vset*` the bytes of the elements.
    pub(crate) fn execute(
        &mut self,
        one: Instruction,
        [a, b]: [u64; 2],
        memory: &mut Memory,
        trace: &mut Vec<u32>,
    ) -> Result<u64, FaultKind> {
        let word = one.imm as u32;
        if one.op == Op::Vset {
            return Ok(self.configure(word, a, b));
        }
        let illegal = FaultKind::Illegal { word };
        let shape = self.shape.ok_or(illegal)?;
        let answer = match one.op {
            Op::Vload | Op::Vstore => {
                self.transfer(word, shape, a, memory, trace, one.op == Op::Vstore)?;
                0
            }
            Op::Vcrypto => self.crypto(word, shape).ok_or(illegal)?,
            _ => self.integer(word, shape, a).ok_or(illegal)?,
        };
        if matches!(one.op, Op::Vcompute | Op::Vcrypto) {
            trace.push((self.vl << shape.sew) as u32);
        }
        self.vstart = 0;
        Ok(answer)
    }

    /// `vsetvli`, `vsetivli`, `vsetvl` (31.6): the new `vl`.
    fn configure(&mut self, word: u32, a: u64, b: u64) -> u64 {
        let field = |from: u32, bits: u32| u64::from(word >> from & ((1 << bits) - 1));
        let (rd, rs1) = (field(7, 5), field(15, 5));
        let (vtype, avl) = match word >> 30 {
            0 | 1 => (field(20, 11), (rs1 != 0).then_some(a)),
            2 => (b, (rs1 != 0).then_some(a)),
            _ => (field(20, 10), Some(rs1)),
        };
        let keeps = avl.is_none() && rd == 0;
        if vtype != self.vtype {
            let before = self.shape.map_or(0, |one| one.vlmax);
            // `vl` may be kept if VLMAX is.
            self.shape = self.shape_of(vtype).filter(|one| !keeps || one.vlmax == before);
            self.vtype = if self.shape.is_some() { vtype } else { VILL };
        }
        let vlmax = self.shape.map_or(0, |one| one.vlmax);
        self.vl = match avl {
            Some(avl) => avl.min(vlmax as u64) as usize,
            None if keeps => self.vl.min(vlmax),
            None => vlmax,
        };
        self.vstart = 0;
        self.vl as u64
    }

    /// What a `vtype` means (31.3.4); `None` if it is reserved, or there are no elements so wide in such a group.
    fn shape_of(&self, vtype: u64) -> Option<Shape> {
        let (lmul, sew) = ((vtype & 7) as i32, (vtype >> 3 & 7) as u32);
        let lmul = if lmul < 4 { lmul } else { lmul - 8 };
        if vtype >> 8 != 0 || lmul == -4 || sew as i32 > 3 + lmul.min(0) {
            return None;
        }
        Some(Shape { sew, lmul, vlmax: scaled(self.vlenb, lmul) >> sew })
    }

    /// `vle<eew>.v` and `vse<eew>.v` (31.7.4).
    fn transfer(
        &mut self,
        word: u32,
        shape: Shape,
        base: u64,
        memory: &mut Memory,
        trace: &mut Vec<u32>,
        store: bool,
    ) -> Result<(), FaultKind> {
        let (register, eew) = ((word >> 7 & 31) as usize, decode::width(word));
        let masked = word >> 25 & 1 == 0;
        let emul = shape.lmul + eew as i32 - shape.sew as i32;
        if !(-3..=3).contains(&emul) || !aligned(register, emul) || (masked && register == 0 && !store) {
            return Err(FaultKind::Illegal { word });
        }
        let size = 1 << eew;
        for at in self.vstart..self.vl {
            if masked && !self.mask(at) {
                continue;
            }
            // Where a fault leaves it (31.3.7).
            self.vstart = at;
            let address = base.wrapping_add((at << eew) as u64);
            let place = address.address().ok_or(unmapped(address, store))?;
            memory.aligned(place, size as u32)?;
            let memory = memory.slice_mut(place, size).ok_or(unmapped(address, store))?;
            let from = register * self.vlenb + (at << eew);
            let element = &mut self.registers[from..from + size];
            if store {
                memory.copy_from_slice(element);
            } else {
                element.copy_from_slice(memory);
            }
        }
        trace.extend([base.low(), (self.vl << eew) as u32]);
        Ok(())
    }

    /// An element of a group, without sign.
    fn element(&self, register: usize, at: usize, sew: u32) -> u64 {
        let from = register * self.vlenb + (at << sew);
        let mut bytes = [0; 8];
        bytes[..1 << sew].copy_from_slice(&self.registers[from..from + (1 << sew)]);
        u64::from_le_bytes(bytes)
    }

    fn set_element(&mut self, register: usize, at: usize, sew: u32, value: u64) {
        let from = register * self.vlenb + (at << sew);
        self.registers[from..from + (1 << sew)].copy_from_slice(&value.to_le_bytes()[..1 << sew]);
    }

    /// A bit of the mask in v0.
    fn mask(&self, at: usize) -> bool {
        self.registers[at / 8] >> (at % 8) & 1 != 0
    }

    /// What a control and status register of vectors holds (31.3); there is no fixed point.
    pub(crate) fn csr(&self, number: u16) -> Option<u64> {
        Some(match number {
            _ if self.vlenb == 0 => return None,
            0x008 => self.vstart as u64,
            0xc20 => self.vl as u64,
            0xc21 => self.vtype,
            0xc22 => self.vlenb as u64,
            _ => return None,
        })
    }

    /// Writes `vstart`, which keeps log2(VLEN) bits; returns whether the CSR is writable.
    pub(crate) fn set_csr(&mut self, number: u16, value: u64) -> bool {
        let there = self.vlenb != 0 && number == 0x008;
        if there {
            self.vstart = value as usize & (8 * self.vlenb - 1);
        }
        there
    }
}

/// So many bytes times or divided by a power of two.
fn scaled(bytes: usize, lmul: i32) -> usize {
    if lmul < 0 { bytes >> -lmul } else { bytes << lmul }
}

/// Whether a register may be the first of a group.
fn aligned(register: usize, lmul: i32) -> bool {
    lmul <= 0 || register & ((1 << lmul) - 1) == 0
}
