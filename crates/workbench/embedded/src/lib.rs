//! Firmware on simulated cores (docs/models.md, "Embedded cores"): configurations of a core, what a firmware costs on
//! each, where its cycles go, and what options pay for their area.
//!
//! \[E\] is Potlapally, Ravi, Raghunathan, Lee, Jha: Impact of Configurability and Extensibility on IPSec Protocol
//! Execution on Embedded Processors.

pub mod area;
pub mod builtin;
pub mod elf;
pub mod energy;
pub mod figures;
pub mod groups;
pub mod hardware;
pub mod image;
pub mod instructions;
pub mod machine;
pub mod packets;
mod prepare;
pub mod report;
pub mod schema;
mod sender;
pub mod setup;

pub use area::parts;
pub use figures::Figures;
pub use groups::Groups;
pub use machine::{Done, Job, RunError, run};
pub use prepare::Prepared;
pub use setup::{Input, Setup};
