//! What the steps around a job say of a packet.

use forebay_crypto::SessionId;

use forebay_drops::DropReason;

/// Most SAs that one packet goes through: a host's tunnel inside a gateway's, each AH over ESP. It bounds
/// what a packet made of nothing but headers may cost.
pub const NEST_MAX: usize = 4;

/// The next step for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Prepared {
    /// The crypto job that was stated, then [`Ipsec::complete`](crate::Ipsec::complete).
    Job,
    /// Nothing: a policy bypasses the packet, which passes as it is; no job was stated.
    Bypass,
}

/// Why a step over a burst stopped at a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A policy bypasses it: it has no job.
    Bypass,
    /// It is to be dropped.
    Drop(DropReason),
    /// It is complete for one SA and goes through another: [`Ipsec::again`](crate::Ipsec::again).
    Again,
    /// It is complete, and what it brings is taken one by one: [`Next::Unpack`].
    Unpack,
}

/// The next step for a packet that is complete for one SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is through.
    Deliver,
    /// It goes through another SA: [`Ipsec::again`](crate::Ipsec::again).
    Again,
    /// It was a payload of an SA that aggregates and is empty now; [`Ipsec::take_inner`](crate::Ipsec::take_inner)
    /// returns its content.
    Unpack,
}

/// The SAs that a packet has been through before the one at hand, in order; empty to begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    sas: [SessionId; NEST_MAX - 1],
    len: u8,
}

impl Path {
    /// The SAs in order.
    pub fn sas(&self) -> &[SessionId] {
        &self.sas[..usize::from(self.len)]
    }

    pub(crate) fn push(&mut self, session: SessionId) -> Option<()> {
        *self.sas.get_mut(usize::from(self.len))? = session;
        self.len += 1;
        Some(())
    }
}
