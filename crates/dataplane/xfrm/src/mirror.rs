//! The sockets around [`State`].

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use forebay_crypto::Direction;
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{bind, recvfrom, send, socket_with, sockopt};
use zeroize::{Zeroize, Zeroizing};

use crate::abi::{family, group, route};
use crate::event::PolicyIndex;
use crate::kernel::Message;
use crate::request::{self, Done, Flow};
use crate::state::{Filter, State};
use crate::{Event, SaId, decode::decode};
use forebay_netlink::{Attributes, Frames, bytes_at, u32_at};

/// Above the longest datagram of a dump, which the kernel makes at most 32 KiB long.
const DATAGRAM: usize = 64 << 10;
/// Datagrams that one poll takes at most, so that the caller gets to its other work.
const DATAGRAMS_AT_ONCE: usize = 256;

/// Follows the kernel's SAs and policies.
#[derive(Debug)]
pub struct Mirror {
    socket: OwnedFd,
    addresses: OwnedFd,
    state: State,
    stage: Stage,
    /// Something was lost: everything has to be asked for, once the queue is empty.
    stale: bool,
    /// The same of the addresses.
    stale_addresses: bool,
    sequence: u32,
    dump_sequence: u32,
    counts: Counts,
    buffer: Zeroizing<Vec<u8>>,
    observer: Option<fn(&[u8])>,
}

/// How far a dump has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Policies,
    Sas,
}

/// Counts of errors and losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times that the kernel's receive buffer overflowed and messages were lost.
    pub overruns: u64,
    /// Messages that violate the protocol; each makes the mirror read everything again.
    pub malformed: u64,
    /// Datagrams from senders other than the kernel.
    pub foreign: u64,
    /// Requests that the kernel refused, mostly because the SA was gone already.
    pub refused: u64,
}

impl Mirror {
    /// Opens the sockets and asks for everything; [`Mirror::poll`] gives it. `receive_buffer` is what the kernel may
    /// keep for us, in bytes: an SA takes about 2 KiB there.
    ///
    /// # Errors
    ///
    /// The kernel has no XFRM, or the process may not follow it (`CAP_NET_ADMIN`).
    pub fn open(filter: Filter, receive_buffer: usize) -> io::Result<Mirror> {
        let (socket, addresses) = sockets(receive_buffer)?;
        Ok(Mirror {
            socket,
            addresses,
            state: State::new(filter),
            stage: Stage::Idle,
            stale: true,
            stale_addresses: true,
            sequence: 0,
            dump_sequence: 0,
            counts: Counts::default(),
            buffer: Zeroizing::new(vec![0; DATAGRAM]),
            observer: None,
        })
    }

    /// Opens the sockets anew and asks for everything, after an error of [`Mirror::poll`]: what the kernel has is compared
    /// with what is known, and the difference comes out as events.
    ///
    /// # Errors
    ///
    /// As [`Mirror::open`].
    pub fn reopen(&mut self, receive_buffer: usize) -> io::Result<()> {
        let (socket, addresses) = sockets(receive_buffer)?;
        (self.socket, self.addresses) = (socket, addresses);
        (self.stage, self.stale, self.stale_addresses) = (Stage::Idle, true, true);
        Ok(())
    }

    /// Gives every datagram of the XFRM socket to `observer` as well, keys and all: to record test data.
    #[must_use]
    pub fn observed_by(mut self, observer: fn(&[u8])) -> Mirror {
        self.observer = Some(observer);
        self
    }

