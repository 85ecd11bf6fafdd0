//! One SA in the database.

use forebay_crypto::{Direction, SessionId};

use crate::ah::{InboundAh, OutboundAh};
use crate::esp::{InboundSa, OutboundSa};
use forebay_drops::DropReason;

/// In as few cache lines as may be: with very many SAs they are what a packet waits for.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Entry {
    /// Jobs prepared and not yet completed.
    pub in_flight: u32,
    /// The SA that its packets go through next, or come through before.
    pub outer: Option<u32>,
    pub counters: SaCounters,
    pub state: State,
}

const _: () = assert!(size_of::<Entry>() <= 256);

/// Counters of the packets that went through one SA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaCounters {
    /// Packets that were sealed or opened.
    pub packets: u64,
    /// Their length in bytes, outside of the tunnel.
    pub bytes: u64,
    /// Packets whose ICV did not match.
    pub auth_failures: u64,
    /// Packets that the replay window refused.
    pub replays: u64,
}

#[derive(Debug)]
pub enum State {
    Outbound(OutboundSa),
    Inbound(InboundSa),
    OutboundAh(Box<OutboundAh>),
    InboundAh(Box<InboundAh>),
    Removed(Direction),
}

/// Which SA follows for a packet that goes through a further one.
pub enum Further {
    /// Outbound: this SA.
    Outer(SessionId),
    /// Inbound: the packet itself names it.
    Named,
}

impl Entry {
    /// Whether a packet that was in SA number `through`, if any, may come in here.
    #[inline]
    pub fn comes_through(&self, through: Option<u32>) -> Result<(), DropReason> {
        match self.outer {
            Some(_) if self.outer != through => Err(DropReason::InStateMismatch),
            _ => Ok(()),
        }
    }

    /// The SA that follows for a packet that is complete for this one.
    pub fn further(&self) -> Result<Further, DropReason> {
        match self.state {
            State::Outbound(_) | State::OutboundAh(_) => {
                self.outer.map(|outer| Further::Outer(SessionId(outer))).ok_or(DropReason::OutError)
            }
            State::Inbound(_) | State::InboundAh(_) => Ok(Further::Named),
            State::Removed(Direction::Seal) => Err(DropReason::OutStateInvalid),
            State::Removed(Direction::Open) => Err(DropReason::InStateInvalid),
        }
    }
}

impl State {
    pub fn direction(&self) -> Direction {
        match self {
            State::Outbound(_) | State::OutboundAh(_) => Direction::Seal,
            State::Inbound(_) | State::InboundAh(_) => Direction::Open,
            State::Removed(direction) => *direction,
        }
    }
}
