//! Scenario files of the host model (docs/reference/host.md).
//!
//! Everything that is wrong with a file is reported at once, each with its line, what was found, what
//! was expected, and the nearest known key.

mod classes;
mod cores;
mod energy;
mod idle;
mod order;
mod placement;
mod processors;
mod real;
mod scheduler;
mod schema;
mod traffic;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use forebay_scheduler::{ClassConfig, Policy, ProcessorConfig, Windowing};
use forebay_station::BusConfig;
use forebay_time::Duration;
use serde_json::{Map, Value as Json};

pub use forebay_diagnostics::{FileErrors, Finding, Problem};
pub use schema::PARTS;

use crate::cores::Serial;
use crate::traffic::Traffic;
use forebay_diagnostics::{Findings, Place};
use forebay_scenario::schema::known;
use forebay_scenario::{MODELS, Section, Table, Unit, Value, tables};
// By the names of the rooms, for those who read the sections.
use forebay_scenario::{decimal, section, tree};

/// The most processors of a scenario, all of a `count` counted.
pub const MAX_PROCESSORS: usize = 1_024;

/// A host with its traffic: all that a run depends on.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What random numbers begin with.
    pub seed: u64,
    /// What arrives.
    pub traffic: Traffic,
    /// The buses.
    pub buses: Vec<Bus>,
    /// The processors, by their index in the scheduler.
    pub processors: Vec<Processor>,
    /// Policy and window.
    pub scheduler: Settings,
    /// The serial parts of processors that are cores, each of which goes with its burst: there is no scheduler before them.
    pub cores: Option<Serial>,
    /// Notes for the reader of the figures: defaults that have not been measured.
    pub notes: Vec<String>,
    /// The scenario with every default filled in, in the form of the file.
    pub resolved: Json,
}

/// A bus.
#[derive(Clone, Debug)]
pub struct Bus {
    /// Its name.
    pub name: String,
    /// Its figures.
    pub config: BusConfig,
    /// Energy of each byte that crosses it, in joules, if it is given.
    pub energy_per_byte_j: Option<f64>,
}

/// A processor.
#[derive(Clone, Debug)]
pub struct Processor {
    /// Its name, with a number if its entry has a `count` above 1.
    pub name: String,
    /// Its configuration in the scheduler.
    pub config: ProcessorConfig,
    /// Its bus; `None`: a CPU.
    pub bus: Option<usize>,
    /// w.
    pub write_buffer: usize,
    /// k.
    pub prefetch: usize,
    /// Share of its time that a CPU is busy with other work, as it reports to the loop for alpha. It
    /// takes nothing from the crypto: t_init and t_block are those of what other work leaves.
    pub others: f64,
    /// How it answers what is handed to it together.
    pub answers: Answers,
    /// What it costs the running core to hand packets to it and to collect them; zero in the papers.
    pub feed: Feed,
    /// Time that it spends on each packet besides the crypto: it is the running core.
    pub moves: Option<Duration>,
    /// What power it takes, if that is given.
    pub power: Option<crate::energy::Power>,
}

/// How packets are placed that need the result of another job (\[H\] 3.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dependent {
    /// Not before that job is done.
    #[default]
    WhenReady,
    /// At the processor of that job, which works in order; several passes of a packet are one job there.
    SameProcessor,
}

/// When the jobs of a batch are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// All of them when the last one is computed.
    #[default]
    Batch,
    /// Each group of [`forebay_scheduler::Cost::lanes`] jobs when it is computed.
    Each,
}

/// The time that the running core spends on another processor's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feed {
    /// For each packet.
    pub packet: Duration,
    /// For each 16-byte block of them.
    pub block: Duration,
}

/// The core that moves all packets in a polling loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningCore {
    /// Its index.
    pub processor: usize,
    /// Time that it spends on each packet besides the crypto.
    pub moves: Duration,
}

/// The scheduler's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How processors are chosen.
    pub policy: Policy,
    /// W in packets.
    pub window: usize,
    /// Whether the window stays as it is set.
    pub windowing: Windowing,
    /// How long a reference waits for its window to fill; `None`: for ever.
    pub timeout: Option<Duration>,
    /// Most bytes of a multi-packet.
    pub max_bytes: Option<u64>,
    /// Most packets in the input, others are lost; `None`: no limit.
    pub input: Option<usize>,
    /// Whether prefetched jobs count as waiting.
    pub prefetch_aware: bool,
    /// Whether packets of an SA leave in the order in which they came.
    pub keep_order: bool,
    /// Whether a job passes a full queue by, where jobs are placed one by one; in the papers it waits.
    pub pass_full: bool,
    /// How packets are placed that need the result of another job.
    pub dependent: Dependent,
    /// Whether all packets of an SA stay at one processor.
    pub stay: bool,
    /// Whether a job that finds every processor idle goes to the fastest accelerator.
    pub idle_to_accelerator: bool,
    /// Most jobs that are placed together; 1 in the papers.
    pub burst: usize,
    /// The core that moves the packets; `None`: that takes no time, as in the papers.
    pub running_core: Option<RunningCore>,
    /// The service classes, by the numbers that packets have; none: all packets are alike.
    pub classes: Vec<Class>,
    /// Whether the scheduler distinguishes them; if not, only the figures do.
    pub by_class: bool,
}

