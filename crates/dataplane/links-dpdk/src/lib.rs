//! A link by DPDK's network devices (ethdev): NICs that are bound to a driver for user space, and virtual devices such as memif,
//! vhost-user and virtio-user, TAP and AF_PACKET.
//!
//! The kernel's stack has no part in it, so the link has addresses of its own: it answers ARP, Neighbour Discovery and echo
//! requests for them, finds its neighbours, and adds and removes Ethernet headers. What is not for the gateway is counted
//! (`foreign` of [`RxDrops`](forebay_links::RxDrops)) and goes nowhere: IKE messages, for one, need another interface.
//!
//! Devices are polled. While packets come, a worker asks again at once; a link on which nothing comes lets it sleep, for up to a
//! millisecond ([`Link::nap`](forebay_links::Link::nap)).
//!
//! DPDK is one for a process: see `dpdk_sys::eal`. Without its headers at build time, [`open()`] says so.
#![cfg(target_os = "linux")]
// When a neighbour was heard.
#![allow(clippy::disallowed_methods)]

#[cfg(dpdk)]
mod arrivals;
mod error;
mod icmp;
#[cfg(dpdk)]
mod link;
#[cfg(dpdk)]
mod messages;
#[cfg(dpdk)]
mod neighbours;
#[cfg(dpdk)]
mod open;
mod options;
#[cfg(dpdk)]
mod sending;
#[cfg(dpdk)]
mod sockets;
#[cfg(dpdk)]
mod watch;

pub use error::Unavailable;
pub use icmp::IcmpLink;
#[cfg(dpdk)]
pub use link::PortLink;
#[cfg(not(dpdk))]
pub use options::Watch;
pub use options::{Change, Opened, PortOptions, Side};
#[cfg(dpdk)]
pub use watch::Watch;

/// Length of an Ethernet header without tags.
#[cfg(dpdk)]
const ETHERNET: usize = 14;

/// An address on an Ethernet.
pub type Mac = [u8; 6];

/// Starts DPDK, if it was not started: the threads that it starts have the capabilities of this one. `device` is the first that
/// is wanted of it.
///
/// # Errors
/// If this build has no DPDK, or it does not start.
pub fn start(device: &str) -> Result<(), Unavailable> {
    #[cfg(dpdk)]
    {
        dpdk_sys::eal::start(device).map_err(Unavailable::NotStarted)
    }
    #[cfg(not(dpdk))]
    {
        let _ = device;
        Err(Unavailable::NotBuilt)
    }
}

/// Opens the links of a device, one for each of its queues. They may be given to other threads; when all are dropped, the
/// device is stopped.
///
/// # Errors
/// If this build has no DPDK, DPDK does not start, there is no such device, or it refuses what is asked of it.
pub fn open(options: &PortOptions) -> Result<Opened, Unavailable> {
    #[cfg(dpdk)]
    {
        open::open(options)
    }
    #[cfg(not(dpdk))]
    {
        let _ = options;
        Err(Unavailable::NotBuilt)
    }
}

/// Whether a device can be opened, as far as that shows without touching what another process may be using: that DPDK has a
/// driver for a virtual device of this name, or that a device of the PCI bus is there and has a driver for user space.
///
/// # Errors
/// As [`open()`].
pub fn look(device: &str) -> Result<(), Unavailable> {
    #[cfg(dpdk)]
    {
        open::look(device)
    }
    #[cfg(not(dpdk))]
    {
        let _ = device;
        Err(Unavailable::NotBuilt)
    }
}

/// Whether a name is a place on the PCI bus, such as `0000:3d:00.0`.
pub fn is_on_bus(device: &str) -> bool {
    dpdk_sys::pci::is_place(device)
}

/// Whether a device can be opened by a process with privileges only: one that is driven without an IOMMU, for which DPDK has
/// to know the physical addresses of its memory (CAP_SYS_ADMIN).
pub fn takes_privileges(device: &str) -> bool {
    dpdk_sys::pci::takes_privileges(std::path::Path::new(dpdk_sys::pci::PCI_DEVICES), device)
}

/// Whether DPDK has huge pages, or will have them when it is started. `None`: this build has no DPDK.
pub fn has_huge_pages() -> Option<bool> {
    #[cfg(dpdk)]
    {
        Some(dpdk_sys::eal::has_huge_pages())
    }
    #[cfg(not(dpdk))]
    {
        None
    }
}
