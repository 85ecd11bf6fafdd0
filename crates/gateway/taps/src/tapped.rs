//! A link whose packets are copied for captures.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use forebay_links::capture::blocks::{self, Way};
use forebay_links::{Copy, DeviceState, Link, RxDrops, TxReport, send_bytes};
use forebay_packet::Packet;

use super::{ROOM, Slot, Tap};

/// Bytes that are kept here while the writing thread has the slot, which it has for an instant.
const ASIDE: usize = 256 << 10;

/// The decorator. While there are no captures it costs a relaxed load for each burst.
pub(super) struct Tapped {
    link: Box<dyn Link + Send>,
    tap: Arc<Tap>,
    aside: Aside,
}

#[derive(Default)]
struct Aside {
    blocks: Vec<u8>,
    packets: u64,
}

impl Tapped {
    pub(super) fn new(link: Box<dyn Link + Send>, tap: Arc<Tap>) -> Tapped {
        Tapped { link, tap, aside: Aside::default() }
    }
}

impl Link for Tapped {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let Some(mut burst) = Burst::begin(&self.tap, &mut self.aside) else {
            return self.link.receive(room, take);
        };
        self.link.receive(room, &mut |head, body| {
            burst.add(Way::Inbound, head, body);
            take(head, body);
        })
    }

    fn receive_packets(
        &mut self,
        room: usize,
        into: &mut Vec<Packet>,
        copy: &mut Copy<'_>,
    ) -> io::Result<usize> {
        let before = into.len();
        let received = self.link.receive_packets(room, into, copy);
        if let Some(mut burst) = Burst::begin(&self.tap, &mut self.aside) {
            into[before..].iter().for_each(|packet| burst.add(Way::Inbound, packet.bytes(), &[]));
        }
        received
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let sent = self.link.send(packets);
        if let Some(mut burst) = Burst::begin(&self.tap, &mut self.aside) {
            // The last ones are to be sent again.
            let left = packets.len().saturating_sub(sent.would_block);
            packets[..left].iter().for_each(|packet| burst.add(Way::Outbound, packet, &[]));
        }
        sent
    }

    fn send_packets(&mut self, packets: &mut [&mut Packet]) -> TxReport {
        match self.tap.is_on.load(Ordering::Relaxed) {
            // What a link takes with its buffer could not be read any more.
            true => send_bytes(packets, |bytes| self.send(bytes)),
            false => self.link.send_packets(packets),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.link.fd()
    }

    fn pending(&self) -> bool {
        self.link.pending()
    }

    fn unsent(&self) -> bool {
        self.link.unsent()
    }

    fn nap(&self) -> Option<Duration> {
        self.link.nap()
    }

    fn device(&self) -> Option<DeviceState> {
        self.link.device()
    }

    fn rx_drops(&self) -> RxDrops {
        self.link.rx_drops()
    }
}

/// Packets that are copied one after the other.
struct Burst<'a> {
    tap: &'a Tap,
    snap: usize,
    /// `None` while the writing thread has it.
    slot: Option<MutexGuard<'a, Slot>>,
    aside: &'a mut Aside,
}

impl<'a> Burst<'a> {
    /// `None` without captures.
    #[inline]
    fn begin(tap: &'a Tap, aside: &'a mut Aside) -> Option<Burst<'a>> {
        if !tap.is_on.load(Ordering::Relaxed) {
            return None;
        }
        let mut slot = match tap.slot.try_lock() {
            Ok(slot) => Some(slot),
            Err(TryLockError::Poisoned(slot)) => Some(PoisonError::into_inner(slot)),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(slot) = slot.as_mut().filter(|_| aside.packets > 0) {
            if slot.blocks.len() + aside.blocks.len() <= ROOM {
                slot.blocks.extend_from_slice(&aside.blocks);
            } else {
                tap.lost.fetch_add(aside.packets, Ordering::Relaxed);
            }
            aside.blocks.clear();
            aside.packets = 0;
        }
        Some(Burst { tap, snap: tap.snap.load(Ordering::Relaxed), slot, aside })
    }

    #[inline]
    fn add(&mut self, way: Way, head: &[u8], body: &[u8]) {
        let (into, room) = match &mut self.slot {
            Some(slot) => (&mut slot.blocks, ROOM),
            None => (&mut self.aside.blocks, ASIDE),
        };
        let len = blocks::packet_len((head.len() + body.len()).min(self.snap));
        if into.len() + len > room {
            self.tap.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if into.capacity() < room {
            into.reserve_exact(room - into.len());
        }
        let now = (self.tap.unix_time)().as_nanos() as u64;
        blocks::packet(into, self.tap.number, now, way, (head, body), self.snap);
        self.aside.packets += u64::from(self.slot.is_none());
    }
}

impl Drop for Burst<'_> {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot
            && slot.blocks.len() > ROOM / 2
            && let Some(writer) = &slot.writer
        {
            writer.unpark();
        }
    }
}
