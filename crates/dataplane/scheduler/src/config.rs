//! The configuration of a scheduler, and its errors.

use std::fmt;

use forebay_time::Duration;

use crate::{AlphaLoop, ClassConfig, ClassFault, Cost, KeyCost, Policy, Service, Transfer, Windowing};

/// A scheduler's processors, policy and limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// The processors, by their index from here on.
    pub processors: Vec<ProcessorConfig>,
    /// How the place of a job is chosen.
    pub policy: Policy,
    /// Sliding window in packets; 1 bundles nothing. With [`Windowing::Adaptive`] the largest.
    pub window: usize,
    /// Whether the window stays as it is set.
    pub windowing: Windowing,
    /// How long the packet at the head waits for the window to fill; `None`: for ever. With
    /// [`Windowing::Adaptive`] the longest.
    pub timeout: Option<Duration>,
    /// Most bytes that packets are bundled to; `None`: no limit. A packet larger than this goes alone.
    pub max_bytes: Option<u64>,
    /// Most packets that wait in the input, at least `window`.
    pub input: usize,
    /// The service classes by their number, the strict ones first; at most 256. Without any, all
    /// packets are of one class, which has the five settings above; with some, each has its own and
    /// those above are not looked at.
    pub classes: Vec<ClassConfig>,
    /// Maximum number of jobs that are placed together, each processor's share at a price that depends on its size
    /// (docs/models.md, "Real processors"); 1, the papers' rule, places one by one.
    pub batch: usize,
    /// Whether processors that the rule does not choose are given shares of several sizes now and then, so that their
    /// costs stay known. Only where `batch` is above 1.
    pub trials: bool,
    /// The processor that also moves packets, in whose finish time [`crate::Scheduler::set_moving`] and
    /// [`ProcessorConfig::feed`] count; `None` in the papers. Only where `batch` is above 1.
    pub host: Option<usize>,
    /// Counts fetched jobs that have not begun to be computed as waiting (\[H\] 4.3).
    pub prefetch_aware: bool,
}

impl Config {
    /// The papers' scheduler: finish time, no window, an input without limit.
    pub fn new(processors: Vec<ProcessorConfig>) -> Config {
        Config {
            processors,
            policy: Policy::FinishTime,
            window: 1,
            windowing: Windowing::Fixed,
            timeout: None,
            max_bytes: None,
            input: usize::MAX,
            classes: Vec::new(),
            prefetch_aware: false,
            batch: 1,
            trials: false,
            host: None,
        }
    }
}

impl Config {
    /// The service classes, one at least; what is wrong with the configuration but for its processors.
    pub(crate) fn check(&self) -> Result<Vec<ClassConfig>, ConfigError> {
        let count = self.processors.len();
        if count == 0 {
            return Err(ConfigError::NoProcessors);
        }
        if self.classes.is_empty() {
            let only = ClassConfig::only(self);
            only.check().map_err(ConfigError::of_only_class)?;
            self.check_policy()?;
            return Ok(vec![only]);
        }
        if self.classes.len() > 256 {
            return Err(ConfigError::TooManyClasses { count: self.classes.len() });
        }
        let mut weighted = false;
        for (class, config) in self.classes.iter().enumerate() {
            config.check().map_err(|fault| ConfigError::Class { class, fault })?;
            if weighted && config.service == Service::Strict {
                return Err(ConfigError::Class { class, fault: ClassFault::StrictBehindWeighted });
            }
            weighted |= config.service != Service::Strict;
        }
        self.check_policy()?;
        Ok(self.classes.clone())
    }

    fn check_policy(&self) -> Result<(), ConfigError> {
        if self.batch == 0 {
            return Err(ConfigError::ZeroBatch);
        }
        if let Some(processor) = self.host.filter(|&host| host >= self.processors.len()) {
            return Err(ConfigError::UnknownProcessor { processor, count: self.processors.len() });
        }
        if let Policy::AdaptiveAlpha(config) = &self.policy {
            config.check()?;
        }
        let count = self.processors.len();
        match self.policy.names().filter(|&index| index >= count) {
            Some(processor) => Err(ConfigError::UnknownProcessor { processor, count }),
            None => Ok(()),
        }
    }
}

impl ConfigError {
    /// A fault of the one class that a configuration without classes has.
    fn of_only_class(fault: ClassFault) -> ConfigError {
        match fault {
            ClassFault::ZeroWindow => ConfigError::ZeroWindow,
            ClassFault::InputBelowWindow { input, window } => ConfigError::InputBelowWindow { input, window },
            fault => ConfigError::Class { class: 0, fault },
        }
    }
}

/// A word of a configuration file that names nothing there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    /// What it should have named.
    pub kind: &'static str,
    /// The word.
    pub found: String,
    /// The words there are.
    pub known: Vec<&'static str>,
}

impl UnknownWord {
    /// The one of `all` whose word is `found`.
    pub(crate) fn find<T: Copy>(
        kind: &'static str,
        found: &str,
        all: &[T],
        word: impl Fn(&T) -> &'static str,
    ) -> Result<T, UnknownWord> {
        let known = all.iter().copied().find(|one| word(one) == found);
        known.ok_or_else(|| UnknownWord {
            kind,
            found: found.to_owned(),
            known: all.iter().map(word).collect(),
        })
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} `{}`; there are {}", self.kind, self.found, self.known.join(", "))
    }
}

