//! The threads that move packets. A [`Worker`] runs the loop of one core: it receives packets from links, passes them through
//! the engine and sends them. Several [`Workers`] share their SAs and help each other; each handles its packets from
//! reception to transmission.

mod audit;
mod bell;
mod held;
pub mod installed;
mod intake;
mod keepalive;
mod port;
mod stations;
mod wait;
mod word;
mod worker;
mod workers;

pub use installed::{InstallError, Installed};
pub use port::{Lost, Port, PortCounts};
pub use wait::{Poll, Wait};
pub use word::Word;
pub use worker::{Handle, Outside, OwnSettings, PortOf, Setup, Steps, Worker, WorkerCounts};
pub use workers::Workers;
