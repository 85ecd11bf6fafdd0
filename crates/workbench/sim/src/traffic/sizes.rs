//! Payload sizes to draw.

use crate::random::{self, Random};

/// A distribution of payload sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// Whole numbers of a range, equally likely; bins by weight.
    Bins(Vec<Bin>),
    /// `min` and an exponential with mean `mean - min`, to the nearest byte; those above `max` are drawn
    /// again.
    Exponential {
        /// Smallest.
        min: u32,
        /// Mean before those above `max` are left out.
        mean: f64,
        /// Largest.
        max: u32,
    },
    /// Others, each several times in a row, as the packets of a TCP flow come: the number is geometric.
    Runs {
        /// What each run has the size of.
        sizes: Box<Sizes>,
        /// Mean number of packets in a run, above 1.
        length: f64,
    },
}

/// Sizes that are equally likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The smallest.
    pub low: u32,
    /// The largest.
    pub high: u32,
    /// How likely the bin is, against the others; at least 1.
    pub weight: u64,
}

impl Sizes {
    /// Always the same.
    pub fn fixed(size: u32) -> Sizes {
        Sizes::uniform(size, size)
    }

    /// All from `low` to `high`.
    pub fn uniform(low: u32, high: u32) -> Sizes {
        Sizes::Bins(vec![Bin { low, high, weight: 1 }])
    }

    /// Single sizes with weights.
    pub fn weighted(sizes: &[(u32, u64)]) -> Sizes {
        Sizes::Bins(sizes.iter().map(|&(size, weight)| Bin { low: size, high: size, weight }).collect())
    }

    /// A substitute for the trace of \[H\] and \[S\], which is not available: payloads 0..1460 with mean 256, median
    /// 162 and standard deviation 259. It has three flat pieces with as many free parameters as there are figures to
    /// match, and yields 255.996, 162 and 258.996. Other properties of the trace, such as peaks at 0 and 512 bytes or
    /// a correlation from packet to packet, are not known and not modelled.
    pub fn paper() -> Sizes {
        Sizes::Bins(vec![
            Bin { low: 0, high: 162, weight: 5_010 },
            Bin { low: 163, high: 517, weight: 4_285 },
            Bin { low: 518, high: 1_460, weight: 705 },
        ])
    }

    /// The mean in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Bins(bins) => {
                let sum: f64 =
                    bins.iter().map(|bin| f64::from(bin.low) / 2.0 * bin.weight as f64).sum::<f64>()
                        + bins.iter().map(|bin| f64::from(bin.high) / 2.0 * bin.weight as f64).sum::<f64>();
                sum / bins.iter().map(|bin| bin.weight as f64).sum::<f64>()
            }
            Sizes::Exponential { mean, .. } => *mean,
            Sizes::Runs { sizes, .. } => sizes.mean(),
        }
    }
}

/// [`Sizes`] being drawn.
#[derive(Clone, Debug)]
pub(crate) struct Drawer {
    sizes: Sizes,
    total: u64,
    random: Random,
    run: Option<Run>,
}

/// Packets of one size in a row.
#[derive(Clone, Debug)]
struct Run {
    /// By which an exponential is divided to have a geometric number.
    scale: f64,
    left: u64,
    size: u32,
}

impl Drawer {
    pub(crate) fn new(sizes: Sizes, random: Random) -> Drawer {
        let (sizes, run) = match sizes {
            Sizes::Runs { sizes, length } => {
                let scale = -(1.0 - 1.0 / length.max(1.0 + 1e-9)).ln();
                (*sizes, Some(Run { scale, left: 0, size: 0 }))
            }
            sizes => (sizes, None),
        };
        let total = match &sizes {
            Sizes::Bins(bins) => bins.iter().map(|bin| bin.weight).sum(),
            Sizes::Exponential { .. } | Sizes::Runs { .. } => 1,
        };
        Drawer { sizes, total, random, run }
    }

