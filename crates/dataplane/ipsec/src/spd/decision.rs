//! What the policies say of a packet.

use crate::drops::DropReason;

/// What is to be done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Outbound the SA to use; inbound the policy, which says by which SAs it must have come.
    Protect(u32),
    Bypass,
    Drop(DropReason),
}
