//! The state that survives a restart of the gateway: no IV and no sequence number is used twice, no packet is received twice, and no
//! lifetime begins again.
//!
//! [`IvStore`] owns the files and knows nothing of a running gateway. The modules [`numbers`],
//! [`windows`] and [`lifetimes`] keep the records ahead of the workers, on threads of their own ([`recorder`]), so that no
//! packet waits for a disk.

pub mod lifetimes;
pub mod numbers;
pub mod recorder;
mod sa_records;
mod store;
pub mod windows;

pub use sa_records::{Opened, SaRecords, Taken};
pub use store::{
    Ahead, Alone, Block, ClusterNote, Files, IVS_PER_SA, Identity, IvStore, IvStoreError, KeyId, LifeNote,
    Lock, NotNoted, Noting, PairNote, Plausible, Provenance, Record, Replica, Role, SequenceId, System,
    Territory, Used, Wanted, WindowNote, Writing,
};
pub use windows::Rate;
