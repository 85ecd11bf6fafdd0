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
            Unavailable::NotStarted(_) => "messages of DPDK stand above; without huge pages it needs 256 MB of memory".to_owned(),
            Unavailable::NoDevice { device, .. } if device.contains(':') => format!(
                "bind the device to a driver for user space, as with `dpdk-devbind.py --bind=vfio-pci {device}`, and see \
                 whether DPDK has a driver for it"
            ),
            Unavailable::NoDevice { .. } => {
                "virtual devices are named as their driver with a number, e.g. crypto_aesni_mb0, crypto_aesni_gcm0, \
                 crypto_openssl0; a device on the bus by its PCI address"
                    .to_owned()
            }
            Unavailable::NotReady { .. } => "messages of the driver stand above".to_owned(),
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
