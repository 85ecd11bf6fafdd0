//! Socket addresses as the kernel has them.

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// A socket address of either family, in the kernel's layout.
#[derive(Clone, Copy)]
pub(crate) union Name {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

/// Room for an address of either family.
pub(crate) const NAME_LEN: u32 = size_of::<Name>() as u32;

impl Name {
    /// No address at all.
    pub(crate) fn empty() -> Name {
        // SAFETY: all of the union's variants are plain numbers, for which zero is valid.
        unsafe { std::mem::zeroed() }
    }

    /// Writes `address`; returns its length in bytes.
    #[inline]
    pub(crate) fn set(&mut self, address: SocketAddr) -> u32 {
        match address {
            SocketAddr::V4(a) => {
                self.v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: a.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(a.ip().octets()) },
                    sin_zero: [0; 8],
                };
                size_of::<libc::sockaddr_in>() as u32
            }
            SocketAddr::V6(a) => {
                self.v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: a.port().to_be(),
                    sin6_flowinfo: a.flowinfo().to_be(),
                    sin6_addr: libc::in6_addr { s6_addr: a.ip().octets() },
                    sin6_scope_id: a.scope_id(),
                };
                size_of::<libc::sockaddr_in6>() as u32
            }
        }
    }

    /// The address that the kernel has written, if it is of the Internet.
    #[inline]
    pub(crate) fn get(&self) -> Option<SocketAddr> {
        // SAFETY: the union is plain numbers and fully initialised by `empty`, so each variant may be read.
        let (family, v4, v6) = unsafe { (self.family, self.v4, self.v6) };
        match libc::c_int::from(family) {
            libc::AF_INET => {
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                let port = u16::from_be(v6.sin6_port);
                Some(SocketAddrV6::new(ip, port, u32::from_be(v6.sin6_flowinfo), v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

/// The four or sixteen bytes of an address.
#[inline]
pub(crate) fn ipv4(bytes: [u8; 4]) -> IpAddr {
    Ipv4Addr::from(bytes).into()
}

/// See [`ipv4`].
#[inline]
pub(crate) fn ipv6(bytes: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(bytes).into()
}
