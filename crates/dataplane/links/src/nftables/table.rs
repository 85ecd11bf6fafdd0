//! The data model of a table.

use std::net::IpAddr;

/// A table of family `inet`, which has packets of both IP versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name: letters, digits, `_`, `-` and `.`, a letter or `_` first.
    pub name: String,
    /// Counters that rules name.
    pub counters: Vec<&'static str>,
    /// Sets of addresses that rules look up.
    pub sets: Vec<Set>,
    /// Chains of rules; those that a rule goes to stand before it.
    pub chains: Vec<Chain>,
}

/// A set of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Its name.
    pub name: &'static str,
    /// Whether it is of IPv6.
    pub v6: bool,
    /// First and last address of ranges: in order, with others between them.
    pub ranges: Vec<(IpAddr, IpAddr)>,
}

/// Rules that are asked one after the other; what matches none is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its name.
    pub name: &'static str,
    /// Which packets go through it; without, those that a rule sends here.
    pub hook: Option<Hook>,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// Where packets go through a chain: with the priority `raw`, before connection tracking and NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// When they arrive, before they are routed.
    Prerouting,
    /// When they are forwarded: the interfaces of both sides are known.
    Forward,
    /// When they leave, of this host or forwarded.
    Postrouting,
}

/// A rule: the verdict on packets that match all of these conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The conditions, compared in this order.
    pub matches: Vec<Match>,
    /// The verdict on matching packets.
    pub verdict: Verdict,
}

/// The verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes this table.
    Accept,
    /// It is counted there and dropped.
    Drop(&'static str),
    /// That chain decides.
    Goto(&'static str),
}

/// An address or a port of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender's.
    Source,
    /// The receiver's.
    Destination,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// It arrives by the interface of this name.
    ArrivesBy(String),
    /// It leaves by the interface of this name.
    LeavesBy(String),
    /// It arrives by the interface with this number.
    ArrivesByIndex(u32),
    /// It leaves by the interface with this number.
    LeavesByIndex(u32),
    /// It is of IPv6, or of IPv4.
    V6(bool),
    /// This address is in the set; only behind [`Match::V6`].
    InSet(End, &'static str),
    /// This address is in the range; only behind [`Match::V6`].
    InRange(End, IpAddr, IpAddr),
    /// This address is one of this host.
    IsLocal(End),
    /// Its destination is all hosts of the network that it arrives from; only where packets arrive, and behind [`Match::V6`] of
    /// IPv4.
    IsBroadcast,
    /// Its protocol above IP.
    Protocol(u8),
    /// This port, from the first to the last.
    Port(End, u16, u16),
    /// The first byte of what is above IP, from the first to the last: the type of ICMP.
    Type(u8, u8),
    /// The first two bytes of what is above IP, from the first to the last: type and code of ICMP.
    TypeAndCode(u16, u16),
    /// A hop limit of 255, which no router has lowered; only behind [`Match::V6`].
    FromLink,
    /// It is a fragment behind the first; only behind [`Match::V6`] of the same IP version.
    LaterFragment {
        /// Of IPv6.
        v6: bool,
    },
}

impl Table {
    /// How many rules it has.
    pub fn rules(&self) -> usize {
        self.chains.iter().map(|chain| chain.rules.len()).sum()
    }

    /// Whether the other differs in nothing but what is in sets.
    pub fn is_like(&self, other: &Table) -> bool {
        let named = |table: &Table| table.sets.iter().map(|set| (set.name, set.v6)).collect::<Vec<_>>();
        (&self.name, &self.counters, &self.chains) == (&other.name, &other.counters, &other.chains)
            && named(self) == named(other)
    }
}
