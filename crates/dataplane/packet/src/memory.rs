//! The memory of a packet, and who gets it back.

use std::num::NonZeroU8;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{LazyLock, OnceLock};

use crate::Packet;

/// Gives back a buffer, of which it gets the begin and the length in bytes.
type GiveBack = unsafe fn(NonNull<u8>, usize);

/// Most lenders of a program.
const LENDERS_MAX: usize = 8;

/// How the buffers of each lender are given back. A number for each, because a packet has no room for more.
static LENDERS: [OnceLock<GiveBack>; LENDERS_MAX] = [const { OnceLock::new() }; LENDERS_MAX];

/// Who lends buffers: a kind of memory that is not the heap's, for example the buffers of DPDK's pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lender(NonZeroU8);

impl Lender {
    /// A lender whose buffers are given back by `give_back`.
    ///
    /// # Safety
    /// `give_back` has to be sound, from any thread, for every buffer that [`Memory::lent`] is told to be of this lender.
    ///
    /// # Panics
    /// If there are eight: each kind of memory has one.
    pub unsafe fn new(give_back: GiveBack) -> Lender {
        let place = LENDERS.iter().position(|place| place.set(give_back).is_ok());
        let number = place.and_then(|place| NonZeroU8::new(place as u8 + 1));
        Lender(number.unwrap_or_else(|| panic!("more than {LENDERS_MAX} kinds of memory")))
    }
}

/// Bytes with one owner, of the heap or lent. The default has none.
pub struct Memory {
    start: NonNull<u8>,
    /// Of which zero stands for no memory at all.
    len: usize,
    /// A number of its owner's choice; here, because there is room for it beside the lender.
    home: u8,
    /// `None`: of the heap.
    lender: Option<Lender>,
}

// SAFETY: the bytes have this one owner, and lenders take them back from any thread.
unsafe impl Send for Memory {}
// SAFETY: a shared reference only reads.
unsafe impl Sync for Memory {}

impl Memory {
    /// So many bytes of zero, of the heap.
    pub fn zeroed(len: usize) -> Memory {
        let bytes = Box::into_raw(vec![0_u8; len].into_boxed_slice()).cast::<u8>();
        // A box is never null.
        Memory { start: NonNull::new(bytes).unwrap_or(NonNull::dangling()), len, home: 0, lender: None }
    }

    /// A buffer that `lender` lends; it is given back when this is dropped.
    ///
    /// # Safety
    /// From `start` there are `len` initialised bytes, at least one, which nobody else reads or writes until they are given back.
    #[inline]
    pub unsafe fn lent(start: NonNull<u8>, len: usize, lender: Lender) -> Memory {
        Memory { start, len, home: Packet::LENT, lender: Some(lender) }
    }

    /// So many bytes of zero that a lender of tests lends.
    pub(crate) fn lent_zeroed(len: usize) -> Memory {
        unsafe fn free(start: NonNull<u8>, len: usize) {
            // SAFETY: what is leaked below.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start.as_ptr(), len)) });
        }
        // SAFETY: for boxes that were leaked.
        static LENDER: LazyLock<Lender> = LazyLock::new(|| unsafe { Lender::new(free) });
        // SAFETY: all that was taken of it.
        unsafe { Memory::lent(Memory::zeroed(len).into_raw(), len, *LENDER) }
    }

    /// Where a buffer of `lender` begins, if it is one.
    #[inline]
    pub fn is_of(&self, lender: Lender) -> Option<NonNull<u8>> {
        (self.lender == Some(lender)).then_some(self.start)
    }

    /// Whether it is of a lender.
    #[inline]
    pub fn is_lent(&self) -> bool {
        self.lender.is_some()
    }

    /// Notes a number of its owner's choice: 0 at first, and [`Packet::LENT`] of what is lent.
    #[inline]
    pub fn set_home(&mut self, home: u8) {
        self.home = home;
    }

    /// The number that [`Memory::set_home`] noted.
    #[inline]
    pub fn home(&self) -> u8 {
        self.home
    }

    /// Where it begins; it is not given back to anybody any more.
    #[inline]
    pub fn into_raw(self) -> NonNull<u8> {
        std::mem::ManuallyDrop::new(self).start
    }

    #[cold]
    fn release(&mut self) {
        match self.lender {
            Some(Lender(number)) => {
                let Some(give_back) = LENDERS[usize::from(number.get()) - 1].get() else { return };
                // SAFETY: a buffer of this lender, by who made it; it has no other owner.
                unsafe { give_back(self.start, self.len) }
            }
            None => {
                let bytes = std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.len);
                // SAFETY: the box of `zeroed`.
                drop(unsafe { Box::from_raw(bytes) });
            }
        }
    }
}

impl Default for Memory {
    #[inline]
    fn default() -> Memory {
        Memory { start: NonNull::dangling(), len: 0, home: 0, lender: None }
    }
}

impl Drop for Memory {
    #[inline]
    fn drop(&mut self) {
        if self.len > 0 {
            self.release();
        }
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: as many initialised bytes, or a dangling pointer and none.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Memory {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as many initialised bytes with this owner, or a dangling pointer and none.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);

    unsafe fn free(start: NonNull<u8>, len: usize) {
        GIVEN_BACK.fetch_add(len, Ordering::Relaxed);
        // SAFETY: what `lend` has leaked.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start.as_ptr(), len)) });
    }

    // SAFETY: for boxes that were leaked.
    static LENDER: LazyLock<Lender> = LazyLock::new(|| unsafe { Lender::new(free) });
    // SAFETY: it is never told to be anybody's.
    static OTHER: LazyLock<Lender> = LazyLock::new(|| unsafe { Lender::new(free) });

    fn lend(len: usize) -> Memory {
        let bytes = Box::into_raw(vec![7_u8; len].into_boxed_slice()).cast::<u8>();
        // SAFETY: a box that was leaked.
        unsafe { Memory::lent(NonNull::new(bytes).unwrap(), len, *LENDER) }
    }

    #[test]
    fn lent_memory_goes_back_once_from_any_thread() {
        let mut memory = lend(100);
        memory[99] = 8;
        assert!(memory.is_lent() && memory.is_of(*LENDER).is_some() && memory.is_of(*OTHER).is_none());
        assert_eq!((memory.len(), memory[0], memory[99]), (100, 7, 8));
        let before = GIVEN_BACK.load(Ordering::Relaxed);
        std::thread::spawn(move || drop(memory)).join().unwrap();
        assert_eq!(GIVEN_BACK.load(Ordering::Relaxed) - before, 100);
        let kept = lend(3).into_raw();
        assert_eq!(GIVEN_BACK.load(Ordering::Relaxed) - before, 100, "whoever has it gives it back");
        // SAFETY: it has no other owner.
        unsafe { free(kept, 3) };
    }

    #[test]
    fn memory_of_the_heap_is_zero_and_nobodys() {
        let mut memory = Memory::zeroed(10);
        assert!(!memory.is_lent() && memory.is_of(*LENDER).is_none());
        assert_eq!(&*memory, [0; 10]);
        memory.fill(1);
        let taken = std::mem::take(&mut memory);
        assert_eq!((memory.len(), &*taken), (0, &[1; 10][..]));
        drop(Memory::zeroed(0));
    }
}
