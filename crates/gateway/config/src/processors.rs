//! `[[processor]]` and `[[bus]]`.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::sync::Arc;

use forebay_crypto::Suite;
use forebay_crypto_card::BusConfig;
use forebay_diagnostics::Place;
use forebay_processors::{Backend, CORE, Device, Kind, Values};
use forebay_scenario::{Table, Unit};
use forebay_time::Duration;

use super::links::check_distinct;
use super::reader::{Context, Reader, tables};
use super::schema::processing::PROCESSORS_MAX;

/// A processor, one of a `count`.
#[derive(Clone, Debug, PartialEq)]
pub struct Processor {
    /// Its name, with a number behind it where its entry has a `count` above 1.
    pub name: String,
    /// Core or device.
    pub kind: ProcessorKind,
    /// The crypto library; of an emulated card, the one that does its work.
    pub backend: Backend,
    /// Factor on its finish time, at least 1.
    pub alpha: f64,
    /// Time added before the factor.
    pub beta: Duration,
    /// Jobs that may wait there.
    pub queue: usize,
}

impl Processor {
    /// The CPUs that a core's threads stay on; none of a device.
    pub fn cpus(&self) -> &[u32] {
        match &self.kind {
            ProcessorKind::Core { cpus } => cpus,
            ProcessorKind::Device(_) => &[],
        }
    }
}

/// What a processor is.
#[derive(Clone, Debug)]
pub enum ProcessorKind {
    /// A core of this machine; the first processor is the one that runs the loop.
    Core {
        /// The CPUs that its threads stay on, from 0; none: the system chooses. It has one thread, but the first
        /// processor has one for each core that moves packets: see [`Config::workers`](super::Config::workers).
        cpus: Vec<u32>,
    },
    /// A device of one of the [kinds](forebay_processors::KINDS).
    Device(Arc<dyn Device>),
}

impl ProcessorKind {
    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            ProcessorKind::Core { .. } => CORE,
            ProcessorKind::Device(device) => device.word(),
        }
    }
}

impl PartialEq for ProcessorKind {
    fn eq(&self, other: &ProcessorKind) -> bool {
        match (self, other) {
            (ProcessorKind::Core { cpus }, ProcessorKind::Core { cpus: others }) => cpus == others,
            (ProcessorKind::Device(one), ProcessorKind::Device(other)) => one.is_like(&**other),
            (ProcessorKind::Core { .. }, _) | (ProcessorKind::Device(_), _) => false,
        }
    }
}

/// A bus of emulated cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus {
    /// Its name.
    pub name: String,
    /// Its figures.
    pub config: BusConfig,
}

/// Reads `[[bus]]`; absent, there is one, that of the papers.
pub(super) fn buses(top: &Table, context: &Context<'_>) -> Option<Vec<Bus>> {
    let tables = tables(top, "bus", context);
    if tables.is_empty() {
        return Some(vec![Bus { name: "bus-1".to_owned(), config: BusConfig::pci_66() }]);
    }
    let mut names = Vec::new();
    let buses: Vec<Option<Bus>> = tables
        .into_iter()
        .enumerate()
        .map(|(at, (table, place))| {
            let section = Reader::new("bus", table, place, context).checked();
            let name = section.text("name").unwrap_or_else(|| format!("bus-{}", at + 1));
            super::unique("bus", &name, &mut names, &section);
            let (clock, width) = (section.whole("clock"), section.whole("width"));
            let address_cycles = section.whole("address_cycles");
            let config = BusConfig {
                clock_hz: NonZeroU64::new(clock?)?,
                width: NonZeroU32::new(width? as u32)?,
                address_cycles: address_cycles? as u32,
            };
            Some(Bus { name, config })
        })
        .collect();
    buses.into_iter().collect()
}

/// Most jobs in the queue of a processor whose kind has no key `queue`.
const QUEUE: usize = 1_000;

/// Reads `[[processor]]`; absent, there is one core.
pub(super) fn read(top: &Table, buses: Option<&[Bus]>, context: &Context<'_>) -> Option<Vec<Processor>> {
    let mut tables = tables(top, "processor", context);
    let core = Table(vec![core_node()]);
    if top.get("processor").is_none() {
        tables.push((&core, super::whole()));
    }
    let mut names = Vec::new();
    let mut processors = Vec::new();
    let mut complete = true;
    let mut kinds = Vec::new();
    let mut used = Vec::new();
    for (at, (table, place)) in tables.into_iter().enumerate() {
        let (section, kind) = Reader::of_kind("processor", "kind", table, place, context);
        if let (0, Some(word)) = (at, kind.filter(|&word| word != CORE)) {
            let help = "put a `[[processor]]` of kind `core` above it, for the worker thread itself";
            section.conflict("kind", format!("the first processor must not be a {word}"), help);
        }
        kinds.extend(kind);
        if section.knows("bus") {
            let named = section.has("bus").then(|| section.text("bus")).flatten();
            used.extend(named.or_else(|| Some(buses?.first()?.name.clone())));
        }
        let default = kind.map(|kind| match kinds.iter().filter(|one| **one == kind).count() {
            0 | 1 => kind.to_owned(),
            number => format!("{kind}-{number}"),
        });
        let name = if section.has("name") { section.text("name") } else { default };
        match kind.zip(name).and_then(|(kind, name)| entry(kind, &name, at == 0, buses, &section)) {
            Some(entry) => {
                for processor in &entry {
                    super::unique("processor", &processor.name, &mut names, &section);
                }
                processors.extend(entry);
            }
            None => complete = false,
        }
    }
    for ((_, place), bus) in self::tables(top, "bus", context).into_iter().zip(buses.into_iter().flatten()) {
        if complete && !used.contains(&bus.name) {
            let message = format!("no card is on bus `{}`", forebay_sas::mask::shown(&bus.name));
            let help = "name it as `bus` of a `[[processor]]` of kind `card`, or remove it";
            context.advise(message, help, &place);
        }
    }
    if processors.len() > PROCESSORS_MAX as usize {
        let message = format!("{} processors exceed the maximum", processors.len());
        let help = format!("configure at most {PROCESSORS_MAX}");
        let problem = forebay_diagnostics::Problem::Conflict { message, help };
        context.findings.borrow_mut().add(problem, super::whole());
    }
    complete.then_some(processors)
}

