//! Packets in memory, driven through the engine as a gateway drives it: what `forebay bench scheduler` and the demo
//! measure with.

pub mod latency;
pub mod median;
pub mod mix;
mod order;
pub mod processors;
pub mod rig;
pub mod search;