impl Settings {
    /// Whether jobs are handed over in batches, else one by one.
    pub(crate) fn takes_batches(&self) -> bool {
        self.burst > 1 || self.running_core.is_some()
    }

    /// Whether the scheduler has several classes.
    pub(crate) fn has_classes(&self) -> bool {
        self.by_class && !self.classes.is_empty()
    }
}

/// A service class.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its configuration in the scheduler.
    pub config: ClassConfig,
}

impl Scenario {
    /// Reads a scenario file; traces it names are relative to its directory. `sets` are what `--set`
    /// was given, `key=value`; the later of two counts.
    pub fn load(path: &Path, sets: &[String]) -> Result<Scenario, FileErrors> {
        let name = path.display().to_string();
        let text = forebay_scenario::load(path)?;
        let directory = path.parent().map(PathBuf::from).unwrap_or_default();
        Scenario::parse(&text, &name, sets, &directory)
    }

    /// Reads a scenario from `text`, calling it `name` in errors.
    pub fn parse(text: &str, name: &str, sets: &[String], directory: &Path) -> Result<Scenario, FileErrors> {
        forebay_scenario::read(text, name, sets, |root, findings| read(root, directory, findings))
    }

    /// [`Scenario::resolved`] as a scenario file.
    pub fn resolved_toml(&self) -> String {
        toml::to_string(&self.resolved).expect("a tree of plain values")
    }

    /// The same with other arrivals, for searches over rates.
    pub fn with_rate(&self, rate: crate::Rate) -> Scenario {
        let mut scenario = self.clone();
        scenario.traffic.set_rate(rate);
        scenario
    }
}

fn read(root: &Table, directory: &Path, findings: &RefCell<Findings>) -> Option<Scenario> {
    let whole = Place { source: 0, span: 0..0 };
    let top = Section::new(root, "the scenario".to_owned(), whole, &known(PARTS, ""), findings);
    match top.text("model") {
        Some("host") => {}
        Some(_) => {
            // Of another model, or of none.
            if top.word("model", MODELS).is_some() {
                top.word("model", &["host"]);
            }
            return None;
        }
        None if top.has("model") => {}
        None => top.missing("model", "model = \"host\""),
    }
    let seed = top.whole("seed", Unit::None, 0, u64::MAX).unwrap_or(1);
    let mut notes = Vec::new();
    let mut resolved = Map::new();
    resolved.insert("model".to_owned(), "host".into());
    resolved.insert("seed".to_owned(), seed.into());
    let mut suites = traffic::Suites::default();
    let mut classes = classes::entries(&top);
    let mut traffic = traffic::read(&top, directory, &mut suites, &mut classes, &mut notes, &mut resolved);
    let buses = processors::buses(&top, &mut resolved);
    let mut processors = processors::read(&top, &buses, &mut suites, &mut notes, &mut resolved);
    let scheduler = scheduler::read(&top, &mut processors, &buses, classes, &mut notes, &mut resolved);
    idle::note(root, &top, &mut notes);
    placement::of_traffic(
        &top,
        traffic.as_mut(),
        &mut suites,
        &mut processors,
        &scheduler,
        &resolved,
        &mut notes,
    );
    energy::check(&top, traffic.as_ref(), &buses, &processors, &mut notes);
    let cores = cores::read(&top, traffic.as_ref(), &mut resolved);
    if !findings.borrow().is_empty() {
        return None;
    }
    Some(Scenario {
        seed,
        traffic: traffic?,
        buses,
        processors,
        scheduler,
        cores,
        notes,
        resolved: resolved.into(),
    })
}

/// A length of time in seconds, as JSON.
fn seconds(length: Duration) -> Json {
    length.as_secs().into()
}

/// Picoseconds of a time written as a number of seconds, to the nearest, halves up.
pub(crate) fn ps_of(text: &str) -> Option<u128> {
    decimal::Decimal::parse(text).and_then(decimal::Decimal::as_ps)
}
