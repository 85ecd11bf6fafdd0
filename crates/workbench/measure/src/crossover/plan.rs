//! What is asked for.

use forebay_crypto::Suite;
use forebay_loadgen::processors::Spec;
use forebay_processors::kinds;
use forebay_time::Duration;

use crate::Error;
use crate::error::within;

/// Cleartext packets, from an empty UDP packet to a jumbo frame.
pub(super) const SIZES: std::ops::RangeInclusive<usize> = 28..=9_000;
/// Packets that are handed over together, up to what the gateway places together.
pub(super) const BURSTS: std::ops::RangeInclusive<usize> = 1..=64;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Cipher suites, in swanctl notation.
    pub proposals: Vec<String>,
    /// Processors, the running core first, such as `core`, `card` or `gpu:0`; if there is none, a core and every kind of
    /// device that can be opened.
    pub processors: Vec<String>,
    /// Packets that are handed over together, for each of which a break-even size is found.
    pub bursts: Vec<usize>,
    /// Lengths of cleartext IP packets in bytes, for each of which a break-even number of packets is found.
    pub sizes: Vec<usize>,
    /// Shares of its time that a device is busy with others' packets.
    pub loads: Vec<f64>,
    /// Measuring time per point in seconds, over all rounds.
    pub seconds: f64,
    /// Number of rounds.
    pub rounds: usize,
}

/// Settings that have been checked.
#[derive(Debug)]
pub struct Plan {
    pub(super) suites: Vec<Suite>,
    /// The running core first.
    pub(super) processors: Vec<Spec>,
    /// Whether all kinds of devices are to be tried, and those that cannot be opened left out.
    pub(super) any_device: bool,
    pub(super) bursts: Vec<usize>,
    pub(super) sizes: Vec<usize>,
    pub(super) loads: Vec<f64>,
    pub(super) rounds: usize,
    /// Length of one measurement.
    pub(super) slice: Duration,
}

impl Plan {
    /// Checks the settings.
    ///
    /// # Errors
    /// What is wrong with a setting.
    pub fn new(settings: &Settings) -> Result<Plan, Error> {
        let Settings { proposals, processors, bursts, sizes, loads, seconds, rounds } = settings;
        let suites = proposals.iter().map(|word| word.parse::<Suite>()).collect::<Result<Vec<_>, _>>()?;
        let any_device = processors.is_empty();
        let specs = if any_device {
            let words = ["core"].into_iter().chain(kinds().into_iter().map(|kind| kind.word));
            Spec::parse_all(&words.map(str::to_owned).collect::<Vec<_>>())?
        } else {
            Spec::parse_all(processors)?
        };
        if specs[0].is_io() {
            return Err(Error::Setting {
                message: "processor io: a core without crypto has nothing that a device could do earlier"
                    .to_owned(),
                hint: "begin with a core that computes: `--processor core,card`".to_owned(),
            });
        }
        if specs.len() == 1 {
            return Err(Error::Setting {
                message: format!("processor {}: there is no device to compare with", specs[0].name),
                hint: format!("give one: `--processor {},card`", specs[0].name),
            });
        }
        for &burst in bursts {
            within("burst", burst, *BURSTS.start(), *BURSTS.end())?;
        }
        for &size in sizes {
            within("size", size, *SIZES.start(), *SIZES.end())?;
        }
        for &load in loads {
            if !(0.0..=0.95).contains(&load) {
                return Err(Error::range("load", load, "0 to 0.95"));
            }
        }
        within("rounds", *rounds, 1, 99)?;
        if !(0.01..=3_600.0).contains(seconds) {
            return Err(Error::range("seconds", seconds, "0.01 to 3600"));
        }
        Ok(Plan {
            suites,
            processors: specs,
            any_device,
            bursts: bursts.clone(),
            sizes: sizes.clone(),
            loads: loads.clone(),
            rounds: *rounds,
            slice: Duration::from_secs(seconds / *rounds as f64),
        })
    }

    /// What is fixed in each question: so many packets, or packets so long.
    pub(super) fn given(&self) -> impl Iterator<Item = Given> {
        let bursts = self.bursts.iter().map(|&packets| Given::Packets(packets));
        bursts.chain(self.sizes.iter().map(|&bytes| Given::Bytes(bytes)))
    }

    /// How many measurements there will be at most.
    pub(super) fn measurements(&self) -> u64 {
        let questions = self.loads.len() * (self.bursts.len() + self.sizes.len());
        (self.suites.len() * (self.processors.len() - 1) * questions * 2 * self.rounds) as u64
    }
}

/// What is fixed where a break-even of the other is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Packets(usize),
    Bytes(usize),
}

impl Given {
    /// The range of what is not fixed.
    pub(super) fn range(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Given::Packets(_) => SIZES,
            Given::Bytes(_) => BURSTS,
        }
    }

    /// Bytes and packets if what is not fixed is `at`.
    pub(super) fn with(self, at: usize) -> (usize, usize) {
        match self {
            Given::Packets(packets) => (at, packets),
            Given::Bytes(bytes) => (bytes, at),
        }
    }
}
