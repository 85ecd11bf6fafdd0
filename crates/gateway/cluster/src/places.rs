//! The share that has the records of a cipher key or an SA. Its first record writes the share down for good; every other record
//! checks it first.
//!
//! The configuration determines the share of an SA. If a file names another share than before, or the gateways have different files,
//! two shares would get records, and neither would contain all used numbers. The second share is therefore refused, whichever gateway
//! tries.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use forebay_planted::{Fault, planted};
use forebay_state::{KeyId, Record, SequenceId};

use crate::etcd::{Etcd, EtcdError, Operation, Transaction};
use crate::layout::{Layout, parse_share};

/// Maximum number of places in one transaction: etcd accepts 128 operations.
const AT_ONCE: usize = 100;
/// Maximum number of attempts of a transaction that lost against another gateway's.
const TRIES: usize = 4;

/// The subject of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// A cipher key, whose IVs are recorded.
    Key(KeyId),
    /// An SA.
    Sa(SequenceId),
}

impl Id {
    /// The subject of a record.
    pub fn of(record: &Record) -> Id {
        match record {
            Record::Ivs { key, .. } => Id::Key(*key),
            Record::Numbers { id, .. } | Record::Window { id, .. } | Record::Life { id, .. } => Id::Sa(*id),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Key(key) => write!(f, "the cipher key {key}"),
            Id::Sa(sa) => write!(f, "the SA {sa}"),
        }
    }
}

/// The records are in another share than that of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The SA or key.
    pub id: Id,
    /// The share that has them.
    pub from: u16,
    /// The share of the file.
    pub to: u16,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moved { id, from, to } = self;
        write!(f, "{id} has its records in share {from} and would be moved to share {to}")
    }
}

/// Errors of a place.
#[derive(Debug)]
pub enum PlaceError {
    /// See [`Moved`].
    Moved(Moved),
    /// An error of etcd.
    Etcd(EtcdError),
    /// A damaged place.
    Damaged(String),
    /// Other gateways were faster in all attempts.
    Busy,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::Moved(moved) => moved.fmt(f),
            PlaceError::Etcd(error) => error.fmt(f),
            PlaceError::Damaged(key) => write!(f, "{key} in etcd says no share"),
            PlaceError::Busy => f.write_str("the places of records change all the time"),
        }
    }
}

/// The share of a key or an SA.
#[derive(Clone, Copy, Debug)]
struct Place {
    share: u16,
    /// Whether etcd has it: it then never changes.
    is_written: bool,
    /// Whether the gateway's current file has it.
    is_in_file: bool,
}

/// The shares of all keys and SAs of the files that this gateway has read.
#[derive(Clone, Debug, Default)]
pub struct Places(HashMap<Id, Place>);

impl Places {
    /// The share of a key or an SA; `None` if no file had it.
    pub fn of(&self, id: Id) -> Option<u16> {
        self.0.get(&id).map(|place| place.share)
    }

    /// The keys and SAs of the current file in these shares. Those of an earlier file, possibly in another share, prevent no share from being served.
    pub fn in_shares(&self, shares: &BTreeSet<u16>) -> Vec<Id> {
        let is_of_file = |place: &Place| place.is_in_file || planted(Fault::PlacesKept);
        let is_there = |place: &Place| is_of_file(place) && shares.contains(&place.share);
        self.0.iter().filter(|(_, place)| is_there(place)).map(|(id, _)| *id).collect()
    }

    /// Uses the shares of a file. A key or SA without a record may change its share.
    ///
    /// # Errors
    /// If a key or SA has records in another share; nothing is changed then.
    pub fn assign(&mut self, ids: impl Iterator<Item = (Id, u16)> + Clone) -> Result<(), Moved> {
        for (id, to) in ids.clone() {
            let place = self.0.get(&id).filter(|_| !planted(Fault::MovesUnseen));
            if let Some(place) = place.filter(|place| place.is_written && place.share != to) {
                return Err(Moved { id, from: place.share, to });
            }
        }
        self.0.values_mut().for_each(|place| place.is_in_file = false);
        for (id, share) in ids {
            let place = self.0.entry(id).or_insert(Place { share, is_written: false, is_in_file: true });
            (place.share, place.is_in_file) = (share, true);
        }
        Ok(())
    }

    /// Those of these whose share was not read from etcd yet.
    pub fn unwritten(&self, ids: impl Iterator<Item = Id>) -> BTreeSet<Id> {
        ids.filter(|id| self.0.get(id).is_some_and(|place| !place.is_written)).collect()
    }

    /// Keeps the shares that etcd has for these; `Err` if one has another share here.
    fn know(&mut self, found: &[(Id, u16)]) -> Result<(), Moved> {
        for &(id, from) in found {
            let Some(place) = self.0.get_mut(&id) else { continue };
            if place.share != from && !planted(Fault::MovesUnseen) {
                return Err(Moved { id, from, to: place.share });
            }
            place.is_written = true;
        }
        Ok(())
    }
}

/// Checks that etcd has these in the same shares as here, and with `writes` writes the shares that etcd does not have.
///
/// # Errors
/// If one has its records in another share, or etcd does not answer.
pub fn settle(
    etcd: &dyn Etcd,
    layout: &Layout,
    places: &std::sync::Mutex<Places>,
    ids: &BTreeSet<Id>,
    writes: bool,
) -> Result<(), PlaceError> {
    let lock = || places.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let ids: Vec<Id> = ids.iter().copied().collect();
    for chunk in ids.chunks(AT_ONCE) {
        let mut left = chunk.to_vec();
        for _ in 0..TRIES {
            let found = read(etcd, layout, &left)?;
            lock().know(&found).map_err(PlaceError::Moved)?;
            left.retain(|id| !found.iter().any(|(known, _)| known == id));
            if left.is_empty() || !writes {
                break;
            }
            let shares: Vec<(Id, u16)> = left.iter().filter_map(|&id| Some((id, lock().of(id)?))).collect();
            let put = |&(id, share): &(Id, u16)| Operation::Put {
                key: layout.place(id),
                value: format!("{share:04x}"),
                lease: 0,
            };
            let transaction = Transaction {
                // The revision of a key that does not exist.
                compare: shares.iter().map(|(id, _)| (layout.place(*id), 0)).collect(),
                then: shares.iter().map(put).collect(),
                otherwise: vec![],
            };
            // A late transaction, or one without an answer, writes the same or fails.
            if etcd.transact(&transaction).map_err(PlaceError::Etcd)?.succeeded {
                lock().know(&shares).map_err(PlaceError::Moved)?;
                left.clear();
                break;
            }
        }
        if writes && !left.is_empty() {
            return Err(PlaceError::Busy);
        }
    }
    Ok(())
}

fn read(etcd: &dyn Etcd, layout: &Layout, ids: &[Id]) -> Result<Vec<(Id, u16)>, PlaceError> {
    let reads = ids.iter().map(|&id| Operation::Get { key: layout.place(id) }).collect();
    let reply = etcd.transact(&Transaction::read(reads)).map_err(PlaceError::Etcd)?;
    let mut places = Vec::new();
    for (&id, found) in ids.iter().zip(&reply.found) {
        let Some(pair) = found.pairs.first() else { continue };
        let share = parse_share(&pair.value).ok_or_else(|| PlaceError::Damaged(pair.key.clone()))?;
        places.push((id, share));
    }
    Ok(places)
}
