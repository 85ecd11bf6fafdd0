//! `[traffic]`.

use std::path::Path;
use std::sync::Arc;

use forebay_time::Duration;
use serde_json::{Map, Value as Json, json};

use super::classes::{self, Entry};
use super::decimal::Unit;
use super::order;
use super::section::Section;
use super::tree::{Node, Value};
use super::{PARTS, known, seconds, tables};
use crate::traffic::{Arrivals, Bin, DrawnClass, Rate, Sizes, Source, Traffic, read_trace};
use forebay_diagnostics::Problem;

const SOURCES: &[&str] = &["file", "exponential", "uniform", "fixed", "imix", "histogram", "paper"];
/// The keys of all distributions of sizes.
pub(super) const SIZE_KEYS: &[&str] = &["mean", "min", "max", "value", "bins", "imix"];
const ARRIVALS: &[&str] = &["back-to-back", "poisson", "on-off", "gaps", "stamps"];

/// Packets drawn unless the file says how many.
const DRAWN: u64 = 1_000_000;
/// \[H\] 4.1: a TCP/IPv4 header.
const OVERHEAD: u64 = 40;
/// Most passes of a packet.
const PASSES_MAX: usize = 8;
/// The largest IP packet.
const LARGEST: u64 = 65_535;
const SIZE_MAX: u64 = 1 << 30;

/// Suites by their words; the index is the bit.
#[derive(Default)]
pub(super) struct Suites(Vec<String>);

impl Suites {
    /// The bit of a word, a new one if it is new; `None` if there are 64.
    pub(super) fn bit(&mut self, word: &str) -> Option<u8> {
        let at = self.0.iter().position(|known| known == word).unwrap_or_else(|| {
            self.0.push(word.to_owned());
            self.0.len() - 1
        });
        (at < 64).then_some(at as u8)
    }

    /// The words that packets have.
    pub(super) fn words(&self) -> &[String] {
        &self.0
    }
}

