//! `[arrivals]`.

use std::path::Path;

use forebay_diagnostics::Problem;
use forebay_scenario::{Section, Unit, tables};
use forebay_sim::{Trace, read_trace};
use forebay_time::{Duration, PS_PER_S, Time};
use serde_json::{Map, Value as Json};

use super::{PARTS, known};
use crate::description::{Arrival, Arrivals};

const WORDS: &[&str] = &["exponential", "constant", "trace"];

/// When packets come; traces are sought in `directory`.
pub(super) fn read(
    top: &Section<'_>,
    directory: &Path,
    notes: &mut Vec<String>,
    resolved: &mut Map<String, Json>,
) -> Option<Arrivals> {
    let tables = tables(top, "arrivals");
    let Some((table, place)) = tables.into_iter().next() else {
        if !top.has("arrivals") {
            top.missing("arrivals", "[arrivals]");
        }
        return None;
    };
    let section =
        Section::new(table, "[arrivals]".to_owned(), place, &known(PARTS, "arrivals"), top.findings());
    let default = if section.has("path") { "trace" } else { "exponential" };
    let word = match section.has("distribution") {
        true => section.word("distribution", WORDS),
        false => Some(default),
    };
    let mut map = Map::from_iter([("distribution".to_owned(), word.unwrap_or(default).into())]);
    let other: &[&str] = if word == Some("trace") { &["mean"] } else { &["path", "packets", "rate"] };
    for key in other.iter().filter(|key| word.is_some() && section.has(key)) {
        let message = format!("`{key}` means nothing for distribution `{}`", word.unwrap_or_default());
        section.conflict(key, message, "take it away, or take another distribution");
    }
    let arrivals = match word {
        Some("trace") => trace(&section, directory, notes, &mut map),
        Some("constant") => mean(&section, &mut map).map(Arrivals::Constant),
        _ => mean(&section, &mut map).map(Arrivals::Exponential),
    };
    resolved.insert("arrivals".to_owned(), map.into());
    arrivals
}

fn mean(section: &Section<'_>, map: &mut Map<String, Json>) -> Option<Duration> {
    let key = if section.has("packet_rate") { "packet_rate" } else { "mean" };
    if section.has("packet_rate") && section.has("mean") {
        section.conflict(key, "both `mean` and `packet_rate` are given", "one of them says it all");
    }
    if !section.has(key) {
        section.missing("mean", "mean = \"70 us\"");
    }
    let mean = match key {
        "mean" => Duration(
            section.positive(key, Unit::Time).and_then(|_| section.exact_time(key))?.scaled(12)?.max(1),
        ),
        _ => Duration(Duration::from_secs(1.0 / section.positive(key, Unit::PacketRate)?.as_f64()).0.max(1)),
    };
    map.insert("mean".to_owned(), mean.as_secs().into());
    Some(mean)
}

/// A file's packets, as long as `packets` says: by its own times; back to back at `rate`, packet k
/// after all bytes before it; or evenly at `packet_rate`.
fn trace(
    section: &Section<'_>,
    directory: &Path,
    notes: &mut Vec<String>,
    map: &mut Map<String, Json>,
) -> Option<Arrivals> {
    if !section.has("path") {
        section.missing("path", "path = \"trace.csv\"");
    }
    let most = section.whole("packets", Unit::None, 1, u64::MAX);
    let rate = section.positive("rate", Unit::Rate).map(|rate| rate.as_f64());
    let packet_rate = section.positive("packet_rate", Unit::PacketRate).map(|rate| rate.as_f64());
    if section.has("rate") && section.has("packet_rate") {
        section.conflict("rate", "both `rate` and `packet_rate` are given", "one of them says it all");
    }
    let path = section.text("path")?;
    map.insert("path".to_owned(), path.into());
    let numbers = [("packets", most.map(Json::from)), ("rate", rate.map(Json::from))];
    for (key, number) in numbers.into_iter().chain([("packet_rate", packet_rate.map(Json::from))]) {
        number.map(|number| map.insert(key.to_owned(), number));
    }
    let wrong = |message: String, help: &str| {
        section.report(Problem::Trace { message, help: help.to_owned() }, section.place_of("path"));
    };
    let mut trace = read_trace(&directory.join(path)).map_err(|e| wrong(e.to_string(), e.help())).ok()?;
    let own = rate.is_none() && packet_rate.is_none();
    if own && trace.times.is_empty() {
        let help = "add `rate = \"1 Gbit/s\"` or `packet_rate`, or a column `time` to the file";
        wrong(format!("{path} has sizes and no times"), help);
        return None;
    }
    if own && trace.sort() {
        notes.push(format!("{path} is not in the order of its times; it was put into it"));
    }
    if trace.skipped > 0 {
        notes.push(format!("{path} has {} records that are no IP packets; they are left out", trace.skipped));
    }
    let most = usize::try_from(most.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    Some(Arrivals::Trace(timed(&trace, rate, packet_rate).take(most).collect()))
}

fn timed(
    trace: &Trace,
    rate: Option<f64>,
    packet_rate: Option<f64>,
) -> impl Iterator<Item = Arrival> + use<'_> {
    let mut before = 0u64;
    trace.sizes.iter().enumerate().map(move |(number, &bytes)| {
        // From the whole so far, so that no rounding adds up.
        let ps = |units: f64, per_s: f64| (units * PS_PER_S as f64 / per_s + 0.5) as u64;
        let at = match (rate, packet_rate) {
            (Some(rate), _) => ps(8.0 * before as f64, rate),
            (None, Some(packets)) => ps(number as f64, packets),
            (None, None) => trace.times[number],
        };
        before += u64::from(bytes);
        Arrival { at: Time(at), bytes }
    })
}
