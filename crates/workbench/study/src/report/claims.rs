//! The tables of claims and of observations.

use forebay_page::document;
use forebay_page::element::{Element, element};
use forebay_page::units;
use serde_json::Value;

use crate::findings::{Band, Claim, Findings, Kind, Parameter, Whose};

/// A section with the table, if there are any of the kind.
pub(super) fn section(kind: Kind, findings: &Findings) -> Option<Element> {
    let claims: Vec<&Claim> = findings.of_kind(kind).collect();
    let (title, about) = match kind {
        Kind::Claim => (
            "Claims",
            "Each is a sentence of a paper. Its band was set before the first run, and it holds if every measured \
             value lies in the band.",
        ),
        Kind::Observation => (
            "Observations",
            "These are no sentences of a paper, and they are counted apart. Their bands were set before the first \
             run too.",
        ),
    };
    if claims.is_empty() {
        return None;
    }
    let head = ["statement", "band", "found"];
    let head = element("thead").child(element("tr").children(head.map(|name| element("th").text(name))));
    let rows = claims.iter().flat_map(|claim| [Some(row(claim)), parameters(&claim.parameters)]);
    let body = element("tbody").children(rows.flatten());
    let table = element("table").class("claims").child(head).child(body);
    let held = claims.iter().filter(|claim| claim.holds).count();
    let section = element("section")
        .child(element("h2").text(title))
        .child(element("p").text(format!("{held} of {} hold. {about}", claims.len())))
        .children(failed(&claims));
    Some(section.child(document::scroll(title, table)))
}

/// Links to those that do not hold.
fn failed(claims: &[&Claim]) -> Option<Element> {
    let mut line = element("p").text("Does not hold: ");
    let mut count = 0;
    for claim in claims.iter().filter(|claim| !claim.holds) {
        let link = element("a").at("href", format!("#{}", claim.id)).text(claim.id.as_str());
        line = if count == 0 { line } else { line.text(", ") }.child(link);
        count += 1;
    }
    (count > 0).then_some(line)
}

fn row(claim: &Claim) -> Element {
    let (class, sign, word) = match claim.holds {
        true => ("verdict good", "\u{2713}", "holds"),
        false => ("verdict bad", "\u{2717}", "does not hold"),
    };
    let verdict = element("span").class(class).text(format!("{sign}\u{a0}{word}"));
    let found = element("td").child(verdict).child(element("p").text(units::micro(&claim.figure)));
    let found = match claim.why.is_empty() {
        true => found,
        false => found.child(element("p").class("why").text(units::micro(&claim.why))),
    };
    element("tr").at("id", claim.id.as_str()).child(statement(claim)).child(band(&claim.band)).child(found)
}

/// The paper's words, then our reading and the place.
fn statement(claim: &Claim) -> Element {
    let mut cell = element("td");
    if !claim.quote.is_empty() {
        cell = cell.child(element("q").text(claim.quote.as_str()));
    }
    if !claim.place.is_empty() {
        cell = cell.child(element("cite").text(claim.place.as_str()));
    }
    let class = if claim.quote.is_empty() { "says alone" } else { "says" };
    cell.child(element("p").class(class).text(units::micro(&claim.claim)))
        .child(element("code").text(claim.id.as_str()))
}

/// A row below a claim with its parameters, if there are any.
fn parameters(parameters: &[Parameter]) -> Option<Element> {
    let item = |one: &Parameter| {
        let value = format!("{}\u{a0}= {}", one.key, value(&one.value));
        let source = match one.whose {
            Whose::Printed => format!(" (printed, {})", one.source),
            Whose::Assumed => format!(" (assumed: {})", one.source),
        };
        let source = element("span").text(units::micro(&source));
        element("li").child(element("b").text(value)).child(source)
    };
    let list = element("ul").class("parameters").children(parameters.iter().map(item));
    let cell = element("td").at("colspan", "3").child(list);
    (!parameters.is_empty()).then(|| element("tr").class("with").child(cell))
}

/// A value of a scenario as text.
fn value(value: &Value) -> String {
    match value {
        Value::String(text) => units::micro(text),
        Value::Number(number) => {
            number.as_f64().map_or_else(|| number.to_string(), |number| units::round(units::digits(number)))
        }
        Value::Array(list) => list.iter().map(self::value).collect::<Vec<_>>().join(", "),
        Value::Bool(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        other => other.to_string(),
    }
}

fn band(band: &Band) -> Element {
    let number = |value: f64| units::round(units::digits(value));
    let ends = match (band.low, band.high) {
        (Some(low), Some(high)) if low == high => format!("exactly {}", number(low)),
        (Some(low), Some(high)) => format!("{} to {}", number(low), number(high)),
        (Some(low), None) => format!("at least {}", number(low)),
        (None, Some(high)) => format!("at most {}", number(high)),
        (None, None) => units::NOTHING.to_owned(),
    };
    let ends = match band.unit.as_str() {
        "" => ends,
        unit => units::micro(&format!("{ends}\u{a0}{unit}")),
    };
    element("td")
        .child(element("b").text(ends))
        .child(element("p").class("why").text(units::micro(&band.source)))
}
