//! The link: whole IP packets from and to frames of a queue.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use dpdk_sys::port::{self, Arrived, BURST, Frame, Port, Queue, Start};
use dpdk_sys::{eal, pci};
use forebay_links::offload::partial::Completed;
use forebay_links::{DeviceState, Link, RxDrops, TxReport};
use forebay_wire::fragments::Fragments;
use forebay_wire::icmp::{self, TooBig};
use forebay_wire::{Family, Ip};
use rustix::event::{EventfdFlags, eventfd};

use crate::arrivals::{Arrival, Sorter};
use crate::icmp::{IcmpLink, Messages};
use crate::messages::{self, Message};
use crate::neighbours::{Neighbours, Settings};
use crate::sockets::{MEMIF_DRIVER, Socket, add_argument};
use crate::{ETHERNET, Mac, Opened, PortOptions, Side, Unavailable, Watch};

/// How long a queue of the table's answers is used without asking the table.
const KEEP: Duration = Duration::from_secs(1);
/// The most destinations of which a queue keeps the answer.
const MOST: usize = 4_096;
/// Bursts of one call that may hold nothing for the gateway.
const VAIN: usize = 4;
/// Replies to echo requests of one burst.
const ECHOES: usize = 8;
/// Replies of the gateway itself to what came out of a tunnel.
const LOOPED: usize = 64;
/// Calls in vain behind which a worker may sleep, and behind which it may sleep longer.
const IDLE: [u32; 2] = [500, 1_500];
const NAPS: [Duration; 3] = [Duration::ZERO, Duration::from_micros(100), Duration::from_millis(1)];
/// Room of a buffer for a frame: some drivers want as much (RTE_MBUF_DEFAULT_DATAROOM).
const ROOM: u16 = 2_048;
/// Where packets are larger: as much as AF_PACKET's ring has in three pages, which its driver wants to fit.
const LARGE_ROOM: u16 = 12_288;
/// What the room for larger packets is a multiple of.
const PAGE: u16 = 4_096;
/// Around the largest packet: an Ethernet header, two VLAN tags and a frame check sequence.
const AROUND: u16 = 26;

/// The devices that links of this process have.
static IN_USE: Mutex<Option<HashSet<String>>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A device that no other link has, until the last of its own links is dropped.
struct Claim(String);

impl Claim {
    fn new(device: &str) -> Result<Claim, Unavailable> {
        match lock(&IN_USE).get_or_insert_default().insert(device.to_owned()) {
            true => Ok(Claim(device.to_owned())),
            false => Err(Unavailable::InUse { device: device.to_owned() }),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&IN_USE).get_or_insert_default().remove(&self.0);
    }
}

/// What the queues of a device share. The device is stopped before it may be claimed again.
pub(crate) struct Shared {
    neighbours: Mutex<Neighbours>,
    pub(crate) port: Arc<Port>,
    /// How many times the device was made again.
    pub(crate) made_again: AtomicU64,
    /// Whether its other end was gone when it was last looked at. Its driver takes packets as long as its ring has room, and they
    /// are lost.
    pub(crate) is_away: AtomicBool,
    _claim: Claim,
}

pub(crate) fn look(device: &str) -> Result<(), Unavailable> {
    if pci::is_place(device) {
        let device = device.to_owned();
        return pci::look(Path::new(pci::PCI_DEVICES), &device).map_err(|unfit| match unfit {
            pci::Unfit::NotOnBus => Unavailable::NotOnBus { device },
            pci::Unfit::NotBound(driver) => Unavailable::NotBound { device, driver },
        });
    }
    eal::start(device).map_err(Unavailable::NotStarted)?;
    match port::is_possible(device) {
        true => Ok(()),
        false => Err(Unavailable::NoDriver { device: device.to_owned() }),
    }
}

