//! Two gateways as one: one is active; the standby has the same SAs and takes over when the active gateway is silent.
//!
//! Three questions have separate answers, none of which depends on the others:
//!
//! - *May a number be used twice?* Never, connected or not: each gateway has a territory of its own
//!   ([`forebay_state::Territory`]).
//! - *Which gateway is active?* [`election`], a state machine whose inputs are the time and the peer's messages. If both are active
//!   because they cannot communicate, no number is used twice: see above.
//! - *What does the standby need to know?* The records of the state directory. The active gateway sends them before it uses what
//!   they allow (`outbox`), and the standby writes them into its own directory (`mirror`). It takes over as it would start after
//!   a kill.
//!
//! [`channel`] is the connection: TCP, authenticated and encrypted by a shared key. `node` has the threads. Another
//! source of these answers, such as etcd, implements [`forebay_state::Replica`] and drives [`election::Election`].

pub mod channel;
pub mod election;
mod key;
mod memory;
mod message;
mod mirror;
mod node;
mod outbox;
mod source;

pub use key::{Key, KeyError};
pub use message::{Hello, Message, Mismatch, decode, encode};
pub use mirror::Mirror;
pub use node::{Clocks, Pair, PairError, PairStatus, Speaker, Stepper, Verdict};
pub use outbox::Meanwhile;
