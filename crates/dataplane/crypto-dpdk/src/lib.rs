//! Crypto devices through DPDK's drivers (cryptodev): cards such as QAT, CAAM or Octeon's, virtio-crypto, and DPDK's
//! software devices.
//!
//! A device is named as DPDK names it, `crypto_aesni_mb0` or a PCI address. Each [`Processor`](forebay_crypto::Processor)
//! is one of its queue pairs. Software devices work on packets where they are. For others packets are copied into DPDK's
//! buffers when they are submitted, and what has changed is copied back. A submission is one burst, and one doorbell.
//!
//! DPDK is one for a process. It is started with the first device that is opened ([`open`]), with one thread's worth of
//! cores, so that it starts no threads that compute, and takes its memory from huge pages where there are any.

#[cfg(dpdk)]
mod batches;
#[cfg(dpdk)]
mod device;
mod error;
#[cfg(all(dpdk, feature = "faults"))]
pub mod fault;
#[cfg(dpdk)]
mod processor;
#[cfg(dpdk)]
mod session;

pub use error::Unavailable;

/// A device to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name in figures and logs.
    pub name: String,
    /// DPDK's name of it: a PCI address (`0000:3d:00.0`), or the name of a virtual device with a number
    /// (`crypto_openssl0`), which is made if there is none.
    pub device: String,
    /// What a virtual device is made with, `key=value,key=value`.
    pub arguments: String,
    /// Most jobs between submit and poll.
    pub queue: usize,
    /// Most sessions, each a direction of an SA.
    pub sessions: usize,
    /// Copy packets for a software device too, as for every other: for tests, and to measure what copies cost.
    pub copies: bool,
}

impl Config {
    /// A device with a queue of 512 jobs and 4,096 sessions.
    pub fn new(device: &str) -> Config {
        Config {
            name: device.to_owned(),
            device: device.to_owned(),
            arguments: String::new(),
            queue: 512,
            sessions: 4_096,
            copies: false,
        }
    }
}

/// Opens the next queue pair of a device.
///
/// # Errors
/// If this build has no DPDK, DPDK does not start, there is no such device, or all of its queue pairs are in use.
pub fn open(config: &Config) -> Result<Box<dyn forebay_crypto::Processor>, Unavailable> {
    #[cfg(dpdk)]
    {
        processor::Dpdk::open(config)
            .map(|processor| Box::new(processor) as Box<dyn forebay_crypto::Processor>)
    }
    #[cfg(not(dpdk))]
    {
        let _ = config;
        Err(Unavailable::NotBuilt)
    }
}

/// Whether a device can be opened, as far as that shows without touching what another process may be using: a virtual device
/// is opened, of one on the PCI bus it is seen that it is there and has a driver for user space. Returns the suites of a virtual
/// device; those of one on the bus show only when it is opened.
///
/// # Errors
/// As [`open`].
pub fn look(config: &Config) -> Result<Option<Vec<forebay_crypto::Suite>>, Unavailable> {
    #[cfg(dpdk)]
    {
        if dpdk_sys::pci::is_place(&config.device) {
            return device::look(&config.device).map(|()| None);
        }
    }
    open(config).map(|opened| Some(opened.capabilities().suites.clone()))
}

/// Whether a device can be opened by a process with privileges only: one that is driven without an IOMMU, for which DPDK has
/// to know the physical addresses of its memory (CAP_SYS_ADMIN).
pub fn takes_privileges(device: &str) -> bool {
    #[cfg(dpdk)]
    {
        dpdk_sys::pci::takes_privileges(std::path::Path::new(dpdk_sys::pci::PCI_DEVICES), device)
    }
    #[cfg(not(dpdk))]
    {
        let _ = device;
        false
    }
}

/// Whether DPDK has huge pages, or will have when the first device is opened; without them it takes ordinary memory. `None`:
/// this build has no DPDK.
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

/// How many of DPDK's sessions a device that was opened has; `None` if it was not.
pub fn sessions_in_use(device: &str) -> Option<u32> {
    #[cfg(dpdk)]
    {
        device::sessions_in_use(device)
    }
    #[cfg(not(dpdk))]
    {
        let _ = device;
        None
    }
}

/// DPDK's version, if this build has it.
pub fn version() -> Option<String> {
    #[cfg(dpdk)]
    {
        Some(dpdk_sys::eal::version())
    }
    #[cfg(not(dpdk))]
    {
        None
    }
}
