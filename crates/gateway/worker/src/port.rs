//! A link with what waits to be sent on it, and its counts.

use std::collections::VecDeque;
use std::io;

use arrayvec::ArrayVec;
use forebay_crypto::{Packet, SessionId};
use forebay_links::{Copy, DeviceState, Link, RxDrops, TxReport};
use forebay_planted::{Fault, planted};
use rustix::io::Errno;

/// Packets that are given to a link at once: several of the kernel's trains of 64 KiB.
const AT_ONCE: usize = 256;

/// A packet on its way out.
#[derive(Debug)]
pub struct Outgoing {
    /// The packet.
    pub packet: Packet,
    /// The SA that sealed it or that it was opened by.
    pub session: Option<SessionId>,
}

/// Packets that are to go out on a link, oldest first.
#[derive(Debug, Default)]
pub struct Queue {
    packets: VecDeque<Outgoing>,
    /// How many may wait, while the link has no room.
    limit: Option<usize>,
}

impl Queue {
    /// Puts a packet behind those that wait; gives it back if the link has no room and too many wait for it.
    pub fn put(&mut self, outgoing: Outgoing) -> Result<(), Packet> {
        if self.limit.is_some_and(|limit| self.packets.len() >= limit) {
            return Err(outgoing.packet);
        }
        self.packets.push_back(outgoing);
        Ok(())
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        self.packets.len()
    }
}

/// What has gone over a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Packets received.
    pub packets_in: u64,
    /// Their bytes, IP headers included.
    pub bytes_in: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Packets that were not sent, or lost before they were taken, by reason.
    pub lost: Lost,
    /// Times that sending had to wait for the link.
    pub waits: u64,
    /// Errors of the descriptor itself.
    pub errors: u64,
}

/// Packets that a link did not send, by reason: see [`TxReport`]; and what it did not give: see
/// [`RxDrops`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Larger than the link.
    pub too_big: u64,
    /// The kernel had no memory.
    pub no_buffers: u64,
    /// No way there.
    pub unreachable: u64,
    /// The link was down.
    pub down: u64,
    /// Not allowed.
    pub refused: u64,
    /// Not for this link.
    pub unfit: u64,
    /// Any other error.
    pub failed: u64,
    /// They would have waited too long behind others.
    pub queue_full: u64,
}

impl Lost {
    /// Each reason with its name and count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("too_big", self.too_big),
            ("no_buffers", self.no_buffers),
            ("unreachable", self.unreachable),
            ("down", self.down),
            ("refused", self.refused),
            ("unfit", self.unfit),
            ("failed", self.failed),
            ("queue_full", self.queue_full),
        ]
        .into_iter()
    }

    fn add(&mut self, sent: &TxReport) {
        self.too_big += sent.too_big as u64;
        self.no_buffers += sent.no_buffers as u64;
        self.unreachable += sent.unreachable as u64;
        self.down += sent.down as u64;
        self.refused += sent.refused as u64;
        self.unfit += sent.unfit as u64;
        self.failed += sent.failed as u64;
    }
}

/// A link of a worker.
pub struct Port {
    /// Name for people and metrics.
    pub name: String,
    pub(super) link: Box<dyn Link + Send>,
    pub(super) counts: PortCounts,
    /// Packets that wait for a link without room, beyond which more are lost.
    limit: usize,
    /// The link has no room until poll(2) says so.
    blocked: bool,
    /// Its interface has been deleted.
    gone: bool,
}

impl Port {
    /// A port for which at most `limit` packets wait when the link has no room.
    pub fn new(name: &str, link: Box<dyn Link + Send>, limit: usize) -> Port {
        let counts = PortCounts::default();
        Port { name: name.to_owned(), link, counts, limit, blocked: false, gone: false }
    }

    /// Puts something around the link.
    #[must_use]
    pub fn map_link(mut self, map: impl FnOnce(&str, Box<dyn Link + Send>) -> Box<dyn Link + Send>) -> Port {
        self.link = map(&self.name, self.link);
        self
    }

