//! Why a network device cannot be opened.

use std::fmt;
use std::io;

/// Why a network device cannot be opened. Numbers are those of errno(3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// DPDK was not installed when Forebay was built.
    NotBuilt,
    /// DPDK does not start.
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
    /// No driver of DPDK is for devices of this name.
    NoDriver {
        /// The name.
        device: String,
    },
    /// The driver does not make or find the device.
    NotMade {
        /// The name.
        device: String,
        /// What the driver said.
        errno: i32,
    },
    /// The driver refuses to configure or start the device.
    NotReady {
        /// The name.
        device: String,
        /// What the driver said.
        errno: i32,
    },
    /// Another link has the device.
    InUse {
        /// The name.
        device: String,
    },
    /// There is no memory for its queues.
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
            Unavailable::NotStarted(_) => {
                "see DPDK's messages; without huge pages it needs 256 MB of memory".to_owned()
            }
            Unavailable::NotOnBus { .. } => "list the devices with `dpdk-devbind.py --status-dev net`".to_owned(),
            Unavailable::NotBound { device, .. } => {
                format!("sudo modprobe vfio-pci && sudo dpdk-devbind.py --bind=vfio-pci {device}")
            }
            Unavailable::NoDriver { .. } => "name a PCI address, or a virtual device as its driver with a number behind it: \
                 net_af_packet0, net_memif0, net_tap0, net_virtio_user0, eth_vhost0; drivers come with librte-meta-net"
                .to_owned(),
            Unavailable::NotMade { .. } => "see the driver's messages; `arguments` has what the driver needs, such as \
                 \"iface=eth1\" for net_af_packet0"
                .to_owned(),
            Unavailable::NotReady { .. } => {
                "see the driver's messages; a driver may refuse `mtu`, `queues` or `descriptors`".to_owned()
            }
            Unavailable::InUse { .. } => "give each link a device of its own".to_owned(),
            Unavailable::NoMemory { .. } => "lower `descriptors` or `mtu`, or reserve more huge pages".to_owned(),
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = |errno: &i32| io::Error::from_raw_os_error(*errno);
        match self {
            Unavailable::NotBuilt => f.write_str("this program was built without DPDK"),
            Unavailable::NotStarted(errno) => write!(f, "DPDK does not start: {}", error(errno)),
            Unavailable::NotOnBus { device } => write!(f, "there is no device {device} on the PCI bus"),
            Unavailable::NotBound { device, driver } => {
                match driver {
                    Some(driver) => write!(f, "{device} is bound to the kernel's driver `{driver}`")?,
                    None => write!(f, "{device} is bound to no driver")?,
                }
                f.write_str("; DPDK needs vfio-pci, uio_pci_generic or igb_uio")
            }
            Unavailable::NoDriver { device } => {
                write!(f, "DPDK has no driver for a network device `{device}`")
            }
            Unavailable::NotMade { device, errno } => {
                write!(f, "DPDK's driver does not make the network device `{device}`: {}", error(errno))
            }
            Unavailable::NotReady { device, errno } => {
                write!(f, "DPDK's driver does not start the network device `{device}`: {}", error(errno))
            }
            Unavailable::InUse { device } => write!(f, "another link has the network device `{device}`"),
            Unavailable::NoMemory { device } => {
                write!(f, "there is no memory for the queues of the network device `{device}`")
            }
        }
    }
}

impl std::error::Error for Unavailable {}
