//! What the simulator draws. Distributions are inverse transforms in plain IEEE arithmetic, with a logarithm of our
//! own, because those of system libraries differ in the last bit.

pub(crate) use forebay_random::Random;
use forebay_random::{hash, split_mix};

/// The stream called `name` of a run with this seed.
pub(crate) fn stream(seed: u64, name: &str) -> Random {
    Random::seeded(split_mix(&mut seed.clone()) ^ hash(name))
}

/// Exponential with mean 1: the inverse transform of a multiple of 2^-53 in (0, 1].
#[inline]
pub(crate) fn exponential(random: &mut Random) -> f64 {
    -ln(random.unit())
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
    fn the_logarithm_is_the_library_s_but_for_the_last_bits() {
        let mut random = stream(1, "test");
        for _ in 0..100_000 {
            let x = random.unit();
            let (ours, theirs) = (ln(x), x.ln());
            assert!((ours - theirs).abs() <= 4e-16 * theirs.abs().max(1e-16), "{x}: {ours} {theirs}");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn streams_differ_by_seed_and_by_name_and_repeat() {
        let first = |seed, name| stream(seed, name).bits();
        assert_ne!(first(1, "sizes"), first(2, "sizes"));
        assert_ne!(first(1, "sizes"), first(1, "sas"));
        assert_eq!(first(1, "sizes"), first(1, "sizes"));
    }
}
