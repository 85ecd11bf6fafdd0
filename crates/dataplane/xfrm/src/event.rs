//! Events of the mirror, in Forebay's own types.

use std::net::IpAddr;

use forebay_crypto::{Direction, SaKeys};
use forebay_ipsec::{DontFragment, Dscp, Ecn, InnerDscp, Lifetime, Limits, Tfc};
use forebay_ipsec::{Encapsulation, Mode, Protocol, SaConfig, Spi, TrafficSelector, TunnelRules};

use crate::abi::{flag, mode};
use crate::kernel::{KernelPolicy, KernelSa, KernelTemplate, Sequence};
use crate::{Mark, Refusal, SaId, Way, selectors, suite};

/// Bytes of AH before the ICV.
const AH_FIXED: usize = 12;
/// `UDP_ENCAP_ESPINUDP`.
const ESP_IN_UDP: u16 = 2;

/// Something that happened in the kernel. Events come in the order in which things happened; what an overrun of
/// the socket has swallowed comes as the difference that it made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// An SA to take over.
    SaAdded(Box<Sa>),
    /// An SA that was taken over has other settings; its keys and sequence numbers go on.
    SaUpdated(Box<Sa>),
    /// An SA that was taken over is gone.
    SaDeleted(SaId),
    /// A lifetime of an SA that was taken over has expired. At a hard limit the SA is gone; no other event reports
    /// that. An expiry reported with [`Mirror::expire`](crate::Mirror::expire) is returned by the kernel as this
    /// event.
    SaExpired {
        /// The SA.
        id: SaId,
        /// Whether it is gone.
        hard: bool,
    },
    /// An SA that stays the kernel's; if it was taken over before, it is so no more.
    SaRefused {
        /// The SA.
        id: SaId,
        /// Why.
        reason: Refusal,
    },
    /// A policy to follow.
    PolicyAdded(Box<Policy>),
    /// A policy that is followed has changed.
    PolicyUpdated(Box<Policy>),
    /// A policy that was followed is gone.
    PolicyDeleted(PolicyIndex),
    /// A policy that cannot be followed, new or in the place of what it was before. No packet that it is for may get to
    /// the next policy, so it comes as one that discards ([`PolicyAction::Refused`]).
    PolicyRefused {
        /// The policy.
        policy: Box<Policy>,
        /// Why.
        reason: Refusal,
    },
    /// SAs were flushed; those that were taken over have been reported as deleted one by one.
    SasFlushed,
    /// Policies were flushed; those that were followed have been reported as deleted one by one.
    PoliciesFlushed,
    /// Everything that the kernel had when the mirror was opened, or after an overrun, has been reported.
    Synchronised,
}

/// The kernel's number of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyIndex(pub u32);

/// An SA to take over.
#[derive(Clone, Debug)]
pub struct Sa {
    /// Its name in the kernel.
    pub id: SaId,
    /// Whether it seals or opens.
    pub direction: Direction,
    /// All settings. Of the lifetimes only packets and bytes are set, and they are what is left of them: times are
    /// kept by the kernel, which says when they end.
    pub config: SaConfig,
    /// The keys.
    pub keys: SaKeys,
    /// By which templates find it.
    pub reqid: u32,
    /// Interface ID, zero for none.
    pub if_id: u32,
    /// UDP ports of its packets, source and destination, if they are in UDP.
    pub ports: Option<(u16, u16)>,
    /// Where sequence numbers were when it was added: an outbound SA has to begin behind `sent`, since what
    /// counted so far has used that many.
    pub sequence: Sequence,
    /// When it was added, in seconds since 1970 by the kernel's clock: the same for its whole life, whichever process asks.
    pub added_s: u64,
}

/// A policy to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its number.
    pub index: PolicyIndex,
    /// Which packets. Whatever arrives through an SA has to match one for [`Way::In`] or [`Way::Forward`]:
    /// Forebay does not tell them apart, and IKE daemons install both alike.
    pub way: Way,
    /// The lowest is asked first; of two alike the one with the lower index.
    pub priority: u32,
    /// What to do.
    pub action: PolicyAction,
    /// Traffic on this side; empty means any.
    pub local_ts: Vec<TrafficSelector>,
    /// Traffic on the peer's side; empty means any.
    pub remote_ts: Vec<TrafficSelector>,
    /// Packets that it is for.
    pub mark: Mark,
    /// Interface ID, zero for none.
    pub if_id: u32,
    /// Whether each CPU is to have an SA of its own, and to ask for it (RFC 9611).
    pub per_cpu: bool,
}

