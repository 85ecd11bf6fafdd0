//! The tables of runs: what was set for each, and its main figures; the rest is in results.json.

use forebay_page::document;
use forebay_page::element::{Element, element};
use forebay_page::units;
use serde_json::Value;

use crate::findings::Record;

/// The section of all runs, folded.
pub(super) fn section(runs: &[Record]) -> Element {
    let mut notes: Vec<&str> = runs.iter().flat_map(|run| &run.notes).map(String::as_str).collect();
    notes.sort_unstable();
    notes.dedup();
    let is_host = |run: &&Record| run.figures.get("processing_latency").is_some();
    let (hosts, others): (Vec<&Record>, Vec<&Record>) = runs.iter().partition(is_host);
    let is_core = |run: &&Record| run.figures.get("cycles").is_some();
    let (cores, pipelines): (Vec<&Record>, Vec<&Record>) = others.into_iter().partition(is_core);
    let tables = [
        table(
            ["throughput", "CPU load", "bus load", "processing latency", "packets per job"],
            hosts.iter().map(|run| (*run, host(&run.figures))),
        ),
        table(
            ["found by", "throughput", "lost", "busiest", "mean delay"],
            pipelines.iter().map(|run| (*run, pipeline(run))),
        ),
        table(
            ["packets", "cycles", "cycles per packet", "cycles per byte", "area"],
            cores.iter().map(|run| (*run, core(&run.figures))),
        ),
    ];
    let summary = format!("All {}", units::counted(runs.len() as u64, "run", "runs"));
    let tables = tables.into_iter().flatten().map(|table| document::scroll("Runs", table));
    element("section")
        .child(element("h2").text("Runs"))
        .children(notes.into_iter().map(|note| element("p").class("how").prose(&units::micro(note))))
        .child(element("details").child(element("summary").text(summary)).children(tables))
}

/// A table of runs with these columns, if there are any.
fn table<'a>(
    head: [&'static str; 5],
    runs: impl Iterator<Item = (&'a Record, [String; 5])>,
) -> Option<Element> {
    let row = |(run, cells): (&Record, [String; 5])| {
        let sets: Vec<String> = run.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let first = [run.run.to_string(), units::micro(&format!("{} {}", run.scenario, sets.join(" ")))];
        element("tr").children(first.into_iter().chain(cells).map(|cell| element("td").text(cell)))
    };
    let rows: Vec<Element> = runs.map(row).collect();
    let head = ["run", "scenario and settings"].into_iter().chain(head);
    let head = element("thead").child(element("tr").children(head.map(|name| element("th").text(name))));
    (!rows.is_empty())
        .then(|| element("table").class("runs").child(head).child(element("tbody").children(rows)))
}

/// The number at a path, as `units` write it.
fn number(figures: &Value, path: &str, write: fn(f64) -> String) -> String {
    figures.pointer(path).and_then(Value::as_f64).map_or_else(|| units::NOTHING.to_owned(), write)
}

fn host(figures: &Value) -> [String; 5] {
    let processors = figures.get("processors").and_then(Value::as_array);
    let cpu = processors.into_iter().flatten().find(|one| one["name"] == "cpu");
    [
        number(figures, "/throughput_bps", units::bits_per_second),
        cpu.map_or_else(|| units::NOTHING.to_owned(), |cpu| number(cpu, "/load", units::percent)),
        number(figures, "/bus/load", units::percent),
        number(figures, "/processing_latency/mean_s", units::seconds),
        number(figures, "/packets_per_job", units::digits),
    ]
}

fn pipeline(run: &Record) -> [String; 5] {
    let figures = &run.figures;
    let by = match run.by.as_str() {
        "solution" => "solution",
        "closed-form" => "closed form",
        _ => "simulation",
    };
    // Of several runs the means.
    let of = |name: &str, write: fn(f64) -> String| {
        let mean = number(figures, &format!("/replications/{name}/mean"), write);
        if mean == units::NOTHING { number(figures, &format!("/{name}"), write) } else { mean }
    };
    let packets = |pps: f64| format!("{} packets/s", units::digits(pps));
    let first = |all: [String; 3]| {
        all.into_iter().find(|one| one != units::NOTHING).unwrap_or_else(|| units::NOTHING.to_owned())
    };
    let carried = number(figures, "/payload_bps", units::bits_per_second);
    let delay = first([
        of("delay_mean_s", units::seconds),
        of("mean_delay_s", units::seconds),
        number(figures, "/delay/mean_s", units::seconds),
    ]);
    [
        by.to_owned(),
        if carried == units::NOTHING { of("throughput_pps", packets) } else { carried },
        of("loss_probability", units::percent),
        busiest(figures).unwrap_or_else(|| units::NOTHING.to_owned()),
        delay,
    ]
}

/// The busiest stage, server or resource.
fn busiest(figures: &Value) -> Option<String> {
    let all = ["stages", "servers", "resources"].iter().filter_map(|list| figures.get(*list)?.as_array());
    let busy =
        all.flatten().filter_map(|one| Some((one.get("utilisation")?.as_f64()?, one.get("name")?.as_str()?)));
    let (share, name) = busy.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!("{name}, {}", units::percent(share)))
}

fn core(figures: &Value) -> [String; 5] {
    let gates = |kge: f64| format!("{}\u{a0}kGE", units::digits(kge));
    [
        number(figures, "/packets", units::digits),
        number(figures, "/cycles", units::digits),
        number(figures, "/cycles_per_packet", units::digits),
        number(figures, "/cycles_per_byte", units::digits),
        number(figures, "/area_kge", gates),
    ]
}
