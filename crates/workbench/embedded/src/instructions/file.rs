//! The reader of instruction files.

use std::cell::RefCell;
use std::sync::Arc;

use forebay_diagnostics::{Findings, Located, Place, Problem};
use forebay_riscv::{Clash, Custom, Definition, INVERSE_SBOX, SBOX};
use forebay_scenario::schema::known;
use forebay_scenario::{Section, Table as Tree, Unit, tables};

use super::language::{self, Program, Register};
use super::{Cost, Datapath, Instructions};
use crate::area::Source;
use crate::hardware::{module, modules};
use crate::schema::INSTRUCTION_PARTS;

const TABLES: [&str; 4] = ["aes-sbox", "aes-inverse-sbox", "aes-encrypt", "aes-decrypt"];

/// Custom registers in all.
const REGISTERS_MAX: usize = 256;
/// Values in a table.
const VALUES_MAX: usize = 65_536;

pub(super) fn instructions(tree: &Tree, findings: &RefCell<Findings>) -> Option<Instructions> {
    let start = Place { source: 0, span: 0..0 };
    let top = Section::new(tree, "the file".to_owned(), start, &known(INSTRUCTION_PARTS, ""), findings);
    let registers = registers(&top, findings);
    let of_table = known(INSTRUCTION_PARTS, "table");
    let mut made: Vec<language::Table> = Vec::new();
    for (tree, place) in tables(&top, "table") {
        let section = Section::new(tree, "[[table]]".to_owned(), place, &of_table, findings);
        if let Some(table) = table(&section) {
            refuse_second(&section, "tables", &table.name, made.iter().map(|one| &one.name));
            made.push(table);
        }
    }
    let (mut definitions, mut places) = (Vec::new(), Vec::new());
    let (mut costs, mut datapaths) = (Vec::<Cost>::new(), Vec::<Option<Datapath>>::new());
    for (tree, place) in tables(&top, "instruction") {
        let section = Section::new(
            tree,
            "[[instruction]]".to_owned(),
            place,
            &known(INSTRUCTION_PARTS, "instruction"),
            findings,
        );
        if let Some((definition, gates, datapath)) = instruction(&section, &registers, &made) {
            let names = definitions.iter().map(|one: &Definition| &one.name);
            refuse_second(&section, "instructions", &definition.name, names);
            let is_first =
                |path: &Datapath| !datapaths.iter().flatten().any(|one| one.module.name == path.module.name);
            costs.push(match datapath.filter(is_first) {
                Some(Datapath { module, .. }) => {
                    Cost::new(&definition.name, module.gates, Source::Synthesized)
                }
                None => Cost::new(&definition.name, gates, Source::File),
            });
            datapaths.push(datapath);
            definitions.push(definition);
            places.push(section.place_of("name"));
        }
    }
    if !findings.borrow().is_empty() {
        return None;
    }
    let bits: u32 = registers.iter().map(|one| one.bits * one.count as u32).sum();
    // A flip-flop and a multiplexer a bit.
    costs.push(Cost::new("registers", 8.33 * f64::from(bits), Source::Counted));
    let count = registers.iter().map(|one| one.count).sum();
    let names: Vec<String> = definitions.iter().map(|one: &Definition| one.name.clone()).collect();
    match Custom::new(definitions, count) {
        Ok(custom) => Some(Instructions { custom, costs, datapaths }),
        Err(Clash { later, earlier }) => {
            let (message, help) = match earlier {
                Some(earlier) => (
                    format!("`{}` has the encoding of `{}`", names[later], names[earlier]),
                    "give one of them another funct3 or funct7, or another of custom-0 to custom-3",
                ),
                None => (
                    format!("`{}` has an encoding that is not for custom instructions", names[later]),
                    "funct7 has 7 bits, and its range goes upwards",
                ),
            };
            top.report(Problem::Conflict { message, help: help.to_owned() }, places[later].clone());
            None
        }
    }
}

fn registers(top: &Section<'_>, findings: &RefCell<Findings>) -> Vec<Register> {
    let mut found: Vec<Register> = Vec::new();
    for (tree, place) in tables(top, "register") {
        let section = Section::new(
            tree,
            "[[register]]".to_owned(),
            place,
            &known(INSTRUCTION_PARTS, "register"),
            findings,
        );
        let Some(name) = name(&section) else { continue };
        let first = found.iter().map(|one| one.count).sum();
        let bits = section.whole("bits", Unit::None, 1, 64).unwrap_or(32) as u32;
        let count = section.whole("count", Unit::None, 1, REGISTERS_MAX as u64).unwrap_or(1) as usize;
        refuse_second(&section, "registers", &name, found.iter().map(|one| &one.name));
        if first + count > REGISTERS_MAX {
            section.conflict("count", "too many custom registers", format!("{REGISTERS_MAX} at most"));
        }
        found.push(Register { name, first, count, bits });
    }
    found
}

/// Reports a name that another one of the section has: what refers to it would mean either.
fn refuse_second<'a>(
    section: &Section<'_>,
    what: &str,
    name: &str,
    mut others: impl Iterator<Item = &'a String>,
) {
    if others.any(|other| other == name) {
        section.conflict("name", format!("there are two {what} `{name}`"), "rename one");
    }
}

fn name(section: &Section<'_>) -> Option<String> {
    if !section.has("name") {
        section.missing("name", "name = \"acc\"");
    }
    section.text("name").map(str::to_owned)
}

