//! ESP in UDP (RFC 3948) by ordinary sockets: whole IP packets here, datagrams to the kernel.
//!
//! The kernel gives and takes trains of datagrams of equal size as one (`UDP_GRO`, `UDP_SEGMENT`), and
//! several such trains by one system call.

mod datagram;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use forebay_links_sys::option;
use forebay_links_sys::{Control, Outgoing, Receiver, Sender};
use forebay_wire::Family;
use forebay_wire::esp::NON_ESP_MARKER;
use rustix::io::Errno;
use rustix::net::SocketType;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

use crate::link::{Link, RxDrops, TxReport};
use crate::outer_header::OuterHeader;
use crate::raw::{Whole, sending_socket};
use crate::{bpf, socket};
use datagram::Datagram;

/// The most datagrams, or trains of them, that one system call brings. Each may be of 64 KiB, and what is in use
/// should stay in the processor's cache.
const MESSAGES_IN: usize = 32;
/// The most that one system call takes.
const MESSAGES: usize = 64;
/// The most packets that one system call takes.
const PARTS: usize = 1024;
/// The most packets in a train: what all kernels with `UDP_SEGMENT` take.
const MAX_SEGMENTS: usize = 64;
/// The most payload of a train in bytes: that of the largest UDP datagram over IPv4, and over IPv6.
const MAX_TRAIN: usize = 65_507;
/// A datagram of only this is a NAT keepalive (RFC 3948 2.3).
const KEEPALIVE: &[u8] = &[0xff];

/// Options of a UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpOptions {
    /// Address and port; `0.0.0.0` and `::` for all addresses of a family, port 0 for any.
    pub local: SocketAddr,
    /// Number of sockets, each for a thread of its own; which gets a packet is [`steer`]'s to say.
    pub workers: usize,
    /// Bytes that may wait in the kernel, in and out: beyond the system's limit with `CAP_NET_ADMIN`.
    pub buffer: usize,
    /// Whether trains of datagrams are sent as one (`UDP_SEGMENT`).
    pub gso: bool,
    /// Whether trains of datagrams are received as one (`UDP_GRO`).
    pub gro: bool,
    /// Firewall mark of what is sent (`SO_MARK`), by which routing rules may choose its way.
    pub mark: Option<u32>,
}

impl UdpOptions {
    /// One socket with offloads and 4 MiB of buffer.
    pub fn at(local: SocketAddr) -> UdpOptions {
        UdpOptions { local, workers: 1, buffer: 4 << 20, gso: true, gro: true, mark: None }
    }
}

/// TTL or hop limit of the socket: datagrams with this one, as most SAs have, need no control message for it.
const HOPS: u8 = 64;
/// linux/in6.h.
const IPV6_AUTOFLOWLABEL: i32 = 70;

/// The worker that gets ESP packets with `spi`, if there are `workers`.
pub fn steer(spi: u32, workers: usize) -> usize {
    spi as usize % workers.max(1)
}

/// Opens the sockets of an address.
///
/// # Errors
/// Those of socket(2) and bind(2), and for a mark `PermissionDenied` without `CAP_NET_ADMIN`.
pub fn open(options: &UdpOptions) -> io::Result<Vec<UdpLink>> {
    let mut local = options.local;
    let mut links = Vec::with_capacity(options.workers);
    for _ in 0..options.workers {
        let link = UdpLink::open(&UdpOptions { local, ..*options })?;
        local = link.local; // the same port for all
        links.push(link);
    }
    if let [first, _, ..] = &links[..] {
        // The program sees the datagram's payload, which starts with the SPI; its result is the number of the
        // socket, in the order of bind(2).
        let steer = [bpf::load_word(0), bpf::modulo(options.workers as u32), bpf::end_with_value()];
        option::attach(first.fd(), SO_ATTACH_REUSEPORT_CBPF, &steer)?;
    }
    Ok(links)
}

/// Receives IKE messages: called with the outer IP and UDP headers, and the payload with the marker.
pub type TakeIke = Box<dyn FnMut(&[u8], &[u8]) + Send>;

/// Sends from a link's port what is no packet of its gateway: answers of an IKE daemon.
pub struct Replier {
    socket: OwnedFd,
    sender: Sender,
}

