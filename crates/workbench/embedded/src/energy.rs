//! The energy of a run by figures that the file gives (docs/models.md, "Energy"). There is none built in: no synthesis of ours has
//! a power, and a published one is of its own process and voltage.

use forebay_riscv::{Account, Cause, Class, Config, Misses, Policy};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// Energies in joules; what is `None` is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// An instruction of a class that has no figure of its own.
    pub instruction: Option<f64>,
    /// An instruction of each class, in the order of [`Class::ALL`].
    pub classes: [Option<f64>; Class::ALL.len()],
    /// A fetch from the instruction cache, one for each instruction.
    pub icache: Option<f64>,
    /// An access of the data cache: [`Misses::loads`] and [`Misses::stores`].
    pub dcache: Option<f64>,
    /// A beat of memory: a word of the interface's width, read or written.
    pub memory: Option<f64>,
    /// A cycle in which the core waits: no instruction begins, and none computes.
    pub idle: Option<f64>,
    /// Power at any time, in watts.
    pub static_w: Option<f64>,
}

/// A part of the energy of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What.
    pub name: String,
    /// Joules of the whole run.
    pub joules: f64,
}

/// What a run did that takes energy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done<'a> {
    pub cycles: u64,
    /// Of these, further ones of instructions that take several, which the energies of classes contain.
    pub further: u64,
    /// Instructions of each class, in the order of [`Class::ALL`].
    pub classes: &'a [u64],
    pub misses: Misses,
    /// Time of the run at its clock, in seconds.
    pub seconds: f64,
}

/// The further cycles of instructions that take several.
pub(crate) fn further(account: &Account) -> u64 {
    let computes = |cause| matches!(cause, Cause::MultiCycle | Cause::Custom | Cause::Vector);
    account.cells.iter().filter(|cell| computes(cell.cause)).map(|cell| cell.cycles).sum()
}

/// The key of `[energy]` for a class.
pub(crate) fn key(class: Class) -> String {
    class.name().replace('-', "_")
}

impl Costs {
    /// What the file gives, by its keys.
    pub(crate) fn given(&self) -> Map<String, Json> {
        let classes = Class::ALL.iter().zip(self.classes).map(|(&class, own)| (key(class), own));
        let others = [
            ("icache", self.icache),
            ("dcache", self.dcache),
            ("memory", self.memory),
            ("idle", self.idle),
            ("static_power", self.static_w),
        ];
        let others = others.map(|(key, value)| (key.to_owned(), value));
        let all = [("instruction".to_owned(), self.instruction)].into_iter().chain(classes).chain(others);
        all.filter_map(|(key, value)| Some((key, value?.into()))).collect()
    }

    /// The parts of the energy; empty if the file gives no figure.
    pub(crate) fn parts(&self, config: &Config, done: &Done<'_>) -> Vec<Part> {
        let instructions: u64 = done.classes.iter().sum();
        let of_classes = (done.classes.iter().zip(&self.classes))
            .map(|(&count, own)| count as f64 * own.or(self.instruction).unwrap_or(0.0))
            .sum();
        let given = |any: bool, name: &str, joules: f64| any.then(|| Part { name: name.to_owned(), joules });
        let counted = |each: Option<f64>, name: &str, count: u64| {
            given(each.is_some(), name, count as f64 * each.unwrap_or(0.0))
        };
        let idle = done.cycles.saturating_sub(instructions + done.further);
        let any = self.instruction.is_some() || self.classes.iter().any(Option::is_some);
        let parts = [
            given(any, "instructions", of_classes),
            counted(self.icache, "icache", instructions),
            counted(self.dcache, "dcache", done.misses.loads + done.misses.stores),
            counted(self.memory, "memory", beats(config, &done.misses)),
            counted(self.idle, "idle", idle),
            given(self.static_w.is_some(), "static", self.static_w.unwrap_or(0.0) * done.seconds),
        ];
        parts.into_iter().flatten().collect()
    }
}

