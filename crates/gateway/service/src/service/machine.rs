//! The machine that this process runs on: its links, sockets and interfaces, opened.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use forebay_engine::Clock;
use forebay_ipsec::Protocol;
use forebay_links::Link;
use forebay_links::beside::{self, BesideOptions};
use forebay_links::interface::Interface;
use forebay_links::raw::{self, Carries, RawOptions};
use forebay_links::tun::{self, TunOptions};
use forebay_links::udp::{self, UdpOptions};
use forebay_links_xdp::{Copying, Mode, Network, Take, XdpLink, XdpOptions};
use forebay_wire::Family;
use ipnet::IpNet;

use super::broadcasts::{BROADCAST_HELP, broadcasts};
use super::family::{is_absent, warn_of_absent, without};
use super::host::{self, CardSide, Firewall, Host, Queues};
use super::ike_forward::IkeForward;
use super::links::receive_queues;
use super::network_device;
use super::offloads::{self, Interfaces};
use super::routes::{self, Routing};
use super::start_error::{StartError, lacking, link_error};
use super::thread_wait::ThreadWait;
use forebay_config::{self as config, Config, InsideLink, NetworkDevice, Raw, Tun, Xdp, XdpMode};
use forebay_state::{Files, System};
use forebay_worker::Wait;

/// The machine that this process runs on.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

impl Host for Machine {
    fn tun(&self, tun: &Tun, workers: usize) -> Result<Queues, StartError> {
        let options = TunOptions { name: tun.name.clone(), queues: workers, offloads: tun.offload };
        let name = &tun.name;
        let (interface, mut queues) = tun::open(&options).map_err(link_error(format!("interface {name}")))?;
        let failed = |what: &str| link_error(format!("interface {name}: {what}"));
        interface.set_mtu(tun.mtu.into()).map_err(failed("cannot set the MTU"))?;
        for address in broadcasts(tun, Path::new("/")) {
            tracing::warn!(
                interface = %name, %address,
                "an address of the gateway is the broadcast address of a network of this host, whose broadcasts end here: {BROADCAST_HELP}"
            );
        }
        for address in &tun.addresses {
            match interface.add_address(address.addr(), address.prefix_len()) {
                Err(error) if is_absent(&error, address.addr()) => {
                    let follows = format!(
                        "interface {name} does not get the address {address}, and {}",
                        without(address.addr())
                    );
                    warn_of_absent(address.addr(), &follows);
                }
                added => added.map_err(failed(&format!("cannot add the address {address}")))?,
            }
        }
        interface.set_queue_len(tun.queue_length).map_err(failed("cannot set the queue length"))?;
        if let Err(error) = tun::bound(&mut queues, tun.queue_length) {
            tracing::info!(
                interface = %name, %error,
                "`queue_length` counts a batch of packets as one: to count packets, the gateway needs CAP_BPF and Linux 5.5"
            );
        }
        interface.set_up(true).map_err(failed("cannot bring the interface up"))?;
        if let Err(error) = interface.accept_own_sources() {
            tracing::warn!(
                interface = %name, %error,
                "the gateway's ICMP errors do not reach hosts: set the sysctl net.ipv4.conf.{name}.accept_local to 1, and rp_filter to 2"
            );
        }
        Ok(boxed(queues))
    }

    fn udp(
        &self,
        name: &str,
        udp: &config::Udp,
        local: SocketAddr,
        workers: usize,
        clock: Clock,
    ) -> Result<Queues, StartError> {
        let options =
            UdpOptions { local, workers, buffer: udp.buffer, gso: udp.gso, gro: udp.gro, mark: udp.mark };
        udp_links(udp, options, clock).map_err(link_error(format!("{name}: UDP {local}")))
    }

    fn raw(
        &self,
        name: &str,
        raw: &Raw,
        local: IpAddr,
        what: Protocol,
        workers: usize,
    ) -> Result<Queues, StartError> {
        let carries = match what {
            Protocol::Esp => Carries::Esp,
            Protocol::Ah => Carries::Ah,
        };
        let options = RawOptions { local, carries, workers, buffer: raw.buffer, mark: raw.mark };
        let failed = format!("{name}: raw socket of protocol {what:?} at {local}");
        raw::open(&options).map_err(link_error(failed)).map(boxed)
    }

