//! Configuration files of cores (`model = "embedded"`).
//!
//! [`PARTS`](crate::schema::PARTS) says every key; `docs/reference/embedded.md` is made from it.

mod read;

use std::path::{Path, PathBuf};

use forebay_diagnostics::FileErrors;
use forebay_riscv::{Config, Custom, Extension, Isa, Xlen};
use serde_json::{Value as Json, json};

use crate::energy::Costs;
use crate::instructions::{self, Instructions};

/// A core, its firmware and what that is given.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The executable.
    pub firmware: PathBuf,
    /// Which functions belong together; `None`: as built in.
    pub functions: Option<PathBuf>,
    /// Instructions that may run.
    pub limit: u64,
    /// What the firmware is given.
    pub input: Input,
    /// Width of the registers.
    pub xlen: Xlen,
    /// Bits of a vector register.
    pub vlen: u32,
    /// Parts of the instruction set.
    pub extensions: Vec<(&'static str, Extension)>,
    /// Custom instructions.
    pub instructions: InstructionSource,
    /// The clock frequency that is asked for, in Hz.
    pub clock: Option<u64>,
    /// What becomes of instructions whose path is longer than a cycle.
    pub long_paths: LongPaths,
    /// Pipeline, caches, write buffer and memory.
    pub config: Config,
    /// What its parts take of energy.
    pub energy: Costs,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
    /// The file with every default filled in.
    pub resolved: Json,
}

/// What the firmware is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Nothing.
    Nothing,
    /// A ready-made image.
    Image(PathBuf),
    /// Packets and what to do with them.
    Packets {
        /// A capture.
        capture: PathBuf,
        /// The SAs.
        sas: SasSource,
        /// Packets at most.
        packets: u64,
        /// Whether they are protected, and have to be opened.
        inbound: bool,
        /// Whether TCP and UDP checksums are the firmware's work, as at an end of a connection.
        checksums: bool,
    },
}

/// Where SAs come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SasSource {
    /// An SAs file.
    File(PathBuf),
    /// The text of one.
    Text(String),
}

/// What becomes of custom instructions whose path is longer than a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LongPaths {
    /// They lower the clock.
    Clock,
    /// They take more cycles.
    Latency,
}

/// Where custom instructions come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InstructionSource {
    /// There are none.
    None,
    /// Those of the paper, built in.
    Ipsec,
    /// The same with round keys in custom registers, built in.
    IpsecKeys,
    /// A file.
    File(PathBuf),
}

