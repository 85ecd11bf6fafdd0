//! Measurements of the data plane on this machine.
//!
//! [`esp`] measures whole packets through the engine beside the bare cipher, [`scheduler`] policies on real processors
//! beside the sum of them and the best fixed split, [`processors`] what a job costs on each processor, [`crossover`] from which
//! packets on a device is done earlier than a core, [`gateway`] a whole gateway by every kind of link, and [`validate`] runs the engine with emulated cards and the simulator on the same packets.
//!
//! This crate prints nothing: settings are plain, progress is reported to the caller, which decides whether to continue.

pub mod crossover;
mod error;
pub mod esp;
pub mod gateway;
pub mod processors;
pub mod scheduler;
pub mod validate;

pub use error::Error;
