//! Random numbers that are the same bits on every machine, for what runs in virtual time.
//!
//! The generator is xoshiro256++ 1.0 (Blackman, Vigna, 2019), seeded by SplitMix64 as its authors advise. Each
//! thing that is drawn has a stream of its own, named by [`hash`]: so drawing one otherwise leaves the others as they
//! were, and designs that are compared see the same packets (common random numbers). Nothing here is for keys.
//!
//! The bits belong to the recorded results of studies and tests, so they may not change with a version of another crate
//! such as rand_xoshiro; the generator is shorter than what would guard it.

pub mod estimate;

pub use estimate::{CONFIDENCE, Estimate, student_t};

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// The stream of a seed.
    pub fn seeded(seed: u64) -> Random {
        let mut state = seed;
        Random([(); 4].map(|()| split_mix(&mut state)))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A whole number below `end`: the upper half of bits * end, unfair by less than end / 2^64.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// Uniform in (0, 1], in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// A number for a name (FNV-1a): any hash does, if it is always the same.
pub fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The next number of SplitMix64, which makes many seeds of one.
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // The first numbers of the reference implementation from the state 1, 2, 3, 4.
        let mut random = Random([1, 2, 3, 4]);
        let expected =
            [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386, 9_228_616_714_210_784_205];
        assert_eq!([(); 5].map(|()| random.bits()), expected);
    }

    #[test]
    fn the_seeds_are_split_mix_64() {
        let mut state = 1_234_567;
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| split_mix(&mut state)), expected);
    }

    #[test]
    fn names_are_hashed_by_fnv_1a() {
        assert_eq!((hash(""), hash("a")), (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c));
    }
}
