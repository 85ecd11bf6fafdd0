//! Packet buffers that are used again and again, so that packets take no memory.

use forebay_crypto::Packet;

/// Free buffers, the one used last first: it is still in the cache.
#[derive(Debug)]
pub struct Buffers {
    free: Vec<Packet>,
    /// Largest IP packet that each holds, in bytes.
    capacity: usize,
    /// Most that are kept.
    limit: usize,
}

impl Buffers {
    /// Buffers for packets of `capacity` bytes, of which `limit` are kept at most.
    pub fn new(capacity: usize, limit: usize) -> Buffers {
        Buffers { free: Vec::with_capacity(limit), capacity, limit }
    }

    /// An empty buffer; a new one if none is free.
    #[inline]
    pub fn take(&mut self) -> Packet {
        self.free.pop().unwrap_or_else(|| Packet::with_capacity(self.capacity))
    }

    /// Takes back a buffer. A smaller one, which is not from here, would not hold every packet.
    #[inline]
    pub fn put(&mut self, packet: Packet) {
        if packet.capacity() >= self.capacity && self.free.len() < self.limit {
            self.free.push(packet);
        }
    }

    /// How many are free.
    pub fn len(&self) -> usize {
        self.free.len()
    }
}
