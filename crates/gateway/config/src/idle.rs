//! Warnings about keys that have no effect because of other keys of the file.

use forebay_scenario::Table;
use forebay_scheduler::Service;

use super::reader::{Context, tables};
use super::schema::{IDLE, WITHOUT_TIMES, Without};
use super::{Config, ProcessorKind};

pub(super) fn note(config: &Config, top: &Table, context: &Context<'_>) {
    let mut noted: Vec<(&str, &str)> = vec![];
    for row in IDLE {
        let Some((why, help)) = why(row.without, config) else { continue };
        for key in row.keys.iter().filter(|key| !noted.contains(&(row.section, **key))).collect::<Vec<_>>() {
            // Once for all entries of a section.
            let all = tables(top, row.section, context);
            let Some(node) = all.iter().find_map(|(table, _)| table.get(key)) else { continue };
            let message = format!("`{key}` has no effect {why}");
            context.advise(message, &format!("{help}, or remove `{key}`"), &node.place);
            noted.push((row.section, key));
        }
    }
}

/// Why keys have no effect, and what would give them one; `None` if they have.
fn why(without: Without, config: &Config) -> Option<(String, &'static str)> {
    let scheduling = &config.scheduler.scheduling;
    let has_devices = config.processors.iter().any(|one| matches!(one.kind, ProcessorKind::Device(_)));
    // A card has several where the file does not say it.
    let is_one_core = config.workers(|_| 2) == 1;
    let policy = scheduling.policy.word();
    let weights = scheduling.classes.iter().filter(|class| class.service != Service::Strict).count();
    match without {
        Without::Devices if !has_devices => Some((
            "without a processor that is a device: each core does its packets itself".to_owned(),
            "add such a `[[processor]]`",
        )),
        Without::DevicesAndCores if !has_devices && is_one_core => {
            Some(("with one core that does its packets itself".to_owned(), "add a `[[processor]]`"))
        }
        Without::Predictions if WITHOUT_TIMES.contains(&policy) => {
            Some((format!("with policy `{policy}`, which predicts no time"), "choose another policy"))
        }
        Without::Batches if scheduling.batch == 1 => Some((
            "with a `batch` of 1 in `[scheduler]`, which places each job separately".to_owned(),
            "raise `batch`",
        )),
        Without::Weights if weights == 1 => Some((
            "where no other class has one: the class gets all that strict classes leave".to_owned(),
            "give another class a `weight`",
        )),
        _ => None,
    }
}
