//! ESP in UDP (RFC 3948) beside an IKE daemon that has the port.
//!
//! A daemon such as charon binds UDP port 4500 itself and marks its socket as one for ESP in UDP (`UDP_ENCAP`), so no
//! other process can bind the port. This link receives a copy of the packets by a packet socket, whose filter ignores
//! IKE messages and keepalives, and sends by a raw socket. The kernel receives the packets as well: it looks for an
//! SA of its own and silently drops packets for which it has none (`XfrmInNoStates` in /proc/net/xfrm_stat). A kernel
//! that has no ESP, or has not loaded it yet (esp4, esp6: the first SA loads them), answers senders with the ICMP
//! error that the port is closed.
//!
//! A packet socket receives packets before the firewall's input rules are applied. It receives fragments one by one:
//! those of ESP in UDP are passed on if the first fragment of a packet arrives first.

mod filter;
mod fragments;

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use forebay_links_sys::{Control, Receiver, option};
use forebay_wire::esp::NON_ESP_MARKER;
use forebay_wire::{Family, Ip, Udp};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with};

use crate::link::{Link, RxDrops, TxReport};
use crate::offload::{Kind, VNET_LEN, VnetHeader};
use crate::outer_header::OuterHeader;
use crate::raw::{Whole, sending_socket};
use crate::socket;
use fragments::Fragments;

/// The most packets, or trains of them, that one system call brings.
const MESSAGES: usize = 32;
/// What stands before the IP header: that of the kernel's offloads, and the link layer's, which is short.
const BEFORE: usize = VNET_LEN + 64;
/// The shortest payload that is ESP for the kernel too, which leaves shorter ones to the daemon: more than SPI and
/// sequence number.
const SHORTEST: usize = 9;

/// What a link is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BesideOptions {
    /// Address and port; `0.0.0.0` and `::` for all addresses of a family.
    pub local: SocketAddr,
    /// Number of links, each for a thread of its own; which gets a packet is [`udp::steer`]'s to say. Fragments are
    /// the first's.
    ///
    /// [`udp::steer`]: crate::udp::steer
    pub workers: usize,
    /// Bytes that may wait in the kernel, in and out: beyond the system's limit with `CAP_NET_ADMIN`.
    pub buffer: usize,
    /// Firewall mark of what is sent (`SO_MARK`), by which routing rules may choose its way.
    pub mark: Option<u32>,
}

impl BesideOptions {
    /// One link with 4 MiB of buffer.
    pub fn at(local: SocketAddr) -> BesideOptions {
        BesideOptions { local, workers: 1, buffer: 4 << 20, mark: None }
    }
}

/// Opens the links of an address.
///
/// # Errors
/// Without `CAP_NET_RAW`, and for a mark without `CAP_NET_ADMIN`.
pub fn open(options: &BesideOptions) -> io::Result<Vec<BesideLink>> {
    (0..options.workers).map(|worker| BesideLink::open(options, worker)).collect()
}

/// A packet socket and a raw one.
pub struct BesideLink {
    packets: OwnedFd,
    out: OwnedFd,
    receiver: Receiver,
    /// The next packet of those that were received, of how many.
    next: usize,
    filled: usize,
    train: Train,
    fragments: Fragments,
    whole: Whole,
    passed_over: RxDrops,
}

/// What is left of a packet, or of a train of them, that was received.
#[derive(Default)]
struct Train {
    /// Payload that was not given yet, in the message's bytes.
    rest: Range<usize>,
    /// Of each packet but the last.
    segment: usize,
    outer: OuterHeader,
}

impl BesideLink {
    fn open(options: &BesideOptions, worker: usize) -> io::Result<BesideLink> {
        let family = Family::of(options.local.ip());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let ethertype: u16 = if family == Family::V4 { ETH_P_IP } else { ETH_P_IPV6 };
        let ethertype = std::num::NonZero::new(u32::from(ethertype.to_be())).map(Protocol::from_raw);
        // The offloads' header wants a socket that gives the link layer's too.
        let packets = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, ethertype)?;
        option::attach(packets.as_fd(), SO_ATTACH_FILTER, &filter::program(options, worker))?;
        for switch in [PACKET_VNET_HDR, PACKET_AUXDATA] {
            socket::set(packets.as_fd(), SOL_PACKET, switch)?;
        }
        socket::set_buffers(&packets, options.buffer)?;
        let mut receiver = Receiver::new(MESSAGES, BEFORE + usize::from(u16::MAX));
        // What has come before there was a filter may be anything.
        for _ in 0..1_024 {
            if receiver.receive(packets.as_fd(), MESSAGES).is_err() {
                break;
            }
        }
        let out = sending_socket(options.local.ip())?;
        socket::set_buffers(&out, options.buffer)?;
        socket::set_mark(&out, options.mark)?;
        if !options.local.ip().is_unspecified() {
            rustix::net::bind(&out, &SocketAddr::new(options.local.ip(), 0))?;
        }
        Ok(BesideLink {
            packets,
            out,
            receiver,
            next: 0,
            filled: 0,
            train: Train::default(),
            fragments: Fragments::new(options.local.port()),
            whole: Whole::new(family, options.mark),
            passed_over: RxDrops::default(),
        })
    }

    /// Gives the next packet; false if there is none in what comes next.
    #[inline]
    fn give_next(&mut self, take: &mut dyn FnMut(&[u8], &[u8])) -> bool {
        let received = self.receiver.get(self.next);
        let train = &mut self.train;
        if train.rest.is_empty() {
            let found = match received.truncated {
                true => Err(Unfit::Truncated),
                false => look(received.bytes, received.control.network, train, &mut self.fragments),
            };
            match found {
                Ok(Found::Train) => {}
                Ok(Found::Fragment(at)) => {
                    self.next += 1;
                    take(&received.bytes[at], &[]);
                    return true;
                }
                Err(unfit) => {
                    self.next += 1;
                    self.passed_over.truncated += u64::from(unfit == Unfit::Truncated);
                    self.passed_over.malformed += u64::from(unfit == Unfit::Malformed);
                    return false;
                }
            }
        }
        let to = train.rest.end.min(train.rest.start + train.segment);
        let payload = &received.bytes[train.rest.start..to];
        train.rest.start = to;
        self.next += usize::from(train.rest.is_empty());
        // The socket's filter has not checked the later packets of a GRO batch for the marker.
        if payload.len() < SHORTEST || payload.starts_with(NON_ESP_MARKER) {
            self.passed_over.ike += u64::from(payload.starts_with(NON_ESP_MARKER));
            return false;
        }
        take(train.outer.before(payload.len()), payload);
        true
    }
}