    #[inline]
    pub(crate) fn draw(&mut self) -> u32 {
        let Some(run) = &mut self.run else { return self.fresh() };
        if run.left > 0 {
            run.left -= 1;
            return run.size;
        }
        let size = self.fresh();
        if let Some(run) = &mut self.run {
            run.size = size;
            run.left = (random::exponential(&mut self.random) / run.scale) as u64;
        }
        size
    }

    #[inline]
    fn fresh(&mut self) -> u32 {
        match &self.sizes {
            Sizes::Bins(bins) => {
                let mut at = if bins.len() == 1 { 0 } else { self.random.below(self.total) };
                for bin in bins {
                    if at < bin.weight {
                        let span = u64::from(bin.high - bin.low) + 1;
                        let above = if span == 1 { 0 } else { self.random.below(span) };
                        return bin.low + above as u32;
                    }
                    at -= bin.weight;
                }
                unreachable!("a number below the sum of weights is in a bin")
            }
            &Sizes::Exponential { min, mean, max } => loop {
                let size =
                    f64::from(min) + (mean - f64::from(min)) * random::exponential(&mut self.random) + 0.5;
                if size < f64::from(max) + 1.0 {
                    return size as u32;
                }
            },
            // Runs of runs are not to be had from a scenario.
            Sizes::Runs { sizes, .. } => sizes.mean() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(sizes: Sizes) -> Vec<u32> {
        let mut drawer = Drawer::new(sizes, random::stream(1, "sizes"));
        (0..400_000).map(|_| drawer.draw()).collect()
    }

    fn moments(list: &[u32]) -> (f64, f64) {
        let mean = list.iter().map(|&size| f64::from(size)).sum::<f64>() / list.len() as f64;
        let square =
            list.iter().map(|&size| (f64::from(size) - mean).powi(2)).sum::<f64>() / list.len() as f64;
        (mean, square.sqrt())
    }

    #[test]
    fn the_stand_in_has_the_figures_of_the_papers_trace() {
        let mut list = draw(Sizes::paper());
        let (mean, deviation) = moments(&list);
        list.sort_unstable();
        assert!((mean - 256.0).abs() < 2.0 && (deviation - 259.0).abs() < 2.0, "{mean} {deviation}");
        assert!((161..=163).contains(&list[list.len() / 2]));
        assert_eq!((list[0], list[list.len() - 1]), (0, 1_460));
    }

    #[test]
    fn an_exponential_has_its_mean_and_its_limits() {
        let list = draw(Sizes::Exponential { min: 20, mean: 471.0, max: 7_065 });
        let (mean, deviation) = moments(&list);
        assert!((mean - 471.0).abs() < 3.0 && (deviation - 451.0).abs() < 4.0, "{mean} {deviation}");
        assert!(list.iter().all(|size| (20..=7_065).contains(size)));
    }

    #[test]
    fn runs_have_their_length_and_the_sizes_they_are_of() {
        let list = draw(Sizes::Runs { sizes: Box::new(Sizes::uniform(0, 1_000_000)), length: 10.0 });
        let changes = list.windows(2).filter(|two| two[0] != two[1]).count();
        let length = list.len() as f64 / changes as f64;
        assert!((length - 10.0).abs() < 0.3, "{length}");
        let (mean, _) = moments(&list);
        assert!((mean - 500_000.0).abs() < 6_000.0, "{mean}");
    }

    #[test]
    fn weights_count() {
        let list = draw(Sizes::weighted(&[(40, 7), (576, 4), (1_500, 1)]));
        let share = |size| list.iter().filter(|&&one| one == size).count() as f64 / list.len() as f64;
        assert!((share(40) - 7.0 / 12.0).abs() < 0.003 && (share(1_500) - 1.0 / 12.0).abs() < 0.002);
        assert!((Sizes::weighted(&[(40, 7), (576, 4), (1_500, 1)]).mean() - 340.333).abs() < 0.001);
    }
}
