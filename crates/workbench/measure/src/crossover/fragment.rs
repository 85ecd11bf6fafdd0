//! The processors and their costs as a part of the gateway's file.

use std::collections::BTreeMap;
use std::fmt::Write;

use forebay_loadgen::processors::Spec;

use super::{BreakEven, Document, Plan};

/// The names of the processors in the gateway's file, by which it finds their costs: those that it gives by itself.
pub(super) fn names(specs: &[Spec]) -> Vec<String> {
    let mut seen = BTreeMap::<&str, usize>::new();
    let name = |spec: &Spec| {
        let word = spec.kind();
        let number = seen.entry(word).and_modify(|number| *number += 1).or_insert(1);
        if *number == 1 { word.to_owned() } else { format!("{word}-{number}") }
    };
    specs.iter().map(name).collect()
}

impl Document {
    /// `[[processor]]` and `[scheduler]` for the gateway's file, with the break-evens as comments. `costs` is the file of the
    /// costs, as the gateway's file is to name it.
    pub fn fragment(&self, plan: &Plan, costs: &str) -> String {
        let mut text = format!(
            "# The processors of this machine and their costs, measured by `forebay bench crossover` {} on\n# {}.\n\
             # To be put into the gateway's file in the place of its [[processor]] and [scheduler].\n#\n\
             # Cleartext packets from which on a device is done earlier than the running core:\n",
            self.version, self.host
        );
        for one in &self.break_evens {
            let _ = writeln!(text, "#   {}: {}", one.title(), one.in_words());
        }
        let opened = |word: &str| self.processors.iter().any(|one| one.word == word);
        for (spec, name) in plan.processors.iter().zip(names(&plan.processors)) {
            if !opened(&spec.name) {
                continue;
            }
            let _ = write!(text, "\n[[processor]]\nkind = \"{}\"\n", spec.kind());
            if !spec.is_core() {
                let _ = writeln!(text, "name = \"{name}\"");
            }
            for (key, value) in spec.keys() {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
        let _ = write!(text, "\n[scheduler]\npolicy = \"finish-time\"\ncosts = {}\n", quoted(costs));
        text
    }
}

impl BreakEven {
    /// Of what it is the break-even.
    pub fn title(&self) -> String {
        let load = match self.load {
            0.0 => "idle".to_owned(),
            load => format!("{:.0} % busy", 100.0 * load),
        };
        let given = match (self.packets, self.bytes) {
            (Some(1), _) => "1 packet at a time".to_owned(),
            (Some(packets), _) => format!("{packets} packets at a time"),
            (None, bytes) => format!("packets of {} bytes", bytes.unwrap_or_default()),
        };
        format!("{}, {} {load}, {given}", self.proposal, self.device)
    }

    /// The answer and its verdict: `from 512 bytes on; holds`.
    pub fn in_words(&self) -> String {
        format!("{}; {}", self.answer(), self.verdict.in_words())
    }

    /// The answer: `from 512 bytes on`.
    pub fn answer(&self) -> String {
        let unit = match (self.bytes, self.at) {
            (Some(_), Some(1)) => "packet",
            (Some(_), _) => "packets",
            (None, _) => "bytes",
        };
        match (self.pays, self.at) {
            ("from", Some(at)) => format!("from {at} {unit} on"),
            ("up-to", Some(at)) => format!("up to {at} {unit}"),
            (word, _) => word.to_owned(),
        }
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}