pub(super) fn read(
    top: &Section<'_>,
    directory: &Path,
    suites: &mut Suites,
    classes: &mut [Entry<'_>],
    notes: &mut Vec<String>,
    resolved: &mut Map<String, Json>,
) -> Option<Traffic> {
    let tables = tables(top, "traffic");
    let Some((table, place)) = tables.into_iter().next() else {
        if !top.has("traffic") {
            top.missing("traffic", "[traffic]");
        }
        return None;
    };
    let traffic =
        Section::new(table, "[traffic]".to_owned(), place, &known(PARTS, "traffic"), top.findings());
    let mut map = Map::new();
    let overhead = traffic.whole("overhead", Unit::Bytes, 0, LARGEST).unwrap_or(OVERHEAD);
    let mut source = source(&traffic, directory, notes, &mut map);
    let classes = source.as_mut().and_then(|source| classes::traffic(classes, source, notes));
    let drawn = !matches!(source, Some(Source::Trace(_)));
    let packets = traffic.whole("packets", Unit::None, 1, u64::MAX).or(drawn.then_some(DRAWN));
    let warm_up = traffic.whole("warm_up", Unit::None, 0, u64::MAX).unwrap_or(0);
    let there = match &source {
        Some(Source::Trace(trace)) => packets.unwrap_or(u64::MAX).min(trace.len() as u64),
        _ => packets.unwrap_or(u64::MAX),
    };
    if warm_up >= there && source.is_some() {
        let message = format!("a warm-up of {warm_up} packets leaves none of {there}");
        traffic.conflict("warm_up", message, "warm up over fewer packets, or take more");
    }
    let sas = sas(&traffic, &mut map);
    let sa_run_length = order::run_length(&traffic, "sa_run_length", &mut map);
    if traffic.has("sa_run_length") && sas.as_ref().is_some_and(Vec::is_empty) {
        let message = "`sa_run_length` means nothing for SAs that are not drawn";
        traffic.conflict("sa_run_length", message, "add `sas` or `sa_weights`, or take it away");
    }
    let passes = passes(&traffic, &mut map);
    let words = passes.clone().or_else(|| traffic.texts("suites")).unwrap_or_else(|| vec!["any"]);
    if words.is_empty() {
        traffic.conflict("suites", "there is no suite", "leave `suites` away, or name at least one");
    }
    let bits: Option<Vec<u8>> = words.iter().map(|word| suites.bit(word)).collect();
    if bits.is_none() {
        traffic.conflict("suites", "more than 64 suites", "64 are told apart");
    }
    if passes.is_none() {
        map.insert("suites".to_owned(), words.clone().into());
    }
    let dependent_sas = traffic.whole("dependent_sas", Unit::None, 0, u32::MAX.into());
    if let Some(sas) = dependent_sas {
        map.insert("dependent_sas".to_owned(), sas.into());
    }
    map.insert("overhead".to_owned(), overhead.into());
    map.insert("warm_up".to_owned(), warm_up.into());
    if let Some(packets) = packets {
        map.insert("packets".to_owned(), packets.into());
    }
    let mean = source.as_ref().map(|source| mean(source, classes.as_deref().unwrap_or_default()));
    let arrivals = arrivals(&traffic, source.as_ref().zip(mean), overhead as f64, &mut map);
    resolved.insert("traffic".to_owned(), map.into());
    let (source, overhead, arrivals, sas, bits) = (source?, overhead as u32, arrivals?, sas?, bits?);
    let (classes, sa_run_length) = (classes?, sa_run_length?);
    Some(Traffic {
        source,
        packets,
        overhead,
        arrivals,
        sas,
        sa_run_length,
        classes,
        suites: if passes.is_some() { bits[..1].to_vec() } else { bits.clone() },
        dependent_sas: dependent_sas.unwrap_or(0) as u32,
        passes: if passes.is_some() { bits } else { Vec::new() },
        warm_up,
    })
}

/// The suites of the passes that each packet needs.
fn passes<'a>(traffic: &Section<'a>, map: &mut Map<String, Json>) -> Option<Vec<&'a str>> {
    let words = traffic.texts("passes")?;
    if traffic.has("suites") {
        let message = "both `suites` and `passes` are given";
        traffic.conflict("passes", message, "`passes` names the suites of all packets; remove `suites`");
    }
    if !(2..=PASSES_MAX).contains(&words.len()) {
        let message = format!("{} passes", words.len());
        traffic.conflict("passes", message, format!("2 to {PASSES_MAX} suites; for one pass, `suites`"));
        return None;
    }
    map.insert("passes".to_owned(), words.clone().into());
    Some(words)
}

fn source(
    traffic: &Section<'_>,
    directory: &Path,
    notes: &mut Vec<String>,
    map: &mut Map<String, Json>,
) -> Option<Source> {
    if !traffic.has("source") {
        traffic.missing("source", "source = \"file\"");
    }
    let word = traffic.word("source", SOURCES)?;
    if word != "file" {
        if traffic.has("path") {
            useless(traffic, "path", word);
        }
        let sizes = drawn(traffic, word, map)?;
        return order::in_order(traffic, word, sizes, map).map(Source::Drawn);
    }
    map.insert("source".to_owned(), word.into());
    SIZE_KEYS
        .iter()
        .chain(order::ORDER_KEYS)
        .filter(|key| traffic.has(key))
        .for_each(|key| useless(traffic, key, word));
    file(traffic, directory, notes, map).map(|trace| Source::Trace(Arc::new(trace)))
}

pub(super) fn useless(section: &Section<'_>, key: &str, source: &str) {
    let message = format!("`{key}` means nothing for source `{source}`");
    section.conflict(key, message, "take it away, or take another source");
}

/// Sizes of a section that may have its own.
pub(super) fn drawn_sizes(section: &Section<'_>, map: &mut Map<String, Json>) -> Option<Sizes> {
    if section.has("source") {
        return drawn(section, section.word("source", &SOURCES[1..])?, map);
    }
    for key in SIZE_KEYS.iter().filter(|key| section.has(key)) {
        section.conflict(key, format!("`{key}` means nothing without `source`"), "source = \"fixed\"");
    }
    None
}