/// Words of the interface that memory reads and writes: lines that are fetched; writes that go through, or lines written back.
fn beats(config: &Config, misses: &Misses) -> u64 {
    let words = |line: u32| u64::from(line.div_ceil(config.width));
    let (code, data) = (words(config.icache.line), words(config.dcache.line));
    let written = match config.policy {
        Policy::WriteThrough => misses.stores,
        // A line is fetched to be written into.
        Policy::WriteBack => (misses.store + misses.written_back) * data,
    };
    misses.fetch * code + misses.load * data + written
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 cycles, of which 7 compute on: 30 ALU instructions, 10 loads, 5 stores; 2 lines of code and 3 of data fetched, 4 words a line.
    fn done(classes: &[u64; Class::ALL.len()]) -> Done<'_> {
        let misses = Misses { fetch: 2, loads: 10, load: 3, stores: 5, store: 1, written_back: 2 };
        Done { cycles: 100, further: 7, classes, misses, seconds: 1e-6 }
    }

    fn near(parts: &[Part], exact: &[(&str, f64)]) {
        assert_eq!(parts.len(), exact.len(), "{parts:?}");
        for (part, (name, joules)) in parts.iter().zip(exact) {
            let off = (part.joules - joules).abs();
            assert!(part.name == *name && off <= 1e-12 * joules.abs(), "{part:?} is not {joules}");
        }
    }

    #[test]
    fn energy_by_hand() {
        let mut classes = [0; Class::ALL.len()];
        (classes[Class::Alu as usize], classes[Class::Load as usize], classes[Class::Store as usize]) =
            (30, 10, 5);
        let mut costs = Costs {
            instruction: Some(10e-12),
            icache: Some(2e-12),
            dcache: Some(3e-12),
            memory: Some(100e-12),
            idle: Some(1e-12),
            static_w: Some(1e-3),
            ..Costs::default()
        };
        costs.classes[Class::Load as usize] = Some(20e-12);
        let base = Config::base();
        // 35 of 10 pJ and 10 of 20; 45 fetches; 15 accesses; 2 * 4 + 3 * 4 + 5 words; 100 - 45 - 7 cycles; 1 us of 1 mW.
        let exact = [
            ("instructions", 550e-12),
            ("icache", 90e-12),
            ("dcache", 45e-12),
            ("memory", 2_500e-12),
            ("idle", 48e-12),
            ("static", 1_000e-12),
        ];
        near(&costs.parts(&base, &done(&classes)), &exact);
        // Written back: a line for the store that missed, and two that made room; words of twice the width.
        let back = Config { policy: Policy::WriteBack, width: 8, ..base };
        let memory = Costs { memory: Some(1.0), ..Costs::default() };
        near(&memory.parts(&back, &done(&classes)), &[("memory", 2.0 * (2.0 + 3.0 + 1.0 + 2.0))]);
        assert!(
            Costs::default().parts(&base, &done(&classes)).is_empty() && Costs::default().given().is_empty()
        );
        assert_eq!(memory.given().len(), 1);
    }

    #[test]
    fn each_class_has_a_key() {
        let known = forebay_scenario::schema::known(crate::schema::PARTS, "energy");
        for class in Class::ALL {
            assert!(known.contains(&key(class).as_str()), "[energy] has no `{}`", key(class));
            let mut costs = Costs::default();
            costs.classes[class as usize] = Some(1e-12);
            assert!(costs.given().contains_key(&key(class)));
        }
    }

    #[test]
    fn further_cycles_are_of_instructions_that_take_several() {
        let cells =
            Cause::ALL.map(|cause| forebay_riscv::Cell { node: 0, class: Class::Alu, cause, cycles: 1 });
        let account = Account {
            cycles: 10,
            instructions: 1,
            cells: cells.to_vec(),
            events: Vec::new(),
            misses: Misses::default(),
            windows: [32, 64].map(forebay_riscv::Windows::new),
        };
        assert_eq!(further(&account), 3);
    }
}
