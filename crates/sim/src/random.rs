//! Random numbers that are the same bits on every machine.
//!
//! The generator is xoshiro256++ 1.0 (Blackman, Vigna, 2019), seeded by SplitMix64 as its authors
//! advise. Each thing that is drawn has a stream of its own, named: so drawing the SAs otherwise leaves
//! the sizes as they were, and designs that are compared see the same packets (common random numbers).
//! Distributions are inverse transforms in plain IEEE arithmetic, with a logarithm of our own,
//! because those of system libraries differ in the last bit.

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random([u64; 4]);

impl Random {
    /// The stream called `name` of a run with this seed.
    pub(crate) fn stream(seed: u64, name: &str) -> Random {
        // FNV-1a: any hash does, if it is always the same.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let mut state = split_mix(&mut seed.clone()) ^ hash;
        Random([(); 4].map(|()| split_mix(&mut state)))
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
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
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// Exponential with mean 1: the inverse transform of a multiple of 2^-53 in (0, 1].
    #[inline]
    pub(crate) fn exponential(&mut self) -> f64 {
        let uniform = ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -ln(uniform)
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// The natural logarithm of a normal number above zero, to about 1 unit in the last place.
///
/// x = m 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh z for z = (m - 1) / (m + 1), |z| < 0.172,
/// as a series to z^21: the next term is below 2^-56 of the first.
pub(crate) fn ln(x: f64) -> f64 {
    use std::f64::consts::{LN_2, SQRT_2};
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    if m >= SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    let z = (m - 1.0) / (m + 1.0);
    let square = z * z;
    let series = (1..=10).rev().fold(0.0, |sum, k| (sum + 1.0 / f64::from(2 * k + 1)) * square);
    exponent as f64 * LN_2 + 2.0 * (z + z * series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // The first numbers of the reference implementation from the state 1, 2, 3, 4.
        let mut random = Random([1, 2, 3, 4]);
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!([(); 4].map(|()| random.bits()), expected);
    }

    #[test]
    fn the_seeds_are_split_mix_64() {
        let mut state = 1_234_567;
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| split_mix(&mut state)), expected);
    }

    #[test]
    fn the_logarithm_is_the_library_s_but_for_the_last_bits() {
        let mut random = Random::stream(1, "test");
        for _ in 0..100_000 {
            let x = ((random.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64;
            let (ours, theirs) = (ln(x), x.ln());
            assert!((ours - theirs).abs() <= 4e-16 * theirs.abs().max(1e-16), "{x}: {ours} {theirs}");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn streams_differ_by_seed_and_by_name_and_repeat() {
        let first = |seed, name| Random::stream(seed, name).bits();
        assert_ne!(first(1, "sizes"), first(2, "sizes"));
        assert_ne!(first(1, "sizes"), first(1, "sas"));
        assert_eq!(first(1, "sizes"), first(1, "sizes"));
    }
}
