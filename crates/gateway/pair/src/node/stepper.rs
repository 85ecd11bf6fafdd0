//! A gateway of a pair without threads, connections and clocks of its own, for simulations.

use std::sync::{Arc, Mutex};

use forebay_state::{IvStore, Lock};

use super::notes::Notes;
use super::{Clocks, Pair, PairError, Shared, Speaker, lock};
use crate::message::Message;
use crate::outbox::Meanwhile;

/// What the threads of a [`Pair`] do, step by step.
pub struct Stepper {
    shared: Arc<Shared>,
    notes: Mutex<Notes>,
}

impl Pair {
    /// One whose time passes and whose connections are made by a [`Stepper`]. Nothing is listened at and no key is read.
    /// `process` is a name that no other process of the two has; `meanwhile` has the peer hear what was sent to it, and this gateway what the peer answered.
    ///
    /// # Errors
    /// As [`Pair::start`].
    pub fn stepped(
        config: &forebay_config::Pair,
        state: (IvStore, Lock),
        process: u64,
        clocks: Clocks,
        meanwhile: Meanwhile,
    ) -> Result<(Pair, Stepper), PairError> {
        let (pair, notes) = Pair::new(config, state, process, clocks, Some(meanwhile))?;
        let stepper = Stepper { shared: pair.shared.clone(), notes: Mutex::new(notes) };
        Ok((pair, stepper))
    }
}

impl Stepper {
    /// Does what is due by now.
    pub fn pass_time(&self) {
        self.shared.pass_time();
    }

    /// A connection to the peer is there, and is told who speaks; its number.
    pub fn connect(&self, speaker: Arc<dyn Speaker>) -> u64 {
        let beat = self.shared.beat(&lock(&self.shared.state));
        speaker.say(&beat);
        self.shared.connected(speaker)
    }

    /// A message has come by a connection. Whether the connection may go on.
    pub fn hear(&self, link: u64, message: Message) -> bool {
        let understood = self.shared.read(link, message).is_some();
        lock(&self.notes).run_once(&self.shared);
        understood
    }

    /// A connection is gone.
    pub fn disconnect(&self, link: u64) {
        self.shared.disconnected(link);
    }

    /// Whether this gateway has used or received numbers that the peer may not know.
    pub fn is_unmerged(&self) -> bool {
        self.shared.memory.note().unmerged
    }
}
