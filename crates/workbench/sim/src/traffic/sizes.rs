//! Payload sizes to draw.

use std::sync::Arc;

use super::Chain;
use crate::random::{self, Random};

/// A distribution of payload sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// Whole numbers of a range, equally likely; bins by weight.
    Bins(Vec<Bin>),
    /// `min` and an exponential, to the nearest byte; those above `max` are drawn again ([`Sizes::exponential`]).
    Exponential {
        /// Smallest.
        min: u32,
        /// Mean of the exponential before it is rounded and those above `max` are left out.
        scale: f64,
        /// Largest.
        max: u32,
        /// Mean of what is drawn.
        mean: f64,
    },
    /// Others, each several times in a row, as the packets of a TCP flow come: the number is geometric.
    Runs {
        /// What each run has the size of.
        sizes: Box<Sizes>,
        /// Mean number of packets in a run, above 1.
        length: f64,
    },
    /// Whole numbers of a range, equally likely; the bin of a packet depends on that of the packet before it.
    Chained {
        /// The bins; their weights are those of the first packet.
        bins: Vec<Bin>,
        /// The order of the bins.
        chain: Arc<Chain>,
        /// Whether each SA has an order of its own.
        per_sa: bool,
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

    /// An exponential from `min` to `max` of which what is drawn has this mean, which is above `min`.
    ///
    /// # Errors
    /// The mean that a `mean` so large would come to, and the one that none between these limits reaches.
    pub fn exponential(min: u32, mean: f64, max: u32) -> Result<Sizes, [f64; 2]> {
        let (wanted, span) = (mean - f64::from(min), f64::from(max - min));
        let came = cut_off(wanted, span);
        // A difference that no run is long enough to show leaves the scale as it was asked for.
        if (came - wanted).abs() <= SAME * mean {
            return Ok(Sizes::Exponential { min, scale: wanted, max, mean });
        }
        // An exponential without end falls so slowly that all sizes are equally likely but the smallest, half as likely.
        let limit = span * (span + 1.0) / 2.0 / (span + 0.5);
        // Near the limit the scale would have to be many times the range: it is no exponential any more.
        if wanted >= cut_off(SCALE_MAX * (span + 0.5), span) {
            return Err([came, limit].map(|mean| f64::from(min) + mean));
        }
        let (mut low, mut high) = (0.0, SCALE_MAX * (span + 0.5));
        loop {
            let scale = 0.5 * (low + high);
            if scale <= low || scale >= high {
                return Ok(Sizes::Exponential { min, scale, max, mean });
            }
            if cut_off(scale, span) < wanted { low = scale } else { high = scale }
        }
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
            Sizes::Chained { bins, chain, .. } => {
                let middle = |bin: &Bin| f64::from(bin.low) / 2.0 + f64::from(bin.high) / 2.0;
                chain.shares().iter().zip(bins).map(|(share, bin)| share * middle(bin)).sum()
            }
        }
    }
}

/// The share of its mean by which what is drawn may differ from what was asked for.
const SAME: f64 = 1e-4;
/// The largest scale of an exponential against the range that it is cut off at.
const SCALE_MAX: f64 = 100.0;

/// The mean of an exponential of mean `scale` that is rounded to the nearest whole number, from 0 to `span`; others are
/// drawn again. With q = exp(-1 / scale), k or more come with probability (q^(k - 1/2) - q^(span + 1/2)) / (1 - q^(span +
/// 1/2)), of which the mean is the sum over k from 1 to `span`.
fn cut_off(scale: f64, span: f64) -> f64 {
    let rest = libm::exp(-(span + 0.5) / scale);
    let all = -libm::expm1(-(span + 0.5) / scale);
    let sum = libm::exp(-0.5 / scale) * libm::expm1(-span / scale) / libm::expm1(-1.0 / scale);
    (sum - span * rest) / all
}

/// [`Sizes`] being drawn.
#[derive(Clone, Debug)]
pub(crate) struct Drawer {
    sizes: Sizes,
    total: u64,
    random: Random,
    run: Option<Run>,
    /// With a chain: the last bin, of each SA if each has an order of its own.
    last: Vec<Option<u16>>,
}

/// Packets in a row that have something in common.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// By which an exponential is divided to have a geometric number.
    scale: f64,
    left: u64,
    value: u32,
}

impl Run {
    /// Runs of this mean number of packets, above 1.
    pub(super) fn new(length: f64) -> Run {
        Run { scale: -(1.0 - 1.0 / length.max(1.0 + 1e-9)).ln(), left: 0, value: 0 }
    }

    /// What the next packet has, if the run goes on.
    #[inline]
    pub(super) fn goes_on(&mut self) -> Option<u32> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        Some(self.value)
    }

    /// A run begins with this packet.
    #[inline]
    pub(super) fn begin(&mut self, value: u32, random: &mut Random) {
        self.value = value;
        self.left = (random::exponential(random) / self.scale) as u64;
    }
}