impl Replier {
    /// Sends a datagram from an address of this host.
    ///
    /// # Errors
    /// Those of sendmsg(2).
    pub fn send(&mut self, from: IpAddr, to: SocketAddr, payload: &[u8]) -> io::Result<()> {
        let mut batch = self.sender.start();
        batch.part(payload);
        batch.end(Some(to), &Control { local: Some(from), ..Control::default() });
        batch.send(self.socket.as_fd(), 0).map(drop)
    }
}

/// One socket.
pub struct UdpLink {
    socket: OwnedFd,
    local: SocketAddr,
    receiver: Receiver,
    sender: Sender,
    cursor: Cursor,
    take_ike: Option<TakeIke>,
    passed_over: RxDrops,
    /// For fragments of larger packets, if the process may.
    fragments: Option<OwnedFd>,
    whole: Whole,
    /// Whether trains go as one.
    segmentation: bool,
    /// Whether flow labels are sent: not where the kernel wants each to be leased first, as those before 5.3 do, and all do
    /// in a network namespace in which a program has an exclusive label (`IPV6_FLOWLABEL_MGR`).
    flow_labels: bool,
    /// Whether datagrams now go out with "don't fragment".
    dont_fragment: bool,
}

/// How far the received datagrams have been given.
#[derive(Default)]
struct Cursor {
    /// Datagram or train, of how many.
    message: usize,
    messages: usize,
    /// Bytes of it.
    at: usize,
    /// Length of each datagram in it, and what stands in front.
    segment: usize,
    outer: OuterHeader,
}

impl UdpLink {
    fn open(options: &UdpOptions) -> io::Result<UdpLink> {
        let v6 = options.local.is_ipv6();
        let socket = socket::open(options.local.ip(), SocketType::DGRAM, None)?;
        socket::ask_for_header(&socket, v6)?;
        socket::set_buffers(&socket, options.buffer)?;
        socket::set_mark(&socket, options.mark)?;
        // What the kernel thinks to know of the path is not asked.
        if v6 {
            sockopt::set_ipv6_v6only(&socket, true)?;
            sockopt::set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
            sockopt::set_ipv6_unicast_hops(&socket, Some(HOPS))?;
            // Kernels before 4.x make no labels of their own.
            let _ = option::set(socket.as_fd(), socket::IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0);
        } else {
            sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
            sockopt::set_ip_ttl(&socket, HOPS.into())?;
        }
        if options.workers > 1 {
            sockopt::set_socket_reuseport(&socket, true)?;
        }
        // Kernels before 5.0 have no UDP_GRO: then each datagram comes alone.
        let _ = options.gro.then(|| socket::set(socket.as_fd(), SOL_UDP, UDP_GRO));
        rustix::net::bind(&socket, &options.local)?;
        let local = rustix::net::getsockname(&socket)?.try_into()?;
        let fragments = sending_socket(options.local.ip())
            .and_then(|raw| socket::set_mark(&raw, options.mark).map(|()| raw))
            .ok();
        Ok(UdpLink {
            socket,
            local,
            receiver: Receiver::new(MESSAGES_IN, usize::from(u16::MAX)),
            sender: Sender::new(MESSAGES, PARTS),
            cursor: Cursor::default(),
            take_ike: None,
            passed_over: RxDrops::default(),
            fragments,
            whole: Whole::new(Family::of(options.local.ip()), options.mark),
            segmentation: options.gso,
            flow_labels: true,
            dont_fragment: true,
        })
    }

    /// The address and port it has.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The replier for the receiver of IKE messages.
    ///
    /// # Errors
    /// If there are no more descriptors.
    pub fn replier(&self) -> io::Result<Replier> {
        Ok(Replier { socket: self.socket.try_clone()?, sender: Sender::new(1, 1) })
    }

    /// Gives IKE messages to `take`; without one they are only counted.
    pub fn set_ike(&mut self, take: TakeIke) {
        self.take_ike = Some(take);
    }

    /// Whether flow labels are sent: not where the kernel has refused one that is not leased.
    pub fn labels_flows(&self) -> bool {
        self.flow_labels
    }

    /// Whether trains of datagrams are sent as one: not on a path whose device cannot do checksums.
    pub fn segments(&self) -> bool {
        self.segmentation
    }

