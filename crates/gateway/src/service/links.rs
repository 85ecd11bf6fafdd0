//! The links of a file, opened: a port of each for every worker.

use std::io;

use forebay_engine::Clock;
use forebay_ipsec::Protocol;
use forebay_links::Link;
use forebay_links::beside::{self, BesideOptions};
use forebay_links::interface::Interface;
use forebay_links::raw::{self, Carries, RawOptions};
use forebay_links::tun::{self, TunOptions};
use forebay_links::udp::{self, UdpOptions};
use forebay_links_xdp::{Mode, Network, Take, XdpLink, XdpOptions};
use forebay_time::Duration;
use forebay_wire::{Family, protocol};
use ipnet::IpNet;

use super::ike_forward::IkeForward;
use super::port::Port;
use super::start::{StartError, lacking, link_error};
use super::worker::Protected;
use crate::config;
use crate::config::{Config, MssClamp, PlainLink, ProtectedLink, Xdp, XdpMode};

/// Packets that wait for a link without room.
const QUEUE: usize = 4_096;

/// A port to programs for each worker.
pub(super) fn plain(config: &Config, workers: usize) -> Result<Vec<Port>, StartError> {
    match &config.plain.link {
        PlainLink::Tun(tun) => {
            let options = TunOptions { name: tun.name.clone(), queues: workers, offloads: tun.offload };
            let name = &tun.name;
            let (interface, queues) = tun::open(&options).map_err(link_error(format!("interface {name}")))?;
            let failed = |what: &str| link_error(format!("interface {name}: {what}"));
            interface.set_mtu(tun.mtu.into()).map_err(failed("setting its MTU"))?;
            for address in &tun.addresses {
                let added = interface.add_address(address.addr(), address.prefix_len());
                added.map_err(failed(&format!("adding the address {address}")))?;
            }
            interface.set_queue_len(tun.queue_length).map_err(failed("setting the length of its queue"))?;
            interface.set_up(true).map_err(failed("setting it up"))?;
            Ok(queues.into_iter().map(|queue| Port::new(name, Box::new(queue), QUEUE)).collect())
        }
        PlainLink::Xdp { card, .. } => {
            if config.routes().is_empty() {
                return Err(lacking(
                    "[plain] kind = \"xdp\": nothing says which packets are the gateway's: give `routes`",
                ));
            }
            let network = |net: IpNet| Network { address: net.network(), prefix: net.prefix_len() };
            let take = Take::Plain { to: config.routes().into_iter().map(network).collect() };
            let links = xdp(card, take, workers)?;
            Ok(links.into_iter().map(|link| Port::new(&card.interface, Box::new(link), QUEUE)).collect())
        }
    }
}

/// The links of a card by AF_XDP, one a queue: [`workers`](super::start::workers) has seen to it that it has as many as
/// there are workers.
fn xdp(card: &Xdp, take: Take, workers: usize) -> Result<Vec<XdpLink>, StartError> {
    if card.queues.as_ref().is_some_and(|queues| !queues.iter().copied().eq(0..queues.len() as u32)) {
        return Err(lacking("AF_XDP takes the first queues of a card: 0, 1, ..."));
    }
    let queues = workers as u32;
    let mode = match card.mode {
        XdpMode::Auto => Mode::Best,
        XdpMode::Copy => Mode::Driver,
        XdpMode::Generic => Mode::Generic,
        XdpMode::ZeroCopy => return Err(lacking("zero-copy AF_XDP is not in this build: mode = \"auto\"")),
    };
    let options = XdpOptions { interface: card.interface.clone(), queues, take, mode, frames: card.frames };
    let links = forebay_links_xdp::open(&options);
    let links = links.map_err(link_error(format!("AF_XDP on {}", card.interface)))?;
    let mtu = Interface::by_name(&card.interface).and_then(|interface| interface.mtu());
    if mtu.is_ok_and(|mtu| mtu > forebay_links_xdp::MAX_PACKET as u32) {
        let (interface, most) = (&card.interface, forebay_links_xdp::MAX_PACKET);
        tracing::warn!(%interface, "AF_XDP takes packets of up to {most} bytes here, larger ones are lost: lower the MTU");
    }
    if links.iter().any(|link| link.mode() == Mode::Generic) {
        // Of trains of packets, which veth and bridges pass as one, only the driver's own program is spared.
        tracing::warn!(
            interface = %card.interface,
            "AF_XDP in front of the kernel's stack, not in the driver: senders on veth or a bridge must not leave trains of \
             packets to their device (ethtool -K DEVICE tso off gso off tx-udp-segmentation off)"
        );
    }
    Ok(links)
}

