//! The arguments of `forebay bench scheduler`, and the plan that they are.

use std::path::PathBuf;

use clap::Args;
use forebay_crypto::Suite;
use forebay_scheduler::{Registered, registered};
use forebay_time::Duration;
use miette::miette;

use forebay_loadgen::mix::Mix;
use forebay_loadgen::processors::Spec;

/// Processors that policy `split` can deal packets out to.
const PROCESSORS_MAX: usize = 8;
/// SAs, told apart by the second octet of the destination.
const SAS_MAX: usize = 250;
/// The largest window: what the running core takes at a time, twice.
const WINDOW_MAX: usize = 64;

/// Arguments of `forebay bench scheduler`.
#[derive(Args)]
#[command(after_help = "\
Processors, the running core first:
  core         the core that runs the engine
  worker       another core; repeat it for several
  ipsec-mb     a worker that uses this library
  aws-lc       a worker that uses this library
  card         an emulated card of 230 Mbit/s; all cards share one 66 MHz bus
`core` and `worker` use the fastest library available, or the one named after a colon.

Example: forebay bench scheduler --processor core,worker:aws-lc --proposal 3des-sha1 --size 64,1408 --json")]
pub struct SchedulerArgs {
    /// Cipher suite, in swanctl notation.
    #[arg(long, default_value = "aes128gcm16")]
    proposal: String,
    /// Lengths of the cleartext IP packets in bytes, `imix`, or a capture whose first 16384 packets give lengths and order.
    #[arg(long, value_delimiter = ',', value_name = "SIZE|imix|PCAP", default_value = "64,1408")]
    size: Vec<String>,
    /// Processors, the running core first (see below).
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_value = "core,worker")]
    processor: Vec<String>,
    /// Number of SAs, which are equally likely.
    #[arg(long, default_value_t = 4)]
    sas: usize,
    /// Policies [default: all; `size-threshold` wants exactly two processors]. The best static split is always measured.
    #[arg(long, value_delimiter = ',', value_name = "POLICY")]
    policy: Vec<String>,
    /// Sliding windows in packets; 1 disables bundling.
    #[arg(long, value_delimiter = ',', value_name = "PACKETS", default_value = "1,16")]
    window: Vec<usize>,
    /// Measuring time per figure in seconds, over all rounds.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Number of rounds; medians are reported.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Folder for report.html and figures.json.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// What is to be measured.
pub struct Plan {
    pub suite: Suite,
    pub mixes: Vec<Mix>,
    pub processors: Vec<Spec>,
    pub sas: usize,
    pub rules: Vec<Rule>,
    pub windows: Vec<usize>,
    pub rounds: usize,
    /// Length of one measurement.
    pub slice: Duration,
}

/// How jobs are placed; which processors a rule names depends on what they were measured to do alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    FinishTime,
    /// Everything to the processor that is the fastest alone.
    Single,
    RoundRobin,
    ShortestQueue,
    /// Small packets to the first of two processors, large ones to the second.
    SizeThreshold,
    /// The best fixed split that was found.
    Split,
    /// One that the program has registered, with the defaults of its parameters.
    Registered(Registered),
}

impl Rule {
    /// All that can be asked for.
    pub fn all() -> Vec<Rule> {
        let shipped =
            [Rule::FinishTime, Rule::Single, Rule::RoundRobin, Rule::ShortestQueue, Rule::SizeThreshold];
        let registered = registered().into_iter().map(|kind| Rule::Registered(Registered::new(kind)));
        shipped.into_iter().chain(registered).collect()
    }

    /// Its word, as in scenario files.
    pub fn word(self) -> &'static str {
        match self {
            Rule::FinishTime => "finish-time",
            Rule::Single => "single",
            Rule::RoundRobin => "round-robin",
            Rule::ShortestQueue => "shortest-queue",
            Rule::SizeThreshold => "size-threshold",
            Rule::Split => "split",
            Rule::Registered(registered) => registered.kind().word,
        }
    }
}

impl SchedulerArgs {
    /// The plan, or what is wrong with the arguments.
    pub fn plan(&self) -> miette::Result<Plan> {
        let suite: Suite = self.proposal.parse().map_err(|error: forebay_crypto::SuiteError| {
            miette!(help = format!("did you mean `{}`?", error.nearest), "{error}")
        })?;
        within("sas", self.sas, 1, SAS_MAX)?;
        within("rounds", self.rounds, 1, 99)?;
        for &window in &self.window {
            within("window", window, 1, WINDOW_MAX)?;
        }
        if !(0.01..=3_600.0).contains(&self.seconds) {
            return Err(miette!("--seconds {}: expected 0.01 to 3600", self.seconds));
        }
        let processors = Spec::parse_all(&self.processor)?;
        within("processor: their number,", processors.len(), 1, PROCESSORS_MAX)?;
        Ok(Plan {
            suite,
            mixes: self.size.iter().map(|word| Mix::parse(word)).collect::<miette::Result<_>>()?,
            rules: self.rules(processors.len())?,
            processors,
            sas: self.sas,
            windows: self.window.clone(),
            rounds: self.rounds,
            slice: Duration::from_secs(self.seconds / self.rounds as f64),
        })
    }

    fn rules(&self, processors: usize) -> miette::Result<Vec<Rule>> {
        let pair = processors == 2;
        if self.policy.is_empty() {
            return Ok(Rule::all().into_iter().filter(|rule| pair || *rule != Rule::SizeThreshold).collect());
        }
        let mut rules = Vec::new();
        for word in &self.policy {
            let words = || Rule::all().into_iter().map(Rule::word).collect::<Vec<_>>().join(", ");
            let rule = Rule::all().into_iter().find(|rule| rule.word() == word).ok_or_else(|| {
                miette!(help = format!("use one of {}", words()), "--policy {word}: unknown policy")
            })?;
            if rule == Rule::SizeThreshold && !pair {
                return Err(miette!(
                    help = "give two processors: `--processor core,worker`",
                    "--policy size-threshold requires two processors, found {processors}"
                ));
            }
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        Ok(rules)
    }
}

fn within(name: &str, value: usize, least: usize, most: usize) -> miette::Result<()> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(miette!("--{name} {value}: expected {least} to {most}")),
    }
}