pub(crate) fn open(options: &PortOptions) -> Result<Opened, Unavailable> {
    look(&options.device)?;
    let device = options.device.clone();
    eal::start(&device).map_err(Unavailable::NotStarted)?;
    let claim = Claim::new(&device)?;
    let not_made = |errno| Unavailable::NotMade { device: device.clone(), errno };
    let room = match options.mtu.saturating_add(AROUND) {
        ..=ROOM => ROOM,
        needed => LARGE_ROOM.max(needed.next_multiple_of(PAGE)),
    };
    let mut arguments = options.arguments.clone();
    let socket = Socket::of(&device, &arguments);
    socket.iter().for_each(Socket::remove_stale);
    if device.starts_with(MEMIF_DRIVER) && room > ROOM {
        // The buffers of a client's rings. In several of them frames would be damaged: DPDK's driver leaves the mark that a frame
        // goes on in the next buffer where it is, and takes it for one of a later frame.
        add_argument(&mut arguments, "bsize", &room.to_string());
    }
    let number = port::find(&device, &arguments).map_err(not_made)?;
    let limits = port::limits(number).map_err(not_made)?;
    let (queues, wanted) = (limits.rx_queues.min(limits.tx_queues), options.queues.max(1));
    if queues < wanted {
        port::discard(number);
        return Err(Unavailable::TooFewQueues { device, queues, wanted });
    }
    let buffers = options.buffers.unwrap_or_else(|| {
        let of_queue = 2 * u32::from(options.descriptors) + 8 * BURST as u32;
        // Each thread's cache is beside it.
        u32::from(wanted) * (of_queue + 512) + 1_024
    });
    let start = Start { queues: wanted, descriptors: options.descriptors, mtu: options.mtu, buffers, room };
    let port = Port::start(number, &start).map_err(|errno| match errno {
        // ENOMEM
        12 => Unavailable::NoMemory { device: device.clone() },
        errno => Unavailable::NotReady { device: device.clone(), errno },
    })?;
    let settings = Settings {
        mac: limits.mac,
        addresses: options.addresses.clone(),
        gateways: options.gateways.clone(),
        fixed: options.neighbours.clone(),
    };
    let neighbours = Mutex::new(Neighbours::new(settings, Instant::now()));
    let is_up = port.is_up();
    let shared = Arc::new(Shared {
        neighbours,
        port,
        made_again: AtomicU64::new(0),
        is_away: AtomicBool::new(false),
        _claim: claim,
    });
    let watch = Watch::new((&device, &arguments), socket, limits.mac, &shared);
    let no_memory = |_| Unavailable::NoMemory { device: device.clone() };
    let icmp = match options.side {
        Side::Outside { .. } => Some(Messages::new().map_err(no_memory)?),
        Side::Inside => None,
    };
    let mut links: Vec<Box<dyn Link + Send>> = vec![];
    for number in 0..wanted {
        let queue = shared.port.queue(number);
        let queue = queue.ok_or_else(|| Unavailable::NoMemory { device: device.clone() })?;
        let sorter = Sorter {
            mac: limits.mac,
            own: options.addresses.iter().map(|own| own.addr()).collect(),
            side: options.side.clone(),
        };
        let never = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        links.push(Box::new(PortLink {
            queue,
            sorter,
            shared: shared.clone(),
            icmp: icmp.clone(),
            known: HashMap::new(),
            mtu: usize::from(options.mtu),
            is_first: number == 0,
            completes: options.side == Side::Inside && !pci::is_place(&device),
            never: never.map_err(|_| Unavailable::NoMemory { device: device.clone() })?,
            idle: 0,
            // What the table has to say first.
            has_news: number == 0,
            has_left: false,
            looped: VecDeque::new(),
            passed_over: RxDrops::default(),
            linearised: 0,
        }));
    }
    Ok(Opened { links, icmp: icmp.map(IcmpLink), mac: limits.mac, is_up, watch })
}

/// One queue of a device.
pub struct PortLink {
    // Before what it shares: the device is stopped when nobody has a queue any more.
    queue: Queue,
    sorter: Sorter,
    shared: Arc<Shared>,
    icmp: Option<Messages>,
    /// What the table has answered, and until when that is used.
    known: HashMap<IpAddr, (Mac, Instant)>,
    mtu: usize,
    /// Whether it counts what the whole device has lost.
    is_first: bool,
    /// Whether checksums that senders have left to their device are completed.
    completes: bool,
    /// Never readable, and always writable.
    never: OwnedFd,
    /// Calls in a row in which nothing came.
    idle: u32,
    /// Whether the table may have frames to send.
    has_news: bool,
    /// Whether the device has not taken all that it was given.
    has_left: bool,
    /// Replies of the gateway's own address to what came out of a tunnel.
    looped: VecDeque<Vec<u8>>,
    passed_over: RxDrops,
    linearised: u64,
}

/// What a burst had beside packets.
#[derive(Default)]
struct Beside {
    heard: ArrayVec<Message, BURST>,
    echoes: ArrayVec<Vec<u8>, ECHOES>,
}

