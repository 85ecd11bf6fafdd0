//! Families of laws by the names and parameters of scipy.stats.

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// A law of scipy.stats in its standard form, where `loc` is 0 and `scale` is 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Shape {
    /// Between 0 and 1, all alike.
    Uniform,
    /// Gamma with this shape, its mean.
    Gamma {
        /// As scipy names it.
        a: f64,
    },
    /// The exponential of a normal number with this standard deviation.
    Lognorm {
        /// As scipy names it.
        s: f64,
    },
    /// Weibull's law: an exponential number to the power 1 / c.
    WeibullMin {
        /// As scipy names it.
        c: f64,
    },
    /// Pareto's law from 1 on: P(X > x) is x to the power -b.
    Pareto {
        /// As scipy names it.
        b: f64,
    },
    /// A triangle from 0 to 1 with its top at c.
    Triang {
        /// As scipy names it.
        c: f64,
    },
}

impl Shape {
    /// A number of this law.
    pub(crate) fn draw(self, random: &mut Random) -> f64 {
        match self {
            Shape::Uniform => random.unit(),
            Shape::Gamma { a } => gamma(random, a),
            Shape::Lognorm { s } => libm::exp(s * normal(random)),
            Shape::WeibullMin { c } => libm::pow(-libm::log(random.unit()), 1.0 / c),
            Shape::Pareto { b } => libm::pow(random.unit(), -1.0 / b),
            Shape::Triang { c } => {
                let unit = random.unit();
                match unit <= c {
                    true => (unit * c).sqrt(),
                    false => 1.0 - ((1.0 - unit) * (1.0 - c)).sqrt(),
                }
            }
        }
    }

    /// Its mean.
    pub fn mean(self) -> f64 {
        match self {
            Shape::Uniform => 0.5,
            Shape::Gamma { a } => a,
            Shape::Lognorm { s } => libm::exp(0.5 * s * s),
            Shape::WeibullMin { c } => libm::tgamma(1.0 + 1.0 / c),
            Shape::Pareto { b } if b > 1.0 => b / (b - 1.0),
            Shape::Pareto { .. } => f64::INFINITY,
            Shape::Triang { c } => (1.0 + c) / 3.0,
        }
    }

    /// Its variance; infinite where there is none.
    pub fn variance(self) -> f64 {
        match self {
            Shape::Uniform => 1.0 / 12.0,
            Shape::Gamma { a } => a,
            Shape::Lognorm { s } => libm::expm1(s * s) * libm::exp(s * s),
            Shape::WeibullMin { c } => libm::tgamma(1.0 + 2.0 / c) - self.mean() * self.mean(),
            Shape::Pareto { b } if b > 2.0 => b / ((b - 1.0) * (b - 1.0) * (b - 2.0)),
            Shape::Pareto { .. } => f64::INFINITY,
            Shape::Triang { c } => (1.0 - c + c * c) / 18.0,
        }
    }

    pub(crate) fn check(self) -> Result<(), &'static str> {
        let is_shape = |number: f64| number.is_finite() && number > 0.0;
        match self {
            Shape::Gamma { a: x } | Shape::Lognorm { s: x } | Shape::WeibullMin { c: x } if !is_shape(x) => {
                Err("the shape of its time is not a positive number")
            }
            Shape::Pareto { b } if !(b.is_finite() && b > 1.0) => {
                Err("a time by Pareto's law has no mean unless `b` is above 1")
            }
            Shape::Triang { c } if !(0.0..=1.0).contains(&c) => Err("the top of a triangle is at 0 to 1"),
            _ if !self.mean().is_finite() => Err("the mean of its time is too large a number"),
            _ => Ok(()),
        }
    }
}

/// A standard normal number (Box and Muller, A note on the generation of random normal deviates, 1958): one of the two,
/// so that every draw takes as many numbers.
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * libm::log(random.unit())).sqrt();
    radius * libm::cos(2.0 * std::f64::consts::PI * random.unit())
}

