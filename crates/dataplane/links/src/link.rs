//! The interface of all links: whole IP packets in and out, in bursts.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use arrayvec::ArrayVec;
use forebay_packet::Packet;

/// Packets that are given at once to a link that has no buffers of its own: several of the kernel's trains of 64 KiB.
const AT_ONCE: usize = 256;

/// Copies a packet, given as header and body, into a buffer; `None` where it is not taken.
pub type Copy<'a> = dyn FnMut(&[u8], &[u8]) -> Option<Packet> + 'a;

/// A way for whole IP packets in and out, in bursts. Nothing waits, nothing allocates for a packet.
///
/// A link that has buffers of its own lends them ([`Link::receive_packets`]) and sends from them ([`Link::send_packets`]), so that
/// no byte is copied between two such links of one kind; all others give bytes, and are given bytes.
pub trait Link: Send {
    /// Takes the packets that are at hand, at most `room`, without waiting. Each is given as header and body,
    /// which stand one behind the other in the packet: so a segment of a large read, or a payload whose outer
    /// header the kernel took off, is copied only once, by who takes it. Returns how many were given.
    ///
    /// # Errors
    /// What the kernel says of the descriptor, not of a packet; that nothing is at hand is none.
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize>;

    /// The same as packets, which it puts behind those of `into`. A link that has buffers of its own lends them, with room for outer
    /// headers ([`Packet::HEADROOM`], [`Packet::TAILROOM`]): it gets a buffer back when the packet is dropped, or sends it as it is.
    /// All other packets stand where `copy` puts them. Returns how many came, those included that `copy` did not take.
    ///
    /// # Errors
    /// As [`Link::receive`].
    fn receive_packets(
        &mut self,
        room: usize,
        into: &mut Vec<Packet>,
        copy: &mut Copy<'_>,
    ) -> io::Result<usize> {
        self.receive(room, &mut |head, body| into.extend(copy(head, body)))
    }

    /// Sends packets in order, of one flow at least. What becomes of each is in [`TxReport`].
    fn send(&mut self, packets: &[&[u8]]) -> TxReport;

    /// The same, but a link that has buffers of its own takes those of packets that stand in one: such a packet has no buffer any
    /// more when it was sent. All others stay as they are.
    fn send_packets(&mut self, packets: &mut [&mut Packet]) -> TxReport {
        send_bytes(packets, |bytes| self.send(bytes))
    }

    /// For poll(2): readable when something has come, writable when what `would_block` may be tried again.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Whether packets of an earlier read are still to be given, although the descriptor is not readable.
    fn pending(&self) -> bool;

    /// Whether packets that it accepted still wait in memory shared with the kernel while the descriptor does not
    /// signal when they can continue; [`Link::send`] is then to be called again soon, without packets.
    fn unsent(&self) -> bool {
        false
    }

    /// For a link whose descriptor does not signal what has come: how long a worker may sleep before it asks the link again;
    /// zero: not at all. `None` for a link whose descriptor signals it.
    fn nap(&self) -> Option<Duration> {
        None
    }

    /// The state of the device, for a link that has one of its own.
    fn device(&self) -> Option<DeviceState> {
        None
    }

    /// What has become of received packets that were not given, since the link was made. It may ask the
    /// kernel: not for each burst.
    fn rx_drops(&self) -> RxDrops;
}

/// Sends the bytes of packets, as [`Link::send_packets`] does for a link that has no buffers of its own.
pub fn send_bytes(packets: &[&mut Packet], mut send: impl FnMut(&[&[u8]]) -> TxReport) -> TxReport {
    let mut report = TxReport::default();
    let mut left = packets.len();
    for burst in packets.chunks(AT_ONCE) {
        left -= burst.len();
        let bytes: ArrayVec<&[u8], AT_ONCE> = burst.iter().map(|packet| packet.bytes()).collect();
        report.add(&send(&bytes));
        if report.would_block > 0 {
            report.would_block += left;
            break;
        }
    }
    report
}