fn file(
    traffic: &Section<'_>,
    directory: &Path,
    notes: &mut Vec<String>,
    map: &mut Map<String, Json>,
) -> Option<crate::Trace> {
    if !traffic.has("path") {
        traffic.missing("path", "path = \"trace.csv\"");
    }
    let path = traffic.text("path")?;
    map.insert("path".to_owned(), path.into());
    match read_trace(&directory.join(path)) {
        Ok(mut trace) => {
            // With a rate the order of the file counts, not its times.
            let timed = !traffic.has("rate") && !traffic.has("packet_rate");
            if timed && trace.sort() {
                notes.push(format!("{path} is not in the order of its times; it was put into it"));
            }
            if trace.skipped > 0 {
                notes.push(format!(
                    "{path} has {} records that are no IP packets; they are left out",
                    trace.skipped
                ));
            }
            Some(trace)
        }
        Err(error) => {
            let problem = Problem::Trace { message: error.to_string(), help: error.help().to_owned() };
            traffic.report(problem, traffic.place_of("path"));
            None
        }
    }
}

fn drawn(traffic: &Section<'_>, word: &str, map: &mut Map<String, Json>) -> Option<Sizes> {
    map.insert("source".to_owned(), word.into());
    let needed: &[&str] = match word {
        "exponential" => &["mean", "min", "max"],
        "uniform" => &["min", "max"],
        "fixed" => &["value"],
        "imix" => &["imix"],
        "histogram" => &["bins"],
        _ => &[],
    };
    let unused = SIZE_KEYS.iter().filter(|key| traffic.has(key) && !needed.contains(key));
    unused.for_each(|key| useless(traffic, key, word));
    let whole = |key| traffic.whole(key, Unit::Bytes, 0, SIZE_MAX);
    let required = |key: &'static str, example| {
        if !traffic.has(key) {
            traffic.missing(key, example);
        }
        key
    };
    match word {
        "fixed" => {
            let size = whole(required("value", "value = 472"))?;
            map.insert("value".to_owned(), size.into());
            Some(Sizes::fixed(size as u32))
        }
        "uniform" => {
            let (min, max) = (whole("min").unwrap_or(0), whole(required("max", "max = 1960"))?);
            if min > max {
                traffic.conflict("max", format!("`max` is {max}, below `min`, {min}"), "change one of them");
            }
            map.extend([("min".to_owned(), min.into()), ("max".to_owned(), max.into())]);
            (min <= max).then(|| Sizes::uniform(min as u32, max as u32))
        }
        "exponential" => {
            let (min, max) = (whole("min").unwrap_or(0), whole("max").unwrap_or(LARGEST));
            let mean = traffic.positive(required("mean", "mean = 256"), Unit::Bytes)?.as_f64();
            if !((min as f64) < mean && mean < max as f64) {
                let message = format!("`mean` is {mean}, not between `min`, {min}, and `max`, {max}");
                traffic.conflict("mean", message, "an exponential has its mean between its limits");
                return None;
            }
            map.extend([("min".to_owned(), min.into()), ("max".to_owned(), max.into())]);
            map.insert("mean".to_owned(), mean.into());
            let sizes = Sizes::exponential(min as u32, mean, max as u32);
            sizes.map_err(|[came, limit]| {
                let message = format!(
                    "no exponential from {min} to {max} bytes has a mean of {mean}: sizes above `max` are drawn again, \
                     which leaves {came:.1}"
                );
                let help = format!("a `mean` well below {limit:.0}, or a larger `max`");
                traffic.conflict("mean", message, help);
            })
            .ok()
        }
        "imix" => {
            let word =
                if traffic.has("imix") { traffic.word("imix", &["pktgen", "csit"])? } else { "pktgen" };
            map.insert("imix".to_owned(), word.into());
            Some(Sizes::weighted(match word {
                "csit" => &[(64, 28), (570, 16), (1_518, 4)],
                _ => &[(40, 7), (576, 4), (1_500, 1)],
            }))
        }
        "histogram" => {
            let list = traffic.list(required("bins", "bins = [[64, 28], [65, 570, 16]]"), BINS)?;
            let bins: Option<Vec<Bin>> = list.iter().map(|node| bin(traffic, node)).collect();
            if list.is_empty() {
                traffic.conflict("bins", "there is no bin", BINS);
                return None;
            }
            let bins = bins?;
            map.insert(
                "bins".to_owned(),
                bins.iter().map(|bin| json!([bin.low, bin.high, bin.weight])).collect(),
            );
            Some(Sizes::Bins(bins))
        }
        _ => Some(Sizes::paper()),
    }
}

