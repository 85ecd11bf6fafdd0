//! TUN devices: a network interface to programs, a descriptor with their packets to us.
//!
//! The kernel gives and takes super-packets of up to 64 KiB: one system call and one way through its stack for
//! some forty packets of a TCP stream. Here they are taken apart and put together.

mod waiting;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use forebay_links_sys::tun::{self, Offloads};
use rustix::io::Errno;

use crate::interface::Interface;
use crate::link::{Link, RxDrops, TxReport};
use crate::offload::merge::{self, BURST, MAX_HEAD, Merge, Merger};
use crate::offload::split::{Split, complete_checksum};
use crate::offload::{NEEDS_CHECKSUM, Unsound, VNET_LEN, VnetHeader};
use waiting::Waiting;

/// The longest packet that is read.
const MAX_PACKET: usize = 65_535;
/// Bytes in front of the kernel's header, so that the packet behind it is aligned.
const PAD: usize = 6;
/// Where the packet starts in the buffer.
const PACKET: usize = PAD + VNET_LEN;

/// Options of a TUN device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunOptions {
    /// The device's name, made if it does not exist; with `%d` in it, the kernel puts a number.
    pub name: String,
    /// Number of queues, each for a thread of its own.
    pub queues: usize,
    /// Whether super-packets are given and taken.
    pub offloads: bool,
}

impl Default for TunOptions {
    fn default() -> TunOptions {
        TunOptions { name: "forebay%d".into(), queues: 1, offloads: true }
    }
}

/// Opens the queues of a TUN device. The device is removed with the last of them, unless another process made it
/// persistent. It is down and has no addresses: see [`Interface`].
///
/// # Errors
/// Without `CAP_NET_ADMIN`, without TUN in the kernel, or if the device exists and is of another kind.
pub fn open(options: &TunOptions) -> io::Result<(Interface, Vec<TunQueue>)> {
    let multi_queue = options.queues > 1;
    let (first, name) = tun::open(&options.name, multi_queue, options.offloads)?;
    let mut queues = vec![TunQueue {
        interface: Some(Interface::by_name(&name)?),
        ..TunQueue::new(first, options.offloads)?
    }];
    for _ in 1..options.queues {
        let (queue, _) = tun::open(&name, multi_queue, options.offloads)?;
        queues.push(TunQueue::new(queue, options.offloads)?);
    }
    Ok((Interface::by_name(&name)?, queues))
}

/// Has no more than `most` packets wait in each of a device's `queues`, all of which these are. Without it the kernel's queue length bounds
/// what it hands over at once, batches of up to 64 packets.
///
/// # Errors
/// Without `CAP_BPF`, and before Linux 5.5.
pub fn bound(queues: &mut [TunQueue], most: u32) -> io::Result<()> {
    let Some(first) = queues.first() else { return Ok(()) };
    let waiting = Waiting::bound(first.fd.as_fd(), queues.len(), most)?;
    for (queue, waiting) in queues.iter_mut().zip(waiting) {
        queue.waiting = Some(waiting);
    }
    Ok(())
}

/// One queue of a TUN device.
pub struct TunQueue {
    fd: OwnedFd,
    /// Whether each packet has a `virtio_net_hdr`.
    headers: bool,
    merge: Merge,
    buffer: Box<[u8]>,
    /// Where the packet in `buffer` ends.
    end: usize,
    split: Split,
    merger: Merger,
    passed_over: RxDrops,
    waiting: Option<Waiting>,
    /// Present in the first queue only, which reports the losses of all queues, because the kernel counts by device.
    interface: Option<Interface>,
}

impl TunQueue {
    fn new(fd: OwnedFd, headers: bool) -> io::Result<TunQueue> {
        let mut merge = Merge::Nothing;
        if headers {
            merge = Merge::TcpAndUdp;
            if tun::set_offloads(fd.as_fd(), Offloads::TCP.and(Offloads::UDP)).is_err() {
                merge = Merge::Tcp;
                tun::set_offloads(fd.as_fd(), Offloads::TCP)?;
            }
        }
        Ok(TunQueue {
            fd,
            headers,
            merge,
            buffer: vec![0; PACKET + MAX_PACKET + 1].into(),
            end: PACKET,
            split: Split::EMPTY,
            merger: Merger::default(),
            passed_over: RxDrops::default(),
            waiting: None,
            interface: None,
        })
    }

