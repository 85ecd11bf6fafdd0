//! Counters that a program of the kernel and this process share.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Bytes between two counters: what different CPUs write is in different cache lines.
const APART: usize = 64;

/// Rows of counters, which a program finds in a map by the row's number, [`Counters::offset`] bytes from its begin.
#[derive(Debug)]
pub struct Counters {
    map: OwnedFd,
    start: NonNull<u8>,
    len: usize,
    rows: usize,
    columns: usize,
}

// SAFETY: the mapping belongs to this value and is not tied to a thread; what is in it is used by atomic operations alone.
unsafe impl Send for Counters {}
// SAFETY: as above.
unsafe impl Sync for Counters {}

impl Counters {
    /// Counters that are zero.
    ///
    /// # Errors
    /// Without `CAP_BPF`, and before Linux 5.5.
    pub fn new(rows: usize, columns: usize) -> io::Result<Counters> {
        let size = columns * APART;
        let map = super::array(rows as u32, size as u32)?;
        // Values of an array stand one behind the other, at multiples of eight bytes.
        let len = rows * size;
        // SAFETY: a new mapping at a place of the kernel's choice touches no other memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Counters { map, start, len, rows, columns })
    }

    /// Where a column is in the value of a row.
    pub fn offset(column: usize) -> usize {
        column * APART
    }

    /// The map.
    pub fn map(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }

    /// One of them.
    ///
    /// # Panics
    /// If there is no such row or column.
    #[inline]
    pub fn at(&self, row: usize, column: usize) -> &AtomicU64 {
        assert!(row < self.rows && column < self.columns);
        let offset = (row * self.columns + column) * APART;
        // SAFETY: the place is inside the mapping, which lives as long as this value does; it is aligned to eight bytes, because a mapping
        // begins with a page; and the kernel's program changes it by atomic operations alone.
        unsafe { self.start.add(offset).cast::<AtomicU64>().as_ref() }
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives this value.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
