//! One SA in the database.

use forebay_crypto::{Direction, SessionId};

use crate::ah::{InboundAh, OutboundAh};
use crate::esp::{InboundSa, OutboundSa};
use crate::lifetime::Life;
use crate::outbound_numbers::OutboundNumbers;
use forebay_drops::DropReason;
use forebay_replay::ReplayWindow;

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

impl State {
    pub fn direction(&self) -> Direction {
        match self {
            State::Outbound(_) | State::OutboundAh(_) => Direction::Seal,
            State::Inbound(_) | State::InboundAh(_) => Direction::Open,
            State::Removed(direction) => *direction,
        }
    }

    /// What an outbound SA counts.
    pub fn numbers(&self) -> Option<&OutboundNumbers> {
        match self {
            State::Outbound(sa) => Some(&sa.numbers),
            State::OutboundAh(sa) => Some(&sa.numbers),
            State::Inbound(_) | State::InboundAh(_) | State::Removed(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn numbers_mut(&mut self) -> Option<&mut OutboundNumbers> {
        match self {
            State::Outbound(sa) => Some(&mut sa.numbers),
            State::OutboundAh(sa) => Some(&mut sa.numbers),
            State::Inbound(_) | State::InboundAh(_) | State::Removed(_) => None,
        }
    }

    /// The replay window of an inbound SA.
    pub fn window(&self) -> Option<&ReplayWindow> {
        match self {
            State::Inbound(sa) => Some(&sa.replay),
            State::InboundAh(sa) => Some(&sa.replay),
            State::Outbound(_) | State::OutboundAh(_) | State::Removed(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn window_mut(&mut self) -> Option<&mut ReplayWindow> {
        match self {
            State::Inbound(sa) => Some(&mut sa.replay),
            State::InboundAh(sa) => Some(&mut sa.replay),
            State::Outbound(_) | State::OutboundAh(_) | State::Removed(_) => None,
        }
    }

    /// How far an SA has come in its life.
    pub fn life(&self) -> Option<&Life> {
        match self {
            State::Inbound(sa) => Some(&sa.life),
            State::InboundAh(sa) => Some(&sa.life),
            other => other.numbers().map(|numbers| &numbers.life),
        }
    }

    /// The same, to be changed.
    pub fn life_mut(&mut self) -> Option<&mut Life> {
        match self {
            State::Inbound(sa) => Some(&mut sa.life),
            State::InboundAh(sa) => Some(&mut sa.life),
            other => other.numbers_mut().map(|numbers| &mut numbers.life),
        }
    }
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
