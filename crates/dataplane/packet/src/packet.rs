//! A packet buffer with room before and behind the packet.

use crate::Memory;

/// A packet in a fixed buffer, with headroom for outer headers and tailroom for
/// padding and ICV; growing a packet moves its ends, never its bytes.
///
/// The default is a packet without a buffer, which holds nothing: what is left where a packet was taken.
#[derive(Default)]
pub struct Packet {
    data: Memory,
    start: u32,
    end: u32,
}

impl Packet {
    /// Room kept before a packet, in whole cache lines. One ESP tunnel takes 72 bytes (outer IPv6, UDP, ESP,
    /// IV). AH works on an image and keeps the headers and the ICV in front of it: 160 bytes for a tunnel
    /// (outer IPv6 twice, AH 48, ICV 32), 272 in front of 192 bytes of IPv6 extension headers; and SAs
    /// may stand one inside the other: two ESP tunnels in an AH tunnel take 304.
    pub const HEADROOM: usize = 320;
    /// Room kept behind a packet: padding (up to 255 + 2), ICV (up to 32).
    pub const TAILROOM: usize = 320;

    /// The home of packets that are lent.
    pub const LENT: u8 = u8::MAX;

    /// An empty packet that can hold `capacity` bytes of IP packet.
    ///
    /// # Panics
    /// If `capacity` is over a mebibyte: IP packets are far smaller.
    pub fn with_capacity(capacity: usize) -> Packet {
        assert!(capacity <= 1 << 20, "a packet of {capacity} bytes");
        let size = Packet::HEADROOM + capacity + Packet::TAILROOM;
        let start = Packet::HEADROOM as u32;
        Packet { data: Memory::zeroed(size), start, end: start }
    }

    /// The `len` bytes of `memory` from `start` on.
    ///
    /// # Panics
    /// If it has fewer.
    #[inline]
    pub fn from_memory(memory: Memory, start: u32, len: u32) -> Packet {
        let end = u64::from(start) + u64::from(len);
        if end > memory.len() as u64 {
            no_range(start as usize, end as usize, memory.len());
        }
        Packet { data: memory, start, end: end as u32 }
    }

    /// A copy of `bytes` in a buffer that is lent and has no more room than is promised: for tests of who takes packets from links.
    #[doc(hidden)]
    pub fn lent_copy(bytes: &[u8]) -> Packet {
        let (start, len) = (Packet::HEADROOM as u32, bytes.len() as u32);
        let memory = Memory::lent_zeroed((start + len) as usize + Packet::TAILROOM);
        let mut packet = Packet::from_memory(memory, start, len);
        packet.bytes_mut().copy_from_slice(bytes);
        packet
    }

    /// Takes its memory, with what stands in it; the packet then has no buffer.
    #[inline]
    pub fn take_memory(&mut self) -> Memory {
        std::mem::take(self).data
    }

    /// The memory in which it stands.
    #[inline]
    pub fn memory(&self) -> &Memory {
        &self.data
    }

    /// Whether its memory is a link's, which gets it back when the packet is dropped or sent. Such a buffer may be smaller than
    /// others, and who keeps packets for long keeps a copy: links have a limited number of them.
    #[inline]
    pub fn is_lent(&self) -> bool {
        self.data.is_lent()
    }

    /// Notes to which pool of buffers this one belongs: a number of its owner's choice, 0 at first. It stays with
    /// the buffer whatever is copied into it.
    pub fn set_home(&mut self, home: u8) {
        self.data.set_home(home);
    }

    /// The number that [`Packet::set_home`] noted.
    #[inline]
    pub fn home(&self) -> u8 {
        self.data.home()
    }

    /// The largest IP packet that [`Packet::fill`] takes, in bytes.
    pub fn capacity(&self) -> usize {
        self.data.len().saturating_sub(Packet::HEADROOM + Packet::TAILROOM)
    }

