//! A device is opened: found, claimed, started.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use dpdk_sys::port::{self, BURST, Port, Start};
use dpdk_sys::{eal, pci};
use forebay_links::{Link, RxDrops};
use rustix::event::{EventfdFlags, eventfd};

use crate::arrivals::Sorter;
use crate::icmp::{IcmpLink, Messages};
use crate::link::{PortLink, Shared, lock};
use crate::neighbours::{Neighbours, Settings};
use crate::sockets::{MEMIF_DRIVER, Socket, add_argument};
use crate::{Opened, PortOptions, Side, Unavailable, Watch};

/// Room of a buffer for a frame: some drivers want as much (RTE_MBUF_DEFAULT_DATAROOM).
const ROOM: u16 = 2_048;
/// Where packets are larger: as much as AF_PACKET's ring has in three pages, which its driver wants to fit.
const LARGE_ROOM: u16 = 12_288;
/// What the room for larger packets is a multiple of.
const PAGE: u16 = 4_096;
/// DPDK's driver of TAP sends the descriptors of its queues, two of each, in a message with room for eight, and writes behind it if
/// there are more.
const TAP_DRIVER: &str = "net_tap";
const TAP_QUEUES_MAX: u16 = 4;
/// Around the largest packet: an Ethernet header, two VLAN tags and a frame check sequence.
const AROUND: u16 = 26;

/// The devices that links of this process have.
static IN_USE: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// A device that no other link has, until the last of its own links is dropped.
pub(crate) struct Claim(String);

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
    let most = if device.starts_with(TAP_DRIVER) { TAP_QUEUES_MAX } else { u16::MAX };
    let queues = options.queues.min(limits.rx_queues).min(limits.tx_queues).clamp(1, most);
    let buffers = options.buffers.unwrap_or_else(|| {
        let of_queue = 2 * u32::from(options.descriptors) + 8 * BURST as u32;
        // Each thread's cache is beside it.
        u32::from(queues) * (of_queue + 512) + 1_024
    });
    let start = Start { queues, descriptors: options.descriptors, mtu: options.mtu, buffers, room };
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
    for number in 0..queues {
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