const BINS: &str = "expected a list of bins: [size, weight] or [smallest, largest, weight]";

fn bin(traffic: &Section<'_>, node: &Node) -> Option<Bin> {
    let Value::List(list) = &node.value else {
        let found = node.value.type_name();
        let problem = Problem::WrongType { key: "bins".to_owned(), found, expected: BINS.to_owned() };
        traffic.report(problem, node.place.clone());
        return None;
    };
    let size = |node| traffic.whole_of("bins", node, Unit::Bytes, 0, SIZE_MAX);
    let weight = |node| traffic.whole_of("bins", node, Unit::None, 1, 1 << 32);
    let bin = match &list[..] {
        [one, times] => size(one).zip(weight(times)).map(|(size, weight)| (size, size, weight)),
        [low, high, times] => {
            size(low).zip(size(high)).zip(weight(times)).map(|((low, high), w)| (low, high, w))
        }
        _ => {
            let problem = Problem::Conflict { message: "this is no bin".to_owned(), help: BINS.to_owned() };
            traffic.report(problem, node.place.clone());
            None
        }
    };
    let (low, high, weight) = bin?;
    if low > high {
        let message = format!("the largest, {high}, is below the smallest, {low}");
        traffic.report(Problem::Conflict { message, help: BINS.to_owned() }, node.place.clone());
        return None;
    }
    Some(Bin { low: low as u32, high: high as u32, weight })
}

/// Weights of the SAs to draw, summed up; empty: none are drawn.
fn sas(traffic: &Section<'_>, map: &mut Map<String, Json>) -> Option<Vec<u64>> {
    if traffic.has("sas") && traffic.has("sa_weights") {
        traffic.conflict(
            "sas",
            "both `sas` and `sa_weights` are given",
            "`sa_weights` alone says how many there are",
        );
        return None;
    }
    if let Some(list) = traffic.list("sa_weights", "expected a list of weights: [3, 1, 1]") {
        let weight = |node| traffic.whole_of("sa_weights", node, Unit::None, 1, 1 << 32);
        let weights: Vec<u64> = list.iter().map(weight).collect::<Option<_>>()?;
        if weights.is_empty() {
            traffic.conflict("sa_weights", "there is no weight", "give one weight for each SA");
            return None;
        }
        map.insert("sa_weights".to_owned(), weights.clone().into());
        let sums = weights.iter().scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        return Some(sums.collect());
    }
    if !traffic.has("sas") {
        return Some(Vec::new());
    }
    let sas = traffic.whole("sas", Unit::None, 1, 1 << 24)?;
    map.insert("sas".to_owned(), sas.into());
    Some((1..=sas).collect())
}