    /// The next datagram of those that were received, unless it is the link's own to deal with.
    #[inline]
    fn give_next(&mut self, take: &mut dyn FnMut(&[u8], &[u8])) -> bool {
        let cursor = &mut self.cursor;
        let received = self.receiver.get(cursor.message);
        if cursor.at == 0 {
            let local = received.control.local.unwrap_or(self.local.ip());
            let to = SocketAddr::new(local, self.local.port());
            let sound = received.from.is_some_and(|from| cursor.outer.start_udp(from, to, &received.control));
            if received.truncated || !sound {
                self.passed_over.truncated += u64::from(received.truncated);
                self.passed_over.malformed += u64::from(!received.truncated);
                cursor.message += 1;
                return false;
            }
            let all = received.bytes.len();
            cursor.segment = received.control.segment.map_or(all, usize::from).clamp(1, all.max(1));
        }
        let end = received.bytes.len().min(cursor.at + cursor.segment);
        let payload = &received.bytes[cursor.at..end];
        cursor.at = end;
        if end == received.bytes.len() {
            cursor.message += 1;
            cursor.at = 0;
        }
        if payload == KEEPALIVE {
            self.passed_over.keepalives += 1;
            return false;
        }
        let head = cursor.outer.before(payload.len());
        if payload.starts_with(NON_ESP_MARKER) {
            self.passed_over.ike += 1;
            if let Some(take_ike) = &mut self.take_ike {
                take_ike(head, payload);
            }
            return false;
        }
        take(head, payload);
        true
    }

    /// Puts packets into one batch and sends it. Returns where to go on.
    fn send_batch(
        &mut self,
        packets: &[&[u8]],
        Next { from, alone_until, unlabelled_until }: Next,
        sent: &mut TxReport,
    ) -> Next {
        let mut starts = [0; MESSAGES + 1];
        let mut batch = self.sender.start();
        let mut at = from;
        let mut dont_fragment = None;
        while at < packets.len() && batch.has_room() {
            let first = Datagram::parse(packets[at]).filter(|d| d.source.port() == self.local.port());
            let Some(first) = first else { break };
            // One of the socket's options, not of a message's.
            if *dont_fragment.get_or_insert(first.dont_fragment) != first.dont_fragment {
                break;
            }
            starts[batch.messages()] = at;
            batch.part(first.payload);
            let start = at;
            at += 1;
            if self.segmentation && start >= alone_until {
                at += add_followers(&mut batch, &first, &packets[at..]);
            }
            let control = Control {
                local: Some(first.source.ip()),
                traffic_class: Some(first.class),
                hop_limit: (first.hops != HOPS).then_some(first.hops),
                flow_label: Some(first.flow_label)
                    .filter(|&label| label != 0 && self.flow_labels && start >= unlabelled_until),
                segment: (at - start > 1).then_some(first.payload.len() as u16),
                network: None,
            };
            batch.end(Some(first.to), &control);
        }
        let messages = batch.messages();
        starts[messages] = at;
        let Some(dont_fragment) = dont_fragment else {
            self.send_fragment(packets, from, sent);
            let from = if sent.would_block > 0 { packets.len() } else { from + 1 };
            return Next { from, alone_until, unlabelled_until };
        };
        if dont_fragment != self.dont_fragment && self.local.is_ipv4() {
            let how = if dont_fragment { Ipv4PathMtuDiscovery::PROBE } else { Ipv4PathMtuDiscovery::DONT };
            if sockopt::set_ip_mtu_discover(&self.socket, how).is_ok() {
                self.dont_fragment = dont_fragment;
            }
        }
        let mut done = 0;
        while done < messages {
            let (start, next) = (starts[done], starts[done + 1]);
            match batch.send(self.socket.as_fd(), done) {
                Ok(count) => {
                    // Taken without its label, and not with it.
                    self.flow_labels &= start >= unlabelled_until || !has_label(packets[start]);
                    done += count;
                    sent.taken += starts[done] - start;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    sent.would_block = packets.len() - start;
                    return Next { from: packets.len(), alone_until, unlabelled_until };
                }
                Err(error)
                    if self.flow_labels
                        && Errno::from_io_error(&error) == Some(Errno::INVAL)
                        && start >= unlabelled_until
                        && has_label(packets[start]) =>
                {
                    // A label is worth less than the packet: sending it without one will show what the matter is.
                    return Next { from: start, alone_until, unlabelled_until: next };
                }
                Err(error) if next - start > 1 && is_of_trains(&error) => {
                    // The batch is larger than the path takes, or the device cannot segment it; sending each packet
                    // alone will show which.
                    self.segmentation &= Errno::from_io_error(&error) != Some(Errno::IO);
                    return Next { from: start, alone_until: next, unlabelled_until };
                }
                Err(error) => {
                    sent.refuse(&error, next - start);
                    if sent.mtu.is_none() && Errno::from_io_error(&error) == Some(Errno::MSGSIZE) {
                        sent.mtu = Datagram::parse(packets[start])
                            .and_then(|datagram| self.whole.path.mtu_towards(datagram.to.ip()));
                    }
                    done += 1;
                }
            }
        }
        Next { from: at, alone_until, unlabelled_until }
    }

