//! Forwarding of IKE messages that arrive at the gateway's port of ESP in UDP, for a daemon that listens elsewhere: `ike_forward`.
//!
//! ```text
//! peer --> our port: non-ESP marker --> worker --queue--> thread --> a socket of the peer's own --> daemon
//! peer <-- our port <------------------------------------ thread <-- the same socket <------------- daemon
//! ```
//!
//! Messages are passed with their marker (RFC 3948 2.2), which daemons expect at their port behind NAT. The daemon sees
//! a port of this host for each peer, as behind a NAT (RFC 4787), and answers to it.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use forebay_engine::Clock;
use forebay_links::udp::{Replier, UdpLink};
use forebay_time::{Duration, Time};
use forebay_wire::esp::NON_ESP_MARKER;
use forebay_wire::{ipv4, ipv6};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use forebay_privileges as privileges;

/// Messages that wait for the thread; peers send others again (RFC 7296 2.1).
const QUEUE: usize = 64;
/// Peers at a time, each of which takes a descriptor.
const PEERS: usize = 256;
/// How long a peer is kept to which the daemon never said anything, and one with which it talks: an IKE SA that is
/// neither checked nor rekeyed within it is found again by the peer's next message only.
const UNANSWERED: Duration = Duration::from_millis(30_000);
const ANSWERED: Duration = Duration::from_millis(7_200_000);
/// Between two looks for peers that are silent.
const LOOK_EVERY: Duration = Duration::from_millis(1_000);
/// A keepalive of the daemon's (RFC 3948 2.3).
const KEEPALIVE: &[u8] = &[0xff];

/// A message on its way to the daemon.
struct Message {
    ends: Ends,
    bytes: Vec<u8>,
}

/// A peer, and the address of ours that it talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ends {
    peer: SocketAddr,
    local: IpAddr,
}

/// The way from a link to the thread.
#[derive(Clone)]
pub struct IkeForward {
    messages: SyncSender<Message>,
    bell: Arc<OwnedFd>,
}

impl IkeForward {
    /// Starts a thread that forwards messages to `daemon`, and sends answers by `replier`. It ends with the last link
    /// that it was given.
    ///
    /// # Errors
    /// If no thread or descriptor is available.
    pub fn start(daemon: SocketAddr, replier: Replier, clock: Clock) -> io::Result<IkeForward> {
        let (messages, queue) = sync_channel(QUEUE);
        let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let mut table = Table { daemon, replier, clock, peers: HashMap::new(), looked: clock.now() };
        let rung = bell.clone();
        let builder = std::thread::Builder::new().name("forebay-ike".to_owned());
        builder.spawn(move || {
            privileges::give_up();
            table.run(&queue, &rung)
        })?;
        Ok(IkeForward { messages, bell })
    }

    /// Takes the messages that come by `link`.
    pub fn attach(&self, link: &mut UdpLink) {
        let IkeForward { messages, bell } = self.clone();
        link.set_ike(Box::new(move |head, payload| {
            let Some(ends) = ends(head) else { return };
            // A thread that does not keep up, or has ended: peers send again.
            if messages.try_send(Message { ends, bytes: payload.to_vec() }).is_ok() {
                let _ = rustix::io::write(&*bell, &1u64.to_ne_bytes());
            }
        }));
    }
}

/// Who sent a datagram to whom, by the IP and UDP headers that a link gives.
fn ends(head: &[u8]) -> Option<Ends> {
    let address = |at: usize, v6: bool| -> Option<IpAddr> {
        match v6 {
            true => Some(Ipv6Addr::from(*head.get(at..)?.first_chunk::<16>()?).into()),
            false => Some(Ipv4Addr::from(*head.get(at..)?.first_chunk::<4>()?).into()),
        }
    };
    let v6 = head.first()? >> 4 == 6;
    let (source, local, udp) = if v6 { (8, 24, ipv6::HEADER) } else { (12, 16, ipv4::MIN_HEADER) };
    let port = u16::from_be_bytes(*head.get(udp..)?.first_chunk()?);
    Some(Ends { peer: SocketAddr::new(address(source, v6)?, port), local: address(local, v6)? })
}

