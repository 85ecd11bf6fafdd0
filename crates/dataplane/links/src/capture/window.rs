//! A window of fixed size that moves over an input.

use std::io::{self, Read};

use super::MAX_BLOCK;

/// Bytes held at most: room for the longest block with as much again to read ahead, small
/// enough to stay in a second-level cache.
const SIZE: usize = 512 * 1024;
const _: () = assert!(SIZE >= MAX_BLOCK);

/// The part of an input that is in memory, and where in the file it lies.
pub(super) struct Window<R> {
    input: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    offset: u64,
}

impl<R: Read> Window<R> {
    pub(super) fn new(input: R) -> Window<R> {
        Window { input, buffer: vec![0; SIZE].into_boxed_slice(), start: 0, end: 0, offset: 0 }
    }

    /// Where the window's first byte lies in the file.
    #[inline]
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes in the window, as many as were read so far.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Has at least `n` bytes in the window, or all there are before the input ends; says how many
    /// of the `n` there are. `n` is at most [`SIZE`].
    #[inline]
    pub(super) fn want(&mut self, n: usize) -> io::Result<usize> {
        if self.end - self.start < n {
            self.read_more(n)?;
        }
        Ok(n.min(self.end - self.start))
    }

    /// Moves the window's begin on by `n` bytes that are in it. They stay in memory until the next
    /// [`Window::want`] or [`Window::skip`]: their place is what is returned.
    #[inline]
    pub(super) fn consume(&mut self, n: usize) -> usize {
        let place = self.start;
        self.start = (self.start + n).min(self.end);
        self.offset += (self.start - place) as u64;
        place
    }

    /// Bytes consumed last, from [`Window::consume`]'s place on.
    #[inline]
    pub(super) fn consumed(&self, from: usize, length: usize) -> &[u8] {
        &self.buffer[from..from + length]
    }

    /// Moves the window's begin on by `n` bytes, in it or not; says how many there were.
    pub(super) fn skip(&mut self, n: u64) -> io::Result<u64> {
        let mut left = n;
        while left > 0 {
            let here = self.want(usize::try_from(left).unwrap_or(SIZE).min(SIZE))?;
            if here == 0 {
                break;
            }
            self.consume(here);
            left -= here as u64;
        }
        Ok(n - left)
    }

    #[cold]
    fn read_more(&mut self, n: usize) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < n.min(SIZE) {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, with an interruption before each.
    struct Dripping<'a>(&'a [u8], bool);

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let n = self.0.len().min(1);
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn short_and_interrupted_reads_are_joined() {
        let mut window = Window::new(Dripping(b"abcdefgh", false));
        assert_eq!(window.want(3).unwrap(), 3);
        let place = window.consume(2);
        assert_eq!(window.consumed(place, 2), b"ab");
        assert_eq!((window.offset(), window.skip(3).unwrap()), (2, 3));
        assert_eq!((window.want(9).unwrap(), window.bytes()), (3, &b"fgh"[..]));
        assert_eq!((window.skip(9).unwrap(), window.offset()), (3, 8));
    }

    #[test]
    fn more_than_the_window_is_skipped() {
        let mut window = Window::new(io::repeat(7).take(3 * SIZE as u64 + 5));
        assert_eq!(window.skip(3 * SIZE as u64).unwrap(), 3 * SIZE as u64);
        assert_eq!(window.want(SIZE).unwrap(), 5);
        assert_eq!(window.offset(), 3 * SIZE as u64);
    }
}
