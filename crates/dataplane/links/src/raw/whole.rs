//! Whole packets out by a raw socket, headers included.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use forebay_links_sys::{Control, Sender};
use forebay_wire::{Family, Fragments, Ip, ipv4, ipv6};
use rustix::io::Errno;
use rustix::net::{Protocol, SocketType, ipproto};

use crate::link::TxReport;
use crate::socket::{self, IPPROTO_IP, IPPROTO_IPV6, PathProbe};

/// The most packets that one system call takes.
const MESSAGES: usize = 128;
const IP_HDRINCL: i32 = 3;
const IPV6_HDRINCL: i32 = 36;

/// Sends packets of one family as they are.
pub(crate) struct Whole {
    family: Family,
    sender: Sender,
    pub(crate) path: PathProbe,
    /// For fragments.
    room: Vec<u8>,
}

/// A raw socket that only sends, whatever the protocol.
pub(crate) fn sending_socket(address: IpAddr) -> io::Result<OwnedFd> {
    open_socket(address, Some(ipproto::RAW))
}

/// Opens a raw socket for `protocol` that takes packets with their headers.
pub(super) fn open_socket(address: IpAddr, protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let socket = socket::open(address, SocketType::RAW, protocol)?;
    match address.is_ipv6() {
        true => socket::set(socket.as_fd(), IPPROTO_IPV6, IPV6_HDRINCL)?,
        false => socket::set(socket.as_fd(), IPPROTO_IP, IP_HDRINCL)?,
    }
    Ok(socket)
}

impl Whole {
    /// A sender of packets of `family` by sockets with `mark`.
    pub(crate) fn new(family: Family, mark: Option<u32>) -> Whole {
        let (sender, path) = (Sender::new(MESSAGES, MESSAGES), PathProbe::new(family, mark));
        Whole { family, sender, path, room: Vec::new() }
    }

    /// Sends `packets` in order and counts them in `sent`; those that would block are the last.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>, packets: &[&[u8]], sent: &mut TxReport) {
        let mut from = 0;
        while from < packets.len() {
            let mut batch = self.sender.start();
            let mut at = from;
            while at < packets.len() && batch.has_room() {
                let Some(to) = destination(self.family, packets[at]) else { break };
                batch.part(packets[at]);
                batch.end(Some(to), &Control::default());
                at += 1;
            }
            if at == from {
                sent.unfit += 1;
                from += 1;
                continue;
            }
            match batch.send(socket, 0) {
                Ok(count) => {
                    sent.taken += count;
                    from += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    sent.would_block += packets.len() - from;
                    return;
                }
                Err(error) => {
                    let too_big = Errno::from_io_error(&error) == Some(Errno::MSGSIZE);
                    let done = too_big && self.divide(socket, packets[from], sent);
                    if !done {
                        sent.refuse(&error, 1);
                    }
                    from += 1;
                }
            }
        }
    }

    /// Sends a packet that is larger than the link in fragments, if that is allowed: a raw socket leaves it to
    /// us. Whether the packet has been counted.
    fn divide(&mut self, socket: BorrowedFd<'_>, packet: &[u8], sent: &mut TxReport) -> bool {
        let Ok(ip) = Ip::parse(packet) else { return false };
        let to = SocketAddr::new(ip.destination(), 0);
        let Some(mtu) = self.path.mtu_towards(to.ip()) else { return false };
        // IPv6 is divided by who made the packet, before it is protected.
        let fragments = match ip.family() {
            Family::V4 => Fragments::new(&ip, mtu as usize, 0),
            Family::V6 => None,
        };
        let Some(mut fragments) = fragments else {
            sent.mtu = Some(mtu);
            return false;
        };
        self.room.resize(usize::from(u16::MAX), 0);
        while let Some(len) = fragments.next_into(&mut self.room) {
            let mut batch = self.sender.start();
            batch.part(&self.room[..len]);
            batch.end(Some(to), &Control::default());
            if let Err(error) = batch.send(socket, 0) {
                // A packet without one fragment is lost.
                match error.kind() {
                    io::ErrorKind::WouldBlock => sent.no_buffers += 1,
                    _ => sent.refuse(&error, 1),
                }
                return true;
            }
        }
        sent.taken += 1;
        true
    }
}

/// Where a packet of `family` goes.
#[inline]
fn destination(family: Family, packet: &[u8]) -> Option<SocketAddr> {
    let address: IpAddr = match (family, packet.first()? >> 4) {
        (Family::V4, 4) => {
            let header = packet.first_chunk::<{ ipv4::MIN_HEADER }>()?;
            Ipv4Addr::new(header[16], header[17], header[18], header[19]).into()
        }
        (Family::V6, 6) => {
            let header = packet.first_chunk::<{ ipv6::HEADER }>()?;
            Ipv6Addr::from(*header[24..].first_chunk::<16>()?).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, 0))
}
