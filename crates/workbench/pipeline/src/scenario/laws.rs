//! The law of a stage's time.

use forebay_scenario::{Section, Unit, Value};
use forebay_time::Duration;

use crate::law::Law;

/// The keys that a law may be written with.
pub(super) const KEYS: [&str; 5] = ["time", "phases", "times", "rate", "overhead_bytes"];
const WORDS: &[&str] = &["constant", "exponential", "erlang", "empirical", "rate"];

/// Phases that one erlang time may have.
const PHASES_MAX: u64 = 10_000;
const OVERHEAD_MAX: u64 = 1 << 30;

/// The law of a stage; `service` where the stage does not say.
pub(super) fn read(section: &Section<'_>, service: &'static str) -> Option<Law> {
    let default = match () {
        () if section.has("distribution") => None,
        () if section.has("rate") => Some("rate"),
        () if section.has("times") => Some("empirical"),
        () if section.has("phases") => Some("erlang"),
        () => Some(service),
    };
    let word = match default {
        Some(word) => word,
        None => section.word("distribution", WORDS)?,
    };
    let (needed, also): (&[(&'static str, &'static str)], &[&str]) = match word {
        "erlang" => (&[("time", "time = \"32 us\""), ("phases", "phases = 4")], &[]),
        "empirical" => (&[("times", "times = [\"30 us\", \"35 us\"]")], &[]),
        "rate" => (&[("rate", "rate = \"1 Gbit/s\"")], &["overhead_bytes"]),
        _ => (&[("time", "time = \"32 us\"")], &[]),
    };
    let known = |key: &str| needed.iter().any(|(one, _)| *one == key) || also.contains(&key);
    for key in KEYS.into_iter().filter(|key| section.has(key) && !known(key)) {
        let message = format!("`{key}` means nothing for distribution `{word}`");
        section.conflict(key, message, "take it away, or take another distribution");
    }
    for (key, example) in needed.iter().filter(|(key, _)| !section.has(key)) {
        section.missing(key, example);
    }
    match word {
        "constant" => section.time("time").map(Law::Constant),
        "exponential" => section.time("time").map(Law::Exponential),
        "erlang" => {
            let (mean, phases) = (section.time("time"), section.whole("phases", Unit::None, 1, PHASES_MAX));
            Some(Law::Erlang { mean: mean?, phases: phases? as u32 })
        }
        "empirical" => times(section).map(Law::Empirical),
        _ => {
            let bits_per_s = section.positive("rate", Unit::Rate)?.as_f64();
            let overhead = section.whole("overhead_bytes", Unit::Bytes, 0, OVERHEAD_MAX).unwrap_or(0);
            Some(Law::Rate { bits_per_s, overhead_bytes: overhead as u32 })
        }
    }
}

fn times(section: &Section<'_>) -> Option<Vec<Duration>> {
    let list = section.list("times", "expected a list of times: [\"30 us\", \"35 us\"]")?;
    if list.is_empty() {
        section.conflict("times", "the list of times is empty", "measure at least one");
        return None;
    }
    let of = |node| {
        let number = section.decimal_of("times", node, Unit::Time)?;
        let time = number.scaled(12).map(Duration);
        if time.is_none() && !matches!(node.value, Value::Table(_)) {
            let message = format!("one of `times` is {}", number.as_f64());
            section.conflict("times", message, "expected 0 to 18 million seconds");
        }
        time
    };
    // All of them are looked at, so that all that is wrong is said.
    let times: Vec<Option<Duration>> = list.iter().map(of).collect();
    times.into_iter().collect()
}
