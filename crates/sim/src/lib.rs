//! The simulator: what a design would do on given traffic, in virtual time (`spec/models.md` section 1).
//!
//! A [`Scenario`] is read from a file; [`run`] drives the scheduler of the gateway, event by event,
//! over the stations that the emulated card uses too, and gives an [`Outcome`]. A run is a pure
//! function of scenario and seed: the same bytes out on every machine and with any number of threads.
//!
//! ```text
//!  Stream ----> Scheduler ----> Host (processors, buses) ----> Ledger ----> Figures
//!  (traffic)    (placement)     (forebay-station)              (books)
//! ```

mod figures;
mod histogram;
mod ledger;
mod random;
mod run;
mod scenario;
mod timeline;
mod traffic;

pub use figures::{BusFigures, Figures, Latency, ProcessorFigures};
pub use run::{Columns, EXACT_MAX, Options, Outcome, Progress, RunError, run};
pub use scenario::*;
pub use timeline::Timeline;
pub use traffic::*;
