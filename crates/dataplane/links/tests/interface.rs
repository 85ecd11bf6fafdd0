//! What is asked of the kernel about interfaces, beside what `ip` says.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods)] // the test's namespaces are waited for

#[path = "support/namespace.rs"]
mod namespace;

use forebay_links::interface::{Interface, NextHop, RouteLookup, give_route_back};
use namespace::cable;

#[test]
fn links_routes_and_neighbours_are_what_they_were_made() {
    let Some([a, _b]) = cable(1432) else { return };
    a.ip("route add 192.0.2.0/24 via 10.8.0.2");
    a.ip("route add 198.51.100.0/24 via inet6 fd08::2");
    a.ip("route add 2001:db8::/32 via fd08::2");
    a.run(|| {
        let cable = Interface::by_name("cable").unwrap();
        assert_eq!(cable.mtu().unwrap(), 1432);
        assert_eq!(cable.ethernet_address().unwrap(), [2, 0, 0, 0, 0, 1]);
        cable.set_mtu(1400).unwrap();
        assert_eq!(cable.mtu().unwrap(), 1400);
        let ways = RouteLookup::open().unwrap();
        let hop = |to: &str| ways.next_hop(to.parse().unwrap());
        let on_cable = |hop: &str| NextHop { index: cable.index(), address: hop.parse().unwrap() };
        assert_eq!(hop("10.8.0.2").unwrap(), on_cable("10.8.0.2"));
        assert_eq!(hop("192.0.2.9").unwrap(), on_cable("10.8.0.2"));
        assert_eq!(hop("198.51.100.9").unwrap(), on_cable("fd08::2"));
        assert_eq!(hop("fd08::7").unwrap(), on_cable("fd08::7"));
        assert_eq!(hop("2001:db8::1").unwrap(), on_cable("fd08::2"));
        assert!(hop("203.0.113.1").is_err(), "no route");
        assert_eq!(ways.neighbour(&on_cable("10.8.0.2")).unwrap(), Some([2, 0, 0, 0, 0, 2]));
        assert_eq!(ways.neighbour(&on_cable("fd08::2")).unwrap(), Some([2, 0, 0, 0, 0, 2]));
        assert!(ways.neighbour(&on_cable("10.8.0.3")).is_err(), "never heard of");
        ways.resolve(&on_cable("10.8.0.3")).unwrap();
        assert_eq!(ways.neighbour(&on_cable("10.8.0.3")).unwrap(), None, "asked for");
        let by_hand = [
            "neigh",
            "replace",
            "10.8.0.4",
            "lladdr",
            "02:00:00:00:00:04",
            "dev",
            "cable",
            "nud",
            "permanent",
        ];
        assert!(std::process::Command::new("ip").args(by_hand).status().unwrap().success());
        ways.resolve(&on_cable("10.8.0.4")).unwrap();
        assert_eq!(ways.neighbour(&on_cable("10.8.0.4")).unwrap(), Some([2, 0, 0, 0, 0, 4]), "set by hand");
        assert!(Interface::by_name("nothing").is_err());
        cable.add_address("10.8.1.1".parse().unwrap(), 24).unwrap();
        cable.add_address("fd18::1".parse().unwrap(), 64).unwrap();
        assert!(hop("10.8.1.9").is_err() && hop("fd18::9").is_err(), "an address is no way to a network");
        assert_eq!(hop("10.8.1.1").unwrap().address, "10.8.1.1".parse::<std::net::IpAddr>().unwrap());
        let own = ways.addresses().unwrap();
        for address in ["10.8.0.1", "10.8.1.1", "fd08::1", "fd18::1"] {
            let found =
                own.iter().find(|one| one.address == address.parse::<std::net::IpAddr>().unwrap()).unwrap();
            assert!(found.index == cable.index() && found.is_first, "{found:?}");
        }
        cable.lend_address("10.8.9.1".parse().unwrap(), false).unwrap();
        let again = cable.lend_address("10.8.9.1".parse().unwrap(), true).unwrap_err();
        assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
        let listed =
            std::process::Command::new("ip").args(["address", "show", "dev", "cable"]).output().unwrap();
        assert!(String::from_utf8_lossy(&listed.stdout).contains("10.8.9.1/32 scope host"), "{listed:?}");
        let gone = cable.clone();
        std::process::Command::new("ip").args(["link", "del", "cable"]).status().unwrap();
        assert!(gone.mtu().is_err());
        assert!(gone.set_up(true).is_err());
    });
}

