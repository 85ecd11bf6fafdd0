//! The running gateway.

mod audit;
mod installed;
mod keepalive;
mod mirror;
mod numbers;
mod port;
mod routes;
mod start;
mod worker;

pub use installed::{InstallError, Installed};
pub use mirror::{Follower, Most, OnPolicies};
pub use port::{Lost, Port, PortCounts};
pub use start::{Service, StartError};
pub use worker::{Handle, Protected, Setup, Worker, WorkerCounts};
