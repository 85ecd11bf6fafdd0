//! The links of a file, opened: a port of each for every worker.

use std::net::IpAddr;

use forebay_engine::Clock;
use forebay_ipsec::Protocol;
use forebay_links::interface::Interface;
use forebay_time::Duration;
use forebay_wire::protocol;

use super::family::{lacks_kernel, warn_of_absent};
use super::host::{CardSide, Host, Queues};
use super::start_error::{StartError, lacking};
use forebay_config::{Config, InsideLink, MssClamp, OutsideLink};
use forebay_worker::{Outside, Port, PortOf};

/// Packets that wait for a link without room.
const QUEUE: usize = 4_096;

/// A port to programs for each worker.
pub(super) fn inside(host: &dyn Host, config: &Config, workers: usize) -> Result<Vec<PortOf>, StartError> {
    let (name, queues) = match &config.inside.link {
        InsideLink::Tun(tun) => (&tun.name, host.tun(tun, workers)?),
        InsideLink::Xdp { card, .. } => {
            if config.routes().is_empty() {
                return Err(lacking(
                    "[inside] kind = \"xdp\" requires `routes`, which select the gateway's packets",
                ));
            }
            (&card.interface, host.card(CardSide::Inside(config, card), workers)?)
        }
        InsideLink::Dpdk(device) => {
            (&device.device, host.network_device("[inside]", device, None, workers)?.0)
        }
    };
    let ports = queues.into_iter().map(|queue| Port::new(name, queue, QUEUE)).collect();
    Ok(for_workers(ports, workers))
}

/// The ports of a link's queues for so many workers: where there are fewer queues, several workers have one together.
fn for_workers(ports: Vec<Port>, workers: usize) -> Vec<PortOf> {
    let queues = ports.len();
    let lent = (queues..workers).map(|worker| PortOf::Worker(worker % queues));
    ports.into_iter().map(PortOf::Own).chain(lent).collect()
}

/// The links to peers.
pub(super) struct OutsideLinks {
    /// Those of each worker.
    pub links: Vec<Vec<Outside>>,
    /// How long one of those in UDP stays silent.
    pub keepalive: Option<Duration>,
    /// What receives ICMP errors that do not come by the kernel.
    pub icmp: Queues,
}

/// Opens the links to peers.
pub(super) fn outside(
    host: &dyn Host,
    config: &Config,
    workers: usize,
    clock: Clock,
) -> Result<OutsideLinks, StartError> {
    let mut links: Vec<Vec<Outside>> = (0..workers).map(|_| vec![]).collect();
    let mut keepalive = None;
    let mut icmp: Queues = vec![];
    for one in &config.outside {
        match &one.link {
            OutsideLink::Udp(udp) => {
                keepalive = keepalive.or(udp.keepalive);
                for (place, &local) in udp.listen.iter().enumerate() {
                    let opened = host.udp(&one.name, udp, local, workers, clock);
                    let Some(opened) = unless_absent(opened, local.ip(), &one.name)? else { continue };
                    let name = if place == 0 { one.name.clone() } else { format!("{}-ipv6", one.name) };
                    for (links, link) in links.iter_mut().zip(opened) {
                        let port = Port::new(&name, link, QUEUE).into();
                        links.push(Outside { port, protocols: vec![protocol::UDP], local: Some(local.ip()) });
                    }
                }
            }
            OutsideLink::Raw(raw) => {
                for &local in &raw.addresses {
                    for &what in &raw.protocols {
                        let opened = host.raw(&one.name, raw, local, what, workers);
                        let Some(opened) = unless_absent(opened, local, &one.name)? else { continue };
                        for (links, link) in links.iter_mut().zip(opened) {
                            let name = format!("{}-{}", one.name, number(what));
                            let port = Port::new(&name, link, QUEUE).into();
                            links.push(Outside { port, protocols: vec![number(what)], local: Some(local) });
                        }
                    }
                }
            }
            OutsideLink::Xdp { card, ports } => {
                let opened = host.card(CardSide::Outside(card, ports), workers)?;
                add_device(&mut links, &one.name, opened);
            }
            OutsideLink::Dpdk { device, ports } => {
                let (opened, errors) = host.network_device(&one.name, device, Some(ports), workers)?;
                icmp.extend(errors);
                add_device(&mut links, &one.name, opened);
            }
        }
    }
    if links.iter().any(Vec::is_empty) {
        return Err(lacking("no link to peers can be opened on this host: see the warnings"));
    }
    Ok(OutsideLinks { links, keepalive, icmp })
}

/// Adds the queues of a device that carries all of IPsec to the links of each worker.
fn add_device(links: &mut [Vec<Outside>], name: &str, queues: Queues) {
    let port = |(queue, link)| Port::new(&format!("{name}-{queue}"), link, QUEUE);
    let ports = queues.into_iter().enumerate().map(port).collect();
    for (port, links) in for_workers(ports, links.len()).into_iter().zip(links) {
        let protocols = vec![protocol::UDP, protocol::ESP, protocol::AH];
        links.push(Outside { port, protocols, local: None });
    }
}

/// What was opened at an address, or nothing where that is all addresses of an IP version that this host does not have: the
/// links of the other one work.
fn unless_absent(
    opened: Result<Queues, StartError>,
    local: IpAddr,
    name: &str,
) -> Result<Option<Queues>, StartError> {
    match opened {
        Err(StartError::Link { error, .. }) if local.is_unspecified() && lacks_kernel(&error, local) => {
            warn_of_absent(local, &format!("link {name}: peers with such addresses are not reached"));
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

/// The number of an IPsec protocol in IP headers.
fn number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Esp => protocol::ESP,
        Protocol::Ah => protocol::AH,
    }
}

/// The largest plain packet that MSS is lowered for, if that is wanted.
pub(super) fn mss_clamp(config: &Config) -> Option<u16> {
    match (config.inside.mss_clamp, &config.inside.link) {
        (MssClamp::Off, _) => None,
        (MssClamp::At(mss), _) => Some(mss.saturating_add(40)),
        (MssClamp::Auto, InsideLink::Tun(tun)) => Some(tun.mtu),
        (MssClamp::Auto, InsideLink::Dpdk(device)) => Some(device.mtu),
        (MssClamp::Auto, InsideLink::Xdp { card, .. }) => {
            let mtu = Interface::by_name(&card.interface).and_then(|interface| interface.mtu()).ok()?;
            Some(mtu.min(u32::from(u16::MAX)) as u16)
        }
    }
}

/// Number of receive queues of a network card; one if the system does not report it.
pub(super) fn receive_queues(interface: &str) -> usize {
    let queues = std::fs::read_dir(format!("/sys/class/net/{interface}/queues"));
    let is_receive = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with("rx-"));
    queues.map_or(0, |all| all.flatten().filter(|one| is_receive(&one.file_name())).count()).max(1)
}
