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
//! hardware = "add64"         # in the place of gates: a module of hardware/ that was synthesized
//! steps = 1                  # how often the instruction goes through it
//! semantics = "acc = acc + (rs1 & 0xffff) + (rs1 >> 16)"
//! ```
//!
//! What `semantics` may say is in [`language`].

mod builtin;
mod file;
pub mod language;

use std::path::Path;

use forebay_diagnostics::FileErrors;
use forebay_riscv::{Custom, Definition};

use crate::area::Source;
use crate::hardware::Module;

pub use builtin::{ipsec, ipsec_keys};

/// The same as the built-in instructions, as a file: to begin one's own with.
pub const IPSEC_FILE: &str = include_str!("../data/ipsec.toml");

/// What one instruction, or registers that they share, take.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Of what.
    pub name: String,
    /// Gate equivalents.
    pub gates: f64,
    /// Where they are from.
    pub source: Source,
}

impl Cost {
    pub(crate) fn new(name: &str, gates: f64, source: Source) -> Cost {
        Cost { name: name.to_owned(), gates, source }
    }
}

/// The synthesized module of an instruction, which goes through it once or several times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Datapath {
    /// The module.
    pub module: &'static Module,
    /// Times that an instruction passes it, one after the other.
    pub steps: u32,
}

/// Custom instructions and what they cost.
#[derive(Clone, Debug, Default)]
pub struct Instructions {
    /// For the core.
    pub custom: Custom,
    /// Of each, in the same order, and of the registers that they share. A module is counted where it stands first.
    pub costs: Vec<Cost>,
    /// Of each, in the same order, where its hardware was synthesized.
    pub datapaths: Vec<Option<Datapath>>,
}

impl Instructions {
    /// The longest path that has to fit into one cycle, and whose it is: an instruction that takes more cycles than it has
    /// steps may take as many for each; one that takes fewer goes several steps in a cycle.
    pub fn longest_path(&self) -> Option<(&str, f64)> {
        let each = self.custom.definitions().iter().zip(&self.datapaths);
        let path = each.filter_map(|(one, datapath)| {
            let Datapath { module, steps } = (*datapath)?;
            let (cycles, passes) = ((one.latency / steps).max(1), steps.div_ceil(one.latency.max(1)));
            Some((one.name.as_str(), module.ns * f64::from(passes) / f64::from(cycles)))
        });
        path.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The same, each with the cycles that its path needs at this cycle time in ns, if it has fewer.
    #[must_use]
    pub fn fitted(&self, cycle: f64) -> Instructions {
        let fit = |(one, datapath): (&Definition, &Option<Datapath>)| {
            let needed = datapath.map_or(1, |Datapath { module, steps }| {
                // A rounded figure is not to cost a cycle.
                steps * ((module.ns / cycle - 1e-6).ceil() as u32).max(1)
            });
            Definition { latency: one.latency.max(needed), ..one.clone() }
        };
        let definitions = self.custom.definitions().iter().zip(&self.datapaths).map(fit).collect();
        let custom =
            Custom::new(definitions, self.custom.registers()).expect("their encodings are as before");
        Instructions { custom, ..self.clone() }
    }

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
