//! Policies that come and go between packets, against a list that is gone through from its begin: RFC 4301's words
//! on the values of the packet, not on its bytes.

use std::cell::RefCell;
use std::net::IpAddr;

use forebay_crypto::{Direction, JobSpec, SessionId, Verdict};
use forebay_ipsec::{
    Action, DropReason, DscpSet, Ipsec, Policy, PolicyId, PolicyPlace, PortRange, Prepared, TrafficSelector,
};

use crate::bench::{buffer, dropped, sound};
use crate::traffic::{Flow, Upper, add_in, add_out, receive_clear, sa, send};

/// Most policies of each direction, and packets, for one input.
const POLICIES: usize = 24;
const PACKETS: usize = 24;

/// A database of four SAs for anything in each direction, and the same policies as lists.
struct Table {
    sad: Ipsec,
    lists: [Vec<(PolicyId, Policy)>; 2],
}

thread_local! {
    static TABLE: RefCell<Table> = RefCell::new(Table::new());
}

impl Table {
    fn new() -> Table {
        let mut sad = Ipsec::seeded(0x0123_4567_89ab_cdef);
        for n in 0..4 {
            assert_eq!(add_out(&mut sad, sa(n, &[], &[])), SessionId(n));
        }
        for n in 0..4 {
            assert_eq!(add_in(&mut sad, sa(n, &[], &[])), SessionId(4 + n));
        }
        Table { sad, lists: [vec![], vec![]] }
    }

    fn add(&mut self, bytes: &mut Bytes<'_>) {
        let direction = bytes.direction();
        let list = &mut self.lists[index(direction)];
        if list.len() >= POLICIES {
            return;
        }
        let policy = bytes.policy(direction);
        let at = bytes.below(list.len() + 1);
        let place = match at {
            0 => PolicyPlace::First,
            at if at == list.len() => PolicyPlace::Last,
            at if bytes.below(2) == 0 => PolicyPlace::Before(list[at].0),
            at => PolicyPlace::After(list[at - 1].0),
        };
        let id = self.sad.add_policy(policy.clone(), place).expect("SAs that exist");
        list.insert(at, (id, policy));
    }

    fn remove(&mut self, bytes: &mut Bytes<'_>) {
        let list = &mut self.lists[index(bytes.direction())];
        if !list.is_empty() {
            let (id, policy) = list.remove(bytes.below(list.len()));
            assert_eq!(self.sad.remove_policy(id), Some(policy));
        }
    }

    fn check(&mut self, direction: Direction, flow: &Flow) {
        let list = &self.lists[index(direction)];
        // Without policies SAs decide, or nothing passes: that is for other targets.
        if list.is_empty() {
            return;
        }
        let expected = oracle(list.iter().map(|(_, policy)| policy), direction, flow);
        // Twice: found, then remembered.
        for _ in 0..2 {
            let found = match direction {
                Direction::Seal => send(&mut self.sad, flow),
                Direction::Open => receive_clear(&mut self.sad, flow).map(|()| None),
            };
            if let Err(reason) = found {
                dropped(direction, reason);
            }
            assert_eq!(found, expected, "{flow:?}");
        }
    }

    /// Any bytes at all: the same is decided again, and what passes is an IP packet.
    fn raw(&mut self, bytes: &[u8]) {
        for direction in [Direction::Seal, Direction::Open] {
            let mut decide = || {
                let (mut packet, mut spec) = (buffer(bytes), JobSpec::default());
                match self.sad.prepare(direction, &mut packet, &mut spec) {
                    Ok(Prepared::Bypass) => {
                        let passed = sound(&packet);
                        assert!(bytes.starts_with(&passed), "it is changed");
                        Ok(None)
                    }
                    Ok(Prepared::Job) => {
                        // Of no gateway's processor: as much a drop as any.
                        let completed = self.sad.complete(&mut packet, &spec, Verdict::Failed);
                        assert!(completed.is_err());
                        Ok(Some(spec.session))
                    }
                    Err(reason) => {
                        dropped(direction, reason);
                        Err(reason)
                    }
                }
            };
            assert_eq!(decide(), decide());
        }
    }

    fn clear(&mut self) {
        for (id, policy) in self.lists.iter_mut().flat_map(|list| list.drain(..)) {
            assert_eq!(self.sad.remove_policy(id), Some(policy));
        }
    }
}

fn index(direction: Direction) -> usize {
    usize::from(direction == Direction::Open)
}