/// What a policy does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyAction {
    /// Packets go through an SA for each of these, of which there is one.
    Protect(Vec<Template>),
    /// They pass as they are.
    Bypass,
    /// They are dropped.
    Discard,
    /// They are dropped, since what is to become of them cannot be done; what selectors have no like for is left out of
    /// them, so that they are for more packets rather than for fewer.
    Refused(Refused),
}

/// What a policy that is not followed was to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Packets were to pass in the clear.
    pub bypasses: bool,
    /// It was for one interface, with this number, and nothing else was the matter.
    pub interface: Option<u32>,
}

/// An SA that a policy wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// Source and destination of its packets; `None` for those of the packet inside (transport mode).
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// SPI, if one is wanted.
    pub spi: Option<u32>,
    /// ESP or AH.
    pub protocol: Protocol,
    /// Zero for any.
    pub reqid: u32,
    /// Tunnel or transport.
    pub mode: Mode,
    /// Whether packets pass without it.
    pub optional: bool,
}

impl Template {
    /// Whether this SA satisfies the template (`xfrm_tmpl` in the kernel's look-up). The caller compares marks and
    /// interface IDs of policy and SA; within one [`Filter`](crate::Filter) they agree.
    pub fn wants(&self, sa: &Sa) -> bool {
        let source = if sa.direction == Direction::Seal { sa.config.local } else { sa.config.remote };
        let addresses = (source, sa.id.destination);
        self.protocol == sa.config.protocol
            && self.mode == sa.config.mode
            && (self.reqid == 0 || self.reqid == sa.reqid)
            && self.spi.is_none_or(|spi| spi == sa.id.spi)
            && self.addresses.is_none_or(|wanted| wanted == addresses)
    }
}

fn protocol(number: u8) -> Result<Protocol, Refusal> {
    match number {
        50 => Ok(Protocol::Esp),
        51 => Ok(Protocol::Ah),
        other => Err(Refusal::Protocol(other)),
    }
}

fn kind_of(number: u8) -> Result<Mode, Refusal> {
    match number {
        mode::TRANSPORT => Ok(Mode::Transport),
        mode::TUNNEL => Ok(Mode::Tunnel),
        other => Err(Refusal::Mode(other)),
    }
}

impl Sa {
    /// An SA of the kernel in Forebay's words.
    pub(crate) fn of(sa: &KernelSa, direction: Direction, allow_weak: bool) -> Result<Sa, Refusal> {
        let protocol = protocol(sa.id.protocol)?;
        let mode = kind_of(sa.mode)?;
        if sa.compresses {
            return Err(Refusal::Protocol(108));
        }
        if sa.offloaded {
            return Err(Refusal::Offloaded);
        }
        let (suite, keys) = suite::suite_and_keys(sa)?;
        if suite.is_weak() && !allow_weak {
            return Err(Refusal::Weak(suite));
        }
        let header = AH_FIXED + suite.icv_len();
        let pads = sa.id.destination.is_ipv4() && sa.flags & flag::ALIGN_4 == 0 && !header.is_multiple_of(8);
        if protocol == Protocol::Ah && pads {
            return Err(Refusal::AhPadding);
        }
        let ports = match sa.encap {
            None => None,
            Some(encap) if encap.kind == ESP_IN_UDP => Some((encap.source_port, encap.destination_port)),
            Some(encap) => return Err(Refusal::Encapsulation(encap.kind)),
        };
        let (local, remote) = match direction {
            Direction::Seal => (sa.source, sa.id.destination),
            Direction::Open => (sa.id.destination, sa.source),
        };
        let (local_ts, remote_ts) = selectors::sides(&sa.selector, direction)?;
        let name = format!("xfrm-{:08x}", sa.id.spi);
        let mut config =
            SaConfig::new(&name, Spi::new(sa.id.spi).ok_or(Refusal::NoSpi)?, suite, local, remote);
        config.protocol = protocol;
        config.mode = mode;
        config.esn = sa.flags & flag::ESN != 0;
        config.replay_window = sa.replay_window;
        config.encapsulation = if ports.is_some() { Encapsulation::Udp } else { Encapsulation::None };
        config.tunnel = tunnel(sa);
        config.lifetime = lifetime(sa);
        config.local_ts = local_ts;
        config.remote_ts = remote_ts;
        config.reqid = sa.reqid;
        config.cpu = sa.cpu;
        if sa.tfc_padding != 0 && direction == Direction::Seal {
            config.tfc = Tfc::PadTo(sa.tfc_padding.min(u16::MAX.into()) as u16);
        }
        config.check().map_err(Refusal::Config)?;
        let (reqid, if_id, sequence) = (sa.reqid, sa.if_id, sa.sequence);
        let added_s = sa.usage.added_s;
        Ok(Sa { id: sa.id, direction, config, keys, reqid, if_id, ports, sequence, added_s })
    }
}

