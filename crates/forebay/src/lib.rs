#![doc = include_str!("../README.md")]

#[cfg(all(feature = "gateway", target_os = "linux"))]
pub mod gateway;
#[cfg(feature = "ipsec")]
pub mod ipsec;
#[cfg(feature = "scheduler")]
pub mod scheduler;
#[cfg(feature = "simulation")]
pub mod simulation;

pub use forebay_time::{Duration, Time};
