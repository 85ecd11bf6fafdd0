//! A socket of AF_XDP: memory for frames and its four rings.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::sockopt;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

use crate::area::Area;
use crate::ring::{Consumer, Producer};

/// Bytes of a frame's place: what all kernels and drivers take, of which the kernel keeps 256.
pub(crate) const FRAME: usize = 4096;
/// The most bytes of a frame that comes.
pub(crate) const MAX_FRAME: usize = FRAME - 256;

/// One socket, for one queue of one interface.
pub(crate) struct Xsk {
    // The rings are the socket's memory, and the kernel uses the frames while the socket is open: it is
    // closed first.
    socket: OwnedFd,
    receive: Consumer<XdpDesc>,
    fill: Producer<u64>,
    transmit: Producer<XdpDesc>,
    completion: Consumer<u64>,
    /// Places for frames to be sent that nobody uses.
    free: Vec<u64>,
    frames: Area,
}

/// A frame that has come.
#[derive(Clone, Copy)]
pub(crate) struct Arrived(XdpDesc);

impl Xsk {
    /// Opens a socket with `frames` places, a power of two, for each direction.
    pub(crate) fn open(interface: u32, queue: u32, frames: u32) -> io::Result<Xsk> {
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
        let mut xsk = Xsk {
            receive: Consumer::map(fd, &offsets.rx, XDP_PGOFF_RX_RING, frames)?,
            fill: Producer::map(fd, &offsets.fr, XDP_UMEM_PGOFF_FILL_RING, frames)?,
            transmit: Producer::map(fd, &offsets.tx, XDP_PGOFF_TX_RING, frames)?,
            completion: Consumer::map(fd, &offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING, frames)?,
            free: (u64::from(frames)..2 * u64::from(frames)).map(|i| i * FRAME as u64).collect(),
            socket,
            frames: area,
        };
        for i in 0..u64::from(frames) {
            xsk.fill.put(i * FRAME as u64);
        }
        xsk.fill.publish();
        let address = SocketAddrXdp::new(SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP, interface, queue);
        rustix::net::bind(&xsk.socket, &address)?;
        Ok(xsk)
    }

    /// The next frame that has come. Its place is used again after `give_back`.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Arrived> {
        self.receive.take().map(Arrived)
    }

    /// The bytes of a frame that has come.
    #[inline]
    pub(crate) fn bytes(&self, frame: &Arrived) -> &[u8] {
        let (at, len) = (frame.0.addr as usize, frame.0.len as usize);
        if at >= self.frames.len() || len > self.frames.len() - at {
            return &[];
        }
        let start = self.frames.at(at, len);
        // SAFETY: the bytes are inside the mapping, which lives as long as `self`, and zeroed at first; the
        // kernel does not write them until `give_back`, for which `self` has to be borrowed mutably.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }

    /// Gives a frame's place back to be filled.
    #[inline]
    pub(crate) fn give_back(&mut self, frame: Arrived) {
        // In its place, wherever the frame started; there are as many places as the ring is long.
        let filled = self.fill.put(frame.0.addr & !(FRAME as u64 - 1));
        debug_assert!(filled);
    }

    /// Tells the kernel what has been taken and given back, and wakes it if that has to be.
    #[inline]
    pub(crate) fn received(&mut self) {
        self.receive.release();
        self.fill.publish();
        if self.fill.needs_wakeup() {
            // The driver runs out of places otherwise. It is not a read: there is nothing to be had.
            let _ = rustix::net::recv(&self.socket, &mut [0u8; 0][..], RecvFlags::DONTWAIT);
        }
    }

    /// Whether frames have come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.receive.is_waiting()
    }

    /// Puts a frame of two parts, at most [`FRAME`] bytes, to be sent; false if there is no room now. It goes
    /// with `flush`.
    #[inline]
    pub(crate) fn put(&mut self, head: &[u8], body: &[u8]) -> bool {
        let len = head.len() + body.len();
        assert!(len <= FRAME);
        if self.free.is_empty() {
            self.collect();
        }
        let Some(at) = self.free.pop() else { return false };
        let start = self.frames.at(at as usize, len);
        // SAFETY: the place is inside the mapping; it is in no ring, so nobody else reads or writes it, and
        // the parts are not in it, for nothing borrows places that are free.
        unsafe {
            let start = start.as_ptr();
            start.copy_from_nonoverlapping(head.as_ptr(), head.len());
            start.add(head.len()).copy_from_nonoverlapping(body.as_ptr(), body.len());
        }
        let frame = XdpDesc { addr: at, len: len as u32, options: XdpDescOptions::empty() };
        let put = self.transmit.put(frame);
        if !put {
            self.free.push(at);
        }
        put
    }

    /// Has the kernel send what has been put.
    ///
    /// # Errors
    /// If the interface is down or gone; what could not be sent yet is no error.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        use rustix::io::Errno;
        self.transmit.publish();
        // Without a driver's help the kernel sends some dozens a call.
        for _ in 0..64 {
            if self.transmit.waiting() == 0 || !self.transmit.needs_wakeup() {
                break;
            }
            match rustix::net::send(&self.socket, &[], SendFlags::DONTWAIT) {
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::BUSY | Errno::NOBUFS) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.collect();
        Ok(())
    }

    /// Gets the places of frames that have been sent.
    fn collect(&mut self) {
        while let Some(at) = self.completion.take() {
            let at = at & !(FRAME as u64 - 1);
            if (at as usize) < self.frames.len() && self.free.len() < self.free.capacity() {
                self.free.push(at);
            }
        }
        self.completion.release();
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
