//! The running gateway.

mod audit;
mod export;
mod installed;
mod keepalive;
mod mirror;
mod port;
mod start;
mod worker;

pub use export::KeyExport;
pub use installed::{InstallError, Installed};
pub use mirror::{Follower, OnPolicies};
pub use port::{Lost, Port, PortCounts};
pub use start::{Service, StartError};
pub use worker::{Handle, Protected, Setup, Worker, WorkerCounts};
