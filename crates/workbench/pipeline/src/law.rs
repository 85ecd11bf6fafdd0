//! How long something takes.

use forebay_time::{Duration, PS_PER_S};
use serde::{Deserialize, Serialize};

use crate::random::{self, Random};
use crate::shape::Shape;

/// The law that a time follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Law {
    /// Always the same.
    Constant(#[serde(with = "seconds")] Duration),
    /// Exponential with this mean.
    Exponential(#[serde(with = "seconds")] Duration),
    /// The sum of so many equal exponentials.
    Erlang {
        /// Mean of the sum.
        #[serde(with = "seconds")]
        mean: Duration,
        /// How many.
        phases: u32,
    },
    /// Any of these, all equally likely.
    Empirical(#[serde(with = "seconds::list")] Vec<Duration>),
    /// A packet's bits, and those that go with it, at a rate.
    Rate {
        /// In bit/s.
        bits_per_s: f64,
        /// Bytes that go with each packet: headers, framing.
        #[serde(default)]
        overhead_bytes: u32,
    },
    /// A law of scipy.stats.
    Shaped {
        /// Its standard form, which is multiplied by `scale` and moved by `loc`.
        shape: Shape,
        /// What is added.
        #[serde(default, with = "seconds")]
        loc: Duration,
        /// What is multiplied by.
        #[serde(with = "seconds")]
        scale: Duration,
    },
    /// One of several exponentials (the hyperexponential law).
    Hyperexponential {
        /// The probability of each; their sum is 1.
        shares: Vec<f64>,
        /// The mean of each.
        #[serde(with = "seconds::list")]
        means: Vec<Duration>,
    },
}

impl Law {
    /// A time for a packet of `bytes`.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random, bytes: u32) -> Duration {
        match self {
            Law::Constant(time) => *time,
            Law::Exponential(mean) => random::exponential(random, *mean),
            Law::Erlang { mean, phases } => random::erlang(random, *mean, *phases),
            Law::Empirical(times) => times[random.below(times.len() as u64) as usize],
            Law::Rate { bits_per_s, overhead_bytes } => {
                at_rate(*bits_per_s, bytes.saturating_add(*overhead_bytes))
            }
            Law::Shaped { shape, loc, scale } => *loc + random::scaled(*scale, shape.draw(random)),
            Law::Hyperexponential { shares, means } => {
                let mut left = random.unit();
                let one = shares.iter().position(|share| {
                    left -= share;
                    left <= 0.0
                });
                random::exponential(random, means[one.unwrap_or(means.len() - 1)])
            }
        }
    }

    /// The mean for packets of `bytes`.
    pub fn mean(&self, bytes: u32) -> Duration {
        match self {
            Law::Constant(time) | Law::Exponential(time) | Law::Erlang { mean: time, .. } => *time,
            Law::Empirical(times) => {
                let sum: u128 = times.iter().map(|t| u128::from(t.0)).sum();
                Duration((sum / times.len().max(1) as u128) as u64)
            }
            Law::Rate { bits_per_s, overhead_bytes } => {
                at_rate(*bits_per_s, bytes.saturating_add(*overhead_bytes))
            }
            Law::Shaped { shape, loc, scale } => *loc + random::scaled(*scale, shape.mean()),
            Law::Hyperexponential { shares, means } => {
                let each = shares.iter().zip(means).map(|(share, mean)| share * mean.as_secs());
                Duration::from_secs(each.sum())
            }
        }
    }

    /// The variance for packets of `bytes`, in seconds squared; infinite where there is none.
    pub fn variance(&self, bytes: u32) -> f64 {
        let mean = self.mean(bytes).as_secs();
        match self {
            Law::Constant(_) | Law::Rate { .. } => 0.0,
            Law::Exponential(_) => mean * mean,
            Law::Erlang { phases, .. } => mean * mean / f64::from(*phases),
            Law::Empirical(times) => {
                let off = |time: &Duration| (time.as_secs() - mean) * (time.as_secs() - mean);
                times.iter().map(off).sum::<f64>() / times.len().max(1) as f64
            }
            Law::Shaped { shape, scale, .. } => shape.variance() * scale.as_secs() * scale.as_secs(),
            Law::Hyperexponential { shares, means } => {
                let square = |(share, one): (&f64, &Duration)| share * 2.0 * one.as_secs() * one.as_secs();
                shares.iter().zip(means).map(square).sum::<f64>() - mean * mean
            }
        }
    }

    /// Whether it has no memory: however long it has lasted, what remains is the same.
    pub fn is_memoryless(&self) -> bool {
        matches!(self, Law::Exponential(_))
    }

    /// Whether it is of time alone, and never zero except by the rarest of chances.
    pub(crate) fn is_positive(&self) -> bool {
        match self {
            Law::Constant(time) | Law::Exponential(time) | Law::Erlang { mean: time, .. } => time.0 > 0,
            Law::Empirical(times) => times.iter().all(|time| time.0 > 0),
            Law::Hyperexponential { means, .. } => means.iter().all(|time| time.0 > 0),
            Law::Shaped { loc, scale, .. } => loc.0 > 0 || scale.0 > 0,
            Law::Rate { .. } => false,
        }
    }

    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match self {
            Law::Empirical(times) if times.is_empty() => Err("the list of times is empty"),
            Law::Erlang { phases: 0, .. } => Err("a sum of no phases"),
            Law::Rate { bits_per_s, .. } if !(bits_per_s.is_finite() && *bits_per_s > 0.0) => {
                Err("the rate is not a positive number")
            }
            Law::Shaped { shape, .. } => shape.check(),
            Law::Hyperexponential { shares, means } if means.is_empty() || shares.len() != means.len() => {
                Err("there are not as many shares as times")
            }
            Law::Hyperexponential { shares, .. }
                if shares.iter().any(|share| !(0.0..=1.0).contains(share))
                    || (shares.iter().sum::<f64>() - 1.0).abs() > 1e-9 =>
            {
                Err("the shares of its times do not sum to 1")
            }
            _ => Ok(()),
        }
    }
}

fn at_rate(bits_per_s: f64, bytes: u32) -> Duration {
    Duration((f64::from(bytes) * 8.0 * PS_PER_S as f64 / bits_per_s + 0.5) as u64)
}

/// Times in files are seconds.
pub(crate) mod seconds {
    use forebay_time::Duration;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        time.as_secs().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        f64::deserialize(from).map(Duration::from_secs)
    }

    pub mod option {
        use super::*;

        pub fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
            time.map(Duration::as_secs).serialize(to)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
            Ok(Option::<f64>::deserialize(from)?.map(Duration::from_secs))
        }
    }

    pub mod list {
        use super::*;

        pub fn serialize<S: Serializer>(times: &[Duration], to: S) -> Result<S::Ok, S::Error> {
            to.collect_seq(times.iter().map(|t| t.as_secs()))
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Duration>, D::Error> {
            Ok(Vec::<f64>::deserialize(from)?.into_iter().map(Duration::from_secs).collect())
        }
    }

    pub mod time {
        use super::*;
        use forebay_time::Time;

        pub fn serialize<S: Serializer>(time: &Time, to: S) -> Result<S::Ok, S::Error> {
            super::serialize(&Duration(time.0), to)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
            super::deserialize(from).map(|d| Time(d.0))
        }
    }
}
