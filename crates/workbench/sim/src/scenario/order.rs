//! The order of what `[traffic]` draws: sizes in runs or by a chain, SAs in runs, gaps from a table.

use std::sync::Arc;

use forebay_diagnostics::Problem;
use serde_json::{Map, Value as Json, json};

use super::decimal::Unit;
use super::section::Section;
use super::traffic::useless;
use super::tree::{Node, Value};
use crate::traffic::{Chain, Gaps, Sizes};

/// Rows of a matrix of transitions at most: the long run is computed with the cube of their number.
const ROWS_MAX: usize = 128;
/// The keys of all orders of sizes.
pub(super) const ORDER_KEYS: &[&str] = &["run_length", "transitions", "transitions_per"];
const GAPS: &str = "expected a list of bins: [shortest, longest, weight]";

/// Sizes in the order that the section describes, if it does.
pub(super) fn in_order(
    traffic: &Section<'_>,
    word: &str,
    sizes: Sizes,
    map: &mut Map<String, Json>,
) -> Option<Sizes> {
    let chained = traffic.has("transitions");
    if !chained && traffic.has("transitions_per") {
        let message = "`transitions_per` means nothing without `transitions`";
        traffic.conflict("transitions_per", message, "add `transitions`, or take it away");
        return None;
    }
    if chained && traffic.has("run_length") {
        let message = "both `run_length` and `transitions` are given";
        traffic.conflict("run_length", message, "each of them is an order of sizes: take one away");
        return None;
    }
    if chained && word != "histogram" {
        useless(traffic, "transitions", word);
        return None;
    }
    if chained {
        return by_chain(traffic, sizes, map);
    }
    let length = run_length(traffic, "run_length", map)?;
    Some(if length > 1.0 { Sizes::Runs { sizes: Box::new(sizes), length } } else { sizes })
}

fn by_chain(traffic: &Section<'_>, sizes: Sizes, map: &mut Map<String, Json>) -> Option<Sizes> {
    let per = if traffic.has("transitions_per") {
        traffic.word("transitions_per", &["traffic", "sa"])?
    } else {
        "traffic"
    };
    let Sizes::Bins(bins) = sizes else { return None };
    let weights: Vec<u64> = bins.iter().map(|bin| bin.weight).collect();
    let rows = transitions(traffic, "transitions", "bins", bins.len(), map)?;
    map.insert("transitions_per".to_owned(), per.into());
    let chain = Arc::new(Chain::new(&weights, &rows));
    Some(Sizes::Chained { bins, chain, per_sa: per == "sa" })
}

/// A mean number of packets in a row; 1 if it is not given.
pub(super) fn run_length(
    traffic: &Section<'_>,
    key: &'static str,
    map: &mut Map<String, Json>,
) -> Option<f64> {
    if !traffic.has(key) {
        return Some(1.0);
    }
    let length = traffic.positive(key, Unit::None)?.as_f64();
    if length < 1.0 {
        let message = format!("`{key}` is {length}, below 1");
        traffic.conflict(key, message, "packets in a row, on average: 1 or more");
        return None;
    }
    map.insert(key.to_owned(), length.into());
    Some(length)
}

/// Times between packets, at the rate that the section asks for, if it does; `mean` is that of a packet in bytes.
pub(super) fn gaps(traffic: &Section<'_>, mean: Option<f64>, map: &mut Map<String, Json>) -> Option<Gaps> {
    if !traffic.has("gaps") {
        traffic.missing("gaps", "gaps = [[\"1 us\", \"2 us\", 3], [\"1 ms\", \"2 ms\", 1]]");
        return None;
    }
    let list = traffic.list("gaps", GAPS)?;
    let read: Option<Vec<((u64, u64), u64)>> = list.iter().map(|node| gap(traffic, node)).collect();
    if list.is_empty() {
        traffic.conflict("gaps", "there is no bin", GAPS);
        return None;
    }
    let (bins, weights): (Vec<(u64, u64)>, Vec<u64>) = read?.into_iter().unzip();
    let seconds = |ps: u64| ps as f64 * 1e-12;
    let shown =
        bins.iter().zip(&weights).map(|(&(low, high), weight)| json!([seconds(low), seconds(high), weight]));
    map.insert("gaps".to_owned(), shown.collect());
    let rows = match traffic.has("gap_transitions") {
        true => transitions(traffic, "gap_transitions", "gaps", bins.len(), map)?,
        false => Vec::new(),
    };
    let gaps = Gaps { bins, chain: Chain::new(&weights, &rows), scale: 1.0 };
    if gaps.mean() <= 0.0 {
        traffic.conflict("gaps", "all packets come at one instant", "give a gap above zero");
        return None;
    }
    at_rate(traffic, gaps, mean, map)
}

