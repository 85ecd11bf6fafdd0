//! `[scheduler]`.

use forebay_scheduler::{AlphaLoop, Kind, Policy, Registered, Transfer, Windowing};
use forebay_station::Speed;
use forebay_time::{Duration, PS_PER_S};
use serde_json::{Map, Value as Json};

use super::classes::{self, Entry};
use super::decimal::Unit;
use super::placement;
use super::section::Section;
use super::tree::Table;
use super::{Bus, PARTS, Processor, RunningCore, Settings, known, seconds, tables};
use forebay_diagnostics::Place;
use forebay_diagnostics::Problem;

const ALPHA: [&str; 4] = ["alpha_upper", "alpha_lower", "alpha_most", "alpha_period"];
pub(super) const WINDOW_MAX: u64 = 1 << 16;

pub(super) fn read(
    top: &Section<'_>,
    processors: &mut [Processor],
    buses: &[Bus],
    classes: Vec<Entry<'_>>,
    notes: &mut Vec<String>,
    resolved: &mut Map<String, Json>,
) -> Settings {
    let none = Table::default();
    let (table, place) =
        tables(top, "scheduler").into_iter().next().unwrap_or((&none, Place { source: 0, span: 0..0 }));
    let parameters = forebay_scheduler::registered().into_iter().flat_map(|kind| kind.parameters);
    let keys: Vec<&str> =
        known(PARTS, "scheduler").into_iter().chain(parameters.map(|one| one.name)).collect();
    let section = Section::new(table, "[scheduler]".to_owned(), place, &keys, top.findings());
    let mut map = Map::new();
    let window = section.whole("window", Unit::None, 1, WINDOW_MAX).unwrap_or(1);
    let words = Windowing::ALL.map(|windowing| windowing.word());
    let windowing: Windowing =
        section.word("windowing", &words).and_then(|word| word.parse().ok()).unwrap_or_default();
    let timeout = section.time("timeout");
    let max_bytes = section.whole("max_bytes", Unit::Bytes, 1, u64::MAX);
    let input = section.whole("input", Unit::None, window, u32::MAX.into());
    let prefetch_aware = section.flag("prefetch_aware").unwrap_or(false);
    let by_class = section.flag("by_class").unwrap_or(true);
    if section.has("by_class") {
        if classes.is_empty() {
            let message = "`by_class` means nothing without a class";
            section.conflict("by_class", message, "write [[class]] and its lines below, or take it away");
        }
        map.insert("by_class".to_owned(), by_class.into());
    }
    let predict_transfer = section.flag("predict_transfer").unwrap_or(false);
    let (burst, running_core) = batches(&section, processors, prefetch_aware, notes, &mut map);
    let policy = policy(&section, processors, &mut map);
    map.insert("window".to_owned(), window.into());
    map.insert("windowing".to_owned(), windowing.word().into());
    if let Some(timeout) = timeout {
        map.insert("timeout".to_owned(), seconds(timeout));
    }
    if let Some(bytes) = max_bytes {
        map.insert("max_bytes".to_owned(), bytes.into());
    }
    if let Some(packets) = input {
        map.insert("input".to_owned(), packets.into());
    }
    let pass_full = pass_full(&section, burst, running_core.is_some(), policy);
    if burst == 1 && running_core.is_none() {
        map.insert("full_queue".to_owned(), if pass_full { "pass" } else { "wait" }.into());
    }
    let going = placement::of_scheduler(&section, policy, burst > 1 || running_core.is_some(), &mut map);
    let keep_order = keep_order(&section, running_core.is_some(), &mut map);
    map.insert("prefetch_aware".to_owned(), prefetch_aware.into());
    map.insert("predict_transfer".to_owned(), predict_transfer.into());
    resolved.insert("scheduler".to_owned(), map.into());
    if predict_transfer {
        for one in processors {
            one.config.transfer = one.bus.and_then(|bus| buses.get(bus)).map(|bus| transfer(bus, notes));
        }
    }
    let input = input.map(|packets| packets as usize);
    let window = window as usize;
    let mut settings = Settings {
        policy,
        window,
        windowing,
        timeout,
        max_bytes,
        input,
        prefetch_aware,
        keep_order,
        pass_full,
        dependent: going.dependent,
        stay: going.stay,
        idle_to_accelerator: going.idle_to_accelerator,
        burst,
        running_core,
        classes: Vec::new(),
        by_class,
    };
    settings.classes = classes::settings(classes, &settings, resolved);
    settings
}

/// Whether packets of an SA leave in their order. A running core keeps it always.
fn keep_order(section: &Section<'_>, polls: bool, map: &mut Map<String, Json>) -> bool {
    let keep = section.flag("keep_order");
    if polls {
        if keep.is_some() {
            let message = "`keep_order` means nothing with `poll`";
            section.conflict("keep_order", message, "a running core always keeps the order; remove the key");
        }
        return false;
    }
    map.insert("keep_order".to_owned(), keep.unwrap_or(false).into());
    keep.unwrap_or(false)
}