    /// What has gone over it.
    pub fn counts(&self) -> &PortCounts {
        &self.counts
    }

    /// Puts the available packets, at most `room`, behind those of `into`, as [`Link::receive_packets`] does; how many came. An error
    /// of the descriptor, for example because its interface is gone, is counted; the link may recover.
    pub(super) fn receive(&mut self, room: usize, into: &mut Vec<Packet>, copy: &mut Copy<'_>) -> usize {
        let (mut packets, mut bytes) = (0, 0);
        let before = into.len();
        let result = self.link.receive_packets(room, into, &mut |head, body| {
            let packet = copy(head, body);
            if packet.is_none() {
                packets += 1;
                bytes += (head.len() + body.len()) as u64;
            }
            packet
        });
        for packet in &into[before..] {
            packets += 1;
            bytes += packet.len() as u64;
        }
        self.counts.packets_in += packets;
        self.counts.bytes_in += bytes;
        if let Err(error) = result
            && !is_passing(&error)
        {
            self.counts.errors += 1;
            self.gone |= Errno::from_io_error(&error) == Some(Errno::BADFD);
        }
        packets as usize
    }

    /// Whether the interface that it was attached to has been deleted, for which a TUN descriptor has an error of
    /// its own. There is no way back.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Received packets that were not for the engine; it asks the kernel.
    pub fn rx_drops(&self) -> RxDrops {
        self.link.rx_drops()
    }

    /// The state of its own device, where it has one.
    pub fn device(&self) -> Option<DeviceState> {
        self.link.device()
    }

    /// Whether poll(2) has to say when the link has room again.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// The link has room again.
    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// Sends what the link takes from the front of `queue`; whether anything left it. Each packet that did is given to
    /// `done`; of those that were too big the largest size that would go is given with it.
    pub(super) fn send(
        &mut self,
        queue: &mut Queue,
        done: &mut dyn FnMut(&mut Outgoing, Option<u32>),
    ) -> bool {
        let mut moved = false;
        let Queue { packets: queue, limit } = queue;
        if queue.is_empty() && self.link.unsent() {
            self.link.send(&[]);
        }
        while !self.blocked && !queue.is_empty() {
            let mut packets: ArrayVec<&mut Packet, AT_ONCE> =
                queue.iter_mut().take(AT_ONCE).map(|one| &mut one.packet).collect();
            // A link takes the packet with the buffer where that is its own.
            let lens: ArrayVec<u32, AT_ONCE> = packets.iter().map(|packet| packet.len() as u32).collect();
            let (given, sent) = (packets.len(), self.link.send_packets(&mut packets));
            drop(packets);
            let left = given.saturating_sub(sent.would_block);
            self.blocked = sent.would_block > 0;
            self.counts.waits += u64::from(self.blocked);
            if !planted(Fault::LossesUncounted) {
                self.counts.lost.add(&sent);
            }
            self.counts.packets_out += sent.taken as u64;
            moved |= left > 0;
            let (mut bytes, mut fitting) = (0, 0);
            // Where they are: what a link has sent in its own buffer is not worth moving.
            for (outgoing, len) in queue.iter_mut().zip(lens).take(left) {
                let over = sent.mtu.filter(|&mtu| sent.too_big > 0 && len > mtu);
                if over.is_none() {
                    (bytes, fitting) = (bytes + u64::from(len), fitting + 1);
                }
                done(outgoing, over);
            }
            queue.drain(..left);
            // Of a burst in which the kernel refused packets, it does not say which: they count as long as the others.
            let taken = (sent.taken as u64).min(fitting);
            self.counts.bytes_out += if taken == fitting { bytes } else { bytes * taken / fitting };
        }
        *limit = self.blocked.then_some(self.limit);
        moved
    }
}

/// Whether an error says nothing about the descriptor.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