impl PortLink {
    /// Receives a burst: frames that came, and packets that were given.
    fn receive_burst(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> (usize, usize) {
        let PortLink { queue, sorter, icmp, passed_over, linearised, completes, mtu, .. } = self;
        let mut completed = Completed::EMPTY;
        let mut beside = Beside::default();
        let mut given = 0;
        let came = queue.receive(room, |frame: Arrived<'_>| {
            *linearised += u64::from(frame.was_chained);
            if frame.is_too_long {
                passed_over.truncated += 1;
                return;
            }
            match sorter.sort(frame.bytes, frame.checksum) {
                Arrival::Packet(ip) => {
                    let (head, body) = if *completes { completed.of(&ip) } else { (ip.bytes(), &[][..]) };
                    take(head, body);
                    given += 1;
                }
                Arrival::Neighbour(message) => beside.heard.push(message),
                Arrival::Icmp(ip, from) => {
                    let fits = ip.bytes().len() <= *mtu;
                    let is_used = fits && answer(ip, (from, sorter.mac), icmp, &mut beside);
                    passed_over.foreign += u64::from(!is_used);
                }
                Arrival::Keepalive => passed_over.keepalives += 1,
                Arrival::Ike => passed_over.ike += 1,
                Arrival::Foreign => passed_over.foreign += 1,
                Arrival::Malformed => passed_over.malformed += 1,
            }
        });
        if !beside.heard.is_empty() || !beside.echoes.is_empty() || self.has_news {
            self.attend(beside);
        }
        (came, given)
    }

    /// Tells the table what was heard, and sends what it has to say.
    #[cold]
    fn attend(&mut self, beside: Beside) {
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
        let frames: Vec<_> = frames.into_iter().map(|(header, rest)| Frame::new(*header, rest)).collect();
        // They are sent again where they matter.
        self.queue.send(&frames);
    }

    /// The header of frames to a destination.
    fn header(&mut self, to: IpAddr, family: Family, now: Instant) -> Option<[u8; ETHERNET]> {
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

    /// What is to become of a packet.
    #[inline]
    fn prepare<'a>(
        &mut self,
        packet: &'a [u8],
        last: &mut Option<(IpAddr, [u8; ETHERNET])>,
        now: Instant,
    ) -> Fate<'a> {
        let Ok(ip) = Ip::parse(packet) else { return Fate::Unfit };
        let (packet, to) = (ip.bytes(), ip.destination());
        let fits = packet.len() <= self.mtu;
        if let Some((same, header)) = last
            && *same == to
            && fits
        {
            return Fate::Sent(Frame::new(*header, packet));
        }
        if self.sorter.own.contains(&to) {
            // What came out of a tunnel for the gateway itself.
            let Some(reply) = messages::echo(&ip).filter(|_| self.looped.len() < LOOPED) else {
                return Fate::Refused;
            };
            self.looped.push_back(reply);
            return Fate::Answered;
        }
        if !fits {
            return Fate::TooBig;
        }
        match self.header(to, ip.family(), now) {
            Some(header) => {
                *last = Some((to, header));
                Fate::Sent(Frame::new(header, packet))
            }
            None => Fate::Unreachable,
        }
    }

    /// Whether a packet is longer than the inside link's MTU: its router is this link. What is too big for the outside lowers
    /// the path MTU of its SA.
    #[inline]
    fn is_divided(&self, packet: &[u8]) -> bool {
        packet.len() > self.mtu && self.sorter.side == Side::Inside
    }

    /// Sends a packet that is longer than the MTU in fragments, or tells its source what fits (RFC 1812 4.2.2.7 and 4.3.3.3, RFC
    /// 4443 3.2).
    #[cold]
    fn send_divided(&mut self, packet: &[u8], now: Instant) -> TxReport {
        let mut report = TxReport::default();
        let is_own = |ip: &Ip<'_>| self.sorter.own.contains(&ip.destination());
        let ip = match Ip::parse(packet) {
            Ok(ip) if ip.bytes().len() > self.mtu && !is_own(&ip) => ip,
            _ => return self.send_burst(&[packet], &mut None, now),
        };
        // Routers do not divide packets of IPv6.
        let fragments = Fragments::new(&ip, self.mtu, 0).filter(|_| ip.family() == Family::V4);
        let Some(mut fragments) = fragments else {
            let mut room = [0; icmp::MAX_V6];
            let from = self.sorter.own.iter().find(|own| own.is_ipv4() == (ip.family() == Family::V4));
            let len =
                from.and_then(|from| icmp::packet_too_big(ip.bytes(), self.mtu as u16, *from, &mut room));
            if let Some(len) = len.filter(|_| self.looped.len() < LOOPED) {
                self.looped.push_back(room[..len].to_vec());
            }
            return TxReport { too_big: 1, mtu: Some(self.mtu as u32), ..report };
        };
        let Some(header) = self.header(ip.destination(), ip.family(), now) else {
            return TxReport { unreachable: 1, ..report };
        };
        if self.shared.is_away.load(Ordering::Relaxed) {
            return TxReport { down: 1, ..report };
        }
        let mut pieces = vec![];
        let mut room = vec![0; self.mtu];
        while let Some(len) = fragments.next_into(&mut room) {
            pieces.push(room[..len].to_vec());
        }
        let frames: Vec<Frame<'_>> = pieces.iter().map(|piece| Frame::new(header, piece)).collect();
        let sent = self.queue.send(&frames);
        self.has_left = self.queue.flush() > 0;
        let count = match sent.taken {
            taken if taken == frames.len() => &mut report.taken,
            0 if !sent.lacks_buffers && !self.shared.port.is_up() => &mut report.down,
            0 if !sent.lacks_buffers => &mut report.would_block,
            // Of a packet of which some fragments are lost nothing is left.
            _ => &mut report.no_buffers,
        };
        *count += 1;
        report
    }

    /// Sends a burst; the report, and how many of the last packets there is no room for.
    fn send_burst(
        &mut self,
        packets: &[&[u8]],
        last: &mut Option<(IpAddr, [u8; ETHERNET])>,
        now: Instant,
    ) -> TxReport {
        let fates: ArrayVec<Fate<'_>, BURST> =
            packets.iter().map(|packet| self.prepare(packet, last, now)).collect();
        let frames: ArrayVec<Frame<'_>, BURST> = fates
            .iter()
            .filter_map(|fate| if let Fate::Sent(frame) = fate { Some(*frame) } else { None })
            .collect();
        let mut left = 0;
        let mut report = TxReport::default();
        let mut taken = frames.len();
        let (mut lacks_buffers, mut is_down) = (false, false);
        if !frames.is_empty() && self.shared.is_away.load(Ordering::Relaxed) {
            (taken, is_down) = (0, true);
        } else if !frames.is_empty() {
            let sent = self.queue.send(&frames);
            (taken, lacks_buffers) = (sent.taken, sent.lacks_buffers);
            self.has_left = self.queue.flush() > 0;
            is_down = taken < frames.len() && !lacks_buffers && !self.shared.port.is_up();
        }
        for (at, fate) in fates.iter().enumerate() {
            match fate {
                Fate::Sent(_) if taken > 0 => {
                    taken -= 1;
                    report.taken += 1;
                }
                Fate::Sent(_) if lacks_buffers => report.no_buffers += 1,
                Fate::Sent(_) if is_down => report.down += 1,
                Fate::Sent(_) => {
                    left = fates.len() - at;
                    break;
                }
                Fate::Answered => report.taken += 1,
                Fate::TooBig => {
                    report.too_big += 1;
                    report.mtu = Some(self.mtu as u32);
                }
                Fate::Unreachable => report.unreachable += 1,
                Fate::Refused => report.refused += 1,
                Fate::Unfit => report.unfit += 1,
            }
        }
        report.would_block = left;
        report
    }
}

