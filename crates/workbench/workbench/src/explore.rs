//! Runs and sweeps of embedded cores. Configurations of which one execution is the other's are timed by one execution.

mod compare;
mod points;
mod run;
mod sweep;

pub use compare::{comparison, rows};
pub use points::Points;
pub use run::run_all;
pub use sweep::{Sweep, document};