fn arrivals(
    traffic: &Section<'_>,
    source: Option<(&Source, f64)>,
    overhead: f64,
    map: &mut Map<String, Json>,
) -> Option<Arrivals> {
    let stamped = matches!(source, Some((Source::Trace(trace), _)) if !trace.times.is_empty());
    let default = match traffic.has("rate") || !stamped {
        _ if traffic.has("gaps") => "gaps",
        true if traffic.has("packet_rate") => "poisson",
        true => "back-to-back",
        false => "stamps",
    };
    let word = if traffic.has("arrivals") { traffic.word("arrivals", ARRIVALS)? } else { default };
    map.insert("arrivals".to_owned(), word.into());
    let unused: &[&str] = match word {
        "stamps" => &["rate", "packet_rate", "on", "off", "gaps", "gap_transitions"],
        "on-off" => &["packet_rate", "gaps", "gap_transitions"],
        "poisson" => &["on", "off", "gaps", "gap_transitions"],
        "gaps" => &["on", "off"],
        _ => &["packet_rate", "on", "off", "gaps", "gap_transitions"],
    };
    for key in unused.iter().filter(|key| traffic.has(key)) {
        let message = format!("`{key}` means nothing for arrivals `{word}`");
        traffic.conflict(key, message, "take it away, or take other arrivals");
    }
    if word == "stamps" {
        if !stamped && source.is_some() {
            traffic.conflict("arrivals", "the source has no times", "give a `rate`");
        }
        return stamped.then_some(Arrivals::Stamps);
    }
    if word == "gaps" {
        let mean = source.map(|(_, mean)| mean + overhead);
        return order::gaps(traffic, mean, map).map(|gaps| Arrivals::Gaps(Arc::new(gaps)));
    }
    if word == "poisson" && traffic.has("packet_rate") {
        if traffic.has("rate") {
            traffic.conflict("rate", "both `rate` and `packet_rate` are given", "one of them says it all");
        }
        let rate = traffic.positive("packet_rate", Unit::PacketRate)?.as_f64();
        map.insert("packet_rate".to_owned(), rate.into());
        return Some(Arrivals::Poisson(Duration::from_secs(1.0 / rate)));
    }
    if !traffic.has("rate") && source.is_some() {
        traffic.missing("rate", "rate = \"1 Gbit/s\"");
    }
    let number = traffic.positive("rate", Unit::Rate)?;
    let Some((bits, per)) = number.as_fraction() else {
        traffic.conflict("rate", "this rate has too many digits", Unit::Rate.expected());
        return None;
    };
    let rate = Rate { bits, seconds: per };
    map.insert("rate".to_owned(), rate.as_bps().into());
    match word {
        "poisson" => {
            let mean = source?.1 + overhead;
            Some(Arrivals::Poisson(Duration::from_secs(8.0 * mean / rate.as_bps())))
        }
        "on-off" => {
            for (key, example) in [("on", "on = \"1 ms\""), ("off", "off = \"1 ms\"")] {
                if !traffic.has(key) {
                    traffic.missing(key, example);
                }
            }
            let time = |key| Some(Duration(traffic.positive(key, Unit::Time)?.scaled(12)?.max(1)));
            let (on, off) = (time("on")?, time("off")?);
            map.extend([("on".to_owned(), seconds(on)), ("off".to_owned(), seconds(off))]);
            Some(Arrivals::OnOff { rate, on, off })
        }
        _ => Some(Arrivals::BackToBack(rate)),
    }
}

/// The mean payload.
fn mean(source: &Source, classes: &[DrawnClass]) -> f64 {
    let all = match source {
        Source::Trace(trace) => return trace.mean(),
        Source::Drawn(sizes) => sizes.mean(),
    };
    let Some(last) = classes.last() else { return all };
    let mut before = 0;
    let sum = classes.iter().map(|class| {
        let weight = class.border - std::mem::replace(&mut before, class.border);
        weight as f64 * class.sizes.as_ref().map_or(all, Sizes::mean)
    });
    sum.sum::<f64>() / last.border as f64
}

impl Traffic {
    /// Changes how much is offered, on average: the same kind of arrivals at another rate.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        let mean = || mean(&self.source, &self.classes) + f64::from(self.overhead);
        self.arrivals = match &self.arrivals {
            Arrivals::Stamps | Arrivals::BackToBack(_) => Arrivals::BackToBack(rate),
            Arrivals::Poisson(_) => Arrivals::Poisson(Duration::from_secs(8.0 * mean() / rate.as_bps())),
            &Arrivals::OnOff { on, off, .. } => Arrivals::OnOff { rate, on, off },
            Arrivals::Gaps(gaps) => Arrivals::Gaps(Arc::new(gaps.with_mean(8e12 * mean() / rate.as_bps()))),
        };
    }
}