    /// Sends a fragment of a UDP packet, which no socket of UDP takes; counts other packets as unfit.
    fn send_fragment(&mut self, packets: &[&[u8]], at: usize, sent: &mut TxReport) {
        match &self.fragments {
            Some(socket) if datagram::is_fragment(packets[at]) => {
                self.whole.send(socket.as_fd(), &packets[at..at + 1], sent);
                if sent.would_block > 0 {
                    sent.would_block = packets.len() - at;
                }
            }
            _ => sent.unfit += 1,
        }
    }
}

/// Where sending goes on, and up to which packet none may be in a train, or have a flow label.
struct Next {
    from: usize,
    alone_until: usize,
    unlabelled_until: usize,
}

fn has_label(packet: &[u8]) -> bool {
    Datagram::parse(packet).is_some_and(|datagram| datagram.flow_label != 0)
}

/// Puts those of `packets` behind `first` that can be sent with it as one: of its length, but that the last may
/// be shorter. Returns how many.
#[inline]
fn add_followers<'p>(batch: &mut Outgoing<'_, 'p>, first: &Datagram<'p>, packets: &[&'p [u8]]) -> usize {
    let segment = first.payload.len();
    let mut room = MAX_TRAIN.saturating_sub(segment);
    let mut count = 0;
    while segment > 0 && count + 1 < MAX_SEGMENTS && count < packets.len() && batch.has_room() {
        let Some(more) = first.follower(packets[count]) else { break };
        // A part without bytes would be no datagram at all.
        if more.is_empty() || more.len() > segment || more.len() > room {
            break;
        }
        batch.part(more);
        room -= more.len();
        count += 1;
        if more.len() < segment {
            break;
        }
    }
    count
}

/// Whether an error may be due to the packets being sent as one.
fn is_of_trains(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::IO | Errno::INVAL | Errno::MSGSIZE | Errno::OPNOTSUPP))
}

impl Link for UdpLink {
    /// What stands in front is made up of what the kernel says: addresses, ports, DSCP, ECN, TTL. The UDP
    /// checksum is zero, the kernel has seen to it.
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let (mut given, mut drained) = (0, false);
        while given < room {
            if self.cursor.message < self.cursor.messages {
                given += usize::from(self.give_next(take));
                continue;
            }
            if drained {
                break;
            }
            let limit = (room - given).min(MESSAGES_IN);
            let count = match self.receiver.receive(self.socket.as_fd(), limit) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) if given > 0 => break,
                Err(error) => return Err(error),
            };
            (self.cursor.message, self.cursor.messages, self.cursor.at) = (0, count, 0);
            // The kernel has asked the queue once more itself: it was empty.
            drained = count < limit;
        }
        Ok(given)
    }

    /// Takes the outer headers off and uses their addresses, ports, DSCP, ECN and "don't fragment"; the other
    /// fields are the kernel's. The source port has to be the socket's. Fragments go by a raw socket, with
    /// `CAP_NET_RAW`.
    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let mut sent = TxReport::default();
        let mut next = Next { from: 0, alone_until: 0, unlabelled_until: 0 };
        while next.from < packets.len() {
            next = self.send_batch(packets, next, &mut sent);
        }
        sent
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn pending(&self) -> bool {
        self.cursor.message < self.cursor.messages
    }

    fn rx_drops(&self) -> RxDrops {
        let overrun = option::dropped(self.socket.as_fd()).unwrap_or(0);
        RxDrops { overrun: overrun.into(), ..self.passed_over }
    }
}

// linux/udp.h, asm-generic/socket.h.
const SOL_UDP: i32 = 17;
const UDP_GRO: i32 = 104;
const SO_ATTACH_REUSEPORT_CBPF: i32 = 51;
