//! From the kernel's selectors to traffic selectors of both sides.

use std::net::IpAddr;

use forebay_crypto::Direction;
use forebay_ipsec::{PortRange, TrafficSelector};

use crate::Refusal;
use crate::kernel::Selector;

/// Protocols whose port fields are type and code.
const TYPED: [u8; 2] = [1, 58];

/// Selectors of this side and of the peer's; empty for any.
pub fn sides(
    selector: &Selector,
    direction: Direction,
) -> Result<(Vec<TrafficSelector>, Vec<TrafficSelector>), Refusal> {
    if selector.interface != 0 {
        return Err(Refusal::Selector("one interface"));
    }
    if selector.user != 0 {
        return Err(Refusal::Selector("one user"));
    }
    let (source_ports, destination_ports) = if TYPED.contains(&selector.protocol) {
        // One field, of the side that the packet comes from (RFC 4301 4.4.1.3).
        (type_and_code(selector)?, PortRange::ANY)
    } else {
        (ports(selector.source_port)?, ports(selector.destination_port)?)
    };
    let source = side(selector, selector.source, source_ports)?;
    let destination = side(selector, selector.destination, destination_ports)?;
    Ok(match direction {
        Direction::Seal => (source, destination),
        Direction::Open => (destination, source),
    })
}

/// The addresses of this side and of the peer's, whatever else the selector says; any where they are none.
pub fn addresses(selector: &Selector, direction: Direction) -> (Vec<TrafficSelector>, Vec<TrafficSelector>) {
    let wider = Selector { protocol: 0, ..*selector };
    let of = |end| side(&wider, end, PortRange::ANY).unwrap_or_default();
    let (source, destination) = (of(selector.source), of(selector.destination));
    match direction {
        Direction::Seal => (source, destination),
        Direction::Open => (destination, source),
    }
}

fn side(
    selector: &Selector,
    (address, prefix): (IpAddr, u8),
    ports: PortRange,
) -> Result<Vec<TrafficSelector>, Refusal> {
    let addresses = match range(address, prefix).ok_or(Refusal::Selector("a prefix that is too long"))? {
        _ if prefix == 0 && selector.any_family => TrafficSelector::ANY,
        (first, last) => {
            TrafficSelector::range(first, last).ok_or(Refusal::Selector("addresses that are not a range"))?
        }
    };
    let whole = addresses.with(selector.protocol, ports);
    Ok(if whole == TrafficSelector::ANY { Vec::new() } else { vec![whole] })
}

/// First and last address of a prefix; `None` if it is longer than an address.
fn range(address: IpAddr, prefix: u8) -> Option<(IpAddr, IpAddr)> {
    Some(match address {
        IpAddr::V4(address) => {
            let host = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
            let bits = u32::from(address);
            (prefix <= 32).then_some((IpAddr::V4((bits & !host).into()), IpAddr::V4((bits | host).into())))?
        }
        IpAddr::V6(address) => {
            let host = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
            let bits = u128::from(address);
            (prefix <= 128)
                .then_some((IpAddr::V6((bits & !host).into()), IpAddr::V6((bits | host).into())))?
        }
    })
}

/// A port with the bits that count.
fn ports((port, mask): (u16, u16)) -> Result<PortRange, Refusal> {
    // Bits that do not count stand behind those that do: a range.
    if mask.leading_ones() + mask.trailing_zeros() < 16 {
        return Err(Refusal::Selector("a port mask that is not a range"));
    }
    match (port & mask, port | !mask) {
        (0, u16::MAX) => Ok(PortRange::ANY),
        (first, last) => PortRange::new(first, last).ok_or(Refusal::Selector("no port")),
    }
}

/// The kernel has the type where the source port is and the code where the destination port is.
fn type_and_code(selector: &Selector) -> Result<PortRange, Refusal> {
    let refused = Err(Refusal::Selector("ICMP types or codes by a mask"));
    let octet = |(value, mask): (u16, u16)| (value <= 0xff && mask == 0xffff).then_some(value);
    match (selector.source_port, selector.destination_port) {
        ((_, 0), (_, 0)) => Ok(PortRange::ANY),
        (kind, (_, 0)) => match octet(kind) {
            Some(kind) => Ok(PortRange::icmp_types(kind as u8, kind as u8).unwrap_or(PortRange::ANY)),
            None => refused,
        },
        (kind, code) => match octet(kind).zip(octet(code)) {
            Some((kind, code)) => Ok(PortRange::one(kind << 8 | code)),
            None => refused,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(protocol: u8, source_port: (u16, u16), destination_port: (u16, u16)) -> Selector {
        Selector {
            destination: ("10.2.3.4".parse().unwrap(), 16),
            source: ("10.1.0.7".parse().unwrap(), 32),
            destination_port,
            source_port,
            any_family: false,
            protocol,
            interface: 0,
            user: 0,
        }
    }

    fn shown(selector: &Selector, direction: Direction) -> (String, String) {
        let (local, remote) = sides(selector, direction).unwrap();
        (local[0].to_string(), remote[0].to_string())
    }

    #[test]
    fn sides_follow_the_direction() {
        let tcp = selector(6, (0, 0), (443, 0xffff));
        let (near, far) = ("10.1.0.7/32[tcp]".to_owned(), "10.2.0.0/16[tcp/443]".to_owned());
        assert_eq!(shown(&tcp, Direction::Seal), (near.clone(), far.clone()));
        assert_eq!(shown(&tcp, Direction::Open), (far, near));
    }

    #[test]
    fn masks_are_ranges_or_refused() {
        assert_eq!(ports((0x1234, 0xff00)), Ok(PortRange::new(0x1200, 0x12ff).unwrap()));
        assert_eq!(ports((0, 0)), Ok(PortRange::ANY));
        assert_eq!(ports((7, 0xffff)), Ok(PortRange::one(7)));
        assert!(ports((7, 0x00ff)).is_err());
        assert!(ports((7, 0xf0ff)).is_err());
    }

    #[test]
    fn icmp_has_a_type_and_a_code() {
        let echo = selector(1, (8, 0xffff), (0, 0));
        assert_eq!(shown(&echo, Direction::Seal).0, "10.1.0.7/32[icmp/8]");
        let exact = selector(1, (3, 0xffff), (1, 0xffff));
        assert_eq!(shown(&exact, Direction::Seal).0, "10.1.0.7/32[icmp/3(1)]");
        assert!(sides(&selector(1, (300, 0xffff), (0, 0)), Direction::Seal).is_err());
    }

    #[test]
    fn prefixes_of_every_length_end_where_they_should() {
        for (prefix, last) in
            [(0, "255.255.255.255"), (8, "10.255.255.255"), (31, "10.2.3.5"), (32, "10.2.3.4")]
        {
            let address = "10.2.3.4".parse().unwrap();
            assert_eq!(range(address, prefix).unwrap().1, last.parse::<IpAddr>().unwrap());
        }
        assert_eq!(range("10.2.3.4".parse().unwrap(), 33), None);
        assert_eq!(range("::1".parse().unwrap(), 129), None);
        assert_eq!(range("::1".parse().unwrap(), 0).unwrap().1, IpAddr::from([0xff; 16]));
    }
}
