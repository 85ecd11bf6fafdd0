//! What a tunnel header takes from the packet inside, and gives back to it: DSCP, ECN (RFC 6040), DF,
//! flow label and hop limit (RFC 4301 5.1.2, 8.1).
//!
//! The inner packet's own TTL is not touched: a gateway that forwards a packet takes one off before it
//! hands the packet over, and the one that forwards it behind the tunnel does the same (RFC 4301 5.1.2,
//! note 2). That is forwarding, not IPsec.

use std::fmt;

use forebay_wire::{Ip, ip, protocol};

use crate::flow;
use forebay_drops::DropReason;

/// DSCP of outer headers (RFC 4301 5.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dscp {
    /// The inner packet's.
    Copy,
    /// This one, under 64.
    Set(u8),
}

/// ECN of outer headers (RFC 6040 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The inner packet's.
    Normal,
    /// None: for a peer that does not bring congestion marks to the inner packet.
    Compatibility,
}

/// "Don't fragment" of outer IPv4 headers (RFC 4301 8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DontFragment {
    /// As in the inner packet; IPv6 is never fragmented on its way, so what carries it may not be either.
    Copy,
    /// Always set.
    Set,
    /// Never set: routers may fragment what they find too big.
    Clear,
}

/// Flow label of outer IPv6 headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowLabel {
    /// None: all of a tunnel is one flow.
    Zero,
    /// This one, under 2^20.
    Fixed(u32),
    /// The inner packet's, zero if that is IPv4. For end systems only: labels of several hosts collide
    /// behind a gateway (RFC 4301 5.1.2.2, note 8).
    Copy,
    /// Made from the inner packet's addresses, protocol and ports, so that routers can spread a tunnel over
    /// several paths (RFC 6438 3). An observer learns which packets are of one flow.
    Hash,
}

/// TTL or hop limit of outer headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HopLimit {
    /// This many hops, at least one.
    Fixed(u8),
    /// The inner packet's.
    Copy,
}

/// DSCP of packets that leave the tunnel (RFC 4301 5.1.2.2, note 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InnerDscp {
    /// What the packet went in with.
    Keep,
    /// The outer header's, which anybody on the way can change.
    FromOuter,
}

/// How tunnel headers are made and undone. The default is that of RFC 4301 and RFC 6040: DSCP, ECN and DF
/// copied, a flow label of zero, 64 hops, and the inner DSCP kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TunnelRules {
    /// DSCP of outer headers.
    pub dscp: Dscp,
    /// ECN of outer headers; what comes in always follows RFC 6040 4.2.
    pub ecn: Ecn,
    /// "Don't fragment" of outer IPv4 headers.
    pub dont_fragment: DontFragment,
    /// Flow label of outer IPv6 headers.
    pub flow_label: FlowLabel,
    /// TTL or hop limit of outer headers.
    pub hop_limit: HopLimit,
    /// DSCP of packets that leave the tunnel.
    pub inner_dscp: InnerDscp,
}

impl Default for TunnelRules {
    fn default() -> TunnelRules {
        TunnelRules {
            dscp: Dscp::Copy,
            ecn: Ecn::Normal,
            dont_fragment: DontFragment::Copy,
            flow_label: FlowLabel::Zero,
            hop_limit: HopLimit::Fixed(64),
            inner_dscp: InnerDscp::Keep,
        }
    }
}

/// A number that its header field cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TunnelRulesError {
    /// A DSCP has six bits.
    Dscp(u8),
    /// A flow label has twenty bits.
    FlowLabel(u32),
    /// A packet with no hops left goes nowhere.
    NoHops,
}

impl fmt::Display for TunnelRulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TunnelRulesError::Dscp(dscp) => write!(f, "a DSCP of {dscp}, at most 63 is possible"),
            TunnelRulesError::FlowLabel(label) => {
                write!(f, "a flow label of {label:#x}, at most 0xfffff is possible")
            }
            TunnelRulesError::NoHops => f.write_str("a hop limit of zero, at least 1 is needed"),
        }
    }
}

impl std::error::Error for TunnelRulesError {}

impl TunnelRules {
    /// Checks that each number fits its field.
    pub fn check(&self) -> Result<(), TunnelRulesError> {
        match *self {
            TunnelRules { dscp: Dscp::Set(dscp @ 64..), .. } => Err(TunnelRulesError::Dscp(dscp)),
            TunnelRules { flow_label: FlowLabel::Fixed(label @ 0x10_0000..), .. } => {
                Err(TunnelRulesError::FlowLabel(label))
            }
            TunnelRules { hop_limit: HopLimit::Fixed(0), .. } => Err(TunnelRulesError::NoHops),
            _ => Ok(()),
        }
    }
}

/// The fields of the inner packet from which a tunnel header is made.
#[derive(Clone, Copy, Debug)]
pub struct Inner {
    /// Length of the packet in bytes.
    pub len: usize,
    /// The protocol number of its IP version in an outer header.
    pub next_header: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// DF of IPv4; always set for IPv6.
    pub dont_fragment: bool,
}

