//! Pages of runs, sweeps and searches: one HTML file each, which needs no network.

mod packets;
mod pipeline;
mod run;
mod sweep;

pub use pipeline::render as pipeline;
pub use run::simulation;
pub use sweep::{Row, SweepPage, search};
