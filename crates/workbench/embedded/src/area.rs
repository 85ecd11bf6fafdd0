//! What options cost: areas in gate equivalents, synthesized (`data/synthesis.toml`) or estimated from published figures
//! (`data/area.toml`), and the clock frequency that the longest path allows.

use std::cell::RefCell;

use forebay_diagnostics::{FileErrors, Findings, Place};
use forebay_riscv::{CacheConfig, Extension, Policy, Replacement, Xlen};
use forebay_scenario::{Section, Table, Unit};
use miette::{Report, miette};
use serde::{Deserialize, Serialize};

use crate::hardware::module;
use crate::instructions::Instructions;
use crate::setup::Setup;

const PUBLISHED: &str = include_str!("../data/area.toml");

/// The synthesized column of an AES round for both directions, of which the units of Zkne and Zknd on RV64 and of Zvkned are made.
const AES_COLUMN: &str = "enc_dec_round-column";

/// Where a figure is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Synthesis of `hardware/`.
    Synthesized,
    /// A published core or memory, named in `data/area.toml`.
    Published,
    /// Counted from areas of cells, as `data/area.toml` explains.
    Counted,
    /// The file of the instructions.
    File,
}

impl Source {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Source::Synthesized => "synthesized",
            Source::Published => "published",
            Source::Counted => "counted",
            Source::File => "file",
        }
    }
}

/// A part of a core and its area.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What.
    pub name: String,
    /// Thousand gate equivalents (areas of a two-input NAND).
    pub kge: f64,
    /// Where that is from.
    pub source: Source,
}

/// The clock of a core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Its frequency in MHz.
    pub mhz: f64,
    /// What limits it: `core`, the name of an instruction, or `asked` where the file says it.
    pub limit: String,
}

/// Cycle time of the core without custom instructions, in ns.
fn core_cycle() -> f64 {
    figures().expect("our own file is right").cycle
}

/// The longest path of the core with its extensions in ns, and whose it is.
fn core_path(setup: &Setup) -> (&'static str, f64) {
    let has = |name: &str| setup.extensions.iter().any(|(one, _)| *one == name);
    // RV64's instructions compute columns.
    let aes = |rv32: &'static str| if setup.xlen == Xlen::Rv64 { AES_COLUMN } else { rv32 };
    let paths = [
        (has("zknd"), "zkne-zknd", aes("zkne-zknd")),
        (has("zkne") && !has("zknd"), "zkne", aes("zkne")),
        (has("zknh"), "zknh", "zknh"),
        (has("zvkned"), "zvkned", AES_COLUMN),
    ];
    let paths = paths
        .into_iter()
        .filter(|(has, ..)| *has)
        .filter_map(|(_, name, hardware)| Some((name, module(hardware)?.ns)));
    paths.chain([("core", core_cycle())]).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("core", core_cycle()))
}

/// The cycle time in ns that custom instructions are to fit: the one asked for, or that of the core with its extensions.
pub fn cycle(setup: &Setup) -> f64 {
    setup.clock.map_or_else(|| core_path(setup).1, |hz| 1e9 / hz as f64)
}

/// The clock that the setup asks for, or the fastest that core and instructions reach.
///
/// # Errors
/// If it is asked for more: what is too slow.
pub fn clock(setup: &Setup, instructions: &Instructions) -> Result<Clock, Report> {
    let mhz = |ns: f64| 1_000.0 / ns;
    let core = core_path(setup);
    let (limit, ns) = instructions.longest_path().filter(|(_, ns)| *ns > core.1).unwrap_or(core);
    let Some(asked) = setup.clock else { return Ok(Clock { mhz: mhz(ns), limit: limit.to_owned() }) };
    let wanted = asked as f64 / 1e6;
    if wanted > mhz(ns) * (1.0 + 1e-6) {
        let help = match limit == core.0 {
            true => "lower `clock` of `[core]`",
            false => {
                "lower `clock` of `[core]`, give the instruction a longer `latency`, or set `long_paths = \"latency\"`"
            }
        };
        return Err(miette!(
            help = help,
            "`{limit}` has a path of {ns:.2} ns and reaches {:.0} MHz, {wanted:.0} MHz are asked for",
            mhz(ns)
        ));
    }
    Ok(Clock { mhz: wanted, limit: "asked".to_owned() })
}