/// The kernel takes what comes in from an address of its own, and is no longer strict about the way back.
#[test]
fn own_sources_are_accepted_once() {
    let Some([a, _b]) = cable(1500) else { return };
    let own = |setting: &str| {
        let words = ["-n", &format!("net.ipv4.conf.cable.{setting}")].map(str::to_owned);
        let said = std::process::Command::new("sysctl").args(words).output().unwrap();
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    };
    a.run(move || {
        let set = |setting: &str| {
            assert!(std::process::Command::new("sysctl").args(["-qw", setting]).status().unwrap().success());
        };
        let cable = Interface::by_name("cable").unwrap();
        set("net.ipv4.conf.all.rp_filter=0");
        set("net.ipv4.conf.cable.rp_filter=0");
        assert!(cable.accept_own_sources().unwrap());
        assert_eq!((own("accept_local"), own("rp_filter")), ("1".to_owned(), "0".to_owned()));
        assert!(!cable.accept_own_sources().unwrap(), "nothing to do");
        set("net.ipv4.conf.all.rp_filter=1");
        assert!(cable.accept_own_sources().unwrap(), "the stricter one counts");
        assert_eq!((own("accept_local"), own("rp_filter")), ("1".to_owned(), "2".to_owned()));
        assert!(!cable.accept_own_sources().unwrap());
    });
}

#[test]
fn a_route_whose_place_another_takes_is_found_and_comes_back() {
    let Some([a, _b]) = cable(1432) else { return };
    a.ip("route add 192.0.2.0/24 via 10.8.0.2");
    a.ip("route add 198.51.100.0/24 via 10.8.0.2 metric 50");
    a.ip("route add 2001:db8::/32 via fd08::2");
    a.ip("link add tunnel type veth peer name inner");
    a.ip("link set inner up");
    a.ip("link set tunnel up");
    a.run(|| {
        let tunnel = Interface::by_name("tunnel").unwrap();
        let cable = Interface::by_name("cable").unwrap();
        let found = |network: &str, prefix| tunnel.replaces(network.parse().unwrap(), prefix).unwrap();
        assert_eq!(found("192.0.2.0", 25), None, "of another length");
        assert_eq!(found("198.51.100.0", 24), None, "of another metric");
        assert_eq!(found("203.0.113.0", 24), None, "no route");
        assert_eq!(cable.replaces("192.0.2.0".parse().unwrap(), 24).unwrap(), None, "its own");
        let ways = RouteLookup::open().unwrap();
        let way = |to: &str| ways.next_hop(to.parse().unwrap()).map(|hop| hop.index);
        let replaced = [("192.0.2.0", 24, "10.8.0.2"), ("2001:db8::", 32, "fd08::2")];
        let kept = replaced.map(|(network, prefix, router)| {
            let route = found(network, prefix).unwrap();
            assert_eq!(route.gateway(), Some(router.parse().unwrap()));
            tunnel.add_route(network.parse().unwrap(), prefix).unwrap();
            assert_eq!(way(network).unwrap(), tunnel.index());
            route
        });
        std::process::Command::new("ip").args(["link", "del", "tunnel"]).status().unwrap();
        assert!(way("192.0.2.0").is_err());
        kept.iter().for_each(|route| give_route_back(route).unwrap());
        for (network, ..) in replaced {
            assert_eq!(way(network).unwrap(), cable.index());
        }
        assert!(give_route_back(&kept[0]).is_err(), "it is there");
    });
}