/// The sockets of a link of ESP in UDP.
fn udp_links(
    settings: &config::Udp,
    options: UdpOptions,
    clock: Clock,
) -> io::Result<Vec<Box<dyn Link + Send>>> {
    if settings.beside_ike {
        let UdpOptions { local, workers, buffer, mark, .. } = options;
        let links = beside::open(&BesideOptions { local, workers, buffer, mark })?;
        return Ok(links.into_iter().map(|link| Box::new(link) as Box<dyn Link + Send>).collect());
    }
    let mut links = udp::open(&options)?;
    if let (Some(daemon), Some(first)) = (settings.ike_forward, links.first()) {
        let forward = IkeForward::start(daemon, first.replier()?, clock)?;
        links.iter_mut().for_each(|link| forward.attach(link));
    }
    Ok(links.into_iter().map(|link| Box::new(link) as Box<dyn Link + Send>).collect())
}

/// The links to peers for each worker, and how long one of those in UDP stays silent.
pub(super) fn protected(
    config: &Config,
    workers: usize,
    clock: Clock,
) -> Result<(Vec<Vec<Protected>>, Option<Duration>), StartError> {
    let mut links: Vec<Vec<Protected>> = (0..workers).map(|_| vec![]).collect();
    let mut keepalive = None;
    for one in &config.protected {
        let failed = |what: String| link_error(format!("{}: {what}", one.name));
        match &one.link {
            ProtectedLink::Udp(udp) => {
                keepalive = keepalive.or(udp.keepalive);
                let local = udp.listen;
                let options = UdpOptions {
                    local,
                    workers,
                    buffer: udp.buffer,
                    offloads: udp.gso && udp.gro,
                    mark: udp.mark,
                };
                let opened = udp_links(udp, options, clock).map_err(failed(format!("UDP {local}")))?;
                for (links, link) in links.iter_mut().zip(opened) {
                    let port = Port::new(&one.name, link, QUEUE);
                    links.push(Protected { port, protocols: vec![protocol::UDP], local: Some(local.ip()) });
                }
            }
            ProtectedLink::Raw(raw) => {
                for &local in &raw.addresses {
                    for &what in &raw.protocols {
                        let (carries, number) = match what {
                            Protocol::Esp => (Carries::Esp, protocol::ESP),
                            Protocol::Ah => (Carries::Ah, protocol::AH),
                        };
                        let options =
                            RawOptions { local, carries, workers, buffer: raw.buffer, mark: raw.mark };
                        let opened = raw::open(&options)
                            .map_err(failed(format!("a raw socket of protocol {number} at {local}")))?;
                        for (links, link) in links.iter_mut().zip(opened) {
                            let name = format!("{}-{number}", one.name);
                            let port = Port::new(&name, Box::new(link), QUEUE);
                            links.push(Protected { port, protocols: vec![number], local: Some(local) });
                        }
                    }
                }
            }
            ProtectedLink::Xdp { card, ports } => {
                let take = Take::Protected { to: vec![], ports: ports.clone() };
                let opened = xdp(card, take, workers)?;
                for (queue, (links, link)) in links.iter_mut().zip(opened).enumerate() {
                    let port = Port::new(&format!("{}-{queue}", one.name), Box::new(link), QUEUE);
                    let protocols = vec![protocol::UDP, protocol::ESP, protocol::AH];
                    links.push(Protected { port, protocols, local: None });
                }
            }
        }
    }
    Ok((links, keepalive))
}

/// What tells of packets too big on their way to peers, to each worker, who knows what it has sent. Without raw sockets
/// gateways do without, which is said once: packets are as large as SAs' `mtu` says.
pub(super) fn icmp(says_so: bool) -> Vec<Box<dyn Link + Send>> {
    let mut links: Vec<Box<dyn Link + Send>> = Vec::new();
    for family in [Family::V4, Family::V6] {
        match raw::open(&RawOptions::new(family, Carries::TooBig)) {
            Ok(opened) => links.extend(opened.into_iter().map(|link| Box::new(link) as Box<dyn Link + Send>)),
            Err(error) if !says_so => tracing::debug!(?family, %error, "no ICMP"),
            Err(error) => {
                tracing::warn!(?family, %error, "the gateway does not hear of smaller paths by ICMP")
            }
        }
    }
    links
}

/// The largest plain packet that MSS is lowered for, if that is wanted.
pub(super) fn mss_clamp(config: &Config) -> Option<u16> {
    match (config.plain.mss_clamp, &config.plain.link) {
        (MssClamp::Off, _) => None,
        (MssClamp::At(mss), _) => Some(mss.saturating_add(40)),
        (MssClamp::Auto, PlainLink::Tun(tun)) => Some(tun.mtu),
        (MssClamp::Auto, PlainLink::Xdp { card, .. }) => {
            let mtu = Interface::by_name(&card.interface).and_then(|interface| interface.mtu()).ok()?;
            Some(mtu.min(u32::from(u16::MAX)) as u16)
        }
    }
}

/// Receive queues of a network card; one if that cannot be told.
pub(super) fn receive_queues(interface: &str) -> usize {
    let queues = std::fs::read_dir(format!("/sys/class/net/{interface}/queues"));
    let is_receive = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with("rx-"));
    queues.map_or(0, |all| all.flatten().filter(|one| is_receive(&one.file_name())).count()).max(1)
}
