//! Keys of pipelines that have no effect because of what else a file says. Sweeps change that, so they are noted, not refused.

use forebay_scenario::idle::{self, Idle};
use forebay_scenario::{Section, Table, tables};

use crate::description::{Discipline, Grant, Pipeline};
use crate::law::Law;

const ROWS: &[Idle] = &[
    Idle {
        section: "server",
        keys: &["run_length", "run_ends", "grant"],
        by: "discipline",
        of: "server",
        default: "",
        values: &["busy-waiting"],
    },
    Idle {
        section: "server",
        keys: &["contexts"],
        by: "discipline",
        of: "server",
        default: "",
        values: &["interrupt-driven"],
    },
];

/// Notes those that the file has.
pub(super) fn note(root: &Table, top: &Section<'_>, pipeline: &Pipeline, notes: &mut Vec<String>) {
    idle::note(root, top, ROWS, notes);
    for (number, (table, _)) in tables(top, "stage").into_iter().enumerate() {
        let name = (table.get("name")).and_then(|_| idle::value(table, "name"));
        let name = name.unwrap_or_else(|| format!("stage{number}"));
        let stage = pipeline.stages.iter().find(|stage| stage.name == name);
        let server = stage.and_then(|stage| pipeline.servers.get(stage.server?));
        let by_priority = server.is_some_and(|server| {
            matches!(
                server.discipline,
                Discipline::InterruptDriven { grant: Grant::Priority | Grant::PreemptivePriority, .. }
            )
        });
        // What is the default changes nothing: the kept file of a run has every key.
        if stage.is_some_and(|stage| stage.priority > 0) && !by_priority {
            notes.push(format!(
                "`priority` of `{name}` has no effect: no server grants it a core by priority"
            ));
        }
    }
    let is_rate = |law: &Law| matches!(law, Law::Rate { .. });
    if pipeline.packet_bytes > 0 && !pipeline.stages.iter().any(|stage| is_rate(&stage.time)) {
        notes.push("`packet_bytes` has no effect: no stage has a `rate`".to_owned());
    }
}
