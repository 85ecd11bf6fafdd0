//! Routes to the protected networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use forebay_crypto::Direction;
use forebay_ipsec::{Action, TrafficSelector};
use forebay_scenario::Table;
use ipnet::{IpNet, IpSubnets, Ipv4Net, Ipv4Subnets, Ipv6Net, Ipv6Subnets};

use super::reader::Context;
use super::{Config, InsideLink, OutsideLink, Routes, Tun};
use forebay_sas::{SaEntry, SasFile};

impl Config {
    /// The routes to the interface, or what is taken from a card: those that are given, or those to what SAs
    /// and policies of the file protect, each once, in order. Keys from the kernel bring theirs later
    /// ([`prefixes`]).
    pub fn routes(&self) -> Vec<IpNet> {
        let routes = match &self.inside.link {
            InsideLink::Tun(Tun { routes, .. }) | InsideLink::Xdp { routes, .. } => routes,
            // All that hosts send to it is the gateway's.
            InsideLink::Dpdk(_) => &Routes::Auto,
        };
        match routes {
            Routes::These(routes) => routes.clone(),
            Routes::Auto => protected(&self.sas),
        }
    }
}

impl Config {
    /// The networks that are discarded where there is no route to the interface: all that the file protects, also where its SAs
    /// are another gateway's.
    pub fn discarded(&self) -> Vec<IpNet> {
        match &self.whole {
            Some((_, networks)) => networks.clone(),
            None => self.routes(),
        }
    }
}

/// The remote networks of what is protected outbound.
fn protected(file: &SasFile) -> Vec<IpNet> {
    let outbound = |direction| direction == Direction::Seal;
    let mut policies = file.policies.iter().map(|entry| &entry.policy);
    let mut routes = Vec::new();
    if policies.clone().any(|policy| outbound(policy.direction)) {
        for policy in policies.by_ref().filter(|policy| outbound(policy.direction)) {
            let Action::Protect(sas) = &policy.action else { continue };
            if !policy.remote_ts.is_empty() {
                routes.extend(prefixes(&policy.remote_ts));
                continue;
            }
            let entries = sas.iter().filter_map(|session| file.entries.get(session.0 as usize));
            entries.for_each(|entry| routes.extend(prefixes(&entry.config.remote_ts)));
        }
    } else {
        // What goes around another SA has that one's packets.
        let is_outer = |place: usize| file.entries.iter().any(|entry| entry.outer == Some(place));
        for (place, entry) in file.entries.iter().enumerate() {
            if outbound(entry.direction) && !is_outer(place) {
                routes.extend(prefixes(&entry.config.remote_ts));
            }
        }
    }
    routes.sort();
    routes.dedup();
    routes
}

/// The fewest prefixes that hold the addresses of each selector; no selector, or one for any address, is all of
/// both IP versions.
pub fn prefixes(selectors: &[TrafficSelector]) -> Vec<IpNet> {
    let all = || {
        let v4 = Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0);
        let v6 = Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0);
        vec![IpNet::V4(v4), IpNet::V6(v6)]
    };
    if selectors.is_empty() {
        return all();
    }
    let of_one = |selector: &TrafficSelector| match selector.addresses() {
        None => all(),
        Some((first, last)) => subnets(first, last).map_or_else(Vec::new, Iterator::collect),
    };
    selectors.iter().flat_map(of_one).collect()
}

fn subnets(first: IpAddr, last: IpAddr) -> Option<IpSubnets> {
    use std::net::IpAddr::{V4, V6};
    match (first, last) {
        (V4(first), V4(last)) => Some(Ipv4Subnets::new(first, last, 0).into()),
        (V6(first), V6(last)) => Some(Ipv6Subnets::new(first, last, 0).into()),
        _ => None,
    }
}

/// Notes what will not be routed as the file seems to mean.
pub(super) fn check(config: &Config, top: &Table, context: &Context<'_>) {
    check_addresses(config, top, context);
    check_peers(config, context);
}

/// Notes addresses of the TUN interface whose networks lie behind another interface: with such a prefix someone takes the TUN
/// interface for the way to the protected hosts.
fn check_addresses(config: &Config, top: &Table, context: &Context<'_>) {
    let InsideLink::Tun(tun) = &config.inside.link else { return };
    let of_sas = config.sas.entries.iter().flat_map(|entry| &entry.config.local_ts);
    let of_policies = config.sas.policies.iter().flat_map(|entry| &entry.policy.local_ts);
    let own: Vec<_> = of_sas.chain(of_policies).filter_map(TrafficSelector::addresses).collect();
    let place = super::place_of_key(top, "inside", "addresses").unwrap_or_else(super::whole);
    for address in tun.addresses.iter().filter(|one| one.prefix_len() < one.max_prefix_len()) {
        let overlaps = |&&(first, last): &&(IpAddr, IpAddr)| {
            first.is_ipv4() == address.addr().is_ipv4()
                && address.network() <= last
                && first <= address.broadcast()
        };
        let Some((first, last)) = own.iter().find(overlaps) else { continue };
        let (is_of, length) = (address.addr(), address.max_prefix_len());
        let message =
            format!("the network {} of `addresses` overlaps `local_ts`, {first} to {last}", address.trunc());
        let help = format!(
            "write \"{is_of}/{length}\": the protected hosts are reached by another interface, and the TUN interface has no route to them"
        );
        context.advise(message, &help, &place);
    }
}

/// Notes routes that would take the gateway's own packets to a peer, which then never leave.
fn check_peers(config: &Config, context: &Context<'_>) {
    let has_mark = |link: &OutsideLink| match link {
        OutsideLink::Udp(udp) => udp.mark.is_some(),
        OutsideLink::Raw(raw) => raw.mark.is_some(),
        OutsideLink::Xdp { .. } | OutsideLink::Dpdk { .. } => true,
    };
    // Packets that the gateway sends do not return to it from a card.
    let is_card = !matches!(config.inside.link, InsideLink::Tun(_));
    if is_card || config.outside.iter().all(|outside| has_mark(&outside.link)) {
        return;
    }
    let routes = config.routes();
    // Nothing is known of the address of a peer with a name, but a route to all addresses has it.
    let peer = |entry: &SaEntry| (entry.config.remote, entry.remote_name.clone());
    let mut peers: Vec<_> = config.sas.entries.iter().map(peer).collect();
    peers.sort();
    peers.dedup();
    for (address, name) in peers {
        let captures =
            |route: &&IpNet| route.contains(&address) && (name.is_none() || route.prefix_len() == 0);
        if let Some(route) = routes.iter().find(captures) {
            let peer = name.map_or_else(|| address.to_string(), |name| name.to_string());
            let message = format!("the route to {route} also captures packets to the peer {peer}");
            let help = "protected packets would enter the tunnel again: add a route to the peer, or set `mark` of the links and add a \
                        routing rule for it";
            context.advise(message, help, &super::whole());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_the_fewest_prefixes() {
        let selectors = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        let shown = |texts: &[&str]| {
            prefixes(&selectors(texts)).iter().map(IpNet::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(&["10.1.0.0/16[tcp/80]"]), "10.1.0.0/16");
        assert_eq!(shown(&["10.1.0.5-10.1.0.9"]), "10.1.0.5/32 10.1.0.6/31 10.1.0.8/31");
        assert_eq!(shown(&["2001:db8::/48", "10.0.0.1"]), "2001:db8::/48 10.0.0.1/32");
        assert_eq!(shown(&[]), "0.0.0.0/0 ::/0");
        assert_eq!(shown(&["any"]), "0.0.0.0/0 ::/0");
    }
}
