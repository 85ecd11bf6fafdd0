//! Simulation of packet pipelines: any number of stages on any number of shared servers, in a chain or with branches, and
//! the sizes of their buffers.
//!
//! ```text
//!  arrivals --> [stage] --> [stage] --> [stage] --> [stage] --> [stage] --> out
//!                 own         core        own         core        own
//! ```
//!
//! [`Pipeline`] describes, [`simulate`] runs, [`Outcome`] tells. The rules are those of
//! docs/models.md, "Pipelines of stages", after \[N\] (the IXP425 as a VPN gateway, after Lin et al., ACM TECS; inline
//! cards are \[G\]'s: Bellows et al., IPsec-Protected Transport of HDTV over IP), and what lies beside them: priorities and round-robin
//! between stages, several cores, hardware threads, several units a stage, batches. Time is whole
//! picoseconds; what happens at one instant happens in the order in which it was scheduled. A run
//! is a pure function of its description: everything that draws has its own stream of random
//! numbers, named after it and seeded by the run's seed.
//!
//! [`solve`] answers the same questions exactly where all times may be taken as exponential, and
//! [`size`] asks them the other way round.

mod description;
mod document;
mod figures;
mod law;
mod marks;
mod parts;
mod random;
mod replicate;
mod run;
mod shape;
mod solved;
mod timetable;
mod turns;
mod ways;

pub mod scenario;
pub mod size;

pub use description::{
    Arrival, Arrivals, Branch, Breakdowns, Discipline, Grant, Invalid, Overflow, Pipeline, Power, RunEnds,
    Server, Stage,
};
pub use document::{
    Buffer, Carried, ClosedForm, Replications, ServerMeans, Simulated, Sizes, SmallestBuffers, Solved,
    StageMeans, Station, Used,
};
pub use figures::{Delay, Outcome, ServerOutcome, StageOutcome};
pub use forebay_random::Estimate;
pub use law::Law;
pub use marks::{BatchMean, BatchMeans, StageSeries, TimeSeries};
pub use replicate::{Replicated, interval, replicate, replicate_with};
pub use run::{Watch, simulate, simulate_with};
pub use shape::Shape;
pub use solved::{network, solve, unlimited};
