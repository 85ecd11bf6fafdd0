//! What the kernel says of a device on the PCI bus.

use std::path::{Path, PathBuf};

/// The kernel's folder of devices on the PCI bus.
pub const PCI_DEVICES: &str = "/sys/bus/pci/devices";

/// Drivers by which a process drives a device itself.
const FOR_USER_SPACE: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/// Why a process cannot drive a device on the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// There is no device at this place.
    NotOnBus,
    /// It has no driver for user space; the driver that it has.
    NotBound(Option<String>),
}

/// Whether a name is a place on the bus, such as `0000:3d:01.0`.
pub fn is_place(device: &str) -> bool {
    device.contains(':')
}

/// Whether a process may drive the device at this place, by the kernel's `devices` of the bus.
///
/// # Errors
/// If there is no such device, or it has another driver.
pub fn look(devices: &Path, place: &str) -> Result<(), Unfit> {
    let folder = folder(devices, place);
    if !folder.exists() {
        return Err(Unfit::NotOnBus);
    }
    match driver(&folder) {
        Some(driver) if FOR_USER_SPACE.contains(&&*driver) => Ok(()),
        driver => Err(Unfit::NotBound(driver)),
    }
}

/// Whether the device at this place is driven without an IOMMU.
pub fn takes_privileges(devices: &Path, place: &str) -> bool {
    let folder = folder(devices, place);
    is_place(place)
        && driver(&folder).is_some_and(|driver| driver != "vfio-pci" || !folder.join("iommu").exists())
}

/// DPDK takes a place without its domain too.
fn folder(devices: &Path, place: &str) -> PathBuf {
    devices.join(if place.matches(':').count() == 1 { format!("0000:{place}") } else { place.to_owned() })
}

fn driver(folder: &Path) -> Option<String> {
    let path = folder.join("driver").canonicalize().ok()?;
    Some(path.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_a_device_is_bound_to_is_found() {
        let bus = std::env::temp_dir().join(format!("forebay-pci-{}", std::process::id()));
        let device = |name: &str, driver: Option<&str>| {
            let folder = bus.join("devices").join(name);
            fs::create_dir_all(&folder).expect("a folder");
            if let Some(driver) = driver {
                fs::create_dir_all(bus.join("drivers").join(driver)).expect("a folder");
                symlink(bus.join("drivers").join(driver), folder.join("driver")).expect("a link");
            }
        };
        device("0000:00:04.0", Some("vfio-pci"));
        device("0000:00:05.0", Some("qat_c62x"));
        device("0000:00:06.0", None);
        device("0000:00:08.0", Some("uio_pci_generic"));
        fs::create_dir(bus.join("devices/0000:00:04.0/iommu")).expect("a folder");
        let look = |place: &str| look(&bus.join("devices"), place);
        let not_bound = |driver: Option<&str>| Err(Unfit::NotBound(driver.map(str::to_owned)));
        assert_eq!(look("0000:00:04.0"), Ok(()));
        assert_eq!(look("00:04.0"), Ok(()));
        assert_eq!(look("0000:00:05.0"), not_bound(Some("qat_c62x")));
        assert_eq!(look("00:06.0"), not_bound(None));
        assert_eq!(look("0000:00:07.0"), Err(Unfit::NotOnBus));
        let privileged = |place: &str| takes_privileges(&bus.join("devices"), place);
        assert!(privileged("00:08.0") && !privileged("0000:00:04.0") && !privileged("crypto_openssl0"));
        fs::remove_dir_all(&bus).expect("a folder");
    }
}
