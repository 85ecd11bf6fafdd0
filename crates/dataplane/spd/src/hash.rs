//! The hash of every table in which packets are looked up. It is keyed so that senders of packets cannot predict
//! collisions.

use std::hash::{BuildHasher, Hasher};

/// The key of the hash, drawn once per process by the code that creates the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed([u64; 2]);

impl Seed {
    /// The key that is made of this number.
    pub fn new(seed: u64) -> Seed {
        // Two odd numbers without a pattern in their bits, whatever the seed.
        let spread = |n: u64| fold(seed ^ n, 0x9e37_79b9_7f4a_7c15) ^ seed.rotate_left(32);
        Seed([spread(0x243f_6a88_85a3_08d3), spread(0x1319_8a2e_0370_7344) | 1])
    }

    /// The hash of these words.
    #[inline]
    pub fn hash(self, words: &[u64]) -> u64 {
        let mixed = words.iter().fold(self.0[0], |mixed, &word| fold(mixed ^ word, self.0[1]));
        fold(mixed, self.0[1])
    }
}

/// Both halves of the product, one upon the other: each bit of it depends on all of both numbers.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl BuildHasher for Seed {
    type Hasher = SeededHasher;

    #[inline]
    fn build_hasher(&self) -> SeededHasher {
        SeededHasher { mixed: self.0[0], factor: self.0[1] }
    }
}

/// A hash that is being computed.
pub struct SeededHasher {
    mixed: u64,
    factor: u64,
}

impl Hasher for SeededHasher {
    #[inline]
    fn finish(&self) -> u64 {
        fold(self.mixed, self.factor)
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.mixed = fold(self.mixed ^ number, self.factor);
    }

    #[inline]
    fn write_u128(&mut self, number: u128) {
        self.write_u64(number as u64);
        self.write_u64((number >> 64) as u64);
    }
}