/// Policies, packets and removals in the order that `data` says.
pub fn policies(data: &[u8]) {
    TABLE.with_borrow_mut(|table| {
        let mut bytes = Bytes(data);
        let mut packets = 0;
        while !bytes.0.is_empty() && packets < PACKETS {
            match bytes.below(8) {
                0..4 => table.add(&mut bytes),
                4 => table.remove(&mut bytes),
                5 => {
                    let len = bytes.below(120).min(bytes.0.len());
                    let (raw, rest) = bytes.0.split_at(len);
                    bytes.0 = rest;
                    table.raw(&headed(raw));
                    packets += 1;
                }
                _ => {
                    let (direction, flow) = (bytes.direction(), bytes.flow());
                    table.check(direction, &flow);
                    packets += 1;
                }
            }
        }
        // What there is now, with packets of the same bytes.
        let backwards: Vec<u8> = data.iter().rev().take(64).copied().collect();
        let mut bytes = Bytes(&backwards);
        while !bytes.0.is_empty() {
            let (direction, flow) = (bytes.direction(), bytes.flow());
            table.check(direction, &flow);
        }
        table.clear();
    });
}

/// Any bytes, with a version and a length at their begin that make an IP packet of them; mostly.
fn headed(raw: &[u8]) -> Vec<u8> {
    let mut packet = raw.to_vec();
    match (raw.first().map_or(0, |first| first >> 4), raw.len()) {
        (0..8, 20..) => {
            packet[0] = 0x45;
            packet[2..4].copy_from_slice(&(raw.len() as u16).to_be_bytes());
        }
        (8..15, 40..) => {
            packet[0] = 0x60;
            packet[4..6].copy_from_slice(&(raw.len() as u16 - 40).to_be_bytes());
        }
        _ => {}
    }
    packet
}

/// The linear look-up.
fn oracle<'a>(
    policies: impl Iterator<Item = &'a Policy>,
    direction: Direction,
    flow: &Flow,
) -> Result<Option<SessionId>, DropReason> {
    let out = direction == Direction::Seal;
    let either = |seal, open| if out { seal } else { open };
    let in_doubt = either(DropReason::OutFragmentPorts, DropReason::InFragmentPorts);
    let mut doubtful = false;
    for policy in policies {
        match (meant(policy, flow), &policy.action) {
            (Some(false), _) => {}
            (None, action) => doubtful |= *action != Action::Bypass,
            (Some(true), Action::Protect(sas)) if out => return Ok(Some(sas[0])),
            (Some(true), Action::Protect(_)) => return Err(DropReason::InTmplMismatch),
            (Some(true), Action::Discard) => {
                return Err(either(DropReason::OutPolBlock, DropReason::InPolBlock));
            }
            (Some(true), Action::Bypass) if doubtful => return Err(in_doubt),
            (Some(true), Action::Bypass) => return Ok(None),
        }
    }
    Err(if doubtful { in_doubt } else { either(DropReason::OutNoPols, DropReason::InNoPols) })
}

/// Whether a policy means a packet; nothing if only ports that it does not hold could tell.
fn meant(policy: &Policy, flow: &Flow) -> Option<bool> {
    let (local, remote) = match policy.direction {
        Direction::Seal => (flow.source, flow.destination),
        Direction::Open => (flow.destination, flow.source),
    };
    if !policy.dscp.contains(flow.dscp) {
        return Some(false);
    }
    let side = |selectors: &[TrafficSelector], address: IpAddr| {
        let is_source = (policy.direction == Direction::Seal) == std::ptr::eq(selectors, &*policy.local_ts);
        let answers = selectors.iter().map(|selector| on_side(selector, address, flow, is_source));
        let mut best = if selectors.is_empty() { Some(true) } else { Some(false) };
        for answer in answers {
            best = match (best, answer) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (None, _) | (_, None) => None,
                _ => Some(false),
            };
        }
        best
    };
    match (side(&policy.local_ts, local), side(&policy.remote_ts, remote)) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn on_side(selector: &TrafficSelector, address: IpAddr, flow: &Flow, is_source: bool) -> Option<bool> {
    let inside = match selector.addresses() {
        Some((first, last)) => first.is_ipv4() == address.is_ipv4() && (first..=last).contains(&address),
        None => true,
    };
    if !inside || selector.protocol().is_some_and(|protocol| protocol != flow.upper.protocol()) {
        return Some(false);
    }
    let (ports, opaque) = (selector.ports(), selector.ports() == PortRange::OPAQUE);
    if ports == PortRange::ANY {
        return Some(true);
    }
    let within = |value: u16| Some((ports.first()..=ports.last()).contains(&value));
    let one_field = matches!(flow.upper, Upper::Icmp(..) | Upper::Mobility(_));
    // Ports without a protocol are not the types of others.
    if one_field && selector.protocol().is_none() && !opaque {
        return Some(false);
    }
    match flow.upper {
        Upper::Other(_) => Some(opaque),
        Upper::Icmp(..) | Upper::Mobility(_) if !is_source => Some(true),
        _ if flow.later_fragment => opaque.then_some(true),
        Upper::Ports(_, source, destination) => within(if is_source { source } else { destination }),
        Upper::Icmp(_, kind, code) => within(u16::from(kind) << 8 | u16::from(code)),
        Upper::Mobility(kind) => within(u16::from(kind) << 8),
    }
}

