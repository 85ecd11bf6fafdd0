//! Placement of crypto jobs on unlike processors by predicted finish time, and the sliding
//! window that bundles small packets of one security association into one job.
//!
//! The [`Scheduler`] is pure: the caller passes the time and every event, and it returns decisions. The engine drives
//! it with the machine's clock, the simulator with a virtual one; its behaviour is the same to the picosecond. Its
//! rules are those of docs/models.md, "Placement" and "Window", after \[H\] Castanier, Ferrante, Piuri, ASAP 2004, and \[S\]
//! Taddeo, Ferrante, Piuri.
//!
//! ```text
//!  push --> Window ----job----> hand --Policy--> Processor 0 --taken--> in service --finished-->
//!           (waits, bundles)    (blocks while    Processor 1
//!                                its queue is    ...
//!                                 full)
//!           [ one of these for each service class ]
//! ```
//!
//! A driver does three things: it [pushes](Scheduler::push) packets, asks for the
//! [next decision](Scheduler::next) until there is nothing to dispatch, and reports what the
//! processors did ([`Scheduler::taken`] and [`Scheduler::finished`], or just
//! [`Scheduler::complete`] for one that works its queue in order).
//!
//! What the papers leave open is there too, each in a file of its own: service classes, strict or by
//! weight ([`ClassConfig`], [`dscp`]); an alpha that follows the load of the host's CPU
//! ([`Policy::AdaptiveAlpha`]); what a processor's jobs are late by, learnt ([`Scheduler::report_late`]); a
//! window that follows the traffic ([`Windowing::Adaptive`]); predictions with the bus in them
//! ([`ProcessorConfig::transfer`]).
//!
//! ```
//! use forebay_scheduler::{Config, Cost, Decision, Item, ProcessorConfig, Scheduler};
//! use forebay_time::{Duration, Time};
//!
//! let cost = |block| Cost { init: Duration::from_micros(1), block, ..Cost::default() };
//! let cpu = ProcessorConfig::cpu(cost(Duration::from_nanos(920)));
//! let card = ProcessorConfig::accelerator(cost(Duration::from_nanos(440)));
//! let mut scheduler = Scheduler::new(Config::new(vec![cpu, card])).unwrap();
//!
//! let item = Item { id: 7, sa: 1, class: 0, suite: 0, bytes: 160 };
//! scheduler.push(Time::ZERO, item).unwrap();
//! let Decision::Dispatch { processor, job, prediction, .. } = scheduler.next(Time::ZERO) else { panic!() };
//! assert_eq!((processor, job.items()), (1, &[7][..]));
//! assert_eq!(prediction.finish(), Time(5_400_000)); // 1 us + 10 blocks of 440 ns
//! ```

mod alpha;
mod burst;
mod class;
mod class_queue;
mod config;
mod cost;
mod deficit_round_robin;
mod groups;
mod job;
mod keys;
mod placement;
mod policy;
mod processor_state;
mod registry;
mod scheduler;
mod tardiness;
mod trials;
mod tuner;
mod window;

pub mod dscp;
pub mod fit;

pub use alpha::AlphaLoop;
pub use class::{ClassConfig, ClassFault, Service};
pub use config::{Config, ConfigError, Kind, ProcessorConfig, Progress, UnknownWord};
pub use cost::{Batch, Cost, Transfer, Work};
pub use dscp::DscpMap;
pub use job::{Item, Job, JobHead, Prediction};
pub use keys::{KeyCost, Keys};
pub use placement::{BurstView, Candidate, Candidates, Choice, Placement};
pub use policy::{Policy, UnknownPolicy};
pub use registry::{PARAMETERS_MAX, Parameter, PolicyKind, RegisterError, Registered, register, registered};
pub use scheduler::{Decision, Scheduler};
pub use tuner::Windowing;
