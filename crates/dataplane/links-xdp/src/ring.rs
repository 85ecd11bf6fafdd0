//! The rings of AF_XDP: one side puts, the other takes, neither waits.
//!
//! The kernel is the other side. What it says, a count or a place, is looked at before it is used.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::net::xdp::XdpRingOffset;

use crate::area::Memory;

/// A ring of `T`, of which we are one side.
struct Ring<T, M> {
    memory: M,
    producer: usize,
    consumer: usize,
    flags: Option<usize>,
    entries: usize,
    /// Number of entries, a power of two.
    size: u32,
    kind: PhantomData<T>,
}

impl<T: Copy, M: Memory> Ring<T, M> {
    fn new(memory: M, offsets: &XdpRingOffset, size: u32) -> Ring<T, M> {
        assert!(size.is_power_of_two());
        let flags = offsets.flags.map(|flags| flags as usize);
        let (producer, consumer) = (offsets.producer as usize, offsets.consumer as usize);
        let entries = offsets.desc as usize;
        for counter in [producer, consumer].into_iter().chain(flags) {
            assert!(memory.at(counter, size_of::<AtomicU32>()).cast::<AtomicU32>().is_aligned());
        }
        assert!(memory.at(entries, size as usize * size_of::<T>()).cast::<T>().is_aligned());
        Ring { memory, producer, consumer, flags, entries, size, kind: PhantomData }
    }

    #[inline]
    fn counter(&self, offset: usize) -> &AtomicU32 {
        let at: NonNull<AtomicU32> = self.memory.at(offset, size_of::<AtomicU32>()).cast();
        // SAFETY: `at` is inside the memory, which lives as long as `self`, and aligned, as `new` has checked; both
        // sides use it only by atomic operations.
        unsafe { at.as_ref() }
    }

    #[inline]
    fn entry(&self, index: u32) -> NonNull<T> {
        let index = (index & (self.size - 1)) as usize;
        self.memory.at(self.entries + index * size_of::<T>(), size_of::<T>()).cast()
    }
}

/// A ring that we put into: fill and transmit.
pub(crate) struct Producer<T, M> {
    ring: Ring<T, M>,
    /// The next place, and what the other side has taken when we last looked.
    next: u32,
    taken: u32,
}

impl<T: Copy, M: Memory> Producer<T, M> {
    /// Our side of a ring of `size` entries, a power of two, that is empty.
    ///
    /// # Panics
    /// If the ring is not inside the memory, or not aligned.
    pub(crate) fn new(memory: M, offsets: &XdpRingOffset, size: u32) -> Producer<T, M> {
        Producer { ring: Ring::new(memory, offsets, size), next: 0, taken: 0 }
    }

    /// Puts an entry; false if the ring is full. The other side sees it after `publish`.
    #[inline]
    pub(crate) fn put(&mut self, entry: T) -> bool {
        if self.next.wrapping_sub(self.taken) >= self.ring.size {
            self.taken = self.ring.counter(self.ring.consumer).load(Ordering::Acquire);
            if self.next.wrapping_sub(self.taken) >= self.ring.size {
                return false;
            }
        }
        // SAFETY: the place is inside the memory and aligned for `T`; the other side reads it only once the
        // counter has passed it, and that has not happened.
        unsafe { self.ring.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Shows the other side what has been put.
    #[inline]
    pub(crate) fn publish(&self) {
        self.ring.counter(self.ring.producer).store(self.next, Ordering::Release);
    }

    /// How many entries the other side has not taken yet.
    #[inline]
    pub(crate) fn waiting(&self) -> u32 {
        self.next.wrapping_sub(self.ring.counter(self.ring.consumer).load(Ordering::Acquire))
    }

    /// Whether the other side has to be woken to look (`XDP_RING_NEED_WAKEUP`); to be asked after `publish`.
    #[inline]
    pub(crate) fn needs_wakeup(&self) -> bool {
        const NEED_WAKEUP: u32 = 1;
        // What was published must be seen before the flag is read: the other side sets the flag and then looks.
        fence(Ordering::SeqCst);
        self.ring.flags.is_none_or(|at| self.ring.counter(at).load(Ordering::Relaxed) & NEED_WAKEUP != 0)
    }
}

/// A ring that we take from: receive and completion.
pub(crate) struct Consumer<T, M> {
    ring: Ring<T, M>,
    next: u32,
    put: u32,
}

impl<T: Copy, M: Memory> Consumer<T, M> {
    /// Our side of a ring of `size` entries, a power of two, that is empty.
    ///
    /// # Panics
    /// If the ring is not inside the memory, or not aligned.
    pub(crate) fn new(memory: M, offsets: &XdpRingOffset, size: u32) -> Consumer<T, M> {
        Consumer { ring: Ring::new(memory, offsets, size), next: 0, put: 0 }
    }

    /// The next entry; the other side may use its place again after `release`.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<T> {
        if self.next == self.put {
            self.put = self.ring.counter(self.ring.producer).load(Ordering::Acquire);
            if self.next == self.put {
                return None;
            }
        }
        // SAFETY: the place is inside the memory and aligned for `T`, which is plain numbers; the other side
        // has written it before it moved its counter, and does not again until we move ours.
        let entry = unsafe { self.ring.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of what has been taken back.
    #[inline]
    pub(crate) fn release(&self) {
        self.ring.counter(self.ring.consumer).store(self.next, Ordering::Release);
    }

    /// Whether entries are waiting.
    pub(crate) fn is_waiting(&self) -> bool {
        self.next != self.ring.counter(self.ring.producer).load(Ordering::Acquire)
    }
}
