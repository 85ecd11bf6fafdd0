//! The common part of links over sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use forebay_links_sys::option;
use forebay_wire::Family;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with, sockopt};

/// Opens a socket of the family of `address` that does not wait.
pub(crate) fn open(address: IpAddr, kind: SocketType, protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, protocol)?)
}

/// Bytes that may wait in the kernel, in and out: beyond the system's limit where that is allowed.
pub(crate) fn set_buffers(socket: &OwnedFd, bytes: usize) -> io::Result<()> {
    if sockopt::set_socket_recv_buffer_size_force(socket, bytes).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, bytes)?;
    }
    if sockopt::set_socket_send_buffer_size_force(socket, bytes).is_err() {
        sockopt::set_socket_send_buffer_size(socket, bytes)?;
    }
    Ok(())
}

/// Has the kernel say with each datagram where it was sent to, its DSCP and ECN, and its TTL.
pub(crate) fn ask_for_header(socket: &OwnedFd, v6: bool) -> io::Result<()> {
    if v6 {
        set(socket.as_fd(), IPPROTO_IPV6, IPV6_RECVPKTINFO)?;
        set(socket.as_fd(), IPPROTO_IPV6, IPV6_RECVHOPLIMIT)?;
        sockopt::set_ipv6_recvtclass(socket, true)?;
    } else {
        set(socket.as_fd(), IPPROTO_IP, IP_PKTINFO)?;
        set(socket.as_fd(), IPPROTO_IP, IP_RECVTTL)?;
        sockopt::set_ip_recvtos(socket, true)?;
    }
    Ok(())
}

/// Gives what a socket sends a firewall mark, if there is one.
///
/// # Errors
/// `PermissionDenied` without `CAP_NET_ADMIN`, in words.
pub(crate) fn set_mark(socket: &OwnedFd, mark: Option<u32>) -> io::Result<()> {
    let Some(mark) = mark else { return Ok(()) };
    option::set(socket.as_fd(), SOL_SOCKET, SO_MARK, mark.cast_signed()).map_err(|error| {
        let what = format!("the mark {mark:#x} (SO_MARK), which needs CAP_NET_ADMIN: {error}");
        io::Error::new(error.kind(), what)
    })
}

/// Sets an option that is a switch.
pub(crate) fn set(socket: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<()> {
    option::set(socket, level, name, 1)
}

/// Asks the kernel how large packets may be on their way: by a socket of its own, with the mark that routes look at,
/// which the process may set while it opens its links and not any more when it sends.
#[derive(Debug)]
pub(crate) struct PathProbe(io::Result<OwnedFd>);

impl PathProbe {
    /// For destinations of one IP version.
    pub(crate) fn new(family: Family, mark: Option<u32>) -> PathProbe {
        let any = match family {
            Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = open(any, SocketType::DGRAM, None);
        PathProbe(socket.and_then(|socket| set_mark(&socket, mark).map(|()| socket)))
    }

    /// The largest packet that the first link on the way takes, or the path as the kernel knows it; `None` if it does
    /// not say.
    pub(crate) fn mtu_towards(&self, to: IpAddr) -> Option<u32> {
        let socket = self.0.as_ref().ok()?;
        // A connection before has chosen a source address, which may not be right for this one.
        rustix::net::connect_unspec(socket).ok()?;
        rustix::net::connect(socket, &SocketAddr::new(to, 9)).ok()?;
        if to.is_ipv6() { sockopt::ipv6_mtu(socket).ok() } else { sockopt::ip_mtu(socket).ok() }
    }
}

// asm-generic/socket.h.
const SOL_SOCKET: i32 = 1;
const SO_MARK: i32 = 36;
// linux/in.h, linux/in6.h.
pub(crate) const IPPROTO_IP: i32 = 0;
const IP_PKTINFO: i32 = 8;
const IP_RECVTTL: i32 = 12;
pub(crate) const IPPROTO_IPV6: i32 = 41;
const IPV6_RECVPKTINFO: i32 = 49;
const IPV6_RECVHOPLIMIT: i32 = 51;