impl Inner {
    /// Those of this packet.
    #[inline]
    pub fn of(ip: &Ip<'_>) -> Inner {
        let (next_header, ttl, dont_fragment) = match ip {
            Ip::V4(ip) => (protocol::IPV4, ip.ttl(), ip.dont_fragment()),
            Ip::V6(ip) => (protocol::IPV6, ip.hop_limit(), true),
        };
        Inner { len: ip.bytes().len(), next_header, traffic_class: ip.traffic_class(), ttl, dont_fragment }
    }
}

/// Fields of a tunnel header that follow the inner packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// The number to add to the hop limit in the template: the inner hop limit, or zero.
    pub copied_ttl: u8,
    /// In IPv4.
    pub dont_fragment: bool,
    /// In IPv6.
    pub flow_label: u32,
}

impl Outer {
    /// As the default rules make it.
    #[inline]
    pub fn plain(inner: &Inner) -> Outer {
        Outer {
            traffic_class: inner.traffic_class,
            copied_ttl: 0,
            dont_fragment: inner.dont_fragment,
            flow_label: 0,
        }
    }
}

/// The rules for outer headers as masks, so that applying one is two operations and no choice.
#[derive(Clone, Copy, Debug)]
pub struct Encapsulator {
    class_mask: u8,
    class_bits: u8,
    ttl_mask: u8,
    ttl_bits: u8,
    df_mask: bool,
    df_bits: bool,
    flow_label: FlowLabel,
    /// What the flow labels of this SA differ from another's by.
    seed: u64,
}

impl Encapsulator {
    /// Makes an encapsulator from `rules`; each SA should have a different `seed`.
    pub fn new(rules: &TunnelRules, seed: u64) -> Encapsulator {
        let (dscp_mask, class_bits) = match rules.dscp {
            Dscp::Copy => (0xfc, 0),
            Dscp::Set(dscp) => (0, dscp << 2),
        };
        let ecn_mask = match rules.ecn {
            Ecn::Normal => 0x03,
            Ecn::Compatibility => 0,
        };
        let (ttl_mask, ttl_bits) = match rules.hop_limit {
            HopLimit::Fixed(hops) => (0, hops),
            HopLimit::Copy => (0xff, 0),
        };
        let (df_mask, df_bits) = match rules.dont_fragment {
            DontFragment::Copy => (true, false),
            DontFragment::Set => (false, true),
            DontFragment::Clear => (false, false),
        };
        let class_mask = dscp_mask | ecn_mask;
        let flow_label = rules.flow_label;
        Encapsulator { class_mask, class_bits, ttl_mask, ttl_bits, df_mask, df_bits, flow_label, seed }
    }

    /// Whether all is as [`Encapsulator::outer`] makes it by default: DSCP, ECN and DF as inside, a fixed hop
    /// limit, no flow label.
    #[inline]
    pub fn is_plain(&self) -> bool {
        let copied = self.class_mask == 0xff && self.df_mask && self.ttl_mask == 0;
        copied && self.flow_label == FlowLabel::Zero
    }

    /// The hop limit, as far as it is the same for all packets.
    #[inline]
    pub fn fixed_ttl(&self) -> u8 {
        self.ttl_bits
    }

    /// The fields of the outer header, all but the flow label.
    #[inline]
    pub fn outer(&self, inner: &Inner) -> Outer {
        Outer {
            traffic_class: inner.traffic_class & self.class_mask | self.class_bits,
            copied_ttl: inner.ttl & self.ttl_mask,
            dont_fragment: inner.dont_fragment & self.df_mask | self.df_bits,
            flow_label: 0,
        }
    }

    /// Flow label of an outer IPv6 header around the IP packet that `inner` starts with.
    #[inline]
    pub fn flow_label(&self, inner: &[u8]) -> u32 {
        match self.flow_label {
            FlowLabel::Zero => 0,
            FlowLabel::Fixed(label) => label,
            FlowLabel::Copy => flow::label_of(inner),
            FlowLabel::Hash => flow::label_from(inner, self.seed),
        }
    }
}

/// How headers of inner packets are changed when the outer ones come off.
#[derive(Clone, Debug)]
pub struct Decapsulator {
    /// The bits of DSCP that are the outer header's.
    dscp_from_outer: u8,
    /// Packets whose ECN marks no tunnel makes (RFC 6040 4.2).
    odd: u64,
}

/// Both fields of the traffic class.
const DSCP: u8 = 0xfc;
const ECN: u8 = 0x03;

/// Traffic class of a packet that leaves a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decapsulated {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Whether no tunnel produces this combination of ECN marks: a node on the path violates the rules, and the
    /// operator should be notified (RFC 6040 4.2).
    pub odd: bool,
}

impl Decapsulator {
    /// Makes a decapsulator from `rules`.
    pub fn new(rules: &TunnelRules) -> Decapsulator {
        let dscp_from_outer = if rules.inner_dscp == InnerDscp::FromOuter { DSCP } else { 0 };
        Decapsulator { dscp_from_outer, odd: 0 }
    }

