//! What else than the predicted finish time says where a job goes: jobs that need the result of another one, SAs that stay at
//! one processor, and a host in which nothing is to be done.

use forebay_scheduler::Policy;
use forebay_time::Duration;
use serde_json::{Map, Value as Json};

use super::section::Section;
use super::traffic::Suites;
use super::{Dependent, Processor, Settings};
use crate::traffic::Traffic;

/// Keys of `[scheduler]` that mean something only where jobs are placed one by one.
const ALONE: [&str; 3] = ["dependent", "affinity", "all_idle"];

/// What `[scheduler]` says of it.
#[derive(Clone, Copy, Default)]
pub(super) struct OfScheduler {
    pub(super) dependent: Dependent,
    pub(super) stay: bool,
    pub(super) idle_to_accelerator: bool,
}

/// Reads the keys of `[scheduler]`; `together`: jobs are placed together.
pub(super) fn of_scheduler(
    section: &Section<'_>,
    policy: Policy,
    together: bool,
    map: &mut Map<String, Json>,
) -> OfScheduler {
    let mut found = OfScheduler::default();
    if let Some(word) = section.word("dependent", &["when-ready", "same-processor"]) {
        map.insert("dependent".to_owned(), word.into());
        if word == "same-processor" {
            found.dependent = Dependent::SameProcessor;
        }
    }
    if let Some(stay) = section.flag("affinity") {
        map.insert("affinity".to_owned(), stay.into());
        found.stay = stay;
    }
    if let Some(word) = section.word("all_idle", &["finish-time", "accelerator"]) {
        map.insert("all_idle".to_owned(), word.into());
        found.idle_to_accelerator = word == "accelerator";
        if found.idle_to_accelerator && !matches!(policy, Policy::FinishTime | Policy::AdaptiveAlpha(_)) {
            let message = format!("`all_idle` means nothing for policy `{policy}`");
            section.conflict("all_idle", message, "take policy `finish-time`, or remove the key");
        }
    }
    for key in ALONE.into_iter().filter(|key| section.has(key) && together) {
        let message = format!("`{key}` means nothing where jobs are placed together (`burst`, `poll`)");
        section.conflict(key, message, "remove the key, or place jobs one by one");
    }
    found
}

/// Checks what `[traffic]` says of jobs that need the result of another one against all else, and makes several passes at one
/// processor one job.
pub(super) fn of_traffic(
    top: &Section<'_>,
    traffic: Option<&mut Traffic>,
    suites: &mut Suites,
    processors: &mut [Processor],
    settings: &Settings,
    resolved: &Map<String, Json>,
    notes: &mut Vec<String>,
) {
    let Some(traffic) = traffic else { return };
    let given = if !traffic.passes.is_empty() {
        "passes"
    } else if traffic.dependent_sas > 0 {
        "dependent_sas"
    } else {
        let says = |scheduler: &Json| scheduler.get("dependent").is_some();
        if resolved.get("scheduler").is_some_and(says) {
            let message = "`dependent` means nothing: no packet needs the result of another job";
            top.conflict("scheduler", message, "set `dependent_sas` or `passes` in [traffic], or remove it");
        }
        return;
    };
    let conflicts = [
        (settings.takes_batches(), "scheduler", "`burst` above 1, or `poll`"),
        (settings.window > 1, "scheduler", "a `window` above 1"),
        (settings.input.is_some(), "scheduler", "`input`: what is lost would be needed by others"),
        (settings.has_classes(), "class", "classes that the scheduler distinguishes"),
        (top.has("cores"), "cores", "[cores]"),
    ];
    for (_, key, with) in conflicts.into_iter().filter(|(is_there, ..)| *is_there) {
        let message = format!("`{given}` in [traffic] excludes {with}");
        top.conflict(key, message, "place jobs of one class one by one, and let none be lost");
    }
    if settings.dependent == Dependent::SameProcessor {
        if !traffic.passes.is_empty() {
            one_job(top, traffic, suites, processors);
        } else if settings.stay {
            notes.push("`dependent` of [scheduler] has no effect with `affinity`: all SAs stay".to_owned());
        }
    }
}

/// All passes of a packet are one job, for processors that can do each of them.
fn one_job(top: &Section<'_>, traffic: &mut Traffic, suites: &mut Suites, processors: &mut [Processor]) {
    let passes = std::mem::take(&mut traffic.passes);
    let words: Vec<&str> = passes.iter().map(|&bit| suites.words()[usize::from(bit)].as_str()).collect();
    let word = words.join("+");
    let Some(bit) = suites.bit(&word) else {
        top.conflict("traffic", "more than 64 suites with that of all passes", "64 are told apart");
        return;
    };
    let wanted = passes.iter().fold(0u64, |mask, pass| mask | 1 << pass);
    let times = passes.len() as u64;
    for one in &mut *processors {
        let config = &mut one.config;
        config.suites &= !(1 << bit);
        config.suites |= u64::from(config.suites & wanted == wanted) << bit;
        let all = |time: Duration| time.times(times);
        let cost = &mut config.cost;
        (cost.init, cost.packet, cost.block) = (all(cost.init), all(cost.packet), all(cost.block));
    }
    if processors.iter().all(|one| one.config.suites & 1 << bit == 0) {
        let message = format!("no processor can do all of {}", words_of(&word));
        top.conflict("processor", message, "let one have all of them, or set `dependent = \"when-ready\"`");
    }
    traffic.suites = vec![bit];
}

fn words_of(word: &str) -> String {
    word.replace('+', ", ")
}
