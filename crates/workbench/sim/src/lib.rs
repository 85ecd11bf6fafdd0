//! The simulator: what a design would do on given traffic, in virtual time (docs/models.md).
//!
//! A [`Scenario`] is read from a file; [`run()`] drives the scheduler of the gateway, event by event,
//! over the stations that the emulated card uses too, and gives an [`Outcome`]. A run is a pure
//! function of scenario and seed: the same bytes out on every machine and with any number of threads.
//! \[H\] is Castanier, Ferrante, Piuri, ASAP 2004, and \[S\] Taddeo, Ferrante, Piuri: Scheduling Small Packets in
//! IPSec-based Systems.
//!
//! ```text
//!  Stream ----> Scheduler ----> Host (processors, buses) ----> Ledger ----> Figures
//!  (traffic)    (placement)     (forebay-station)              (books)
//! ```

mod batches;
mod bursts;
mod cores;
mod dependents;
mod document;
mod energy;
mod figures;
mod flights;
mod histogram;
mod input;
mod latencies;
mod ledger;
mod optimum;
mod order;
mod outcome;
mod polling;
mod probe;
mod random;
mod reorder;
mod replicate;
mod run;
mod scenario;
mod search;
mod setup;
mod timeline;
mod traffic;

pub use cores::{CoreCost, CorePacket, Cores, CoresError, CoresOutcome, Serial, Taken};
pub use document::Document;
pub use energy::Power;
pub use figures::{
    BusFigures, ClassFigures, CoresFigures, Figures, Latency, OrderFigures, ProcessorFigures,
    RunningCoreFigures, Turnstile,
};
pub use forebay_random::Estimate;
pub use optimum::{Limits, OPTIMUM_PACKETS, OPTIMUM_PROCESSORS, bound, optimum};
pub use outcome::{Columns, EXACT_MAX, Options, Outcome, Progress, RunError};
pub use replicate::{Replications, replicate};
pub use run::run;
pub use scenario::{
    Answers, Bus, Class, Dependent, Feed, FileErrors, Finding, MAX_PROCESSORS, PARTS, Problem, Processor,
    RunningCore, Scenario, Settings,
};
pub use search::{Bound, Highest, Tried, highest_rate};
pub use timeline::{Choice, Doing, Span, Timeline};
pub use traffic::{
    Arrival, Arrivals, Bin, Chain, DrawnClass, Gaps, Rate, Sizes, Source, Stream, Trace, TraceError, Traffic,
    read_trace,
};
