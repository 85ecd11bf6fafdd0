//! Peers that a configuration gives by host name. This module resolves nothing: the caller resolves the names, and gets a copy
//! of the configuration with their addresses.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;

use forebay_crypto::Direction;
use forebay_ipsec::Spi;
use forebay_sas::{HostName, SaEntry, mask};

use super::reader::Context;
use super::{Config, guard, place_of_sa};
use forebay_diagnostics::Problem;

/// Most host names in a file: they are resolved one after the other.
const NAMES_MAX: usize = 256;

/// A host name of a peer, for one IP version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerName {
    /// The name.
    pub name: HostName,
    /// Whether SAs with it are of IPv6.
    pub v6: bool,
    /// Its address, if one is known.
    pub address: Option<IpAddr>,
    /// Names of its SAs that are left out: for lack of an address of the IP version, or because another outbound SA to that address has
    /// the SPI.
    pub left_out: Vec<String>,
}

/// The name of an SA's peer, if it has one, and whether its address is to be of IPv6.
fn name_of(entry: &SaEntry) -> Option<(HostName, bool)> {
    Some((entry.remote_name.clone()?, entry.config.local.is_ipv6()))
}

impl Config {
    /// The host names of peers in the file, each with whether an address of IPv6 is wanted.
    pub fn names_wanted(&self) -> BTreeSet<(HostName, bool)> {
        self.sas.entries.iter().filter_map(name_of).collect()
    }

    /// A copy in which peers with names have the addresses that `address_of` says. SAs without one are left out; what they protect
    /// is guarded and discarded all the same, and no other SA takes their packets.
    #[must_use]
    pub fn with_addresses(&self, address_of: &dyn Fn(&HostName, bool) -> Option<IpAddr>) -> Config {
        let mut config = self.copy();
        let seals = |entry: &SaEntry| entry.direction == Direction::Seal;
        let named = |entry: &SaEntry| entry.remote_name.is_some();
        let place = |entry: &SaEntry| (entry.config.remote, entry.config.spi);
        // Two names may turn out to be one peer.
        let literal = config.sas.entries.iter().filter(|entry| seals(entry) && !named(entry));
        let mut taken: HashSet<(IpAddr, Spi)> = literal.map(place).collect();
        for entry in &mut config.sas.entries {
            let Some((name, v6)) = name_of(entry) else { continue };
            let Some(address) = address_of(&name, v6).filter(|address| address.is_ipv6() == v6) else {
                continue;
            };
            if !seals(entry) || taken.insert((address, entry.config.spi)) {
                entry.config.remote = address;
            }
        }
        let file = &config.sas;
        let has_address = |entry: &SaEntry| !entry.config.remote.is_unspecified();
        let outer = |entry: &&SaEntry| file.entries.get(entry.outer?);
        // What is to go through another SA does not go without it.
        let nest = |entry| std::iter::successors(Some(entry), outer).take(file.entries.len());
        let keeps: Vec<bool> = file.entries.iter().map(|entry| nest(entry).all(has_address)).collect();
        let left_out =
            || file.entries.iter().zip(&keeps).filter(|(_, keeps)| !**keeps).map(|(entry, _)| entry);
        let told = |(name, v6): (HostName, bool)| PeerName {
            address: address_of(&name, v6),
            left_out: left_out()
                .filter(|entry| name_of(entry).is_some_and(|of| (&of.0, of.1) == (&name, v6)))
                .map(|entry| entry.config.name.clone())
                .collect(),
            name,
            v6,
        };
        config.names = self.names_wanted().into_iter().map(told).collect();
        config.whole = Some((guard::entries(file), self.discarded()));
        if keeps.contains(&false) {
            // Where SAs are policies too, one that is wider would take the packets of one that is left out.
            let all = config.sas.with(&vec![true; keeps.len()]).spelled_out();
            config.sas = all.with(&keeps);
        }
        config
    }
}

/// Refuses names where they cannot be, and notes whom they trust.
pub(super) fn check(config: &Config, text: &str, context: &Context<'_>) {
    let mut named = config.sas.entries.iter().filter(|entry| entry.remote_name.is_some());
    let Some((first, name)) = named.next().and_then(|first| Some((first, first.remote_name.as_ref()?)))
    else {
        return;
    };
    let place = place_of_sa(config, text, first);
    let sa = mask::shown(&first.config.name);
    let refuse = |message: String, help: &str| {
        let problem = Problem::Conflict { message, help: help.to_owned() };
        context.findings.borrow_mut().add(problem, place.clone());
    };
    let of_several = [("pair", config.pair.is_some()), ("cluster", config.cluster.is_some())];
    if let Some((what, _)) = of_several.into_iter().find(|(_, is_there)| *is_there) {
        let message = format!("`remote` of SA `{sa}` is the host name `{name}`, in the file of a {what}");
        let help = "write the peer's address: each gateway would resolve the name separately, and they could send to different hosts";
        return refuse(message, help);
    }
    let names: BTreeSet<_> = config.names_wanted().into_iter().map(|(name, _)| name).collect();
    if names.len() > NAMES_MAX {
        let message = format!("{} host names of peers exceed the limit of {NAMES_MAX}", names.len());
        return refuse(message, "write addresses for peers whose addresses do not change");
    }
    let others = match named.count() {
        0 => String::new(),
        1 => " (as that of 1 other SA)".to_owned(),
        more => format!(" (as those of {more} other SAs)"),
    };
    let message = format!(
        "`remote` of SA `{sa}` is the host name `{name}`{others}: whoever answers the DNS query decides where the packets go. \
         They stay encrypted and authenticated, but may be kept from the peer, and be counted and timed by others"
    );
    let help = "write the address where it does not change, or resolve names on a way that you trust \
                (docs/gateway.md#peers-by-host-name)";
    context.advise(message, help, &place);
}
