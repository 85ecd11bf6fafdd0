//! Policies: the action for a packet (RFC 4301 4.4.1).

use std::fmt;

use forebay_crypto::{Direction, SessionId};

use crate::dscp::DscpSet;
use crate::selector::TrafficSelector;

/// The treatment of packets that match a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Outbound they go through the first of these SAs that is for their DSCP and whose own selectors they
    /// match, and are dropped where there is none. Inbound they must have come through one of these.
    Protect(Vec<SessionId>),
    /// They pass as they are.
    Bypass,
    /// They are dropped.
    Discard,
}

/// An entry of the security policy database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Name for people.
    pub name: String,
    /// Outbound ([`Direction::Seal`]) or inbound ([`Direction::Open`]).
    pub direction: Direction,
    /// Traffic on this side; empty means any.
    pub local_ts: Vec<TrafficSelector>,
    /// Traffic on the peer's side; empty means any.
    pub remote_ts: Vec<TrafficSelector>,
    /// Classes of traffic.
    pub dscp: DscpSet,
    /// The treatment of matching packets.
    pub action: Action,
    /// Whether each CPU is to have an SA of its own (RFC 9611): packets that go through the fallback SA for lack of one
    /// are noted, see [`Spd::take_fallback_flows`](crate::Spd::take_fallback_flows).
    pub per_cpu: bool,
}

impl Policy {
    /// A policy for any traffic of one direction.
    pub fn new(name: &str, direction: Direction, action: Action) -> Policy {
        let name = name.to_owned();
        let (local_ts, remote_ts) = (vec![], vec![]);
        Policy { name, direction, local_ts, remote_ts, dscp: DscpSet::ALL, action, per_cpu: false }
    }

    /// The SAs of a policy that protects, none of another.
    pub fn sas(&self) -> &[SessionId] {
        match &self.action {
            Action::Protect(sas) => sas,
            Action::Bypass | Action::Discard => &[],
        }
    }
}

/// Names a policy of a database; never another one, even if that is put where this one was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// Where among the policies of its direction one goes: the first that matches a packet decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyPlace {
    /// Before all others.
    First,
    /// Behind all others.
    Last,
    /// Right before this one.
    Before(PolicyId),
    /// Right behind this one.
    After(PolicyId),
}

/// Policies that cannot be in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// There is no SA with this number.
    NoSuchSa(SessionId),
    /// The SA is for the other direction.
    WrongDirection(SessionId),
    /// There is no such policy, or it is of the other direction.
    NoSuchPolicy(PolicyId),
    /// The policy protects nothing, so it has no SAs.
    NotProtecting(PolicyId),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::NoSuchSa(session) => write!(f, "no SA has the number {}", session.0 + 1),
            PolicyError::WrongDirection(session) => {
                write!(f, "SA number {} is for the other direction", session.0 + 1)
            }
            PolicyError::NoSuchPolicy(_) => f.write_str("there is no such policy in this direction"),
            PolicyError::NotProtecting(_) => f.write_str("a policy that does not protect has no SAs"),
        }
    }
}

impl std::error::Error for PolicyError {}