/// The outcome of sending a burst of packets. Each packet is counted once: under `taken`, under a reason, or under
/// `would_block`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxReport {
    /// Packets that the kernel took.
    pub taken: usize,
    /// The last packets of the burst: there is no room for them now; to be sent again, or dropped.
    pub would_block: usize,
    /// Larger than the link, and not to be fragmented.
    pub too_big: usize,
    /// The largest packet that goes where one was too big, if the kernel says so.
    pub mtu: Option<u32>,
    /// The kernel has no memory or its queue is full (`ENOBUFS`).
    pub no_buffers: usize,
    /// No route, host or network down, port closed.
    pub unreachable: usize,
    /// The link is down.
    pub down: usize,
    /// Not allowed to go there, by address or by a filter.
    pub refused: usize,
    /// Not a packet this link can send: malformed, another family, protocol or port, a fragment.
    pub unfit: usize,
    /// Any other error.
    pub failed: usize,
}

impl TxReport {
    /// Adds what became of another burst.
    pub fn add(&mut self, sent: &TxReport) {
        self.taken += sent.taken;
        self.would_block += sent.would_block;
        self.too_big += sent.too_big;
        self.mtu = self.mtu.or(sent.mtu);
        self.no_buffers += sent.no_buffers;
        self.unreachable += sent.unreachable;
        self.down += sent.down;
        self.refused += sent.refused;
        self.unfit += sent.unfit;
        self.failed += sent.failed;
    }

    /// Counts `packets` that a system call has refused with `error`; it has to be another one than that it
    /// would block.
    pub(crate) fn refuse(&mut self, error: &io::Error, packets: usize) {
        use rustix::io::Errno;
        let count = match Errno::from_io_error(error) {
            Some(Errno::MSGSIZE) => &mut self.too_big,
            Some(Errno::NOBUFS | Errno::NOMEM) => &mut self.no_buffers,
            Some(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::CONNREFUSED | Errno::HOSTDOWN) => {
                &mut self.unreachable
            }
            Some(Errno::NETDOWN | Errno::NODEV | Errno::NXIO | Errno::IO | Errno::BADFD) => &mut self.down,
            Some(Errno::PERM | Errno::ACCESS | Errno::ADDRNOTAVAIL) => &mut self.refused,
            Some(Errno::INVAL | Errno::AFNOSUPPORT | Errno::DESTADDRREQ) => &mut self.unfit,
            _ => &mut self.failed,
        };
        *count += packets;
    }

    /// Packets that were neither taken nor are to be tried again.
    pub fn dropped(&self) -> usize {
        self.too_big
            + self.no_buffers
            + self.unreachable
            + self.down
            + self.refused
            + self.unfit
            + self.failed
    }
}

/// The state of a link's own device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceState {
    /// Whether its link is up.
    pub is_up: bool,
    /// Neighbours whose Ethernet address is known.
    pub neighbours: usize,
    /// Frames that came in several buffers and were put together, which takes a copy.
    pub linearised: u64,
    /// How many times the device was made again because its other end was gone.
    pub made_again: u64,
    /// Packets that it had accepted and that were lost when the device was made again.
    pub unsent: u64,
}

/// Counts of received packets that a link has not given, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxDrops {
    /// NAT keepalives, one byte of 0xff (RFC 3948 2.3).
    pub keepalives: u64,
    /// IKE messages behind the non-ESP marker (RFC 3948 2.2). A link with a receiver for IKE messages passes them to
    /// it.
    pub ike: u64,
    /// Longer than any IP packet.
    pub truncated: u64,
    /// Headers that contradict each other or the packet.
    pub malformed: u64,
    /// Packets that the kernel dropped because the queue was full. A GRO batch that a socket lost counts as one. A
    /// TUN device's first queue counts the losses of all its queues, and also what arrived while the device was down.
    pub overrun: u64,
    /// Frames that are neither for the gateway nor for anything else that the link has, of a device that the kernel has no part
    /// in.
    pub foreign: u64,
}