/// Figures that estimates are made of, in gate equivalents.
#[derive(Clone, Debug)]
struct Figures {
    core: f64,
    /// Its cycle time in ns.
    cycle: f64,
    sram_bit: f64,
    flip_flop: f64,
    multiplexer: f64,
    xor: f64,
    extensions: Vec<(Extension, f64)>,
    /// Multipliers: cycles at most, gates besides the core's own.
    fast_multiplier: f64,
    backward: f64,
    /// What registers of 64 bits add to a core.
    rv64: f64,
    /// Of a vector unit, per bit of datapath: the integer part, and Zvkb.
    lane_bit: f64,
    zvkb_bit: f64,
    /// Of Zvkg per bit a cycle, of Zvknha per round a cycle.
    ghash_bit: f64,
    sha2_round: f64,
}

/// The parts of a core; their sum is its cost. An estimate: it ranks options, it does not size a chip.
pub fn parts(setup: &Setup, instructions: &Instructions) -> Vec<Part> {
    let figures = figures().expect("our own file is right");
    let config = &setup.config;
    let mut parts = Vec::new();
    let mut add = |name: &str, gates: f64, source| {
        if gates != 0.0 {
            parts.push(Part { name: name.to_owned(), kge: gates / 1_000.0, source });
        }
    };
    add("core", figures.core, Source::Published);
    add("I-cache", cache(&figures, &config.icache, false), Source::Published);
    add("D-cache", cache(&figures, &config.dcache, config.policy == Policy::WriteBack), Source::Published);
    // Address, data and byte enables of a slot, and the comparison of its line with a read's.
    let slot = 68.0 * (figures.flip_flop + figures.multiplexer) + 28.0 * figures.xor;
    add("write buffer", f64::from(config.write_slots) * slot, Source::Counted);
    // Registers both ways, and the selection of a word.
    let beyond = f64::from(8 * config.width) - 32.0;
    add("memory interface", beyond * 2.0 * (figures.flip_flop + figures.multiplexer), Source::Counted);
    let wide = setup.xlen == Xlen::Rv64;
    if config.multiply == 1 {
        let factor = if wide { SQUARE } else { 1.0 };
        add("multiplier of one cycle", factor * figures.fast_multiplier, Source::Published);
    }
    if config.branches == forebay_riscv::Branches::Backward {
        add("branch prediction", figures.backward, Source::Counted);
    }
    for (name, extension) in &setup.extensions {
        let gates = figures.extensions.iter().find(|(known, _)| known == extension);
        match synthesized(name, setup) {
            Some(gates) => add(name, gates, Source::Synthesized),
            None => add(name, gates.map_or(0.0, |(_, gates)| *gates), Source::Counted),
        }
    }
    for one in &instructions.costs {
        add(&one.name, one.gates, one.source);
    }
    if wide {
        add("RV64", figures.rv64 + widened(&figures, setup), Source::Counted);
    }
    if setup.has(Extension::Zve64x) {
        vector(&figures, setup, &mut add);
    }
    parts
}

/// What multipliers grow by when operands are twice as wide.
const SQUARE: f64 = 4.0;

/// Gates that the scalar extensions have more than on registers of 32 bits.
fn widened(figures: &Figures, setup: &Setup) -> f64 {
    let gates = |name: &str, extension: Extension| {
        let growth = match extension {
            Extension::Zbkc => SQUARE - 1.0,
            // Their columns are of RV64 already.
            Extension::Zkne | Extension::Zknd => 0.0,
            _ => 1.0,
        };
        let counted = figures.extensions.iter().find(|(known, _)| *known == extension);
        growth * synthesized(name, setup).or(counted.map(|(_, gates)| *gates)).unwrap_or(0.0)
    };
    setup.extensions.iter().map(|&(name, extension)| gates(name, extension)).sum()
}

/// A vector unit: registers, integer lanes, and units that pass `datapath` bits in so many cycles as the setup says.
fn vector(figures: &Figures, setup: &Setup, add: &mut impl FnMut(&str, f64, Source)) {
    let vector = setup.config.vector;
    let bits = f64::from(8 * vector.datapath);
    let registers = 32.0 * f64::from(setup.vlen) * (figures.flip_flop + figures.multiplexer);
    add("vector registers", registers, Source::Counted);
    add("vector lanes", bits * figures.lane_bit, Source::Counted);
    if setup.has(Extension::Zvkb) {
        add("zvkb", bits * figures.zvkb_bit, Source::Counted);
    }
    if setup.has(Extension::Zvkned) {
        let columns = f64::from((8 * vector.datapath / 32).div_ceil(vector.aes));
        add("zvkned", columns * module(AES_COLUMN).map_or(0.0, |one| one.gates), Source::Synthesized);
    }
    if setup.has(Extension::Zvkg) {
        let digits = f64::from(128_u32.div_ceil(vector.ghash));
        add("zvkg", bits / 128.0 * digits * figures.ghash_bit, Source::Counted);
    }
    let sha512 = setup.has(Extension::Zvknhb);
    if sha512 || setup.has(Extension::Zvknha) {
        let rounds = f64::from(2_u32.div_ceil(vector.sha2)) * if sha512 { 2.0 } else { 1.0 };
        add("zvknh", bits / 128.0 * rounds * figures.sha2_round, Source::Counted);
    }
}

