//! Custom instructions: encodings that are given a meaning.

use std::fmt;
use std::sync::Arc;

/// The four major opcodes that the ISA leaves to everybody.
const OPCODES: [(&str, u32); 4] =
    [("custom-0", 0x0b), ("custom-1", 0x2b), ("custom-2", 0x5b), ("custom-3", 0x7b)];

/// What a custom instruction is given.
pub struct CustomCall<'a> {
    /// First source register.
    pub rs1: u32,
    /// Second source register.
    pub rs2: u32,
    /// funct7, for instructions that are defined for all of them.
    pub selector: u32,
    /// The words loaded from `rs1` on, as many as [`Definition::words`] says.
    pub words: &'a [u32],
    /// All custom registers of the core.
    pub registers: &'a mut [u64],
}

/// What a custom instruction computes.
pub trait Semantics: Send + Sync {
    /// Computes; the answer goes into `rd`.
    fn execute(&self, call: &mut CustomCall<'_>) -> u32;
}

impl<F: Fn(&mut CustomCall<'_>) -> u32 + Send + Sync> Semantics for F {
    fn execute(&self, call: &mut CustomCall<'_>) -> u32 {
        self(call)
    }
}

/// A custom instruction of R-type.
#[derive(Clone)]
pub struct Definition {
    /// Its name in reports.
    pub name: String,
    /// The major opcode, seven bits.
    pub opcode: u32,
    /// funct3.
    pub funct3: u32,
    /// The values of funct7 that it has, from, to.
    pub funct7: (u32, u32),
    /// Cycles from issue to the next instruction's.
    pub latency: u32,
    /// How many words it loads from `rs1` on, through the data cache.
    pub words: u32,
    /// What it computes.
    pub semantics: Arc<dyn Semantics>,
}

/// Two definitions for the same bits, or one for bits that are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The later of the two in the list.
    pub later: usize,
    /// The earlier one; `None`: the bits are not free for custom instructions, or out of range.
    pub earlier: Option<usize>,
}

/// The custom instructions and registers of a core.
#[derive(Clone, Default)]
pub struct Custom {
    definitions: Arc<[Definition]>,
    registers: usize,
}

/// Words that an instruction may load.
pub(crate) const WORDS_MAX: usize = 16;

impl Custom {
    /// A core's custom instructions, and how many registers of 64 bits they share.
    ///
    /// # Errors
    /// The first clash.
    pub fn new(definitions: Vec<Definition>, registers: usize) -> Result<Custom, Clash> {
        for (later, one) in definitions.iter().enumerate() {
            let free = OPCODES.iter().any(|&(_, opcode)| opcode == one.opcode);
            let (from, to) = one.funct7;
            if !free || one.funct3 > 7 || from > to || to > 127 || one.words as usize > WORDS_MAX {
                return Err(Clash { later, earlier: None });
            }
            let same = |other: &Definition| {
                other.opcode == one.opcode
                    && other.funct3 == one.funct3
                    && other.funct7.0 <= to
                    && from <= other.funct7.1
            };
            if let Some(earlier) = definitions[..later].iter().position(same) {
                return Err(Clash { later, earlier: Some(earlier) });
            }
        }
        Ok(Custom { definitions: definitions.into(), registers })
    }

    /// The number of an opcode that is written `custom-0`.
    pub fn opcode(name: &str) -> Option<u32> {
        OPCODES.iter().find(|(known, _)| *known == name).map(|&(_, opcode)| opcode)
    }

    /// The words that [`Custom::opcode`] accepts.
    pub fn opcode_names() -> [&'static str; 4] {
        OPCODES.map(|(name, _)| name)
    }

    /// All instructions.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// How many registers they share.
    pub fn registers(&self) -> usize {
        self.registers
    }

    /// The definition that a word is of.
    pub(crate) fn find(&self, word: u32) -> Option<usize> {
        let (opcode, funct3, funct7) = (word & 0x7f, word >> 12 & 7, word >> 25);
        self.definitions.iter().position(|one| {
            one.opcode == opcode && one.funct3 == funct3 && (one.funct7.0..=one.funct7.1).contains(&funct7)
        })
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.definitions.iter().map(|one| &one.name)).finish()
    }
}