    /// Reads one packet into the buffer; `None` if nothing is at hand, and for packets that are no good.
    /// Whether there are segments to be given then is in `split`.
    fn read(&mut self) -> io::Result<Option<VnetHeader>> {
        let start = if self.headers { PAD } else { PACKET };
        let len = loop {
            match rustix::io::read(&self.fd, &mut self.buffer[start..]) {
                Ok(len) => break len,
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        self.end = start + len;
        let header = match self.headers {
            false => VnetHeader::default(),
            true => self.buffer[PAD..].first_chunk().map(VnetHeader::parse).unwrap_or_default(),
        };
        Ok(Some(header))
    }

    /// Prepares the packet that was read to be given: completes its checksum, or starts to split it.
    fn prepare(&mut self, header: &VnetHeader) -> Result<(), Unsound> {
        if self.end > PACKET + MAX_PACKET {
            return Err(Unsound);
        }
        let packet = self.buffer.get_mut(PACKET..self.end).ok_or(Unsound)?;
        match header.kind()? {
            Some(kind) => self.split.start(header, kind, packet),
            None if header.flags & NEEDS_CHECKSUM != 0 => complete_checksum(header, packet),
            None => Ok(()),
        }
    }

    /// Writes one train; returns the error if the kernel did not take it.
    fn write(&self, train: &merge::Train, packets: &[&[u8]]) -> io::Result<()> {
        let mut head = [0; MAX_HEAD];
        let header = train.header(packets, &mut head).emit();
        let head_len = train.head_len();
        let mut slices = merge::slices();
        let mut used = 0;
        let mut put = |bytes| {
            slices[used] = IoSlice::new(bytes);
            used += 1;
        };
        if self.headers {
            put(&header);
        }
        if head_len > 0 {
            put(&head[..head_len]);
        }
        for i in self.merger.members(train) {
            put(&packets[i][head_len..]);
        }
        loop {
            match rustix::io::writev(&self.fd, &slices[..used]) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Link for TunQueue {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let came = self.waiting.as_ref().map(Waiting::came);
        let (mut given, mut taken, mut nothing_left) = (0, 0, None);
        while given < room {
            if let Some((head, body)) = self.split.next(&self.buffer[PACKET..self.end]) {
                take(head, body);
                given += 1;
                continue;
            }
            let header = match self.read() {
                Ok(Some(header)) => header,
                Ok(None) => {
                    nothing_left = came;
                    break;
                }
                // What has been given is not lost; the error will come again.
                Err(_) if given > 0 => break,
                Err(error) => return Err(error),
            };
            match self.prepare(&header) {
                Ok(()) if self.split.is_empty() => {
                    take(&self.buffer[PACKET..self.end], &[]);
                    (given, taken) = (given + 1, taken + 1);
                }
                Ok(()) => taken += self.split.count(),
                Err(Unsound) => {
                    self.split = Split::EMPTY;
                    self.passed_over.malformed += 1;
                    taken += 1;
                }
            }
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.took(taken as u64, nothing_left);
        }
        Ok(given)
    }

    /// Flows may overtake each other, within a flow the order stays. A queue of a device does not block: if
    /// the kernel cannot take a packet now, it is dropped and counted under `no_buffers`.
    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let mut sent = TxReport::default();
        for burst in packets.chunks(BURST) {
            self.merger.group(burst, self.merge);
            for train in self.merger.trains() {
                let count = usize::from(train.packets);
                match self.write(train, burst) {
                    Ok(()) => sent.taken += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => sent.no_buffers += count,
                    Err(error) => sent.refuse(&error, count),
                }
            }
        }
        sent
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn pending(&self) -> bool {
        !self.split.is_empty()
    }

    fn rx_drops(&self) -> RxDrops {
        let overrun = self.interface.as_ref().and_then(|interface| interface.dropped().ok());
        RxDrops { overrun: overrun.unwrap_or(0), ..self.passed_over }
    }
}
