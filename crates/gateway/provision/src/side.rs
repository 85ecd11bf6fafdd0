//! One side of a tunnel.

use std::net::IpAddr;
use std::str::FromStr;

use forebay_sas::{Peer, no_peer};
use ipnet::IpNet;

use crate::ProvisionError;

/// Longest name of a side, in characters: it becomes part of names of files and SAs.
const NAME_MAX: usize = 32;

const FORM: &str = "write NAME=ADDRESS,NETWORK[,NETWORK...], such as west=192.0.2.1,10.1.0.0/16";

/// One side of a tunnel: a gateway and the networks behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// Lower-case letters, digits and hyphens.
    pub name: String,
    /// The address or host name at which the peer reaches the gateway.
    pub outer: Peer,
    /// The gateway's own address, where a NAT in front of it translates `outer` to that. One with a host name has it.
    pub own: Option<IpAddr>,
    /// The networks behind the gateway, one at least, without host bits.
    pub networks: Vec<IpNet>,
}

impl Side {
    /// Checks the parts of a side.
    ///
    /// # Errors
    /// [`ProvisionError::Side`].
    pub fn new(name: &str, outer: &str, networks: &[&str]) -> Result<Side, ProvisionError> {
        let wrong = |reason: String, hint: &str| ProvisionError::Side {
            found: name.to_owned(),
            reason,
            hint: hint.to_owned(),
        };
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        let is_name = name.starts_with(|letter: char| letter.is_ascii_lowercase()) && name.chars().all(plain);
        if !is_name || name.len() > NAME_MAX {
            let expected =
                format!("expected a name of at most {NAME_MAX} lower-case letters, digits and hyphens");
            return Err(wrong(expected, FORM));
        }
        let outer = match outer.parse::<IpAddr>() {
            Ok(outer) => match unreachable(&outer) {
                Some(is) => {
                    let reason = format!("no peer reaches a gateway at {outer}, {is}");
                    return Err(wrong(reason, "give the address of the gateway's interface to the peer"));
                }
                None => Peer::Address(outer),
            },
            Err(_) => Peer::Name(outer.parse().map_err(|reason| {
                let reason = format!("`{outer}` is neither an IP address nor a host name: {reason}");
                wrong(reason, "give the address or the host name of the gateway, without brackets, port or prefix length")
            })?),
        };
        if networks.is_empty() {
            return Err(wrong("it has no network behind it".to_owned(), FORM));
        }
        let networks = networks.iter().map(|word| network(word, &wrong)).collect::<Result<_, _>>()?;
        Ok(Side { name: name.to_owned(), outer, own: None, networks })
    }

    /// The address that the gateway itself has; `None` if only its host name is known.
    pub fn local(&self) -> Option<IpAddr> {
        self.own.or(self.address())
    }

    /// The address at which the peer reaches the gateway, unless it has a host name.
    pub fn address(&self) -> Option<IpAddr> {
        if let Peer::Address(address) = self.outer { Some(address) } else { None }
    }
}

/// Why a gateway cannot have this address on its interface to the peer.
pub(crate) fn unreachable(address: &IpAddr) -> Option<&'static str> {
    match address {
        _ if address.is_loopback() => Some("a loopback address"),
        _ if is_link_local(address) => Some("a link-local address"),
        _ => no_peer(address),
    }
}

/// Why no network behind a gateway has these addresses. Link-local ones are left: BGP and OSPFv3 through a tunnel have them.
fn of_no_network(network: &IpNet) -> Option<&'static str> {
    let (first, last) = (network.network(), network.broadcast());
    let both = |is: fn(&IpAddr) -> bool| is(&first) && is(&last);
    match () {
        () if both(IpAddr::is_multicast) => Some("multicast addresses"),
        () if both(IpAddr::is_loopback) => Some("loopback addresses"),
        () => None,
    }
}

fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// A network without host bits.
fn network(word: &str, wrong: &dyn Fn(String, &str) -> ProvisionError) -> Result<IpNet, ProvisionError> {
    let single = word.parse::<IpAddr>().map(IpNet::from);
    let network: IpNet = word.parse().or(single).map_err(|_| {
        wrong(format!("`{word}` is not a network"), "write networks as 10.1.0.0/16 or 2001:db8:1::/48")
    })?;
    if network.trunc() != network {
        return Err(wrong(format!("{network}: host bits are set"), &format!("write {}", network.trunc())));
    }
    let is_host = network.prefix_len() == network.max_prefix_len();
    if !word.contains('/') && is_host && ends_in_zero(&network.addr()) {
        let hint = format!(
            "write {network} for this one address, or its prefix length, such as {word}/{}",
            usual_length(&network)
        );
        return Err(wrong(
            format!("`{word}` has no prefix length, and looks like the address of a network"),
            &hint,
        ));
    }
    if network.prefix_len() == 0 {
        let hint = "name the networks; to send everything through a tunnel, edit the files (docs/gateway.md)";
        return Err(wrong(format!("{network} is every address, also the peer's"), hint));
    }
    if let Some(is) = of_no_network(&network) {
        return Err(wrong(
            format!("no tunnel carries packets of {network}: {is}"),
            "name the networks behind the gateway",
        ));
    }
    Ok(network)
}