/// The peers and their sockets.
struct Table {
    daemon: SocketAddr,
    replier: Replier,
    clock: Clock,
    peers: HashMap<Ends, Peer>,
    looked: Time,
}

struct Peer {
    /// Connected to the daemon.
    socket: UdpSocket,
    heard: Time,
    answered: bool,
}

impl Table {
    fn run(&mut self, queue: &Receiver<Message>, bell: &OwnedFd) {
        let timeout = Timespec { tv_sec: LOOK_EVERY.as_secs() as i64, tv_nsec: 0 };
        let mut room = vec![0; usize::from(u16::MAX)];
        loop {
            loop {
                match queue.try_recv() {
                    Ok(message) => self.pass_on(&message),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            let ready = self.wait(bell, &timeout);
            for ends in ready {
                self.answer(ends, &mut room);
            }
            let now = self.clock.now();
            if now.since(self.looked) >= LOOK_EVERY {
                self.looked = now;
                self.peers.retain(|_, peer| {
                    let kept = if peer.answered { ANSWERED } else { UNANSWERED };
                    now.since(peer.heard) < kept
                });
            }
        }
    }

    /// Waits for messages, answers or the time; the peers for which there are answers.
    fn wait(&self, bell: &OwnedFd, timeout: &Timespec) -> Vec<Ends> {
        let mut fds = vec![PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)];
        let ends: Vec<Ends> = self.peers.keys().copied().collect();
        let sockets = ends.iter().filter_map(|ends| self.peers.get(ends));
        fds.extend(sockets.map(|peer| PollFd::from_borrowed_fd(peer.socket.as_fd(), PollFlags::IN)));
        if poll(&mut fds, Some(timeout)).is_err() {
            return vec![];
        }
        let _ = rustix::io::read(bell, &mut [0; 8]);
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        ends.into_iter().zip(&fds[1..]).filter(|(_, fd)| is_ready(fd)).map(|(ends, _)| ends).collect()
    }

    fn pass_on(&mut self, message: &Message) {
        let now = self.clock.now();
        if !self.peers.contains_key(&message.ends) {
            if self.peers.len() >= PEERS {
                self.make_room();
            }
            match open(self.daemon) {
                Ok(socket) => {
                    self.peers.insert(message.ends, Peer { socket, heard: now, answered: false });
                }
                Err(error) => {
                    return tracing::warn!(daemon = %self.daemon, %error, "cannot open a socket for `ike_forward`, so IKE messages are lost; look at the limit of open files (LimitNOFILE=)");
                }
            }
        }
        if let Some(peer) = self.peers.get_mut(&message.ends) {
            peer.heard = now;
            // Refused where no daemon listens, as it may again in a moment.
            let _ = peer.socket.send(&message.bytes);
        }
    }

    /// Removes the peer that was silent for longest, but first those that the daemon never answered, so that unknown
    /// senders displace only each other.
    fn make_room(&mut self) {
        let silent = self.peers.iter().min_by_key(|(_, peer)| (peer.answered, peer.heard));
        let silent = silent.map(|(ends, _)| *ends);
        silent.and_then(|ends| self.peers.remove(&ends));
    }

    /// Sends what the daemon has said to a peer.
    fn answer(&mut self, ends: Ends, room: &mut [u8]) {
        let Some(peer) = self.peers.get_mut(&ends) else { return };
        for _ in 0..QUEUE {
            let Ok(len) = peer.socket.recv(room) else { return };
            let bytes = &room[..len];
            // All else would be taken for ESP.
            if !bytes.starts_with(NON_ESP_MARKER) && bytes != KEEPALIVE {
                continue;
            }
            peer.heard = self.clock.now();
            peer.answered = true;
            if let Err(error) = self.replier.send(ends.local, ends.peer, bytes) {
                tracing::debug!(peer = %ends.peer, %error, "cannot send a reply of the IKE daemon");
            }
        }
    }
}

fn open(daemon: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr =
        if daemon.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(daemon)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_links::Link;
    use forebay_links::udp::{self, UdpOptions};

    #[test]
    fn each_peer_gets_the_answers_to_its_own_messages() {
        let wait = Some(std::time::Duration::from_secs(5));
        let local = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        let daemon = UdpSocket::bind(local(0)).unwrap();
        daemon.set_read_timeout(wait).unwrap();
        let mut link = udp::open(&UdpOptions::at(local(0))).unwrap().remove(0);
        let ours = link.local();
        let replier = link.replier().unwrap();
        let forward = IkeForward::start(daemon.local_addr().unwrap(), replier, Clock::start()).unwrap();
        forward.attach(&mut link);
        let peers: Vec<UdpSocket> = (0..5).map(|_| UdpSocket::bind(local(0)).unwrap()).collect();
        let said = |peer: usize| [NON_ESP_MARKER, b"request ", &[peer as u8]].concat();
        for (number, peer) in peers.iter().enumerate() {
            peer.set_read_timeout(wait).unwrap();
            peer.send_to(&said(number), ours).unwrap();
        }
        let mut bytes = [0; 100];
        let mut seen = Vec::new();
        while seen.len() < peers.len() {
            link.receive(50, &mut |_, _| panic!("IKE is no packet")).unwrap();
            let (len, from) = daemon.recv_from(&mut bytes).unwrap();
            assert_eq!(bytes[..len - 1], said(0)[..len - 1]);
            seen.push((bytes[len - 1], from));
        }
        // From a port of its own each, and answered in any order.
        let ports: std::collections::HashSet<u16> = seen.iter().map(|(_, from)| from.port()).collect();
        assert_eq!(ports.len(), peers.len());
        for (number, from) in seen.into_iter().rev() {
            daemon.send_to(b"this would be taken for ESP", from).unwrap();
            daemon.send_to(&[NON_ESP_MARKER, b"answer ", &[number]].concat(), from).unwrap();
            let (len, sender) = peers[usize::from(number)].recv_from(&mut bytes).unwrap();
            assert_eq!(
                (&bytes[..len], sender),
                (&[NON_ESP_MARKER, b"answer ", &[number]].concat()[..], ours)
            );
        }
    }

    #[test]
    fn strangers_push_out_strangers() {
        let link = udp::open(&UdpOptions::at("127.0.0.1:0".parse().unwrap())).unwrap().remove(0);
        let clock = Clock::start();
        let daemon = UdpSocket::bind("127.0.0.1:0").unwrap();
        let daemon = daemon.local_addr().unwrap();
        let replier = link.replier().unwrap();
        let mut table = Table { daemon, replier, clock, peers: HashMap::new(), looked: clock.now() };
        let ends =
            |port| Ends { peer: SocketAddr::new([192, 0, 2, 9].into(), port), local: [192, 0, 2, 1].into() };
        for port in 1..=2 * PEERS as u16 {
            table.pass_on(&Message { ends: ends(port), bytes: vec![0; 4] });
            if port == 1 {
                table.peers.get_mut(&ends(1)).unwrap().answered = true;
            }
        }
        assert_eq!(table.peers.len(), PEERS);
        assert!(table.peers.contains_key(&ends(1)) && !table.peers.contains_key(&ends(2)));
        assert!(table.peers.contains_key(&ends(2 * PEERS as u16)));
    }

    #[test]
    fn who_sent_to_whom_is_in_the_headers() {
        let mut head = vec![0; 28];
        head[0] = 0x45;
        head[12..20].copy_from_slice(&[192, 0, 2, 9, 192, 0, 2, 1]);
        head[20..22].copy_from_slice(&4500u16.to_be_bytes());
        let found = ends(&head).unwrap();
        assert_eq!((found.peer, found.local), ("192.0.2.9:4500".parse().unwrap(), [192, 0, 2, 1].into()));
        assert!(ends(&head[..21]).is_none() && ends(&[]).is_none());
        let mut head = vec![0; 48];
        head[0] = 0x60;
        (head[23], head[39], head[41]) = (9, 1, 7);
        let found = ends(&head).unwrap();
        assert_eq!((found.peer, found.local), ("[::9]:7".parse().unwrap(), IpAddr::V6(1u128.into())));
    }
}