/// Whether a job passes a full queue by, where jobs are placed one by one.
fn pass_full(section: &Section<'_>, burst: usize, polls: bool, policy: Policy) -> bool {
    let word = section.word("full_queue", &["wait", "pass"]);
    if word.is_some() && (burst > 1 || polls) {
        let message = "`full_queue` means nothing where jobs are placed together (`burst`, `poll`)";
        section.conflict("full_queue", message, "a full queue gets no share of a burst; remove the key");
    }
    let by_time = matches!(policy, Policy::FinishTime | Policy::AdaptiveAlpha(_));
    if word == Some("pass") && !by_time {
        let message = format!("`full_queue = \"pass\"` means nothing for policy `{policy}`");
        section.conflict("full_queue", message, "take policy `finish-time`, or remove the key");
    }
    word == Some("pass")
}

/// Whether the scenario has a running core that polls, as far as that can be read.
pub(super) fn polls(top: &Section<'_>) -> bool {
    let tables = tables(top, "scheduler");
    let node = tables.first().and_then(|(table, _)| table.get("poll"));
    node.is_some_and(|node| matches!(node.value, super::Value::Flag(true)))
}

/// What is placed and handed over together, and the core that does it.
fn batches(
    section: &Section<'_>,
    processors: &[Processor],
    prefetch_aware: bool,
    notes: &mut Vec<String>,
    map: &mut Map<String, Json>,
) -> (usize, Option<RunningCore>) {
    let burst = section.whole("burst", Unit::None, 1, WINDOW_MAX);
    let poll = section.flag("poll");
    if let Some(burst) = burst {
        map.insert("burst".to_owned(), burst.into());
    }
    if let Some(poll) = poll {
        map.insert("poll".to_owned(), poll.into());
    }
    let (burst, poll) = (burst.unwrap_or(1) as usize, poll.unwrap_or(false));
    let cores = || processors.iter().enumerate();
    let mut cores =
        cores().filter_map(|(processor, one)| one.moves.map(|moves| RunningCore { processor, moves }));
    let core = cores.next();
    if poll && core.is_none() {
        let help = "set `move = \"300 ns\"` in the [[processor]] that is the running core";
        section.conflict("poll", "`poll` is set, and no processor has `move`", help);
    }
    if poll && let Some(other) = cores.next() {
        let message = format!("`move` is set for a second processor, `{}`", processors[other.processor].name);
        section.conflict("poll", message, "one core moves the packets; remove `move` from the others");
    }
    if prefetch_aware && (burst > 1 || poll) {
        let key = if poll { "poll" } else { "burst" };
        let message = format!("`prefetch_aware` and `{key}` exclude each other");
        section.conflict("prefetch_aware", message, "batches are known by their answers only; remove one");
    }
    if burst == 1 {
        for one in processors.iter().filter(|one| one.config.cost.lanes > 1) {
            notes.push(format!(
                "`lanes` of `{}` has no effect: jobs are placed one by one (`burst`)",
                one.name
            ));
        }
    }
    (burst, core.filter(|_| poll))
}

/// A bus as the scheduler predicts it.
fn transfer(bus: &Bus, notes: &mut Vec<String>) -> Transfer {
    match bus.config.speed {
        Speed::Cycles { clock, width, address_cycles } => {
            Transfer { clock: clock.get(), width: width.get(), address_cycles }
        }
        // A byte is a cycle here, and the overhead the nearest whole number of them.
        Speed::Rate { rate, overhead } => {
            let clock = rate.get().div_ceil(8);
            let cycles = u128::from(overhead.0) * u128::from(clock) + u128::from(PS_PER_S / 2);
            let note = format!("transfers over `{}` are predicted in whole bytes' times", bus.name);
            if !notes.contains(&note) {
                notes.push(note);
            }
            let address_cycles = u32::try_from(cycles / u128::from(PS_PER_S)).unwrap_or(u32::MAX);
            Transfer { clock, width: 1, address_cycles }
        }
    }
}

