//! A store in memory that behaves like etcd, over a network that loses, delays and cuts requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::etcd::{Etcd, EtcdError, Found, Operation, Pair, Reply, Transaction};

/// What happens to the next request of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// It arrives, and so does the answer.
    #[default]
    Works,
    /// It does not arrive, and that is known.
    Cut,
    /// It is done, and the answer is lost.
    AnswerLost,
    /// It is lost, and that is not known.
    Lost,
    /// It is done at a later time, when nobody waits for it any more.
    Late,
    /// It is refused: the store is full.
    Full,
}

#[derive(Debug, Default)]
struct Inner {
    now: Duration,
    revision: i64,
    keys: BTreeMap<String, Pair>,
    /// Leases with their time and their ends.
    leases: BTreeMap<i64, (Duration, Duration)>,
    granted: i64,
    /// Transactions that are under way.
    late: Vec<Transaction>,
    identity: String,
}

/// The store. Its copies are the same one.
#[derive(Clone, Debug, Default)]
pub struct FakeEtcd(Arc<Mutex<Inner>>);

/// A gateway's way to it.
#[derive(Clone, Debug)]
pub struct Link {
    etcd: FakeEtcd,
    network: Arc<Mutex<Network>>,
}

impl FakeEtcd {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A way to it.
    pub fn link(&self) -> Link {
        Link { etcd: self.clone(), network: Arc::default() }
    }

    /// It is this late now.
    pub fn set_time(&self, now: Duration) {
        let mut inner = self.lock();
        inner.now = now;
        let ended: Vec<i64> =
            inner.leases.iter().filter(|(_, (_, end))| *end <= now).map(|(&lease, _)| lease).collect();
        ended.into_iter().for_each(|lease| inner.end(lease));
    }

    /// Does one of the transactions that are under way.
    pub fn deliver(&self, draw: u64) {
        let mut inner = self.lock();
        if !inner.late.is_empty() {
            let place = (draw % inner.late.len() as u64) as usize;
            let transaction = inner.late.swap_remove(place);
            let _ = inner.transact(&transaction);
        }
    }

    /// Has it be another store.
    pub fn set_identity(&self, identity: &str, revision: i64) {
        let mut inner = self.lock();
        (inner.identity, inner.revision) = (identity.to_owned(), revision);
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<String> {
        self.lock().keys.get(key).map(|pair| pair.value.clone())
    }

    /// Writes a key.
    pub fn put(&self, key: &str, value: &str) {
        let put = Operation::Put { key: key.to_owned(), value: value.to_owned(), lease: 0 };
        self.lock().transact(&Transaction { then: vec![put], ..Transaction::default() }).unwrap();
    }
}

impl Inner {
    fn end(&mut self, lease: i64) {
        self.leases.remove(&lease);
        let before = self.keys.len();
        self.keys.retain(|_, pair| pair.lease != lease);
        if self.keys.len() < before {
            self.revision += 1;
        }
    }

    fn transact(&mut self, transaction: &Transaction) -> Result<Reply, EtcdError> {
        let modified = |key: &String| self.keys.get(key).map_or(0, |pair| pair.modified);
        let succeeded = transaction.compare.iter().all(|(key, revision)| modified(key) == *revision);
        let operations = if succeeded { &transaction.then } else { &transaction.otherwise };
        assert!(
            operations.len() <= 128 && transaction.compare.len() <= 128,
            "etcd refuses so many operations"
        );
        let writes = |one: &Operation| matches!(one, Operation::Put { .. } | Operation::Delete { .. });
        for one in operations {
            if let Operation::Put { lease, .. } = one
                && *lease != 0
                && !self.leases.contains_key(lease)
            {
                return Err(EtcdError::Refused("etcdserver: requested lease not found".into()));
            }
        }
        if operations.iter().any(writes) {
            self.revision += 1;
        }
        let mut found = Vec::new();
        for one in operations {
            let range = |prefix: &str| {
                let keys = self.keys.range(prefix.to_owned()..).map(|(_, pair)| pair.clone());
                keys.take_while(|pair| pair.key.starts_with(prefix)).collect::<Vec<_>>()
            };
            match one {
                Operation::Put { key, value, lease } => {
                    let pair = Pair {
                        key: key.clone(),
                        value: value.clone(),
                        modified: self.revision,
                        lease: *lease,
                    };
                    self.keys.insert(key.clone(), pair);
                }
                Operation::Delete { key } => drop(self.keys.remove(key)),
                Operation::Get { key } => {
                    let pairs: Vec<Pair> = self.keys.get(key).cloned().into_iter().collect();
                    found.push(Found { count: pairs.len() as u64, pairs });
                }
                Operation::List { prefix } => {
                    let pairs = range(prefix);
                    found.push(Found { count: pairs.len() as u64, pairs });
                }
                Operation::Newest { prefix } => {
                    let pairs = range(prefix);
                    let count = pairs.len() as u64;
                    let newest = pairs.into_iter().max_by_key(|pair| pair.modified);
                    found.push(Found { pairs: newest.into_iter().collect(), count });
                }
            }
        }
        Ok(Reply { succeeded, revision: self.revision, store: self.identity.clone(), found })
    }
}

impl Link {
    /// What happens to requests from now on.
    pub fn set(&self, network: Network) {
        *self.network.lock().unwrap() = network;
    }

    fn network(&self) -> Network {
        *self.network.lock().unwrap()
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> Result<T, EtcdError> {
        match self.network() {
            Network::Works => Ok(work(&mut self.etcd.lock())),
            Network::AnswerLost => {
                work(&mut self.etcd.lock());
                Err(EtcdError::Unanswered("the answer is lost".into()))
            }
            Network::Cut => Err(EtcdError::Unreachable("cut".into())),
            Network::Lost | Network::Late => Err(EtcdError::Unanswered("it is lost".into())),
            Network::Full => Err(EtcdError::Refused("etcdserver: mvcc: database space exceeded".into())),
        }
    }
}

impl Etcd for Link {
    fn grant(&self, seconds: u64) -> Result<i64, EtcdError> {
        self.with(|inner| {
            inner.granted += 1;
            let time = Duration::from_secs(seconds);
            inner.leases.insert(inner.granted, (time, inner.now + time));
            inner.granted
        })
    }

    fn keep(&self, lease: i64) -> Result<bool, EtcdError> {
        if self.network() == Network::Full {
            // A full store keeps leases.
            self.set(Network::Works);
            let kept = self.keep(lease);
            self.set(Network::Full);
            return kept;
        }
        self.with(|inner| {
            let now = inner.now;
            inner.leases.get_mut(&lease).map(|(time, end)| *end = now + *time).is_some()
        })
    }

    fn revoke(&self, lease: i64) -> Result<(), EtcdError> {
        self.with(|inner| inner.end(lease))
    }

    fn transact(&self, transaction: &Transaction) -> Result<Reply, EtcdError> {
        let all = transaction.then.iter().chain(&transaction.otherwise);
        let writes = all.clone().any(|one| matches!(one, Operation::Put { .. } | Operation::Delete { .. }));
        match self.network() {
            Network::Late if writes => {
                self.etcd.lock().late.push(transaction.clone());
                Err(EtcdError::Unanswered("it is late".into()))
            }
            Network::Full if !writes => self.etcd.lock().transact(transaction),
            _ => self.with(|inner| inner.transact(transaction))?,
        }
    }
}
