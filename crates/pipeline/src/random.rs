//! Random numbers: the same on every machine, a stream of its own for everything that draws.
//!
//! The generator is xoshiro256++ 1.0 (Blackman and Vigna), its state filled by SplitMix64 from the
//! run's seed and the FNV-1a hash of the stream's name. So a stage draws the same times whatever
//! stands beside it, and two designs can be compared on the same arrivals. Logarithms are libm's,
//! in software, not the machine's.

use forebay_time::Duration;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random([u64; 4]);

impl Random {
    /// The stream `name` of the run with this seed.
    pub fn new(seed: u64, name: &str) -> Random {
        let hash = |h: u64, byte: u8| (h ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let mut state = seed ^ name.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
        Random([(); 4].map(|()| split_mix(&mut state)))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in (0, 1], in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..n.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Exponential, rounded to the nearest picosecond.
    #[inline]
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        scaled(mean, -libm::log(self.unit()))
    }

    /// The sum of `phases` exponentials of the mean `mean` together.
    pub fn erlang(&mut self, mean: Duration, phases: u32) -> Duration {
        let sum: f64 = (0..phases).map(|_| -libm::log(self.unit())).sum();
        scaled(mean, sum / f64::from(phases))
    }
}

fn scaled(mean: Duration, factor: f64) -> Duration {
    Duration((mean.0 as f64 * factor + 0.5) as u64)
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequences() {
        // SplitMix64 from 1234567, and xoshiro256++ from the state 1, 2, 3, 4 (rand_xoshiro's vectors).
        let mut state = 1_234_567;
        assert_eq!(split_mix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(&mut state), 3_203_168_211_198_807_973);
        let mut random = Random([1, 2, 3, 4]);
        let drawn: Vec<u64> = (0..5).map(|_| random.bits()).collect();
        assert_eq!(
            drawn,
            [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386, 9_228_616_714_210_784_205]
        );
    }

    #[test]
    fn moments() {
        let mut random = Random::new(1, "moments");
        let mean = Duration::from_micros(10);
        let n = 200_000;
        let mut figures = |draw: &mut dyn FnMut(&mut Random) -> Duration| {
            let drawn: Vec<f64> = (0..n).map(|_| draw(&mut random).as_secs() * 1e6).collect();
            let mean = drawn.iter().sum::<f64>() / f64::from(n);
            (mean, drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n))
        };
        let (exponential, variance) = figures(&mut |r| r.exponential(mean));
        assert!(
            (exponential - 10.0).abs() < 0.1 && (variance - 100.0).abs() < 3.0,
            "{exponential} {variance}"
        );
        let (erlang, variance) = figures(&mut |r| r.erlang(mean, 4));
        assert!((erlang - 10.0).abs() < 0.06 && (variance - 25.0).abs() < 0.6, "{erlang} {variance}");
    }
}