/// A gamma number (Marsaglia and Tsang, A simple method for generating gamma variables, 2000).
fn gamma(random: &mut Random, a: f64) -> f64 {
    // Below 1 by the law of a + 1.
    let (whole, below) = if a < 1.0 { (a + 1.0, libm::pow(random.unit(), 1.0 / a)) } else { (a, 1.0) };
    let d = whole - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let v = 1.0 + c * x;
        let v = v * v * v;
        if v > 0.0 && libm::log(random.unit()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v * below;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    const SHAPES: &[Shape] = &[
        Shape::Uniform,
        Shape::Gamma { a: 0.4 },
        Shape::Gamma { a: 2.5 },
        Shape::Lognorm { s: 0.5 },
        Shape::WeibullMin { c: 0.9 },
        Shape::WeibullMin { c: 2.0 },
        Shape::Pareto { b: 5.0 },
        Shape::Triang { c: 0.0 },
        Shape::Triang { c: 0.3 },
    ];

    /// scipy.stats: mean, variance and the 10, 50 and 90 % quantiles of the standard form.
    const SCIPY: &[[f64; 5]] = &[
        [0.5, 0.083_333_333_333_333_33, 0.1, 0.5, 0.9],
        [0.4, 0.4, 0.002_348_877_240_999_006_4, 0.145_078_141_643_435_44, 1.129_842_825_472_648_7],
        [2.5, 2.5, 0.805_153_993_481_161_3, 2.175_730_095_547_763, 4.618_178_449_890_562],
        [
            1.133_148_453_066_826_3,
            0.364_695_854_012_386_5,
            0.526_883_518_296_036_5,
            1.0,
            1.897_952_707_334_710_4,
        ],
        [
            1.052_183_720_891_293_4,
            1.371_503_394_658_797_1,
            0.082_051_503_168_765_06,
            0.665_486_731_874_355,
            2.526_165_946_003_732_5,
        ],
        [
            0.886_226_925_452_757_9,
            0.214_601_836_602_551_83,
            0.324_592_845_974_501_3,
            0.832_554_611_157_697_7,
            1.517_427_129_385_146_5,
        ],
        [
            1.25,
            0.104_166_666_666_666_67,
            1.021_295_687_600_135_1,
            1.148_698_354_997_035,
            1.584_893_192_461_113_6,
        ],
        [
            0.333_333_333_333_333_3,
            0.055_555_555_555_555_55,
            0.051_316_701_949_486_23,
            0.292_893_218_813_452_4,
            0.683_772_233_983_162_1,
        ],
        [
            0.433_333_333_333_333_35,
            0.043_888_888_888_888_89,
            0.173_205_080_756_887_73,
            0.408_392_021_690_038_4,
            0.735_424_868_893_541,
        ],
    ];

    #[test]
    fn moments_and_quantiles_are_those_of_scipy() {
        for (&shape, &[mean, variance, low, middle, high]) in SHAPES.iter().zip(SCIPY) {
            let near = |found: f64, exact: f64| (found / exact - 1.0).abs() < 1e-12;
            assert!(near(shape.mean(), mean) && near(shape.variance(), variance), "{shape:?}");
            let mut random = stream(1, "shapes");
            let drawn: Vec<f64> = (0..200_000).map(|_| shape.draw(&mut random)).collect();
            // Shares below the quantiles: their standard deviation is at most 0.0011.
            for (quantile, share) in [(low, 0.1), (middle, 0.5), (high, 0.9)] {
                let below = drawn.iter().filter(|&&x| x <= quantile).count() as f64 / 200_000.0;
                assert!(
                    (below - share).abs() < 0.005,
                    "{shape:?}: {below} up to {quantile}, exactly {share}"
                );
            }
            let found = drawn.iter().sum::<f64>() / 200_000.0;
            let error = (variance / 200_000.0).sqrt();
            assert!((found - mean).abs() < 5.0 * error, "{shape:?}: {found}, exactly {mean}");
        }
    }

    #[test]
    fn what_has_no_mean_is_refused() {
        assert!(Shape::Pareto { b: 1.0 }.check().is_err() && Shape::Pareto { b: 1.5 }.check().is_ok());
        assert!(Shape::Pareto { b: 1.5 }.variance().is_infinite());
        assert!(Shape::Gamma { a: 0.0 }.check().is_err() && Shape::Lognorm { s: f64::NAN }.check().is_err());
        assert!(Shape::Triang { c: 1.1 }.check().is_err() && Shape::WeibullMin { c: 1e-3 }.check().is_err());
    }
}
