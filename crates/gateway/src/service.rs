//! The running gateway.

mod audit;
mod export;
mod guard;
mod hand_off;
mod held;
mod homes;
mod ike_forward;
mod installed;
mod intake;
mod keepalive;
mod lifetimes;
mod links;
mod mirror;
mod numbers;
mod pin;
mod port;
mod routes;
mod start;
mod taps;
mod windows;
mod worker;
mod workers;

pub use export::KeyExport;
pub use guard::{Guard, kernel_entries, lacks_guard};
pub use hand_off::{Bell, HandOff, Handed};
pub use homes::{Paths, Share};
pub use installed::{InstallError, Installed};
pub use mirror::{Follower, Most, OnPolicies};
pub use pin::pin;
pub use port::{Lost, Port, PortCounts};
pub use start::{Service, StartError, workers};
pub use taps::{Side, Taps, Told};
pub use worker::{Handle, Protected, Setup, Worker, WorkerCounts};
pub use workers::Workers;
