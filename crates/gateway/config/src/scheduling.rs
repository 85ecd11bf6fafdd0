//! `[scheduler]`, `[[class]]` and `[limits]`.

use std::path::PathBuf;

use forebay_engine::{Order, PendingSpiLimits, Scheduling};
use forebay_ipsec::DscpSet;
use forebay_ipsec::reassembly::ReassemblyLimits;
use forebay_sas::mask;
use forebay_scenario::{Table, Value};
use forebay_scheduler::{
    AlphaLoop, ClassConfig, DscpMap, Parameter, Policy, PolicyKind, Registered, Service, Windowing,
};
use forebay_time::Duration;

use super::processors::{Processor, ProcessorKind};
use super::reader::{Context, Reader, tables};
use super::schema::POLICY_KEYS;

/// How packets find their processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// Policy, window and classes, as the engine takes them.
    pub scheduling: Scheduling,
    /// The names of the classes, by their numbers; one at least.
    pub classes: Vec<String>,
    /// Which packets leave in the order in which they came.
    pub order: Order,
    /// Costs of the processors that were measured before.
    pub costs: Option<PathBuf>,
}

/// Every limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Those of each engine.
    pub engine: forebay_engine::Limits,
    /// SAs at a time, both directions together.
    pub sas: usize,
    /// Policies at a time.
    pub policies: usize,
    /// Connections to the control socket at a time, and those to metrics.
    pub control_connections: usize,
}

/// Reads `[scheduler]` and `[[class]]`.
pub(super) fn read(
    top: &Table,
    processors: Option<&[Processor]>,
    limits: Option<&Limits>,
    context: &Context<'_>,
) -> Option<Scheduler> {
    let none = Table::default();
    let tables = tables(top, "scheduler", context);
    let (table, place) = tables.into_iter().next().unwrap_or((&none, super::whole()));
    let section = Reader::new("scheduler", table, place, context).checked();
    let policy = policy(processors, &section);
    let window = section.count("window");
    let batch = section.count("batch");
    let timeout = section.time("timeout");
    let max_bytes = section.whole("max_bytes");
    let order = section.word("order");
    let costs = section.path("costs");
    let lateness = section.flag("lateness");
    let defaults = window.zip(timeout).map(|(window, timeout)| {
        let input = limits.map_or(window, |limits| limits.engine.in_flight).max(window);
        let class = ClassConfig::new(Service::Strict);
        ClassConfig { window, timeout: Some(timeout), max_bytes, input, ..class }
    });
    let (classes, names, dscp) = classes(top, defaults?, context)?;
    // Classes with a window of their own may have them from here.
    if window == Some(1) && classes.iter().all(|class| class.window == 1) {
        report_unbundled(&["timeout", "max_bytes"], &section);
    }
    let (policy, timeout, lateness) = (policy?, Some(timeout?), lateness?);
    let (window, batch) = (window?, batch?);
    let scheduling = Scheduling { policy, window, batch, timeout, max_bytes, classes, dscp, lateness };
    let order = if order? == "total" { Order::Total } else { Order::PerSa };
    Some(Scheduler { scheduling, classes: names, order, costs })
}

fn policy(processors: Option<&[Processor]>, section: &Reader<'_>) -> Option<Policy> {
    let word = section.word("policy")?;
    let used: &[&str] = match word {
        "single" => &["processor"],
        "size-threshold" => &["threshold", "small", "large"],
        "adaptive-alpha" => &["alpha_upper", "alpha_lower", "alpha_most", "alpha_period"],
        _ => &[],
    };
    let known = word.parse().ok()?;
    let parameters = |kind: &'static PolicyKind| kind.parameters.iter().map(|parameter| parameter.name);
    let of_policy: Vec<&str> = match &known {
        Policy::Registered(registered) => parameters(registered.kind()).collect(),
        _ => used.to_vec(),
    };
    let all =
        POLICY_KEYS.iter().copied().chain(forebay_scheduler::registered().into_iter().flat_map(parameters));
    for key in all.filter(|key| section.has(key) && !of_policy.contains(key)) {
        let message = format!("`{key}` does not apply to policy `{word}`");
        section.conflict(key, message, "remove the key, or choose another policy");
    }
    let named = |key: &'static str, is_default: fn(&ProcessorKind) -> bool| {
        let processors = processors?;
        if !section.has(key) {
            return Some(processors.iter().position(|one| is_default(&one.kind)).unwrap_or(0));
        }
        processor(key, processors, section)
    };
    let is_card = |kind: &ProcessorKind| matches!(kind, ProcessorKind::Device(_));
    let is_core = |kind: &ProcessorKind| matches!(kind, ProcessorKind::Core { .. });
    match known {
        Policy::Single { .. } => Some(Policy::Single { processor: named("processor", is_card)? }),
        Policy::SizeThreshold { .. } => {
            let (small, large) = (named("small", is_core), named("large", is_card));
            Some(Policy::SizeThreshold { bytes: section.whole("threshold")?, small: small?, large: large? })
        }
        Policy::AdaptiveAlpha(_) => alpha_loop(section).map(Policy::AdaptiveAlpha),
        Policy::Registered(policy) => {
            let with = |policy: Registered, parameter: &Parameter| {
                Some(policy.with(parameter.name, section.whole(parameter.name)?))
            };
            policy.kind().parameters.iter().try_fold(policy, with).map(Policy::Registered)
        }
        policy => Some(policy),
    }
}

