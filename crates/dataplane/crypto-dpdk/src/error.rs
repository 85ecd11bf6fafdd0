//! Why a device cannot be opened.

use std::fmt;

/// Why a device cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// DPDK was not installed when Forebay was built.
    NotBuilt,
    /// DPDK does not start: its error number.
    NotStarted(i32),
    /// There is no device at this place of the PCI bus.
    NotOnBus {
        /// The place.
        device: String,
    },
    /// A device of the PCI bus has no driver for user space.
    NotBound {
        /// Its place.
        device: String,
        /// The driver that it has.
        driver: Option<String>,
    },
    /// No driver of DPDK is for virtual devices of this name.
    NoDriver {
        /// The name.
        device: String,
        /// The drivers for crypto devices that DPDK has loaded.
        drivers: Vec<String>,
    },
    /// DPDK knows no device of this name.
    NoDevice {
        /// The name.
        device: String,
        /// The devices that DPDK has found.
        found: Vec<String>,
    },
    /// The driver refuses to configure or start the device.
    NotReady {
        /// The name.
        device: String,
    },
    /// Every queue pair of the device is in use.
    InUse {
        /// The name.
        device: String,
        /// How many it has.
        pairs: u16,
    },
    /// There is no memory for the queue's buffers.
    NoMemory {
        /// The name.
        device: String,
    },
}

impl Unavailable {
    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Unavailable::NotBuilt => "install libdpdk-dev and build again with `--features dpdk`".to_owned(),
            Unavailable::NotStarted(_) => "see DPDK's messages; without huge pages it needs 256 MB of memory".to_owned(),
            Unavailable::NotOnBus { .. } => {
                "list the devices with `dpdk-devbind.py --status-dev crypto`; a virtual function has to be created first, as \
                 with `echo 1 | sudo tee /sys/bus/pci/devices/0000:3d:00.0/sriov_numvfs`"
                    .to_owned()
            }
            Unavailable::NotBound { device, .. } => {
                format!("sudo modprobe vfio-pci && sudo dpdk-devbind.py --bind=vfio-pci {device}")
            }
            Unavailable::NoDriver { drivers, .. } if drivers.is_empty() => {
                "install DPDK's drivers: sudo apt install librte-meta-crypto".to_owned()
            }
            Unavailable::NoDriver { .. } => {
                "name the device as its driver with a number behind it; drivers come with librte-meta-crypto".to_owned()
            }
            Unavailable::NoDevice { device, .. } if device.contains(':') => {
                "see whether DPDK has a driver for its vendor and device number (`lspci -nn`), whether its driver is \
                 installed (sudo apt install librte-meta-crypto), and whether this process may open /dev/vfio"
                    .to_owned()
            }
            Unavailable::NoDevice { .. } => {
                "virtual devices are named as their driver with a number, e.g. crypto_aesni_mb0, crypto_aesni_gcm0, \
                 crypto_openssl0; a device on the bus by its PCI address"
                    .to_owned()
            }
            Unavailable::NotReady { .. } => {
                "see the driver's messages; with less memory, lower `queue` or `sessions`".to_owned()
            }
            Unavailable::InUse { .. } => "each processor takes a queue pair: lower `count`".to_owned(),
            Unavailable::NoMemory { .. } => "lower `queue`, or reserve more huge pages".to_owned(),
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::NotBuilt => f.write_str("this program was built without DPDK"),
            Unavailable::NotStarted(errno) => {
                write!(f, "DPDK does not start: {}", std::io::Error::from_raw_os_error(*errno))
            }
            Unavailable::NotOnBus { device } => write!(f, "there is no device {device} on the PCI bus"),
            Unavailable::NotBound { device, driver: Some(driver) } => write!(
                f,
                "{device} is bound to the kernel's driver `{driver}`; DPDK needs vfio-pci, uio_pci_generic or igb_uio"
            ),
            Unavailable::NotBound { device, driver: None } => {
                write!(f, "{device} is bound to no driver; DPDK needs vfio-pci, uio_pci_generic or igb_uio")
            }
            Unavailable::NoDriver { device, drivers } if drivers.is_empty() => {
                write!(f, "DPDK has loaded no driver for crypto devices, so none for `{device}`")
            }
            Unavailable::NoDriver { device, drivers } => {
                write!(f, "DPDK has no driver for `{device}`; it has {}", drivers.join(", "))
            }
            Unavailable::NoDevice { device, found } if found.is_empty() => {
                write!(f, "DPDK has no crypto device `{device}`, nor any other")
            }
            Unavailable::NoDevice { device, found } => {
                write!(f, "DPDK has no crypto device `{device}`; it has {}", found.join(", "))
            }
            Unavailable::NotReady { device } => write!(f, "the driver of `{device}` does not start it"),
            Unavailable::InUse { device, pairs } => {
                write!(f, "all {pairs} queue pairs of `{device}` are in use")
            }
            Unavailable::NoMemory { device } => {
                write!(f, "there is no memory for the buffers of `{device}`")
            }
        }
    }
}

impl std::error::Error for Unavailable {}
