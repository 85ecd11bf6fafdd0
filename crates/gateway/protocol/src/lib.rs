//! Models of the protocols by which gateways share SAs, for a model checker: [`pair`] and [`cluster`].
//!
//! A model is the protocol on paper: the state of each gateway and of its disk, the messages in flight, and everything that can
//! happen next, faults included. The checker visits every state that can be reached within the bounds and compares each with the
//! invariants. Nothing of the gateway's code is used, so that a fault of the code and of the model would have to agree.
//!
//! Each model has *planted errors*, rules that are wrong. A test requires that the checker finds every one of them.

pub mod check;
#[allow(missing_docs)]
pub mod cluster;
#[allow(missing_docs)]
pub mod pair;
