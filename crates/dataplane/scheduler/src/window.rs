//! The sliding window: selects the packets that leave the input as one job (\[S\] III-B).
//!
//! Each service class has one.

use std::collections::VecDeque;

use forebay_time::{Duration, Time};

use crate::groups::{Groups, NONE};
use crate::{ClassConfig, Item, Job, Windowing};

/// Memory is set aside at construction for inputs and queues up to this many entries; larger
/// limits (the simulator's "no limit") grow when they are used.
pub(crate) const SET_ASIDE: usize = 1 << 16;

/// Whether a job can leave the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// There is no packet.
    Empty,
    /// The window may still grow until then.
    Wait(Time),
    /// [`Window::take`] has a job.
    Ready,
}

/// The input: a window over its first packets, and the rest in a plain FIFO behind it.
///
/// Packets in the window are linked twice, in the order of arrival and within their SA, so each
/// packet costs the same whatever the window's size. The FIFO holds packets only while the
/// window is full; a window of one packet has no slots and lives in the FIFO alone.
#[derive(Debug)]
pub(crate) struct Window {
    size: usize,
    /// Slots in use, below `slots.len()` where the window adapts itself.
    open: usize,
    timeout: Option<Duration>,
    max_bytes: u64,
    limit: usize,
    /// No more packets will come.
    ended: bool,
    slots: Vec<Slot>,
    groups: Groups,
    /// Packets in slots.
    held: usize,
    /// First and last packet in order of arrival, and the first free slot.
    head: u32,
    tail: u32,
    free: u32,
    behind: VecDeque<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    item: Item,
    arrived: Time,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    entry: Entry,
    earlier: u32,
    /// Next in order of arrival; next free one in a free slot.
    later: u32,
    /// Next of the same SA.
    next_of_sa: u32,
}

impl Window {
    pub(crate) fn new(config: &ClassConfig) -> Window {
        let slots = if config.window > 1 { config.window } else { 0 };
        // One that adapts itself may keep a single packet in its slots.
        let in_slots = if config.windowing == Windowing::Fixed { slots } else { 0 };
        let empty = Entry { item: Item { id: 0, sa: 0, class: 0, suite: 0, bytes: 0 }, arrived: Time::ZERO };
        let slot = |at| {
            let later = if at + 1 < slots { at as u32 + 1 } else { NONE };
            Slot { entry: empty, earlier: NONE, later, next_of_sa: NONE }
        };
        Window {
            size: config.window,
            open: slots,
            timeout: config.timeout,
            max_bytes: config.max_bytes.unwrap_or(u64::MAX),
            limit: config.input,
            ended: false,
            slots: (0..slots).map(slot).collect(),
            groups: Groups::new(slots),
            held: 0,
            head: NONE,
            tail: NONE,
            free: if slots > 0 { 0 } else { NONE },
            behind: VecDeque::with_capacity((config.input - in_slots).min(SET_ASIDE)),
        }
    }

