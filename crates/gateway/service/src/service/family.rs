//! Hosts that lack an IP version, as a whole (`ipv6.disable=1`) or on an interface (`disable_ipv6`): the other one works.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// `EACCES`: the interface has no IPv6 (`EPERM` would say that the process may not).
const NOT_ON_INTERFACE: i32 = 13;
/// What rtnetlink says where the kernel has none, among other reasons.
const EOPNOTSUPP: i32 = 95;
const EAFNOSUPPORT: i32 = 97;

/// Whether `error`, of an interface or a route, says that this host lacks the IP version of `address`.
pub(super) fn is_absent(error: &io::Error, address: IpAddr) -> bool {
    let is_on_interface = error.raw_os_error() == Some(NOT_ON_INTERFACE) && address.is_ipv6();
    is_on_interface || lacks_kernel(error, address)
}

/// Whether `error`, of a socket as well, says that the kernel lacks the IP version of `address`.
pub(super) fn lacks_kernel(error: &io::Error, address: IpAddr) -> bool {
    says_so(error, address, has_sockets)
}

/// Other refusals have the same numbers: `EOPNOTSUPP` is that of an option or a kind of route too. So a socket is asked for.
fn says_so(error: &io::Error, address: IpAddr, has: impl Fn(bool) -> bool) -> bool {
    matches!(error.raw_os_error(), Some(EOPNOTSUPP | EAFNOSUPPORT)) && !has(address.is_ipv6())
}

/// Whether there are sockets of IPv6 or of IPv4: it is the only question, so any other trouble with them is none here.
fn has_sockets(v6: bool) -> bool {
    let any: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).err().is_none_or(|error| error.raw_os_error() != Some(EAFNOSUPPORT))
}

/// What becomes of packets of the IP version of `address` where the interface does not have it.
pub(super) fn without(address: IpAddr) -> &'static str {
    match address {
        IpAddr::V6(_) => "no IPv6 packet enters or leaves the tunnel, whatever the SAs and policies say",
        IpAddr::V4(_) => "no IPv4 packet enters or leaves the tunnel, whatever the SAs and policies say",
    }
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
        let says = |code, address| {
            let error = io::Error::from_raw_os_error(code);
            let on_interface = is_absent(&error, address) && code == NOT_ON_INTERFACE;
            on_interface || says_so(&error, address, |_| false)
        };
        assert!(says(13, v6) && says(95, v6) && says(97, v6) && says(97, v4));
        assert!(!says(13, v4), "a program of the system's security forbids it");
        assert!(!says(1, v6) && !says(99, v6) && !says(101, v6));
        assert!(!is_absent(&io::ErrorKind::PermissionDenied.into(), v6));
        // The same numbers where the host has the version say something else.
        for code in [EOPNOTSUPP, EAFNOSUPPORT] {
            let error = io::Error::from_raw_os_error(code);
            assert!(!says_so(&error, v6, |_| true) && !says_so(&error, v4, |_| true));
            assert!(!says_so(&error, v4, |v6| !v6) && says_so(&error, v6, |v6| !v6), "each by its own");
            assert!(!is_absent(&error, v4), "this machine has IPv4");
        }
        // A socket is refused so by a program of the system's security only.
        assert!(!lacks_kernel(&io::Error::from_raw_os_error(NOT_ON_INTERFACE), v6));
    }
}