fn alpha_loop(section: &Reader<'_>) -> Option<AlphaLoop> {
    let (upper, lower) = (section.whole("alpha_upper"), section.whole("alpha_lower"));
    let (most, period) = (section.whole("alpha_most"), section.time("alpha_period"));
    let (upper, lower) = (upper?, lower?);
    if lower > upper {
        let message = format!("`alpha_lower`, {lower}, is above `alpha_upper`, {upper}");
        section.conflict("alpha_lower", message, "lower `alpha_lower`, or raise `alpha_upper`");
    }
    Some(AlphaLoop { upper: upper as u8, lower: lower as u8, most: most? as u32, period: period? })
}

/// A processor by its name, or that of its entry (the first of its `count`).
fn processor(key: &'static str, processors: &[Processor], section: &Reader<'_>) -> Option<usize> {
    let name = section.text(key)?;
    let is_first = |one: &Processor| one.name.strip_suffix(".0") == Some(&name);
    let found = processors.iter().position(|one| one.name == name || is_first(one));
    if found.is_none() {
        section.unknown_word(key, &name, processors.iter().map(|one| one.name.clone()).collect());
    }
    found
}

/// The classes, their names, and the class of each code point.
type Classes = (Vec<ClassConfig>, Vec<String>, DscpMap);

fn classes(top: &Table, defaults: ClassConfig, context: &Context<'_>) -> Option<Classes> {
    let tables = tables(top, "class", context);
    if tables.is_empty() {
        return Some((vec![], vec!["all".to_owned()], DscpMap::one_class(0)));
    }
    let count = tables.len();
    let (mut names, mut owners, mut taken) = (Vec::new(), Vec::<String>::new(), DscpSet(0));
    let mut rest = None;
    let mut weighted = false;
    let mut sets = Vec::new();
    let mut classes = Vec::new();
    for (at, (table, place)) in tables.into_iter().enumerate() {
        let section = Reader::new("class", table, place, context).checked();
        if at == 256 {
            section.conflict("name", format!("{count} classes exceed the maximum"), "configure at most 256");
        }
        let name = section.text("name");
        owners.push(name.clone().unwrap_or_default());
        if let Some(name) = name {
            super::unique("class", &name, &mut names, &section);
        }
        let set = section.has("dscp").then(|| dscp(&section));
        match &set {
            Some(Some(set)) => {
                if set.0 & taken.0 != 0 {
                    let point = (set.0 & taken.0).trailing_zeros();
                    let help = "remove it from one of the classes: a code point belongs to one class";
                    let has = |set: &Option<DscpSet>| set.is_some_and(|set| set.0 & 1 << point != 0);
                    let owner = sets.iter().position(has).map_or("", |at| &owners[at]);
                    let message =
                        format!("code point {point} already belongs to class `{}`", mask::shown(owner));
                    section.conflict("dscp", message, help);
                }
                taken.0 |= set.0;
            }
            Some(None) => {}
            None if rest.is_some() => {
                let help = "give `dscp`: only one class can be without it, for all remaining code points";
                section.conflict("name", "a second class without `dscp`", help);
            }
            None => rest = Some(at),
        }
        sets.push(set.flatten());
        let class = class(defaults, &section);
        if class.is_some_and(|class| class.service == Service::Strict) && weighted {
            let help = "put strict classes before those with a `weight`";
            section.conflict("name", "a strict class behind one with a `weight`", help);
        }
        weighted |= section.has("weight");
        classes.push(class);
    }
    let complete = sets.iter().all(Option::is_some);
    if rest.is_none() && complete && taken.0 != u64::MAX {
        let point = (!taken.0).trailing_zeros();
        let problem = forebay_diagnostics::Problem::Conflict {
            message: format!("no class contains code point {point}"),
            help: "add a class without `dscp` for the remaining code points".to_owned(),
        };
        context.findings.borrow_mut().add(problem, top.get("class")?.place.clone());
    }
    let mut map = DscpMap::one_class(rest.unwrap_or(0) as u8);
    for (class, set) in sets.iter().enumerate() {
        let has = |point: &u8| set.is_some_and(|set| set.0 & 1 << point != 0);
        (0..64).filter(has).for_each(|point| map.set(point, class as u8));
    }
    Some((classes.into_iter().collect::<Option<_>>()?, names, map))
}

