//! The link: whole IP packets from and to frames of a queue.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use dpdk_sys::port::{self, Arrived, BURST, Frame, Port, Queue};
use forebay_links::offload::partial::Completed;
use forebay_links::{Copy, DeviceState, Link, RxDrops, TxReport};
use forebay_packet::Packet;
use forebay_wire::icmp::TooBig;
use forebay_wire::{Family, Ip};

use crate::arrivals::{Arrival, Sorter};
use crate::icmp::Messages;
use crate::messages::{self, Message};
use crate::neighbours::Neighbours;
use crate::open::Claim;
use crate::{ETHERNET, Mac};

/// How long a queue of the table's answers is used without asking the table.
const KEEP: Duration = Duration::from_secs(1);
/// The most destinations of which a queue keeps the answer.
const MOST: usize = 4_096;
/// Bursts of one call that may hold nothing for the gateway.
const VAIN: usize = 4;
/// Replies to echo requests of one burst.
const ECHOES: usize = 8;
/// Calls in vain behind which a worker may sleep, and behind which it may sleep longer.
const IDLE: [u32; 2] = [500, 1_500];
const NAPS: [Duration; 3] = [Duration::ZERO, Duration::from_micros(100), Duration::from_millis(1)];

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the queues of a device share. The device is stopped before it may be claimed again.
pub(crate) struct Shared {
    pub(crate) neighbours: Mutex<Neighbours>,
    pub(crate) port: Arc<Port>,
    /// How many times the device was made again.
    pub(crate) made_again: AtomicU64,
    /// Whether its other end was gone when it was last looked at. Its driver takes packets as long as its ring has room, and they
    /// are lost.
    pub(crate) is_away: AtomicBool,
    pub(crate) _claim: Claim,
}

/// One queue of a device.
pub struct PortLink {
    // Before what it shares: the device is stopped when nobody has a queue any more.
    pub(crate) queue: Queue,
    pub(crate) sorter: Sorter,
    pub(crate) shared: Arc<Shared>,
    pub(crate) icmp: Option<Messages>,
    /// What the table has answered, and until when that is used.
    pub(crate) known: HashMap<IpAddr, (Mac, Instant)>,
    pub(crate) mtu: usize,
    /// Whether it counts what the whole device has lost.
    pub(crate) is_first: bool,
    /// Whether checksums that senders have left to their device are completed.
    pub(crate) completes: bool,
    /// Never readable, and always writable.
    pub(crate) never: OwnedFd,
    /// Calls in a row in which nothing came.
    pub(crate) idle: u32,
    /// Whether the table may have frames to send.
    pub(crate) has_news: bool,
    /// Whether the device has not taken all that it was given.
    pub(crate) has_left: bool,
    /// Replies of the gateway's own address to what came out of a tunnel.
    pub(crate) looped: VecDeque<Vec<u8>>,
    pub(crate) passed_over: RxDrops,
    pub(crate) linearised: u64,
}

/// Who takes packets.
trait Taker {
    fn bytes(&mut self, head: &[u8], body: &[u8]);

    /// The packet of so many bytes behind the Ethernet header of a frame.
    fn frame(&mut self, frame: Arrived<'_>, len: usize);
}

/// Looks at them.
struct Bytes<'a>(&'a mut dyn FnMut(&[u8], &[u8]));

impl Taker for Bytes<'_> {
    fn bytes(&mut self, head: &[u8], body: &[u8]) {
        (self.0)(head, body);
    }

    fn frame(&mut self, frame: Arrived<'_>, len: usize) {
        (self.0)(&frame.bytes()[ETHERNET..ETHERNET + len], &[]);
    }
}

/// Keeps them, in the device's buffers where these can be lent.
struct Packets<'a> {
    into: &'a mut Vec<Packet>,
    copy: &'a mut Copy<'a>,
}

impl Taker for Packets<'_> {
    fn bytes(&mut self, head: &[u8], body: &[u8]) {
        self.into.extend((self.copy)(head, body));
    }

    #[inline]
    fn frame(&mut self, frame: Arrived<'_>, len: usize) {
        if let Err(frame) = frame.lend(len, self.into) {
            self.bytes(&frame.bytes()[ETHERNET..ETHERNET + len], &[]);
        }
    }
}

/// What a burst had beside packets.
#[derive(Default)]
pub(crate) struct Beside {
    heard: ArrayVec<Message, BURST>,
    echoes: ArrayVec<Vec<u8>, ECHOES>,
}

impl PortLink {
    /// Receives what is at hand, at most `room` packets; how many it gave.
    fn receive_all(&mut self, room: usize, taker: &mut impl Taker) -> usize {
        let mut given = 0;
        while given < room
            && let Some(packet) = self.looped.pop_front()
        {
            taker.bytes(&packet, &[]);
            given += 1;
        }
        let mut vain = 0;
        let mut any = given > 0;
        while given < room && vain < VAIN {
            let (came, packets) = self.receive_burst(room - given, taker);
            given += packets;
            any |= came > 0;
            if came == 0 {
                break;
            }
            vain += usize::from(packets == 0);
        }
        self.idle = if any { 0 } else { self.idle.saturating_add(1) };
        given
    }

