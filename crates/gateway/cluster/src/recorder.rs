//! Writes records to etcd before the numbers that they allow are used.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forebay_planted::{Fault, planted};
use forebay_state::{Ahead, Alone, NotNoted, Noting, Record, Replica};

use crate::etcd::{Etcd, Operation, Transaction};
use crate::layout::Layout;
use crate::node::{Shared, lock, renewal};
use crate::places::{Id, PlaceError, Places, settle};

/// Maximum number of records of one transaction: etcd accepts 128 operations.
const AT_ONCE: usize = 100;
/// Maximum number of attempts of a transaction whose claims this gateway itself has changed.
const TRIES: usize = 4;

/// The records of the shares that this gateway owns. See the module.
#[derive(Clone)]
pub struct Recorder {
    /// The store.
    pub etcd: Arc<dyn Etcd>,
    /// Its keys.
    pub layout: Layout,
    /// The value of claims of this gateway.
    pub owner: String,
    /// The shares that it owns.
    pub state: Shared,
    /// The share of each SA and key.
    pub places: Arc<Mutex<Places>>,
    /// Time for whose packets numbers are recorded ahead.
    pub ahead: Duration,
    /// A monotonic clock.
    pub clock: fn() -> Duration,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Replica for Recorder {
    fn begin(&self, records: &[Record]) -> Result<Box<dyn Noting>, NotNoted> {
        self.settle_places(records.iter().map(Id::of), true).map_err(|error| NotNoted(error.to_string()))?;
        let places = lock_places(&self.places);
        // Records of no SA of the file were never made here.
        let placed = records.iter().filter_map(|record| Some((places.of(Id::of(record))?, record)));
        let mut placed: Vec<_> = placed.collect();
        drop(places);
        // Records of a share together, so that a transaction compares few claims.
        placed.sort_by_key(|(share, _)| *share);
        placed.chunks(AT_ONCE).try_for_each(|chunk| self.write(chunk))?;
        Ok(Box::new(Alone))
    }

    fn takes_unused(&self) -> bool {
        true
    }

    fn ahead(&self) -> Ahead {
        Ahead {
            time: self.ahead,
            gather: Duration::from_millis(10),
            look: Duration::from_millis(250),
            ..Ahead::DISK
        }
    }

    fn epoch(&self) -> u64 {
        0
    }
}

impl Recorder {
    /// Checks that the records of these are in the shares of the file: see [`settle`].
    pub fn settle_places(&self, ids: impl Iterator<Item = Id>, writes: bool) -> Result<(), PlaceError> {
        let unwritten = lock_places(&self.places).unwritten(ids);
        settle(&*self.etcd, &self.layout, &self.places, &unwritten, writes)
    }

    fn write(&self, records: &[(u16, &Record)]) -> Result<(), NotNoted> {
        let began = (self.clock)();
        let shares: BTreeSet<u16> = records.iter().map(|(share, _)| *share).collect();
        let puts: Vec<Operation> = records
            .iter()
            .map(|(share, record)| {
                let (key, value) = self.layout.record(*share, record);
                Operation::Put { key, value, lease: 0 }
            })
            .collect();
        for _ in 0..TRIES {
            let fences = self.fences(&shares)?;
            let claims = fences.iter().filter(|_| !planted(Fault::ClaimsIgnored));
            let compare = claims.map(|(&share, &fence)| (self.layout.claim(share), fence)).collect();
            let reply = self.etcd.transact(&Transaction { compare, then: puts.clone(), otherwise: vec![] });
            match reply {
                Ok(reply) if reply.succeeded => {
                    let took = (self.clock)().saturating_sub(began);
                    let mut state = lock(&self.state);
                    state.written.0 += 1;
                    state.written.1 += records.len() as u64;
                    state.takes = if state.takes.is_zero() { took } else { (state.takes * 7 + took) / 8 };
                    return Ok(());
                }
                Ok(_) => {
                    shares.iter().try_for_each(|&share| self.check(share, fences.get(&share).copied()))?
                }
                Err(error) => {
                    if error.may_be_done() && !planted(Fault::DoubtForgotten) {
                        // It may be performed after the next record, and would then revert that one.
                        let mut state = lock(&self.state);
                        for share in &shares {
                            if let Some(held) = state.held.get_mut(share) {
                                held.doubtful = true;
                            }
                        }
                    }
                    if planted(Fault::UsedUnrecorded) {
                        return Ok(());
                    }
                    return Err(NotNoted(error.to_string()));
                }
            }
        }
        Err(NotNoted("the claims of the shares change all the time".to_owned()))
    }

