//! Network devices by DPDK: opened, and inspected by `forebay check`.

use forebay_config::{Config, NetworkDevice};

#[cfg(feature = "dpdk")]
pub(super) use self::built::open;
#[cfg(feature = "dpdk")]
use self::built::{huge_pages, look};
#[cfg(not(feature = "dpdk"))]
pub(super) use self::not_built::open;
#[cfg(not(feature = "dpdk"))]
use self::not_built::{huge_pages, look};

const NO_HUGE_PAGES: &str = "no huge pages are free: DPDK takes 256 MB of ordinary memory, whose addresses cost more look-ups \
     (TLB), and which devices reach only through an IOMMU";
const RESERVE: &str = "reserve huge pages: `echo 512 | sudo tee /proc/sys/vm/nr_hugepages`";

/// Something that this machine or build does not have for a network device of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LacksDevice {
    /// Whether the gateway cannot start without it.
    pub is_error: bool,
    /// What.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// What this machine or build lacks for the network devices of a file. Nothing is made or touched: another process may use the
/// devices.
pub fn lacks_network_devices(config: &Config) -> Vec<LacksDevice> {
    let of = |device: &NetworkDevice| {
        let (message, help) = look(&device.device).err()?;
        let message = format!("network device `{}`: {message}", device.device);
        Some(LacksDevice { is_error: true, message, help })
    };
    let mut lacks: Vec<_> = config.network_devices().filter_map(of).collect();
    if config.network_devices().next().is_some() && huge_pages() == Some(false) {
        let (message, help) = (NO_HUGE_PAGES.to_owned(), RESERVE.to_owned());
        lacks.push(LacksDevice { is_error: false, message, help });
    }
    lacks
}

/// Of a program that was built without DPDK.
#[cfg(not(feature = "dpdk"))]
mod not_built {
    use forebay_config::NetworkDevice;

    use crate::service::host::Queues;
    use crate::service::start_error::StartError;

    const WHAT: &str = "this program was built without DPDK";
    const HELP: &str =
        "install libdpdk-dev and build with `--features dpdk`, or give the link another `kind`";

    pub fn open(
        name: &str,
        device: &NetworkDevice,
        _ports: Option<&[u16]>,
        _workers: usize,
    ) -> Result<(Queues, Queues), StartError> {
        let what = format!("{name}: {}: {WHAT}", device.device);
        Err(StartError::NetworkDevice { what, help: HELP.to_owned() })
    }

    pub fn look(_device: &str) -> Result<(), (String, String)> {
        Err((WHAT.to_owned(), HELP.to_owned()))
    }

    pub fn huge_pages() -> Option<bool> {
        None
    }
}

/// Of a program with DPDK.
#[cfg(feature = "dpdk")]
mod built {
    use std::{io, thread};

    use forebay_config::NetworkDevice;
    use forebay_links::Link;
    use forebay_links_dpdk::{self as dpdk, Change, Opened, PortOptions, Side, Unavailable, Watch};
    use forebay_privileges as privileges;

    use super::{NO_HUGE_PAGES, RESERVE};
    use crate::service::host::Queues;
    use crate::service::start_error::StartError;

    /// Opens a device for the link called `name`: a link for each worker, and for an outside what receives ICMP errors.
    pub fn open(
        name: &str,
        device: &NetworkDevice,
        ports: Option<&[u16]>,
        workers: usize,
    ) -> Result<(Queues, Queues), StartError> {
        let side = match ports {
            Some(ports) => Side::Outside { ports: ports.to_vec() },
            None => Side::Inside,
        };
        let options = PortOptions {
            addresses: device.addresses.clone(),
            gateways: device.gateways.clone(),
            neighbours: device.neighbours.clone(),
            mtu: device.mtu,
            queues: workers as u16,
            descriptors: device.descriptors,
            ..PortOptions::new(&device.device, &device.arguments, side)
        };
        let refused =
            |why: Unavailable| StartError::NetworkDevice { what: format!("{name}: {why}"), help: why.help() };
        start(&device.device).map_err(refused)?;
        let Opened { links, icmp, mac, is_up, watch } = dpdk::open(&options).map_err(refused)?;
        let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
        tracing::info!(link = %name, device = %device.device, %mac, is_up, "network device by DPDK");
        if huge_pages() == Some(false) {
            tracing::warn!(device = %device.device, "{NO_HUGE_PAGES}: {RESERVE}");
        }
        watch_over(watch, name, &device.device).map_err(StartError::System)?;
        let icmp = icmp.map(|icmp| Box::new(icmp) as Box<dyn Link + Send>);
        Ok((links, icmp.into_iter().collect()))
    }

    /// Starts DPDK. Its own threads get no capabilities, unless it is for a device that has to be driven with them.
    fn start(device: &str) -> Result<(), Unavailable> {
        match dpdk::is_on_bus(device) {
            true => dpdk::start(device),
            false => privileges::without(|| dpdk::start(device)),
        }
    }

    /// Has a thread look at the device's link as long as there are queues of it. The thread has no capabilities: what is made again
    /// is a virtual device, as [`start`] does it.
    fn watch_over(mut watch: Watch, name: &str, device: &str) -> io::Result<()> {
        let (link, device) = (name.to_owned(), device.to_owned());
        let watch = move || {
            while let Some(change) = watch.wait() {
                match change {
                    None => {}
                    Some(Change::Up) => tracing::info!(%link, %device, "network device: link up"),
                    Some(Change::Down { is_made_again: false }) => {
                        tracing::warn!(%link, %device, "network device: link down");
                    }
                    Some(Change::Down { is_made_again: true }) => tracing::warn!(
                        %link, %device, "network device: link down; the device is made again when its other end listens"
                    ),
                    Some(Change::MadeAgain) => {
                        tracing::info!(%link, %device, "network device made again, because its other end was gone");
                    }
                    Some(Change::Failed(why)) => {
                        tracing::warn!(%link, %device, %why, "network device cannot be made again now");
                    }
                }
            }
        };
        let builder = thread::Builder::new().name("forebay-device".to_owned());
        privileges::without(|| builder.spawn(watch)).map(drop)
    }

    pub fn look(device: &str) -> Result<(), (String, String)> {
        dpdk::look(device).map_err(|why| (why.to_string(), why.help()))
    }

    pub fn huge_pages() -> Option<bool> {
        dpdk::has_huge_pages()
    }
}