/// What is to become of a packet.
#[derive(Clone, Copy)]
enum Fate<'a> {
    Sent(Frame<'a>),
    Answered,
    TooBig,
    Unreachable,
    Refused,
    Unfit,
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
        let mut given = 0;
        while given < room
            && let Some(packet) = self.looped.pop_front()
        {
            take(&packet, &[]);
            given += 1;
        }
        let mut vain = 0;
        let mut any = given > 0;
        while given < room && vain < VAIN {
            let (came, packets) = self.receive_burst(room - given, take);
            given += packets;
            any |= came > 0;
            if came == 0 {
                break;
            }
            vain += usize::from(packets == 0);
        }
        self.idle = if any { 0 } else { self.idle.saturating_add(1) };
        Ok(given)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let mut report = TxReport::default();
        if packets.is_empty() {
            self.has_left = self.queue.flush() > 0;
            return report;
        }
        let now = Instant::now();
        let mut last = None;
        let mut rest = packets;
        while let Some(first) = rest.first() {
            let fitting = rest.iter().take(BURST).take_while(|packet| !self.is_divided(packet)).count();
            let (burst, behind) = rest.split_at(fitting.max(1));
            rest = behind;
            let sent = match fitting {
                0 => self.send_divided(first, now),
                _ => self.send_burst(burst, &mut last, now),
            };
            report.taken += sent.taken;
            report.too_big += sent.too_big;
            report.mtu = report.mtu.or(sent.mtu);
            report.no_buffers += sent.no_buffers;
            report.unreachable += sent.unreachable;
            report.down += sent.down;
            report.refused += sent.refused;
            report.unfit += sent.unfit;
            if sent.would_block > 0 {
                report.would_block = sent.would_block + rest.len();
                break;
            }
        }
        if self.has_news {
            self.attend(Beside::default());
        }
        report
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
