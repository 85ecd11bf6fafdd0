//! The link: whole IP packets from and to Ethernet frames.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_links::interface::Interface;
use forebay_links::offload::partial::Completed;
use forebay_links::{Link, RxDrops, TxReport};
use forebay_links_sys::ebpf::{self, Purpose};
use forebay_wire::{Family, Ip};

use crate::neighbours::{Mac, Neighbours, Resolver};
use crate::program::{MAX_ENTRIES, Take, program};
use crate::socket::{MAX_FRAME, Xsk};

/// Length of an Ethernet header without tags.
const ETHERNET: usize = 14;

/// Between two looks at the device's MTU and address, which may be changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long a device may still be taken by a process that has ended: the kernel gives its queues and its program free
/// some time after that.
const BUSY_MAX: Duration = Duration::from_secs(3);
/// Between two tries.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// The largest packet that comes and goes, in bytes.
pub const MAX_PACKET: usize = MAX_FRAME - ETHERNET;

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// In the driver if it can, else as `Generic`.
    Best,
    /// In the driver.
    Driver,
    /// In front of the kernel's stack, with any device.
    Generic,
}

/// How frames come from the driver to the sockets and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// Without a copy if the driver can.
    Best,
    /// With a copy.
    Copy,
    /// Without a copy, or not at all.
    ZeroCopy,
}

/// What a device's links are to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpOptions {
    /// The name of an Ethernet device.
    pub interface: String,
    /// Number of receive queues that are served, from 0 on, each by a link of its own. Frames that come on others
    /// go on to the kernel: `ethtool -L` says how many there are, `ethtool -X` which are used.
    pub queues: u32,
    /// Which frames are taken.
    pub take: Take,
    /// Where the program runs.
    pub mode: Mode,
    /// Whether frames are copied between the driver and the sockets.
    pub copying: Copying,
    /// Places for frames, of 4 KiB, for each queue and direction; a power of two.
    pub frames: u32,
}

impl XdpOptions {
    /// One queue with 2,048 places, in the driver if it can.
    pub fn new(interface: &str, take: Take) -> XdpOptions {
        XdpOptions {
            interface: interface.into(),
            queues: 1,
            take,
            mode: Mode::Best,
            copying: Copying::Best,
            frames: 2048,
        }
    }
}

/// Opens the links of a device. One that is taken is tried again for some seconds, since a process that was killed a
/// moment ago may still have it.
///
/// # Errors
/// Without `CAP_NET_ADMIN` and `CAP_BPF`, if another program is attached there and stays, if the device has fewer queues
/// or no driver for the mode, `EOPNOTSUPP` if it cannot do without copies; `InvalidInput` for options that cannot be.
pub fn open(options: &XdpOptions) -> io::Result<Vec<XdpLink>> {
    let invalid = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    let (Take::Outside { to, .. } | Take::Inside { to }) = &options.take;
    let ports = if let Take::Outside { ports, .. } = &options.take { ports.len() } else { 0 };
    if to.len() > MAX_ENTRIES || ports > MAX_ENTRIES {
        return invalid("too many networks or ports");
    }
    if matches!(options.take, Take::Inside { .. }) && to.is_empty() {
        return invalid("an inside link needs networks: it would take all that is for this machine");
    }
    if !options.frames.is_power_of_two() || options.frames > 1 << 16 || options.queues == 0 {
        return invalid("a power of two of frames up to 65,536, and at least one queue");
    }
    let begin = Instant::now();
    loop {
        match open_once(options) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && begin.elapsed() < BUSY_MAX => {
                std::thread::sleep(BUSY_PAUSE);
            }
            opened => return opened,
        }
    }
}

/// Opens all links, or none.
fn open_once(options: &XdpOptions) -> io::Result<Vec<XdpLink>> {
    let interface = Interface::by_name(&options.interface)?;
    let map = ebpf::socket_map(options.queues)?;
    let mut links = Vec::new();
    let resolver = Resolver::start()?;
    let attached = Arc::new(Attached::new(&interface, options, &map)?);
    for queue in 0..options.queues {
        let socket = Xsk::open(interface.index(), queue, options.frames, options.copying)?;
        ebpf::put_socket(map.as_fd(), queue, socket.fd())?;
        links.push(XdpLink {
            socket,
            ours: interface.ethernet_address()?,
            mtu: interface.mtu()? as usize,
            neighbours: Neighbours::new(interface.index(), resolver.clone())?,
            interface: interface.clone(),
            looked: Instant::now(),
            completes: matches!(options.take, Take::Inside { .. }),
            passed_over: RxDrops::default(),
            _attached: attached.clone(),
        });
    }
    Ok(links)
}

/// The program on its device, for as long as there is a link.
struct Attached {
    mode: Mode,
    _link: OwnedFd,
}

