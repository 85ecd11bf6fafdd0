//! The operations of etcd that are used: leases, and transactions that compare revisions.

use std::fmt;

/// A key-value store with leases and transactions, as etcd is.
pub trait Etcd: fmt::Debug + Send + Sync {
    /// A new lease of so many seconds: its number.
    ///
    /// # Errors
    /// See [`EtcdError`].
    fn grant(&self, seconds: u64) -> Result<i64, EtcdError>;

    /// Begins the time of a lease anew; false if it is gone.
    ///
    /// # Errors
    /// See [`EtcdError`].
    fn keep(&self, lease: i64) -> Result<bool, EtcdError>;

    /// Ends a lease, and removes what it holds. One that is gone is no error.
    ///
    /// # Errors
    /// See [`EtcdError`].
    fn revoke(&self, lease: i64) -> Result<(), EtcdError>;

    /// Does what a transaction says.
    ///
    /// # Errors
    /// See [`EtcdError`].
    fn transact(&self, transaction: &Transaction) -> Result<Reply, EtcdError>;
}

/// Operations that are done if all comparisons hold, or others; at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Keys and the revisions of their last changes; 0 for keys that are not there.
    pub compare: Vec<(String, i64)>,
    /// What is done if they hold.
    pub then: Vec<Operation>,
    /// What is done if they do not.
    pub otherwise: Vec<Operation>,
}

impl Transaction {
    /// One that only reads.
    pub fn read(operations: Vec<Operation>) -> Transaction {
        Transaction { then: operations, ..Transaction::default() }
    }
}

/// A part of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writes a value; with a lease other than 0 it goes with that.
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
    /// Reads the keys that begin so, in their order.
    List {
        /// What they begin with.
        prefix: String,
    },
    /// Reads how many keys begin so, and which was changed last.
    Newest {
        /// What they begin with.
        prefix: String,
    },
}

/// What a transaction has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Whether the comparisons held.
    pub succeeded: bool,
    /// The revision of the store then.
    pub revision: i64,
    /// The identity of the store: of another one, revisions mean nothing.
    pub store: String,
    /// What was read, in the order of the operations that read.
    pub found: Vec<Found>,
}

/// What one operation has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Keys and values.
    pub pairs: Vec<Pair>,
    /// How many keys there are.
    pub count: u64,
}

/// A key that is there.
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

/// Why something was not done, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdError {
    /// It was refused, and is certainly not done.
    Refused(String),
    /// No server was reached, and it is certainly not done.
    Unreachable(String),
    /// There is no answer: it may be done, or may be done yet.
    Unanswered(String),
}

impl EtcdError {
    /// Whether it may be done all the same, at any later time.
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
