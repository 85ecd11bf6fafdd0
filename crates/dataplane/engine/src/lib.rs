//! Real time: packet buffers, processors, order kept per SA, calibration.
//!
//! An [`Engine`] takes bursts of packets, prepares them, and spreads their crypto over processors: the running core
//! does its share in place, and anything else that implements [`Processor`](forebay_crypto::Processor) can take part. Each
//! further core has an engine beside the first ([`Engine::beside`]), which shares its SAs. Packets leave in order. The documentation of the module
//! `engine` lists which file does which step.

mod admit;
mod bench;
mod buffers;
mod by_suite;
mod calibrate;
mod check;
mod clock;
mod collect;
mod databases;
mod doorbell;
mod edges;
mod engine;
mod health;
mod idle;
mod in_flight;
mod in_place;
mod key_sessions;
mod moving;
mod nested;
mod outputs;
mod pace;
mod pending_spi;
mod place;
mod poll;
mod pool;
mod release;
mod sas;
mod setup;
mod side_by_side;
mod stats;
mod tickets;
mod turnstile;

/// Number of packets that go through each step together: enough to spread the cost of fetching each step's code and
/// of the call to the processor, and few enough for the packets to stay in the first-level cache.
pub const BURST: usize = 32;

/// Most packets that a core takes from a link at a time: see [`Engine::take_limit`]. What is done once for each SA of a burst costs less
/// a packet the more packets there are; where several cores share SAs, that is also what they fetch from each other's caches. And few
/// enough for others not to wait long for what this core completes.
pub const TAKE: usize = 256;

/// The primitives that doorbell and turnstile synchronise with. The loom models replace them.
mod sync {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicBool, Ordering, fence};
    pub use std::sync::{Mutex, MutexGuard};
    pub use std::thread::yield_now;
}

pub use bench::{Bench, Times, esp_job, esp_len};
pub use calibrate::{BATCHES, Calibration, Point, SIZES, calibrate, calibrate_within};
pub use clock::Clock;
pub use doorbell::{Doorbell, Wake};
pub use edges::{Addresses, Answer};
pub use engine::{Engine, Output, Refusal};
pub use health::Removal;
pub use idle::Idle;
pub use key_sessions::AddSaError;
pub use pending_spi::PendingSpiLimits;
pub use pool::RUNNING_CORE;
pub use setup::{EngineError, Limits, ProcessorSetup, SUITES_MAX, Scheduling, Settings};
pub use stats::{EngineStats, ProcessorStats};
pub use tickets::Order;
pub use turnstile::Turnstile;