impl Drawer {
    pub(crate) fn new(sizes: Sizes, random: Random) -> Drawer {
        let (sizes, run) = match sizes {
            Sizes::Runs { sizes, length } => (*sizes, Some(Run::new(length))),
            sizes => (sizes, None),
        };
        let total = match &sizes {
            Sizes::Bins(bins) => bins.iter().map(|bin| bin.weight).sum(),
            Sizes::Exponential { .. } | Sizes::Runs { .. } | Sizes::Chained { .. } => 1,
        };
        Drawer { sizes, total, random, run, last: Vec::new() }
    }

    /// The size of the next packet, which is of this SA.
    #[inline]
    pub(crate) fn draw(&mut self, sa: u32) -> u32 {
        let Some(run) = &mut self.run else { return self.fresh(sa) };
        if let Some(size) = run.goes_on() {
            return size;
        }
        let size = self.fresh(sa);
        if let Some(run) = &mut self.run {
            run.begin(size, &mut self.random);
        }
        size
    }

    #[inline]
    fn fresh(&mut self, sa: u32) -> u32 {
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
            &Sizes::Exponential { min, scale, max, .. } => loop {
                let size = f64::from(min) + scale * random::exponential(&mut self.random) + 0.5;
                if size < f64::from(max) + 1.0 {
                    return size as u32;
                }
            },
            Sizes::Chained { .. } => self.next_of_chain(sa),
            // No scenario can describe runs of runs.
            Sizes::Runs { sizes, .. } => sizes.mean() as u32,
        }
    }

    #[inline(never)]
    fn next_of_chain(&mut self, sa: u32) -> u32 {
        let Sizes::Chained { bins, chain, per_sa } = &self.sizes else { return 0 };
        let at = if *per_sa { sa as usize } else { 0 };
        if at >= self.last.len() {
            self.last.resize(at + 1, None);
        }
        let number = chain.draw(self.last[at], &mut self.random);
        self.last[at] = Some(number);
        let bin = bins[usize::from(number)];
        let span = u64::from(bin.high - bin.low) + 1;
        bin.low + if span == 1 { 0 } else { self.random.below(span) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(sizes: Sizes) -> Vec<u32> {
        let mut drawer = Drawer::new(sizes, random::stream(1, "sizes"));
        (0..400_000).map(|_| drawer.draw(0)).collect()
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
        let list = draw(Sizes::exponential(20, 471.0, 7_065).unwrap());
        let (mean, deviation) = moments(&list);
        assert!((mean - 471.0).abs() < 3.0 && (deviation - 451.0).abs() < 4.0, "{mean} {deviation}");
        assert!(list.iter().all(|size| (20..=7_065).contains(size)));
    }

    #[test]
    fn an_exponential_that_is_cut_off_has_the_mean_that_was_asked_for() {
        for (min, asked, max) in
            [(0, 600.0, 1_460), (40, 700.0, 1_500), (0, 1.0, 9), (64, 70.5, 80), (0, 256.0, 1_460)]
        {
            let list = draw(Sizes::exponential(min, asked, max).unwrap());
            let (mean, deviation) = moments(&list);
            let error = 5.0 * deviation / (list.len() as f64).sqrt();
            assert!((mean - asked).abs() < error, "{min} {asked} {max}: {mean} +- {error}");
            assert!(list.iter().all(|size| (min..=max).contains(size)));
        }
        // By a sum over all sizes: mean 1000, from 0 to 1460.
        let weight = |k: u32| {
            let [from, to] = [f64::from(k) - 0.5, f64::from(k) + 0.5].map(|x| (-x.max(0.0) / 1_000.0).exp());
            from - to
        };
        let all: f64 = (0..=1_460).map(weight).sum();
        let mean = (0..=1_460).map(|k| f64::from(k) * weight(k)).sum::<f64>() / all;
        let [came, limit] = Sizes::exponential(0, 1_000.0, 1_460).unwrap_err();
        assert!((came - mean).abs() < 1e-6 && (limit - 730.25).abs() < 0.01, "{came} {mean} {limit}");
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
    fn each_sa_has_its_own_place_in_the_chain() {
        let bins = [40, 1_500].map(|size| Bin { low: size, high: size, weight: 1 }).to_vec();
        // After a small packet comes a large one, after a large one a small one.
        let chain = Arc::new(Chain::new(&[1, 0], &[vec![0, 1], vec![1, 0]]));
        for (per_sa, expected) in [(true, [40, 40, 1_500, 1_500, 40]), (false, [40, 1_500, 40, 1_500, 40])] {
            let sizes = Sizes::Chained { bins: bins.clone(), chain: chain.clone(), per_sa };
            assert!((sizes.mean() - 770.0).abs() < 1e-9);
            let mut drawer = Drawer::new(sizes, random::stream(1, "sizes"));
            assert_eq!([7, 3, 3, 7, 7].map(|sa| drawer.draw(sa)), expected);
        }
    }

    #[test]
    fn weights_count() {
        let list = draw(Sizes::weighted(&[(40, 7), (576, 4), (1_500, 1)]));
        let share = |size| list.iter().filter(|&&one| one == size).count() as f64 / list.len() as f64;
        assert!((share(40) - 7.0 / 12.0).abs() < 0.003 && (share(1_500) - 1.0 / 12.0).abs() < 0.002);
        assert!((Sizes::weighted(&[(40, 7), (576, 4), (1_500, 1)]).mean() - 340.333).abs() < 0.001);
    }
}