fn table(section: &Section<'_>) -> Option<language::Table> {
    let name = name(section)?;
    if let Some(made) = section.word("made", &TABLES) {
        if section.has("values") {
            section.conflict("values", "`values` has no effect beside `made`", "take one of the two away");
        }
        let values = match made {
            "aes-sbox" => SBOX.iter().map(|&one| one.into()).collect(),
            "aes-inverse-sbox" => INVERSE_SBOX.iter().map(|&one| one.into()).collect(),
            "aes-encrypt" => SBOX.iter().map(|&one| column(one, [2, 1, 1, 3])).collect(),
            _ => INVERSE_SBOX.iter().map(|&one| column(one, [14, 9, 13, 11])).collect(),
        };
        return Some(language::Table { name, values });
    }
    if !section.has("values") {
        section.missing("values", "values = [1, 2, 3]");
    }
    let list = section.list("values", "expected a list of numbers: [1, 2, 3]")?;
    let values: Option<Vec<u64>> =
        list.iter().map(|one| section.whole_of("values", one, Unit::None, 0, u64::MAX)).collect();
    let values = values?;
    if values.is_empty() || values.len() > VALUES_MAX {
        section.conflict("values", "a table has 1 to 65536 values", "give as many");
        return None;
    }
    Some(language::Table { name, values })
}

/// A byte times four factors in GF(2^8), row 0 in the low byte.
fn column(x: u8, factors: [u8; 4]) -> u64 {
    let double = |x: u8| (x << 1) ^ if x & 0x80 != 0 { 0x1b } else { 0 };
    let powers = [x, double(x), double(double(x)), double(double(double(x)))];
    let times = |factor: u8| {
        (0..4).filter(|bit| factor >> bit & 1 != 0).fold(0, |sum: u8, bit: usize| sum ^ powers[bit])
    };
    u32::from_le_bytes(factors.map(times)).into()
}

fn instruction(
    section: &Section<'_>,
    registers: &[Register],
    made: &[language::Table],
) -> Option<(Definition, f64, Option<Datapath>)> {
    let name = name(section)?;
    for (key, example) in [
        ("opcode", "opcode = \"custom-0\""),
        ("funct3", "funct3 = 0"),
        ("semantics", "semantics = \"rd = rs1 ^ rs2\""),
    ] {
        if !section.has(key) {
            section.missing(key, example);
        }
    }
    let opcode = section.word("opcode", &Custom::opcode_names()).and_then(Custom::opcode);
    let funct3 = section.whole("funct3", Unit::None, 0, 7);
    let words = section.whole("words", Unit::None, 0, 16).unwrap_or(0) as u32;
    let gates = section.decimal("gates", Unit::None).map_or(0.0, |gates| gates.as_f64());
    let datapath = datapath(section, &name)?;
    let funct7 = funct7(section)?;
    let latency = section.whole("latency", Unit::None, 1, 10_000).unwrap_or(1) as u32;
    let text = section.text("semantics")?;
    let program = match Program::new(text, registers, made, words) {
        Ok(program) => program,
        Err(Located { problem, place }) => {
            let piece = text.get(place.span.clone()).unwrap_or_default().trim();
            let line = 1 + text[..place.span.start].matches('\n').count();
            let message = format!("semantics of `{name}`, line {line}, at `{piece}`: {problem}");
            section.conflict("semantics", message, problem.help());
            return None;
        }
    };
    let definition = Definition {
        name,
        opcode: opcode?,
        funct3: funct3? as u32,
        funct7,
        latency,
        words,
        semantics: Arc::new(program),
    };
    Some((definition, gates, datapath))
}

/// The synthesized hardware of an instruction, if it names one; the outer `None` is a finding.
fn datapath(section: &Section<'_>, name: &str) -> Option<Option<Datapath>> {
    let steps = section.whole("steps", Unit::None, 1, 10_000).unwrap_or(1) as u32;
    if !section.has("hardware") {
        if section.has("steps") {
            let help = "give `hardware`, or take `steps` away and give `latency`";
            section.conflict("steps", "`steps` has no effect without `hardware`", help);
        }
        return Some(None);
    }
    let wanted = section.text("hardware")?;
    let Some(module) = module(wanted) else {
        let known: Vec<&str> = modules().iter().map(|one| one.name.as_str()).collect();
        let message = format!("`{name}`: no hardware `{wanted}` has been synthesized");
        let help = format!("there are {}; without one, give `gates` of your own", known.join(", "));
        section.conflict("hardware", message, &help);
        return None;
    };
    if section.has("gates") {
        section.conflict(
            "gates",
            "synthesized hardware has its own gates",
            "take `gates` or `hardware` away",
        );
        return None;
    }
    Some(Some(Datapath { module, steps }))
}

/// One number, or the first and the last of a range.
fn funct7(section: &Section<'_>) -> Option<(u32, u32)> {
    let Some(node) = section.node("funct7") else { return Some((0, 127)) };
    let number = |node| section.whole_of("funct7", node, Unit::None, 0, 127).map(|number| number as u32);
    match &node.value {
        forebay_scenario::Value::List(list) => match list.as_slice() {
            [from, to] => Some((number(from)?, number(to)?)),
            _ => {
                section.conflict("funct7", "a range has two ends", "write `funct7 = [0, 63]`");
                None
            }
        },
        _ => number(node).map(|one| (one, one)),
    }
}
