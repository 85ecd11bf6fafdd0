//! Many datagrams by one system call: sendmmsg(2).

use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::address::Name;
use crate::control::{Buffer, Control};

/// What sendmmsg(2) needs, kept from call to call.
pub struct Sender {
    names: Box<[Name]>,
    controls: Box<[Buffer]>,
    vectors: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
}

// SAFETY: the raw pointers are used within one `Outgoing` only, which borrows what they point to.
unsafe impl Send for Sender {}

impl Sender {
    /// Room for `messages` datagrams of `parts` slices in all.
    pub fn new(messages: usize, parts: usize) -> Sender {
        // SAFETY: `mmsghdr` and `iovec` are plain data of the C interface, for which zero is valid.
        let (header, vector) =
            unsafe { (std::mem::zeroed::<libc::mmsghdr>(), std::mem::zeroed::<libc::iovec>()) };
        Sender {
            names: vec![Name::empty(); messages].into(),
            controls: vec![Buffer::EMPTY; messages].into(),
            vectors: vec![vector; parts].into(),
            headers: vec![header; messages].into(),
        }
    }

    /// Begins an empty batch.
    pub fn start<'p>(&mut self) -> Outgoing<'_, 'p> {
        Outgoing { sender: self, messages: 0, parts: 0, first_part: 0, packets: PhantomData }
    }
}

/// A batch in the making; `'p` is the life of the bytes that it points to.
pub struct Outgoing<'s, 'p> {
    sender: &'s mut Sender,
    messages: usize,
    parts: usize,
    first_part: usize,
    packets: PhantomData<&'p [u8]>,
}

impl<'p> Outgoing<'_, 'p> {
    /// Whether there is room for one more part, and a message to end it.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.parts < self.sender.vectors.len() && self.messages < self.sender.headers.len()
    }

    /// Appends bytes to the message in the making.
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    pub fn part(&mut self, bytes: &'p [u8]) {
        let vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        self.sender.vectors[self.parts] = vector;
        self.parts += 1;
    }

    /// Ends the message in the making: it goes to `to`, or to the socket's peer.
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    pub fn end(&mut self, to: Option<SocketAddr>, control: &Control) {
        let i = self.messages;
        let header = &mut self.sender.headers[i].msg_hdr;
        header.msg_namelen = to.map_or(0, |to| self.sender.names[i].set(to));
        let v6 = to.is_some_and(|to| to.is_ipv6());
        header.msg_controllen = self.sender.controls[i].write(control, v6) as _;
        // For now the first part's place; `send` makes pointers of all.
        header.msg_iovlen = (self.parts - self.first_part) as _;
        self.first_part = self.parts;
        self.messages += 1;
    }

    /// Number of messages ended.
    #[inline]
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Sends the messages from `first` on without waiting; returns how many the kernel took. It says why it
    /// did not take one only when that is the first.
    ///
    /// # Errors
    /// Those of sendmmsg(2) for message `first`.
    ///
    /// # Panics
    /// If there are no messages from `first` on.
    pub fn send(&mut self, socket: BorrowedFd<'_>, first: usize) -> io::Result<usize> {
        assert!(first < self.messages);
        let Sender { names, controls, vectors, headers } = &mut *self.sender;
        let (names, controls, vectors) = (names.as_mut_ptr(), controls.as_mut_ptr(), vectors.as_mut_ptr());
        let mut part = 0;
        for (i, header) in headers[..self.messages].iter_mut().enumerate() {
            let header = &mut header.msg_hdr;
            // SAFETY: `i` is below `messages`, `part` at most `parts`: inside the boxes, or one behind.
            let (name, control, vector) = unsafe { (names.add(i), controls.add(i), vectors.add(part)) };
            header.msg_name = name.cast();
            header.msg_control = control.cast();
            header.msg_iov = vector;
            part += header.msg_iovlen;
        }
        // SAFETY: the headers from `first` to `messages` have been made above from parts whose bytes live for
        // `'p`, which `self` keeps borrowed; the kernel reads them and writes only `msg_len`.
        let n = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr().add(first),
                (self.messages - first) as libc::c_uint,
                libc::MSG_DONTWAIT as _,
            )
        };
        crate::check(n)
    }
}