fn policy(section: &Section<'_>, processors: &[Processor], map: &mut Map<String, Json>) -> Policy {
    let words = Policy::words();
    let word = section.word("policy", &words).unwrap_or("finish-time");
    map.insert("policy".to_owned(), word.into());
    let used: &[&str] = match word {
        "single" => &["processor"],
        "size-threshold" => &["threshold", "small", "large"],
        "adaptive-alpha" => &ALPHA,
        "split" => &["weights"],
        _ => &[],
    };
    let known = ["processor", "threshold", "small", "large", "weights"].into_iter().chain(ALPHA);
    let registered = forebay_scheduler::registered();
    let of_others = registered.iter().filter(|kind| kind.word != word).flat_map(|kind| kind.parameters);
    for key in known.chain(of_others.map(|parameter| parameter.name)) {
        if section.has(key) && !used.contains(&key) {
            let message = format!("`{key}` means nothing for policy `{word}`");
            section.conflict(key, message, "take it away, or take another policy");
        }
    }
    let first = |kind| processors.iter().position(|one| one.config.kind == kind).unwrap_or(0);
    let mut named = |key: &str, default: usize| {
        let index = processor(section, key, processors).unwrap_or(default);
        if let Some(one) = processors.get(index) {
            map.insert(key.to_owned(), one.name.as_str().into());
        }
        index
    };
    match word.parse() {
        Ok(Policy::Single { .. }) => {
            Policy::Single { processor: named("processor", first(Kind::Accelerator)) }
        }
        Ok(Policy::SizeThreshold { bytes, .. }) => {
            let (small, large) = (named("small", first(Kind::Cpu)), named("large", first(Kind::Accelerator)));
            let bytes = section.whole("threshold", Unit::Bytes, 0, u64::MAX).unwrap_or(bytes);
            map.insert("threshold".to_owned(), bytes.into());
            Policy::SizeThreshold { bytes, small, large }
        }
        Ok(Policy::Split { .. }) => Policy::Split { weights: weights(section, processors.len(), map) },
        Ok(Policy::Registered(policy)) => Policy::Registered(parameters(section, policy, map)),
        Ok(Policy::AdaptiveAlpha(default)) => Policy::AdaptiveAlpha(alpha_loop(section, default, map)),
        Ok(policy) => policy,
        Err(_) => Policy::FinishTime,
    }
}

/// The parameters of a policy that the program has registered.
fn parameters(section: &Section<'_>, policy: Registered, map: &mut Map<String, Json>) -> Registered {
    policy.kind().parameters.iter().fold(policy, |policy, one| {
        let value = section.whole(one.name, Unit::None, one.least, one.most).unwrap_or(one.default);
        map.insert(one.name.to_owned(), value.into());
        policy.with(one.name, value)
    })
}

/// The weight of each processor for policy `split`, equal ones by default.
fn weights(section: &Section<'_>, processors: usize, map: &mut Map<String, Json>) -> [u16; 8] {
    const EXPECTED: &str = "weights of the processors in their order: [3, 1]";
    let mut weights = [0; 8];
    if let Some(list) = section.list("weights", EXPECTED) {
        if list.len() > processors.min(weights.len()) {
            let message = format!("{} weights for {processors} processors", list.len());
            section.conflict("weights", message, "one weight for each processor, for the first 8 at most");
        }
        for (weight, node) in weights.iter_mut().zip(list) {
            let read = section.whole_of("weights", node, Unit::None, 0, u16::MAX.into());
            *weight = read.unwrap_or(1) as u16;
        }
        if weights == [0; 8] {
            section.conflict("weights", "no processor has a weight", "give at least one a weight above 0");
        }
    } else {
        weights.iter_mut().take(processors).for_each(|weight| *weight = 1);
    }
    let shown = &weights[..processors.min(weights.len())];
    map.insert("weights".to_owned(), shown.into());
    weights
}

/// The marks of the loop for alpha, in whole per cent.
fn alpha_loop(section: &Section<'_>, default: AlphaLoop, map: &mut Map<String, Json>) -> AlphaLoop {
    let percent = |key, default: u8| section.whole(key, Unit::None, 0, 100).unwrap_or(default.into()) as u8;
    let (upper, lower) = (percent("alpha_upper", default.upper), percent("alpha_lower", default.lower));
    let most = section.whole("alpha_most", Unit::None, 1, u32::MAX.into()).unwrap_or(default.most.into());
    let period = section.time("alpha_period").unwrap_or(default.period);
    if lower > upper {
        let message = format!("alpha_lower, {lower}, is above alpha_upper, {upper}");
        section.conflict("alpha_lower", message, "alpha falls below the one and rises above the other");
    }
    if period == Duration::ZERO {
        section.conflict("alpha_period", "alpha_period is 0", "give a time above 0: \"10 ms\"");
    }
    map.insert("alpha_upper".to_owned(), upper.into());
    map.insert("alpha_lower".to_owned(), lower.into());
    map.insert("alpha_most".to_owned(), most.into());
    map.insert("alpha_period".to_owned(), seconds(period));
    AlphaLoop { upper, lower, most: most as u32, period }
}

/// A processor by its name, that of its entry (the first of its `count`), or its number from 0.
fn processor(section: &Section<'_>, key: &str, processors: &[Processor]) -> Option<usize> {
    let node = section.node(key)?;
    if let super::Value::Number(_) = node.value {
        let most = processors.len().saturating_sub(1) as u64;
        return section.whole(key, Unit::None, 0, most).map(|index| index as usize);
    }
    let name = section.text(key)?;
    let found = processors
        .iter()
        .position(|one| one.name == name || one.name.strip_suffix(".0").is_some_and(|entry| entry == name));
    if found.is_none() {
        let expected = processors.iter().map(|one| one.name.clone()).collect();
        let problem = Problem::UnknownWord { key: key.to_owned(), found: name.to_owned(), expected };
        section.report(problem, section.place_of(key));
    }
    found
}
