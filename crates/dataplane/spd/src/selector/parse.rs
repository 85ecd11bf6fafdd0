//! Selectors in swanctl's words, to and fro.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use forebay_wire::protocol;
use ipnet::IpNet;

use super::{PortRange, TrafficSelector};
use crate::headers::{ICMP, ICMP_V6, MOBILITY};

/// Names of protocols as in /etc/protocols, the one to show first; any other has its number.
const PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", ICMP),
    ("ipencap", protocol::IPV4),
    ("tcp", protocol::TCP),
    ("udp", protocol::UDP),
    ("dccp", 33),
    ("ipv6", protocol::IPV6),
    ("gre", 47),
    ("esp", protocol::ESP),
    ("ah", protocol::AH),
    ("ipv6-icmp", ICMP_V6),
    ("icmpv6", ICMP_V6),
    ("ospf", 89),
    ("ipcomp", 108),
    ("l2tp", 115),
    ("sctp", 132),
    ("mobility-header", MOBILITY),
    ("udplite", 136),
];

/// Text that is no traffic selector.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectorError {
    /// The part before the bracket is neither a prefix, an address, nor a range of addresses.
    Address {
        /// What stands there.
        found: String,
    },
    /// A prefix whose address has bits behind the prefix length.
    HostBits {
        /// As it was written.
        found: IpNet,
    },
    /// A range of addresses or ports whose first is above its last, or of both IP versions.
    Backwards {
        /// The range.
        found: String,
    },
    /// A bracket is not closed, or something stands behind it.
    Bracket {
        /// From the bracket on.
        found: String,
    },
    /// Not the name or number of a protocol.
    Protocol {
        /// What stands there.
        found: String,
    },
    /// Not a port, an ICMP type or a range of them.
    Port {
        /// What stands there.
        found: String,
    },
}

impl SelectorError {
    /// The part of the text that is wrong.
    pub fn found(&self) -> String {
        match self {
            SelectorError::HostBits { found } => found.to_string(),
            SelectorError::Address { found }
            | SelectorError::Backwards { found }
            | SelectorError::Bracket { found }
            | SelectorError::Protocol { found }
            | SelectorError::Port { found } => found.clone(),
        }
    }

    /// The text that is expected instead.
    pub fn expected(&self) -> &'static str {
        match self {
            SelectorError::Address { .. } => {
                "an address, a prefix or a range, like 10.1.0.0/16 or 10.1.0.5-10.1.0.9"
            }
            SelectorError::HostBits { .. } => "the network's own address",
            SelectorError::Backwards { .. } => {
                "a range whose first end is not above its last, both of one IP version"
            }
            SelectorError::Bracket { .. } => "[protocol/port] and nothing behind it, like [tcp/80]",
            SelectorError::Protocol { .. } => "a protocol by name or number, like tcp, ipv6-icmp or 47",
            SelectorError::Port { .. } => {
                "a port, first-last or opaque; for ICMP a type, type(code) or a range of them"
            }
        }
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "found `{}`, expected {}", self.found(), self.expected())
    }
}

impl std::error::Error for SelectorError {}

impl FromStr for TrafficSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<TrafficSelector, SelectorError> {
        let (addresses, bracket) = match text.find('[') {
            Some(at) => (&text[..at], Some(&text[at..])),
            None => (text, None),
        };
        let selector = match addresses {
            "" if bracket.is_some() => TrafficSelector::ANY,
            "any" => TrafficSelector::ANY,
            _ => read_addresses(addresses)?,
        };
        let Some(bracket) = bracket else { return Ok(selector) };
        let inside = bracket.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let inside = inside.ok_or_else(|| SelectorError::Bracket { found: bracket.into() })?;
        let (protocol, ports) = match inside.split_once('/') {
            Some((protocol, ports)) => (protocol, Some(ports)),
            None => (inside, None),
        };
        let protocol = if protocol.is_empty() && ports.is_some() { 0 } else { read_protocol(protocol)? };
        let ports = ports.map_or(Ok(PortRange::ANY), |ports| read_ports(ports, protocol))?;
        Ok(selector.with(protocol, ports))
    }
}

