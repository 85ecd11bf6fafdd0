//! Names of hosts, by which a gateway's file may name a peer.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::mask;

/// The name of a host (RFC 952, RFC 1123 2.1), in lower case: names that differ in case only are one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(Box<str>);

/// Most bytes of a name, and of a label of it (RFC 1035 2.3.4, as text).
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

impl HostName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    /// What is wrong with it.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<HostName, &'static str> {
        // With a dot behind it, a name is looked up as it is, without the domains of resolv.conf.
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.len() > NAME_MAX {
            return Err("it is longer than 253 characters");
        }
        for label in name.split('.') {
            if label.is_empty() || label.len() > LABEL_MAX {
                return Err("between its dots it has no characters, or more than 63");
            }
            if !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                return Err("it has other characters than letters, digits, hyphens and dots");
            }
            if label.starts_with('-') || label.ends_with('-') {
                return Err("a part of it begins or ends with a hyphen");
            }
        }
        // Otherwise half an address would be a name, and some resolvers would complete it (RFC 1123 2.1).
        let last = name.rsplit('.').next().unwrap_or_default();
        if last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("its last part has digits alone");
        }
        // It would be shown, and asked of name servers.
        if name.len() >= mask::RUN && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("it has hex digits alone, as a key has");
        }
        Ok(HostName(text.to_ascii_lowercase().into()))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// By what a file names a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// An outer address.
    Address(IpAddr),
    /// A name, of which the resolver knows the address.
    Name(HostName),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Address(address) => address.fmt(f),
            Peer::Name(name) => name.fmt(f),
        }
    }
}

/// Why an address cannot be that of a peer, nor of this side: no host sends from it.
///
/// ```
/// use forebay_sas::no_peer;
///
/// assert_eq!(no_peer(&"192.0.2.1".parse()?), None);
/// assert_eq!(no_peer(&"224.0.0.1".parse()?), Some("a multicast address"));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn no_peer(address: &IpAddr) -> Option<&'static str> {
    match address {
        _ if address.is_unspecified() => Some("no address"),
        _ if address.is_multicast() => Some("a multicast address"),
        IpAddr::V4(v4) if v4.is_broadcast() => Some("the broadcast address"),
        IpAddr::V4(v4) if v4.octets()[0] == 0 => {
            Some("an address of this host on its own network (RFC 1122 3.2.1.3)")
        }
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Some("an IPv4 address in the notation of IPv6, which no packet carries (RFC 4291 2.5.5.2)")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_rfc_1123() {
        let longest = format!("{}.a", "a".repeat(63));
        for name in [
            "peer.example",
            "3com.example",
            "a-b.c",
            "vpn",
            "peer.example.",
            "xn--bcher-kva.example",
            &longest,
        ] {
            assert_eq!(name.parse::<HostName>().unwrap().as_str(), name);
        }
        // A key in the wrong place.
        for key in ["5a".repeat(20), "0f".repeat(8)] {
            assert!(key.parse::<HostName>().unwrap_err().contains("hex digits"));
        }
        let too_long = vec!["a".repeat(63); 4].join(".");
        let label = "a".repeat(64);
        for wrong in [
            "",
            ".",
            "a..b",
            ".a",
            "-a.b",
            "a-.b",
            "a_b.c",
            "a b",
            "192.0.2.300",
            "192.0.2",
            "10",
            "2001:db8::g",
            "büro.example",
            "a.b:4500",
            "10.1.0.0/16",
            &too_long,
            &label,
        ] {
            assert!(wrong.parse::<HostName>().is_err(), "{wrong}");
        }
        assert_eq!("Peer.EXAMPLE".parse::<HostName>(), "peer.example".parse());
    }
}
