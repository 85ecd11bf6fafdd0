//! Many datagrams by one system call: recvmmsg(2).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use crate::address::{NAME_LEN, Name};
use crate::control::{Buffer, Control, ROOM};

/// Buffers for datagrams, and what recvmmsg(2) needs to fill them.
pub struct Receiver {
    bytes: Box<[u8]>,
    names: Box<[Name]>,
    controls: Box<[Buffer]>,
    vectors: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
    filled: usize,
    stride: usize,
}

// SAFETY: the raw pointers point into the boxes of the same value, and no other value has copies of them.
unsafe impl Send for Receiver {}

/// One datagram.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Where it came from; `None` on sockets that say nothing of the Internet.
    pub from: Option<SocketAddr>,
    /// What goes with it.
    pub control: Control,
    /// Whether it was longer than the buffer.
    pub truncated: bool,
}

impl Receiver {
    /// Room for `messages` datagrams of `len` bytes each.
    pub fn new(messages: usize, len: usize) -> Receiver {
        // Not a multiple of a page: equal offsets would all share the same sets of the cache.
        let stride = len.next_multiple_of(64) + 320;
        // SAFETY: `mmsghdr` and `iovec` are plain data of the C interface, for which zero is valid.
        let zeroed = || unsafe { (std::mem::zeroed::<libc::mmsghdr>(), std::mem::zeroed::<libc::iovec>()) };
        let (header, vector) = zeroed();
        let vector = libc::iovec { iov_len: len, ..vector };
        Receiver {
            bytes: vec![0; messages * stride].into(),
            names: vec![Name::empty(); messages].into(),
            controls: vec![Buffer::EMPTY; messages].into(),
            vectors: vec![vector; messages].into(),
            headers: vec![header; messages].into(),
            filled: 0,
            stride,
        }
    }

    /// Takes the datagrams that are at hand, at most `limit`, without waiting; what was there before is
    /// gone. Returns their number.
    ///
    /// # Errors
    /// Those of recvmmsg(2), `WouldBlock` if there is none.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, limit: usize) -> io::Result<usize> {
        self.filled = 0;
        let count = limit.min(self.headers.len());
        let (names, controls) = (self.names.as_mut_ptr(), self.controls.as_mut_ptr());
        let (vectors, bytes) = (self.vectors.as_mut_ptr(), self.bytes.as_mut_ptr());
        for (i, header) in self.headers[..count].iter_mut().enumerate() {
            // The kernel changes lengths and flags; all else could stay, but pointers that are made anew
            // are never stale. SAFETY: `i` is inside each of the boxes, which have equal lengths, and so is its part
            // of `bytes`.
            let (name, control, vector) = unsafe {
                (*vectors.add(i)).iov_base = bytes.add(i * self.stride).cast();
                (names.add(i), controls.add(i), vectors.add(i))
            };
            header.msg_hdr.msg_name = name.cast();
            header.msg_hdr.msg_namelen = NAME_LEN;
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.cast();
            header.msg_hdr.msg_controllen = ROOM as _;
            header.msg_hdr.msg_flags = 0;
        }
        // SAFETY: each header points to a name, a control buffer and a vector of its own, the vector to its
        // own part of `bytes`; all live in `self`, which is borrowed mutably until the call is over.
        let n = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        self.filled = crate::check(n)?;
        Ok(self.filled)
    }

    /// Datagram `i` of the last call.
    ///
    /// # Panics
    /// If `i` is not below the number that the last call returned.
    #[inline]
    pub fn get(&self, i: usize) -> Received<'_> {
        assert!(i < self.filled);
        let header = &self.headers[i];
        let (at, room) = (i * self.stride, self.vectors[i].iov_len);
        Received {
            bytes: &self.bytes[at..at + room.min(header.msg_len as usize)],
            from: self.names[i].get(),
            control: self.controls[i].read(header.msg_hdr.msg_controllen),
            truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        }
    }
}