fn at_rate(
    traffic: &Section<'_>,
    gaps: Gaps,
    mean: Option<f64>,
    map: &mut Map<String, Json>,
) -> Option<Gaps> {
    if traffic.has("rate") && traffic.has("packet_rate") {
        traffic.conflict("rate", "both `rate` and `packet_rate` are given", "one of them says it all");
        return None;
    }
    if traffic.has("rate") {
        let rate = traffic.positive("rate", Unit::Rate)?.as_f64();
        map.insert("rate".to_owned(), rate.into());
        return Some(gaps.with_mean(8e12 * mean? / rate));
    }
    if traffic.has("packet_rate") {
        let rate = traffic.positive("packet_rate", Unit::PacketRate)?.as_f64();
        map.insert("packet_rate".to_owned(), rate.into());
        return Some(gaps.with_mean(1e12 / rate));
    }
    Some(gaps)
}

/// A bin of gaps: its limits in picoseconds, and its weight.
fn gap(traffic: &Section<'_>, node: &Node) -> Option<((u64, u64), u64)> {
    let Value::List(list) = &node.value else {
        let found = node.value.type_name();
        let problem = Problem::WrongType { key: "gaps".to_owned(), found, expected: GAPS.to_owned() };
        traffic.report(problem, node.place.clone());
        return None;
    };
    let wrong = |message: String| {
        traffic.report(Problem::Conflict { message, help: GAPS.to_owned() }, node.place.clone());
    };
    let [low, high, weight] = &list[..] else {
        wrong(format!("this bin has {} entries, not 3", list.len()));
        return None;
    };
    let time = |node| {
        let time = traffic.decimal_of("gaps", node, Unit::Time)?.scaled(12);
        if time.is_none() {
            wrong("the time is not between 0 and 18 million seconds".to_owned());
        }
        time
    };
    let (low, high) = (time(low)?, time(high)?);
    let weight = traffic.whole_of("gaps", weight, Unit::None, 1, 1 << 32)?;
    if low > high {
        wrong("the longest gap is below the shortest".to_owned());
        return None;
    }
    Some(((low, high), weight))
}

/// A square matrix of weights, a row for each entry of the key `of`.
fn transitions(
    traffic: &Section<'_>,
    key: &'static str,
    of: &'static str,
    size: usize,
    map: &mut Map<String, Json>,
) -> Option<Vec<Vec<u64>>> {
    let expected = format!("expected a row of {size} weights for each of the {size} bins in `{of}`");
    let rows = traffic.list(key, &expected)?;
    if size > ROWS_MAX {
        let message = format!("`{of}` has {size} bins, more than {ROWS_MAX}");
        traffic.conflict(of, message, format!("with `{key}`, join bins until there are {ROWS_MAX}"));
        return None;
    }
    if rows.len() != size {
        traffic.conflict(key, format!("`{key}` has {} rows", rows.len()), expected);
        return None;
    }
    let read: Vec<Vec<u64>> =
        rows.iter().map(|row| weights(traffic, key, row, size, &expected)).collect::<Option<_>>()?;
    map.insert(key.to_owned(), json!(read));
    Some(read)
}

fn weights(
    traffic: &Section<'_>,
    key: &'static str,
    row: &Node,
    size: usize,
    expected: &str,
) -> Option<Vec<u64>> {
    let wrong = |message: String| {
        traffic.report(Problem::Conflict { message, help: expected.to_owned() }, row.place.clone());
    };
    let Value::List(list) = &row.value else {
        wrong(format!("a row of `{key}` is {}", row.value.type_name()));
        return None;
    };
    if list.len() != size {
        wrong(format!("a row of `{key}` has {} weights", list.len()));
        return None;
    }
    let read = list.iter().map(|node| traffic.whole_of(key, node, Unit::None, 0, 1 << 32));
    let read: Vec<u64> = read.collect::<Option<_>>()?;
    if read.iter().all(|&weight| weight == 0) {
        wrong(format!("a row of `{key}` has no weight above 0: nothing follows that bin"));
        return None;
    }
    Some(read)
}
