//! What is to be measured.

use forebay_crypto::Suite;
use forebay_loadgen::mix::Mix;
use forebay_loadgen::processors::Spec;
use forebay_scheduler::{Registered, registered};
use forebay_time::Duration;

use super::figures::RIVAL;
use crate::Error;
use crate::error::within;

/// Processors that policy `split` can deal packets out to.
const PROCESSORS_MAX: usize = 8;
/// SAs, told apart by the second octet of the destination.
const SAS_MAX: usize = 250;
/// The largest window: what the running core takes at a time, twice.
const WINDOW_MAX: usize = 64;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Cipher suite, in swanctl notation.
    pub proposal: String,
    /// Lengths of the cleartext IP packets in bytes, `imix`, or captures whose packets give lengths and order.
    pub sizes: Vec<String>,
    /// Processors, the running core first, such as `core`, `worker:aws-lc` or `card`.
    pub processors: Vec<String>,
    /// Processors that are measured by themselves through the same engine, to be compared with.
    pub rivals: Vec<String>,
    /// Number of SAs, which are equally likely.
    pub sas: usize,
    /// Policies; if there is none, all that fit.
    pub policies: Vec<String>,
    /// Sliding windows in packets; 1 disables bundling.
    pub windows: Vec<usize>,
    /// Measuring time per figure in seconds, over all rounds.
    pub seconds: f64,
    /// Number of rounds, of which medians are reported.
    pub rounds: usize,
}

/// Settings that have been checked.
#[derive(Debug)]
pub struct Plan {
    pub(super) suite: Suite,
    pub(super) mixes: Vec<Mix>,
    pub(super) processors: Vec<Spec>,
    pub(super) rivals: Vec<Spec>,
    pub(super) sas: usize,
    pub(super) rules: Vec<Rule>,
    pub(super) windows: Vec<usize>,
    pub(super) rounds: usize,
    /// Length of one measurement.
    pub(super) slice: Duration,
}

/// How jobs are placed; which processors a rule names depends on what they were measured to do alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    FinishTime,
    /// The same with an alpha that follows the load of the cores, which are busy all the time here.
    AdaptiveAlpha,
    /// Everything to the processor that is the fastest alone.
    Single,
    RoundRobin,
    ShortestQueue,
    /// Small packets to the first of two processors, large ones to the second.
    SizeThreshold,
    /// The best fixed split that was found.
    Split,
    /// Everything to a rival, which is not among the processors.
    Rival,
    /// One that the program has registered, with the defaults of its parameters.
    Registered(Registered),
}

impl Rule {
    /// All that can be asked for.
    fn all() -> Vec<Rule> {
        let shipped = [
            Rule::FinishTime,
            Rule::AdaptiveAlpha,
            Rule::Single,
            Rule::RoundRobin,
            Rule::ShortestQueue,
            Rule::SizeThreshold,
        ];
        let registered = registered().into_iter().map(|kind| Rule::Registered(Registered::new(kind)));
        shipped.into_iter().chain(registered).collect()
    }

    /// Its word, as in scenario files.
    pub(super) fn word(self) -> &'static str {
        match self {
            Rule::FinishTime => "finish-time",
            Rule::AdaptiveAlpha => "adaptive-alpha",
            Rule::Single => "single",
            Rule::RoundRobin => "round-robin",
            Rule::ShortestQueue => "shortest-queue",
            Rule::SizeThreshold => "size-threshold",
            Rule::Split => "split",
            Rule::Rival => RIVAL,
            Rule::Registered(registered) => registered.kind().word,
        }
    }
}

impl Plan {
    /// Checks the settings, and reads captures.
    ///
    /// # Errors
    /// What is wrong with a setting or a capture.
    pub fn new(settings: &Settings) -> Result<Plan, Error> {
        let suite: Suite = settings.proposal.parse()?;
        within("sas", settings.sas, 1, SAS_MAX)?;
        within("rounds", settings.rounds, 1, 99)?;
        for &window in &settings.windows {
            within("window", window, 1, WINDOW_MAX)?;
        }
        if !(0.01..=3_600.0).contains(&settings.seconds) {
            return Err(Error::range("seconds", settings.seconds, "0.01 to 3600"));
        }
        let processors = Spec::parse_all(&settings.processors)?;
        within("processor: their number,", processors.len(), 1, PROCESSORS_MAX)?;
        let rivals = settings.rivals.iter().map(|word| Spec::parse_rival(word));
        let computing = processors.iter().filter(|one| !one.is_io()).count();
        Ok(Plan {
            suite,
            mixes: settings.sizes.iter().map(|word| Mix::parse(word)).collect::<miette::Result<_>>()?,
            rules: rules(&settings.policies, computing)?,
            processors,
            rivals: rivals.collect::<miette::Result<_>>()?,
            sas: settings.sas,
            windows: settings.windows.clone(),
            rounds: settings.rounds,
            slice: Duration::from_secs(settings.seconds / settings.rounds as f64),
        })
    }
}

fn rules(policies: &[String], processors: usize) -> Result<Vec<Rule>, Error> {
    let pair = processors == 2;
    if policies.is_empty() {
        let fits = |rule: &Rule| match rule {
            Rule::SizeThreshold => pair,
            // It gives throughput away for what else a core has to do, and there is nothing else.
            Rule::AdaptiveAlpha => false,
            _ => true,
        };
        return Ok(Rule::all().into_iter().filter(fits).collect());
    }
    let mut rules = Vec::new();
    for word in policies {
        let words = || Rule::all().into_iter().map(Rule::word).collect::<Vec<_>>().join(", ");
        let rule =
            Rule::all().into_iter().find(|rule| rule.word() == word).ok_or_else(|| Error::Setting {
                message: format!("policy {word}: unknown policy"),
                hint: format!("use one of {}", words()),
            })?;
        if rule == Rule::SizeThreshold && !pair {
            return Err(Error::Setting {
                message: format!("policy size-threshold requires two processors, found {processors}"),
                hint: "give two processors: `--processor core,worker`".to_owned(),
            });
        }
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    Ok(rules)
}
