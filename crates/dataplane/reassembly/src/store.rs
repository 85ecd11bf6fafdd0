//! Memory for fragments: blocks of one size, linked into chains.

use super::chain::NONE;

/// Bytes of a block: what most links carry in a packet fits into one.
pub const BLOCK: usize = 2_048;

/// A fixed number of blocks.
#[derive(Debug)]
pub struct Store {
    bytes: Box<[u8]>,
    /// The block behind each in its fragment, or in the list of free ones.
    next: Vec<u32>,
    first_free: u32,
    free: usize,
}

impl Store {
    pub fn new(blocks: usize) -> Store {
        let next = (1..=blocks as u32).map(|next| if next == blocks as u32 { NONE } else { next });
        Store {
            bytes: vec![0; blocks * BLOCK].into_boxed_slice(),
            next: next.collect(),
            first_free: if blocks > 0 { 0 } else { NONE },
            free: blocks,
        }
    }

    /// Free blocks.
    pub fn free(&self) -> usize {
        self.free
    }

    /// Blocks in use.
    pub fn used(&self) -> usize {
        self.next.len() - self.free
    }

    /// Keeps a copy of `bytes`, which there must be room for and which are not empty; its first block.
    pub fn put(&mut self, bytes: &[u8]) -> u32 {
        let first = self.first_free;
        let mut last = first;
        for chunk in bytes.chunks(BLOCK) {
            last = self.first_free;
            self.first_free = self.next[last as usize];
            self.free -= 1;
            self.bytes[last as usize * BLOCK..][..chunk.len()].copy_from_slice(chunk);
        }
        self.next[last as usize] = NONE;
        first
    }

    /// Frees a fragment's blocks.
    pub fn give_back(&mut self, first: u32) {
        let mut last = first;
        self.free += 1;
        while self.next[last as usize] != NONE {
            last = self.next[last as usize];
            self.free += 1;
        }
        self.next[last as usize] = self.first_free;
        self.first_free = first;
    }

    /// The pieces of a fragment of `len` bytes.
    pub fn pieces(&self, first: u32, len: usize) -> impl Iterator<Item = &[u8]> {
        let mut block = first;
        let mut left = len;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let piece = &self.bytes[block as usize * BLOCK..][..left.min(BLOCK)];
            block = self.next[block as usize];
            left -= piece.len();
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_of_several_blocks_are_kept_and_all_blocks_come_back() {
        let mut store = Store::new(8);
        let lens = [1, BLOCK, BLOCK + 1, 3 * BLOCK];
        for round in 0..3 {
            let fragments = lens.map(|len| {
                let bytes: Vec<u8> = (0..len).map(|at| (at + len + round) as u8).collect();
                (store.put(&bytes), bytes)
            });
            assert_eq!((store.used(), store.free()), (7, 1));
            for at in [2, 0, 3, 1] {
                let (first, bytes) = &fragments[at];
                assert_eq!(store.pieces(*first, bytes.len()).collect::<Vec<_>>().concat(), *bytes);
                store.give_back(*first);
            }
            assert_eq!((store.used(), store.free()), (0, 8));
        }
    }
}
