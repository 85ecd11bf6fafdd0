//! Gates and delays of the instructions' hardware by synthesis (`data/synthesis.toml`, which `hardware/synth.py` writes).

use std::cell::RefCell;
use std::sync::OnceLock;

use forebay_diagnostics::{FileErrors, Findings, Place};
use forebay_scenario::{Section, Table, Unit, tables};

const SYNTHESIS: &str = include_str!("../data/synthesis.toml");

/// A synthesized module of `hardware/`.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// Its name in `hardware/synth.py`.
    pub name: String,
    /// Gate equivalents (areas of a two-input NAND).
    pub gates: f64,
    /// Longest path in ns, wires left out.
    pub ns: f64,
}

/// Every module.
pub fn modules() -> &'static [Module] {
    static MODULES: OnceLock<Vec<Module>> = OnceLock::new();
    MODULES.get_or_init(|| read().expect("our own file is right"))
}

/// The module of this name.
pub fn module(name: &str) -> Option<&'static Module> {
    modules().iter().find(|module| module.name == name)
}

fn read() -> Result<Vec<Module>, FileErrors> {
    forebay_scenario::read(SYNTHESIS, "synthesis.toml", &[], of_table)
}

fn of_table(table: &Table, findings: &RefCell<Findings>) -> Option<Vec<Module>> {
    let start = Place { source: 0, span: 0..0 };
    let top = Section::new(table, "the file".to_owned(), start, &["source", "module"], findings);
    let of_module = |(tree, place)| {
        let known = ["name", "gates", "ns"];
        let section = Section::new(tree, "[[module]]".to_owned(), place, &known, findings);
        let number = |key| section.decimal(key, Unit::None).map(|number| number.as_f64());
        Some(Module { name: section.text("name")?.to_owned(), gates: number("gates")?, ns: number("ns")? })
    };
    tables(&top, "module").into_iter().map(of_module).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_has_gates_and_a_path() {
        assert!(modules().len() >= 10);
        assert!(modules().iter().all(|one| one.gates > 100.0 && (0.1..50.0).contains(&one.ns)));
        assert!(module("md5_iteration").is_some() && module("md5").is_none());
    }
}
