//! The law of a stage's time.

use forebay_scenario::{Section, Unit, Value};
use forebay_time::Duration;

use crate::law::Law;
use crate::shape::Shape;

/// The keys that a law may be written with.
const KEYS: [&str; 12] =
    ["time", "phases", "times", "rate", "overhead_bytes", "loc", "scale", "a", "s", "c", "b", "shares"];
/// The laws by name.
pub(super) const WORDS: &[&str] = &[
    "constant",
    "exponential",
    "erlang",
    "empirical",
    "rate",
    "uniform",
    "gamma",
    "lognorm",
    "weibull_min",
    "pareto",
    "triang",
    "hyperexponential",
];

/// Phases that one erlang time may have.
const PHASES_MAX: u64 = 10_000;
const OVERHEAD_MAX: u64 = 1 << 30;

/// Keys that have to be given, each with a line that gives it, and keys that may be.
type Keys = (&'static [(&'static str, &'static str)], &'static [&'static str]);

fn keys_of(word: &str) -> Keys {
    match word {
        "erlang" => (&[("time", "time = \"32 us\""), ("phases", "phases = 4")], &[]),
        "empirical" => (&[("times", "times = [\"30 us\", \"35 us\"]")], &[]),
        "rate" => (&[("rate", "rate = \"1 Gbit/s\"")], &["overhead_bytes"]),
        "uniform" => (&[], &["time", "scale", "loc"]),
        "gamma" => (&[("a", "a = 2.5")], &["time", "scale", "loc"]),
        "lognorm" => (&[("s", "s = 0.5")], &["time", "scale", "loc"]),
        "weibull_min" => (&[("c", "c = 1.5")], &["time", "scale", "loc"]),
        "pareto" => (&[("b", "b = 3")], &["time", "scale", "loc"]),
        "triang" => (&[("c", "c = 0.5")], &["time", "scale", "loc"]),
        "hyperexponential" => {
            (&[("times", "times = [\"20 us\", \"200 us\"]"), ("shares", "shares = [0.9, 0.1]")], &[])
        }
        _ => (&[("time", "time = \"32 us\"")], &[]),
    }
}

/// The law of a stage; `service` where the stage does not say.
pub(super) fn read(section: &Section<'_>, service: &'static str) -> Option<Law> {
    let default = match () {
        () if section.has("distribution") => None,
        () if section.has("rate") => Some("rate"),
        () if section.has("shares") => Some("hyperexponential"),
        () if section.has("times") => Some("empirical"),
        () if section.has("phases") => Some("erlang"),
        () => Some(service),
    };
    let word = match default {
        Some(word) => word,
        None => section.word("distribution", WORDS)?,
    };
    let (needed, also) = keys_of(word);
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
        "rate" => {
            let bits_per_s = section.positive("rate", Unit::Rate)?.as_f64();
            let overhead = section.whole("overhead_bytes", Unit::Bytes, 0, OVERHEAD_MAX).unwrap_or(0);
            Some(Law::Rate { bits_per_s, overhead_bytes: overhead as u32 })
        }
        "hyperexponential" => hyperexponential(section),
        _ => shaped(section, word),
    }
}

/// A law of scipy.stats, by `scale` or by the mean that it is to have.
fn shaped(section: &Section<'_>, word: &str) -> Option<Law> {
    if section.has("time") && section.has("scale") {
        let help = "one of them says it all: `time` is the mean, `scale` that of scipy";
        section.conflict("scale", "both `time` and `scale` are given", help);
        return None;
    }
    if !section.has("time") && !section.has("scale") {
        section.missing("time", "time = \"32 us\"");
    }
    let number = |key: &str| section.positive(key, Unit::None).map(|number| number.as_f64());
    let (key, shape) = match word {
        "gamma" => ("a", Shape::Gamma { a: number("a")? }),
        "lognorm" => ("s", Shape::Lognorm { s: number("s")? }),
        "weibull_min" => ("c", Shape::WeibullMin { c: number("c")? }),
        "pareto" => ("b", Shape::Pareto { b: number("b")? }),
        "triang" => ("c", Shape::Triang { c: section.decimal("c", Unit::None)?.as_f64() }),
        _ => ("distribution", Shape::Uniform),
    };
    if let Err(what) = shape.check() {
        let message = format!("{word} with this `{key}`: {what}");
        section.conflict(key, message, "take a shape as scipy.stats takes it, whose mean is a number");
        return None;
    }
    let loc = if section.has("loc") { section.time("loc")? } else { Duration::ZERO };
    if section.has("scale") {
        return Some(Law::Shaped { shape, loc, scale: section.time("scale")? });
    }
    let mean = section.time("time")?;
    if mean <= loc {
        let message = format!("the mean {mean} is not above `loc`, {loc}, the least that this law gives");
        section.conflict("time", message, "raise `time`, or lower `loc`");
        return None;
    }
    let scale = Duration::from_secs((mean - loc).as_secs() / shape.mean());
    Some(Law::Shaped { shape, loc, scale })
}

fn hyperexponential(section: &Section<'_>) -> Option<Law> {
    let means = times(section)?;
    let list = section.list("shares", "expected a list of probabilities: [0.9, 0.1]")?;
    let shares: Vec<Option<f64>> =
        list.iter().map(|node| Some(section.decimal_of("shares", node, Unit::None)?.as_f64())).collect();
    let law = Law::Hyperexponential { shares: shares.into_iter().collect::<Option<_>>()?, means };
    if let Err(what) = law.check() {
        section.conflict("shares", what, "give each of `times` the probability with which it is the mean");
        return None;
    }
    Some(law)
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
