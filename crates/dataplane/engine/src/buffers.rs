//! Packet buffers that are used again and again, so that packets take no memory.

use forebay_crypto::Packet;

/// Free buffers, by the processor that writes them: those that another core has written would be fetched from its
/// cache only to be written over by this one. The one used last comes first, because it is still in the cache.
#[derive(Debug)]
pub struct Buffers {
    free: Vec<Vec<Packet>>,
    /// Largest IP packet that each holds, in bytes.
    capacity: usize,
    /// How many are free, and most that are kept.
    len: usize,
    limit: usize,
}

/// Free buffers of a processor from which on others may have some.
const SPARE: usize = 32;

/// Free buffers of a core from which on other cores get some.
const MANY: usize = 512;

/// Processors that have buffers of their own; further ones share the last. What is lent has a home that is none of these.
const HOMES: usize = Packet::LENT as usize;

impl Buffers {
    /// Buffers for packets of `capacity` bytes, of which `limit` are kept at most, at so many processors.
    pub fn new(capacity: usize, limit: usize, processors: usize) -> Buffers {
        let mut free: Vec<Vec<Packet>> = (0..processors.clamp(1, HOMES)).map(|_| Vec::new()).collect();
        free.iter_mut().for_each(|free| free.reserve(limit));
        Buffers { free, capacity, len: 0, limit }
    }

    /// An empty buffer for the running core; a new one if none is free.
    #[inline]
    pub fn take(&mut self) -> Packet {
        self.take_for(0)
    }

    /// An empty buffer that a processor is to write.
    #[inline]
    pub fn take_for(&mut self, processor: usize) -> Packet {
        let home = processor.min(self.free.len() - 1);
        match self.free[home].pop() {
            Some(packet) => {
                self.len -= 1;
                packet
            }
            None => self.make(home),
        }
    }

    /// One for a processor that has none: another's if that has some to spare, because the load has moved away from it.
    #[cold]
    fn make(&mut self, home: usize) -> Packet {
        let most = self.free.iter_mut().max_by_key(|free| free.len()).filter(|free| free.len() >= SPARE);
        let packet = most.and_then(Vec::pop);
        self.len -= usize::from(packet.is_some());
        let mut packet = packet.unwrap_or_else(|| Packet::with_capacity(self.capacity));
        packet.set_home(home as u8);
        packet
    }

    /// Takes back a buffer; one that is lent goes back to its lender. A smaller one, which is not from here, would not hold every
    /// packet.
    #[inline]
    pub fn put(&mut self, packet: Packet) {
        let home = usize::from(packet.home());
        if packet.capacity() >= self.capacity
            && self.len < self.limit
            && let Some(free) = self.free.get_mut(home)
        {
            self.len += 1;
            free.push(packet);
        }
    }

    /// Moves a packet that is lent into a buffer of this core's own.
    #[cold]
    pub fn keep(&mut self, packet: &mut Packet) {
        if packet.is_lent() {
            let mut own = self.take();
            match own.fill(packet.bytes()) {
                true => *packet = own,
                false => self.put(own),
            }
        }
    }

    /// Evens out what several cores have: one may take more packets from links than it sends. What the running core has too many
    /// of goes to `spare`, and it takes from there when it has few.
    #[inline]
    pub fn even_out(&mut self, spare: &mut Vec<Packet>) {
        let many = MANY.min(self.limit / 2);
        let (free, few) = (self.free[0].len(), many / 4);
        if free < few && !spare.is_empty() {
            for packet in spare.drain(spare.len().saturating_sub(few)..) {
                self.put(packet);
            }
        } else if free > many && spare.len() < self.limit {
            let from = free - few;
            spare.extend(self.free[0].drain(from..));
            self.len -= few;
        }
    }

    /// The largest IP packet that each holds, in bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many are free.
    pub fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_goes_back_and_is_kept_only_as_a_copy() {
        let mut buffers = Buffers::new(100, 16, usize::MAX);
        let mut lent = Packet::lent_copy(&[7; 200]);
        buffers.put(Packet::lent_copy(&[7; 200]));
        assert_eq!(buffers.len(), 0, "a buffer of a link's");
        buffers.keep(&mut lent);
        assert!(lent.is_lent(), "no buffer holds it");
        let mut small = Packet::lent_copy(&[7; 60]);
        buffers.keep(&mut small);
        assert!(!small.is_lent());
        assert_eq!(small.bytes(), [7; 60]);
        buffers.put(small);
        assert_eq!(buffers.len(), 1);
    }
}
