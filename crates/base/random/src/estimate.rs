//! How sure the mean of independent runs is: Student's t, once for all models, commands and packages.

use serde::Serialize;

/// The confidence of intervals unless another is asked for.
pub const CONFIDENCE: f64 = 0.95;

/// Above so many degrees of freedom the quantile is an expansion, whose error is then below 1e-12.
const EXPANDED_FROM: u64 = 1_000;

/// A mean with its confidence interval, mean +- half_width (Student's t; the runs are independent).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean over the runs.
    pub mean: f64,
    /// Half the width of the interval; infinite for a single run.
    pub half_width: f64,
}

impl Estimate {
    /// With 95 % confidence, from one value a run.
    pub fn of(values: &[f64]) -> Estimate {
        Estimate::with_confidence(values, CONFIDENCE)
    }

    /// The same of those values that are numbers: runs in which nothing happened have no figure. NaN if none is.
    pub fn of_known(values: &[f64], confidence: f64) -> Estimate {
        let known: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        match known.is_empty() {
            true => Estimate { mean: f64::NAN, half_width: f64::NAN },
            false => Estimate::with_confidence(&known, confidence),
        }
    }

    /// The same with another confidence, above 0 and below 1 (Law, Simulation Modeling and Analysis, 5th edition,
    /// equation 4.12).
    pub fn with_confidence(values: &[f64], confidence: f64) -> Estimate {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let Some(freedom) = values.len().checked_sub(1).filter(|&freedom| freedom > 0) else {
            return Estimate { mean, half_width: f64::INFINITY };
        };
        // Equal values differ from their rounded mean by the last digit, which is no variance.
        if values.iter().all(|value| *value == values[0]) {
            return Estimate { mean: values[0], half_width: 0.0 };
        }
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let t = student_t(confidence, freedom as u64);
        Estimate { mean, half_width: t * (square / freedom as f64 / n).sqrt() }
    }

    /// Whether a value is in the interval.
    pub fn contains(&self, value: f64) -> bool {
        (value - self.mean).abs() <= self.half_width
    }
}

/// The t that a Student variable of `freedom` degrees, at least 1, exceeds in absolute value with probability 1 -
/// `confidence`; 0.95 gives the 97.5 % point.
pub fn student_t(confidence: f64, freedom: u64) -> f64 {
    if freedom > EXPANDED_FROM {
        let z = quantile(confidence, |z| 1.0 - libm::erfc(z / std::f64::consts::SQRT_2));
        return expanded(z, freedom as f64);
    }
    quantile(confidence, |t| within(t, freedom))
}

/// Where a distribution of absolute values reaches `confidence`.
fn quantile(confidence: f64, within: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while within(high) < confidence && high < f64::MAX / 2.0 {
        high *= 2.0;
    }
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return high;
        }
        if within(middle) < confidence { low = middle } else { high = middle }
    }
}

/// The probability that a Student variable is within -t and t (Abramowitz and Stegun 26.7.3 and 26.7.4).
fn within(t: f64, freedom: u64) -> f64 {
    let angle = libm::atan(t / (freedom as f64).sqrt());
    let (sine, cosine) = libm::sincos(angle);
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = if odd { (cosine, 0.0) } else { (1.0, 0.0) };
    for step in 0..freedom / 2 {
        sum += term;
        let (above, below) = if odd { (2 * step + 2, 2 * step + 3) } else { (2 * step + 1, 2 * step + 2) };
        term *= above as f64 / below as f64 * cosine * cosine;
    }
    if odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}

/// Student's quantile from the normal quantile z (Abramowitz and Stegun 26.7.5).
fn expanded(z: f64, freedom: f64) -> f64 {
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
        (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1_482.0 * z.powi(5) - 1_920.0 * z.powi(3) - 945.0 * z)
            / 92_160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_scipy() {
        // scipy.stats.t.ppf(0.5 + 0.5 * confidence, freedom)
        for (confidence, freedom, t) in [
            (0.95, 1, 12.706_204_736_174_694),
            (0.95, 2, 4.302_652_729_749_462),
            (0.95, 4, 2.776_445_105_197_793),
            (0.99, 1, 63.656_741_162_871_53),
            (0.99, 9, 3.249_835_541_592_126),
            (0.99, 19, 2.860_934_606_464_979),
            (0.95, 120, 1.979_930_405_082_44),
            (0.95, 1_001, 1.962_336_705_280_88),
            (0.999, 5_000, 3.292_473_723_370_88),
        ] {
            let found = student_t(confidence, freedom);
            assert!((found - t).abs() < 1e-9 * t, "{confidence} {freedom}: {found}, expected {t}");
        }
    }

    #[test]
    fn runs_without_a_figure_are_left_out() {
        let known = Estimate::with_confidence(&[1.0, 2.0, 4.0], 0.95);
        assert_eq!(Estimate::of_known(&[1.0, f64::NAN, 2.0, 4.0], 0.95), known);
        assert!(Estimate::of_known(&[f64::NAN], 0.95).mean.is_nan());
    }

    #[test]
    fn the_expansion_meets_the_sum() {
        let z = quantile(0.95, |z| 1.0 - libm::erfc(z / std::f64::consts::SQRT_2));
        assert!((expanded(z, 1_000.0) - student_t(0.95, 1_000)).abs() < 1e-11);
    }

    #[test]
    fn equal_values_have_no_width_and_one_value_has_no_bound() {
        assert_eq!(Estimate::of(&[0.1; 3]), Estimate { mean: 0.1, half_width: 0.0 });
        assert_eq!(Estimate::of(&[2.0]).half_width, f64::INFINITY);
        let two = Estimate::of(&[1.0, 3.0]);
        assert!(two.contains(2.0) && (two.half_width - 12.706_204_736_174_694).abs() < 1e-9);
    }
}