/// Whether the address is what people write in front of a prefix length.
fn ends_in_zero(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[3] == 0,
        IpAddr::V6(v6) => v6.octets()[8..] == [0; 8],
    }
}

/// The shortest usual prefix length that leaves no host bits.
fn usual_length(network: &IpNet) -> u8 {
    let lengths: &[u8] = if matches!(network, IpNet::V4(_)) { &[16, 24] } else { &[48, 64] };
    let fits = |length: &u8| IpNet::new(network.addr(), *length).is_ok_and(|one| one.trunc() == one);
    lengths.iter().copied().find(fits).unwrap_or(lengths[1])
}

impl FromStr for Side {
    type Err = ProvisionError;

    /// Reads `NAME=ADDRESS,NETWORK[,NETWORK...]`.
    fn from_str(text: &str) -> Result<Side, ProvisionError> {
        let form = |reason: &str| ProvisionError::Side {
            found: text.to_owned(),
            reason: reason.to_owned(),
            hint: FORM.to_owned(),
        };
        let (name, rest) = text.split_once('=').ok_or_else(|| form("no `=` behind the name"))?;
        let mut words = rest.split(',').map(str::trim);
        let outer = words.next().unwrap_or_default();
        let networks: Vec<&str> = words.collect();
        Side::new(name.trim(), outer, &networks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_read() {
        let side: Side =
            "west=192.0.2.1, 10.1.0.0/16,2001:db8:1::/48,10.9.0.1,169.254.6.0/30".parse().unwrap();
        assert_eq!((side.name.as_str(), side.outer), ("west", Peer::Address([192, 0, 2, 1].into())));
        let networks: Vec<String> = side.networks.iter().map(ToString::to_string).collect();
        assert_eq!(networks, ["10.1.0.0/16", "2001:db8:1::/48", "10.9.0.1/32", "169.254.6.0/30"]);
    }

    #[test]
    fn broken_sides_are_refused_with_what_would_be_right() {
        for (text, reason, hint) in [
            ("west", "no `=`", "write NAME="),
            ("West=192.0.2.1,10.1.0.0/16", "lower-case", "write NAME="),
            ("../x=192.0.2.1,10.1.0.0/16", "lower-case", "write NAME="),
            ("-x=192.0.2.1,10.1.0.0/16", "lower-case", "write NAME="),
            ("west=gw_1.example.org,10.1.0.0/16", "neither an IP address nor a host name", "the host name"),
            ("west=192.0.2.300,10.1.0.0/16", "neither an IP address nor a host name", "the host name"),
            ("west=[2001:db8::1],10.1.0.0/16", "neither an IP address nor a host name", "without brackets"),
            ("west=0.0.0.0,10.1.0.0/16", "no peer reaches a gateway at 0.0.0.0", "interface"),
            ("west=255.255.255.255,10.1.0.0/16", "the broadcast address", "interface"),
            ("west=127.0.0.1,10.1.0.0/16", "a loopback address", "interface"),
            ("west=fe80::1,10.1.0.0/16", "a link-local address", "interface"),
            ("west=::ffff:192.0.2.1,10.1.0.0/16", "in the notation of IPv6", "interface"),
            (
                "west=192.0.2.1,10.1.0.0",
                "no prefix length",
                "write 10.1.0.0/32 for this one address, or its prefix length, such as 10.1.0.0/16",
            ),
            ("west=192.0.2.1,2001:db8:1:2::", "no prefix length", "such as 2001:db8:1:2::/64"),
            ("west=192.0.2.1,224.0.0.0/4", "multicast", "behind the gateway"),
            ("west=192.0.2.1,127.0.0.0/8", "loopback", "behind the gateway"),
            ("west=192.0.2.1", "no network", "write NAME="),
            ("west=192.0.2.1,10.1.0.1/16", "host bits", "write 10.1.0.0/16"),
            ("west=192.0.2.1,ten", "not a network", "10.1.0.0/16"),
            ("west=192.0.2.1,0.0.0.0/0", "every address", "gateway.md"),
        ] {
            let error = text.parse::<Side>().unwrap_err();
            assert!(error.to_string().contains(reason), "{text}: {error}");
            assert!(error.hint().contains(hint), "{text}: {}", error.hint());
        }
    }
}
