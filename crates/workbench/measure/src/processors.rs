//! What a job costs on each processor of this machine.

use std::fmt::Write;

use forebay_crypto::{Processor, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, calibrate};
use forebay_processors::{Costs, Kind, MeasuredCost, kinds, open_alone};

use crate::Error;

/// The costs of all processors, for each suite that they support.
pub struct Measured {
    /// The costs.
    pub costs: Costs,
    /// What was not measured, and why.
    pub notes: Vec<String>,
    /// The first suite.
    first: Option<Suite>,
}

/// Measures setup time and time per block of each processor for each of `proposals`, which are in swanctl notation.
///
/// # Errors
/// If a proposal is not known or a processor cannot be opened.
pub fn measure(proposals: &[String]) -> Result<Measured, Error> {
    let suites = proposals.iter().map(|word| word.parse::<Suite>()).collect::<Result<Vec<_>, _>>()?;
    let clock = Clock::start();
    let (mut costs, mut notes) = (Costs::default(), Vec::new());
    for mut processor in processors(&mut notes)? {
        for &suite in &suites {
            match calibrate(&mut *processor, suite, clock) {
                Some(calibration) => {
                    costs.processors.push(MeasuredCost::new(processor.name(), suite, &calibration));
                }
                None => notes.push(format!("{} does not support {suite}", processor.name())),
            }
        }
    }
    Ok(Measured { costs, notes, first: suites.first().copied() })
}

impl Measured {
    /// A scenario for `forebay simulate` with the costs of core and card for the first proposal; `None` if there
    /// is no proposal.
    pub fn scenario(&self) -> Option<String> {
        self.first.map(|suite| scenario(&self.costs, suite))
    }
}

/// Every kind of processor this build has: cores, and one device of each kind.
fn processors(notes: &mut Vec<String>) -> Result<Vec<Box<dyn Processor>>, Error> {
    let mut all: Vec<Box<dyn Processor>> = Vec::new();
    match forebay_crypto_ipsec_mb::new() {
        Ok(processor) => all.push(processor),
        Err(why) => notes.push(format!("no ipsec-mb: {why}")),
    }
    all.push(Box::new(AwsLc::new()));
    for kind in kinds() {
        match open_alone(&*(kind.sample)(), kind.word) {
            Ok(processor) => all.push(processor),
            Err(why) => notes.push(format!("no {why}")),
        }
    }
    Ok(all)
}

/// A scenario whose processors take as long as those measured: the first core that works in place, and whatever
/// jobs are handed over to.
fn scenario(costs: &Costs, suite: Suite) -> String {
    let word = suite.to_string();
    let mut text = format!(
        "# The processors of this machine with {word}, as `forebay bench processors` measured them.\n\
         model = \"host\"\nseed = 1\n\n[traffic]\nsource = \"paper\"\npackets = 100_000\nrate = \"1 Gbit/s\"\n\n\
         [scheduler]\npolicy = \"finish-time\"\nburst = 32\n"
    );
    let measured = costs.processors.iter().filter(|one| one.proposal == word);
    let mut has_core = false;
    for one in measured {
        let is_card = Kind::of(&one.name).is_some();
        if !is_card && has_core {
            continue;
        }
        has_core |= !is_card;
        let kind = if is_card { "accelerator" } else { "cpu" };
        let _ = write!(text, "\n[[processor]]\nname = \"{}\"\nkind = \"{kind}\"\n", one.name);
        let cost = one.cost();
        for (key, time) in [
            ("init", cost.init),
            ("block", cost.block),
            ("packet", cost.packet),
            ("submit", cost.submit),
            ("wake", cost.wake),
        ] {
            let _ = writeln!(text, "{key} = \"{} ps\"", time.0);
        }
        let _ = writeln!(text, "lanes = {}", cost.lanes);
    }
    text
}
