//! An emulated card: it does real cryptography on real bytes and delivers the results when a given card would.
//!
//! A [`Card`] is a `Processor` that wraps another one. The inner processor does the cryptography of each job
//! immediately and once; the card holds the finished job until a card with the figures of its [`CardConfig`], behind
//! the [`Bus`] it is plugged into, would have written it back. A card that has not been built yet can thus be put
//! into a gateway and given real traffic.
//!
//! The timing is that of `docs/simulation.md`. The state machine that the simulator uses too
//! (`forebay_station`) computes it event by event. Submissions and polls are coarse; deliveries are exact to the
//! picosecond and do not depend on how often the card is polled. The card has no thread and no clock; the caller
//! passes the time with each call.
//!
//! ```text
//!            submit                                                       poll
//!  jobs --> [ queue ] ==bus==> [ prefetch ] -> compute -> [ write buffer ] ==bus==> delivered
//!     doorbell    t_bus          k places    t_init +        w places       t_bus
//!                                          blocks * t_block
//! ```
//!
//! All jobs of one `submit` are one job of the model (a multi-packet of \[S\]): they share one doorbell, one t_init
//! and one address phase on the bus, and they are delivered together. \[H\] is Castanier, Ferrante, Piuri, ASAP 2004, and
//! \[S\] Taddeo, Ferrante, Piuri: Scheduling Small Packets in IPSec-based Systems (docs/models.md).

mod bus;
mod card;
mod config;
mod model;

pub use bus::Bus;
pub use card::{COMPLETIONS_MAX, Card};
pub use config::{BusConfig, CardConfig};
