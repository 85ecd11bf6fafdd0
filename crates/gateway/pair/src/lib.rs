//! Two gateways as one: one is active, the other stands by with the same SAs and takes over when the first is silent.
//!
//! Three questions are kept apart, each with an answer that does not need the others:
//!
//! - *May a number be used twice?* Never, whatever is connected: each gateway has a territory of its own
//!   ([`forebay_state::Territory`]).
//! - *Who is active?* [`election`], a state machine that is told the time and what the peer says. Two that are active
//!   because they cannot hear each other are a nuisance and no danger: see above.
//! - *What does the standby have to know?* The records of the state directory, which the active gateway sends before it uses what
//!   they allow (`outbox`), and which the standby writes into its own (`mirror`). It takes over as it would start after
//!   a kill.
//!
//! [`channel`] is the connection: TCP, authenticated and encrypted by a key that both have. `node` has the threads. What
//! is another source of these answers, such as etcd, is another implementation of [`forebay_state::Replica`] and another
//! driver of [`election::Election`].

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
