#![doc = include_str!("../README.md")]

#[cfg(all(feature = "cluster", target_os = "linux"))]
pub mod cluster;
#[cfg(all(feature = "gateway", target_os = "linux"))]
pub mod gateway;
#[cfg(feature = "ipsec")]
pub mod ipsec;
#[cfg(all(feature = "pair", target_os = "linux"))]
pub mod pair;
#[cfg(feature = "scheduler")]
pub mod scheduler;
#[cfg(feature = "simulation")]
pub mod simulation;

pub use forebay_time::{Duration, Time};