/// Bytes as choices; zeros when there are no more.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, end: usize) -> usize {
        usize::from(self.next()) % end
    }

    fn direction(&mut self) -> Direction {
        [Direction::Seal, Direction::Open][self.below(2)]
    }

    /// Addresses out of few, so that policies overlap and packets meet them.
    fn address(&mut self, v6: bool) -> IpAddr {
        let few = [0, 1, 127, 128, 255];
        let (c, d) = (few[self.below(5)], few[self.below(5)]);
        match v6 {
            false => IpAddr::from([10, 0, c, d]),
            true => IpAddr::from([0x20, 1, 0x0d, 0xb8, 0, 0, 0, c, 0, 0, 0, 0, 0, 0, 0, d]),
        }
    }

    fn port(&mut self) -> u16 {
        [0, 53, 80, 443, 0x0300, 0x0800, 0x8000, u16::MAX][self.below(8)]
    }

    fn selector(&mut self) -> TrafficSelector {
        let v6 = self.below(2) == 1;
        let addresses = match self.below(8) {
            0..3 => TrafficSelector::ANY,
            3 => TrafficSelector::from(self.address(v6)),
            // A prefix.
            4 | 5 => {
                let (address, len) = (self.address(v6), self.next());
                let (first, last) = prefix(address, u32::from(len));
                TrafficSelector::range(first, last).expect("in order")
            }
            _ => {
                let (a, b) = (self.address(v6), self.address(v6));
                TrafficSelector::range(a.min(b), a.max(b)).expect("in order")
            }
        };
        let ports = match self.below(8) {
            0..5 => PortRange::ANY,
            5 => PortRange::OPAQUE,
            6 => PortRange::one(self.port()),
            _ => {
                let (a, b) = (self.port(), self.port());
                PortRange::new(a.min(b), a.max(b)).expect("in order")
            }
        };
        addresses.with([0, 0, 0, 0, 6, 6, 17, 17, 17, 1, 58, 135, 47][self.below(13)], ports)
    }

    fn policy(&mut self, direction: Direction) -> Policy {
        let sa = if direction == Direction::Seal { 0 } else { 4 };
        let action = match self.below(8) {
            n @ 0..4 => Action::Protect(vec![SessionId(sa + n as u32)]),
            4..6 => Action::Bypass,
            _ => Action::Discard,
        };
        let dscp = match self.below(4) {
            0 => DscpSet::of([0, 46, self.next()]),
            _ => DscpSet::ALL,
        };
        let mut side = || {
            let count = [0, 0, 1, 1, 1, 2, 3, 0][self.below(8)];
            (0..count).map(|_| self.selector()).collect::<Vec<_>>()
        };
        let (local_ts, remote_ts) = (side(), side());
        Policy { local_ts, remote_ts, dscp, ..Policy::new("random", direction, action) }
    }

    fn flow(&mut self) -> Flow {
        let v6 = self.below(2) == 1;
        let upper = match self.below(6) {
            0..3 => Upper::Ports([6, 17][self.below(2)], self.port(), self.port()),
            3 => Upper::Icmp([1, 58][self.below(2)], [0, 3, 8, 128][self.below(4)], self.next() % 3),
            4 => Upper::Mobility(self.next() % 9),
            _ => Upper::Other([47, 59, 253][self.below(3)]),
        };
        let (source, destination) = (self.address(v6), self.address(v6));
        let dscp = [0, 46, self.next() & 63][self.below(3)];
        let part = self.below(8);
        Flow {
            source,
            destination,
            upper,
            dscp,
            later_fragment: part.is_multiple_of(4),
            first_fragment: part == 1,
        }
    }
}

/// First and last address of the prefix of about this length that an address is in.
fn prefix(address: IpAddr, len: u32) -> (IpAddr, IpAddr) {
    match address {
        IpAddr::V4(v4) => {
            let host = u32::MAX.checked_shr(16 + len % 17).unwrap_or(0);
            (
                IpAddr::from((u32::from(v4) & !host).to_be_bytes()),
                IpAddr::from((u32::from(v4) | host).to_be_bytes()),
            )
        }
        IpAddr::V6(v6) => {
            let host = u128::MAX.checked_shr(len % 129).unwrap_or(0);
            (
                IpAddr::from((u128::from(v6) & !host).to_be_bytes()),
                IpAddr::from((u128::from(v6) | host).to_be_bytes()),
            )
        }
    }
}