    /// Receives a burst: frames that came, and packets that were given.
    fn receive_burst(&mut self, room: usize, taker: &mut impl Taker) -> (usize, usize) {
        let PortLink { queue, sorter, icmp, passed_over, linearised, completes, mtu, .. } = self;
        let mut completed = Completed::EMPTY;
        let mut beside = Beside::default();
        let mut given = 0;
        let came = queue.receive(room, |frame: Arrived<'_>| {
            *linearised += u64::from(frame.was_chained());
            if frame.is_too_long() {
                passed_over.truncated += 1;
                return;
            }
            let len = match sorter.sort(frame.bytes(), frame.checksum()) {
                // Not moved, which costs as much as a cache miss: it has just been written in other pieces.
                Arrival::Packet(ref ip) => {
                    given += 1;
                    if *completes
                        && let (head, body) = completed.of(ip)
                        && head.as_ptr() != ip.bytes().as_ptr()
                    {
                        return taker.bytes(head, body);
                    }
                    ip.bytes().len()
                }
                Arrival::Neighbour(message) => return beside.heard.push(message),
                Arrival::Icmp(ip, from) => {
                    let fits = ip.bytes().len() <= *mtu;
                    let is_used = fits && answer(ip, (from, sorter.mac), icmp, &mut beside);
                    return passed_over.foreign += u64::from(!is_used);
                }
                Arrival::Keepalive => return passed_over.keepalives += 1,
                Arrival::Ike => return passed_over.ike += 1,
                Arrival::Foreign => return passed_over.foreign += 1,
                Arrival::Malformed => return passed_over.malformed += 1,
            };
            taker.frame(frame, len);
        });
        if !beside.heard.is_empty() || !beside.echoes.is_empty() || self.has_news {
            self.attend(beside);
        }
        (came, given)
    }

    /// Tells the table what was heard, and sends what it has to say.
    #[cold]
    pub(crate) fn attend(&mut self, beside: Beside) {
        let now = Instant::now();
        let mut table = lock(&self.shared.neighbours);
        for message in beside.heard {
            match table.heard(message, now) {
                // What has been learnt anew counts at once.
                true => self.known.clear(),
                false => self.passed_over.foreign += 1,
            }
        }
        let mut frames = table.take_waiting();
        drop(table);
        self.has_news = false;
        frames.extend(beside.echoes);
        let frames: Vec<_> =
            frames.iter().filter_map(|frame| frame.split_first_chunk::<ETHERNET>()).collect();
        let mut frames: Vec<_> = frames.into_iter().map(|(header, rest)| Frame::new(*header, rest)).collect();
        // They are sent again where they matter.
        self.queue.send(&mut frames);
    }

    /// The header of frames to a destination.
    pub(crate) fn header(&mut self, to: IpAddr, family: Family, now: Instant) -> Option<[u8; ETHERNET]> {
        let mac = match self.known.get(&to).filter(|(_, until)| now < *until) {
            Some((mac, _)) => *mac,
            None => {
                let mut table = lock(&self.shared.neighbours);
                let mac = table.towards(to, now);
                self.has_news |= table.has_waiting();
                drop(table);
                let mac = mac?;
                if self.known.len() >= MOST {
                    self.known.clear();
                }
                self.known.insert(to, (mac, now + KEEP));
                mac
            }
        };
        let kind = if family == Family::V4 { messages::IPV4 } else { messages::IPV6 };
        Some(messages::header(mac, self.sorter.mac, kind))
    }
}

/// Takes an ICMP message for an own address; whether it was of any use.
#[cold]
fn answer(ip: Ip<'_>, (from, own): (Mac, Mac), icmp: &Option<Messages>, beside: &mut Beside) -> bool {
    if let (Some(icmp), Some(_)) = (icmp, TooBig::parse(ip.bytes())) {
        return icmp.put(ip.bytes());
    }
    if beside.echoes.is_full() || !messages::is_of_one(from) {
        return false;
    }
    let Some(reply) = messages::echo(&ip) else { return false };
    let kind = if ip.family() == Family::V4 { messages::IPV4 } else { messages::IPV6 };
    let mut frame = messages::header(from, own, kind).to_vec();
    frame.extend(reply);
    beside.echoes.push(frame);
    true
}

impl Link for PortLink {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        Ok(self.receive_all(room, &mut Bytes(take)))
    }

    fn receive_packets(
        &mut self,
        room: usize,
        into: &mut Vec<Packet>,
        copy: &mut Copy<'_>,
    ) -> io::Result<usize> {
        Ok(self.receive_all(room, &mut Packets { into, copy }))
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        self.send_all(&mut packets.to_vec())
    }

    fn send_packets(&mut self, packets: &mut [&mut Packet]) -> TxReport {
        self.send_all(packets)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }

    fn pending(&self) -> bool {
        !self.looped.is_empty()
    }

    fn unsent(&self) -> bool {
        self.has_left
    }

    fn nap(&self) -> Option<Duration> {
        let step = IDLE.iter().filter(|behind| self.idle >= **behind).count();
        Some(NAPS[step])
    }

    fn device(&self) -> Option<DeviceState> {
        Some(DeviceState {
            is_up: self.shared.port.is_up(),
            neighbours: lock(&self.shared.neighbours).known(),
            linearised: self.linearised,
            made_again: self.shared.made_again.load(Ordering::Relaxed),
            unsent: self.shared.port.unsent(),
        })
    }

    fn rx_drops(&self) -> RxDrops {
        let lost = match self.is_first {
            true => self.shared.port.counts(),
            false => port::Counts::default(),
        };
        RxDrops { overrun: lost.missed + lost.no_buffers, ..self.passed_over }
    }
}
