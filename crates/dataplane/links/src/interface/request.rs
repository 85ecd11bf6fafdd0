//! One rtnetlink request and the kernel's answer.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use forebay_netlink::{ACK, Builder, DONE, ERROR, Frames, put_attribute};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

/// A request in the making.
pub(super) struct Request {
    kind: u16,
    flags: u16,
    /// The fixed part, and attributes behind it.
    body: Vec<u8>,
}

impl Request {
    pub(super) fn new(kind: u16, flags: u16) -> Request {
        Request { kind, flags, body: vec![] }
    }

    /// `ifinfomsg`: of the interface's flags, those in `mask` become `flags`.
    pub(super) fn link(mut self, index: u32, flags: u32, mask: u32) -> Request {
        self.body.extend([0; 4]);
        self.body.extend([index, flags, mask].map(u32::to_ne_bytes).as_flattened());
        self
    }

    /// `netconfmsg`: only a family.
    pub(super) fn family(mut self, family: u8) -> Request {
        self.body.extend([family, 0, 0, 0]);
        self
    }

    /// `ifaddrmsg`.
    pub(super) fn address(mut self, family: u8, prefix: u8, index: u32, flags: u8) -> Request {
        self.body.extend([family, prefix, flags, 0]);
        self.body.extend(index.to_ne_bytes());
        self
    }

    /// The scope in the `ifaddrmsg`.
    pub(super) fn scope(mut self, scope: u8) -> Request {
        if let Some(place) = self.body.get_mut(3) {
            *place = scope;
        }
        self
    }

    /// `rtmsg`: a unicast route of the main table, to what is on the link, set up at start.
    pub(super) fn route(self, family: u8, prefix: u8) -> Request {
        const RT_SCOPE_LINK: u8 = 253;
        const RTN_UNICAST: u8 = 1;
        self.main_route(family, prefix, RT_SCOPE_LINK, RTN_UNICAST)
    }

    /// `rtmsg`: a route of the main table that discards.
    pub(super) fn blackhole(self, family: u8, prefix: u8) -> Request {
        const RT_SCOPE_UNIVERSE: u8 = 0;
        const RTN_BLACKHOLE: u8 = 6;
        self.main_route(family, prefix, RT_SCOPE_UNIVERSE, RTN_BLACKHOLE)
    }

    fn main_route(mut self, family: u8, prefix: u8, scope: u8, kind: u8) -> Request {
        const RT_TABLE_MAIN: u8 = 254;
        const RTPROT_BOOT: u8 = 3;
        self.body.extend([family, prefix, 0, 0, RT_TABLE_MAIN, RTPROT_BOOT, scope, kind]);
        self.body.extend([0; 4]);
        self
    }

    /// `rtattr`.
    pub(super) fn attribute(mut self, kind: u16, value: &[u8]) -> Request {
        put_attribute(&mut self.body, kind, value);
        self
    }

    /// `rtattr` with an address.
    pub(super) fn ip(self, kind: u16, address: IpAddr) -> Request {
        match address {
            IpAddr::V4(address) => self.attribute(kind, &address.octets()),
            IpAddr::V6(address) => self.attribute(kind, &address.octets()),
        }
    }

    /// `rtmsg` of a question: the route to an address of `len` bits.
    pub(super) fn route_to(mut self, family: u8, len: u8) -> Request {
        self.body.extend([family, len, 0, 0, 0, 0, 0, 0]);
        self.body.extend([0; 4]);
        self
    }

    /// The same of the route as it stands in the table, whose prefix is in the answer (`RTM_F_FIB_MATCH`).
    pub(super) fn route_as_it_stands(mut self, family: u8) -> Request {
        const FIB_MATCH: u32 = 0x2000;
        let len = if family == super::AF_INET6 { 128 } else { 32 };
        self.body.extend([family, len, 0, 0, 0, 0, 0, 0]);
        self.body.extend(FIB_MATCH.to_ne_bytes());
        self
    }

    /// A fixed part that an answer had.
    pub(super) fn head(mut self, head: &[u8]) -> Request {
        self.body.extend(head);
        self
    }

    /// `ndmsg`.
    pub(super) fn neighbour(mut self, family: u8, index: u32, state: u16, flags: u8) -> Request {
        self.body.extend([family, 0, 0, 0]);
        self.body.extend(index.to_ne_bytes());
        self.body.extend(state.to_ne_bytes());
        self.body.extend([flags, 0]);
        self
    }

    /// Sends the request and waits for the answer, which is an error or that all is well.
    pub(super) fn send(mut self, socket: &OwnedFd) -> io::Result<()> {
        self.flags |= ACK;
        match self.exchange(socket, &mut [0; ANSWER])? {
            None => Ok(()),
            Some(_) => Err(malformed()),
        }
    }

    /// Sends the question and gives the answer's bytes behind the netlink header to `read`.
    pub(super) fn ask<T>(self, socket: &OwnedFd, read: impl FnOnce(&[u8]) -> Option<T>) -> io::Result<T> {
        let mut room = [0; ANSWER];
        self.exchange(socket, &mut room)?.and_then(read).ok_or_else(malformed)
    }

    /// Sends a question that has many answers and gives each to `read`, as in [`Request::ask`].
    pub(super) fn ask_for_all(self, socket: &OwnedFd, mut read: impl FnMut(&[u8])) -> io::Result<()> {
        let mut room = vec![0; DUMPED];
        self.tell(socket)?;
        loop {
            let (len, whole) = rustix::net::recv(socket, &mut room[..], RecvFlags::TRUNC)?;
            let part = room.get(..len).filter(|part| part.len() == whole).ok_or_else(malformed)?;
            for frame in Frames::new(part) {
                let frame = frame.map_err(|_| malformed())?;
                match frame.kind {
                    DONE => return Ok(()),
                    ERROR => return Err(refusal(frame.body)?.unwrap_or_else(malformed)),
                    _ => read(frame.body),
                }
            }
        }
    }

    fn tell(self, socket: &OwnedFd) -> io::Result<()> {
        const SEQUENCE: u32 = 1;
        let request = Builder::new(self.kind, self.flags, SEQUENCE, &self.body).finish();
        rustix::net::sendto(socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    /// `None` for a plain acknowledgement.
    fn exchange<'a>(self, socket: &OwnedFd, room: &'a mut [u8; ANSWER]) -> io::Result<Option<&'a [u8]>> {
        self.tell(socket)?;
        let (len, _) = rustix::net::recv(socket, &mut room[..], RecvFlags::empty())?;
        let frame = Frames::new(&room[..len]).next().and_then(Result::ok).ok_or_else(malformed)?;
        if frame.kind != ERROR {
            return Ok(Some(frame.body));
        }
        refusal(frame.body)?.map_or(Ok(None), Err)
    }
}

/// What the kernel refuses with; `None` for an acknowledgement.
fn refusal(body: &[u8]) -> io::Result<Option<io::Error>> {
    let code = body.first_chunk().map(|code| i32::from_ne_bytes(*code)).ok_or_else(malformed)?;
    Ok((code != 0).then(|| io::Error::from_raw_os_error(code.wrapping_neg())))
}

/// Room for a part of many answers: the kernel's parts are at most that long.
const DUMPED: usize = 32 * 1024;

/// Room for an answer: that about a link is the largest.
const ANSWER: usize = 16 * 1024;

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// A socket for requests, in the namespace that the thread is in.
pub(super) fn open() -> io::Result<OwnedFd> {
    // Protocol 0 is NETLINK_ROUTE.
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
}

/// A socket for the ioctls that want any.
pub(super) fn any_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}
