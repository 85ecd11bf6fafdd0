//! Sections that want the same port or the same network card: the gateway would not start, or serve one of them only.

use std::net::SocketAddr;

use super::{Config, InsideLink, Listen, OutsideLink};

/// Reports such sections.
pub(super) fn check(config: &Config, report: impl Fn(String, String, (&'static str, &'static str))) {
    // Only gateway 0 of a pair listens.
    let pair = config.pair.iter().filter(|pair| pair.number == 0).flat_map(|pair| &pair.listen);
    let metrics = config.metrics.as_ref().map(|metrics| ("metrics", metrics.listen));
    let page = config.page.as_ref().and_then(|page| match page.listen {
        Listen::Tcp(at) => Some(("page", at)),
        Listen::Unix(_) => None,
    });
    let servers: Vec<_> = pair.map(|at| ("pair", *at)).chain(metrics).chain(page).collect();
    for (place, (section, at)) in servers.iter().enumerate() {
        let others = servers[..place].iter().filter(|(other, _)| other != section);
        if let Some((other, there)) = others.into_iter().find(|(_, there)| is_same(at, there)) {
            let message = format!("`listen` of [{section}] is {at}, where [{other}] listens: {there}");
            report(message, "give it a port of its own".to_owned(), (section, "listen"));
        }
    }
    let inside = match &config.inside.link {
        InsideLink::Xdp { card, .. } => Some(("[inside]".to_owned(), "inside", &card.interface)),
        _ => None,
    };
    let outside = config.outside.iter().filter_map(|one| match &one.link {
        OutsideLink::Xdp { card, .. } => Some((format!("the link {}", one.name), "outside", &card.interface)),
        _ => None,
    });
    let mut cards: Vec<(String, &String)> = vec![];
    for (what, section, card) in inside.into_iter().chain(outside) {
        if let Some((other, _)) = cards.iter().find(|(_, known)| *known == card) {
            let message = format!("{other} and {what} both have the network card `{card}` by AF_XDP");
            let help = "give each a card of its own, or take a link over sockets for one of them";
            report(message, help.to_owned(), (section, "interface"));
        }
        cards.push((what, card));
    }
}

/// Whether two sockets cannot have both. One for all of IPv6 has IPv4, too.
fn is_same(one: &SocketAddr, other: &SocketAddr) -> bool {
    let has =
        |wide: &SocketAddr, at: &SocketAddr| wide.ip().is_unspecified() && (wide.is_ipv6() || at.is_ipv4());
    one.port() == other.port()
        && one.port() != 0
        && (one.ip() == other.ip() || has(one, other) || has(other, one))
}