/// `kind = "core"`, where the file says nothing.
fn core_node() -> (String, Place, forebay_scenario::tree::Node) {
    let value = forebay_scenario::Value::Text("core".to_owned());
    let node = forebay_scenario::tree::Node { value, place: super::whole() };
    ("kind".to_owned(), super::whole(), node)
}

/// The processors of one table.
fn entry(
    kind: &'static str,
    name: &str,
    first: bool,
    buses: Option<&[Bus]>,
    section: &Reader<'_>,
) -> Option<Vec<Processor>> {
    let count = section.count("count");
    let backend = section.word("backend").and_then(Backend::of);
    let alpha = section.number("alpha");
    let beta = section.time("beta");
    // A kind that has no such key takes what the scheduler's models take.
    let queue = if section.knows("queue") { section.count("queue") } else { Some(QUEUE) };
    let kinds = match Kind::of(kind) {
        Some(kind) => {
            (kind.read)(&Given { buses, section }).map(|device| vec![ProcessorKind::Device(device)])
        }
        None => cores(count, first, section),
    };
    let (count, kinds) = (count?, kinds?);
    let processor = |number: usize| {
        let name = if count == 1 { name.to_owned() } else { format!("{name}.{number}") };
        let kind = kinds.get(number).or(kinds.first())?.clone();
        Some(Processor { name, kind, backend: backend?, alpha: alpha?, beta: beta?, queue: queue? })
    };
    (0..count).map(processor).collect()
}

/// Cores; of the first entry the first one has a thread for each core that moves packets, and a CPU for each.
fn cores(count: Option<usize>, first: bool, section: &Reader<'_>) -> Option<Vec<ProcessorKind>> {
    if !section.has("pin") {
        return Some(vec![ProcessorKind::Core { cpus: vec![] }]);
    }
    let cpus = section.each("pin", |values, node| values.whole_of("pin", node, Unit::None, 0, 8_191))?;
    check_distinct("pin", &cpus, section);
    let (count, given) = (count?, cpus.len());
    if given < count || (given > count && !first) {
        section.conflict(
            "pin",
            format!("`pin` has {given} CPUs, `count` is {count}"),
            "give one CPU for each core",
        );
        return None;
    }
    let cpus: Vec<u32> = cpus.into_iter().map(|cpu| cpu as u32).collect();
    let (moving, others) = cpus.split_at(given + 1 - count);
    let others = others.iter().map(|&cpu| vec![cpu]);
    Some(std::iter::once(moving.to_vec()).chain(others).map(|cpus| ProcessorKind::Core { cpus }).collect())
}

/// A `[[processor]]` as the module of its kind reads it.
struct Given<'a, 'b> {
    buses: Option<&'a [Bus]>,
    section: &'a Reader<'b>,
}

impl Values for Given<'_, '_> {
    fn has(&self, key: &'static str) -> bool {
        self.section.has(key)
    }

    fn conflict(&self, key: &'static str, message: &str, help: &str) {
        self.section.conflict(key, message, help);
    }

    fn whole(&self, key: &'static str) -> Option<u64> {
        self.section.whole(key)
    }

    fn count(&self, key: &'static str) -> Option<usize> {
        self.section.count(key)
    }

    fn time(&self, key: &'static str) -> Option<Duration> {
        self.section.time(key)
    }

    fn word(&self, key: &'static str) -> Option<&'static str> {
        self.section.word(key)
    }

    fn text(&self, key: &'static str) -> Option<String> {
        self.section.text(key)
    }

    fn path(&self, key: &'static str) -> Option<PathBuf> {
        self.section.path(key)
    }

    fn suites(&self, key: &'static str) -> Option<Option<Vec<Suite>>> {
        if !self.section.has(key) {
            return Some(None);
        }
        let expected = "expected proposals: [\"aes128gcm16\", \"aes128-sha256\"]";
        let suites = self.section.each_parsed::<Suite>(key, expected)?;
        check_distinct(key, &suites, self.section);
        Some(Some(suites))
    }

    fn bus(&self, key: &'static str) -> Option<usize> {
        bus(key, self.buses?, self.section)
    }
}

/// The bus of this name, or the first.
fn bus(key: &'static str, buses: &[Bus], section: &Reader<'_>) -> Option<usize> {
    if !section.has(key) {
        return Some(0);
    }
    let name = section.text(key)?;
    let found = buses.iter().position(|bus| bus.name == name);
    if found.is_none() {
        section.unknown_word(key, &name, buses.iter().map(|bus| bus.name.clone()).collect());
    }
    found
}
