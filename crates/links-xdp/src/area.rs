//! Memory that the kernel shares.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A mapping, taken away when it is dropped.
pub(crate) struct Area {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone on our side, and is not tied to a thread.
unsafe impl Send for Area {}

impl Area {
    /// Memory of our own.
    pub(crate) fn anonymous(len: usize) -> io::Result<Area> {
        // SAFETY: a new mapping at a place of the kernel's choice touches no other memory.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        Area::new(start.cast(), len)
    }

    /// Memory of a socket's.
    pub(crate) fn of(socket: BorrowedFd<'_>, len: usize, offset: u64) -> io::Result<Area> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as above.
        let start =
            unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags, socket, offset) }?;
        Area::new(start.cast(), len)
    }

    fn new(start: *mut u8, len: usize) -> io::Result<Area> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Area { start, len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A pointer to what is at `offset`.
    ///
    /// # Panics
    /// If `size` bytes from there on are not inside.
    #[inline]
    pub(crate) fn at(&self, offset: usize, size: usize) -> NonNull<u8> {
        assert!(offset <= self.len && size <= self.len - offset);
        // SAFETY: the offset is inside the mapping.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing points into it any more: all that does lives in values
        // beside this one that are dropped with it. An error leaves it mapped.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}