/// Gates of an extension whose instructions were synthesized. Zkne and Zknd share a datapath: on RV64 two columns of a round,
/// which `aes64*` makes in a cycle (eight S-boxes and two MixColumns).
fn synthesized(extension: &str, setup: &Setup) -> Option<f64> {
    let gates = |name: &str| module(name).map(|one| one.gates);
    let has = |name: &str| setup.extensions.iter().any(|(one, _)| *one == name);
    let columns = || Some(2.0 * gates(AES_COLUMN)?);
    match extension {
        "zkne" if setup.xlen == Xlen::Rv64 => columns(),
        "zknd" if setup.xlen == Xlen::Rv64 => {
            if has("zkne") {
                Some(0.0)
            } else {
                columns()
            }
        }
        "zknh" => gates("zknh"),
        "zkne" => gates("zkne"),
        "zknd" if has("zkne") => Some(gates("zkne-zknd")? - gates("zkne")?),
        "zknd" => gates("zkne-zknd"),
        _ => None,
    }
}

/// Data, tags, state bits; a comparison of tags and a selection of the word a way.
fn cache(figures: &Figures, cache: &CacheConfig, dirty: bool) -> f64 {
    let lines = f64::from(cache.size / cache.line);
    let sets = cache.size / cache.line / cache.ways;
    let tag = 32 - cache.line.ilog2() - sets.ilog2();
    let order = match (cache.replacement, cache.ways) {
        (Replacement::Lru | Replacement::Fifo, 2) => 1,
        (Replacement::Lru, 4) => 5,
        (Replacement::Fifo, 4) => 2,
        _ => 0,
    };
    let bits =
        f64::from(8 * cache.size) + lines * f64::from(tag + 1 + u32::from(dirty)) + f64::from(sets * order);
    let logic = f64::from(cache.ways) * (f64::from(tag) * figures.xor + 32.0 * figures.multiplexer);
    bits * figures.sram_bit + logic
}

fn figures() -> Result<Figures, FileErrors> {
    forebay_scenario::read(PUBLISHED, "area.toml", &[], read)
}

fn read(table: &Table, findings: &RefCell<Findings>) -> Option<Figures> {
    let start = Place { source: 0, span: 0..0 };
    let known: Vec<&'static str> =
        ["core", "sram", "cells", "extensions", "options", "rv64", "vector"].to_vec();
    let top = Section::new(table, "the file".to_owned(), start, &known, findings);
    let value = |section: &'static str, key: &'static str| {
        let (table, place) = forebay_scenario::tables(&top, section).into_iter().next()?;
        let names: Vec<&'static str> = Extension::NAMES.iter().map(|(name, _)| *name).collect();
        let mut known = vec!["gates", "cycle", "gates_per_bit", "flip_flop", "multiplexer", "xor", "source"];
        known.extend(["fast_multiplier", "backward_branches"]);
        known.extend(["lane_bit", "zvkb_bit", "ghash_bit", "sha2_round"]);
        known.extend(names);
        let section = Section::new(table, format!("[{section}]"), place, &known, findings);
        match section.decimal(key, Unit::None) {
            Some(number) => Some(number.as_f64()),
            None => {
                section.missing(key, "a number of gate equivalents");
                None
            }
        }
    };
    let extensions = Extension::NAMES
        .into_iter()
        .filter(|(_, one)| !one.is_vector())
        .map(|(name, one)| Some((one, value("extensions", name)?)))
        .collect::<Option<Vec<_>>>();
    Some(Figures {
        core: value("core", "gates")?,
        cycle: value("core", "cycle")?,
        sram_bit: value("sram", "gates_per_bit")?,
        flip_flop: value("cells", "flip_flop")?,
        multiplexer: value("cells", "multiplexer")?,
        xor: value("cells", "xor")?,
        extensions: extensions?,
        fast_multiplier: value("options", "fast_multiplier")?,
        backward: value("options", "backward_branches")?,
        rv64: value("rv64", "gates")?,
        lane_bit: value("vector", "lane_bit")?,
        zvkb_bit: value("vector", "zvkb_bit")?,
        ghash_bit: value("vector", "ghash_bit")?,
        sha2_round: value("vector", "sha2_round")?,
    })
}
