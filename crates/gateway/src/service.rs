//! The running gateway.

mod audit;
mod ike_forward;
mod installed;
mod keepalive;
mod mirror;
mod numbers;
mod pin;
mod port;
mod routes;
mod start;
mod taps;
mod worker;

pub use installed::{InstallError, Installed};
pub use mirror::{Follower, Most, OnPolicies};
pub use pin::pin;
pub use port::{Lost, Port, PortCounts};
pub use start::{Service, StartError};
pub use taps::{Side, Taps, Told};
pub use worker::{Handle, Protected, Setup, Worker, WorkerCounts};