    /// Packets in the input.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.held + self.behind.len()
    }

    /// Packets that [`Window::push`] would still take.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.limit - self.len()
    }

    /// Adds a packet at the end; gives it back if the input is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, now: Time, item: Item) -> Result<(), Item> {
        if self.room() == 0 {
            return Err(item);
        }
        self.ended = false;
        let entry = Entry { item, arrived: now };
        if self.held < self.open {
            self.insert(entry);
        } else {
            self.behind.push_back(entry);
        }
        Ok(())
    }

    /// What is there will not grow until the next push.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether the packet at the head, the reference, may leave with what has joined it.
    #[inline]
    pub(crate) fn state(&self, now: Time) -> State {
        if self.is_growing() {
            return self.state_of_growing(now);
        }
        if self.len() == 0 { State::Empty } else { State::Ready }
    }

    #[inline]
    fn is_growing(&self) -> bool {
        self.held < self.open && self.held > 0 && !self.ended
    }

    /// When the reference's timeout passes; never if it does not wait for that.
    pub(crate) fn due(&self) -> Time {
        match self.timeout {
            Some(timeout) if self.is_growing() => self.slots[self.head as usize].entry.arrived + timeout,
            _ => Time::MAX,
        }
    }

    /// Changes size (at least 1, at most the one it was made with) and timeout of a window that was made
    /// with more than one packet. One that has become too large runs down.
    pub(crate) fn resize(&mut self, size: usize, timeout: Option<Duration>) {
        self.open = size.clamp(1, self.slots.len());
        self.timeout = timeout;
        self.refill();
    }

    /// Size and timeout in force.
    pub(crate) fn setting(&self) -> (usize, Option<Duration>) {
        (self.open.max(1), self.timeout)
    }

    #[inline(never)]
    fn state_of_growing(&self, now: Time) -> State {
        let Entry { item, arrived } = &self.slots[self.head as usize].entry;
        // With as many bytes as a job may have, no later packet can join.
        if self.max_bytes < u64::MAX && self.groups.bytes_of(item.sa) >= self.max_bytes {
            return State::Ready;
        }
        match self.timeout.map(|timeout| *arrived + timeout) {
            Some(due) if now >= due => State::Ready,
            Some(due) => State::Wait(due),
            None => State::Wait(Time::MAX),
        }
    }

    /// Moves the reference, and the packets of the window with its SA as far as they fit, into
    /// `job`; the others keep their order. To be called in [`State::Ready`] only.
    #[inline]
    pub(crate) fn take(&mut self, job: &mut Job) {
        if self.size > 1 {
            return self.take_bundle(job);
        }
        let entry = self.behind.pop_front().expect("the input has a packet");
        job.begin(&entry.item, entry.arrived);
    }

    #[inline(never)]
    fn take_bundle(&mut self, job: &mut Job) {
        let Slot { entry, mut next_of_sa, .. } = self.slots[self.head as usize];
        job.begin(&entry.item, entry.arrived);
        self.unlink(self.head);
        // The first that does not fit stays, and all behind it: an SA's order is kept.
        while next_of_sa != NONE {
            let at = next_of_sa;
            let Slot { entry, next_of_sa: next, .. } = self.slots[at as usize];
            if job.head.work.bytes + u64::from(entry.item.bytes) > self.max_bytes {
                break;
            }
            job.add(&entry.item);
            self.unlink(at);
            next_of_sa = next;
        }

        let place = self.groups.place_of(entry.item.sa);
        if next_of_sa == NONE {
            self.groups.remove(place);
        } else if let Some(group) = self.groups.get(place) {
            group.bytes -= job.head.work.bytes;
        }
        self.refill();
    }

    #[inline]
    fn refill(&mut self) {
        while self.held < self.open {
            let Some(entry) = self.behind.pop_front() else { break };
            self.insert(entry);
        }
    }

    /// Appends a packet to the window, which has a free slot.
    #[inline(always)]
    fn insert(&mut self, entry: Entry) {
        let at = self.free;
        self.free = self.slots[at as usize].later;
        self.slots[at as usize] = Slot { entry, earlier: self.tail, later: NONE, next_of_sa: NONE };
        match self.tail {
            NONE => self.head = at,
            tail => self.slots[tail as usize].later = at,
        }
        self.tail = at;
        self.held += 1;

        let (sa, bytes) = (entry.item.sa, u64::from(entry.item.bytes));
        let place = self.groups.place_of(sa);
        match self.groups.get(place) {
            Some(group) => {
                self.slots[group.last as usize].next_of_sa = at;
                group.last = at;
                group.bytes += bytes;
            }
            None => self.groups.put(place, sa, at, bytes),
        }
    }

    /// Takes a packet out of the order of arrival; its SA's links are the caller's.
    #[inline]
    fn unlink(&mut self, at: u32) {
        let Slot { earlier, later, .. } = self.slots[at as usize];
        match earlier {
            NONE => self.head = later,
            earlier => self.slots[earlier as usize].later = later,
        }
        match later {
            NONE => self.tail = earlier,
            later => self.slots[later as usize].earlier = earlier,
        }
        self.slots[at as usize].later = self.free;
        self.free = at;
        self.held -= 1;
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.behind.capacity()
    }
}
