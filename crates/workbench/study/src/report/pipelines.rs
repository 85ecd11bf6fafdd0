//! The table of runs of pipelines and inline cards.

use forebay_page::element::{Element, element};
use forebay_page::units;
use serde_json::Value;

use crate::model::Figures;
use crate::runs::Record;

/// The table, if there are such runs.
pub(super) fn runs(runs: &[Record]) -> Option<Element> {
    let shown = runs.iter().filter_map(|run| match &run.figures {
        Figures::Other(figures) => Some((run, figures)),
        Figures::Host(_) => None,
    });
    let rows: Vec<Element> = shown.map(|(run, figures)| row(run, figures)).collect();
    let head = ["run", "scenario and settings", "how", "throughput", "lost", "busiest", "mean delay"];
    let head = element("thead").child(element("tr").children(head.map(|name| element("th").text(name))));
    (!rows.is_empty())
        .then(|| element("table").class("runs").child(head).child(element("tbody").children(rows)))
}

fn row(run: &Record, figures: &Value) -> Element {
    let sets: Vec<String> = run.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let number = |path: &str| figures.pointer(path).and_then(Value::as_f64);
    let said =
        |value: Option<f64>, write: fn(f64) -> String| value.map_or_else(|| units::NOTHING.to_owned(), write);
    // Of several runs the means.
    let of =
        |name: &str| number(&format!("/replications/{name}/mean")).or_else(|| number(&format!("/{name}")));
    let throughput = match number("/payload_bps") {
        Some(bps) => units::bits_per_second(bps),
        None => said(of("throughput_pps"), |pps| format!("{} packets/s", units::digits(pps))),
    };
    let delay = of("delay_mean_s").or_else(|| of("mean_delay_s")).or_else(|| number("/delay/mean_s"));
    let cells = [
        run.run.to_string(),
        format!("{} {}", run.scenario, sets.join(" ")),
        run.by.to_string(),
        throughput,
        said(of("loss_probability"), units::percent),
        busiest(figures).unwrap_or_else(|| units::NOTHING.to_owned()),
        said(delay, units::seconds),
    ];
    element("tr").children(cells.into_iter().map(|cell| element("td").text(cell)))
}

/// The busiest stage, server or resource.
fn busiest(figures: &Value) -> Option<String> {
    let all = ["stages", "servers", "resources"].iter().filter_map(|list| figures.get(*list)?.as_array());
    let busy =
        all.flatten().filter_map(|one| Some((one.get("utilisation")?.as_f64()?, one.get("name")?.as_str()?)));
    let (share, name) = busy.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!("{name}, {}", units::percent(share)))
}
