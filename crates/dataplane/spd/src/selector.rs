//! Traffic selectors: which packets an SA or a policy is for (RFC 4301 4.4.1.1, RFC 7296 3.13.1).

pub(crate) mod parse;

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// A range of ports, or of ICMP types and codes or Mobility Header types, packed as IKEv2 packs them:
/// type in the upper eight bits, code in the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Every port, and packets whose ports cannot be seen.
    pub const ANY: PortRange = PortRange { first: 0, last: u16::MAX };
    /// Only packets whose ports cannot be seen: fragments behind the first, protocols without ports.
    pub const OPAQUE: PortRange = PortRange { first: u16::MAX, last: 0 };

    /// The ports from `first` to `last`, both included; `None` if there are none.
    pub fn new(first: u16, last: u16) -> Option<PortRange> {
        (first <= last).then_some(PortRange { first, last })
    }

    /// One port.
    pub fn one(port: u16) -> PortRange {
        PortRange { first: port, last: port }
    }

    /// The ICMP types from `first` to `last` with every code, both included; `None` if there are none.
    pub fn icmp_types(first: u8, last: u8) -> Option<PortRange> {
        PortRange::new(u16::from(first) << 8, u16::from(last) << 8 | 0xff)
    }

    /// Whether all ports of `other` are among these.
    pub(crate) fn holds(self, other: PortRange) -> bool {
        let within = self.first <= other.first && other.first <= other.last && other.last <= self.last;
        // OPAQUE is no range: its first port is above its last.
        self == other || self == PortRange::ANY || within
    }

    /// First port, as IKEv2 states it: above the last for [`PortRange::OPAQUE`].
    pub fn first(self) -> u16 {
        self.first
    }

    /// Last port, as IKEv2 states it.
    pub fn last(self) -> u16 {
        self.last
    }
}

/// The addresses of a selector, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Addresses {
    /// All of both IP versions.
    Any,
    /// A range of one version.
    Range { first: IpAddr, last: IpAddr },
}

/// Packets on one side of an SA or policy: a range of addresses, a protocol, a range of ports.
///
/// Written as swanctl writes it: `10.1.0.0/16`, `10.1.0.5-10.1.0.9`, `10.1.0.0/16[tcp/80]`,
/// `10.1.0.0/16[udp/1000-2000]`, `10.1.0.0/16[icmp/8]` (type 8, any code), `[icmp/3(1)]` (type and code),
/// `[/53]` (any protocol that has ports), `[udp/opaque]`. Without an address any is meant, of both IP
/// versions.
///
/// ICMP and the Mobility Header have one field, not one for each side: it is compared with the
/// selector of the side that the packet comes from (RFC 4301 4.4.1.3). A range of ports without a
/// protocol is only for protocols that have ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrafficSelector {
    pub(crate) addresses: Addresses,
    /// Zero for any, as in IKEv2.
    pub(crate) protocol: u8,
    pub(crate) ports: PortRange,
}

impl TrafficSelector {
    /// Everything, of both IP versions.
    pub const ANY: TrafficSelector =
        TrafficSelector { addresses: Addresses::Any, protocol: 0, ports: PortRange::ANY };

    /// The addresses from `first` to `last`, both included, with any protocol; `None` if there are none
    /// or they are of different IP versions.
    pub fn range(first: IpAddr, last: IpAddr) -> Option<TrafficSelector> {
        let fits = first.is_ipv4() == last.is_ipv4() && first <= last;
        fits.then_some(TrafficSelector {
            addresses: Addresses::Range { first, last },
            ..TrafficSelector::ANY
        })
    }

    /// The same addresses with this protocol only, zero for any, and these ports.
    pub fn with(self, protocol: u8, ports: PortRange) -> TrafficSelector {
        TrafficSelector { protocol, ports, ..self }
    }

    /// First and last address, both included; `None` for any of both IP versions.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        match self.addresses {
            Addresses::Any => None,
            Addresses::Range { first, last } => Some((first, last)),
        }
    }

    /// The protocol, `None` for any.
    pub fn protocol(&self) -> Option<u8> {
        (self.protocol != 0).then_some(self.protocol)
    }

    /// The ports.
    pub fn ports(&self) -> PortRange {
        self.ports
    }

    /// Whether nothing but the address matters.
    pub(crate) fn is_addresses_only(&self) -> bool {
        self.protocol == 0 && self.ports == PortRange::ANY
    }

    /// The prefix that the addresses are, if they are one.
    fn prefix(&self) -> Option<IpNet> {
        let (first, last) = self.addresses()?;
        let len = match (first, last) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (u32::from(a) ^ u32::from(b)).leading_zeros(),
            (IpAddr::V6(a), IpAddr::V6(b)) => (u128::from(a) ^ u128::from(b)).leading_zeros(),
            _ => return None,
        };
        let net = IpNet::new(first, len as u8).ok()?;
        (net.network() == first && net.broadcast() == last).then_some(net)
    }
}

impl From<IpNet> for TrafficSelector {
    fn from(net: IpNet) -> TrafficSelector {
        let (first, last) = (net.network(), net.broadcast());
        TrafficSelector { addresses: Addresses::Range { first, last }, ..TrafficSelector::ANY }
    }
}

impl From<IpAddr> for TrafficSelector {
    fn from(address: IpAddr) -> TrafficSelector {
        IpNet::from(address).into()
    }
}

impl fmt::Display for TrafficSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.addresses(), self.prefix()) {
            (_, Some(net)) => write!(f, "{net}")?,
            (Some((first, last)), None) => write!(f, "{first}-{last}")?,
            (None, None) if self.is_addresses_only() => f.write_str("any")?,
            (None, None) => {}
        }
        if self.is_addresses_only() {
            return Ok(());
        }
        f.write_str("[")?;
        if self.protocol != 0 {
            match parse::protocol_name(self.protocol) {
                Some(name) => f.write_str(name)?,
                None => write!(f, "{}", self.protocol)?,
            }
        }
        parse::fmt_ports(f, self.protocol, self.ports)?;
        f.write_str("]")
    }
}