fn read_addresses(text: &str) -> Result<TrafficSelector, SelectorError> {
    let wrong = || SelectorError::Address { found: text.into() };
    if let Some((first, last)) = text.split_once('-') {
        let address = |text: &str| text.parse::<IpAddr>().map_err(|_| wrong());
        let (first, last) = (address(first)?, address(last)?);
        return TrafficSelector::range(first, last)
            .ok_or_else(|| SelectorError::Backwards { found: text.into() });
    }
    let net = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    let net = net.ok_or_else(wrong)?;
    if net != net.trunc() {
        return Err(SelectorError::HostBits { found: net });
    }
    Ok(net.into())
}

fn read_protocol(text: &str) -> Result<u8, SelectorError> {
    let named = PROTOCOLS.iter().find(|(name, _)| *name == text).map(|&(_, number)| number);
    // Zero is "any" in IKEv2 and cannot be meant by who writes a number.
    let number = named.or_else(|| digits(text)).filter(|&number| number != 0);
    number.ok_or_else(|| SelectorError::Protocol { found: text.into() })
}

fn read_ports(text: &str, protocol: u8) -> Result<PortRange, SelectorError> {
    if text == "opaque" {
        return Ok(PortRange::OPAQUE);
    }
    let read = |text: &str| {
        let bounds = if is_icmp(protocol) {
            icmp_bounds(text)
        } else if protocol == MOBILITY {
            digits::<u8>(text).map(|kind| (u16::from(kind) << 8, u16::from(kind) << 8))
        } else {
            digits(text).map(|port| (port, port))
        };
        bounds.ok_or_else(|| SelectorError::Port { found: text.into() })
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (read(first)?.0, read(last)?.1);
    PortRange::new(first, last).ok_or_else(|| SelectorError::Backwards { found: text.into() })
}

/// First and last value of `type` or `type(code)`.
fn icmp_bounds(text: &str) -> Option<(u16, u16)> {
    let Some((kind, code)) = text.split_once('(') else {
        let kind: u8 = digits(text)?;
        return Some((u16::from(kind) << 8, u16::from(kind) << 8 | 0xff));
    };
    let (kind, code): (u8, u8) = (digits(kind)?, digits(code.strip_suffix(')')?)?);
    let packed = u16::from(kind) << 8 | u16::from(code);
    Some((packed, packed))
}

/// A decimal number without a sign.
fn digits<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, ICMP | ICMP_V6)
}

pub(super) fn protocol_name(protocol: u8) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(_, number)| *number == protocol).map(|&(name, _)| name)
}

