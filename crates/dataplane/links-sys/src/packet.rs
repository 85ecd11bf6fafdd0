//! Frames sent by packet sockets (packet(7)).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// Sends a whole Ethernet frame out by the interface with this number. `socket` is a packet socket of type `SOCK_RAW`.
///
/// # Errors
/// What the system says.
pub fn send(socket: BorrowedFd<'_>, interface: u32, frame: &[u8]) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain numbers, for which zero is valid.
    let mut name: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    name.sll_family = libc::AF_PACKET as libc::sa_family_t;
    name.sll_ifindex = interface.cast_signed();
    // SAFETY: the frame and the name live as long as the call, with their true lengths, and the kernel only reads them.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            libc::MSG_DONTWAIT,
            (&raw const name).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    check(libc::c_int::try_from(sent).unwrap_or(-1)).map(drop)
}
