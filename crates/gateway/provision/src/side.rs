//! One side of a tunnel.

use std::net::IpAddr;
use std::str::FromStr;

use forebay_sas::Peer;
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
            Ok(outer) if outer.is_unspecified() || outer.is_multicast() || outer.is_loopback() => {
                let reason = format!("{outer} is no address at which a peer reaches a gateway");
                return Err(wrong(reason, "give the address of the gateway's interface to the peer"));
            }
            Ok(outer) => Peer::Address(outer),
            Err(_) => Peer::Name(outer.parse().map_err(|reason| {
                let reason = format!("`{outer}` is no IP address, and no host name: {reason}");
                wrong(reason, "give the address or the host name of the gateway")
            })?),
        };
        if networks.is_empty() {
            return Err(wrong("no network behind it".to_owned(), FORM));
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

/// A network in front of which nothing is left of the host's bits.
fn network(word: &str, wrong: &dyn Fn(String, &str) -> ProvisionError) -> Result<IpNet, ProvisionError> {
    let single = word.parse::<IpAddr>().map(IpNet::from);
    let network: IpNet = word.parse().or(single).map_err(|_| {
        wrong(format!("`{word}` is no network"), "write networks as 10.1.0.0/16 or 2001:db8:1::/48")
    })?;
    if network.trunc() != network {
        return Err(wrong(format!("{network}: host bits are set"), &format!("write {}", network.trunc())));
    }
    if network.prefix_len() == 0 {
        let hint = "name the networks; to send everything through a tunnel, edit the files (docs/gateway.md)";
        return Err(wrong(format!("{network} is every address, also the peer's"), hint));
    }
    Ok(network)
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
        let side: Side = "west=192.0.2.1, 10.1.0.0/16,2001:db8:1::/48,10.9.0.1".parse().unwrap();
        assert_eq!((side.name.as_str(), side.outer), ("west", Peer::Address([192, 0, 2, 1].into())));
        let networks: Vec<String> = side.networks.iter().map(ToString::to_string).collect();
        assert_eq!(networks, ["10.1.0.0/16", "2001:db8:1::/48", "10.9.0.1/32"]);
    }

    #[test]
    fn broken_sides_are_refused_with_what_would_be_right() {
        for (text, reason, hint) in [
            ("west", "no `=`", "write NAME="),
            ("West=192.0.2.1,10.1.0.0/16", "lower-case", "write NAME="),
            ("../x=192.0.2.1,10.1.0.0/16", "lower-case", "write NAME="),
            ("-x=192.0.2.1,10.1.0.0/16", "lower-case", "write NAME="),
            ("west=gw_1.example.org,10.1.0.0/16", "no IP address, and no host name", "the host name"),
            ("west=192.0.2.300,10.1.0.0/16", "no IP address, and no host name", "the host name"),
            ("west=0.0.0.0,10.1.0.0/16", "no address at which", "interface"),
            ("west=192.0.2.1", "no network", "write NAME="),
            ("west=192.0.2.1,10.1.0.1/16", "host bits", "write 10.1.0.0/16"),
            ("west=192.0.2.1,ten", "no network", "10.1.0.0/16"),
            ("west=192.0.2.1,0.0.0.0/0", "every address", "gateway.md"),
        ] {
            let error = text.parse::<Side>().unwrap_err();
            assert!(error.to_string().contains(reason), "{text}: {error}");
            assert!(error.hint().contains(hint), "{text}: {}", error.hint());
        }
    }
}
