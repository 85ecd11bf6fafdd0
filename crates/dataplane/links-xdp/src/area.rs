//! Memory that is shared with the kernel.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// Memory that another side reads and writes as well.
///
/// # Safety
/// What [`Memory::at`] points to must be valid for reads and writes of `size` bytes as long as the value lives, and at
/// the same place each time. Rust's references must not point to it.
pub(crate) unsafe trait Memory {
    /// Its length in bytes.
    fn len(&self) -> usize;

    /// A pointer to what is at `offset`.
    ///
    /// # Panics
    /// If `size` bytes from there on are not inside.
    fn at(&self, offset: usize, size: usize) -> NonNull<u8>;
}

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
}

// SAFETY: the mapping stays where it is until the value is dropped; the pointer is checked to be inside.
unsafe impl Memory for Area {
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn at(&self, offset: usize, size: usize) -> NonNull<u8> {
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

/// Memory of the process, shared by the two sides of a test.
#[cfg(test)]
pub(crate) struct Heap {
    start: NonNull<u8>,
    layout: std::alloc::Layout,
}

// SAFETY: the memory is not tied to a thread; what is in it is used by the rings' rules alone.
#[cfg(test)]
unsafe impl Send for Heap {}
// SAFETY: as above.
#[cfg(test)]
unsafe impl Sync for Heap {}

#[cfg(test)]
impl Heap {
    /// Zeroed memory, which is not empty.
    pub(crate) fn new(len: usize) -> std::sync::Arc<Heap> {
        assert!(len > 0);
        let layout = std::alloc::Layout::from_size_align(len, 4096).unwrap();
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).unwrap();
        std::sync::Arc::new(Heap { start, layout })
    }
}

#[cfg(test)]
// SAFETY: the allocation stays where it is until the last owner is dropped; the pointer is checked to be inside.
unsafe impl Memory for std::sync::Arc<Heap> {
    fn len(&self) -> usize {
        self.layout.size()
    }

    fn at(&self, offset: usize, size: usize) -> NonNull<u8> {
        assert!(offset <= self.len() && size <= self.len() - offset);
        // SAFETY: the offset is inside the allocation.
        unsafe { self.start.add(offset) }
    }
}

#[cfg(test)]
impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout, and freed once.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), self.layout) }
    }
}