impl Setup {
    /// Reads a file. `sets` are what `--set` was given.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn load(path: &Path, sets: &[String]) -> Result<Setup, FileErrors> {
        let folder = path.parent().unwrap_or(Path::new(""));
        Setup::parse(&forebay_scenario::load(path)?, &path.display().to_string(), folder, sets)
    }

    /// Reads `text`, calling it `name` in errors; paths in it begin at `folder`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(text: &str, name: &str, folder: &Path, sets: &[String]) -> Result<Setup, FileErrors> {
        forebay_scenario::read(text, name, sets, |table, findings| read::setup(table, folder, findings))
    }

    /// The file with every default filled in, as TOML.
    pub fn resolved_toml(&self) -> String {
        let mut out = String::new();
        for (section, value) in self.resolved.as_object().into_iter().flatten() {
            match value.as_object() {
                None => out.insert_str(0, &format!("{section} = {value}\n")),
                Some(keys) => {
                    out += &format!("\n[{section}]\n");
                    let lines = keys.iter().filter(|(_, value)| !value.is_null());
                    lines.for_each(|(key, value)| out += &format!("{key} = {value}\n"));
                }
            }
        }
        out
    }

    /// Whether the core has an extension.
    pub fn has(&self, extension: Extension) -> bool {
        self.extensions.iter().any(|&(_, one)| one == extension)
    }

    /// The custom instructions.
    ///
    /// # Errors
    /// What is wrong with their file.
    pub fn custom(&self) -> Result<Instructions, FileErrors> {
        match &self.instructions {
            InstructionSource::None => Ok(Instructions::default()),
            InstructionSource::Ipsec => Ok(instructions::ipsec()),
            InstructionSource::IpsecKeys => Ok(instructions::ipsec_keys()),
            InstructionSource::File(path) => Instructions::load(path),
        }
    }

    /// The instruction set with these custom instructions.
    pub fn isa(&self, custom: Custom) -> Isa {
        let base = match self.xlen {
            Xlen::Rv32 => Isa::base(),
            Xlen::Rv64 => Isa::base64(),
        };
        let mut isa = self.extensions.iter().fold(base, |isa, &(_, one)| isa.with(one));
        isa.vlen = self.vlen;
        isa.custom = custom;
        isa
    }

    /// Whether a run of one is a run of the other, but for its cycles.
    pub fn computes_as(&self, other: &Setup) -> bool {
        self.firmware == other.firmware
            && self.limit == other.limit
            && self.input == other.input
            && (self.xlen, self.vlen) == (other.xlen, other.vlen)
            && self.extensions == other.extensions
            && self.instructions == other.instructions
            && (self.clock, self.long_paths) == (other.clock, other.long_paths)
    }

    fn resolve(&mut self) {
        let Config { icache, dcache, .. } = self.config;
        let config = &self.config;
        let cache = |one: forebay_riscv::CacheConfig| {
            let mut json = json!({ "size": one.size, "ways": one.ways, "line": one.line });
            match one.replacement {
                forebay_riscv::Replacement::Lru => json["replacement"] = "lru".into(),
                forebay_riscv::Replacement::Fifo => json["replacement"] = "fifo".into(),
                forebay_riscv::Replacement::Random(seed) => {
                    json["replacement"] = "random".into();
                    json["seed"] = seed.into();
                }
            }
            json
        };
        let mut data = cache(dcache);
        data["policy"] = match config.policy {
            forebay_riscv::Policy::WriteThrough => "write-through".into(),
            forebay_riscv::Policy::WriteBack => "write-back".into(),
        };
        let branches = match config.branches {
            forebay_riscv::Branches::NotTaken => "not-taken",
            forebay_riscv::Branches::Backward => "backward",
        };
        let instructions = match &self.instructions {
            InstructionSource::None => "none".to_owned(),
            InstructionSource::Ipsec => "ipsec".to_owned(),
            InstructionSource::IpsecKeys => "ipsec-keys".to_owned(),
            InstructionSource::File(path) => path.display().to_string(),
        };
        let input = match &self.input {
            Input::Nothing => json!({}),
            Input::Image(path) => json!({ "image": path }),
            Input::Packets { capture, sas, packets, inbound, checksums } => json!({
                "capture": capture,
                "sas": match sas {
                    SasSource::File(path) => path.display().to_string(),
                    SasSource::Text(text) => text.clone(),
                },
                "packets": packets,
                "direction": if *inbound { "in" } else { "out" },
                "checksums": checksums,
            }),
        };
        self.resolved = json!({
            "model": "embedded",
            "firmware": { "path": self.firmware, "functions": self.functions, "instructions": self.limit },
            "input": input,
            "core": {
                "xlen": self.xlen.bits(),
                "extensions": self.extensions.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
                "instructions": instructions,
                "clock": self.clock,
                "long_paths": match self.long_paths {
                    LongPaths::Clock => "clock",
                    LongPaths::Latency => "latency",
                },
                "multiply": config.multiply,
                "divide": config.divide,
                "load_use": config.load_use,
                "branch": config.branch,
                "jump": config.jump,
                "branches": branches,
            },
            "icache": cache(icache),
            "dcache": data,
            "vector": {
                "length": self.vlen,
                "datapath": 8 * config.vector.datapath,
                "aes": config.vector.aes,
                "ghash": config.vector.ghash,
                "sha2": config.vector.sha2,
            },
            "write_buffer": { "slots": config.write_slots },
            "memory": {
                "width": 8 * config.width,
                "latency": config.latency,
                "write_latency": config.write_latency,
                "beat": config.beat,
            },
        });
        let energy = self.energy.given();
        if !energy.is_empty() {
            self.resolved["energy"] = energy.into();
        }
    }
}
