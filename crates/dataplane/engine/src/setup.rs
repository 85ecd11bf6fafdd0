//! How an engine is set up: its processors, its scheduler, and every limit with its reason.

use std::fmt;

use forebay_crypto::{Processor, SessionError, Suite};
use forebay_ipsec::reassembly::ReassemblyLimits;
use forebay_scheduler::{ClassConfig, ConfigError, Cost, DscpMap, Kind, Policy};
use forebay_time::Duration;

use crate::edges::Addresses;
use crate::pending_spi::PendingSpiLimits;
use crate::tickets::Order;

/// Most suites that the SAs of one engine may have between them: the scheduler keeps a bit for each.
pub const SUITES_MAX: usize = u64::BITS as usize;

/// Jobs that are placed together unless it is set otherwise: two bursts, so that there is enough for several
/// processors that do many side by side.
const BATCH: usize = 64;

/// A processor and what the scheduler should know of it.
pub struct ProcessorSetup {
    /// The processor.
    pub processor: Box<dyn Processor>,
    /// Core or card.
    pub kind: Kind,
    /// Cost of a job there until it has been measured.
    pub cost: Cost,
    /// Factor on its finishing time, at least 1: keeps a core free for other work.
    pub alpha: f64,
    /// Time added before the factor.
    pub beta: Duration,
    /// Jobs that may wait there.
    pub queue: usize,
}

/// Jobs that may wait at a processor unless it is set otherwise.
const QUEUE: usize = 256;

impl ProcessorSetup {
    /// A processor described to the scheduler only by its kind and its cost; at most 256 jobs wait there.
    /// `Cost::default()` suffices where there is no other processor, since there is no choice then.
    pub fn new(processor: Box<dyn Processor>, kind: Kind, cost: Cost) -> ProcessorSetup {
        ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: QUEUE }
    }
}

/// The parameters of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// How places are chosen.
    pub policy: Policy,
    /// Sliding window in packets; 1 bundles nothing.
    pub window: usize,
    /// Maximum number of jobs that are placed together, each processor's share at a price that depends on its size;
    /// 1 places one by one, as the papers do.
    pub batch: usize,
    /// Longest wait for the window to fill.
    pub timeout: Option<Duration>,
    /// Most bytes bundled.
    pub max_bytes: Option<u64>,
    /// Service classes, the most urgent first, each with its own window; none is one class by the settings
    /// above.
    pub classes: Vec<ClassConfig>,
    /// The class of each DSCP outbound. A window of late packets would refuse those of a slower class, so
    /// each class wants an SA of its own.
    pub dscp: DscpMap,
    /// Whether the engine learns how much later than predicted processors answer, as they do if there are more
    /// threads than free CPUs ([`forebay_scheduler::Scheduler::report_late`]).
    pub lateness: bool,
}

impl Default for Scheduling {
    fn default() -> Scheduling {
        Scheduling {
            policy: Policy::FinishTime,
            window: 1,
            batch: BATCH,
            timeout: None,
            max_bytes: None,
            classes: vec![],
            dscp: DscpMap::one_class(0),
            lateness: false,
        }
    }
}

/// Every limit of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Packets between admission and release. Bounds memory to twice as many buffers, because jobs
    /// away from the running core work on a copy.
    pub in_flight: usize,
    /// Length of the largest IP packet, in bytes.
    pub packet_capacity: usize,
    /// Jobs the running core does before it looks at the others again.
    pub burst: usize,
    /// Longest that a job may be away from the running core, and so longest that one late job can
    /// hold the packets behind it.
    pub hold: Duration,
    /// How long packets wait for earlier ones of their SA that another core has: after that they go before them. Longer
    /// than a thread usually waits for a CPU, and at least twice [`Limits::hold`].
    pub overtake: Duration,
    /// Deadline of a submission, as a multiple of its predicted time; [`Limits::slack`] is added.
    pub patience: u64,
    /// Time that is added to the deadline, because a thread may lose its core to another for some scheduler ticks.
    pub slack: Duration,
    /// Limits of reassembly.
    pub reassembly: ReassemblyLimits,
    /// Limits for packets whose SPI is not known yet.
    pub pending_spi: PendingSpiLimits,
    /// One in how many results of another processor the running core checks: it repeats the job and compares; 0 for
    /// none. The checked ones are drawn at random, so that a regular fault cannot fall between them. Where a check
    /// costs more than the job did, up to 64 times fewer are checked. A processor that always computes wrongly delivers
    /// at most twice that number of packets before it is found.
    pub audit_every: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            in_flight: 4096,
            packet_capacity: 2048,
            burst: crate::BURST,
            hold: Duration::from_millis(200),
            overtake: Duration::from_millis(500),
            patience: 4,
            slack: Duration::from_millis(50),
            reassembly: ReassemblyLimits::default(),
            pending_spi: PendingSpiLimits::NONE,
            audit_every: 64,
        }
    }
}

/// All settings of an engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Policy and window.
    pub scheduling: Scheduling,
    /// Limits.
    pub limits: Limits,
    /// The unit within which packets stay in order.
    pub order: Order,
    /// Where this gateway answers plain packets from.
    pub addresses: Addresses,
    /// Keys the hashes of the tables that packets of unknown senders fill. It must be a number that no other party
    /// can know.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            scheduling: Scheduling::default(),
            limits: Limits::default(),
            order: Order::PerSa,
            addresses: Addresses::default(),
            seed: 0,
        }
    }
}

/// An engine that could not be set up.
#[derive(Debug)]
#[non_exhaustive]
pub enum EngineError {
    /// There must be the keys of every SA, in the order of the SAs.
    Keys {
        /// How many SAs there are.
        sas: usize,
        /// How many keys were given.
        keys: usize,
    },
    /// No processor does a suite that an SA has.
    NoProcessor(Suite),
    /// The SAs have more suites than [`SUITES_MAX`], which are this many.
    TooManySuites(usize),
    /// A processor refused a session of a suite that it declares.
    Session {
        /// Which one.
        processor: String,
        /// Why.
        error: SessionError,
    },
    /// The scheduler's settings are wrong.
    Scheduler(ConfigError),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Keys { sas, keys } => write!(f, "{keys} keys for {sas} SAs"),
            EngineError::NoProcessor(suite) => write!(f, "no processor does {suite}"),
            EngineError::TooManySuites(found) => {
                write!(f, "the SAs have {found} different suites, at most {SUITES_MAX} are possible")
            }
            EngineError::Session { processor, error } => write!(f, "{processor}: {error}"),
            EngineError::Scheduler(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for EngineError {}
