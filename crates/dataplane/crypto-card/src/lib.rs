//! An emulated card: real crypto on real bytes, delivered when a given card would.
//!
//! A [`Card`] is a `Processor` around another one. The inner processor does the crypto, once and at
//! once; the card holds the finished jobs back until a card with the figures of its [`CardConfig`],
//! behind the [`Bus`] it is plugged into, would have written them back. What nobody has built yet
//! can so be put into a gateway and given real traffic.
//!
//! The timing is that of `spec/models.md` section 1, worked out event by event by the state machine
//! that the simulator uses too (`forebay_station`): submissions and polls are coarse, deliveries are exact to the picosecond and do not depend on how often anybody
//! polls. There is no thread and no clock here; time arrives with each call.
//!
//! ```text
//!            submit                                                       poll
//!  jobs --> [ queue ] ==bus==> [ prefetch ] -> compute -> [ write buffer ] ==bus==> delivered
//!     doorbell    t_bus          k places    t_init +        w places       t_bus
//!                                          blocks * t_block
//! ```
//!
//! All jobs of one `submit` are one job of the model (a multi-packet of \[S\]): one doorbell, one
//! t_init, one address phase on the bus, and they come back together.

mod bus;
mod card;
mod config;
mod model;

pub use bus::Bus;
pub use card::{COMPLETIONS_MAX, Card};
pub use config::{BusConfig, CardConfig};