    fn card(&self, side: CardSide<'_>, workers: usize) -> Result<Queues, StartError> {
        let (card, take) = match side {
            CardSide::Inside(config, card) => {
                let network = |net: IpNet| Network { address: net.network(), prefix: net.prefix_len() };
                (card, Take::Inside { to: config.routes().into_iter().map(network).collect() })
            }
            CardSide::Outside(card, ports) => (card, Take::Outside { to: vec![], ports: ports.to_vec() }),
        };
        xdp(card, take, workers).map(boxed)
    }

    fn network_device(
        &self,
        name: &str,
        device: &NetworkDevice,
        ports: Option<&[u16]>,
        workers: usize,
    ) -> Result<(Queues, Queues), StartError> {
        network_device::open(name, device, ports, workers)
    }

    fn icmp(&self) -> Queues {
        let mut links: Queues = Vec::new();
        for family in [Family::V4, Family::V6] {
            match raw::open(&RawOptions::new(family, Carries::TooBig)) {
                Ok(opened) => links.extend(boxed(opened)),
                Err(error) => {
                    tracing::warn!(?family, %error, "cannot receive ICMP path MTU errors, so set `mtu` of the SAs; the raw socket requires CAP_NET_RAW")
                }
            }
        }
        links
    }

    fn routing(&self, config: &Config) -> io::Result<Option<Box<dyn Routing>>> {
        let InsideLink::Tun(tun) = &config.inside.link else { return Ok(None) };
        let shared = config.shared_addresses().map(|shared| shared.address.addr()).collect();
        Ok(Some(Box::new(routes::Kernel::open(&tun.name, &tun.addresses, shared)?)))
    }

    fn firewall(&self) -> Box<dyn Firewall> {
        Box::new(host::Kernel::default())
    }

    fn interfaces(&self) -> Option<Box<dyn Interfaces>> {
        Some(Box::new(offloads::Kernel::default()))
    }

    fn files(&self) -> Arc<dyn Files> {
        Arc::new(System)
    }

    fn wait(&self, _worker: usize) -> Box<dyn Wait> {
        Box::new(ThreadWait::default())
    }
}

fn boxed<L: Link + Send + 'static>(links: Vec<L>) -> Queues {
    links.into_iter().map(|link| Box::new(link) as Box<dyn Link + Send>).collect()
}

/// The links of a card by AF_XDP, one a queue: as many as it has, and not more than there are workers.
fn xdp(card: &Xdp, take: Take, workers: usize) -> Result<Vec<XdpLink>, StartError> {
    if card.queues.as_ref().is_some_and(|queues| !queues.iter().copied().eq(0..queues.len() as u32)) {
        return Err(lacking("AF_XDP requires the first queues of a card: 0, 1, ..."));
    }
    let queues =
        card.queues.as_ref().map_or_else(|| receive_queues(&card.interface), Vec::len).min(workers) as u32;
    let (mode, copying) = match card.mode {
        XdpMode::Auto => (Mode::Best, Copying::Best),
        XdpMode::ZeroCopy => (Mode::Driver, Copying::ZeroCopy),
        XdpMode::Copy => (Mode::Driver, Copying::Copy),
        XdpMode::Generic => (Mode::Generic, Copying::Copy),
    };
    let options =
        XdpOptions { interface: card.interface.clone(), queues, take, mode, copying, frames: card.frames };
    let links = forebay_links_xdp::open(&options);
    let links = links.map_err(|error| match card.mode {
        XdpMode::ZeroCopy if error.kind() == io::ErrorKind::Unsupported => lacking(
            "the driver cannot use AF_XDP without copies: set mode = \"auto\", which copies where it has to",
        ),
        _ => link_error(format!("AF_XDP on {}", card.interface))(error),
    })?;
    let is_zero_copy = links.iter().all(XdpLink::is_zero_copy);
    tracing::info!(interface = %card.interface, mode = ?links[0].mode(), is_zero_copy, "AF_XDP");
    let mtu = Interface::by_name(&card.interface).and_then(|interface| interface.mtu());
    if mtu.is_ok_and(|mtu| mtu > forebay_links_xdp::MAX_PACKET as u32) {
        let (interface, most) = (&card.interface, forebay_links_xdp::MAX_PACKET);
        tracing::warn!(%interface, "AF_XDP receives packets of up to {most} bytes on this interface; larger packets are lost, so lower the MTU");
    }
    if links.iter().any(|link| link.mode() == Mode::Generic) {
        // Of trains of packets, which veth and bridges pass as one, only the driver's own program is spared.
        tracing::warn!(
            interface = %card.interface,
            "AF_XDP runs in generic mode, not in the driver: disable segmentation offload for senders on veth or a bridge \
             (ethtool -K DEVICE tso off gso off tx-udp-segmentation off)"
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