/// What a message of the packet socket is.
enum Found {
    /// Packets, which stand in the train now.
    Train,
    /// A fragment of ESP in UDP, which is at these bytes.
    Fragment(Range<usize>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unfit {
    Truncated,
    Malformed,
    /// A fragment of something else.
    Foreign,
}

/// Looks at the bytes of a message, in which the IP header stands `network` bytes behind the offloads' header.
fn look(
    bytes: &[u8],
    network: Option<u16>,
    train: &mut Train,
    fragments: &mut Fragments,
) -> Result<Found, Unfit> {
    let offloads = VnetHeader::parse(bytes.first_chunk().ok_or(Unfit::Malformed)?);
    let at = VNET_LEN + usize::from(network.ok_or(Unfit::Malformed)?);
    let packet = bytes.get(at..).ok_or(Unfit::Malformed)?;
    let ip = Ip::parse(packet).map_err(|_| Unfit::Malformed)?;
    if fragments::is_fragment(&ip) {
        let is_ours = fragments.is_ours(&ip);
        return if is_ours { Ok(Found::Fragment(at..at + ip.bytes().len())) } else { Err(Unfit::Foreign) };
    }
    let (header, hop_limit) = match &ip {
        Ip::V4(ip) => (ip.header_len(), ip.ttl()),
        Ip::V6(ip) => (Family::V6.header_len(), ip.hop_limit()),
    };
    let udp = Udp::parse(&ip.bytes()[header..]).map_err(|_| Unfit::Malformed)?;
    let from = SocketAddr::new(ip.source(), udp.source_port());
    let to = SocketAddr::new(ip.destination(), udp.destination_port());
    let class = Some(ip.traffic_class());
    let control = Control { traffic_class: class, hop_limit: Some(hop_limit), ..Control::default() };
    train.outer.start_udp(from, to, &control);
    let (len, start) = (udp.payload().len(), at + header + forebay_wire::udp::HEADER);
    train.segment = match offloads.kind() {
        Ok(None) => len,
        Ok(Some(Kind::Udp)) => usize::from(offloads.gso_size),
        _ => return Err(Unfit::Malformed),
    };
    train.segment = train.segment.max(1);
    train.rest = start..start + len;
    if len == 0 { Err(Unfit::Malformed) } else { Ok(Found::Train) }
}

impl Link for BesideLink {
    /// The outer headers are rebuilt from the received addresses, ports, DSCP, ECN and TTL. The UDP checksum is zero
    /// because the original was not verified; ESP has its own check (RFC 3948 2.1).
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let mut given = 0;
        while given < room {
            if self.next < self.filled {
                given += usize::from(self.give_next(take));
                continue;
            }
            match self.receiver.receive(self.packets.as_fd(), (room - given).min(MESSAGES)) {
                Ok(count) => (self.next, self.filled) = (0, count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Kernels before 6.2 have no word for a train of UDP in the offloads' header.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.passed_over.malformed += 1,
                Err(_) if given > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(given)
    }

    /// Packets go out as they are. IPv4 packets that are too big and may be fragmented are.
    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let mut sent = TxReport::default();
        self.whole.send(self.out.as_fd(), packets, &mut sent);
        sent
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.packets.as_fd()
    }

    fn pending(&self) -> bool {
        self.next < self.filled
    }

    fn rx_drops(&self) -> RxDrops {
        let overrun = option::dropped(self.packets.as_fd()).unwrap_or(0);
        RxDrops { overrun: overrun.into(), ..self.passed_over }
    }
}

// linux/if_packet.h, linux/if_ether.h, asm-generic/socket.h.
const SOL_PACKET: i32 = 263;
const PACKET_AUXDATA: i32 = 8;
const PACKET_VNET_HDR: i32 = 15;
const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;
const SO_ATTACH_FILTER: i32 = 26;
