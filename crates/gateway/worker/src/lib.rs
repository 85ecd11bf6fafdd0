//! The threads that move packets. A [`Worker`] runs the loop of one core: it takes packets from links, puts them through
//! the engine and sends them on. Several [`Workers`] share nothing; a packet goes to the worker that owns its SA by a
//! [`Handoff`].

mod audit;
mod handoff;
mod held;
pub mod installed;
mod intake;
mod keepalive;
pub mod owners;
mod port;
mod wait;
mod word;
mod worker;
mod workers;

pub use handoff::{Bell, Handoff, HandoffPacket};
pub use installed::{InstallError, Installed};
pub use owners::{Paths, WorkerIndex};
pub use port::{Lost, Port, PortCounts};
pub use wait::{Poll, Wait};
pub use word::Word;
pub use worker::{Handle, Outside, Setup, Steps, Worker, WorkerCounts};
pub use workers::Workers;
