//! A socket of AF_XDP: memory for frames and its four rings.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::sockopt;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpOptionsFlags, XdpRingOffset, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

use crate::area::{Area, Memory};
use crate::frames::{Arrived, FRAME, Frames};
use crate::link::Copying;
use crate::ring::{Consumer, Producer};

/// The most bytes of a frame that comes.
pub(crate) const MAX_FRAME: usize = FRAME - 256;

/// One socket, for one queue of one interface.
pub(crate) struct Xsk {
    // The rings are the socket's memory, and the kernel uses the frames while the socket is open: it is
    // closed first.
    socket: OwnedFd,
    frames: Frames<Area>,
    /// Frames are left that the kernel would have sent with more room.
    is_stuck: bool,
}

impl Xsk {
    /// Opens a socket with `frames` places, a power of two, for each direction.
    pub(crate) fn open(interface: u32, queue: u32, frames: u32, copying: Copying) -> io::Result<Xsk> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        let len = 2 * frames as usize * FRAME;
        let area = Area::anonymous(len)?;
        let umem = XdpUmemReg {
            addr: area.at(0, len).addr().get() as u64,
            len: len as u64,
            chunk_size: FRAME as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&socket, umem)?;
        sockopt::set_xdp_umem_fill_ring_size(&socket, frames)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, frames)?;
        sockopt::set_xdp_rx_ring_size(&socket, frames)?;
        sockopt::set_xdp_tx_ring_size(&socket, frames)?;
        let offsets = sockopt::xdp_mmap_offsets(&socket)?;
        let fd = socket.as_fd();
        let ring = |offsets: &XdpRingOffset, entry: usize, page: u64| {
            Area::of(fd, offsets.desc as usize + frames as usize * entry, page)
        };
        let (desc, place) = (size_of::<XdpDesc>(), size_of::<u64>());
        let receive = Consumer::new(ring(&offsets.rx, desc, XDP_PGOFF_RX_RING)?, &offsets.rx, frames);
        let fill = Producer::new(ring(&offsets.fr, place, XDP_UMEM_PGOFF_FILL_RING)?, &offsets.fr, frames);
        let transmit = Producer::new(ring(&offsets.tx, desc, XDP_PGOFF_TX_RING)?, &offsets.tx, frames);
        let completion = ring(&offsets.cr, place, XDP_UMEM_PGOFF_COMPLETION_RING)?;
        let completion = Consumer::new(completion, &offsets.cr, frames);
        let frames = Frames::new((receive, fill), (transmit, completion), area, frames);
        let xsk = Xsk { socket, frames, is_stuck: false };
        let copying = match copying {
            Copying::Best => SocketAddrXdpFlags::empty(),
            Copying::Copy => SocketAddrXdpFlags::XDP_COPY,
            Copying::ZeroCopy => SocketAddrXdpFlags::XDP_ZEROCOPY,
        };
        let address = SocketAddrXdp::new(SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP | copying, interface, queue);
        rustix::net::bind(&xsk.socket, &address)?;
        Ok(xsk)
    }

    /// Whether the driver uses this memory itself.
    pub(crate) fn is_zero_copy(&self) -> bool {
        sockopt::xdp_options(&self.socket)
            .is_ok_and(|options| options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
    }

    /// See [`Frames::take`].
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Arrived> {
        self.frames.take()
    }

    /// See [`Frames::bytes`].
    #[inline]
    pub(crate) fn bytes<'a>(&'a self, frame: &'a Arrived) -> &'a [u8] {
        self.frames.bytes(frame)
    }

    /// See [`Frames::give_back`].
    #[inline]
    pub(crate) fn give_back(&mut self, frame: Arrived) {
        self.frames.give_back(frame);
    }

    /// Tells the kernel what has been taken and given back, and wakes it if that has to be.
    #[inline]
    pub(crate) fn received(&mut self) {
        self.frames.publish_given();
        if self.frames.fill.needs_wakeup() {
            // The driver runs out of buffers otherwise. The call is only a wake-up; there is nothing to read.
            let _ = rustix::net::recv(&self.socket, &mut [0u8; 0][..], RecvFlags::DONTWAIT);
        }
    }

    /// Whether frames have come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.frames.receive.is_waiting()
    }

    /// See [`Frames::put`]; the frame goes with `flush`.
    #[inline]
    pub(crate) fn put(&mut self, head: &[u8], body: &[u8]) -> bool {
        self.frames.put(head, body)
    }

    /// Makes the kernel send the frames that have been put. The kernel may leave some for lack of space in the
    /// socket's memory or in the device's queue; it then does not wake a thread that polls for reading, see
    /// [`Xsk::is_stuck`].
    ///
    /// # Errors
    /// If the interface is down or gone; what could not be sent yet is no error.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        use rustix::io::Errno;
        self.frames.transmit.publish();
        let mut result = Ok(());
        let mut waiting = self.frames.transmit.waiting();
        while waiting > 0 && self.frames.transmit.needs_wakeup() {
            match rustix::net::send(&self.socket, &[], SendFlags::DONTWAIT) {
                Ok(_) | Err(Errno::INTR | Errno::AGAIN | Errno::BUSY | Errno::NOBUFS) => {}
                Err(error) => result = Err(error.into()),
            }
            // Without a driver's help the kernel sends some dozens a call.
            let left = self.frames.transmit.waiting();
            if left == waiting {
                break;
            }
            waiting = left;
        }
        // A driver that needs no waking goes on by itself.
        self.is_stuck = result.is_ok() && waiting > 0 && self.frames.transmit.needs_wakeup();
        self.frames.collect();
        result
    }

    /// Whether the last `flush` has left frames that another one is to send.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// Frames that the kernel had no place for.
    pub(crate) fn dropped(&self) -> u64 {
        sockopt::xdp_statistics(&self.socket)
            .map_or(0, |counts| counts.rx_dropped + counts.rx_ring_full.unwrap_or(0))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