    /// Whether a packet stays as it is: the marks are the same outside and inside, and so is the DSCP as far
    /// as that counts.
    #[inline]
    pub fn changes_nothing(&self, outer: u8, inner: u8) -> bool {
        (outer ^ inner) & self.mask() == 0
    }

    /// The bits of both traffic classes that must be the same for a packet to stay as it is.
    #[inline]
    pub fn mask(&self) -> u8 {
        self.dscp_from_outer | ECN
    }

    /// The traffic class by that of both headers; `None` for a packet that must be dropped: marked by
    /// a congested router, with an inner sender who would not know what the mark means.
    pub fn traffic_class(&self, outer: u8, inner: u8) -> Option<Decapsulated> {
        let (ecn, odd) = EGRESS[usize::from(inner & ECN)][usize::from(outer & ECN)]?;
        let dscp = outer & self.dscp_from_outer | inner & !self.dscp_from_outer & DSCP;
        Some(Decapsulated { traffic_class: dscp | ecn, odd })
    }

    /// Gives the IP packet that `inner` starts with what an `outer` traffic class asks for;
    /// [`DropReason::InEcn`] for a packet that must be dropped.
    #[cold]
    pub fn apply(&mut self, outer: u8, inner: &mut [u8]) -> Result<(), DropReason> {
        let class = traffic_class(inner);
        let new = self.traffic_class(outer, class).ok_or(DropReason::InEcn)?;
        if new.traffic_class != class {
            ip::set_traffic_class(inner, new.traffic_class);
        }
        self.odd += u64::from(new.odd);
        Ok(())
    }

    /// The same for one of the inner packets that share an outer one, whose mark may be another's: only congestion says
    /// something about each (RFC 9347 3.1).
    pub fn apply_shared(&self, outer: u8, inner: &mut [u8]) -> Result<(), DropReason> {
        let class = traffic_class(inner);
        let ecn = match class & ECN {
            NOT_ECT if has_experienced_congestion(outer) => return Err(DropReason::InEcn),
            _ if has_experienced_congestion(outer) => CE,
            own => own,
        };
        let new = outer & self.dscp_from_outer | class & !self.dscp_from_outer & DSCP | ecn;
        if new != class {
            ip::set_traffic_class(inner, new);
        }
        Ok(())
    }

    /// Packets so far with a combination of marks that no tunnel makes.
    #[inline]
    pub fn odd(&self) -> u64 {
        self.odd
    }
}

/// The ECN field of an outer packet that several inner packets share. It has a mark only if each of them knows what that
/// means: the far end drops one that does not if the outer packet experiences congestion (RFC 6040 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedEcn {
    /// That of the packets so far; `None` while there are none.
    so_far: Option<u8>,
}

impl SharedEcn {
    /// Adds an inner packet with this traffic class.
    #[inline]
    pub fn add(&mut self, traffic_class: u8) {
        self.so_far = Some(match (self.so_far, traffic_class & ECN) {
            (None, ecn) => ecn,
            (Some(NOT_ECT), _) | (Some(_), NOT_ECT) => NOT_ECT,
            // RFC 9347 3.1: the value is that of a packet that indicates congestion.
            (Some(CE), _) | (Some(_), CE) => CE,
            (Some(one), other) if one == other => one,
            // ECT(1) asks for the treatment of RFC 9331, which the others have not asked for.
            _ => ECT_0,
        });
    }

    /// The field of the outer packet: Not-ECT if it has no inner ones.
    #[inline]
    pub fn outer(self) -> u8 {
        self.so_far.unwrap_or(NOT_ECT)
    }
}

/// Whether a traffic class has the mark of a congested router (CE).
#[inline]
pub fn has_experienced_congestion(traffic_class: u8) -> bool {
    traffic_class & ECN == CE
}

/// DSCP and ECN of the IP packet that `packet` starts with.
#[inline(always)]
pub fn traffic_class(packet: &[u8]) -> u8 {
    match *packet {
        [first, second, ..] if first >> 4 == 6 => first << 4 | second >> 4,
        [_, second, ..] => second,
        _ => 0,
    }
}

const NOT_ECT: u8 = 0;
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
const CE: u8 = 3;

/// RFC 6040 figure 4, rows and columns in the order of the codepoints: by the inner mark, then by the
/// outer one, the new inner mark and whether the combination is odd ("(!)" and "(!!!)").
const EGRESS: [[Option<(u8, bool)>; 4]; 4] = [
    // outer:    Not-ECT              ECT(1)                ECT(0)                CE
    /* Not-ECT */
    [Some((NOT_ECT, false)), Some((NOT_ECT, true)), Some((NOT_ECT, true)), None],
    /* ECT(1) */
    [Some((ECT_1, false)), Some((ECT_1, false)), Some((ECT_1, true)), Some((CE, false))],
    /* ECT(0) */
    [Some((ECT_0, false)), Some((ECT_1, false)), Some((ECT_0, false)), Some((CE, false))],
    /* CE */ [Some((CE, false)), Some((CE, true)), Some((CE, false)), Some((CE, false))],
];
