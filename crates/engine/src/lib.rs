//! Real time: packet buffers, lanes to processors, calibration, order kept per SA.
//!
//! [`BurstPath`] is the data path of a core that has only itself. [`Engine`] is the one that spreads
//! jobs: it drives the scheduler with the machine's clock, does its own core's share in place, hands
//! the rest to lanes ([`Lane`]: another core) and cards, and releases packets in order.

mod burst;
mod calibrate;
mod clock;
mod doorbell;
mod edges;
mod engine;
mod flight;
mod health;
mod idle;
mod lane;
mod sessions;
mod setup;
mod stats;
mod strangers;
mod turn;

/// What the doorbell synchronises with; loom's model swaps it.
mod sync {
    pub use std::sync::atomic::{AtomicBool, Ordering, fence};
    pub use std::thread::Thread;
}

pub use burst::{BURST, BurstPath};
pub use calibrate::{BATCHES, Calibration, Point, SIZES, calibrate, esp_job};
pub use clock::Clock;
pub use edges::{Addresses, Answer};
pub use engine::{Engine, HandOver, Output, RUNNING_CORE, Refusal};
pub use flight::Order;
pub use health::Removal;
pub use idle::Idle;
pub use lane::Lane;
pub use sessions::AddSaError;
pub use setup::{EngineError, Limits, ProcessorSetup, SUITES_MAX, Scheduling, Settings};
pub use stats::{EngineStats, ProcessorStats};
pub use strangers::StrangerLimits;
