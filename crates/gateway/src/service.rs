//! The running gateway.

mod audit;
mod hand_off;
mod homes;
mod installed;
mod keepalive;
mod mirror;
mod pin;
mod port;
mod start;
mod worker;
mod workers;

pub use hand_off::{Bell, HandOff, Handed};
pub use homes::{Paths, Share};
pub use installed::{InstallError, Installed};
pub use mirror::{Follower, OnPolicies};
pub use pin::pin;
pub use port::{Lost, Port, PortCounts};
pub use start::{Service, StartError, workers};
pub use worker::{Handle, Protected, Setup, Worker, WorkerCounts};
pub use workers::Workers;