    /// For poll(2): [`Mirror::poll`] has something to do when one of them is readable.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.socket.as_fd(), self.addresses.as_fd()]
    }

    /// Takes what has come, without waiting, and adds what it means to `events`. Call it once after opening, and
    /// again at once if it says that there is more.
    ///
    /// # Errors
    ///
    /// A socket fails in a way that no reading again helps.
    pub fn poll(&mut self, events: &mut Vec<Event>) -> io::Result<bool> {
        self.read_addresses(events)?;
        for _ in 0..DATAGRAMS_AT_ONCE {
            match receive(&self.socket, &mut self.buffer)? {
                Received::Datagram(len) => {
                    if let Some(observer) = self.observer {
                        observer(&self.buffer[..len]);
                    }
                    self.take(len, events)?;
                    self.buffer[..len].zeroize();
                }
                Received::Foreign => self.counts.foreign += 1,
                Received::Lost => {
                    self.counts.overruns += 1;
                    self.stale = true;
                }
                Received::Nothing => {
                    // Only now does the kernel give us messages again.
                    if self.stale && self.stage == Stage::Idle {
                        self.begin_dump()?;
                        continue;
                    }
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// What went other than it should.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// SAs that the kernel has and whose direction is not known yet.
    pub fn waiting(&self) -> impl Iterator<Item = &SaId> {
        self.state.waiting()
    }

    /// Tells the kernel what has been done with an SA; `false` if there is none by that name.
    pub fn report(&mut self, id: &SaId, direction: Direction, done: &Done) -> io::Result<bool> {
        let sequence = self.next_sequence();
        let seals = direction == Direction::Seal;
        self.say(self.state.sa(id).map(|sa| request::report(sequence, sa, seals, done)))
    }

    /// Tells the IKE daemon that a limit on packets or bytes has been reached; `false` if there is no such SA. Behind
    /// a hard limit the kernel deletes the SA.
    pub fn expire(&mut self, id: &SaId, hard: bool) -> io::Result<bool> {
        let sequence = self.next_sequence();
        self.say(self.state.sa(id).map(|sa| request::expire(sequence, sa, hard)))
    }

    /// Asks the IKE daemon for an SA for a packet that a policy protects, one of its own for CPU number `cpu` if that is
    /// said; `false` if there is no such policy or it wants no SA. Each call makes a question: once a flow in, say, 30 s will do.
    pub fn acquire(&mut self, policy: PolicyIndex, flow: &Flow, cpu: Option<u32>) -> io::Result<bool> {
        let sequence = self.next_sequence();
        let policy = self.state.policy(policy);
        self.say(policy.and_then(|policy| request::acquire(sequence, policy, flow, cpu)))
    }

    fn say(&self, message: Option<Vec<u8>>) -> io::Result<bool> {
        let Some(message) = message else { return Ok(false) };
        send(&self.socket, &message, SendFlags::empty())?;
        Ok(true)
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    fn begin_dump(&mut self) -> io::Result<()> {
        self.stale = false;
        self.state.begin_dump();
        self.dump(Stage::Policies)
    }

    fn dump(&mut self, stage: Stage) -> io::Result<()> {
        self.stage = stage;
        self.dump_sequence = self.next_sequence();
        let message = match stage {
            Stage::Policies => request::dump_policies(self.dump_sequence),
            _ => request::dump_sas(self.dump_sequence),
        };
        send(&self.socket, &message, SendFlags::empty())?;
        Ok(())
    }

    /// Takes in the datagram in the buffer.
    fn take(&mut self, len: usize, events: &mut Vec<Event>) -> io::Result<()> {
        let mut ended = None;
        for frame in Frames::new(&self.buffer[..len]) {
            match frame.and_then(|frame| decode(&frame)) {
                Ok(Message::DumpEnd { sequence, again }) if sequence == self.dump_sequence => {
                    ended = Some(());
                    self.stale |= again;
                }
                Ok(Message::Refused { sequence, errno }) => {
                    self.counts.refused += 1;
                    if sequence == self.dump_sequence && self.stage != Stage::Idle {
                        return Err(io::Error::from_raw_os_error(errno));
                    }
                }
                Ok(Message::Migrated) => self.stale = true,
                Ok(message) => self.state.apply(message, events),
                Err(_) => {
                    self.counts.malformed += 1;
                    // Once: a message that is always so would have us read for ever.
                    self.stale |= self.stage == Stage::Idle;
                }
            }
        }
        match (ended, self.stage) {
            (Some(()), Stage::Policies) => {
                self.state.end_policies(events);
                self.dump(Stage::Sas)
            }
            (Some(()), Stage::Sas) => {
                self.state.end_sas(events);
                self.stage = Stage::Idle;
                if !self.stale {
                    events.push(Event::Synchronised);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn read_addresses(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        loop {
            match receive(&self.addresses, &mut self.buffer)? {
                Received::Datagram(len) => {
                    for frame in Frames::new(&self.buffer[..len]).map_while(Result::ok) {
                        let Some((interface, address)) = address(frame.body) else { continue };
                        match frame.kind {
                            route::NEW_ADDRESS => self.state.set_address(interface, address, true, events),
                            route::DELETE_ADDRESS => {
                                self.state.set_address(interface, address, false, events)
                            }
                            _ => {}
                        }
                    }
                }
                Received::Foreign => self.counts.foreign += 1,
                Received::Lost => self.stale_addresses = true,
                Received::Nothing if self.stale_addresses => {
                    self.stale_addresses = false;
                    self.state.forget_addresses();
                    let message = request::dump_addresses(self.next_sequence());
                    send(&self.addresses, &message, SendFlags::empty())?;
                }
                Received::Nothing => return Ok(()),
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Received {
    /// So many bytes are in the buffer.
    Datagram(usize),
    /// Not from the kernel.
    Foreign,
    /// Messages were lost.
    Lost,
    Nothing,
}

/// Without a protocol it is NETLINK_ROUTE, whose number is zero.
/// That of XFRM, and that of addresses.
fn sockets(receive_buffer: usize) -> io::Result<(OwnedFd, OwnedFd)> {
    let groups = group::SA | group::POLICY | group::EXPIRE | group::MIGRATE;
    let socket = open(Some(netlink::XFRM), groups, receive_buffer)?;
    let addresses = open(None, group::ADDRESSES, receive_buffer.min(1 << 20))?;
    Ok((socket, addresses))
}

fn open(protocol: Option<Protocol>, groups: u32, receive_buffer: usize) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    // Beyond the system's limit where we may; what we get is no reason to fail.
    if sockopt::set_socket_recv_buffer_size_force(&socket, receive_buffer).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(&socket, receive_buffer);
    }
    bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Received> {
    loop {
        return match recvfrom(socket, &mut *buffer, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
            Ok((len, whole, from)) => {
                let kernel = from
                    .and_then(|from| SocketAddrNetlink::try_from(from).ok())
                    .is_some_and(|from| from.pid() == 0);
                Ok(match kernel {
                    false => Received::Foreign,
                    true if whole > len => Received::Lost,
                    true => Received::Datagram(len),
                })
            }
            Err(Errno::INTR) => continue,
            Err(Errno::NOBUFS) => Ok(Received::Lost),
            Err(Errno::AGAIN) => Ok(Received::Nothing),
            Err(error) => Err(error.into()),
        };
    }
}

/// Interface and address of a `struct ifaddrmsg`: the local one, where a peer's is there too.
fn address(body: &[u8]) -> Option<(u32, IpAddr)> {
    let interface = u32_at(body, 4)?;
    let version = u16::from(*body.first()?);
    let mut found = None;
    for (kind, content) in Attributes::behind(body, route::HEADER).map_while(Result::ok) {
        if kind == route::LOCAL || (kind == route::ADDRESS && found.is_none()) {
            found = match version {
                family::INET => bytes_at::<4>(content, 0).map(|octets| Ipv4Addr::from(octets).into()),
                family::INET6 => bytes_at::<16>(content, 0).map(|octets| Ipv6Addr::from(octets).into()),
                _ => None,
            };
        }
    }
    Some((interface, found?))
}