/// Code points by number, name, or range of both.
fn dscp(section: &Reader<'_>) -> Option<DscpSet> {
    const EXPECTED: &str =
        "expected code points: 0 to 63, `cs0` to `cs7`, `af11` to `af43`, `ef`, `le`, or ranges of them";
    let sets = section.each("dscp", |_, node| {
        let (text, set) = match &node.value {
            Value::Number(digits) => {
                let point = digits.parse::<u8>().ok().filter(|point| *point < 64);
                (digits, point.map(|point| DscpSet::of([point])))
            }
            Value::Text(text) => (text, text.parse::<DscpSet>().ok()),
            _ => return None,
        };
        if set.is_none() {
            section.bad("dscp", text, EXPECTED, node.place.clone());
        }
        set
    });
    let set = DscpSet(sets?.into_iter().fold(0, |all, set| all | set.0));
    if set.0 == 0 {
        section.conflict("dscp", "`dscp` has no code point", EXPECTED);
    }
    Some(set)
}

fn class(defaults: ClassConfig, section: &Reader<'_>) -> Option<ClassConfig> {
    let weight = section.whole("weight").map(|weight| weight as u32);
    let window = if section.has("window") { section.count("window")? } else { defaults.window };
    let timeout: Option<Duration> =
        if section.has("timeout") { section.time("timeout") } else { defaults.timeout };
    let max_bytes = if section.has("max_bytes") { section.whole("max_bytes") } else { defaults.max_bytes };
    let windowing = match section.word("windowing")? {
        "adaptive-window" => Windowing::Adaptive,
        _ => Windowing::Fixed,
    };
    if window == 1 {
        report_unbundled(&["windowing", "timeout", "max_bytes"], section);
    }
    let input = if section.has("limit") { section.count("limit")? } else { defaults.input.max(window) };
    if input < window {
        let message = format!("a `limit` of {input} is less than the window of {window}");
        section.conflict("limit", message, "set `limit` to at least the window");
    }
    let queue = if section.has("queue") { section.count("queue")? } else { usize::MAX };
    let latency_bound =
        if section.has("latency_bound") { Some(section.time("latency_bound")?) } else { None };
    let service = weight.map_or(Service::Strict, |weight| Service::Weighted { weight });
    Some(ClassConfig { service, window, windowing, timeout, max_bytes, input, queue, latency_bound })
}

/// Notes keys that are about bundles, of a section without any.
fn report_unbundled(keys: &[&'static str], section: &Reader<'_>) {
    for key in keys.iter().copied().filter(|key| section.has(key)) {
        let message = format!("`{key}` has no effect with a window of 1, which bundles no packets");
        section.advise(key, message, &format!("set `window` above 1, or remove `{key}`"));
    }
}

/// Reads `[limits]`.
pub(super) fn limits(top: &Table, context: &Context<'_>) -> Option<Limits> {
    let none = Table::default();
    let tables = tables(top, "limits", context);
    let (table, place) = tables.into_iter().next().unwrap_or((&none, super::whole()));
    let section = Reader::new("limits", table, place, context).checked();
    let reassembly = reassembly(&section);
    let (in_flight, packet_capacity) = (section.count("in_flight"), section.count("packet_size"));
    let (burst, hold) = (section.count("burst"), section.time("hold"));
    let (patience, slack) = (section.whole("patience"), section.time("slack"));
    let audit_every = section.whole("audit_every");
    let (sas, policies) = (section.count("sas"), section.count("policies"));
    let control_connections = section.count("control_connections");
    let engine = forebay_engine::Limits {
        in_flight: in_flight?,
        packet_capacity: packet_capacity?,
        burst: burst?,
        hold: hold?,
        overtake: forebay_engine::Limits::default().overtake,
        patience: patience?,
        slack: slack?,
        reassembly: reassembly?,
        pending_spi: PendingSpiLimits::NONE,
        audit_every: audit_every?,
    };
    Some(Limits { engine, sas: sas?, policies: policies?, control_connections: control_connections? })
}

fn reassembly(section: &Reader<'_>) -> Option<ReassemblyLimits> {
    let (datagrams, fragments) = (section.count("fragment_datagrams"), section.count("fragments"));
    let (bytes, bytes_per_source) =
        (section.count("fragment_bytes"), section.count("fragment_bytes_per_source"));
    let timeout = section.time("fragment_timeout");
    let limits = ReassemblyLimits {
        datagrams: datagrams?,
        bytes: bytes?,
        bytes_per_source: bytes_per_source?,
        fragments: fragments?,
        timeout: timeout?,
    };
    if limits.bytes_per_source > limits.bytes {
        let message = "`fragment_bytes_per_source` exceeds `fragment_bytes`";
        section.conflict("fragment_bytes_per_source", message, "lower it to at most `fragment_bytes`");
    }
    Some(limits)
}