/// The ports with the slash before them, nothing for any.
pub(super) fn fmt_ports(f: &mut fmt::Formatter<'_>, protocol: u8, ports: PortRange) -> fmt::Result {
    let (first, last) = (ports.first, ports.last);
    if ports == PortRange::ANY {
        return Ok(());
    }
    if ports == PortRange::OPAQUE {
        return f.write_str("/opaque");
    }
    if is_icmp(protocol) {
        let whole_types = first & 0xff == 0 && last & 0xff == 0xff;
        let part = |f: &mut fmt::Formatter<'_>, value: u16| match whole_types {
            true => write!(f, "{}", value >> 8),
            false => write!(f, "{}({})", value >> 8, value & 0xff),
        };
        f.write_str("/")?;
        part(f, first)?;
        if first != last && !(whole_types && first >> 8 == last >> 8) {
            f.write_str("-")?;
            part(f, last)?;
        }
        return Ok(());
    }
    let shift = if protocol == MOBILITY { 8 } else { 0 };
    write!(f, "/{}", first >> shift)?;
    if first != last { write!(f, "-{}", last >> shift) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> TrafficSelector {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn swanctls_words() {
        let net = |text: &str| TrafficSelector::from(text.parse::<IpNet>().expect("a prefix"));
        let port = |first, last| PortRange::new(first, last).expect("in order");
        let cases = [
            ("10.1.0.0/16", net("10.1.0.0/16")),
            ("2001:db8::/32", net("2001:db8::/32")),
            ("10.1.0.5", net("10.1.0.5/32")),
            ("10.1.0.0/16[tcp/80]", net("10.1.0.0/16").with(6, port(80, 80))),
            ("10.1.0.0/16[udp/1000-2000]", net("10.1.0.0/16").with(17, port(1000, 2000))),
            ("[udp/1000-2000]", TrafficSelector::ANY.with(17, port(1000, 2000))),
            ("[icmp/8]", TrafficSelector::ANY.with(1, port(0x800, 0x8ff))),
            ("[icmp/3(1)]", TrafficSelector::ANY.with(1, port(0x301, 0x301))),
            ("[icmp/3(1)-4(0)]", TrafficSelector::ANY.with(1, port(0x301, 0x400))),
            ("[icmp/3(1)-3(4)]", TrafficSelector::ANY.with(1, port(0x301, 0x304))),
            ("[icmp/8-11]", TrafficSelector::ANY.with(1, port(0x800, 0xbff))),
            ("[ipv6-icmp/128]", TrafficSelector::ANY.with(58, port(0x8000, 0x80ff))),
            ("[mobility-header/5]", TrafficSelector::ANY.with(135, port(0x500, 0x500))),
            ("[/53]", TrafficSelector::ANY.with(0, port(53, 53))),
            ("[gre]", TrafficSelector::ANY.with(47, PortRange::ANY)),
            ("[253]", TrafficSelector::ANY.with(253, PortRange::ANY)),
            ("10.1.0.0/16[tcp/opaque]", net("10.1.0.0/16").with(6, PortRange::OPAQUE)),
            ("any", TrafficSelector::ANY),
        ];
        for (text, selector) in cases {
            assert_eq!(read(text), selector, "{text}");
            assert_eq!(read(&selector.to_string()), selector, "{text} as {selector}");
        }
        let range = read("10.1.0.5-10.1.0.9");
        assert_eq!(range.addresses(), Some(([10, 1, 0, 5].into(), [10, 1, 0, 9].into())));
        assert_eq!(range.to_string(), "10.1.0.5-10.1.0.9");
        assert_eq!(read("10.1.0.0-10.1.255.255").to_string(), "10.1.0.0/16");
        assert_eq!(read("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").to_string(), "::/0");
    }

    /// RFC 7296 3.13.1: ANY is 0 to 65535, OPAQUE 65535 to 0.
    #[test]
    fn any_and_opaque_as_ikev2_states_them() {
        assert_eq!((PortRange::ANY.first(), PortRange::ANY.last()), (0, 65535));
        assert_eq!((PortRange::OPAQUE.first(), PortRange::OPAQUE.last()), (65535, 0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("", "found ``, expected an address"),
            ("10.1.0.0/33", "found `10.1.0.0/33`, expected an address"),
            ("10.1.2.3/16", "found `10.1.2.3/16`, expected the network's own address"),
            ("10.1.0.9-10.1.0.5", "found `10.1.0.9-10.1.0.5`, expected a range"),
            ("10.1.0.9-2001:db8::1", "both of one IP version"),
            ("10.1.0.0/16[tcp/80", "found `[tcp/80`, expected [protocol/port]"),
            ("10.1.0.0/16[tcp]x", "found `[tcp]x`"),
            ("[]", "found ``, expected a protocol"),
            ("[tpc/80]", "found `tpc`, expected a protocol"),
            ("[0/80]", "found `0`, expected a protocol"),
            ("[256]", "found `256`"),
            ("[tcp/]", "found ``, expected a port"),
            ("[tcp/+80]", "found `+80`, expected a port"),
            ("[tcp/65536]", "found `65536`"),
            ("[tcp/90-80]", "found `90-80`, expected a range"),
            ("[tcp/http]", "found `http`"),
            ("[icmp/256]", "found `256`"),
            ("[icmp/3(1]", "found `3(1`"),
        ] {
            let error = text.parse::<TrafficSelector>().expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
