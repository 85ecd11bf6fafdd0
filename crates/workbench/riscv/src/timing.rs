//! Cycles: the pipeline, the caches, the write buffer and the memory interface.
//!
//! The pipeline is the five-stage one of the textbooks (fetch, decode, execute, memory, write back) with all
//! forwarding paths, and it is held as a whole while a cache line is fetched or a store finds no room. So
//! time is a sum: for each instruction one cycle of issue, plus what it waits for.
//!
//! - **Load-use**: the instruction behind a load that needs what is loaded waits one cycle. A store's data are
//!   needed a stage later and do not wait.
//! - **Multi-cycle**: a multiplication, a division or a custom instruction occupies the execute stage for its
//!   latency.
//! - **Branch**: branches and indirect jumps are decided in execute, direct jumps in decode: two cycles and one
//!   are lost if control goes elsewhere than was predicted.
//! - **Fetch, load, store**: the port to memory is taken for `latency + ceil(bytes / width) * beat` cycles for a line.
//!   Reads go before waiting writes, but not before a write in progress, nor before a write to their own line.
//! - **Write buffer**: a store waits if all slots are taken; a read waits for a write as above.
//! - **Doublewords**: a store that is wider than the memory interface is several writes.
//! - **Vectors**: an instruction passes the datapath as often as its elements are wide, and takes as many cycles a pass
//!   as its unit ([`VectorConfig`]); a load or store passes once for every piece of a line. Nothing is chained: the next
//!   instruction begins when the last pass has ended.
//!
//! Within one instruction the fetch of its line comes first, then its loads or its store, in program order.

mod account;
mod block;
mod buffer;
mod cache;
mod config;
mod model;
mod windows;

pub use account::{Account, Cell, Event, Misses};
pub use buffer::{Port, WriteBuffer};
pub use cache::Cache;
pub use config::{Branches, CacheConfig, Cause, Config, Policy, Replacement, VectorConfig};
pub use model::Timing;
pub use windows::Windows;
