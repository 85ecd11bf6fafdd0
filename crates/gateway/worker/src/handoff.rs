//! Handoff between workers of packets whose SA another worker owns.
//!
//! Between each two workers there are two rings, each with one writer and one reader. One carries packets; the other
//! returns empty buffers, so that no worker runs out of them and none is allocated. Packets from one worker to
//! another arrive in order. No worker waits: a packet that finds no room is returned to its sender.
//!
//! The receiver is woken once per burst, and only if it sleeps, by the engine's [`Doorbell`], which documents why no
//! wake-up is lost.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use forebay_crypto::{Direction, Packet};
use forebay_engine::{Doorbell, Until, Wake};
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use rustix::event::{EventfdFlags, eventfd};

/// Packets that may be on their way to a worker, from all others together, and...
const ROOM: usize = 16_384;
/// ...from each at least, and at most: some bursts.
const ROOM_EACH: (usize, usize) = (512, 4_096);

/// A packet for another worker.
#[derive(Debug)]
pub struct HandoffPacket {
    /// To be sealed or opened.
    pub direction: Direction,
    /// The packet.
    pub packet: Packet,
}

/// How a worker that sleeps in poll(2) is woken.
#[derive(Debug)]
pub struct Bell {
    doorbell: Doorbell<Descriptor>,
}

/// An eventfd(2), which remembers a wake-up until it is read.
#[derive(Debug)]
struct Descriptor(OwnedFd);

impl Wake for Descriptor {
    fn wake(&self) {
        // A counter that is full has been rung already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl Bell {
    /// A bell that has not been rung.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn new() -> io::Result<Bell> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Bell { doorbell: Doorbell::new(Descriptor(fd)) })
    }

    /// Wakes the worker if it sleeps or is about to, for any reason.
    pub fn ring(&self) {
        self.doorbell.wake();
    }

    /// Forgets that it was rung.
    pub fn silence(&self) {
        let _ = rustix::io::read(&self.doorbell.waker().0, &mut [0; 8]);
    }

    /// The descriptor for poll(2).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.doorbell.waker().0.as_fd()
    }
}

/// One worker's ends of all rings.
pub struct Handoff {
    bell: Arc<Bell>,
    /// By the number of the other worker; itself is not among them.
    to: Vec<Option<To>>,
    from: Vec<From>,
}

struct To {
    packets: Producer<HandoffPacket>,
    /// Empty buffers that the other worker returns.
    buffers: Consumer<Packet>,
    bell: Arc<Bell>,
    /// Something was given since its bell was rung.
    given: bool,
}

struct From {
    packets: Consumer<HandoffPacket>,
    buffers: Producer<Packet>,
    bell: Arc<Bell>,
}

