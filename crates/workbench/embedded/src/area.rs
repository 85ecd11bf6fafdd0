//! What options cost: estimates of area in gate equivalents, from published figures (`data/area.toml`).

use std::cell::RefCell;

use forebay_diagnostics::{FileErrors, Findings, Place};
use forebay_riscv::{CacheConfig, Extension, Policy, Replacement};
use forebay_scenario::{Section, Table, Unit};
use serde::{Deserialize, Serialize};

use crate::instructions::Instructions;
use crate::setup::Setup;

const PUBLISHED: &str = include_str!("../data/area.toml");

/// A part of a core and its estimated area.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What.
    pub name: String,
    /// Thousand gate equivalents (areas of a two-input NAND).
    pub kge: f64,
}

/// Figures that estimates are made of, in gate equivalents.
#[derive(Clone, Debug)]
struct Figures {
    core: f64,
    sram_bit: f64,
    flip_flop: f64,
    multiplexer: f64,
    xor: f64,
    extensions: Vec<(Extension, f64)>,
    /// Multipliers: cycles at most, gates besides the core's own.
    fast_multiplier: f64,
    backward: f64,
}

/// The parts of a core; their sum is its cost. An estimate: it ranks options, it does not size a chip.
pub fn parts(setup: &Setup, instructions: &Instructions) -> Vec<Part> {
    let figures = figures().expect("our own file is right");
    let config = &setup.config;
    let mut parts = Vec::new();
    let mut add = |name: &str, gates: f64| {
        if gates != 0.0 {
            parts.push(Part { name: name.to_owned(), kge: gates / 1_000.0 });
        }
    };
    add("core", figures.core);
    add("I-cache", cache(&figures, &config.icache, false));
    add("D-cache", cache(&figures, &config.dcache, config.policy == Policy::WriteBack));
    // Address, data and byte enables of a slot, and the comparison of its line with a read's.
    let slot = 68.0 * (figures.flip_flop + figures.multiplexer) + 28.0 * figures.xor;
    add("write buffer", f64::from(config.write_slots) * slot);
    // Registers both ways, and the selection of a word.
    let beyond = f64::from(8 * config.width) - 32.0;
    add("memory interface", beyond * 2.0 * (figures.flip_flop + figures.multiplexer));
    if config.multiply == 1 {
        add("multiplier of one cycle", figures.fast_multiplier);
    }
    if config.branches == forebay_riscv::Branches::Backward {
        add("branch prediction", figures.backward);
    }
    for (name, extension) in &setup.extensions {
        let gates = figures.extensions.iter().find(|(known, _)| known == extension);
        add(name, gates.map_or(0.0, |(_, gates)| *gates));
    }
    for (name, gates) in &instructions.gates {
        add(name, *gates);
    }
    parts
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
    let known: Vec<&'static str> = ["core", "sram", "cells", "extensions", "options"].to_vec();
    let top = Section::new(table, "the file".to_owned(), start, &known, findings);
    let value = |section: &'static str, key: &'static str| {
        let (table, place) = forebay_scenario::tables(&top, section).into_iter().next()?;
        let names: Vec<&'static str> = Extension::NAMES.iter().map(|(name, _)| *name).collect();
        let mut known = vec!["gates", "gates_per_bit", "flip_flop", "multiplexer", "xor", "source"];
        known.extend(["fast_multiplier", "backward_branches"]);
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
        .map(|(name, one)| Some((one, value("extensions", name)?)))
        .collect::<Option<Vec<_>>>();
    Some(Figures {
        core: value("core", "gates")?,
        sram_bit: value("sram", "gates_per_bit")?,
        flip_flop: value("cells", "flip_flop")?,
        multiplexer: value("cells", "multiplexer")?,
        xor: value("cells", "xor")?,
        extensions: extensions?,
        fast_multiplier: value("options", "fast_multiplier")?,
        backward: value("options", "backward_branches")?,
    })
}
