//! `[offloads]`: the offloads of the host's interfaces that the gateway switches on.

use forebay_scenario::Table;

use super::links::check_distinct;
use super::operation::Name;
use super::reader::{Context, Reader, tables};
use super::{Config, InsideLink, OutsideLink};

/// Offloads of the interfaces of the host by which UDP packets reach the gateway and leave it in batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// Whether the gateway leaves them as they are.
    pub keeps: bool,
    /// The interfaces to the inside; `None`: those by which the host reaches the local networks of what is protected.
    pub inside: Option<Vec<String>>,
}

pub(super) fn read(top: &Table, context: &Context<'_>) -> Option<Offloads> {
    let none = Table::default();
    let (table, place) =
        tables(top, "offloads", context).into_iter().next().unwrap_or((&none, super::whole()));
    let section = Reader::new("offloads", table, place, context).checked();
    let keeps = section.word("mode").map(|word| word == "keep");
    let inside = match section.has("inside") {
        true => {
            let names = section.each_parsed::<Name>("inside", "expected names of interfaces: \"lan\"")?;
            let names: Vec<_> = names.into_iter().map(|Name(name)| name).collect();
            check_distinct("inside", &names, &section);
            Some(names)
        }
        false => None,
    };
    Some(Offloads { keeps: keeps?, inside })
}

/// Refuses interfaces to an inside that takes no batches from them.
pub(super) fn check(config: &Config, report: impl FnOnce(String, String, (&str, &str))) {
    if config.offloads.inside.is_some() && !config.offloads_inside() && !config.offloads.keeps {
        report(
            "`inside` of `[offloads]` has no effect: the inside link takes no batches of UDP packets from the kernel".to_owned(),
            "remove it, or use a TUN interface with `offload = true` in `[inside]`".to_owned(),
            ("offloads", "inside"),
        );
    }
}

impl Config {
    /// Whether UDP packets are to arrive in batches from the interfaces to the inside, and to leave so by them.
    pub fn offloads_inside(&self) -> bool {
        let takes_batches = matches!(&self.inside.link, InsideLink::Tun(tun) if tun.offload);
        takes_batches && !self.offloads.keeps
    }

    /// Whether UDP packets leave in batches by the interfaces to peers.
    pub fn offloads_outside(&self) -> bool {
        let sends_batches =
            |link: &OutsideLink| matches!(link, OutsideLink::Udp(udp) if udp.gso && !udp.beside_ike);
        self.outside.iter().any(|one| sends_batches(&one.link)) && !self.offloads.keeps
    }
}
