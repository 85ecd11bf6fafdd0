//! Models of the protocols by which gateways share SAs, for a model checker: [`pair`] and [`cluster`].
//!
//! A model is the state of each gateway and of its disk, the messages in flight, and all steps that can
//! happen next, including faults. The checker visits every state that can be reached within the bounds and compares each with the
//! invariants. The models use none of the gateway's code, so that an error stays hidden only if it is in both.
//!
//! Each model has *planted errors*, rules that are wrong. A test requires that the checker finds every one of them.

pub mod check;
#[allow(missing_docs)]
pub mod cluster;
#[allow(missing_docs)]
pub mod pair;