impl std::error::Error for UnknownWord {}

/// Whether a processor stands behind a bus or is a core of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A core; loses ties against accelerators.
    Cpu,
    /// A card or what behaves like one.
    Accelerator,
}

/// How the scheduler learns when a processor takes a job out of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The driver reports it ([`crate::Scheduler::taken`]).
    Told,
    /// It is not reported. The processor works its queue in order, so a job is assumed to begin when the one before
    /// it is complete, or at once on an idle processor.
    InOrder,
}

/// One processor as the scheduler sees it.
#[derive(Clone, Debug)]
pub struct ProcessorConfig {
    /// Core or accelerator.
    pub kind: Kind,
    /// Cost of jobs there, for every suite until [`crate::Scheduler::set_suite_cost`].
    pub cost: Cost,
    /// Factor on its finish time, at least 1 (\[H\] eq 4: 1 for accelerators).
    pub alpha: f64,
    /// Time added before the factor (\[H\] eq 4: 0 for accelerators).
    pub beta: Duration,
    /// Time that the [host](Config::host) spends to hand it jobs and take them back: `submit` for each batch, `init`
    /// for each job, `block` for each block; zero in the papers.
    pub feed: Cost,
    /// Most jobs that wait in its queue, at least 1, the ones taken out not counted.
    pub queue: usize,
    /// Suites it can do: bit [`crate::Item::suite`].
    pub suites: u64,
    /// Adds two transfers over this bus, in and out, to the predicted processing time.
    pub transfer: Option<Transfer>,
    /// What it costs to have the keys of an SA there; `None`: nothing, as in the papers.
    pub keys: Option<KeyCost>,
    /// How its progress is known.
    pub progress: Progress,
}

impl ProcessorConfig {
    /// A core that can do every suite, with the models' defaults: alpha 1, beta 0, a queue of 1000.
    pub fn cpu(cost: Cost) -> ProcessorConfig {
        ProcessorConfig {
            kind: Kind::Cpu,
            cost,
            alpha: 1.0,
            beta: Duration::ZERO,
            feed: Cost::default(),
            queue: 1_000,
            suites: u64::MAX,
            transfer: None,
            keys: None,
            progress: Progress::Told,
        }
    }

    /// An accelerator that can do every suite, with the models' defaults: a queue of 1000.
    pub fn accelerator(cost: Cost) -> ProcessorConfig {
        ProcessorConfig { kind: Kind::Accelerator, ..ProcessorConfig::cpu(cost) }
    }
}

/// A configuration that describes no scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is nothing to place jobs on.
    NoProcessors,
    /// A window of no packets.
    ZeroWindow,
    /// The input cannot hold a full window, which therefore would never fill.
    InputBelowWindow {
        /// The input's limit in packets.
        input: usize,
        /// The window in packets.
        window: usize,
    },
    /// At most no jobs were to be placed together.
    ZeroBatch,
    /// A queue without a place takes no job.
    ZeroQueue {
        /// Whose.
        processor: usize,
    },
    /// alpha is not at least 1, or too large (2^53).
    Alpha {
        /// Whose.
        processor: usize,
        /// What was given.
        found: f64,
    },
    /// A bus with a clock or a width of zero.
    Transfer {
        /// Whose.
        processor: usize,
    },
    /// Marks or limits of the loop for alpha that cannot be.
    AlphaLoop {
        /// What was given.
        found: AlphaLoop,
    },
    /// Something is wrong with a service class.
    Class {
        /// Its number.
        class: usize,
        /// What.
        fault: ClassFault,
    },
    /// More classes than [`crate::Item::class`] can name.
    TooManyClasses {
        /// How many.
        count: usize,
    },
    /// The policy names a processor that does not exist.
    UnknownProcessor {
        /// The index it names.
        processor: usize,
        /// How many there are.
        count: usize,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ConfigError::NoProcessors => f.write_str("there is no processor"),
            ConfigError::ZeroWindow => f.write_str("the window is 0 packets; 1 is none"),
            ConfigError::InputBelowWindow { input, window } => {
                write!(f, "an input of {input} packets never fills a window of {window}")
            }
            ConfigError::ZeroBatch => f.write_str("batch = 0: at least one job is placed at a time"),
            ConfigError::ZeroQueue { processor } => {
                write!(f, "the queue of processor {processor} has no place; it needs at least 1")
            }
            ConfigError::Alpha { processor, found } => {
                write!(f, "alpha of processor {processor} is {found}; it is at least 1 and below 2^53")
            }
            ConfigError::Transfer { processor } => {
                write!(f, "the bus of processor {processor} has a clock or a width of 0")
            }
            ConfigError::AlphaLoop { found: AlphaLoop { upper, lower, most, period } } => {
                write!(
                    f,
                    "alpha falls below {lower} % and rises above {upper} % to {most} every {period}; the \
                     lower mark is at most the upper, that at most 100 %, the others above 0"
                )
            }
            ConfigError::Class { class, fault } => write!(f, "class {class}: {fault}"),
            ConfigError::TooManyClasses { count } => write!(f, "{count} classes; there may be 256"),
            ConfigError::UnknownProcessor { processor, count } => {
                write!(f, "processor {processor} is named, but there are {count}, counted from 0")
            }
        }
    }
}

impl std::error::Error for ConfigError {}