    /// Replaces the content by a copy of `bytes`; `false`, and no change, if they do not fit.
    #[inline]
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        let end = Packet::HEADROOM + bytes.len();
        if end + Packet::TAILROOM > self.data.len() {
            return false;
        }
        self.data[Packet::HEADROOM..end].copy_from_slice(bytes);
        self.start = Packet::HEADROOM as u32;
        self.end = end as u32;
        true
    }

    /// Replaces the content by a copy of `head` and `body`, one behind the other; `false`, and no change, if they
    /// do not fit.
    #[inline]
    pub fn fill_parts(&mut self, head: &[u8], body: &[u8]) -> bool {
        let middle = Packet::HEADROOM + head.len();
        let end = middle + body.len();
        if end + Packet::TAILROOM > self.data.len() {
            return false;
        }
        self.data[Packet::HEADROOM..middle].copy_from_slice(head);
        self.data[middle..end].copy_from_slice(body);
        self.start = Packet::HEADROOM as u32;
        self.end = end as u32;
        true
    }

    /// Whether [`Packet::copy_from`] would fit.
    #[inline]
    pub fn holds(&self, other: &Packet) -> bool {
        other.end as usize <= self.data.len()
    }

    /// Makes `self` an exact copy of `other`, position included, so that spans stay valid;
    /// `false` if it does not fit.
    #[inline]
    pub fn copy_from(&mut self, other: &Packet) -> bool {
        let Some(room) = self.data.get_mut(other.start as usize..other.end as usize) else {
            return false;
        };
        room.copy_from_slice(other.bytes());
        self.start = other.start;
        self.end = other.end;
        true
    }

    /// The packet's bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.data[self.start as usize..self.end as usize]
    }

    /// The packet's bytes, to change in place.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.data[self.start as usize..self.end as usize]
    }

    /// Length of the packet in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it has a buffer: the default, which is what is left where a packet was taken, has none.
    #[inline]
    pub fn has_buffer(&self) -> bool {
        !self.data.is_empty()
    }

    /// Whether the packet holds no byte.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Grows the packet by `front` bytes before and `back` bytes behind, of unspecified content.
    /// Returns `None`, and changes nothing, if the head- or tailroom is used up.
    #[inline]
    #[must_use]
    pub fn grow(&mut self, front: usize, back: usize) -> Option<()> {
        let start = (self.start as usize).checked_sub(front)?;
        if back > self.data.len() - self.end as usize {
            return None;
        }
        self.start = start as u32;
        self.end += back as u32;
        Some(())
    }

    /// Makes the packet the buffer's bytes from `start` to `end`.
    ///
    /// # Panics
    /// If that is not a range of the buffer.
    #[inline]
    pub fn set_bounds(&mut self, start: usize, end: usize) {
        if start > end || end > self.data.len() {
            no_range(start, end, self.data.len());
        }
        self.start = start as u32;
        self.end = end as u32;
    }

    /// Drops `n` bytes at the front; `None`, and no change, if there are fewer.
    #[inline]
    #[must_use]
    pub fn pull_front(&mut self, n: usize) -> Option<()> {
        if n > self.len() {
            return None;
        }
        self.start += n as u32;
        Some(())
    }

    /// Cuts the packet to its first `n` bytes; a longer `n` changes nothing.
    #[inline]
    pub fn truncate(&mut self, n: usize) {
        if n < self.len() {
            self.end = self.start + n as u32;
        }
    }

    /// Where the packet starts in its buffer: spans of a job count from the buffer's begin,
    /// so they hold while the packet's ends move.
    #[inline]
    pub fn offset(&self) -> usize {
        self.start as usize
    }

    /// The whole buffer, head- and tailroom included: what the spans of a job index.
    #[inline]
    pub fn buffer(&self) -> &[u8] {
        &self.data
    }

    /// The whole buffer, to change in place.
    #[inline]
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }
}

/// By itself and by value, so that the numbers can stay in registers where all is well.
#[cold]
#[inline(never)]
fn no_range(start: usize, end: usize, len: usize) -> ! {
    panic!("{start}..{end} in {len} bytes")
}

impl std::fmt::Debug for Packet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packet({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_no_larger_than_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 32);
    }

    #[test]
    fn memory_comes_and_goes_with_what_stands_in_it() {
        let mut memory = Memory::zeroed(1_000);
        memory[400..404].copy_from_slice(b"abcd");
        let mut packet = Packet::from_memory(memory, 400, 4);
        assert_eq!((packet.bytes(), packet.offset(), packet.capacity()), (&b"abcd"[..], 400, 360));
        assert!(!packet.is_lent() && packet.has_buffer());
        assert_eq!(packet.grow(400, 596), Some(()));
        assert_eq!(packet.grow(1, 0), None);
        let memory = packet.take_memory();
        assert_eq!(&memory[400..404], b"abcd");
        assert!(!packet.has_buffer() && packet.is_empty());
    }

    #[test]
    #[should_panic(expected = "5..11 in 10 bytes")]
    fn a_range_outside_the_memory_is_refused() {
        Packet::from_memory(Memory::zeroed(10), 5, 6);
    }
}
