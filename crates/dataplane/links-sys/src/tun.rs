//! TUN devices: a network interface whose packets come to a descriptor.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// What a queue takes off the kernel's hands (`TUNSETOFFLOAD`, linux/if_tun.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads(pub u32);

impl Offloads {
    /// Packets whose checksum is not complete.
    pub const CHECKSUM: Offloads = Offloads(0x01);
    /// TCP super-packets over IPv4 and IPv6, also such with CWR; checksums are a condition.
    pub const TCP: Offloads = Offloads(0x01 | 0x02 | 0x04 | 0x08);
    /// UDP super-packets over IPv4 and IPv6 (Linux 6.2); checksums are a condition.
    pub const UDP: Offloads = Offloads(0x01 | 0x20 | 0x40);

    /// Both.
    #[must_use]
    pub fn and(self, other: Offloads) -> Offloads {
        Offloads(self.0 | other.0)
    }
}

/// Opens a queue of TUN device `name`, which is made if it does not exist; a name with `%d` gets a number,
/// an empty one is the kernel's choice. Several queues of one device need `multi_queue` on each. Each
/// packet has a `virtio_net_hdr` of ten bytes in front if `offloads` is set. The descriptor does not
/// block; the device goes when its last queue is closed. Returns the queue and the device's name.
///
/// # Errors
/// Those of open(2) on the TUN device and of `TUNSETIFF`; `InvalidInput` if the name is too long.
pub fn open(name: &str, multi_queue: bool, offloads: bool) -> io::Result<(OwnedFd, String)> {
    // SAFETY: `ifreq` is plain data of the C interface, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    if name.len() >= request.ifr_name.len() || name.bytes().any(|b| b == 0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let mut flags = libc::IFF_TUN | libc::IFF_NO_PI;
    if multi_queue {
        flags |= libc::IFF_MULTI_QUEUE;
    }
    if offloads {
        flags |= libc::IFF_VNET_HDR;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;

    let file: File =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    // SAFETY: TUNSETIFF reads and writes an `ifreq`, which lives on.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    crate::check(result)?;
    let name = request.ifr_name.iter().take_while(|&&c| c != 0).map(|&c| char::from(c as u8)).collect();
    Ok((file.into(), name))
}

/// Says which offloads the reader of a queue understands.
///
/// # Errors
/// `InvalidInput` if the kernel does not support one of them.
pub fn set_offloads(queue: BorrowedFd<'_>, offloads: Offloads) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    let result =
        unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETOFFLOAD as _, libc::c_ulong::from(offloads.0)) };
    crate::check(result).map(drop)
}

/// Has a program look at each packet in front of the queues of a device (`TUNSETFILTEREBPF`, Linux 4.16): what it takes no byte of is
/// dropped. Without a program all are taken.
///
/// # Errors
/// If the program is for another purpose.
pub fn set_filter(queue: BorrowedFd<'_>, program: Option<BorrowedFd<'_>>) -> io::Result<()> {
    const TUNSETFILTEREBPF: u32 = 0x8004_54e1;
    let number: libc::c_int = program.map_or(-1, |program| program.as_raw_fd());
    // SAFETY: TUNSETFILTEREBPF reads a descriptor's number, which lives on.
    let result = unsafe { libc::ioctl(queue.as_raw_fd(), TUNSETFILTEREBPF as _, &raw const number) };
    crate::check(result).map(drop)
}