    /// The revisions of claims, renewed if a record without an answer may still be written: that record compares the old revision.
    fn fences(&self, shares: &BTreeSet<u16>) -> Result<BTreeMap<u16, i64>, NotNoted> {
        let mut fences = BTreeMap::new();
        for &share in shares {
            let state = lock(&self.state);
            let Some(held) = state.held_as_served(share) else { return Err(not_owned(share)) };
            let (fence, doubtful, term) = (held.fence, held.doubtful, held.term);
            drop(state);
            let fence = if doubtful { self.renew(share, fence, term)? } else { fence };
            fences.insert(share, fence);
        }
        Ok(fences)
    }

    fn renew(&self, share: u16, fence: i64, term: u64) -> Result<i64, NotNoted> {
        let (key, value) = (self.layout.claim(share), renewal(&self.owner, term));
        let reply = self.etcd.transact(&Transaction {
            compare: vec![(key.clone(), fence)],
            then: vec![Operation::Put { key: key.clone(), value: value.clone(), lease: 0 }],
            otherwise: vec![Operation::Get { key }],
        });
        let reply = reply.map_err(|error| NotNoted(error.to_string()))?;
        let renewed = match reply.succeeded {
            true => Some(reply.revision),
            // An earlier renewal without an answer was performed, or another thread's.
            false => {
                let claim = reply.found.first().and_then(|found| found.pairs.first());
                claim.filter(|claim| claim.value == value).map(|claim| claim.modified)
            }
        };
        self.know(share, fence, renewed)
    }

    /// Finds out why a claim has changed.
    fn check(&self, share: u16, fence: Option<i64>) -> Result<(), NotNoted> {
        let read = Transaction::read(vec![Operation::Get { key: self.layout.claim(share) }]);
        let reply = self.etcd.transact(&read).map_err(|error| NotNoted(error.to_string()))?;
        let claim = reply.found.first().and_then(|found| found.pairs.first());
        let term = lock(&self.state).held.get(&share).map(|held| held.term);
        let own = term.map(|term| renewal(&self.owner, term));
        let claim = claim.filter(|claim| Some(&claim.value) == own.as_ref()).map(|claim| claim.modified);
        self.know(share, fence.unwrap_or_default(), claim).map(drop)
    }

    /// Notes the revision of a share's claim, or that it belongs to another gateway.
    fn know(&self, share: u16, before: i64, fence: Option<i64>) -> Result<i64, NotNoted> {
        let mut state = lock(&self.state);
        let Some(fence) = fence else {
            // Unless it belongs to this gateway again.
            if state.held.get(&share).is_some_and(|held| held.fence == before) {
                tracing::warn!(share, "another gateway has taken over a share");
                state.held.remove(&share);
            }
            return Err(not_owned(share));
        };
        let held = state.held.get_mut(&share).ok_or_else(|| not_owned(share))?;
        if held.fence < fence {
            // A record in flight compares a claim that does not exist any more.
            (held.fence, held.doubtful) = (fence, false);
        }
        Ok(held.fence)
    }
}

/// The places, locked.
pub fn lock_places(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

fn not_owned(share: u16) -> NotNoted {
    NotNoted(format!("share {share} is served by another gateway"))
}
