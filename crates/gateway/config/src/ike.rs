//! IKE daemons to which links forward messages.

use std::net::{IpAddr, SocketAddr};

use super::{Config, InsideLink, Outside, OutsideLink};

/// Reports an IKE daemon at whose address a link of the gateway itself listens: each message would come back to be forwarded again,
/// without end.
pub(super) fn check(config: &Config, report: impl Fn(String, String, (&'static str, &'static str))) {
    let udp = |one: &Outside| match &one.link {
        OutsideLink::Udp(udp) => Some((one.name.clone(), udp.clone())),
        _ => None,
    };
    let links: Vec<_> = config.outside.iter().filter_map(udp).collect();
    let is_own = |ip: IpAddr| {
        ip.is_loopback()
            || ip.is_unspecified()
            || config.sas.entries.iter().any(|entry| entry.config.local == ip)
            || config.shared_addresses().any(|shared| shared.address.addr() == ip)
            || matches!(&config.inside.link, InsideLink::Tun(tun) if tun.addresses.iter().any(|own| own.addr() == ip))
    };
    let takes = |listen: &SocketAddr, daemon: SocketAddr| {
        let is_wide = listen.ip().is_unspecified() && listen.is_ipv4() == daemon.is_ipv4();
        listen.port() == daemon.port()
            && (listen.ip() == daemon.ip()
                || is_wide && is_own(daemon.ip())
                || daemon.ip().is_unspecified()
                    && listen.ip().is_loopback()
                    && listen.is_ipv4() == daemon.is_ipv4())
    };
    for (name, daemon) in links.iter().filter_map(|(name, udp)| Some((name, udp.ike_forward?))) {
        let own = links.iter().find(|(_, udp)| udp.listen.iter().any(|listen| takes(listen, daemon)));
        if let Some((other, _)) = own {
            let whose = if other == name { "this same link".to_owned() } else { format!("the link {other}") };
            let message =
                format!("IKE messages of {name} would be forwarded to {daemon}, where {whose} listens");
            report(
                message,
                "give the address and port of the IKE daemon".to_owned(),
                ("outside", "ike_forward"),
            );
        }
    }
}
