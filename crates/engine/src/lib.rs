//! Real time: packet buffers, processors, order kept per SA, calibration.
//!
//! An [`Engine`] takes bursts of packets, prepares them, and spreads their crypto over processors: the running core
//! does its share in place, a [`Lane`] is another core, and whatever else implements
//! [`Processor`](forebay_crypto::Processor) takes part. Packets leave in order. [`engine`](Engine) says which file does
//! what.

mod admit;
mod buffers;
mod calibrate;
mod clock;
mod collect;
mod doorbell;
mod edges;
mod engine;
mod health;
mod idle;
mod in_flight;
mod in_place;
mod key_sessions;
mod lane;
mod moving;
mod pending_spi;
mod place;
mod pool;
mod release;
mod sas;
mod setup;
mod stats;
mod turn;

/// Packets that go through the steps together: enough to spread the cost of each step's code and of
/// the call to the processor, few enough for the packets to stay in the first-level cache.
pub const BURST: usize = 32;

/// What the doorbell synchronises with; loom's model swaps it.
mod sync {
    pub use std::sync::atomic::{AtomicBool, Ordering, fence};
    pub use std::thread::Thread;
}

pub use calibrate::{BATCHES, Calibration, Point, SIZES, calibrate, esp_job};
pub use clock::Clock;
pub use edges::{Addresses, Answer};
pub use engine::{Engine, HandOver, Output, Refusal};
pub use health::Removal;
pub use idle::Idle;
pub use in_flight::Order;
pub use key_sessions::AddSaError;
pub use lane::Lane;
pub use pending_spi::PendingSpiLimits;
pub use pool::RUNNING_CORE;
pub use setup::{EngineError, Limits, ProcessorSetup, SUITES_MAX, Scheduling, Settings};
pub use stats::{EngineStats, ProcessorStats};
