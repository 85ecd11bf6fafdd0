//! Schedule your own jobs over your own processors.
//!
//! The caller passes the time and every event to a [`Scheduler`], which returns decisions: it has no clock, no thread
//! and no I/O. Push an [`Item`] for each job, ask for the [next decision](Scheduler::next) until there is nothing to
//! dispatch, and report what the processors did ([`Scheduler::complete`], or [`Scheduler::taken`] and
//! [`Scheduler::finished`]). The cost of a job is linear in its length ([`Cost`]); [`fit`] derives it from
//! measurements, and [`Scheduler::set_cost`] changes it while jobs run.
//!
//! ```
//! use forebay::scheduler::{Config, Cost, Decision, Item, ProcessorConfig, Scheduler};
//! use forebay::{Duration, Time};
//!
//! // A core that begins at once, and a card that is five times faster once it has begun.
//! let cost = |init_us, block_ns| Cost {
//!     init: Duration::from_micros(init_us),
//!     block: Duration::from_nanos(block_ns), // for each 16 bytes
//!     ..Cost::default()
//! };
//! let core = ProcessorConfig::cpu(cost(0, 500));
//! let card = ProcessorConfig::accelerator(cost(10, 100));
//! let mut scheduler = Scheduler::new(Config::new(vec![core, card]))?;
//!
//! let mut place = |id, bytes| {
//!     scheduler.push(Time::ZERO, Item { id, sa: 0, class: 0, suite: 0, bytes }).expect("the input has room");
//!     match scheduler.next(Time::ZERO) {
//!         Decision::Dispatch { processor, .. } => processor,
//!         other => panic!("{other:?}"),
//!     }
//! };
//! assert_eq!(place(1, 64), 0); // 2 us instead of 10.4
//! assert_eq!(place(2, 1500), 1); // 19.4 us instead of 47 behind the first job
//! # Ok::<(), forebay::scheduler::ConfigError>(())
//! ```
//!
//! A [`Placement`] is a policy of your own. It is asked for the processor of each job, and may be used as it is
//! ([`Policy::Registered`]) or by its word in scenario and configuration files ([`register`]):
//!
//! ```
//! use forebay::scheduler::{Candidates, Config, Cost, Placement, Policy, PolicyKind, ProcessorConfig, Registered, Scheduler};
//!
//! /// The processor with the fewest unfinished jobs, whatever they cost.
//! #[derive(Debug)]
//! struct Fewest;
//!
//! impl Placement for Fewest {
//!     fn choose(&mut self, candidates: &Candidates<'_>) -> Option<usize> {
//!         candidates.least(|one| one.unfinished())
//!     }
//! }
//!
//! static FEWEST: PolicyKind =
//!     PolicyKind { word: "fewest", meaning: "the fewest unfinished jobs", parameters: &[], create: |_| Box::new(Fewest) };
//!
//! let mut config = Config::new(vec![ProcessorConfig::cpu(Cost::default())]);
//! config.policy = Policy::Registered(Registered::new(&FEWEST));
//! let scheduler = Scheduler::new(config)?;
//! # Ok::<(), forebay::scheduler::ConfigError>(())
//! ```
//!
//! The example `schedule.rs` runs jobs on two threads of unlike speed. For jobs that are crypto of IPsec packets,
//! [`ipsec::Engine`](crate::ipsec::Engine) drives the scheduler for you.

pub use forebay_scheduler::fit;
pub use forebay_scheduler::{
    AlphaLoop, Batch, BurstView, Candidate, Candidates, Choice, ClassConfig, ClassFault, Config, ConfigError,
    Cost, Decision, DscpMap, Item, Job, JobHead, Kind, PARAMETERS_MAX, Parameter, Placement, Policy,
    PolicyKind, Prediction, ProcessorConfig, Progress, RegisterError, Registered, Scheduler, Service,
    Transfer, UnknownPolicy, UnknownWord, Windowing, Work, register, registered,
};
