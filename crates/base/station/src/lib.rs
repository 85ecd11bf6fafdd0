//! Processors and the buses before them, event by event in virtual time (`docs/simulation.md`).
//!
//! One state machine serves two drivers: the simulator, which has jobs without bytes, and the emulated card, which
//! delivers real bytes when a card would. The driver passes submissions and the time to a [`Host`], which reports
//! every event in between to a [`Watch`], in order. It has no thread and no clock, does not choose processors, and
//! allocates nothing per job. \[H\] is Castanier, Ferrante, Piuri, ASAP 2004; docs/models.md names all papers.
//!
//! ```text
//!           submit                                                          finished
//!  card: --> [ waiting ] ==bus==> [ ahead ] --> unit --> [ write buffer ] ==bus==>
//!      doorbell            t_bus    k places    t_enc      w places         t_bus
//!
//!  core: --> [ waiting ] ---------------------> unit ------------------------------>
//! ```
//!
//! What the text leaves open is read so:
//! - A place in the write buffer is free when the write-back from it has ended, as a card without
//!   buffer is blocked until then.
//! - Jobs are fetched ahead whenever the unit is not idle, so also while it is blocked.
//! - When a transfer ends, its card acts before the bus is given to the next that asked; what it
//!   asks for goes behind those.
//! - What is submitted at an instant comes after everything else of that instant.
//!
//! Jobs that are submitted together ([`Host::submit_all`]) are one entry of the queue and one fetch; a card
//! prefetches whole submissions, and writes each job back when it is computed. A processor that has no job at all is
//! idle: it begins `wake` after the submission, and with what is submitted while it wakes up not before.

mod agenda;
mod bus;
mod host;
mod station;

pub use bus::{BusConfig, Speed};
pub use host::{Host, Watch, Way};
pub use station::{StationConfig, Work};
