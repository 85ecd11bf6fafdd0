//! The operations of etcd that are used: leases, and transactions that compare revisions.

use std::fmt;

/// A key-value store with leases and transactions, as etcd is.
pub trait Etcd: fmt::Debug + Send + Sync {
    /// Grants a lease of so many seconds and returns its number.
    ///
    /// # Errors
    /// See [`EtcdError`].
    fn grant(&self, seconds: u64) -> Result<i64, EtcdError>;

    /// Renews a lease; false if it has ended.
    ///
    /// # Errors
    /// See [`EtcdError`].
    fn keep(&self, lease: i64) -> Result<bool, EtcdError>;

    /// Ends a lease and removes its keys. A lease that has ended is not an error.
    ///
    /// # Errors
    /// See [`EtcdError`].
    fn revoke(&self, lease: i64) -> Result<(), EtcdError>;

    /// Performs a transaction.
    ///
    /// # Errors
    /// See [`EtcdError`].
    fn transact(&self, transaction: &Transaction) -> Result<Reply, EtcdError>;
}

/// An atomic transaction: some operations if all comparisons hold, otherwise others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Keys and the revisions of their last changes; 0 for keys that do not exist.
    pub compare: Vec<(String, i64)>,
    /// Operations if they hold.
    pub then: Vec<Operation>,
    /// Operations if they do not hold.
    pub otherwise: Vec<Operation>,
}

impl Transaction {
    /// A transaction that only reads.
    pub fn read(operations: Vec<Operation>) -> Transaction {
        Transaction { then: operations, ..Transaction::default() }
    }
}

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writes a value; with a lease other than 0 it is removed when that ends.
    Put {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The lease, or 0.
        lease: i64,
    },
    /// Removes a key.
    Delete {
        /// The key.
        key: String,
    },
    /// Reads one key.
    Get {
        /// The key.
        key: String,
    },
    /// Reads the keys with a prefix, in their order.
    List {
        /// The prefix.
        prefix: String,
    },
    /// Reads the number of keys with a prefix, and the one that was changed last.
    Newest {
        /// The prefix.
        prefix: String,
    },
}

/// The result of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Whether the comparisons held.
    pub succeeded: bool,
    /// The revision of the store after it.
    pub revision: i64,
    /// The identity of the store: revisions of another store are not comparable.
    pub store: String,
    /// The results of reads, in the order of the operations.
    pub found: Vec<Found>,
}

/// The result of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Keys and values.
    pub pairs: Vec<Pair>,
    /// Number of keys.
    pub count: u64,
}

/// An existing key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// The revision of its last change.
    pub modified: i64,
    /// Its lease, or 0.
    pub lease: i64,
}

/// Errors of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdError {
    /// It was refused, and is certainly not performed.
    Refused(String),
    /// No server was reached, and it is certainly not performed.
    Unreachable(String),
    /// There is no answer: it may have been performed, or may still be.
    Unanswered(String),
}

impl EtcdError {
    /// Whether it may still be performed, at any later time.
    pub fn may_be_done(&self) -> bool {
        matches!(self, EtcdError::Unanswered(_))
    }
}

impl fmt::Display for EtcdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EtcdError::Refused(why) => write!(f, "etcd refuses: {why}"),
            EtcdError::Unreachable(why) => write!(f, "etcd cannot be reached: {why}"),
            EtcdError::Unanswered(why) => write!(f, "etcd does not answer: {why}"),
        }
    }
}

impl std::error::Error for EtcdError {}
