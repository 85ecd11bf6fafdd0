//! What pipelines draw: times of service and between arrivals. Logarithms are libm's, in software, not the machine's.

pub(crate) use forebay_random::Random;
use forebay_random::hash;
use forebay_time::Duration;

/// The stream `name` of the run with this seed: a stage draws the same times whatever stands beside it.
pub(crate) fn stream(seed: u64, name: &str) -> Random {
    Random::seeded(seed ^ hash(name))
}

/// Exponential, rounded to the nearest picosecond.
#[inline]
pub(crate) fn exponential(random: &mut Random, mean: Duration) -> Duration {
    scaled(mean, -libm::log(random.unit()))
}

/// The sum of `phases` exponentials of the mean `mean` together.
pub(crate) fn erlang(random: &mut Random, mean: Duration, phases: u32) -> Duration {
    let sum: f64 = (0..phases).map(|_| -libm::log(random.unit())).sum();
    scaled(mean, sum / f64::from(phases))
}

/// So many times a time, rounded to the nearest picosecond.
pub(crate) fn scaled(mean: Duration, factor: f64) -> Duration {
    Duration((mean.0 as f64 * factor + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let mut random = stream(1, "moments");
        let mean = Duration::from_micros(10);
        let n = 200_000;
        let mut figures = |draw: &mut dyn FnMut(&mut Random) -> Duration| {
            let drawn: Vec<f64> = (0..n).map(|_| draw(&mut random).as_secs() * 1e6).collect();
            let mean = drawn.iter().sum::<f64>() / f64::from(n);
            (mean, drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n))
        };
        let (exponential, variance) = figures(&mut |r| exponential(r, mean));
        assert!(
            (exponential - 10.0).abs() < 0.1 && (variance - 100.0).abs() < 3.0,
            "{exponential} {variance}"
        );
        let (erlang, variance) = figures(&mut |r| erlang(r, mean, 4));
        assert!((erlang - 10.0).abs() < 0.06 && (variance - 25.0).abs() < 0.6, "{erlang} {variance}");
    }
}
