//! ESP and AH without UDP (RFC 4303, RFC 4302), and ICMP about packets that were too big: raw sockets.
//!
//! Over IPv4 the kernel gives the packet with its header, over IPv6 without: there it is made anew from what
//! the kernel says. Extension headers in front are lost, which ESP does not mind; AH covers them, so over IPv6
//! AH opens only without such headers (RFC 4302 3.3.3.1.2). What is sent goes out header and all.
//!
//! The kernel has put fragments together. A raw socket sees packets beside the kernel's own IPsec, if that has
//! any SAs.

mod whole;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use forebay_links_sys::{Receiver, option};
use forebay_wire::{Family, protocol};
use rustix::net::Protocol;

use crate::link::{Link, RxDrops, TxReport};
use crate::outer_header::OuterHeader;
use crate::{bpf, socket};
pub(crate) use whole::{Whole, sending_socket};

/// The most packets that one system call brings.
const MESSAGES: usize = 64;

/// The purpose of a raw socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carries {
    /// ESP, IP protocol 50.
    Esp,
    /// AH, IP protocol 51.
    Ah,
    /// The ICMP errors that report a packet too big: type 3 code 4 (RFC 1191), ICMPv6 type 2 (RFC 8201).
    TooBig,
}

/// Options of raw sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawOptions {
    /// The address they have; `0.0.0.0` and `::` for all addresses of a family.
    pub local: IpAddr,
    /// The packets that they carry.
    pub carries: Carries,
    /// Number of sockets, each for a thread of its own; which gets a packet is [`udp::steer`]'s to say.
    ///
    /// [`udp::steer`]: crate::udp::steer
    pub workers: usize,
    /// Bytes that may wait in the kernel, in and out: beyond the system's limit with `CAP_NET_ADMIN`.
    pub buffer: usize,
    /// Firewall mark of what is sent (`SO_MARK`), by which routing rules may choose its way.
    pub mark: Option<u32>,
}

impl RawOptions {
    /// One socket for all addresses of a family, with 4 MiB of buffer.
    pub fn new(family: Family, carries: Carries) -> RawOptions {
        let local = match family {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        };
        RawOptions { local, carries, workers: 1, buffer: 4 << 20, mark: None }
    }
}

/// Opens the sockets.
///
/// # Errors
/// Without `CAP_NET_RAW`, for a mark without `CAP_NET_ADMIN`, or if the address is not the machine's.
pub fn open(options: &RawOptions) -> io::Result<Vec<RawLink>> {
    (0..options.workers).map(|worker| RawLink::open(options, worker)).collect()
}

/// One raw socket.
pub struct RawLink {
    socket: OwnedFd,
    family: Family,
    protocol: u8,
    local: IpAddr,
    receiver: Receiver,
    next: usize,
    filled: usize,
    outer: OuterHeader,
    whole: Whole,
    passed_over: RxDrops,
}

impl RawLink {
    fn open(options: &RawOptions, worker: usize) -> io::Result<RawLink> {
        let family = Family::of(options.local);
        let protocol = match (options.carries, family) {
            (Carries::Esp, _) => protocol::ESP,
            (Carries::Ah, _) => protocol::AH,
            (Carries::TooBig, Family::V4) => protocol::ICMP,
            (Carries::TooBig, Family::V6) => protocol::ICMPV6,
        };
        let raw = std::num::NonZero::new(u32::from(protocol)).map(Protocol::from_raw);
        let socket = whole::open_socket(options.local, raw)?;
        attach_filter(socket.as_fd(), options, family, worker)?;
        if family == Family::V6 {
            socket::ask_for_header(&socket, true)?;
        }
        socket::set_buffers(&socket, options.buffer)?;
        socket::set_mark(&socket, options.mark)?;
        rustix::net::bind(&socket, &SocketAddr::new(options.local, 0))?;
        let mut receiver = Receiver::new(MESSAGES, usize::from(u16::MAX));
        // What has come before there was a filter and an address may be for others.
        for _ in 0..16 {
            if !matches!(receiver.receive(socket.as_fd(), MESSAGES), Ok(MESSAGES)) {
                break;
            }
        }
        Ok(RawLink {
            socket,
            family,
            protocol,
            local: options.local,
            receiver,
            next: 0,
            filled: 0,
            outer: OuterHeader::default(),
            whole: Whole::new(family, options.mark),
            passed_over: RxDrops::default(),
        })
    }

    /// Gives the next packet of those that were received; false if it is none.
    #[inline]
    fn give_next(&mut self, take: &mut dyn FnMut(&[u8], &[u8])) -> bool {
        let received = self.receiver.get(self.next);
        self.next += 1;
        if received.truncated {
            self.passed_over.truncated += 1;
            return false;
        }
        if self.family == Family::V4 {
            take(received.bytes, &[]);
            return true;
        }
        let to = received.control.local.unwrap_or(self.local);
        let from = received.from.map(|from| from.ip());
        let sound = from.is_some_and(|from| self.outer.start_ip(from, to, self.protocol, &received.control));
        if !sound {
            self.passed_over.malformed += 1;
            return false;
        }
        take(self.outer.before(received.bytes.len()), received.bytes);
        true
    }
}

/// Lets only those packets through that are meant: of a worker, by SPI; of ICMP, by type.
fn attach_filter(
    socket: BorrowedFd<'_>,
    options: &RawOptions,
    family: Family,
    worker: usize,
) -> io::Result<()> {
    const SO_ATTACH_FILTER: i32 = 26;
    const ALL: u32 = u32::MAX;
    // Over IPv4 the filter sees the IP header too.
    let start = if family == Family::V4 { bpf::index_behind_ipv4() } else { bpf::index_at_start() };
    let program = match options.carries {
        Carries::TooBig => {
            let which = if family == Family::V4 { 0x0304 } else { 0x0200 };
            [
                start,
                bpf::load_half_indexed(0),
                bpf::jump_if_equal(which, 0, 1),
                bpf::end_with(ALL),
                bpf::end_with(0),
            ]
            .to_vec()
        }
        _ if options.workers < 2 => return Ok(()),
        carries => {
            // RFC 4303 2.1, RFC 4302 2.4.
            let spi_at = if carries == Carries::Esp { 0 } else { 4 };
            [
                start,
                bpf::load_word_indexed(spi_at),
                bpf::modulo(options.workers as u32),
                bpf::jump_if_equal(worker as u32, 0, 1),
                bpf::end_with(ALL),
                bpf::end_with(0),
            ]
            .to_vec()
        }
    };
    option::attach(socket, SO_ATTACH_FILTER, &program)
}

impl Link for RawLink {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let mut given = 0;
        while given < room {
            if self.next < self.filled {
                given += usize::from(self.give_next(take));
                continue;
            }
            match self.receiver.receive(self.socket.as_fd(), (room - given).min(MESSAGES)) {
                Ok(count) => (self.next, self.filled) = (0, count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if given > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(given)
    }

    /// Whatever the protocol, packets of the socket's family go out as they are; but that the kernel computes
    /// an IPv4 header's checksum, and puts an identification in the place of zero where fragmentation is
    /// allowed, which AH would not have. IPv4 packets that are too big and may be fragmented are.
    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let mut sent = TxReport::default();
        self.whole.send(self.socket.as_fd(), packets, &mut sent);
        sent
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn pending(&self) -> bool {
        self.next < self.filled
    }

    fn rx_drops(&self) -> RxDrops {
        let overrun = option::dropped(self.socket.as_fd()).unwrap_or(0);
        RxDrops { overrun: overrun.into(), ..self.passed_over }
    }
}
