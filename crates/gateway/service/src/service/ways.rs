//! The interfaces through which decrypted packets may leave, according to the host's current routes and addresses.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use forebay_config::{Config, OutsideLink};
use forebay_guard::{Entry, Host, Plan, Ways};

use super::offloads::{Ends, Interfaces, Kernel};

/// Addresses that nobody has: the default route leads to them (RFC 1112 4, class E; RFC 3701, returned in 2006).
const NOBODY: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(240, 0, 0, 1)), IpAddr::V6(Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 1))];
/// Most networks of this side that routes are looked up for.
const LOOKED_UP: usize = 64;

/// What a file says of interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    local: Vec<String>,
    /// Firewall marks of what links send, and 0.
    marks: BTreeSet<u32>,
}

impl Named {
    pub(super) fn of(config: &Config) -> Named {
        let mark = |outside: &forebay_config::Outside| match &outside.link {
            OutsideLink::Udp(udp) => udp.mark,
            OutsideLink::Raw(raw) => raw.mark,
            OutsideLink::Xdp { .. } | OutsideLink::Dpdk { .. } => None,
        };
        let marks = config.outside.iter().filter_map(mark).chain([0]).collect();
        Named { local: config.guard.local_interfaces.clone(), marks }
    }

    /// The interfaces that opened packets may and may not go by, and the networks of this side that no other lead to now.
    pub(super) fn find(
        &self,
        host: &Host,
        entries: &[Entry],
        interfaces: &mut dyn Interfaces,
    ) -> (Ways, Vec<String>) {
        let mut outside = BTreeSet::new();
        for address in Ends::of(entries).peers().chain(NOBODY) {
            let ways = self.marks.iter().filter_map(|&mark| interfaces.towards(address, mark).ok().flatten());
            outside.extend(ways.filter(|name| !host.inside.contains(name) && !self.local.contains(name)));
        }
        let own = [false, true].map(|v6| Plan::own(entries, v6)).concat();
        let mut near = BTreeSet::new();
        let addresses = interfaces.addresses().unwrap_or_default();
        // Of others it says nothing, once one is known that leads outside.
        let matters =
            |name: &String| outside.contains(name) || outside.is_empty() && !host.inside.contains(name);
        for (name, address) in addresses.into_iter().filter(|(name, _)| matters(name)) {
            let networks = own.iter().filter(|(first, last)| (first..=last).contains(&&address));
            near.extend(networks.map(|network| (name.clone(), *network)));
        }
        let astray = own.iter().take(LOOKED_UP).filter_map(|network| {
            let (first, last) = *network;
            let ways: Vec<_> =
                [first, last].into_iter().filter_map(|one| interfaces.towards(one, 0).ok()).collect();
            let leads_out =
                |name: &String| outside.contains(name) && !near.contains(&(name.clone(), *network));
            // Routes may have a part of the network only, and one of the two may be the host's own address.
            let all = ways.iter().all(|way| way.as_ref().is_some_and(leads_out));
            let name = ways.into_iter().flatten().next().filter(|_| all)?;
            Some(format!("{first} to {last} by {name}"))
        });
        let astray = astray.collect();
        let (near, outside) = (near.into_iter().collect(), outside.into_iter().collect());
        (Ways { local: self.local.clone(), near, outside }, astray)
    }
}

/// The same on this machine for a gateway with this file and these policies, which may be the kernel's.
pub fn find_ways(config: &Config, entries: &[Entry]) -> (Ways, Vec<String>) {
    Named::of(config).find(&config.guard_host(), entries, &mut Kernel::default())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use forebay_links::features::Feature;

    use super::*;

    /// Routes, by the beginnings of addresses and marks, and addresses.
    struct Fake(&'static [(&'static str, u32, &'static str)], &'static [(&'static str, &'static str)]);

    impl Interfaces for Fake {
        fn towards(&mut self, address: IpAddr, mark: u32) -> io::Result<Option<String>> {
            let address = address.to_string();
            let found = self.0.iter().find(|(start, its, _)| address.starts_with(start) && *its == mark);
            found
                .map(|(.., name)| Some((*name).to_owned()))
                .ok_or_else(|| io::ErrorKind::NetworkUnreachable.into())
        }

        fn addresses(&mut self) -> io::Result<Vec<(String, IpAddr)>> {
            Ok(self.1.iter().map(|(name, address)| ((*name).to_owned(), address.parse().unwrap())).collect())
        }

        fn read(&mut self, _: &str, _: [&str; 2]) -> io::Result<[Option<Feature>; 2]> {
            Err(io::ErrorKind::NotFound.into())
        }

        fn switch(&mut self, _: &str, _: &str, _: bool) -> io::Result<bool> {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn found(guard: &str, link: &str, mut fake: Fake) -> (Ways, Vec<String>) {
        let text = format!(
            "[guard]\n{guard}\n[[outside]]\nkind = \"raw\"\n{link}\n[[sa]]\nname = \"a\"\ndirection = \"out\"\nspi = 0x1001\n\
             proposal = \"aes128gcm16\"\nkey = \"{}\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n\
             local_ts = [\"10.1.0.0/16\"]\nremote_ts = [\"10.2.0.0/16\"]\n",
            "5a".repeat(20)
        );
        let config = forebay_config::parse(&text, "g.toml", Path::new("")).unwrap();
        let ways = Named::of(&config);
        ways.find(&config.guard_host(), &config.guard_entries(), &mut fake)
    }

    #[test]
    fn the_ways_to_peers_and_by_default_lead_outside() {
        let routes = &[("10.1.", 0, "lan"), ("192.0.2.", 0, "wan"), ("", 0, "backup")];
        let (ways, astray) = found("", "", Fake(routes, &[("lan", "10.1.0.1"), ("wan", "192.0.2.1")]));
        assert_eq!(ways.outside, ["backup", "wan"]);
        assert_eq!((ways.near, astray), (vec![], vec![]));
        // Before any way outside is known.
        let network = ("10.1.0.0".parse().unwrap(), "10.1.255.255".parse().unwrap());
        let (ways, _) =
            found("", "", Fake(&[], &[("lan", "10.1.0.1"), ("wan", "192.0.2.1"), ("forebay0", "10.1.0.1")]));
        assert_eq!((ways.near, ways.outside.len()), (vec![("lan".to_owned(), network)], 0));
        // Without the LAN.
        let (_, astray) = found("", "", Fake(&routes[1..], &[("lan", "10.1.0.1")]));
        assert_eq!(astray, ["10.1.0.0 to 10.1.255.255 by backup"]);
        let (ways, astray) = found("local_interfaces = [\"backup\"]", "", Fake(&routes[1..], &[]));
        assert_eq!((ways.outside, astray.len()), (vec!["wan".to_owned()], 0));
        // One interface for all, with an address in the network.
        let (ways, astray) = found("", "", Fake(&[("", 0, "eth0")], &[("eth0", "10.1.0.5")]));
        assert_eq!((ways.outside, ways.near.len(), astray.len()), (vec!["eth0".to_owned()], 1, 0));
    }

    #[test]
    fn links_with_a_mark_have_ways_of_their_own() {
        let routes = &[("", 0, "forebay0"), ("", 7, "wan")];
        assert_eq!(found("", "mark = 7", Fake(routes, &[])).0.outside, ["wan"]);
        assert!(found("", "", Fake(routes, &[])).0.outside.is_empty(), "the gateway's own interface");
    }
}