impl Handoff {
    /// The ends of `workers` workers.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn between(workers: usize) -> io::Result<Vec<Handoff>> {
        let others = workers.saturating_sub(1).max(1);
        Handoff::with_room(workers, (ROOM / others).clamp(ROOM_EACH.0, ROOM_EACH.1))
    }

    /// The same with room for so many packets from each worker to each other.
    ///
    /// # Errors
    /// As [`Handoff::between`].
    pub fn with_room(workers: usize, room: usize) -> io::Result<Vec<Handoff>> {
        let bells: Vec<Arc<Bell>> =
            (0..workers).map(|_| Bell::new().map(Arc::new)).collect::<io::Result<_>>()?;
        let end = |bell: &Arc<Bell>| Handoff { bell: bell.clone(), to: vec![], from: vec![] };
        let mut ends: Vec<Handoff> = bells.iter().map(end).collect();
        for giver in 0..workers {
            for taker in 0..workers {
                if giver == taker {
                    ends[giver].to.push(None);
                    continue;
                }
                let (packets_in, packets_out) = RingBuffer::new(room);
                let (buffers_in, buffers_out) = RingBuffer::new(room);
                let bell = bells[taker].clone();
                let to = To { packets: packets_in, buffers: buffers_out, bell, given: false };
                ends[giver].to.push(Some(to));
                let bell = bells[giver].clone();
                ends[taker].from.push(From { packets: packets_out, buffers: buffers_in, bell });
            }
        }
        Ok(ends)
    }

    /// This worker's bell.
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Gives a packet to another worker, which [`Handoff::ring`] wakes. The packet is returned if there is no room or
    /// no such worker.
    pub fn give(&mut self, worker: usize, handed: HandoffPacket) -> Result<(), HandoffPacket> {
        let Some(Some(to)) = self.to.get_mut(worker) else { return Err(handed) };
        to.packets.push(handed).map_err(|PushError::Full(handed)| handed)?;
        to.given = true;
        Ok(())
    }

    /// Tells workers that were given something.
    pub fn ring(&mut self) {
        for to in self.to.iter_mut().flatten() {
            if std::mem::take(&mut to.given) {
                to.bell.doorbell.ring();
            }
        }
    }

    /// Takes the empty buffers that have been returned.
    pub fn buffers(&mut self, mut take: impl FnMut(Packet)) {
        for to in self.to.iter_mut().flatten() {
            while let Ok(buffer) = to.buffers.pop() {
                take(buffer);
            }
        }
    }

    /// Takes about `most` packets at most, as many of each of the others; an empty buffer is to be returned for each.
    /// How many there were.
    pub fn take(&mut self, most: usize, mut take: impl FnMut(HandoffPacket) -> Packet) -> usize {
        let mut all = 0;
        let share = (most / self.from.len().max(1)).max(1);
        for from in &mut self.from {
            let mut taken = 0;
            while taken < share
                && let Ok(handed) = from.packets.pop()
            {
                taken += 1;
                // As long as the ring of packets: there is room, or the giver has buffers enough.
                let _ = from.buffers.push(take(handed));
            }
            if taken > 0 {
                all += taken;
                from.bell.doorbell.ring_for_room();
            }
        }
        all
    }

    /// Whether every other worker has room for `packets` more.
    pub fn has_room(&self, packets: usize) -> bool {
        self.to.iter().flatten().all(|to| to.packets.slots() >= packets.min(to.packets.buffer().capacity()))
    }

    /// Packets that others have not taken yet.
    pub fn waiting(&self) -> usize {
        let waiting = |to: &To| to.packets.buffer().capacity() - to.packets.slots();
        self.to.iter().flatten().map(waiting).sum()
    }

    /// Says that this worker is about to sleep, with `wants_room` until others have room for that many packets too;
    /// whether it may.
    pub fn falls_asleep(&self, wants_room: Option<usize>) -> bool {
        if self.from.is_empty() {
            return true;
        }
        let until = if wants_room.is_some() { Until::WorkOrRoom } else { Until::Work };
        self.bell.doorbell.falls_asleep(until, || {
            let came = self.from.iter().any(|from| !from.packets.is_empty());
            came || wants_room.is_some_and(|packets| self.has_room(packets))
        })
    }

    /// Says that it is awake.
    pub fn wakes(&self) {
        self.bell.doorbell.wakes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::thread;

    fn handed(number: u32) -> HandoffPacket {
        let mut packet = Packet::with_capacity(64);
        assert!(packet.fill(&number.to_be_bytes()));
        HandoffPacket { direction: Direction::Seal, packet }
    }

    fn number(handed: &HandoffPacket) -> u32 {
        u32::from_be_bytes(*handed.packet.bytes().first_chunk().unwrap())
    }

    #[test]
    fn what_finds_no_room_is_given_back_and_buffers_go_around() {
        let mut ends = Handoff::with_room(3, 4).unwrap();
        for n in 0..4 {
            ends[0].give(2, handed(n)).unwrap();
        }
        assert_eq!(number(&ends[0].give(2, handed(9)).unwrap_err()), 9);
        ends[0].give(0, handed(1)).unwrap_err();
        ends[0].give(3, handed(1)).unwrap_err();
        assert!(!ends[0].has_room(1) && ends[1].has_room(4) && ends[1].has_room(400));
        ends[1].give(2, handed(7)).unwrap();
        let mut seen = vec![];
        let mut take = |handed: HandoffPacket| {
            seen.push(number(&handed));
            Packet::with_capacity(64)
        };
        let taken: Vec<usize> = (0..3).map(|_| ends[2].take(6, &mut take)).collect();
        assert_eq!(taken, [4, 1, 0]);
        assert_eq!(seen, [0, 1, 2, 7, 3]);
        let mut back = [0; 2];
        ends[0].buffers(|_| back[0] += 1);
        ends[1].buffers(|_| back[1] += 1);
        assert_eq!((back, ends[0].waiting()), ([4, 1], 0));
    }

    #[test]
    fn a_bell_is_rung_once_and_only_for_who_sleeps() {
        let mut ends = Handoff::with_room(2, 8).unwrap();
        let rung = |end: &Handoff| rustix::io::read(end.bell().fd(), &mut [0; 8]).is_ok();
        ends[0].give(1, handed(0)).unwrap();
        ends[0].ring();
        assert!(!rung(&ends[1]), "it is awake");
        assert!(!ends[1].falls_asleep(None), "there is something");
        ends[1].take(8, |handed| handed.packet);
        assert!(ends[1].falls_asleep(None));
        ends[0].ring();
        assert!(!rung(&ends[1]), "nothing was given");
        for n in 0..3 {
            ends[0].give(1, handed(n)).unwrap();
        }
        ends[0].ring();
        ends[0].ring();
        assert!(rung(&ends[1]) && !rung(&ends[1]));
        ends[1].wakes();
        // Who waits for room is woken when there is some.
        for n in 0..5 {
            ends[0].give(1, handed(n)).unwrap();
        }
        assert!(ends[0].falls_asleep(Some(4)));
        ends[1].take(8, |handed| handed.packet);
        assert!(rung(&ends[0]));
        assert!(!ends[0].falls_asleep(Some(4)), "there is room");
    }

    /// Threads that sleep whenever nothing is at hand: each packet arrives, in order, without the help of time.
    #[test]
    fn nobody_sleeps_over_a_packet() {
        const PACKETS: u32 = 100_000;
        let mut ends = Handoff::with_room(2, 16).unwrap();
        let (mut taker, mut giver) = (ends.remove(1), ends.remove(0));
        let sleep = |end: &Handoff| {
            let mut fds = [PollFd::from_borrowed_fd(end.bell().fd(), PollFlags::IN)];
            let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
            assert_eq!(poll(&mut fds, Some(&limit)).unwrap(), 1, "nobody rings");
            end.wakes();
            end.bell().silence();
        };
        let thread = thread::spawn(move || {
            let mut next = 0;
            while next < PACKETS {
                let taken = taker.take(5, |handed| {
                    assert_eq!(number(&handed), next);
                    next += 1;
                    handed.packet
                });
                if taken == 0 && taker.falls_asleep(None) {
                    sleep(&taker);
                }
            }
        });
        let mut buffers = vec![];
        let mut made = 0;
        let mut next = 0;
        while next < PACKETS {
            giver.buffers(|buffer| buffers.push(buffer));
            for _ in 0..7.min(PACKETS - next) {
                let mut packet = buffers.pop().unwrap_or_else(|| {
                    made += 1;
                    Packet::with_capacity(64)
                });
                assert!(packet.fill(&next.to_be_bytes()));
                match giver.give(1, HandoffPacket { direction: Direction::Open, packet }) {
                    Ok(()) => next += 1,
                    Err(handed) => buffers.push(handed.packet),
                }
            }
            giver.ring();
            if !giver.has_room(7) && giver.falls_asleep(Some(7)) {
                sleep(&giver);
            }
        }
        thread.join().unwrap();
        assert!(made < 100, "{made} buffers were made: they do not go around");
    }
}