impl Attached {
    fn new(interface: &Interface, options: &XdpOptions, map: &OwnedFd) -> io::Result<Attached> {
        use std::os::fd::AsRawFd;
        const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
        const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
        let loaded = ebpf::load(Purpose::Xdp, &program(&options.take, map.as_raw_fd()))?;
        let attach = |mode, flags| {
            let link = ebpf::attach(loaded.as_fd(), interface.index(), flags)?;
            Ok(Attached { mode, _link: link })
        };
        match options.mode {
            Mode::Driver => attach(Mode::Driver, XDP_FLAGS_DRV_MODE),
            Mode::Generic => attach(Mode::Generic, XDP_FLAGS_SKB_MODE),
            Mode::Best => attach(Mode::Driver, XDP_FLAGS_DRV_MODE).or_else(|error: io::Error| {
                // A driver that is taken can do it.
                let is_taken = error.kind() == io::ErrorKind::ResourceBusy;
                if is_taken { Err(error) } else { attach(Mode::Generic, XDP_FLAGS_SKB_MODE) }
            }),
        }
    }
}

/// One queue of a device.
pub struct XdpLink {
    socket: Xsk,
    interface: Interface,
    ours: Mac,
    mtu: usize,
    neighbours: Neighbours,
    /// When the device was asked for its MTU and address.
    looked: Instant,
    /// Whether checksums that senders have left to their device are completed: those of plain packets. ESP has its own.
    completes: bool,
    passed_over: RxDrops,
    _attached: Arc<Attached>,
}

impl XdpLink {
    /// Where the program runs: never [`Mode::Best`].
    pub fn mode(&self) -> Mode {
        self._attached.mode
    }

    /// Whether the driver uses the socket's own memory, so that frames are not copied.
    pub fn is_zero_copy(&self) -> bool {
        self.socket.is_zero_copy()
    }

    /// Asks the device again for its MTU and address, which may have been changed.
    fn refresh(&mut self) -> io::Result<()> {
        self.ours = self.interface.ethernet_address()?;
        self.mtu = self.interface.mtu()? as usize;
        Ok(())
    }
}

impl Link for XdpLink {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let mut given = 0;
        let mut seen = None;
        let mut any = false;
        let mut completed = Completed::EMPTY;
        while given < room {
            let Some(frame) = self.socket.take() else { break };
            any = true;
            let bytes = self.socket.bytes(&frame);
            // Behind a short packet the frame is padded: its own length counts.
            match bytes.split_at_checked(ETHERNET).map(|(head, packet)| (head, Ip::parse(packet))) {
                Some((head, Ok(ip))) => {
                    seen = head[6..].first_chunk().map(|mac: &Mac| (ip.source(), *mac));
                    let (head, body) = if self.completes { completed.of(&ip) } else { (ip.bytes(), &[][..]) };
                    take(head, body);
                    given += 1;
                }
                _ => self.passed_over.malformed += 1,
            }
            self.socket.give_back(frame);
        }
        if any {
            self.socket.received();
        }
        if let Some((from, mac)) = seen {
            self.neighbours.seen(from, mac);
        }
        Ok(given)
    }

    /// Neighbours are the kernel's to find; until it has, packets are counted under `unreachable`.
    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let mut sent = TxReport::default();
        if packets.is_empty() {
            if self.socket.is_stuck() {
                // An interface that is down is no news: nothing was given.
                let _ = self.socket.flush();
            }
            return sent;
        }
        let now = Instant::now();
        if now.duration_since(self.looked) > LOOK_EVERY {
            self.looked = now;
            // A device that is gone says so when it is to send.
            let _ = self.refresh();
        }
        let mut last: Option<(IpAddr, [u8; ETHERNET])> = None;
        for (i, packet) in packets.iter().enumerate() {
            let Ok(ip) = Ip::parse(packet) else {
                sent.unfit += 1;
                continue;
            };
            let packet = ip.bytes();
            if packet.len() > self.mtu.min(MAX_PACKET) {
                sent.too_big += 1;
                sent.mtu = Some(self.mtu.min(MAX_PACKET) as u32);
                continue;
            }
            let to = ip.destination();
            let header = match last {
                Some((same, header)) if same == to => header,
                _ => {
                    let Some(theirs) = self.neighbours.towards(to, now) else {
                        sent.unreachable += 1;
                        continue;
                    };
                    let header = ethernet(theirs, self.ours, ip.family());
                    last = Some((to, header));
                    header
                }
            };
            if !self.socket.put(&header, packet) {
                // Room may be made by sending what is there.
                let flushed = self.socket.flush();
                if flushed.is_err() || !self.socket.put(&header, packet) {
                    sent.would_block = packets.len() - i;
                    break;
                }
            }
            sent.taken += 1;
        }
        if self.socket.flush().is_err() {
            // What is in the ring goes when the device is up again.
            sent.down = sent.taken;
            sent.taken = 0;
        }
        sent
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    fn pending(&self) -> bool {
        self.socket.is_waiting()
    }

    fn unsent(&self) -> bool {
        self.socket.is_stuck()
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops { overrun: self.socket.dropped(), ..self.passed_over }
    }
}

fn ethernet(to: Mac, from: Mac, family: Family) -> [u8; ETHERNET] {
    let mut header = [0; ETHERNET];
    header[..6].copy_from_slice(&to);
    header[6..12].copy_from_slice(&from);
    header[12..].copy_from_slice(match family {
        Family::V4 => &[0x08, 0x00],
        Family::V6 => &[0x86, 0xdd],
    });
    header
}
