//! One gateway of a pair: a data plane runs while it is active.

use std::sync::Arc;

use forebay_control::PairDoc;
use forebay_pair::{Pair, PairStatus, Verdict};
use forebay_state::{IvStore, Lock};
use forebay_time::{Duration, Time};

use super::{Event, Others, Process, Role};
use crate::service::{Service, SharedAddresses, StartError};

pub(super) struct Paired {
    pair: Arc<Pair>,
    addresses: SharedAddresses,
    /// Whether a data plane runs, or has run since this gateway was on standby.
    is_active: bool,
}

impl Paired {
    pub(super) fn new(pair: Arc<Pair>, addresses: SharedAddresses) -> Paired {
        Paired { pair, addresses, is_active: false }
    }
}

impl Role for Paired {
    fn wants_data_plane(&self, runs: bool) -> bool {
        match self.pair.verdict() {
            Verdict::Standby => false,
            Verdict::Active => true,
            // There are records that the running data plane did not begin with.
            Verdict::Restart => !runs,
        }
    }

    fn prepare(&mut self, now: Time) -> Result<(IvStore, Lock), StartError> {
        self.is_active = true;
        self.addresses.add(now)?;
        Ok(self.pair.prepare()?)
    }

    fn started(&mut self, process: &dyn Process) -> Result<(), StartError> {
        self.addresses.announce(process.clock().now());
        Ok(())
    }

    fn look(&mut self, _service: &mut Service, process: &dyn Process) -> Option<Event> {
        let every = self.pair.announce_every().map(|every| Duration::from_millis(every.as_millis() as u64));
        self.addresses.look_after(process.clock().now(), every);
        None
    }

    fn stand_by(&mut self) {
        if std::mem::take(&mut self.is_active) {
            self.addresses.remove();
            self.pair.stopped();
        }
    }

    fn leave(&mut self) {
        if self.is_active {
            self.stand_by();
            self.pair.resign();
        }
    }

    fn others(&self) -> Option<Others> {
        let pair = self.pair.clone();
        Some(Arc::new(move |status| status.pair = Some(told(&pair.status()))))
    }
}

/// The status of a pair for the control socket.
fn told(status: &PairStatus) -> PairDoc {
    PairDoc {
        number: status.number,
        role: status.role.word().to_owned(),
        term: status.term,
        links: status.links,
        peer: status.peer.map(|role| role.word().to_owned()),
        in_sync: status.in_sync,
        waiting: status.waiting,
        noted: status.noted,
        lag_s: status.takes.as_secs_f64(),
        take_overs: status.take_overs,
        last_take_over: status.last.map(|(at, _)| at.as_secs_f64()),
        reason: status.last.map(|(_, why)| why.to_owned()),
        waits: status.waits.map(str::to_owned),
        refused: status.refused,
    }
}