fn tunnel(sa: &KernelSa) -> TunnelRules {
    let mut rules = TunnelRules::default();
    if sa.flags & flag::NO_ECN != 0 {
        rules.ecn = Ecn::Compatibility;
    }
    if sa.flags & flag::DECAP_DSCP != 0 {
        rules.inner_dscp = InnerDscp::FromOuter;
    }
    if sa.flags & flag::NO_PMTU_DISC != 0 {
        rules.dont_fragment = DontFragment::Clear;
    }
    if sa.extra_flags & flag::EXTRA_DONT_ENCAP_DSCP != 0 {
        rules.dscp = Dscp::Set(0);
    }
    rules
}

/// What is left of the limits on packets and bytes.
fn lifetime(sa: &KernelSa) -> Lifetime {
    let left = |limit: u64, so_far: u64| (limit != u64::MAX).then(|| limit.saturating_sub(so_far).max(1));
    let limits = |bytes, packets| Limits {
        bytes: left(bytes, sa.usage.bytes),
        packets: left(packets, sa.usage.packets),
        ..Limits::default()
    };
    let (bytes, packets) = (sa.lifetime.bytes, sa.lifetime.packets);
    let hard = limits(bytes.1, packets.1);
    let mut soft = limits(bytes.0, packets.0);
    // Beyond the hard limit a soft one is never reached; the kernel lets it stand.
    soft.bytes = soft.bytes.filter(|&soft| hard.bytes.is_none_or(|hard| soft <= hard));
    soft.packets = soft.packets.filter(|&soft| hard.packets.is_none_or(|hard| soft <= hard));
    Lifetime { soft, hard }
}

impl Policy {
    /// A policy of the kernel in Forebay's words.
    pub(crate) fn of(policy: &KernelPolicy) -> Result<Policy, Refusal> {
        let direction = if policy.way == Way::Out { Direction::Seal } else { Direction::Open };
        let (local_ts, remote_ts) = selectors::sides(&policy.selector, direction)?;
        let action = match &policy.templates[..] {
            _ if policy.blocks => PolicyAction::Discard,
            [] => PolicyAction::Bypass,
            [template] => PolicyAction::Protect(vec![Template::of(template)?]),
            // One SA is not enough, and another inside of it is not taken for one.
            templates => return Err(Refusal::Templates(templates.len())),
        };
        Ok(Policy::with(policy, action, (local_ts, remote_ts)))
    }

    /// The same policy as one that discards, for at least the packets that it is for.
    pub(crate) fn refused(policy: &KernelPolicy) -> Policy {
        let direction = if policy.way == Way::Out { Direction::Seal } else { Direction::Open };
        let bypasses = !policy.blocks && policy.templates.is_empty();
        let interface = policy.selector.interface;
        let whole = crate::kernel::Selector { interface: 0, ..policy.selector };
        let (sides, interface) = match selectors::sides(&whole, direction) {
            Ok(sides) => (sides, (interface != 0).then_some(interface)),
            Err(_) => (selectors::addresses(&policy.selector, direction), None),
        };
        let action = match policy.blocks {
            true => PolicyAction::Discard,
            false => PolicyAction::Refused(Refused { bypasses, interface }),
        };
        Policy::with(policy, action, sides)
    }

    fn with(
        policy: &KernelPolicy,
        action: PolicyAction,
        (local_ts, remote_ts): (Vec<TrafficSelector>, Vec<TrafficSelector>),
    ) -> Policy {
        Policy {
            index: PolicyIndex(policy.index),
            way: policy.way,
            priority: policy.priority,
            action,
            local_ts,
            remote_ts,
            mark: policy.mark,
            if_id: policy.if_id,
            per_cpu: policy.per_cpu,
        }
    }
}

impl Template {
    fn of(template: &KernelTemplate) -> Result<Template, Refusal> {
        let (source, destination) = (template.source, template.destination);
        let said = !(source.is_unspecified() || destination.is_unspecified());
        Ok(Template {
            addresses: said.then_some((source, destination)),
            spi: (template.spi != 0).then_some(template.spi),
            protocol: protocol(template.protocol)?,
            reqid: template.reqid,
            mode: kind_of(template.mode)?,
            optional: template.optional,
        })
    }
}
