//! Costs from measurements: [`shape()`] for a calibration, [`Fit`] while running.
//!
//! A processor's time depends on how many jobs it is given at once: some compute several side by side
//! ([`Cost::lanes`](crate::Cost)), all take some time for a batch as such. So both look at batches, not at
//! jobs, and find submit, init, block, packet and lanes together. A measured time may be ten or a hundred times
//! too long, because the worker was preempted, so neither is a plain least-squares fit.
//!
//! With one packet per job, and one job at a time, packet and init cannot be distinguished: packet is then zero, and
//! counts only where jobs are computed side by side but prepared one after the other.

mod online;
mod shape;
mod squares;
mod terms;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use online::Fit;
pub use shape::{Sample, Shape, shape};
