//! The bus that cards are plugged into, shared between the threads that drive them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::BusConfig;
use crate::model::Model;

/// A bus, first come, first served, one transfer at a time; clones are the same bus.
///
/// Cards on one bus may be driven from different threads, whose reading of the clock and whose
/// coming here may be in another order: a submission that says it is earlier than what the bus has
/// already worked out counts as made then. A card that is dropped leaves its place on the bus, and
/// what it had submitted still crosses it.
#[derive(Clone, Debug)]
pub struct Bus(Arc<Mutex<Model>>);

impl Bus {
    /// A bus without cards, at time zero.
    pub fn new(config: BusConfig) -> Bus {
        Bus(Arc::new(Mutex::new(Model::new(config))))
    }

    /// The model of the bus and all its cards.
    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        // Nothing in the model panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
