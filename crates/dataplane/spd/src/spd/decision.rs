//! The decision of the policies on a packet.

use forebay_drops::DropReason;

/// The decision of the SPD on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Outbound the SA to use; inbound the policy, which says by which SAs it must have come.
    Protect(u32),
    /// It passes as it is.
    Bypass,
    /// It is dropped, for this reason.
    Drop(DropReason),
}
