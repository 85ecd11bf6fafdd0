//! Whole gateways and a hostile network in one process, in virtual time, deterministic from a seed.
//!
//! A [`Plan`] is drawn from a seed: gateways, tunnels between them, traffic, and a list of faults. A [`World`] runs it:
//! each gateway is the shipped serving loop ([`Serving`](forebay_gateway::serving::Serving)), alone, of a pair or of a cluster,
//! with its file's text, workers, engine, lanes, cards, stores and routes, on a host in memory. The oracle sees every packet that leaves a
//! gateway and checks the rules; the first rule that is broken is a [`Violation`]. [`shrink()`] shortens the list of
//! faults of a failing plan.
//!
//! The same seed and the same code give the same run: no code asks the machine for time or random numbers.

mod clock;
mod clustering;
mod disk;
mod host;
mod interleaving;
mod link;
mod network;
mod node;
mod opener;
mod oracle;
mod packet;
mod pairing;
mod plan;
mod processors;
mod shrink;
mod site;
mod world;

pub use oracle::{Rule, Violation};
pub use plan::{Event, Plan, What};
pub use shrink::shrink;
pub use site::By;
pub use world::{Report, World, run};
