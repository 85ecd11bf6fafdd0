//! Custom instructions, in Rust or from a file.
//!
//! A file declares custom registers, tables and instructions:
//!
//! ```toml
//! [[register]]
//! name = "acc"
//! bits = 64                  # 1 to 64; default 32
//! count = 1                  # from 2 on it is an array: acc[i]
//! [[table]]
//! name = "sbox"
//! values = [0x63, 0x7c]      # or made = "aes-sbox" | "aes-inverse-sbox" | "aes-encrypt" | "aes-decrypt"
//! [[instruction]]
//! name = "add64"
//! opcode = "custom-0"        # custom-0 to custom-3
//! funct3 = 0
//! funct7 = 0                 # or [0, 63]: `i` is which
//! latency = 1                # cycles
//! words = 0                  # loaded from rs1 on: word[0], ...
//! gates = 900                # for the estimate of area
//! semantics = "acc = acc + (rs1 & 0xffff) + (rs1 >> 16)"
//! ```
//!
//! What `semantics` may say is in [`language`].

mod builtin;
mod file;
pub mod language;

use std::path::Path;

use forebay_diagnostics::FileErrors;
use forebay_riscv::Custom;

pub use builtin::{ipsec, ipsec_keys};

/// The same as the built-in instructions, as a file: to begin one's own with.
pub const IPSEC_FILE: &str = include_str!("../data/ipsec.toml");

/// Custom instructions and what they cost.
#[derive(Clone, Debug, Default)]
pub struct Instructions {
    /// For the core.
    pub custom: Custom,
    /// Gate equivalents of each, in the same order, and of the registers that they share.
    pub gates: Vec<(String, f64)>,
}

impl Instructions {
    /// Reads a file.
    ///
    /// # Errors
    /// All that is wrong with it: encodings that clash, semantics that cannot be.
    pub fn load(path: &Path) -> Result<Instructions, FileErrors> {
        Instructions::parse(&forebay_scenario::load(path)?, &path.display().to_string())
    }

    /// Reads `text`, calling it `name` in errors.
    ///
    /// # Errors
    /// As [`Instructions::load`].
    pub fn parse(text: &str, name: &str) -> Result<Instructions, FileErrors> {
        forebay_scenario::read(text, name, &[], file::instructions)
    }
}
