//! The running gateway.

mod audit;
mod keepalive;
mod port;
mod worker;

pub use port::{Lost, Port, PortCounts};
pub use worker::{Handle, Protected, Setup, Worker, WorkerCounts};
