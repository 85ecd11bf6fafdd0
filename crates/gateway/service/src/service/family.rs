//! Hosts that lack an IP version, as a whole (`ipv6.disable=1`) or on an interface (`disable_ipv6`): the other one works.

use std::io;
use std::net::IpAddr;

/// `EACCES`: the interface has no IPv6 (`EPERM` would say that the process may not).
const NOT_ON_INTERFACE: i32 = 13;
/// `EOPNOTSUPP` and `EAFNOSUPPORT`: the kernel has none.
const NOT_IN_KERNEL: [i32; 2] = [95, 97];

/// Whether `error` says that this host lacks the IP version of `address`.
pub(super) fn is_absent(error: &io::Error, address: IpAddr) -> bool {
    let Some(code) = error.raw_os_error() else { return false };
    NOT_IN_KERNEL.contains(&code) || code == NOT_ON_INTERFACE && address.is_ipv6()
}

/// Says what is not there for an address, what follows, and what to do about it.
pub(super) fn warn_of_absent(address: IpAddr, follows: &str) {
    match address {
        IpAddr::V6(_) => tracing::warn!(
            "IPv6 is disabled on this host or interface: {follows}; enable it (sysctl net.ipv6.conf.all.disable_ipv6=0 and \
             net.ipv6.conf.default.disable_ipv6=0, or boot without ipv6.disable=1), or use IPv4 addresses only"
        ),
        IpAddr::V4(_) => {
            tracing::warn!("this host has no IPv4: {follows}; use a kernel with it, or IPv6 addresses only")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_version_is_told_from_missing_rights() {
        let (v4, v6) = (IpAddr::from([10, 1, 0, 1]), "2001:db8::1".parse().unwrap());
        let says = |code, address| is_absent(&io::Error::from_raw_os_error(code), address);
        assert!(says(13, v6) && says(95, v6) && says(97, v6) && says(97, v4));
        assert!(!says(13, v4), "a program of the system's security forbids it");
        assert!(!says(1, v6) && !says(99, v6) && !says(101, v6));
        assert!(!is_absent(&io::ErrorKind::PermissionDenied.into(), v6));
    }
}
